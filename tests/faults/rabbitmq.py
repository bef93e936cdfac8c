# SPDX-License-Identifier: Apache-2.0
"""A private RabbitMQ that can be killed, frozen, and told to refuse."""

from collections import abc
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import typing

import amqp
from amqp import exceptions as amqp_exc
import fixtures
from oslo_utils import timeutils

#: Seconds after which something that should have happened has not.
LONG = 120

#: Where Debian keeps the scripts that insist on no user; those on the path do.
_SCRIPTS = '/usr/lib/rabbitmq/bin'

#: How many characters from the end of a log are shown.
_TAIL = 3000

_USER = 'guest'

_CONFIGURATION = """
listeners.tcp.1 = 127.0.0.1:{port}
log.file.level = warning
log.console = false
"""


def find(*names: str) -> list[str]:
    """Return the paths of RabbitMQ's commands.

    :raises FileNotFoundError: one of them is not there.
    """
    found = []
    for name in names:
        path = (shutil.which(name, path=_SCRIPTS) or shutil.which(name)
                or shutil.which(name, path='/usr/sbin:/usr/bin:/sbin:/bin'))
        if path is None:
            raise FileNotFoundError(f'there is no command {name}')
        found.append(path)
    return found


def require() -> list[str]:
    """Return the commands that a private RabbitMQ takes.

    :raises FileNotFoundError: one of them is not there.
    """
    return find('rabbitmq-server', 'rabbitmqctl', 'epmd')


def version() -> str:
    """Return RabbitMQ's version."""
    with tempfile.TemporaryDirectory() as home:
        # The cookie that it makes is to be gone with it.
        done = subprocess.run(
            [*find('rabbitmqctl'), 'version'], text=True, check=True,
            env=os.environ | {'HOME': home}, capture_output=True,
            timeout=LONG)
    return done.stdout.strip()


def free_ports(count: int) -> list[int]:
    """Return ports on the loopback that nobody listens on."""
    opened = [socket.create_server(('127.0.0.1', 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in opened]
    for server in opened:
        server.close()
    return ports


class RabbitMQ(fixtures.Fixture):
    """A broker of its own, on ports, files and a cookie of its own.

    It is not started at first. Nothing of it outlives the fixture.
    """

    def _setUp(self) -> None:
        self._server_command, self._ctl_command, self._epmd_command = require()
        self._home = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.port, self._dist_port, self._epmd_port = free_ports(3)
        self._environment = self._prepare()
        self._server: subprocess.Popen[bytes] | None = None
        self.addCleanup(self.kill)
        # One of our own, because a broker that finds none starts a daemon,
        # which would stay.
        epmd = subprocess.Popen(
            [self._epmd_command, '-port', str(self._epmd_port),
             '-address', '127.0.0.1'], env=self._environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.addCleanup(epmd.wait)
        self.addCleanup(epmd.kill)

    def _prepare(self) -> dict[str, str]:
        cookie = self._home / '.erlang.cookie'
        cookie.write_text(secrets.token_hex(16))
        cookie.chmod(0o400)
        plugins = self._home / 'enabled_plugins'
        plugins.write_text('[].')
        configuration = self._home / 'rabbitmq.conf'
        configuration.write_text(_CONFIGURATION.format(port=self.port))
        self._log = self._home / 'output'
        loopback = '-kernel inet_dist_use_interface {127,0,0,1}'
        return {name: value for name, value in os.environ.items()
                if not name.startswith(('RABBITMQ_', 'ERL_'))} | {
            'HOME': str(self._home),
            'ERL_EPMD_ADDRESS': '127.0.0.1',
            'ERL_EPMD_PORT': str(self._epmd_port),
            'RABBITMQ_CONF_ENV_FILE': str(self._home / 'none'),
            'RABBITMQ_CONFIG_FILE': str(configuration),
            'RABBITMQ_CTL_ERL_ARGS': loopback,
            'RABBITMQ_DIST_PORT': str(self._dist_port),
            'RABBITMQ_ENABLED_PLUGINS_FILE': str(plugins),
            'RABBITMQ_LOG_BASE': str(self._home / 'log'),
            'RABBITMQ_MNESIA_BASE': str(self._home / 'mnesia'),
            'RABBITMQ_NODENAME': f'faults{self.port}@localhost',
            'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1',
            'RABBITMQ_NODE_PORT': str(self.port),
            'RABBITMQ_PID_FILE': str(self._home / 'pid'),
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': loopback,
        }

    @property
    def url(self) -> str:
        """Where oslo.messaging finds it."""
        return f'rabbit://{_USER}:{_USER}@127.0.0.1:{self.port}/'

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with self._log.open('ab') as output:
            # In a group of its own, so that one signal reaches all of it.
            self._server = subprocess.Popen(
                [self._server_command], env=self._environment,
                cwd=self._home, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True)
        self._wait_until(self._answers, 'has not answered')

    def kill(self) -> None:
        """Kill it and its children at once, frozen or not; twice is once."""
        if self._server is None:
            return
        # Its helpers have sessions of their own, and end by themselves as a
        # rule; the port must be free before a new start.
        family = _family(self._server.pid)
        for pid in family:
            _kill(pid)
        self._server.wait(LONG)
        self._wait_until(lambda: not any(map(_is_alive, family)),
                         'has not ended')
        self._server = None

    def freeze(self) -> None:
        """Stop it in its tracks: connections stay open, nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on after :meth:`freeze`."""
        self._signal(signal.SIGCONT)

    def alarm(self) -> None:
        """Raise its memory alarm: it reads from no publisher any more."""
        self.control('set_vm_memory_high_watermark', '0.00001')

    def clear_alarm(self) -> None:
        """Clear the memory alarm."""
        self.control('set_vm_memory_high_watermark', '0.6')

    def reject(self, pattern: str, max_length: int) -> None:
        """Let queues refuse what does not fit.

        :param pattern: a regular expression on the names of the queues.
        :param max_length: how many messages fit.
        """
        self.control('set_policy', '--apply-to', 'queues', 'full', pattern,
                     json.dumps({'max-length': max_length,
                                 'overflow': 'reject-publish'}))

    def accept(self) -> None:
        """Let the queues take everything again."""
        self.control('clear_policy', 'full')

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl, and return what it prints."""
        done = subprocess.run(
            [self._ctl_command, '--quiet', *arguments], text=True,
            env=self._environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONG)
        if done.returncode != 0:
            raise AssertionError(f'rabbitmqctl {" ".join(arguments)} ended '
                                 f'with {done.returncode}: {done.stdout}')
        return done.stdout

    def _signal(self, number: int) -> None:
        try:
            os.killpg(typing.cast(subprocess.Popen[bytes], self._server).pid,
                      number)
        except ProcessLookupError:
            pass

    def _answers(self) -> bool:
        server = typing.cast(subprocess.Popen[bytes], self._server)
        if server.poll() is not None:
            raise AssertionError(
                f'RabbitMQ ended with {server.returncode}: {self._tail()}')
        connection = amqp.Connection(
            f'127.0.0.1:{self.port}', userid=_USER, password=_USER,
            connect_timeout=2, read_timeout=2, write_timeout=2)
        try:
            connection.connect()
            connection.close()
        except (OSError, amqp_exc.AMQPError):
            return False
        return True

    def _wait_until(self, condition: abc.Callable[[], bool],
                    failure: str) -> None:
        never = threading.Event()
        with timeutils.StopWatch(LONG) as timer:
            while not condition():
                if timer.expired():
                    raise AssertionError(f'RabbitMQ {failure} for {LONG} '
                                         f'seconds: {self._tail()}')
                never.wait(0.1)

    def _tail(self) -> str:
        logs = [self._log, *self._home.glob('log/*.log')]
        return '\n'.join(log.read_text(errors='replace')[-_TAIL:]
                         for log in logs if log.exists())


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _stat(pid: int | str) -> list[str]:
    """Return state, parent and group of a process, or nothing."""
    try:
        text = pathlib.Path('/proc', str(pid), 'stat').read_text()
    except OSError:
        return []  # it has ended
    # They follow the name, which may hold anything.
    return text.rpartition(')')[2].split()[:3]


def _is_alive(pid: int) -> bool:
    return _stat(pid)[:1] not in ([], ['Z'])


def _family(leader: int) -> list[int]:
    """Return a process and its descendants, parents first."""
    parents = {int(entry.name): int(stat[1])
               for entry in pathlib.Path('/proc').iterdir()
               if entry.name.isdecimal() and (stat := _stat(entry.name))}
    found = [leader]
    for member in found:  # it grows
        found += [pid for pid, parent in parents.items() if parent == member]
    return found
