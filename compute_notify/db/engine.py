# SPDX-License-Identifier: Apache-2.0
"""The engine facade made from configuration, opened when it is first used.
"""

from __future__ import annotations

from collections import abc
import contextlib
import contextvars
import os
import pathlib
import threading
import typing

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db import options
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from compute_notify import exception

_writing: contextvars.ContextVar[bool] = contextvars.ContextVar(
    'compute_notify writing', default=False)


def default_connection() -> str:
    """Return the URL of the embedded database: SQLite under the user's state.

    The folder follows the XDG base directory specification.
    """
    state = os.environ.get('XDG_STATE_HOME') or '~/.local/state'
    path = pathlib.Path(state, 'compute-notify', 'compute_nodes.sqlite')
    return f'sqlite:///{path.expanduser()}'


@contextlib.contextmanager
def writing() -> abc.Iterator[None]:
    """Make SQLite take its write lock when the transaction begins.

    It would otherwise take it at the first write, and fail at once if another
    process has written since this one read. Other databases lock rows.
    """
    token = _writing.set(True)
    try:
        yield
    finally:
        _writing.reset(token)


class Database:
    """One configured database.

    :param conf: read now; nothing is connected before :attr:`facade` is used.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        options.set_defaults(conf)
        self._options = dict(conf.database)
        self._options['connection'] = (self._options['connection']
                                       or default_connection())
        self._lock = threading.Lock()
        self._facade: typing.Any = None

    @property
    def facade(self) -> typing.Any:
        """The engine facade, connected and known to have the right tables.

        :raises compute_notify.exception.DatabaseUnreachable: no answer.
        :raises compute_notify.exception.DatabaseNotMigrated: its tables are
            not those of this release.
        """
        if self._facade is None:
            with self._lock:
                if self._facade is None:
                    self._facade = self._open()
        return self._facade

    def dispose(self) -> None:
        """Close the connections."""
        if self._facade is not None:
            self._facade.dispose_pool()

    @property
    def url(self) -> sa.URL:
        """Where the database is; its text hides the password."""
        return sa.make_url(self._options['connection'])

    def connect(self) -> typing.Any:
        """Return an engine facade that has not looked at the tables.

        :raises compute_notify.exception.DatabaseUnreachable: no answer.
        :raises compute_notify.exception.InvalidOption: the URL cannot be
            parsed, or names a database or driver that is not installed.
        """
        try:
            url = self.url
            if url.get_backend_name() == 'sqlite' and url.database:
                pathlib.Path(url.database).parent.mkdir(
                    parents=True, exist_ok=True)
            facade = enginefacade.transaction_context()
            facade.configure(**self._options)
            facade.append_on_engine_create(_prepare)
            facade.writer.get_engine()
        except (sa_exc.ArgumentError, sa_exc.NoSuchModuleError,
                ImportError) as exc:
            raise exception.InvalidOption(
                group='database', option='connection',
                reason='cannot be used: '
                       f'{_without_url(exc, self._options)}') from None
        except (db_exc.DBError, OSError) as exc:
            raise self._unreachable(exc) from exc
        return facade

    def _open(self) -> typing.Any:
        # Alembic is needed once per process, and by no import of this room.
        from compute_notify.db import migration
        facade = self.connect()
        engine = facade.writer.get_engine()
        wanted = migration.head()
        try:
            found = migration.version(engine)
            if found != wanted and self._embedded:
                found = migration.sync(engine)
        except db_exc.DBError as exc:
            raise self._unreachable(exc) from exc
        if found != wanted:
            raise exception.DatabaseNotMigrated(
                url=self._shown, found=found or 'none', wanted=wanted,
                advice='Run "compute-notify db sync".')
        return facade

    @property
    def _embedded(self) -> bool:
        return self.url.get_backend_name() == 'sqlite'

    @property
    def _shown(self) -> str:
        return self.url.render_as_string(hide_password=True)

    def _unreachable(self, exc: Exception) -> exception.DatabaseUnreachable:
        cause = getattr(exc, 'inner_exception', None) or exc
        reason = str(getattr(cause, 'orig', None) or cause).splitlines()[0]
        return exception.DatabaseUnreachable(url=self._shown, reason=reason)


def _without_url(exc: Exception, options: dict[str, typing.Any]) -> str:
    """Return an error's text with the URL, which may hold a password, out."""
    return str(exc).replace(options['connection'], '<url>')


def _prepare(engine: sa.Engine) -> None:
    if engine.dialect.name != 'sqlite':
        return

    @sa.event.listens_for(engine, 'before_cursor_execute', retval=True)
    def begin_immediate(
            connection: sa.Connection, cursor: typing.Any, statement: str,
            parameters: typing.Any, context: typing.Any,
            executemany: bool) -> tuple[str, typing.Any]:
        # oslo.db issues the BEGIN of every SQLite transaction itself.
        if statement == 'BEGIN' and _writing.get():
            statement = 'BEGIN IMMEDIATE'
        return statement, parameters
