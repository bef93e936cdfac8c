# SPDX-License-Identifier: Apache-2.0
"""The recorder for a model that is not written row by row: Nova's.

Nova soft-deletes with a bulk UPDATE that never loads a row, and in an outer
transaction leaves a changed row to be flushed when that one ends.
"""

from __future__ import annotations

from collections import abc
import contextlib
import typing

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.orm import attributes

from compute_notify import change
from compute_notify import hook
from compute_notify import recorder


class StatementRecorder(recorder.Recorder):
    """Also see bulk soft deletes, and what is flushed after the call.

    A bulk UPDATE of the model that sets its column ``deleted`` is taken for a
    soft delete of the rows that it matches. It costs one query, which reads
    and locks those rows before.

    :param model: the mapped class. It needs columns ``id`` and ``deleted``.
    :param columns: the names of the columns to record.
    """

    def __init__(self, model: type, columns: abc.Iterable[str]) -> None:
        super().__init__(model, columns)
        self._events += ((orm.Session, 'do_orm_execute', self._executing),)

    @contextlib.contextmanager
    def recording(self, sink: hook.Sink, *,
                  strict: bool = False) -> abc.Iterator[recorder.Recording]:
        """As :meth:`recorder.Recorder.recording`."""
        with super().recording(sink, strict=strict) as recording:
            try:
                yield recording
            finally:
                with hook.contained(strict=strict):
                    self._leave_for_later(recording)

    def _leave_for_later(self, recording: recorder.Recording) -> None:
        """Note whose call it was that left a row to be flushed later."""
        for session in recording.sessions:
            if not session.in_transaction():
                continue
            for instance in session.dirty:
                if isinstance(instance, self._model):
                    self._journal(session).owners[
                        attributes.instance_state(instance)] = recording

    def _recording_of(self, session: orm.Session,
                      target: typing.Any) -> recorder.Recording | None:
        current = super()._recording_of(session, target)
        if current is None and self in session.info:
            owners = self._journal(session).owners
            return owners.get(attributes.instance_state(target))
        return current

    def _executing(
            self, state: orm.ORMExecuteState) -> sa.Result[typing.Any] | None:
        recording = self._current.get()
        if recording is None:
            return None
        recording.sessions.add(state.session)
        if not self._is_soft_delete(state):
            return None
        rows: abc.Sequence[change.Row] = ()
        with hook.contained(strict=recording.strict):
            rows = self._matched(state)
        result = state.invoke_statement()
        with hook.contained(strict=recording.strict) as attempt:
            for row in rows:
                attempt.uuid = row.get('uuid')
                self._write(recording, state.session, (row['id'],), row,
                            {**row, 'deleted': row['id']})
        return result

    def _is_soft_delete(self, state: orm.ORMExecuteState) -> bool:
        mapper = state.bind_mapper
        if not (state.is_update and mapper and mapper.class_ is self._model):
            return False
        # SQLAlchemy has no public way to ask what a statement sets.
        values = getattr(state.statement, '_values', None) or {}
        return any(getattr(column, 'key', column) == 'deleted'
                   for column in values)

    def _matched(self, state: orm.ORMExecuteState,
                 ) -> abc.Sequence[change.Row]:
        """Return the rows that a statement will change, and lock them."""
        table = orm.class_mapper(self._model).local_table
        query = sa.select(*(table.c[name] for name in self._columns))
        where = getattr(state.statement, 'whereclause', None)
        if where is not None:
            query = query.where(where)
        connection = state.session.connection(
            bind_arguments={'mapper': self._model})
        return [dict(row) for row in connection.execute(
            query.with_for_update()).mappings()]
