# SPDX-License-Identifier: Apache-2.0
"""Bring the tables to the version this release needs, and tell which it is.
"""

from __future__ import annotations

import pathlib

from alembic import command
from alembic import config
from alembic import script
import sqlalchemy as sa

from compute_notify.db import locking

_VERSION_TABLE = sa.table('compute_notify_version', sa.column('version_num'))


def head() -> str:
    """Return the version this release needs."""
    revision = script.ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None  # the package ships its versions
    return revision


def version(engine: sa.Engine) -> str | None:
    """Return the version of the tables, None where there are none yet.

    :raises oslo_db.exception.DBConnectionError: the server does not answer.
    """
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table(_VERSION_TABLE.name):
            return None
        return connection.execute(
            sa.select(_VERSION_TABLE.c.version_num)).scalar()


def sync(engine: sa.Engine) -> str:
    """Bring the tables to the newest version and return it.

    Safe to run twice, and by two processes at once on SQLite; on a server,
    run it once before the services start.

    :raises oslo_db.exception.DBConnectionError: the server does not answer.
    :raises alembic.util.CommandError: the tables are newer than this release.
    """
    alembic_config = _config()
    writing = engine.execution_options(**locking.WRITES)
    with writing.begin() as connection:
        alembic_config.attributes['connection'] = connection
        command.upgrade(alembic_config, 'head')
    return head()


def _config() -> config.Config:
    alembic_config = config.Config()
    alembic_config.set_main_option(
        'script_location',
        str(pathlib.Path(__file__).parent / 'migrations').replace('%', '%%'))
    return alembic_config
