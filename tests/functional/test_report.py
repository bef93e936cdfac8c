# SPDX-License-Identifier: Apache-2.0
"""The command ``compute-notify``, run as its users run it."""

import contextlib
import io
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time
from unittest import mock

import fixtures
from oslo_config import cfg
import psutil

from compute_notify.cmd import machine
from compute_notify.cmd import main
from compute_notify.cmd import report
from compute_notify import exception
from compute_notify import objects
from tests import base

_TIMEOUT = 60


class _Command:
    """The command in a process of its own, with a home of its own."""

    def __init__(self, home):
        self.home = pathlib.Path(home)
        self._env = dict(os.environ, XDG_STATE_HOME=home,
                         PYTHONWARNINGS='')

    def start(self, *args):
        return subprocess.Popen(
            [sys.executable, '-c',
             'import sys; from compute_notify.cmd import main; '
             'sys.exit(main.main())', *args],
            env=self._env, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def run(self, *args):
        process = self.start(*args)
        out, err = process.communicate(timeout=_TIMEOUT)
        return process.returncode, out, err

    def config(self, text):
        path = self.home / 'test.conf'
        path.write_text(text)
        return str(path)


def _actions(out):
    return [json.loads(line)['event_type'].removeprefix('compute_node.')
            for line in out.splitlines()]


class TestReport(base.TestCase):

    def setUp(self):
        super().setUp()
        self.command = _Command(self.useFixture(fixtures.TempDir()).path)

    def test_newcomer(self):
        """Without any set-up it prints create, updates at most, delete."""
        code, out, err = self.command.run(
            'report', '--count', '2', '--interval', '0.01', '--remove')
        self.assertEqual((0, 'create', 'delete'),
                         (code, _actions(out)[0], _actions(out)[-1]), err)
        self.assertLessEqual(set(_actions(out)[1:-1]), {'update'})
        data = json.loads(out.splitlines()[0])['payload']['nova_object.data']
        self.assertEqual(
            (platform.node(), os.cpu_count(),
             psutil.virtual_memory().total // 2 ** 20),
            (data['hypervisor_hostname'], data['vcpus'], data['memory_mb']))
        self.assertNotIn('Traceback', err)
        self.assertNotIn('eventlet', err.lower())

    def test_second_run_finds_the_first_ones_record(self):
        """A restart keeps the record; a removed one comes back as itself."""
        first = self.command.run('report', '--count', '1')[1]
        self.assertEqual(['create'], _actions(first))
        again = self.command.run('report', '--count', '1', '--remove')[1]
        self.assertNotIn('create', _actions(again))
        back = self.command.run('report', '--count', '1')[1]
        self.assertEqual(['create'], _actions(back))
        ids = {json.loads(out.splitlines()[0])['payload']['nova_object.data'][
            'id'] for out in (first, back)}
        self.assertEqual(1, len(ids))

    def test_interrupted(self):
        """Ctrl-C ends it cleanly, and --remove is still done."""
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.command.start('report', '--interval', '3600',
                                         '--remove')
            self.addCleanup(process.kill)
            self.assertEqual(['create'], _actions(process.stdout.readline()))
            process.send_signal(number)
            out, err = process.communicate(timeout=_TIMEOUT)
            self.assertEqual((0, ['delete']),
                             (process.returncode, _actions(out)), err)
            self.assertNotIn('Traceback', err)

    def test_nobody_reads(self):
        """It ends when nobody takes its lines any more, and says so."""
        process = self.command.start('report', '--interval', '0.01',
                                     '--count', '1000000', '--remove')
        self.addCleanup(process.kill)
        self.assertEqual(['create'], _actions(process.stdout.readline()))
        process.stdout.close()
        process.send_signal(signal.SIGTERM)  # a delete is still to come
        err = process.stderr.read()
        self.assertEqual(1, process.wait(_TIMEOUT))
        self.assertIn('Cannot write to standard output: [Errno 32]', err)
        self.assertNotIn('Traceback', err)

    def test_configured(self):
        """With a configuration it uses that database and those drivers."""
        database = self.command.home / 'other.sqlite'
        path = self.command.config(
            f'[database]\nconnection = sqlite:///{database}\n'
            '[DEFAULT]\nhost = cmp7\ntransport_url = fake://\n'
            '[oslo_messaging_notifications]\ndriver = log\n')
        code, out, err = self.command.run('report', '--count', '1',
                                          '--config-file', path)
        self.assertEqual((0, ''), (code, out), err)
        self.assertIn('"publisher_id": "nova-compute:cmp7"', err)
        self.assertTrue(database.exists())
        self.assertEqual(['test.conf', 'other.sqlite'], sorted(
            os.listdir(self.command.home), reverse=True))

    def test_bad_usage(self):
        """Numbers that make no sense are refused by name."""
        for args in (('--count', '0'), ('--count', 'x'), ('--interval', '-1'),
                     ('--interval', 'nan')):
            code, _, err = self.command.run('report', *args)
            self.assertEqual(2, code)
            self.assertIn(args[0], err)


class TestErrors(base.TestCase):
    """What is wrong is said in one line, with the option's name."""

    def setUp(self):
        super().setUp()
        self.command = _Command(self.useFixture(fixtures.TempDir()).path)

    def _error(self, text, command=('report', '--count', '1')):
        path = self.command.config(text)
        code, out, err = self.command.run(*command, '--config-file', path)
        self.assertEqual((1, ''), (code, out), err)
        self.assertNotIn('Traceback', err)
        self.assertNotIn('s3cret', err)
        return err

    def test_no_such_file(self):
        """A configuration file that is not there is named."""
        code, _, err = self.command.run('report', '--config-file', '/no/pe')
        self.assertEqual(1, code)
        self.assertIn('/no/pe', err)

    def test_unknown_field(self):
        """A field that does not exist is named, with those that do."""
        err = self._error('[compute_notify]\nextra_update_fields = vcpu\n')
        self.assertIn('[compute_notify] extra_update_fields: no such payload '
                      'field: vcpu. Valid names are current_workload,', err)

    def test_transport(self):
        """A transport URL that does not parse is named, not quoted."""
        self.assertIn('[DEFAULT] transport_url', self._error(
            '[DEFAULT]\ntransport_url = rabbit://u:s3cret@[half\n'))
        self.assertIn('no such transport: rabbitt', self._error(
            '[DEFAULT]\ntransport_url = rabbitt://u:s3cret@h\n'))

    def test_database(self):
        """A database that cannot be used is named, without its password."""
        for url, expected in (
                ('sqlite:////proc/nowhere/x.sqlite',
                 'Database sqlite:////proc/nowhere/x.sqlite cannot be'),
                ('nosql://u:s3cret@h/d', '[database] connection'),
                ('no url with s3cret', '[database] connection')):
            err = self._error(f'[database]\nconnection = {url}\n'
                              '[DEFAULT]\ntransport_url = fake://\n')
            self.assertIn(expected, err)

    def test_database_unreachable_mariadb(self):
        """A server that does not answer is an error at once."""
        started = time.monotonic()
        err = self._error(
            '[database]\n'
            'connection = mysql+pymysql://u:s3cret@127.0.0.1:9/d\n',
            ('db', 'version'))
        self.assertIn('Database mysql+pymysql://u:***@127.0.0.1:9/d cannot be '
                      'reached', err)
        self.assertLess(time.monotonic() - started, _TIMEOUT)

    def test_misspelt_driver(self):
        """A driver that does not exist is a warning; the others go on."""
        path = self.command.config(
            '[DEFAULT]\ntransport_url = fake://\n'
            '[oslo_messaging_notifications]\n'
            'driver = log\ndriver = mesaging\n')
        code, _, err = self.command.run('report', '--count', '1',
                                        '--config-file', path)
        self.assertEqual(0, code)
        self.assertIn('there is no notification driver mesaging', err)
        self.assertIn('"event_type": "compute_node.create"', err)


class TestDb(base.TestCase):

    def setUp(self):
        super().setUp()
        self.command = _Command(self.useFixture(fixtures.TempDir()).path)

    def test_sync_and_version(self):
        """db sync makes the tables, twice is once; db version tells."""
        self.assertEqual((0, 'none\n'), self.command.run('db', 'version')[:2])
        for _ in range(2):
            self.assertEqual((0, '001\n'), self.command.run('db', 'sync')[:2])
        self.assertEqual((0, '001\n'), self.command.run('db', 'version')[:2])


class TestMachine(base.NodeTestCase):
    """What is read off the machine; a libvirt is not to be had in a test."""

    def test_measure_fits_the_fields(self):
        """Everything measured can be assigned, and with host it is enough."""
        node = objects.ComputeNode(self.context, host='h')
        report.refresh(node, machine.measure())
        node.create()
        self.assertEqual(['create'], self.actions())

    def test_version_number(self):
        """Versions are numbers as libvirt writes them."""
        for text, number in (('6.1.15-13-amd64', 6001015), ('10.0', 10000000),
                             ('4.19.0-25', 4019000), ('rolling', 0),
                             ('5.15.1023', 5015999)):
            self.assertEqual(number, machine.version_number(text))

    def test_psutil_missing(self):
        """Without psutil the error says where it comes from."""
        self.useFixture(fixtures.MonkeyPatch(
            'compute_notify.cmd.machine.psutil', None))
        error = self.assertRaises(exception.ComputeNotifyError,
                                  machine.measure)
        self.assertIn('pip install', str(error))

    def _libvirt(self, **attributes):
        fake = mock.Mock(spec_set=[
            'openReadOnly', 'libvirtError', 'VIR_CONNECT_LIST_DOMAINS_ACTIVE'])
        fake.libvirtError = OSError
        fake.openReadOnly.configure_mock(**attributes)
        self.useFixture(fixtures.MonkeyPatch(
            'compute_notify.cmd.machine.libvirt', fake))

    def test_libvirt(self):
        """Where libvirt runs, it knows the guests and the hypervisor."""
        connection = mock.Mock(spec_set=[
            'listAllDomains', 'getHostname', 'getType', 'getVersion', 'close'])
        connection.listAllDomains.return_value = [
            mock.Mock(**{'maxVcpus.return_value': number})
            for number in (2, 4)]
        connection.getHostname.return_value = 'kvm1'
        connection.getType.return_value = 'QEMU'
        connection.getVersion.return_value = 8002002
        self._libvirt(return_value=connection)
        measured = machine.measure()
        self.assertEqual(('kvm1', 'QEMU', 8002002, 2, 6), tuple(
            measured[name] for name in (
                'hypervisor_hostname', 'hypervisor_type',
                'hypervisor_version', 'running_vms', 'vcpus_used')))
        connection.close.assert_called_once_with()

    def test_libvirt_does_not_run(self):
        """A libvirt module without a daemon is no hypervisor."""
        self._libvirt(side_effect=OSError)
        self.assertIsNone(machine.measure()['running_vms'])


class TestMain(base.TestCase):

    def test_two_configurations_do_not_meet(self):
        """A run leaves oslo.config's global object alone."""
        before = set(cfg.CONF)
        self.useFixture(fixtures.EnvironmentVariable(
            'XDG_STATE_HOME', self.useFixture(fixtures.TempDir()).path))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(0, main.main(['db', 'version']))
        self.assertEqual('none\n', printed.getvalue())
        self.assertEqual(set(), {'compute_notify'} & (set(cfg.CONF) - before))
