# SPDX-License-Identifier: Apache-2.0
"""One outbox for each file in a process, however many drivers use it."""

from __future__ import annotations

import atexit
from collections import abc
import sys
import threading

from oslo_log import log as logging

from compute_notify.outbox import forks
from compute_notify.outbox import handle
from compute_notify.outbox import message
from compute_notify.outbox import relay
from compute_notify.outbox import sender
from compute_notify.outbox import settings
from compute_notify.outbox import spool
from compute_notify.outbox import spoolfile

LOG = logging.getLogger(__name__)

#: Seconds that a process which ends waits for its own relay, if that is
#: getting on: what a command sent last should not wait for the next run.
FAREWELL = 2.0


class Outbox(forks.Forkable):
    """A spool, and the thread that relays it once there is something to send.

    :param wanted: the options.
    :param make_sender: makes the way to the broker.
    """

    def __init__(self, wanted: settings.Settings,
                 make_sender: abc.Callable[[], sender.Sender]) -> None:
        super().__init__()
        self.spool = spool.Spool(wanted)
        self._settings = wanted
        self._make_sender = make_sender
        self._relay: relay.Relay | None = None
        self._thread: threading.Thread | None = None

    @property
    def broker(self) -> str:
        """Where this sends to, without a password."""
        return self._make_sender().broker()

    def put(self, messages: abc.Sequence[message.Message]) -> None:
        """Store messages, and see that somebody sends them."""
        self.spool.append(messages)
        if self._settings.relay:
            self._running().wake()

    def resume(self) -> None:
        """Begin to send what an earlier process has left, if any."""
        if not self._settings.relay or _is_uwsgi_master():
            return
        try:
            # Nothing is made before there is something to store.
            if spoolfile.identity(self._settings.path) is None:
                return
            waits = self.spool.waits()
        except handle.UNAVAILABLE as exc:
            LOG.error('Outbox %(path)s cannot be used: %(why)s. Notifications '
                      'are kept in memory until it can.',
                      {'path': self._settings.path,
                       'why': sender.describe(exc)})
            waits = True  # for all that is known; the relay will see
        finally:
            # Until there is something to store nothing need stay open.
            self.spool.close()
        if waits:
            self._running()

    def shut(self) -> None:
        """Send, store or at least report what is left, within seconds."""
        with self.lock:
            running = self._relay
            thread = self._thread
        if self.spool.flush() and running and thread and thread.is_alive():
            if not running.is_away:
                running.settled.wait(FAREWELL)
            running.stop()
            thread.join(FAREWELL)
        self.spool.shut()

    def after_fork(self) -> None:
        """Leave the parent's relay to it."""
        if self._relay is not None:
            forks.leave_behind(self._relay)
            self._relay = self._thread = None

    def _running(self) -> relay.Relay:
        running = self._relay
        if running is None or not self._alive():
            with self.lock:
                if self._relay is None or not self._alive():
                    self._relay = relay.Relay(
                        self._settings, self._make_sender(),
                        tick=self.spool.housekeep)
                    self._thread = threading.Thread(
                        target=self._relay.run,
                        name='compute-notify-outbox-relay', daemon=True)
                    self._thread.start()
                running = self._relay
        return running

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()


class _Outboxes(forks.Forkable):
    """Those of this process, by path."""

    def __init__(self) -> None:
        super().__init__()
        self._by_path: dict[str, Outbox] = {}
        atexit.register(self.shut)

    def get(self, wanted: settings.Settings,
            make_sender: abc.Callable[[], sender.Sender]) -> Outbox:
        """Return the one with this path; the first to ask has its way."""
        with self.lock:
            found = self._by_path.get(wanted.path)
            if found is None:
                found = Outbox(wanted, make_sender)
                self._by_path[wanted.path] = found
        ours, theirs = make_sender().broker(), found.broker
        if ours != theirs:
            LOG.error(
                'Outbox %(path)s is relayed to %(theirs)s, and not to '
                '%(ours)s, which another notifier of this process names. Give '
                'it a file of its own with option [compute_notify_outbox] '
                'path.',
                {'path': wanted.path, 'theirs': theirs, 'ours': ours})
        return found

    def shut(self) -> None:
        """Shut all."""
        with self.lock:
            found = list(self._by_path.values())
            self._by_path.clear()
        for one in found:
            one.shut()

    def after_fork(self) -> None:
        """Keep them: each sees to itself."""


#: One at most; made when it is first needed.
_registry: dict[None, _Outboxes] = {}


def outbox_for(wanted: settings.Settings,
               make_sender: abc.Callable[[], sender.Sender]) -> Outbox:
    """Return this process's outbox of a file.

    :param wanted: the options; those of the first caller count.
    :param make_sender: makes the way to the broker.
    """
    if None not in _registry:
        _registry.setdefault(None, _Outboxes())
    return _registry[None].get(wanted, make_sender)


def shut_all() -> None:
    """Shut every outbox of this process, as its end does."""
    for outboxes in _registry.values():
        outboxes.shut()


def paths() -> dict[str, Outbox]:
    """Return this process's outboxes by path."""
    return dict(_registry[None]._by_path) if _registry else {}


def _is_uwsgi_master() -> bool:
    """Tell whether threads started here would never run.

    uWSGI loads an application in its master and then leaves Python there. A
    relay elected in it would send nothing and keep others from it.
    """
    uwsgi = sys.modules.get('uwsgi')
    return uwsgi is not None and uwsgi.worker_id() == 0
