# SPDX-License-Identifier: Apache-2.0
"""SQLite's write lock, taken when a transaction begins and not later."""

from __future__ import annotations

from collections import abc
import contextlib
import contextvars
import typing

import sqlalchemy as sa

_writing: contextvars.ContextVar[bool] = contextvars.ContextVar(
    'compute_notify writing', default=False)


@contextlib.contextmanager
def writing() -> abc.Iterator[None]:
    """Mark the transactions that begin inside as ones that will write.

    SQLite takes its write lock at the first write otherwise, and then fails
    at once if another process has written since this one read. It has no
    rows to lock; other databases do, and ignore this.
    """
    token = _writing.set(True)
    try:
        yield
    finally:
        _writing.reset(token)


def prepare(engine: sa.Engine) -> None:
    """Make an engine heed :func:`writing`."""
    if engine.dialect.name == 'sqlite':
        sa.event.listen(engine, 'before_cursor_execute', _begin_immediate,
                        retval=True)


def _begin_immediate(
        connection: sa.Connection, cursor: typing.Any, statement: str,
        parameters: typing.Any, context: typing.Any,
        executemany: bool) -> tuple[str, typing.Any]:
    # oslo.db issues the BEGIN of every SQLite transaction itself.
    if statement == 'BEGIN' and _writing.get():
        statement = 'BEGIN IMMEDIATE'
    return statement, parameters
