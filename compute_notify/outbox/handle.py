# SPDX-License-Identifier: Apache-2.0
"""The outbox's file in the hands of one part of a process."""

from __future__ import annotations

import collections
from collections import abc
import contextlib
import sqlite3

from oslo_log import log as logging

from compute_notify import exception
from compute_notify.outbox import forks
from compute_notify.outbox import settings
from compute_notify.outbox import spoolfile
from compute_notify.outbox import store

LOG = logging.getLogger(__name__)

#: What says that the file cannot be used now, but may be later.
UNAVAILABLE = (sqlite3.Error, OSError, exception.OutboxUnusable,
               exception.OutboxMissing)

#: Nothing is wrong with the connection then.
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL)


class Handle(forks.Forkable):
    """The file as one part of a process uses it.

    It is opened when it is first needed, again when another file has taken
    its place, and anew in a child.

    :param wanted: where it is and how it is written.
    :param checkpoint: as :func:`spoolfile.connect` has it.
    :param make: as there.
    """

    def __init__(self, wanted: settings.Settings, *, checkpoint: int,
                 make: bool) -> None:
        super().__init__()
        self._make = make
        self.settings = wanted
        self._checkpoint = checkpoint
        self._store: store.Store | None = None
        self._unsaid: collections.deque[
            tuple[int, str, abc.Mapping[str, object]]] = collections.deque()

    @contextlib.contextmanager
    def locked(self) -> abc.Iterator[store.Store]:
        """Give the store to one thread.

        :raises UNAVAILABLE: as it says. A corrupt file has been moved aside
            by then.
        """
        with self._holding(), self._used() as used:
            yield used

    @contextlib.contextmanager
    def _holding(self) -> abc.Iterator[None]:
        """Hold the lock; what there is to say then is said after it.

        A log handler may be slow, and one that notifies, as oslo.log's
        ``publish_errors`` does, comes back here.
        """
        try:
            with self.lock:
                yield
        finally:
            while self._unsaid:
                try:
                    line = self._unsaid.popleft()
                except IndexError:
                    break  # another thread was faster
                LOG.log(*line)

    def say(self, level: int, text: str,
            values: abc.Mapping[str, object]) -> None:
        """Log something once the lock is free."""
        self._unsaid.append((level, text, values))

    @contextlib.contextmanager
    def _used(self) -> abc.Iterator[store.Store]:
        """Do so while the lock is held."""
        try:
            yield self._current()
        except UNAVAILABLE as exc:
            code = getattr(exc, 'sqlite_errorcode', 0) & 0xff
            if code not in _PASSING:
                self._give_up(exc)
            raise

    def _current(self) -> store.Store:
        path = self.settings.path
        if (self._store is not None
                and spoolfile.identity(path) != self._store.identity):
            self._close()
        if self._store is None:
            self._store = store.Store(
                path, synchronous=self.settings.synchronous,
                checkpoint=self._checkpoint, make=self._make, say=self.say)
        return self._store

    def _give_up(self, exc: BaseException) -> None:
        seen = self._store and self._store.identity
        self._close()
        if seen and isinstance(exc, sqlite3.Error) and spoolfile.corrupt(exc):
            spoolfile.move_aside_corrupt(self.settings.path, seen, exc,
                                         self.say)

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def close(self) -> None:
        """Close the file; what is done next opens it again."""
        with self.lock:
            self._close()

    def before_fork(self) -> None:
        """Close the file, which is opened again when it is needed.

        SQLite notes in memory which locks its process holds on a file. A
        child that inherits the note of an open one takes none itself, and
        what it stores is lost when all others have closed the file.
        """
        with contextlib.suppress(sqlite3.Error):
            self._close()

    def after_fork(self) -> None:
        """Leave the parent's connection alone."""
        self._unsaid.clear()
        if self._store is not None:
            forks.leave_behind(self._store)
            self._store = None
