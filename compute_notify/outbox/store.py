# SPDX-License-Identifier: Apache-2.0
"""What the outbox's file holds: what waits, what failed, and figures."""

from __future__ import annotations

from collections import abc
import contextlib
import dataclasses
import random
import sqlite3
import time
import typing

from oslo_log import log as logging

from compute_notify.outbox import message
from compute_notify.outbox import spoolfile

LOG = logging.getLogger(__name__)

#: Pages in the log before an append itself moves them to the file. High, for
#: that syncs the disk and a caller would wait: the relay does it long before.
APPEND_CHECKPOINT = 10000
RELAY_CHECKPOINT = 1000


@dataclasses.dataclass(frozen=True)
class Failed:
    """A notification that was set aside.

    :param id: its number, for :meth:`Store.retry_failed`.
    :param topic: the topic it was for.
    :param created: when it was handed over, in seconds since 1970.
    :param tries: how often it was sent in vain.
    :param error: what the last try said.
    :param sendable: False if it has no JSON; sending it again is no use.
    """

    id: int
    topic: str
    created: float
    tries: int
    error: str
    sendable: bool


@dataclasses.dataclass(frozen=True)
class Status:
    """The figures of an outbox.

    :param waiting: notifications that the broker has not confirmed.
    :param oldest_age: seconds since the oldest of them was stored, or None.
    :param sent: how many the broker has confirmed, since the file was made.
    :param dropped: how many were dropped, being too many or too old.
    :param failed: how many are set aside.
    :param last_error: what kept one from being sent, or None.
    :param last_error_at: when, in seconds since 1970, or None.
    """

    waiting: int
    oldest_age: float | None
    sent: int
    dropped: int
    failed: int
    last_error: str | None
    last_error_at: float | None

    def __str__(self) -> str:
        """Return one line for a log."""
        since = ('' if self.oldest_age is None
                 else f' for up to {self.oldest_age:.0f} s')
        return (f'{self.waiting} waiting{since}, {self.sent} sent, '
                f'{self.dropped} dropped, {self.failed} failed, last error: '
                f'{self.last_error or "none"}')


class Store:
    """One connection to the file: for one process, one thread at a time.

    Every method raises sqlite3.Error as SQLite does; one that finds the file
    busy does so after :data:`spoolfile.PATIENCE` seconds.

    :param path: the file.
    :param synchronous: NORMAL or FULL, as SQLite means them.
    :param checkpoint: as :func:`spoolfile.connect` has it.
    :param make: as there, which also says what is raised.
    :param say: as there.
    """

    def __init__(self, path: str, *, synchronous: str = 'NORMAL',
                 checkpoint: int = RELAY_CHECKPOINT,
                 make: bool = True,
                 say: spoolfile.Say = LOG.log) -> None:
        self._db = spoolfile.connect(
            path, synchronous=synchronous, checkpoint=checkpoint, make=make,
            say=say)
        self.identity = spoolfile.identity(path)
        self.name = spoolfile.name_of(self._db)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    @contextlib.contextmanager
    def _writing(self) -> abc.Iterator[None]:
        deadline = time.monotonic() + spoolfile.PATIENCE
        while True:
            try:
                self._db.execute('BEGIN IMMEDIATE')
                break
            except sqlite3.OperationalError as exc:
                if (exc.sqlite_errorcode & 0xff != sqlite3.SQLITE_BUSY
                        or time.monotonic() > deadline):
                    raise
                # A write takes less than a millisecond; random, or two
                # processes would meet again.
                time.sleep(random.uniform(0.0001, 0.001))
        try:
            yield
            self._db.execute('COMMIT')
        except BaseException:
            # SQLite may have done so itself, when the disk is full.
            if self._db.in_transaction:
                self._db.execute('ROLLBACK')
            raise

    def append(self, messages: abc.Sequence[message.Message], *,
               max_messages: int, drop_newest: bool = False) -> int:
        """Store notifications behind those that wait.

        :param messages: all are stored, or none.
        :param max_messages: how many may wait.
        :param drop_newest: drop what comes, not what has waited longest.
        :returns: how many were dropped.
        """
        with self._writing():
            over = self.waiting() + len(messages) - max_messages
            if over > 0 and drop_newest:
                over = min(over, len(messages))
                messages = messages[:len(messages) - over]
            self._db.executemany(
                'INSERT INTO message (created, exchange, topic, body) '
                'VALUES (?, ?, ?, ?)',
                [(one.created, one.exchange, one.topic, one.body)
                 for one in messages])
            self._count('waiting', len(messages))
            if over > 0 and not drop_newest:
                self._delete('id IN (SELECT id FROM message ORDER BY id '
                             'LIMIT ?)', over)
            if over > 0:
                self._count('dropped', over)
        return max(over, 0)

    def first(self, limit: int, *,
              after: int | None = None) -> list[message.Message]:
        """Return those that have waited longest, in order.

        :param limit: how many at most.
        :param after: only those behind the one with this id.
        """
        return [message.Message(exchange, topic, body, created, id)
                for id, created, exchange, topic, body in self._db.execute(
                    'SELECT id, created, exchange, topic, body FROM message '
                    'WHERE id > ? ORDER BY id LIMIT ?', (after or 0, limit))]

    def remove_sent(self, sent: abc.Sequence[message.Message]) -> None:
        """Remove what the broker has confirmed, and count it."""
        with self._writing():
            self._count('waiting', -self._db.executemany(
                'DELETE FROM message WHERE id = ?',
                [(one.id,) for one in sent]).rowcount)
            self._count('sent', len(sent))

    def remove_older(self, than: float) -> int:
        """Remove what was stored before a moment, and count it as dropped.

        :param than: the moment, in seconds since 1970.
        :returns: how many there were.
        """
        oldest = self._oldest()
        if oldest is None or oldest >= than:
            return 0
        with self._writing():
            # From the oldest to the first that is not: no other is looked at.
            young, = self._db.execute(
                'SELECT id FROM message WHERE created >= ? ORDER BY id '
                'LIMIT 1', (than,)).fetchone() or (None,)
            removed = (self._delete('id < ?', young) if young is not None
                       else self._delete('1'))
            self._count('dropped', removed)
        return removed

    def set_aside(self, one: message.Message, error: str, *, tries: int,
                  sendable: bool = True, keep: int) -> None:
        """Keep a notification that cannot be sent, with the reason.

        :param one: one that waits, or that never did.
        :param error: the reason.
        :param tries: how often it was sent in vain.
        :param sendable: whether it has a form in which it can be sent.
        :param keep: how many to keep; the oldest go.
        """
        with self._writing():
            self._delete('id = ?', one.id)
            self._db.execute(
                'INSERT INTO failed (created, exchange, topic, body, '
                'sendable, error, tries, failed) '
                'VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
                (one.created, one.exchange, one.topic, one.body, sendable,
                 error, tries, time.time()))
            gone = self._db.execute(
                'DELETE FROM failed WHERE id <= '
                '(SELECT max(id) - ? FROM failed)', (keep,)).rowcount
            if gone:
                self._count('dropped', gone)

    def list_failed(self) -> list[Failed]:
        """Return what was set aside, the oldest first."""
        return [Failed(id, topic, created, tries, error, bool(sendable))
                for id, topic, created, tries, error, sendable
                in self._db.execute(
                    'SELECT id, topic, created, tries, error, sendable '
                    'FROM failed ORDER BY id')]

    def retry_failed(self, ids: abc.Collection[int] | None = None) -> int:
        """Put what was set aside behind what waits.

        :param ids: which; None means all. Those without JSON stay.
        :returns: how many were put there.
        """
        chosen = [one.id for one in self.list_failed()
                  if one.sendable and (ids is None or one.id in ids)]
        with self._writing():
            for id in chosen:
                # As if stored now: max_age would take it away at once.
                self._db.execute(
                    'INSERT INTO message (created, exchange, topic, body) '
                    'SELECT ?, exchange, topic, body FROM failed '
                    'WHERE id = ?', (time.time(), id))
                self._db.execute('DELETE FROM failed WHERE id = ?', (id,))
            self._count('waiting', len(chosen))
        return len(chosen)

    def note(self, **figures: object) -> None:
        """Set figures that are not counted, such as ``last_error``."""
        with self._writing():
            for name, value in figures.items():
                self._db.execute('REPLACE INTO figure VALUES (?, ?)',
                                 (name, value))

    def noted(self, name: str) -> typing.Any:
        """Return a figure, or None."""
        row = self._db.execute('SELECT value FROM figure WHERE name = ?',
                               (name,)).fetchone()
        return None if row is None else row[0]

    def status(self) -> Status:
        """Return the figures."""
        oldest = self._oldest()
        return Status(
            waiting=self.waiting(),
            oldest_age=None if oldest is None
            else max(time.time() - oldest, 0.0),
            sent=self.noted('sent') or 0,
            dropped=self.noted('dropped') or 0,
            failed=self._db.execute(
                'SELECT count(*) FROM failed').fetchone()[0],
            last_error=self.noted('last_error'),
            last_error_at=self.noted('last_error_at'))

    def waiting(self) -> int:
        """Return how many wait, without counting them."""
        return int(self.noted('waiting') or 0)

    def checkpoint(self) -> None:
        """Move the log into the file, as far as nobody uses it."""
        self._db.execute('PRAGMA wal_checkpoint(PASSIVE)')

    def _oldest(self) -> float | None:
        row: tuple[float] | None = self._db.execute(
            'SELECT created FROM message ORDER BY id LIMIT 1').fetchone()
        return None if row is None else row[0]

    def _delete(self, where: str, *values: object) -> int:
        """Delete of what waits; return how many."""
        deleted = self._db.execute(f'DELETE FROM message WHERE {where}',
                                   values).rowcount
        self._count('waiting', -deleted)
        return deleted

    def _count(self, name: str, more: int) -> None:
        self._db.execute(
            'INSERT INTO figure VALUES (?, ?) ON CONFLICT (name) '
            'DO UPDATE SET value = value + excluded.value', (name, more))
