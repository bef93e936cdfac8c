# SPDX-License-Identifier: Apache-2.0
"""What calls and arrivals of one arm under one fault amount to."""

from __future__ import annotations

from collections import abc
import dataclasses
import math
import typing

#: Seconds that no call with the outbox may take.
LONGEST = 0.5

#: Above it, p99 under the fault to p99 in the calm is marked.
RATIO = 2.0

#: Fewer notifications than these have no rate worth telling.
_BACKLOG = 20


class Call(typing.NamedTuple):
    """A call of ``notifier.info()`` that has returned."""

    seq: int
    start: float
    took: float


class Arrival(typing.NamedTuple):
    """A notification that the listener was given."""

    seq: int
    message_id: str
    at: float


class Span(typing.NamedTuple):
    """A time, by the monotonic clock."""

    start: float
    end: float


@dataclasses.dataclass(frozen=True)
class Record:
    """What happened to an arm.

    :ivar calls: those that have returned.
    :ivar arrivals: in their order, repeated ones included.
    :ivar calm: when nothing was the matter.
    :ivar fault: when the broker misbehaved.
    :ivar after: when the backlog was caught up with.
    :ivar lifted: when that began to end.
    :ivar queued: how many messages the broker itself held then.
    :ivar blocked: for how long the last call had not returned when it was
        given up; such a call counts neither as made nor as lost.
    """

    calls: abc.Sequence[Call]
    arrivals: abc.Sequence[Arrival]
    calm: Span
    fault: Span
    after: Span
    lifted: float
    queued: int = 0
    blocked: float | None = None

    @property
    def missing(self) -> list[int]:
        """The calls whose notification has not arrived."""
        arrived = {arrival.seq for arrival in self.arrivals}
        return [call.seq for call in self.calls if call.seq not in arrived]

    @property
    def firsts(self) -> list[Arrival]:
        """The first arrival of each notification, in their order."""
        seen: dict[int, Arrival] = {}
        for arrival in self.arrivals:
            seen.setdefault(arrival.seq, arrival)
        return list(seen.values())

    @property
    def doubled(self) -> int:
        """How often a notification arrived that had arrived before."""
        return len(self.arrivals) - len(self.firsts)

    @property
    def renamed(self) -> int:
        """How many message_ids there are more than notifications."""
        return len({arrival.message_id for arrival in self.arrivals}
                   ) - len(self.firsts)

    @property
    def disordered(self) -> int:
        """How many arrived for the first time after one sent later."""
        count, highest = 0, -1
        for arrival in self.firsts:
            count += arrival.seq < highest
            highest = max(highest, arrival.seq)
        return count

    @property
    def longest(self) -> float:
        """Seconds that the longest call took, or that it blocks already."""
        return max([call.took for call in self.calls]
                   + [self.blocked or 0.0])

    def p99_within(self, span: Span) -> float | None:
        """Return p99 of the calls begun and ended in a time, in seconds."""
        return _p99([call.took for call in self.calls
                     if span.start <= call.start
                     and call.start + call.took <= span.end])

    @property
    def p99_fault(self) -> float | None:
        """p99 of the calls that met the fault, in seconds."""
        return _p99([call.took for call in self.calls
                     if call.start + call.took > self.fault.start
                     and call.start < self.fault.end])

    @property
    def ratio(self) -> float | None:
        """p99 under the fault to p99 in the calm."""
        calm, fault = self.p99_within(self.calm), self.p99_fault
        return None if calm is None or fault is None else fault / calm

    @property
    def backlog(self) -> list[Arrival]:
        """What was called for under the fault and arrived when it ended.

        Without what the broker itself had held.
        """
        calls = {call.seq for call in self.calls
                 if call.start < self.fault.end}
        return [first for first in self.firsts if first.at >= self.lifted
                and first.seq in calls][self.queued:]

    @property
    def caught_up(self) -> float | None:
        """Seconds from the end of the fault to the last of the backlog."""
        if not self.backlog:
            return None
        return max(0.0, self.backlog[-1].at - self.fault.end)

    @property
    def drain(self) -> float | None:
        """How many of the backlog arrived per second."""
        # Without those that did not wait: they came at the calls' pace.
        waiting = {call.seq for call in self.calls
                   if self.backlog and call.start < self.backlog[0].at}
        times = [first.at for first in self.backlog if first.seq in waiting]
        return rate(times) if len(times) >= _BACKLOG else None

    def broken(self) -> list[str]:
        """Return which of the outbox's promises this breaks."""
        found = []
        if missing := self.missing:
            found.append(f'{len(missing)} lost: {_some(missing)}')
        if self.disordered:
            found.append(f'{self.disordered} out of order')
        if self.renamed:
            found.append(f'{self.renamed} doubled under another message_id')
        if self.longest > LONGEST:
            found.append(f'a call took {self.longest:.2f} s')
        return found


def rate(times: abc.Sequence[float]) -> float | None:
    """Return how many there are per second from the first to the last."""
    if len(times) < 2 or max(times) == min(times):
        return None
    return (len(times) - 1) / (max(times) - min(times))


def _p99(values: abc.Sequence[float]) -> float | None:
    if not values:
        return None
    return sorted(values)[math.ceil(0.99 * len(values)) - 1]


def _some(numbers: abc.Sequence[int]) -> str:
    shown = ', '.join(map(str, numbers[:10]))
    return f'{shown}, ...' if len(numbers) > 10 else shown
