# SPDX-License-Identifier: Apache-2.0
"""The emitting side: store, or keep in memory until that is possible."""

from __future__ import annotations

import collections
from collections import abc
import itertools
import logging
import threading
import time

from oslo_log import log as oslo_logging

from compute_notify.outbox import handle
from compute_notify.outbox import message
from compute_notify.outbox import settings
from compute_notify.outbox import store
from compute_notify.outbox import tally

LOG = oslo_logging.getLogger(__name__)

#: Seconds between two tries to write what is kept in memory.
FLUSH_INTERVAL = 0.5

#: How many of those are written in one go.
_FLUSH_BATCH = 500


class Spool(handle.Handle):
    """Takes notifications from any thread, and never waits for a network.

    A call waits for other processes at the file, :data:`spoolfile.PATIENCE`
    seconds at most. What cannot be written then is kept in memory, and what
    comes after it too, so that the order stays; a thread writes it when it
    can be.

    :param wanted: the options.
    """

    def __init__(self, wanted: settings.Settings) -> None:
        super().__init__(wanted, checkpoint=store.APPEND_CHECKPOINT,
                         make=True)
        self._begin()

    def _begin(self) -> None:
        self._memory: collections.deque[message.Message] = collections.deque()
        self._flusher: threading.Thread | None = None
        self._why = ''
        self._dropped = tally.Tally(self._say_dropped)
        self._held = tally.Tally(self._say_held)

    def after_fork(self) -> None:
        """Leave to the parent what it has in memory."""
        super().after_fork()
        self._begin()

    def append(self, messages: abc.Sequence[message.Message]) -> None:
        """Take notifications: they are stored, or in memory and that is said.

        :param messages: they stay together, and in order.
        """
        with self._holding():
            if not self._memory:
                try:
                    self._write(messages)
                    return
                except handle.UNAVAILABLE as exc:
                    self._why = f'{type(exc).__name__}: {exc}'
            self._keep(messages)

    def set_aside(self, messages: abc.Iterable[message.Message],
                  error: str) -> None:
        """Keep notifications that have no form in which they can be sent.

        :raises handle.UNAVAILABLE: they cannot be stored.
        """
        with self.locked() as used:
            for one in messages:
                used.set_aside(one, error, tries=0, sendable=False,
                               keep=self.settings.max_messages)

    def waits(self) -> bool:
        """Tell whether anything waits in the file, whoever stored it.

        :raises handle.UNAVAILABLE: nobody can tell.
        """
        with self.locked() as used:
            return bool(used.first(1))

    def flush(self) -> bool:
        """Write what is in memory; return whether nothing is left there."""
        while True:
            # Not for all at once: callers wait for the lock.
            with self._holding():
                if not self._memory:
                    # Under the lock: what is kept next starts another.
                    self._flusher = None
                    return True
                if not self._write_some():
                    return False

    def _write_some(self) -> bool:
        batch = list(itertools.islice(self._memory, _FLUSH_BATCH))
        try:
            self._write(batch)
        except handle.UNAVAILABLE as exc:
            self._why = f'{type(exc).__name__}: {exc}'
            self._held.tell()
            return False
        for _ in batch:
            self._memory.popleft()
        if not self._memory:
            self.say(logging.WARNING, 'Outbox %(path)s can be written again, '
                     'and is.', {'path': self.settings.path})
        return True

    def housekeep(self) -> None:
        """Say what is due to be said."""
        with self._holding():
            self._dropped.tell()

    def shut(self) -> None:
        """Write what can be written, say what is lost, close the file."""
        if not self.flush():
            LOG.critical(
                'Outbox %(path)s could not be written (%(why)s): %(count)d '
                'notifications in memory are lost.',
                {'path': self.settings.path, 'why': self._why,
                 'count': len(self._memory)})
        with self._holding():
            self._dropped.tell(now=True)
            self._close()

    def _write(self, messages: abc.Sequence[message.Message]) -> None:
        with self._used() as used:
            dropped = used.append(
                messages, max_messages=self.settings.max_messages,
                drop_newest=self.settings.drop_newest)
        if dropped:
            self._dropped.add(dropped)

    def _keep(self, messages: abc.Sequence[message.Message]) -> None:
        self._memory.extend(messages)
        over = len(self._memory) - self.settings.memory_messages
        for _ in range(over):
            if self.settings.drop_newest:
                self._memory.pop()
            else:
                self._memory.popleft()
        if over > 0:
            self._dropped.add(over)
        if self._flusher is None or not self._flusher.is_alive():
            flusher = threading.Thread(
                target=self._keep_flushing,
                name='compute-notify-outbox-flusher', daemon=True)
            try:
                flusher.start()
            except RuntimeError as exc:  # no more threads: the next call tries
                self._why = f'{self._why}; {exc}'
            else:
                self._flusher = flusher
        self._held.add(len(messages))

    def _keep_flushing(self) -> None:
        while True:
            time.sleep(FLUSH_INTERVAL)
            if self.flush():
                return

    def _say_dropped(self, count: int) -> None:
        self.say(
            logging.ERROR, 'Outbox %(path)s is full: %(count)d notifications '
            'were dropped, the %(which)s.',
            {'path': self.settings.path, 'count': count,
             'which': 'newest' if self.settings.drop_newest else 'oldest'})

    def _say_held(self, count: int) -> None:
        self.say(
            logging.ERROR, 'Outbox %(path)s cannot be written: %(why)s. '
            '%(held)d notifications are in memory, and lost if this process '
            'ends; %(most)d at most are kept there.',
            {'path': self.settings.path, 'why': self._why,
             'held': len(self._memory),
             'most': self.settings.memory_messages})
