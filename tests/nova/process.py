# SPDX-License-Identifier: Apache-2.0
"""Tests that have a process to themselves, and a Nova inside it.

What is tested depends on what was imported first, so nothing here, nor in a
test module that uses it, imports Nova before a test does.
"""

from collections import abc
import functools
import logging
import os
import pathlib
import subprocess
import sys
import typing

import fixtures
from testtools import content

_ROOT = pathlib.Path(__file__).parents[2]

#: Set in the process that runs one test.
_CHILD = 'COMPUTE_NOTIFY_TEST_CHILD'

#: The package of these tests imports Nova, which is too early here.
_BEGIN = """
import sys, types
import tests
tests.nova = sys.modules['tests.nova'] = types.ModuleType('tests.nova')
tests.nova.__path__ = ['tests/nova']
from testtools import run
run.main(['testtools.run', sys.argv[1]], sys.stdout)
"""

_CONFIGURATION = """
[DEFAULT]
host = cmp1
state_path = {directory}
transport_url = fake://
[database]
connection = sqlite:///{directory}/nova.sqlite
[api_database]
connection = sqlite:///{directory}/api.sqlite
[notifications]
notification_format = {notification_format}
[oslo_messaging_notifications]
{drivers}
{more}
"""


def alone(method: abc.Callable[..., None] | None = None, *,
          eventlet: bool = False) -> typing.Any:
    """Decorate a test method so that it runs in a fresh process.

    :param eventlet: whether Nova is to patch that process with eventlet, and
        not to run with native threads.
    """
    if method is None:
        return functools.partial(alone, eventlet=eventlet)

    @functools.wraps(method)
    def wrapper(test: typing.Any) -> None:
        if os.environ.get(_CHILD) == test.id():
            return method(test)
        done = subprocess.run(
            [sys.executable, '-c', _BEGIN, test.id()], cwd=_ROOT, text=True,
            env=_environment(test.id(), eventlet=eventlet), timeout=120,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0 or '\nRan 1 test in ' not in done.stdout:
            test.addDetail('process', content.text_content(done.stdout))
            test.fail(f'the test failed in process, with {done.returncode}')
    return wrapper


def _environment(test_id: str, *, eventlet: bool) -> dict[str, str]:
    # An OS_ variable of the caller would be an option of Nova's.
    ours = {name: value for name, value in os.environ.items()
            if not name.startswith('OS_')}
    return ours | {
        _CHILD: test_id,
        'OS_NOVA_DISABLE_EVENTLET_PATCHING': '' if eventlet else 'true',
        'PYTHONWARNINGS': 'ignore',
    }


@functools.cache
def choose_concurrency() -> None:
    """Let Nova patch this process with eventlet, or keep it from it."""
    from nova import monkey_patch
    # Nova 31 does it when it is imported.
    if hasattr(monkey_patch, 'patch'):
        monkey_patch.patch()


class Nova(fixtures.Fixture):
    """A Nova in this process, with a database and a notifier.

    It comes to life as its daemons do: the configuration file is read,
    nova.rpc.init() makes the notifiers, then the objects are registered.

    :param drivers: the notification drivers that nova.conf names.
    :param notification_format: as in nova.conf.
    :param more: lines to append to nova.conf.
    :param init_rpc: whether to make the notifiers.
    """

    def __init__(self, *, drivers: abc.Iterable[str] = ('test',),
                 notification_format: str = 'versioned', more: str = '',
                 init_rpc: bool = True) -> None:
        super().__init__()
        self._options = {
            'drivers': '\n'.join(f'driver = {name}' for name in drivers),
            'notification_format': notification_format, 'more': more}
        self._init_rpc = init_rpc
        self._read: dict[str, int] = {}

    def _setUp(self) -> None:
        choose_concurrency()
        from nova import config
        from nova.db.main import api
        from nova.db.main import models
        self.configuration = self._configuration()
        self._log = self.useFixture(fixtures.FakeLogger(
            level=logging.INFO, format='%(levelname)s %(message)s'))
        config.parse_args(
            ['nova-conductor', '--config-file', self.configuration],
            init_rpc=self._init_rpc)
        from nova import objects
        objects.register_all()
        models.BASE.metadata.create_all(api.get_engine())

    def logged(self, level: str) -> list[str]:
        """Return the messages of a level since it was last asked for."""
        lines = [line.removeprefix(f'{level} ')
                 for line in self._log.output.splitlines()
                 if line.startswith(f'{level} ')]
        new = lines[self._read.get(level, 0):]
        self._read[level] = len(lines)
        return new

    def _configuration(self) -> str:
        directory = self.useFixture(fixtures.TempDir()).path
        path = pathlib.Path(directory, 'nova.conf')
        path.write_text(_CONFIGURATION.format(
            directory=directory, **self._options))
        return str(path)


def node(**values: typing.Any) -> typing.Any:
    """Return a compute node of Nova's, all its own, that is not stored yet."""
    from nova import context
    from nova import objects
    from oslo_utils import uuidutils
    uuid = uuidutils.generate_uuid()
    return objects.ComputeNode(context.get_admin_context(), **{
        'uuid': uuid, 'host': 'cmp1',
        'hypervisor_hostname': uuid, 'hypervisor_type': 'QEMU',
        'hypervisor_version': 8002002, 'cpu_info': '', 'vcpus': 8,
        'memory_mb': 16384, 'local_gb': 100, 'vcpus_used': 2,
        'memory_mb_used': 4096, 'local_gb_used': 10} | values)


def service(**values: typing.Any) -> typing.Any:
    """Return a service of Nova's that is not stored yet."""
    from nova import context
    from nova import objects
    return objects.Service(context.get_admin_context(), **{
        'host': 'cmp1', 'binary': 'nova-compute', 'topic': 'compute',
        'report_count': 0, 'disabled': False} | values)


def sent() -> list[str]:
    """Return the events that the driver ``test`` was given, and forget it."""
    from oslo_messaging.notify import _impl_test
    events = [message['event_type']
              for _, message, _, _ in _impl_test.NOTIFICATIONS]
    _impl_test.reset()
    return events


#: What :func:`announced` returns while the hook is on.
ALL = ['compute_node.create', 'compute_node.update', 'compute_node.delete',
       'compute_node.create', 'service.create', 'service.delete',
       'compute_node.delete']

#: While it is off: what Nova itself sends.
NONE = [event for event in ALL if event.startswith('service.')]


def announced() -> list[str]:
    """Call each wrapped method once, and return the events that this sent."""
    sent()
    doomed = node()
    doomed.create()
    doomed.vcpus += 1
    doomed.save()
    doomed.destroy()
    node().create()
    served = service()
    served.create()
    served.destroy()
    return sent()
