# SPDX-License-Identifier: Apache-2.0
"""Stored rows before and after, one transaction at a time, for any model.

The versioned object cannot tell what changed: its body runs on a copy rebuilt
from RPC, and two processes may hold copies of one node. SQLAlchemy can: when
a mapped row is flushed, the attribute history holds the values that were
loaded and the ones being written, at no extra query.
"""

from __future__ import annotations

from collections import abc
import contextlib
import contextvars
import dataclasses
import typing

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy import orm
from sqlalchemy.orm import attributes
from sqlalchemy.orm import base as orm_base

from compute_notify import change
from compute_notify import hook


class _Recording:
    """One hooked call: where its committed rows go."""

    def __init__(self, sink: hook.Sink, *, strict: bool) -> None:
        self.strict = strict
        self._sink = sink
        self._waiting: list[tuple[change.Row | None, change.Row]] | None = []

    def take(self, before: change.Row | None, after: change.Row) -> None:
        """Hold what was committed until the call is over, then pass it on."""
        if self._waiting is None:
            # An outer transaction has ended after the call that wrote.
            self._sink(before, after)
        else:
            self._waiting.append((before, after))

    def close(self) -> None:
        """Pass on what has been committed so far."""
        waiting, self._waiting = self._waiting or [], None
        for before, after in waiting:
            self._sink(before, after)


@dataclasses.dataclass(frozen=True, slots=True)
class _Write:
    """One flushed row and the transaction, or savepoint, it belongs to."""

    key: tuple[typing.Any, ...]
    before: change.Row | None
    after: change.Row
    recording: _Recording
    transaction: orm.SessionTransaction

    def within(self, transaction: orm.SessionTransaction) -> bool:
        """Whether rolling that transaction back undoes this write."""
        mine: orm.SessionTransaction | None = self.transaction
        while mine is not None:
            if mine is transaction:
                return True
            mine = mine.parent
        return False


class _Journal:
    """What one session has written since its transaction began."""

    def __init__(self) -> None:
        self.committed = False
        self._writes: list[_Write] = []

    def add(self, write: _Write) -> None:
        """Append one write."""
        self._writes.append(write)

    def undo(self, transaction: orm.SessionTransaction) -> None:
        """Forget what was written inside a transaction rolled back."""
        self._writes = [write for write in self._writes
                        if not write.within(transaction)]

    def deliver(self) -> None:
        """Pass each row's net change to the call that wrote it last."""
        first: dict[tuple[typing.Any, ...], _Write] = {}
        last: dict[tuple[typing.Any, ...], _Write] = {}
        for write in self._writes:
            first.setdefault(write.key, write)
            last[write.key] = write
        for key, write in last.items():
            write.recording.take(first[key].before, write.after)


class Recorder:
    """Watch the rows of one mapped class.

    Only what is written during :meth:`recording` is recorded. Rows written
    by a statement instead of through the session are not seen.

    :param model: the mapped class. It needs a column ``deleted``.
    :param columns: the names of the columns to record, ``deleted`` included.
    """

    def __init__(self, model: type, columns: abc.Iterable[str]) -> None:
        self._model = model
        self._columns = tuple(columns)
        # A context variable and not a thread-local: it belongs to the
        # greenthread under eventlet too, whenever this module was imported.
        self._current: contextvars.ContextVar[_Recording | None] = (
            contextvars.ContextVar(f'recording {model.__name__}',
                                   default=None))
        self._events = (
            (model, 'after_insert', self._inserted),
            (model, 'before_update', self._updated),
            (orm.Session, 'after_commit', self._committed),
            (orm.Session, 'after_soft_rollback', self._rolled_back),
            (orm.Session, 'after_transaction_end', self._ended),
        )

    def listen(self) -> None:
        """Attach to SQLAlchemy's events; twice is once."""
        for target, name, function in self._events:
            if not event.contains(target, name, function):
                event.listen(target, name, function)

    def ignore(self) -> None:
        """Detach from SQLAlchemy's events; twice is once."""
        for target, name, function in self._events:
            if event.contains(target, name, function):
                event.remove(target, name, function)

    @contextlib.contextmanager
    def recording(self, sink: hook.Sink, *,
                  strict: bool = False) -> abc.Iterator[None]:
        """Give the sink the net change of each row that the block writes.

        It is called once a row and transaction, after the outermost commit:
        when the block ends, or later if a transaction around it is still
        open then. A rollback, to a savepoint too, takes writes back.

        :param sink: called with the row before (None for a new one) and the
            row after.
        :param strict: raise what goes wrong while recording.
        """
        recording = _Recording(sink, strict=strict)
        token = self._current.set(recording)
        try:
            yield
        finally:
            self._current.reset(token)
            recording.close()

    def _inserted(self, mapper: orm.Mapper[typing.Any],
                  connection: sa.Connection, target: typing.Any) -> None:
        recording = self._current.get()
        if recording is None:
            return
        with hook.contained(strict=recording.strict) as attempt:
            # A column that was given no value is stored as NULL, and reading
            # it from the instance would cost a query.
            values = attributes.instance_dict(target)
            after = {name: values.get(name) for name in self._columns}
            attempt.uuid = after.get('uuid')
            self._write(recording, mapper, target, None, after)

    def _updated(self, mapper: orm.Mapper[typing.Any],
                 connection: sa.Connection, target: typing.Any) -> None:
        recording = self._current.get()
        if recording is None:
            return
        with hook.contained(strict=recording.strict) as attempt:
            after = {name: getattr(target, name) for name in self._columns}
            attempt.uuid = after.get('uuid')
            old = self._old_values(mapper, connection, target)
            self._write(recording, mapper, target, {**after, **old}, after)

    def _old_values(self, mapper: orm.Mapper[typing.Any],
                    connection: sa.Connection,
                    target: typing.Any) -> dict[str, typing.Any]:
        """Return the stored values of the columns that have been assigned."""
        assigned = attributes.instance_state(target).committed_state
        old = {name: assigned[name] for name in self._columns
               if name in assigned}
        unread = [name for name, value in old.items()
                  if value is orm_base.NO_VALUE]
        if unread:
            # Assigned before it was ever loaded: an expired instance.
            table = mapper.local_table
            query = sa.select(*(table.c[name] for name in unread)).where(*(
                column == value for column, value in zip(
                    mapper.primary_key,
                    mapper.primary_key_from_instance(target), strict=True)))
            old.update(connection.execute(query).one()._mapping)
        return old

    def _write(self, recording: _Recording, mapper: orm.Mapper[typing.Any],
               target: typing.Any, before: change.Row | None,
               after: change.Row) -> None:
        session = orm.object_session(target)
        assert session is not None  # a flush is under way
        transaction = (session.get_nested_transaction()
                       or session.get_transaction())
        assert transaction is not None
        journal = session.info.setdefault(self, _Journal())
        journal.add(_Write(
            key=tuple(mapper.primary_key_from_instance(target)),
            before=before, after=after, recording=recording,
            transaction=transaction))

    def _committed(self, session: orm.Session) -> None:
        journal = session.info.get(self)
        # Releasing a savepoint is a commit to SQLAlchemy, but not to us.
        if journal is not None and not session.in_nested_transaction():
            journal.committed = True

    def _rolled_back(self, session: orm.Session,
                     previous: orm.SessionTransaction) -> None:
        journal = session.info.get(self)
        if journal is not None:
            journal.undo(previous)

    def _ended(self, session: orm.Session,
               transaction: orm.SessionTransaction) -> None:
        if transaction.parent is not None:
            return
        journal = session.info.pop(self, None)
        if journal is not None and journal.committed:
            journal.deliver()
