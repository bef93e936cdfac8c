# SPDX-License-Identifier: Apache-2.0
"""SQLite's write lock, taken when a transaction begins and not later."""

from __future__ import annotations

import typing

import sqlalchemy as sa

#: The execution option of a connection whose transaction is going to write.
#:
#: SQLite takes its write lock at the first write otherwise, and then fails at
#: once if another process has written since this one read. It has no rows to
#: lock; other databases do, and ignore this.
WRITES = {'compute_notify_writes': True}


def prepare(engine: sa.Engine) -> None:
    """Make an engine heed :data:`WRITES`."""
    if engine.dialect.name == 'sqlite':
        sa.event.listen(engine, 'before_cursor_execute', _begin_immediate,
                        retval=True)


def _begin_immediate(
        connection: sa.Connection, cursor: typing.Any, statement: str,
        parameters: typing.Any, context: typing.Any,
        executemany: bool) -> tuple[str, typing.Any]:
    # oslo.db issues the BEGIN of every SQLite transaction itself.
    if (statement == 'BEGIN' and WRITES.keys()
            <= connection.get_execution_options().keys()):
        statement = 'BEGIN IMMEDIATE'
    return statement, parameters
