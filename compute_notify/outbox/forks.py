# SPDX-License-Identifier: Apache-2.0
"""Keep what must not cross a fork on its own side.

A child that used its parent's SQLite connection would corrupt the file, one
that used its parent's connection to the broker would mix two conversations,
and one that wrote what its parent still holds in memory would double it.
"""

from __future__ import annotations

import abc
import os
import threading
import weakref


class Forkable(abc.ABC):
    """Something that is whole when a process forks, and new in the child.

    A fork waits for :attr:`lock`, so that no thread is in the middle of
    anything under it, inside SQLite for example. It must be held for short.
    """

    def __init__(self) -> None:
        # Reentrant, for what happens under it may come back here: a log
        # handler or a signal handler that notifies, for example.
        self.lock = threading.RLock()
        _register(self)

    def before_fork(self) -> None:
        """Let go of what a child must not even inherit; the lock is held."""

    @abc.abstractmethod
    def after_fork(self) -> None:
        """Become new, in a child; what must not be touched is left behind."""


#: Seconds that a fork waits for what a thread is in the middle of.
_PATIENCE = 30.0

_forkables: list[weakref.ref[Forkable]] = []
_held: list[Forkable] = []
#: What a child must neither use nor close, which an end of its life would.
_left_behind: list[object] = []
#: One fork at a time, made with the hooks.
_forking: threading.Lock | None = None


def leave_behind(thing: object) -> None:
    """Keep a thing of the parent's for as long as the child lives."""
    _left_behind.append(thing)


def _register(one: Forkable) -> None:
    global _forking
    _forkables[:] = [ref for ref in _forkables if ref() is not None]
    _forkables.append(weakref.ref(one))
    if _forking is None:
        _forking = threading.Lock()
        os.register_at_fork(before=_before, after_in_parent=_in_parent,
                            after_in_child=_in_child)


def _living() -> list[Forkable]:
    return [one for ref in list(_forkables) if (one := ref()) is not None]


def _before() -> None:
    assert _forking is not None
    _forking.acquire()
    for one in sorted(_living(), key=id):
        # Whoever holds it is at the file, which does not take long, unless
        # the disk hangs.
        if one.lock.acquire(timeout=_PATIENCE):
            _held.append(one)
    for one in _held:
        one.before_fork()


def _in_parent() -> None:
    while _held:
        _held.pop().lock.release()
    assert _forking is not None
    _forking.release()


def _in_child() -> None:
    global _forking
    # A server that forks in C runs this alone: the locks may be anything.
    _forking = threading.Lock()
    _held.clear()
    for one in _living():
        one.lock = threading.RLock()
        one.after_fork()
