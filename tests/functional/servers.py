# SPDX-License-Identifier: Apache-2.0
"""The servers that functional tests run against, and a database on each.

Each can be moved by an environment variable with its URL:
COMPUTE_NOTIFY_TEST_MARIADB, COMPUTE_NOTIFY_TEST_POSTGRESQL,
COMPUTE_NOTIFY_TEST_RABBITMQ.
"""

import atexit
import functools
import os

import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from tests import base

_URLS = {
    'mariadb': 'mysql+pymysql://root@127.0.0.1:3306/',
    'postgresql': 'postgresql+psycopg2://postgres@127.0.0.1:5432/postgres',
    'rabbitmq': 'rabbit://guest:guest@127.0.0.1:5672/',
}

#: For testscenarios: the same test on every database.
SCENARIOS = [('sqlite', {'server': None}),
             ('mariadb', {'server': 'mariadb'}),
             ('postgresql', {'server': 'postgresql'})]


def url(server: str) -> str:
    """Return where a server is expected."""
    return os.environ.get(f'COMPUTE_NOTIFY_TEST_{server.upper()}',
                          _URLS[server])


def database(server: str | None) -> str | None:
    """Return the URL of an empty database of this process on a server."""
    if server is None:
        return None
    try:
        return _database(server, os.getpid())
    except (ImportError, sa_exc.DBAPIError) as exc:
        base.missing(server, exc)


@functools.cache
def _database(server: str, pid: int) -> str:
    name = f'compute_notify_test_{pid}'
    admin = sa.create_engine(url(server), isolation_level='AUTOCOMMIT',
                             poolclass=sa.NullPool)
    with admin.connect() as connection:
        connection.execute(sa.text(f'DROP DATABASE IF EXISTS {name}'))
        connection.execute(sa.text(f'CREATE DATABASE {name}'))
    atexit.register(_drop, admin, name, pid)
    made = sa.make_url(url(server)).set(database=name)
    return made.render_as_string(hide_password=False)


def _drop(admin: sa.Engine, name: str, pid: int) -> None:
    if os.getpid() != pid:
        return  # a forked child must not drop its parent's
    # PostgreSQL does not drop a database that somebody is connected to.
    force = ' WITH (FORCE)' if admin.dialect.name == 'postgresql' else ''
    with admin.connect() as connection:
        connection.execute(sa.text(f'DROP DATABASE IF EXISTS {name}{force}'))


class DatabaseTestCase(base.NodeTestCase):
    """A test case that runs once on each database; see SCENARIOS."""

    server: str | None = None

    def setUp(self) -> None:
        self.connection = database(self.server)
        super().setUp()
