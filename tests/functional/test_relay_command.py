# SPDX-License-Identifier: Apache-2.0
"""The command ``compute-notify relay``, for who looks into an outbox."""

import contextlib
import io
import json
import os
import pathlib
import tempfile

import fasteners
import fixtures

from compute_notify.cmd import main
from compute_notify.outbox import relay
from compute_notify.outbox import store
from tests import outbox


class TestCase(outbox.TestCase):

    def setUp(self):
        super().setUp()
        self.config = pathlib.Path(tempfile.mkdtemp(), 'service.conf')
        self.config.write_text('[DEFAULT]\ntransport_url = fake://\n'
                               f'[compute_notify_outbox]\npath = {self.path}')

    def run_command(self, *args):
        """Return exit status, standard output and standard error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main.main(['relay', '--config-file', str(self.config),
                              *args])
        return code, out.getvalue(), err.getvalue()

    def succeed(self, *args):
        """Return standard output."""
        code, out, err = self.run_command(*args)
        self.assertEqual((0, ''), (code, err))
        return out

    def fill(self):
        """Let two wait and two be set aside, one of them for ever."""
        opened = self.store()
        opened.append(outbox.messages(3), max_messages=9)
        opened.set_aside(opened.first(1)[0], 'too large', tries=3, keep=9)
        opened.set_aside(outbox.messages(1, first=7)[0], 'no JSON', tries=0,
                         sendable=False, keep=9)
        opened.note(last_error='connection refused', last_error_at=0.0)
        return opened


class TestStatus(TestCase):

    def test_text(self):
        """The figures stand one a line, each with its name."""
        self.fill()
        lines = dict(line.split(':', 1)
                     for line in self.succeed('--status').splitlines())
        self.assertEqual(
            ['outbox', 'relayed by', 'waiting', 'oldest age', 'sent',
             'dropped', 'failed', 'last error'], list(lines))
        self.assertEqual(
            (self.path, 'nobody', '2', '0', '0', '2'),
            tuple(lines[name].strip() for name in (
                'outbox', 'relayed by', 'waiting', 'sent', 'dropped',
                'failed')))
        self.assertRegex(lines['oldest age'], r'^ *\d+\.\d s$')

    def test_json(self):
        """The same for a script."""
        self.fill()
        status = json.loads(self.succeed('--status', '--json'))
        self.assertEqual(
            {'path': self.path, 'relay': None, 'waiting': 2, 'sent': 0,
             'dropped': 0, 'failed': 2, 'last_error': 'connection refused',
             'last_error_at': 0.0},
            {name: value for name, value in status.items()
             if name != 'oldest_age'})

    def test_relayed(self):
        """The process that relays is named."""
        self.fill().note(relay=4711)
        lock = fasteners.InterProcessLock(self.path + '.relay')
        # Another process would find it held; this one holds it itself.
        child = os.fork()
        if not child:
            os.setsid()
            held = lock.acquire(blocking=False)
            os.kill(os.getpid(), 19 if held else 9)
            os._exit(0)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, 9)
        os.waitpid(child, os.WUNTRACED)
        self.assertIn('relayed by: process 4711', self.succeed('--status'))

    def test_missing(self):
        """An outbox that is not there is an error, and is not made."""
        code, out, err = self.run_command('--status')
        self.assertEqual((1, ''), (code, out))
        self.assertIn(f'There is no outbox {self.path}', err)
        self.assertFalse(os.path.exists(self.path))

    def test_garbage(self):
        """So is one that is none; it stays where it is."""
        pathlib.Path(self.path).write_text('garbage' * 1000)
        os.chmod(self.path, 0o600)
        code, _, err = self.run_command('--status')
        self.assertEqual(1, code)
        self.assertIn(f'Outbox {self.path} cannot be used: file is not a '
                      'database', err)
        self.assertEqual(1, len(err.splitlines()))
        self.assertTrue(os.path.exists(self.path))

    def test_default_place(self):
        """Without the option it is where the service keeps its state."""
        state = tempfile.mkdtemp()
        self.config.write_text(f'[DEFAULT]\nstate_path = {state}')
        store.Store(f'{state}/compute-notify-outbox.sqlite').close()
        self.assertIn(f'{state}/compute-notify-outbox.sqlite',
                      self.succeed('--status'))

    def test_other_file(self):
        """A file that was moved aside can be looked into as well."""
        self.fill().close()
        os.rename(self.path, self.path + '.aside')
        self.assertIn('waiting:    2', self.succeed(
            '--status', '--path', self.path + '.aside'))


class TestFailed(TestCase):

    def setUp(self):
        super().setUp()
        self.fill()

    def test_list(self):
        """Each is one line with number, topic, tries and error."""
        first, second = self.succeed('--list-failed').splitlines()
        self.assertRegex(first, r'^1: topic.info, stored 20\d\d-.*, 3 tries: '
                                r'too large$')
        self.assertRegex(second, r'^2: .*no JSON \(cannot be sent again\)$')

    def test_list_json(self):
        """The same for a script."""
        self.assertEqual(
            [(1, 'too large', True), (2, 'no JSON', False)],
            [(one['id'], one['error'], one['sendable']) for one in
             json.loads(self.succeed('--list-failed', '--json'))])

    def test_retry(self):
        """All that can be sent wait again; the rest stays."""
        self.assertEqual('1 wait to be sent again\n',
                         self.succeed('--retry-failed'))
        self.assertEqual([1, 2, 0], self.waiting())
        self.assertIn('no JSON', self.succeed('--list-failed'))

    def test_retry_one(self):
        """A number that is none is an error that names it."""
        code, _, err = self.run_command('--retry-failed', '1', '2', '9')
        self.assertEqual(1, code)
        self.assertIn('nothing aside that can be sent again under: 2, 9', err)
        self.assertEqual([1, 2], self.waiting())
        self.succeed('--retry-failed', '1')
        self.assertEqual([1, 2, 0], self.waiting())


class TestRelay(TestCase):

    def test_unknown_error(self):
        """A relay that ends by itself ends the command, with an error."""
        self.useFixture(fixtures.MockPatchObject(
            relay.Relay, 'run', autospec=True))
        code, out, err = self.run_command()
        self.assertEqual(1, code)
        self.assertIn(f'relaying {self.path} to fake:///, once there is such '
                      'a file', out)
        self.assertIn(f'The relay of outbox {self.path} has ended', err)

    def test_garbage(self):
        """A file that is no outbox ends it at once, and stays as it is."""
        pathlib.Path(self.path).write_text('garbage' * 1000)
        code, out, err = self.run_command()
        self.assertEqual((1, ''), (code, out))
        self.assertIn(f'Outbox {self.path} cannot be used', err)
        self.assertEqual(['outbox'], os.listdir(os.path.dirname(self.path)))

    def test_wrong_url(self):
        """A URL that cannot work is said at once, without its password."""
        self.config.write_text(
            '[DEFAULT]\ntransport_url = nonsense://me:s3cret@host/\n'
            f'[compute_notify_outbox]\npath = {self.path}')
        code, _, err = self.run_command()
        self.assertEqual(1, code)
        self.assertIn('Option [DEFAULT] transport_url: no such transport: '
                      'nonsense', err)
        self.assertNotIn('s3cret', err)
