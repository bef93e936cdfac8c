# SPDX-License-Identifier: Apache-2.0
"""Tests of the options, as operators and their tools meet them."""

import io
import pathlib
import re
import subprocess
import sys
import tempfile

import fixtures
from oslo_config import cfg
from oslo_config import generator
from oslo_config import validator
import testscenarios

from compute_notify import change
from compute_notify import opts
from compute_notify import payload
from tests import base

load_tests = testscenarios.load_tests_apply_scenarios


def sample(namespace='compute_notify'):
    """Return the sample that oslo-config-generator writes."""
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf(['--namespace', namespace], default_config_files=[])
    written = io.StringIO()
    generator.generate(conf, written)
    return written.getvalue()


def group(text, name):
    """Return the part of a sample that is about one group."""
    return text.partition(f'\n[{name}]\n')[2].partition('\n[')[0]


def options(text):
    """Return the lines of options in the part about a group."""
    return [line.rstrip() for line in text.splitlines()
            if line.startswith('#') and not line.startswith('# ')
            and line != '#']


class TestGenerator(base.TestCase):

    def test_command(self):
        """The command finds the options by their namespace."""
        command = pathlib.Path(sys.executable).with_name(
            'oslo-config-generator')
        done = subprocess.run(
            [command, '--namespace', 'compute_notify'], check=True,
            capture_output=True, text=True)
        self.assertIn('\n#topics = versioned_notifications\n',
                      group(done.stdout, 'compute_notify'))

    def test_options_and_help(self):
        """Every option stands there with its default and its help."""
        mine = group(sample(), 'compute_notify')
        self.assertEqual(
            ['#topics = versioned_notifications', '#exchange = nova',
             '#extra_update_fields ='], options(mine))
        for option in opts._compute_notify_opts:
            for word in option.help.split():
                self.assertIn(word, mine)

    def test_outbox(self):
        """So do those of the outbox, each with what it can be."""
        mine = group(sample(), 'compute_notify_outbox')
        self.assertEqual(
            ['#path = $state_path/compute-notify-outbox.sqlite',
             '#relay = true', '#max_messages = 100000', '#max_age = 0',
             '#drop = oldest', '#durability = process',
             '#memory_messages = 10000', '#max_tries = 3',
             '#status_interval = 600'], options(mine))
        alone = sample('compute_notify.outbox')
        self.assertEqual(options(mine),
                         options(group(alone, 'compute_notify_outbox')))
        self.assertNotIn('#transport_url', alone)
        for choice in 'oldest', 'newest', 'process', 'power':
            self.assertIn(f'\n# {choice} - ', mine)

    def test_host(self):
        """The sample does not tell the name of the host it was made on."""
        text = sample()
        self.assertIn('\n#host = <current_hostname>\n', text)
        self.assertNotIn(f'#host = {opts._host_opt.default}\n', text)

    def test_other_libraries(self):
        """The options that storing and sending need are in the one file."""
        text = sample()
        self.assertIn('#connection =', group(text, 'database'))
        self.assertIn('#driver =', group(text, 'oslo_messaging_notifications'))
        self.assertIn('#transport_url =', text)
        self.assertIn('#debug =', text)

    def test_watched_fields(self):
        """The help names each field that is always watched."""
        option, = [one for one in opts._compute_notify_opts
                   if one.name == 'extra_update_fields']
        for name in change.TRACKED:
            self.assertIn(name, option.help)
        self.assertIn('memory_mb_used', payload.PAYLOAD_FIELDS)


class TestValidator(base.TestCase):

    scenarios = [
        ('sample', {'lines': None, 'expected': 0}),
        ('values', {'lines': 'topics = a, b\nexchange = x\n'
                             'extra_update_fields = host', 'expected': 0}),
        ('misspelt', {'lines': 'topic = a', 'expected': 1}),
        ('outbox', {'group': 'compute_notify_outbox',
                    'lines': 'drop = newest\nmax_messages = 1',
                    'expected': 0}),
        ('outbox-misspelt', {'group': 'compute_notify_outbox',
                             'lines': 'maximum = 1', 'expected': 1}),
    ]
    group = 'compute_notify'

    def test_validate(self):
        """The validator accepts what is right and refuses what is not."""
        path = pathlib.Path(tempfile.mkdtemp(), 'service.conf')
        if self.lines is None:
            # Every option in it set to its own default.
            text = re.sub('^#(?=[a-z_]+ =)', '', sample(), flags=re.MULTILINE)
        else:
            text = f'[{self.group}]\n{self.lines}\n'
        path.write_text(text)
        self.useFixture(fixtures.MonkeyPatch('sys.argv', [
            'oslo-config-validator', '--namespace', 'compute_notify',
            '--input-file', str(path)]))
        self.assertEqual(self.expected, validator.main())


class TestRegister(base.TestCase):

    def registered(self, *options):
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        conf.register_opts(options)
        opts.register_opts(conf)
        return conf

    def test_twice(self):
        """Registering again changes nothing."""
        conf = self.registered()
        conf.set_override('exchange', 'mine', group='compute_notify')
        opts.register_opts(conf)
        self.assertEqual('mine', conf.compute_notify.exchange)

    def test_defaults(self):
        """The defaults are those of the wire contract."""
        conf = self.registered()
        self.assertEqual(['versioned_notifications'],
                         conf.compute_notify.topics)
        self.assertEqual('nova', conf.compute_notify.exchange)
        self.assertEqual([], conf.compute_notify.extra_update_fields)

    def test_host_of_the_service(self):
        """A service that has an option host keeps its own."""
        conf = self.registered(cfg.StrOpt('host', default='theirs',
                                          help='Of the service.'))
        self.assertEqual('theirs', conf.host)

    def test_host_afterwards(self):
        """A service can register its own after us."""
        conf = self.registered()
        conf.register_opt(cfg.StrOpt('host', default='theirs'))
        self.assertEqual('theirs', conf.host)

    def test_copies(self):
        """What list_opts() returns can be changed without harm to ours."""
        listed = dict(opts.list_opts())
        for option in listed['compute_notify']:
            option.default = ['changed']
            option.help = ''
        conf = self.registered()
        self.assertEqual('nova', conf.compute_notify.exchange)
        self.assertTrue(all(option.help
                            for option in opts._compute_notify_opts))
        self.assertIsNot(opts.list_opts()[0][1][0], opts.list_opts()[0][1][0])

    def test_documented(self):
        """Every option has a help text that is a sentence."""
        for option in (*opts._compute_notify_opts, opts._host_opt):
            self.assertRegex(option.help.strip(), r'^[A-Z](?s:.)*\.$')
