# SPDX-License-Identifier: Apache-2.0
"""Which emitter and which database are in force, in the process and in tests.
"""

from __future__ import annotations

import contextvars
import typing

T = typing.TypeVar('T')


class InForce(typing.Generic[T]):
    """One thing at a time, that a test can put its own in front of.

    :param name: what it is, for debugging.
    """

    def __init__(self, name: str) -> None:
        self._configured: T | None = None
        self._in_front: list[T] = []
        # Tests that run side by side in threads keep to their own. Threads
        # that they start see the one that was put in front last.
        self._local: contextvars.ContextVar[T | None] = (
            contextvars.ContextVar(name, default=None))

    def current(self) -> T | None:
        """Return the one in force, or None while there is none."""
        mine = self._local.get()
        if mine is not None and mine in self._in_front:
            return mine
        return self._in_front[-1] if self._in_front else self._configured

    def configure(self, thing: T | None) -> T | None:
        """Set the process's own, or none, and return the one before."""
        self._configured, before = thing, self._configured
        return before

    def put_in_front(self, thing: T) -> None:
        """Let a test's own hide the process's."""
        self._in_front.append(thing)
        self._local.set(thing)

    def take_away(self, thing: T) -> None:
        """Undo :meth:`put_in_front`, in any order; twice is once."""
        if thing in self._in_front:
            self._in_front.remove(thing)
        if self._local.get() is thing:
            self._local.set(None)
