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
import typing

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy import orm
from sqlalchemy.orm import attributes
from sqlalchemy.orm import base as orm_base

from compute_notify import change
from compute_notify import hook


def _each(call: abc.Callable[..., object],
          arguments: abc.Iterable[tuple[typing.Any, ...]]) -> None:
    """Call once for each; one that raises does not stop the others."""
    arguments = list(arguments)
    if len(arguments) == 1:  # nearly always
        call(*arguments[0])
        return
    with contextlib.ExitStack() as calls:
        for each in reversed(arguments):
            calls.callback(call, *each)


class Recording:
    """One hooked call: where its committed rows go."""

    def __init__(self, sink: hook.Sink, *, tracked: abc.Set[str] | None,
                 strict: bool) -> None:
        self.tracked = tracked
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
        _each(self._sink, waiting)


class _Write(typing.NamedTuple):
    """One flushed row and the transaction, or savepoint, it belongs to."""

    key: tuple[typing.Any, ...]
    before: change.Row | None
    after: change.Row
    recording: Recording
    transaction: orm.SessionTransaction

    def within(self, transaction: orm.SessionTransaction) -> bool:
        """Whether rolling that transaction back undoes this write."""
        mine: orm.SessionTransaction | None = self.transaction
        while mine is not None:
            if mine is transaction:
                return True
            mine = mine.parent
        return False


class Journal:
    """What one session has written since its transaction began."""

    def __init__(self) -> None:
        #: The transactions that were committed, savepoints among them.
        self.committed: set[orm.SessionTransaction] = set()
        #: Rows about to be deleted, by the statement that does it.
        self.doomed: dict[int, list[change.Row]] = {}
        #: Whose call changed an instance that is not flushed yet.
        self.owners: dict[orm.InstanceState[typing.Any], Recording] = {}
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
        _each(lambda key, write: write.recording.take(
            first[key].before, write.after), last.items())

    def recording_of(self, key: tuple[typing.Any, ...]) -> Recording | None:
        """Return the call that has written this row in this transaction."""
        return next((write.recording for write in reversed(self._writes)
                     if write.key == key), None)


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
        self._current: contextvars.ContextVar[Recording | None] = (
            contextvars.ContextVar(f'recording {model.__name__}',
                                   default=None))
        self._events: tuple[tuple[typing.Any, str, typing.Any], ...] = (
            (model, 'after_insert', self._inserted),
            (model, 'before_update', self._updated),
            (orm.Session, 'after_commit', self._committed),
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
    def recording(self, sink: hook.Sink, *, context: typing.Any = None,
                  tracked: abc.Set[str] | None = None,
                  strict: bool = False) -> abc.Iterator[None]:
        """Give the sink the net change of each row that the block writes.

        It is called once a row and transaction, after the outermost commit:
        when the block ends, or later if a transaction around it is still
        open then. A rollback, to a savepoint too, takes writes back.

        :param sink: called with the row before (None for a new one) and the
            row after.
        :param context: the request context that the block works with.
        :param tracked: the columns that matter besides ``deleted``; a row may
            be left out if none of them differs. All matter if left out.
        :param strict: raise what goes wrong while recording.
        """
        recording = Recording(sink, tracked=tracked, strict=strict)
        token = self._current.set(recording)
        try:
            yield
        finally:
            self._current.reset(token)
            self._leave(recording, context)
            recording.close()

    def _leave(self, recording: Recording, context: typing.Any) -> None:
        """See what a call leaves behind in an outer transaction."""

    def _inserted(self, mapper: orm.Mapper[typing.Any],
                  connection: sa.Connection, target: typing.Any) -> None:
        session = orm.object_session(target)
        recording = self._current.get()
        if session is None or recording is None:
            return
        with hook.contained(strict=recording.strict) as attempt:
            # A column that was given no value is stored as NULL, and reading
            # it from the instance would cost a query.
            values = attributes.instance_dict(target)
            after = {name: values.get(name) for name in self._columns}
            attempt.uuid = after.get('uuid')
            self._write(recording, session,
                        mapper.primary_key_from_instance(target), None, after)

    def _updated(self, mapper: orm.Mapper[typing.Any],
                 connection: sa.Connection, target: typing.Any) -> None:
        session = orm.object_session(target)
        if session is None:
            return
        recording = self._recording_of(session, target)
        if recording is None:
            return
        with hook.contained(strict=recording.strict) as attempt:
            values = attributes.instance_dict(target)
            attempt.uuid = values.get('uuid')
            old = self._old_values(mapper, connection, target)
            if (recording.tracked is not None
                    and self not in session.info
                    and not any(values[name] != old[name] for name in old
                                if name in recording.tracked
                                or name == 'deleted')):
                # The most frequent save by far, and nothing to remember: in
                # this transaction no earlier write waits for later values.
                return
            after = {name: (values[name] if name in values
                            else getattr(target, name))
                     for name in self._columns}
            self._write(recording, session, sa.inspect(target).identity,
                        {**after, **old}, after)

    def _recording_of(self, session: orm.Session,
                      target: typing.Any) -> Recording | None:
        """Return the call that writes this instance, or did before.

        What other code writes to a row later in the same transaction is part
        of that row's net change.
        """
        current = self._current.get()
        if current is None and self in session.info:
            return self._journal(session).recording_of(
                tuple(sa.inspect(target).identity))
        return current

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

    def _journal(self, session: orm.Session) -> Journal:
        journal: Journal | None = session.info.get(self)
        if journal is None:
            journal = session.info[self] = Journal()
        return journal

    def _write(self, recording: Recording, session: orm.Session,
               key: abc.Iterable[typing.Any], before: change.Row | None,
               after: change.Row) -> None:
        transaction = (session.get_nested_transaction()
                       or session.get_transaction())
        assert transaction is not None  # something has just been written
        self._journal(session).add(_Write(
            key=tuple(key), before=before, after=after, recording=recording,
            transaction=transaction))

    def _committed(self, session: orm.Session) -> None:
        journal = session.info.get(self)
        if journal is not None:
            # To SQLAlchemy, releasing a savepoint is a commit too.
            journal.committed.add(session.get_nested_transaction()
                                  or session.get_transaction())

    def _ended(self, session: orm.Session,
               transaction: orm.SessionTransaction) -> None:
        journal = session.info.get(self)
        if journal is None:
            return
        if transaction.nested:
            # Rolled back, by a failed flush or by hand, or merely closed.
            if transaction not in journal.committed:
                journal.undo(transaction)
        elif transaction.parent is None:
            del session.info[self]
            if transaction in journal.committed:
                journal.deliver()
