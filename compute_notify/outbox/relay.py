# SPDX-License-Identifier: Apache-2.0
"""The sending side: one relay at a time, in order, until confirmed."""

from __future__ import annotations

import collections
from collections import abc
import contextlib
import os
import threading
import time

import fasteners
from oslo_log import log as logging

from compute_notify.outbox import handle
from compute_notify.outbox import message
from compute_notify.outbox import sender
from compute_notify.outbox import settings
from compute_notify.outbox import spoolfile
from compute_notify.outbox import store
from compute_notify.outbox import tally

LOG = logging.getLogger(__name__)

#: Seconds between two looks at what other processes have stored.
POLL = 0.1
#: Seconds between two tries to become the relay.
ELECTION = 1.0
#: Seconds to wait for a broker that is away; doubled up to the second one.
PAUSE = 0.25
LONGEST_PAUSE = 5.0
#: How many messages are sent before they are removed together. As many may
#: be sent twice if the process is killed.
BATCH = 100
#: Seconds after which they are, if not all of them were sent.
LONGEST_BATCH = 0.25
#: How many confirmed ones that cannot be removed, because the disk is full,
#: stop the relay: all would be sent twice if the process were killed.
MOST_UNREMOVED = 1000

#: What the name of the lock that elects a relay ends in.
RELAY_LOCK = 'relay'


class Relay:
    """Sends what waits in the file, if no other process does.

    The lock that elects it is fcntl's: it ends with its process, however that
    ends, and a child does not inherit it.

    :param wanted: the options.
    :param way: sends to the broker.
    :param tick: called now and then, by the thread that runs this.
    """

    def __init__(self, wanted: settings.Settings, way: sender.Sender, *,
                 tick: abc.Callable[[], None] = lambda: None) -> None:
        self.settings = wanted
        self._way = way
        self._tick = tick
        self._handle = handle.Handle(
            wanted, checkpoint=store.RELAY_CHECKPOINT, make=False)
        #: Set while nothing waits that this relay could send now.
        self.settled = threading.Event()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        #: Confirmed, but still in the file of that name.
        self._sent: list[message.Message] = []
        self._file: str | None = None
        self._tries: collections.Counter[int | None] = collections.Counter()
        self._away_since: float | None = None
        self._status_at = time.monotonic()
        self._aged = tally.Tally(self._say_aged)
        self._unusable = tally.Tally(self._say_unusable)
        self._why = ''
        self._pid: int | None = None

    def wake(self) -> None:
        """Tell that something was stored."""
        # In this order, and _rest() in the other, or both could miss it.
        self._wake.set()
        self.settled.clear()

    @property
    def is_away(self) -> bool:
        """Whether the broker took nothing when it was last tried."""
        return self._away_since is not None

    def stop(self) -> None:
        """End :meth:`run` after the message on its way; for any thread."""
        self._stopped.set()
        self._wake.set()

    def run(self) -> None:
        """Relay whenever no other process does, until stopped."""
        lost = 0
        self._pid = os.getpid()
        while self._goes_on():
            lock = self._elect()
            if lock is not None:
                try:
                    self._lead()
                finally:
                    # In the copy, nothing of it is its own.
                    if os.getpid() == self._pid:
                        self._remove_sent()
                        self._way.close()
                        self._handle.close()
                        lock.release()
                return
            lost += 1
            if lost == 3:  # time enough for the other to say where it sends
                self._compare_brokers()
            self.settled.set()
            self._tick()
            self._stopped.wait(ELECTION)

    def _goes_on(self) -> bool:
        # A greenthread is copied into a child, and runs on there unless the
        # child drops the hub, which ends it.
        return not self._stopped.is_set() and os.getpid() == self._pid

    def _elect(self) -> fasteners.InterProcessLock | None:
        try:
            if spoolfile.identity(self.settings.path) is None:
                return None
            lock = fasteners.InterProcessLock(
                spoolfile.beside(self.settings.path, RELAY_LOCK))
            return lock if lock.acquire(blocking=False) else None
        except OSError as exc:
            self._cannot(exc)
            return None

    def _compare_brokers(self) -> None:
        try:
            with self._handle.locked() as used:
                theirs = used.noted('broker')
        except handle.UNAVAILABLE:
            return
        ours = self._way.broker()
        if theirs not in (None, ours):
            LOG.error(
                'Outbox %(path)s is relayed to %(theirs)s by another process, '
                'while this one sends to %(ours)s. Give it a file of its own '
                'with option [compute_notify_outbox] path.',
                {'path': self.settings.path, 'theirs': theirs, 'ours': ours})

    def _lead(self) -> None:
        LOG.debug('This process relays outbox %(path)s.',
                  {'path': self.settings.path})
        self._note(broker=self._way.broker(), relay=os.getpid())
        pause = PAUSE
        while self._goes_on():
            self._wake.clear()
            sent = len(self._sent)
            try:
                busy = self._pass()
            except sender.Away as exc:
                pause = PAUSE if len(self._sent) > sent else pause
                self._remove_sent()
                self._away(exc)
                self._stopped.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            except sender.Refused as exc:
                self._refused(exc)
            except handle.UNAVAILABLE as exc:
                self._cannot(exc)
                self.settled.set()
                self._stopped.wait(ELECTION)
            else:
                pause = PAUSE
                if not busy:
                    self._rest()
            self._look_after()

    def _pass(self) -> bool:
        """Send a batch; return whether there was any."""
        with self._handle.locked() as used:
            if used.name != self._file:
                # Another has taken its place, and begins to count anew.
                self._file = used.name
                self._sent.clear()
                self._tries.clear()
            # What could not be removed, the disk being full, is not sent
            # again.
            after = self._sent[-1].id if self._sent else None
            batch = used.first(BATCH, after=after)
        if not batch:
            self._remove_sent()  # what could not be removed when it was sent
            return False
        sent = len(self._sent)
        if sent >= MOST_UNREMOVED:
            self._remove_sent()
            return False
        try:
            self._way.send(batch, self._sent, self._while_short())
        finally:
            if len(self._sent) > sent and self._away_since is not None:
                self._back()
        self._remove_sent()
        return True

    def _while_short(self) -> abc.Callable[[], bool]:
        """Return what tells whether to send one more of a batch."""
        end: float | None = None

        def go_on() -> bool:
            nonlocal end
            now = time.monotonic()
            if end is None:  # to connect takes its own time
                end = now + LONGEST_BATCH
                return self._goes_on()
            return self._goes_on() and now < end
        return go_on

    def _rest(self) -> None:
        self.settled.set()
        if self._wake.is_set():
            self.settled.clear()
        self._wake.wait(POLL)

    def _remove_sent(self) -> None:
        if not self._sent:
            return
        try:
            with self._handle.locked() as used:
                if used.name == self._file:
                    used.remove_sent(self._sent)
        except handle.UNAVAILABLE as exc:
            self._cannot(exc)
        else:
            self._sent.clear()

    def _refused(self, exc: sender.Refused) -> None:
        self._remove_sent()
        tries = self._tries[exc.one.id] = self._tries[exc.one.id] + 1
        if tries < self.settings.max_tries:
            return
        try:
            with self._handle.locked() as used:
                if used.name != self._file:
                    return  # another has taken its place
                used.set_aside(exc.one, str(exc), tries=tries,
                               keep=self.settings.max_messages)
                used.note(last_error=str(exc), last_error_at=time.time())
        except handle.UNAVAILABLE as why:
            self._cannot(why)
            self._stopped.wait(ELECTION)
            return
        del self._tries[exc.one.id]
        LOG.error('A notification for %(topic)s in outbox %(path)s cannot be '
                  'sent and was set aside after %(tries)d tries: %(why)s',
                  {'topic': exc.one.topic, 'path': self.settings.path,
                   'tries': tries, 'why': exc})

    def _away(self, exc: sender.Away) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
            LOG.warning('Notifications wait in outbox %(path)s: %(why)s',
                        {'path': self.settings.path, 'why': exc})
        self._note(last_error=str(exc), last_error_at=time.time())
        # Now that there is time, and appends leave it to the relay.
        with contextlib.suppress(*handle.UNAVAILABLE):
            with self._handle.locked() as used:
                used.checkpoint()
        self.settled.set()

    def _back(self) -> None:
        assert self._away_since is not None
        LOG.warning('Notifications in outbox %(path)s are sent again, after '
                    '%(seconds).0f seconds.',
                    {'path': self.settings.path,
                     'seconds': time.monotonic() - self._away_since})
        self._away_since = None

    def _look_after(self) -> None:
        """Do what is due whether or not anything can be sent."""
        self._tick()
        try:
            if self.settings.max_age:
                with self._handle.locked() as used:
                    aged = used.remove_older(
                        time.time() - self.settings.max_age)
                self._aged.add(aged)
            self._aged.tell()
            elapsed = time.monotonic() - self._status_at
            if 0 < self.settings.status_interval <= elapsed:
                self._status_at = time.monotonic()
                with self._handle.locked() as used:
                    status = used.status()
                LOG.info('Outbox %(path)s: %(status)s',
                         {'path': self.settings.path, 'status': status})
        except handle.UNAVAILABLE as exc:
            self._cannot(exc)

    def _note(self, **figures: object) -> None:
        try:
            with self._handle.locked() as used:
                used.note(**figures)
        except handle.UNAVAILABLE as exc:
            self._cannot(exc)

    def _cannot(self, exc: BaseException) -> None:
        self._why = sender.describe(exc)
        self._unusable.add()

    def _say_unusable(self, count: int) -> None:
        LOG.error('The relay cannot use outbox %(path)s: %(why)s',
                  {'path': self.settings.path, 'why': self._why})

    def _say_aged(self, count: int) -> None:
        LOG.error(
            'Outbox %(path)s: %(count)d notifications were dropped, having '
            'waited for more than %(seconds)d seconds.',
            {'path': self.settings.path, 'count': count,
             'seconds': self.settings.max_age})
