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
        self._recorder = statement.StatementRecorder(
            models.ComputeNode, (*payload.PAYLOAD_FIELDS, 'deleted'))
        #: Those that are in a class, or below what was put on top of them.
        self._entries: list[_Entry] = []

    def switch_on(self) -> emitter.NovaEmitter:
        """Wrap every method that is not wrapped already, or none."""
        here = {(entry.owner, entry.name) for entry in self._entries}
        methods = [(owner, name) for owner, names in guard.METHODS.items()
                   for name in names if (owner, name) not in here]
        guard.check(methods)
        sender = emitter.NovaEmitter()
        new = [self._entry(owner, name) for owner, name in methods]
        self._recorder.listen()
        try:
            for entry in new:
                entry.put()
        except BaseException:
            for entry in new:
                entry.restore()
            self._recorder.ignore()
            raise
        self._entries += new
        self.emitter = sender
        return sender

    def switch_off(self) -> None:
        """Put back what is still ours; the rest announces nothing."""
        self.emitter = None
        self._entries = [entry for entry in self._entries
                         if not entry.restore()]
        self._recorder.ignore()

    def _entry(self, owner: type, name: str) -> _Entry:
        theirs = owner.__dict__[name]
        announcing = hook.announcing(self._recorder, lambda: self.emitter)
        return _Entry(owner, name, theirs,
                      ours=base.remotable(announcing(theirs.original_fn)))


class _State(typing.TypedDict, total=False):
    lock: threading.RLock
    patch: _Patch


#: Filled by the first install and not by the import: under eventlet a lock
#: must not be older than the monkey patching. setdefault() is atomic.
_state: _State = {}


def install() -> None:
    """Let Nova's compute nodes announce their changes in this process.

    Nova's classes are changed in place: all of it, or nothing. Nova's
    configuration must have been read. Installing twice is installing once.

    :raises compute_notify.exception.UnsupportedNova: this Nova is of another
        version, or not of the shape that is patched.
    :raises compute_notify.exception.InvalidOption: ``[compute_notify]
        extra_update_fields`` names a field that does not exist.
    """
    with _state.setdefault('lock', threading.RLock()):
        if is_installed():
            return
        sender = _state.setdefault('patch', _Patch()).switch_on()
        why_off = sender.why_off()
        LOG.info('Compute node notifications are installed%s',
                 f', but off: {why_off}' if why_off else '')


def uninstall() -> None:
    """Put Nova's own methods back.

    A method that something else has wrapped since stays as it is; what is
    left of ours underneath announces nothing. Twice is once.
    """
    with _state.setdefault('lock', threading.RLock()):
        if is_installed():
            _state['patch'].switch_off()
            LOG.info('Compute node notifications are uninstalled')


def is_installed() -> bool:
    """Return whether changes are announced in this process."""
    return 'patch' in _state and _state['patch'].emitter is not None
