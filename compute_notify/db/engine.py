# SPDX-License-Identifier: Apache-2.0
"""The engine facade made from configuration, opened when it is first used.
"""

from __future__ import annotations

from collections import abc
import contextlib
import os
import pathlib
import threading
import typing

from alembic import util as alembic_util
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db import options
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from compute_notify.db import locking
from compute_notify.db import migration
from compute_notify import exception


def default_path() -> pathlib.Path:
    """Return where the embedded database is: under the user's state.

    The folder follows the XDG base directory specification.
    """
    state = os.environ.get('XDG_STATE_HOME') or '~/.local/state'
    path = pathlib.Path(state, 'compute-notify', 'compute_nodes.sqlite')
    return path.expanduser()


class Database:
    """One configured database.

    :param conf: read now; nothing is connected before :attr:`facade` is used.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        options.set_defaults(conf)
        self._options = dict(conf.database)
        #: The file of the database that a service without one has.
        self._embedded: pathlib.Path | None = None
        if not self._options['connection']:
            self._embedded = default_path()
            self._options['connection'] = f'sqlite:///{self._embedded}'
        self._lock = threading.Lock()
        self._facade: typing.Any = None

    @property
    def facade(self) -> typing.Any:
        """The engine facade, connected and known to have the right tables.

        :raises compute_notify.exception.DatabaseUnreachable: no answer.
        :raises compute_notify.exception.DatabaseNotMigrated: its tables are
            not those of this release.
        :raises compute_notify.exception.InvalidOption: the URL cannot be
            parsed, or names a database or driver that is not installed.
        """
        if self._facade is None:
            with self._lock:
                if self._facade is None:
                    self._facade = self._open()
        return self._facade

    def version(self) -> str | None:
        """Return the version of the tables, None where there are none yet.

        :raises: as :attr:`facade`, but for the tables.
        """
        with self._errors(), self._connected() as engine:
            return migration.version(engine)

    def sync(self) -> str:
        """Bring the tables to the newest version and return it.

        :raises compute_notify.exception.DatabaseNotMigrated: a newer release
            has been at them.
        :raises: otherwise as :attr:`facade`.
        """
        with self._errors(), self._connected() as engine:
            return migration.sync(engine)

    def dispose(self) -> None:
        """Close the connections."""
        if self._facade is not None:
            self._facade.dispose_pool()

    def _open(self) -> typing.Any:
        facade = self._connect()
        engine = facade.writer.get_engine()
        wanted = migration.head()
        with self._errors():
            found = migration.version(engine)
            if found != wanted and engine.dialect.name == 'sqlite':
                # The embedded database needs no step of its own.
                found = migration.sync(engine)
        if found != wanted:
            raise self._not_migrated(found)
        return facade

    def _connect(self) -> typing.Any:
        """Return an engine facade that has not looked at the tables."""
        with self._errors():
            sa.make_url(self._options['connection'])  # or say what is wrong
            if self._embedded:
                self._embedded.parent.mkdir(parents=True, exist_ok=True)
            facade = enginefacade.transaction_context()
            facade.configure(**self._options)
            facade.append_on_engine_create(locking.prepare)
            facade.writer.get_engine()
            return facade

    @contextlib.contextmanager
    def _connected(self) -> abc.Iterator[sa.Engine]:
        facade = self._connect()
        try:
            yield facade.writer.get_engine()
        finally:
            facade.dispose_pool()

    @contextlib.contextmanager
    def _errors(self) -> abc.Iterator[None]:
        """Say in our own words, and without the password, what is wrong."""
        try:
            yield
        except (sa_exc.ArgumentError, sa_exc.NoSuchModuleError,
                ImportError) as exc:
            # SQLAlchemy quotes the whole URL when it cannot parse it.
            reason = str(exc).replace(self._options['connection'], 'the URL')
            if isinstance(exc, ImportError):
                reason += ('; the extras mysql and postgresql of '
                           'compute-notify bring what those databases need')
            raise exception.InvalidOption(
                group='database', option='connection', reason=reason) from None
        except alembic_util.CommandError as exc:
            raise self._not_migrated('a newer one') from exc
        except (db_exc.DBError, sa_exc.DBAPIError, OSError) as exc:
            # oslo.db leaves some errors of the first connection as they are.
            cause: object = getattr(exc, 'inner_exception', None) or exc
            cause = getattr(cause, 'orig', None) or cause
            raise exception.DatabaseUnreachable(
                url=self._shown, reason=str(cause).splitlines()[0]) from exc

    def _not_migrated(
            self, found: str | None) -> exception.DatabaseNotMigrated:
        return exception.DatabaseNotMigrated(
            url=self._shown, found=found or 'none', wanted=migration.head())

    @property
    def _shown(self) -> str:
        return sa.make_url(self._options['connection']).render_as_string(
            hide_password=True)
