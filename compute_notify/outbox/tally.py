# SPDX-License-Identifier: Apache-2.0
"""Say how often something happened, once a minute and not each time."""

from __future__ import annotations

from collections import abc
import time

#: Seconds between two lines in the log about the same trouble.
INTERVAL = 60.0


class Tally:
    """Counts, and says the count: at once, then at most once a minute.

    :param say: called with the count since it was last called.
    """

    def __init__(self, say: abc.Callable[[int], None]) -> None:
        self._say = say
        self._count = 0
        self._said: float | None = None

    def add(self, count: int = 1) -> None:
        """Count, and say it if it is time."""
        self._count += count
        self.tell()

    def tell(self, *, now: bool = False) -> None:
        """Say what has not been said, if it is time.

        :param now: whether or not it is time.
        """
        if not self._count:
            return
        elapsed = (None if self._said is None
                   else time.monotonic() - self._said)
        if now or elapsed is None or elapsed >= INTERVAL:
            count, self._count = self._count, 0
            self._said = time.monotonic()
            self._say(count)
