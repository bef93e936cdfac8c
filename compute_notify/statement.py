# SPDX-License-Identifier: Apache-2.0
"""The recorder for a model that is not written row by row: Nova's.

Nova soft-deletes with a bulk UPDATE that never loads a row, and in an outer
transaction leaves a changed row to be flushed when that one ends.
"""

from __future__ import annotations

from collections import abc
import typing

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.orm import attributes

from compute_notify import change
from compute_notify import hook
from compute_notify import recorder
from compute_notify import transaction


class StatementRecorder(recorder.Recorder):
    """Also see bulk soft deletes, and what is flushed after the call.

    A ``Query.update()`` of the model that sets its column ``deleted`` is a
    soft delete of the rows that it matches. It costs one query, which reads
    and locks those rows before.

    :param model: the mapped class. It needs columns ``id`` and ``deleted``.
    :param columns: the names of the columns to record.
    """

    def __init__(self, model: type, columns: abc.Iterable[str]) -> None:
        super().__init__(model, columns)
        self._events += (
            (orm.Query, 'before_compile_update', self._deleting),
            (orm.Session, 'after_bulk_update', self._deleted),
        )

    def _leave(self, recording: recorder.Recording,
               context: typing.Any) -> None:
        """Note whose call left rows to be flushed by an outer transaction."""
        with hook.contained(strict=recording.strict):
            session = transaction.session_of(context)
            if session is None:
                return
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

    def _deleting(self, query: orm.Query[typing.Any],
                  update: typing.Any) -> None:
        recording = self._current.get()
        if (recording is None and self not in query.session.info
                or 'deleted' not in update.values
                or query.column_descriptions[0]['entity'] is not self._model):
            return
        with hook.contained(strict=recording is not None
                            and recording.strict):
            journal = self._journal(query.session)
            journal.doomed[id(update)] = self._matched(query)

    def _matched(self, query: orm.Query[typing.Any]) -> list[change.Row]:
        """Return the rows that a query's update will change; lock them."""
        table = orm.class_mapper(self._model).local_table
        select = sa.select(*(table.c[name] for name in self._columns))
        if query.whereclause is not None:
            select = select.where(query.whereclause)
        connection = query.session.connection(
            bind_arguments={'mapper': self._model})
        return [dict(row) for row in connection.execute(
            select.with_for_update()).mappings()]

    def _deleted(self, update: typing.Any) -> None:
        journal = update.session.info.get(self)
        if journal is None:
            return
        current = self._current.get()
        for row in journal.doomed.pop(id(update), ()):
            key = (row['id'],)
            recording = current or journal.recording_of(key)
            if recording is not None:
                self._write(recording, update.session, key, row,
                            {**row, 'deleted': row['id']})
