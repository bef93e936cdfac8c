# SPDX-License-Identifier: Apache-2.0
"""Wrap the methods of Nova's classes in place, and take the wrappers off."""

from __future__ import annotations

import dataclasses
import threading
import typing

from nova.db.main import models
from nova.objects import base
from oslo_log import log as logging

from compute_notify import hook
from compute_notify import notification
from compute_notify.nova import emitter
from compute_notify.nova import guard
from compute_notify import payload
from compute_notify import statement

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a class's dictionary: Nova's, and ours in its place."""

    owner: type
    name: str
    theirs: typing.Any
    ours: typing.Any

    def put(self) -> None:
        """Put ours in."""
        setattr(self.owner, self.name, self.ours)

    def restore(self) -> bool:
        """Put theirs back, unless something else has come on top since."""
        if self.owner.__dict__.get(self.name) is not self.ours:
            return False
        setattr(self.owner, self.name, self.theirs)
        return True


class _Patch:
    """The patch of this process, on or off."""

    def __init__(self) -> None:
        self.emitter: emitter.NovaEmitter | None = None
        self._heard = self._told = False
        self._recorder = statement.StatementRecorder(
            models.ComputeNode, (*payload.PAYLOAD_FIELDS, 'deleted'))
        #: Those that are in a class, or below what was put on top of them.
        self._entries: list[_Entry] = []

    def switch_on(self) -> None:
        """Wrap every method that is not wrapped already, or none."""
        here = {(entry.owner, entry.name) for entry in self._entries}
        methods = [(owner, name) for owner, names in guard.METHODS.items()
                   for name in names if (owner, name) not in here]
        guard.check(methods)
        sender = emitter.NovaEmitter()
        new = [self._entry(owner, name) for owner, name in methods]
        # Left attached for good, and silent while nothing is recorded:
        # SQLAlchemy's lists of listeners must not change while another
        # thread is in the middle of one.
        self._recorder.listen()
        try:
            for entry in new:
                entry.put()
        except BaseException:
            for entry in new:
                entry.restore()
            raise
        self._entries += new
        self.emitter = sender
        notification.current_notifier = sender.current_notifier
        self._heard = self._told = False
        self._tell(sender)

    def switch_off(self) -> None:
        """Put back what is still ours; the rest announces nothing."""
        self.emitter = None
        notification.current_notifier = notification.no_notifier
        self._entries = [entry for entry in self._entries
                         if not entry.restore()]

    def _current(self) -> emitter.NovaEmitter | None:
        sender = self.emitter
        if sender is not None and not self._told:
            self._tell(sender)
            # By now Nova's logging is set up, as verbose as it is meant.
            self._heard = True
        return sender

    def _tell(self, sender: emitter.NovaEmitter) -> None:
        """Log once that the patch is on, and what keeps it from sending.

        Nova loads its notification drivers before it has a notifier and
        before its logging is set up. What cannot be told or heard yet is
        told at the first call.
        """
        why_off = sender.why_off()
        if not self._heard:
            LOG.info('Compute node notifications are installed%s',
                     f', but off: {why_off}' if why_off else '')
            self._heard = LOG.isEnabledFor(logging.INFO)
        elif why_off:
            LOG.info('Compute node notifications are off: %s', why_off)
        self._told = self._heard and not sender.is_early()

    def _entry(self, owner: type, name: str) -> _Entry:
        theirs = owner.__dict__[name]
        announcing = hook.announcing(self._recorder, self._current)
        return _Entry(owner, name, theirs,
                      ours=base.remotable(announcing(theirs.original_fn)))


class _State(typing.TypedDict, total=False):
    lock: threading.RLock
    patch: _Patch


#: Filled by the first install and not by the import: under eventlet a lock
#: must not be older than the monkey patching. setdefault() is atomic.
_state: _State = {}


def install() -> None:
    """Install, see :func:`compute_notify.nova.install`."""
    with _state.setdefault('lock', threading.RLock()):
        if is_installed():
            return
        if 'patch' not in _state:
            _state['patch'] = _Patch()
        _state['patch'].switch_on()


def uninstall() -> None:
    """Uninstall, see :func:`compute_notify.nova.uninstall`."""
    with _state.setdefault('lock', threading.RLock()):
        if is_installed():
            _state['patch'].switch_off()
            LOG.info('Compute node notifications are uninstalled')


def set_strict(*, strict: bool) -> bool:
    """Raise what goes wrong while notifying, or log it; return how it was.

    For tests; the hook has to be installed.
    """
    sender = _state['patch'].emitter
    assert sender is not None
    sender.strict, before = strict, sender.strict
    return before


def is_installed() -> bool:
    """Return whether changes are announced in this process."""
    return 'patch' in _state and _state['patch'].emitter is not None
