# SPDX-License-Identifier: Apache-2.0
"""A Nova of one cell, on databases and a virtual host of its own."""

from collections import abc
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import typing
import uuid

import fixtures
import kombu
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from tests import base
from tests.functional import broker
from tests.functional import servers
from tests.nova.e2e import child
from tests.nova.e2e import listener

_PLACEMENT_CONF = """
[api]
auth_strategy = noauth2
[placement_database]
connection = {placement}
sync_on_startup = true
"""

# The hook is there because of the second driver, and for no other reason.
# The log level lets Nova's daemons tell what they send.
_NOVA_CONF = """
[DEFAULT]
transport_url = {transport_url}
host = controller
my_ip = 192.0.2.7
state_path = {path}
compute_driver = fake.FakeDriver
update_resources_interval = 1
periodic_fuzzy_delay = 0
debug = true
default_log_levels = amqp=WARN,sqlalchemy=WARN,urllib3=WARN,stevedore=INFO
[api_database]
connection = {api}
[database]
connection = {cell1}
[conductor]
workers = 2
[oslo_concurrency]
lock_path = {path}
[placement]
auth_type = admin_token
endpoint = {endpoint}
token = admin
[oslo_messaging_notifications]
driver = {driver}
driver = compute_notify
[notifications]
notification_format = versioned
"""


def require() -> None:
    """Skip the test, or fail it under CI, unless all it needs is there.

    A fixture is too late for that: what it raises fails the test.
    """
    if shutil.which(_script('nova-conductor')) is None:
        base.missing('Nova', 'nova-conductor is not beside this Python')
    try:
        _admin().connect().close()
    except (ImportError, sa_exc.DBAPIError) as exc:
        base.missing('mariadb', exc)
    broker.connection().release()
    try:
        _rabbitmqctl('list_vhosts')
    except (OSError, subprocess.SubprocessError) as exc:
        base.missing('rabbitmqctl, or the right to use it', exc)


def _script(name: str) -> str:
    """Return the path of a command installed beside this Python."""
    return str(pathlib.Path(sysconfig.get_path('scripts'), name))


def _admin() -> sa.Engine:
    return sa.create_engine(servers.url('mariadb'), poolclass=sa.NullPool,
                            isolation_level='AUTOCOMMIT')


def _rabbitmqctl(*arguments: str) -> None:
    subprocess.run(['rabbitmqctl', *arguments], check=True,
                   capture_output=True, timeout=child.LONG)


class Databases(fixtures.Fixture):
    """Empty databases on MariaDB; ``urls`` has their URLs by short name."""

    def _setUp(self) -> None:
        admin = _admin()
        unique = uuid.uuid4().hex
        self.urls: dict[str, str] = {}
        for name in ('api', 'cell0', 'cell1', 'placement'):
            database = f'compute_notify_{name}_{unique}'
            self._execute(admin, f'CREATE DATABASE {database}')
            self.addCleanup(self._execute, admin, f'DROP DATABASE {database}')
            self.urls[name] = admin.url.set(
                database=database).render_as_string(hide_password=False)

    def _execute(self, admin: sa.Engine, statement: str) -> None:
        with admin.connect() as connection:
            connection.execute(sa.text(statement))


class VirtualHost(fixtures.Fixture):
    """A virtual host of RabbitMQ, because Nova's queues have fixed names.

    Only rabbitmqctl can make one on a plain server; that usually takes root.
    """

    def _setUp(self) -> None:
        name = f'compute_notify_{uuid.uuid4().hex}'
        url = sa.make_url(servers.url('rabbitmq')).set(database=name)
        _rabbitmqctl('add_vhost', name)
        self.addCleanup(_rabbitmqctl, 'delete_vhost', name)
        _rabbitmqctl('set_permissions', '-p', name, url.username or 'guest',
                     '.*', '.*', '.*')
        self.url = url.render_as_string(hide_password=False)
        # If rabbitmqctl has talked to another server than the one of the
        # URL, oslo.messaging would try for ever to reach it.
        with kombu.Connection(self.url.replace('rabbit:', 'amqp:')) as there:
            there.connect()


class Cloud(fixtures.Fixture):
    """Placement, a listener and Nova's databases; its daemons are started.

    :param eventlet: whether Nova runs with eventlet, and not with threads.
    :param driver: the notification driver that sends.
    """

    #: Another one than the controller's, which sends.
    host = 'cmp1'

    def __init__(self, *, eventlet: bool, driver: str) -> None:
        super().__init__()
        self._driver = driver
        self._eventlet = eventlet

    def _setUp(self) -> None:
        self.path = pathlib.Path(tempfile.mkdtemp())
        self._urls = self.useFixture(Databases()).urls
        self._engine = sa.create_engine(self._urls['cell1'],
                                        poolclass=sa.NullPool)
        transport_url = self.useFixture(VirtualHost()).url
        self.listener = self.useFixture(listener.Listener(transport_url))
        self.path.joinpath('nova.conf').write_text(_NOVA_CONF.format(
            path=self.path, driver=self._driver,
            endpoint=self._placement(),
            transport_url=transport_url, **self._urls))
        self.path.joinpath('compute.conf').write_text(
            f'[DEFAULT]\nhost = {self.host}\n')
        self._manage('api_db', 'sync')
        self._manage('cell_v2', 'map_cell0', '--database_connection',
                     self._urls['cell0'])
        self._manage('cell_v2', 'create_cell', '--name', 'cell1')
        self._manage('db', 'sync')

    def _placement(self) -> str:
        self.path.joinpath('placement.conf').write_text(
            _PLACEMENT_CONF.format(**self._urls))
        server = self._start(sys.executable, '-m', 'tests.nova.e2e.placement')
        endpoint, = server.wait_for(r'Serving (http:\S+)')
        return endpoint

    def _manage(self, *arguments: str) -> None:
        self._start(_script('nova-manage'), *self._configured('nova.conf'),
                    *arguments).finish()

    def _configured(self, *names: str) -> abc.Iterator[str]:
        for name in names:
            yield f'--config-file={self.path / name}'

    def _start(self, *command: str) -> child.Child:
        return self.useFixture(child.Child(*command, environment={
            'OS_NOVA_DISABLE_EVENTLET_PATCHING': str(not self._eventlet),
            'OS_PLACEMENT_CONFIG_DIR': str(self.path),
            'TMPDIR': str(self.path)}))

    def conductor(self) -> child.Child:
        """Start nova-conductor."""
        return self._start(_script('nova-conductor'),
                           *self._configured('nova.conf'))

    def compute(self) -> child.Child:
        """Start nova-compute for the first time."""
        return self._start(_script('nova-compute'),
                           *self._configured('nova.conf', 'compute.conf'))

    def compute_again(self) -> child.Child:
        """Start nova-compute with the node that is there already."""
        return self._start(
            sys.executable, '-m', 'tests.nova.e2e.same_node', self.host,
            self.row()['uuid'],
            *self._configured('nova.conf', 'compute.conf'))

    def remove_service(self) -> None:
        """Remove the host's nova-compute service, on the controller."""
        self._start(sys.executable, '-m', 'tests.nova.e2e.remove_service',
                    self.host, *self._configured('nova.conf')).finish()

    def row(self) -> dict[str, typing.Any]:
        """Return the one stored compute node, deleted or not."""
        with self._engine.connect() as connection:
            return dict(connection.execute(
                sa.text('SELECT * FROM compute_nodes')).one()._mapping)
