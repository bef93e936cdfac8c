# SPDX-License-Identifier: Apache-2.0
"""Time several ways to do one thing against each other, fairly.

A round gives each arm many short batches, in an order drawn anew for each
turn, so that whatever else the machine does meets all of them alike. It only
ever adds, so an arm's time in a round is the lower quartile of its batches.
Arms are compared within a round, and the median over the rounds counts.
"""

from __future__ import annotations

from collections import abc
import contextlib
import dataclasses
import gc
import random
import statistics
import time
import typing


def _numbers(count: int) -> abc.Sequence[typing.Any]:
    return range(count)


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to do it.

    :ivar name: what the table calls it.
    :ivar call: does it once; the only thing that is timed.
    :ivar prepare: makes so many arguments for it.
    :ivar during: entered around each batch.
    """

    name: str
    call: abc.Callable[[typing.Any], object]
    prepare: abc.Callable[[int], abc.Sequence[typing.Any]] = _numbers
    during: abc.Callable[[], typing.ContextManager[object]] = (
        contextlib.nullcontext)


@dataclasses.dataclass(frozen=True)
class Versus:
    """A comparison of two arms, by name.

    :ivar at_most: the target for the ratio; None where there is none.
    """

    arm: str
    base: str
    at_most: float | None = None


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much is measured.

    :ivar rounds: how many ratios each comparison has.
    :ivar batches: how many batches an arm has in a round.
    :ivar calls: how many calls a batch has.
    """

    rounds: int
    batches: int
    calls: int


@dataclasses.dataclass(frozen=True)
class Time:
    """What one call took, in microseconds: on the wall, and of processors."""

    wall: float
    cpu: float


#: Per arm, its time in each round.
Times = dict[str, list[Time]]


def measure(arms: abc.Sequence[Arm], plan: Plan) -> Times:
    """Run the rounds.

    Garbage is collected between batches, not during one: when it happens
    depends on what ran before, and would be charged to the wrong arm.
    """
    times: Times = {arm.name: [] for arm in arms}
    for arm in arms:
        _batch(arm, plan.calls)  # what is made once is made here
    gc.collect()
    gc.freeze()
    try:
        for _ in range(plan.rounds):
            batches: Times = {arm.name: [] for arm in arms}
            for _ in range(plan.batches):
                for arm in random.sample(arms, len(arms)):
                    batches[arm.name].append(_batch(arm, plan.calls))
            for name, taken in batches.items():
                times[name].append(Time(
                    wall=_quartile([each.wall for each in taken]),
                    cpu=_quartile([each.cpu for each in taken])))
    finally:
        gc.unfreeze()
    return times


def _quartile(values: list[float]) -> float:
    """Return the lower quartile."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=4, method='inclusive')[0]


def _batch(arm: Arm, calls: int) -> Time:
    call = arm.call
    first, *others = arm.prepare(calls + 1)
    with arm.during():
        call(first)  # what entering has emptied is filled again here
        gc.collect()
        gc.disable()
        try:
            cpu = time.process_time()
            wall = time.perf_counter()
            for argument in others:
                call(argument)
            wall = time.perf_counter() - wall
            cpu = time.process_time() - cpu
        finally:
            gc.enable()
    return Time(wall=wall / calls * 1e6, cpu=cpu / calls * 1e6)


def table(title: str, times: Times, comparisons: abc.Sequence[Versus],
          notes: abc.Mapping[str, str] | None = None) -> str:
    """Return the figures of one measurement as text.

    :param title: what was measured.
    :param times: as :func:`measure` returns them.
    :param comparisons: the ratios to show.
    :param notes: what to add behind an arm's name.
    """
    lines = [title, f'  {"median of the rounds, us per call":48}'
                    f'{"wall":>9}{"cpu":>9}']
    for name, taken in times.items():
        wall = statistics.median(each.wall for each in taken)
        cpu = statistics.median(each.cpu for each in taken)
        note = (notes or {}).get(name, '')
        lines.append(f'  {name:48}{wall:9.2f}{cpu:9.2f}  {note}'.rstrip())
    rounds = len(next(iter(times.values())))
    lines.append(f'  ratio: median (min to max) of {rounds} rounds')
    for versus in comparisons:
        lines.extend(_compared(times, versus))
    return '\n'.join(lines)


def ratios(times: Times, versus: Versus, clock: str) -> list[float]:
    """Return a comparison's ratio in each round.

    :param clock: ``wall`` or ``cpu``.
    """
    return [getattr(arm, clock) / getattr(base, clock) for arm, base
            in zip(times[versus.arm], times[versus.base], strict=True)]


def _compared(times: Times, versus: Versus) -> abc.Iterator[str]:
    yield f'  {versus.arm} / {versus.base}'
    for clock in ('wall', 'cpu'):
        found = ratios(times, versus, clock)
        middle = statistics.median(found)
        line = f'    {clock:5}{middle:7.3f} ({min(found):.3f} to ' \
               f'{max(found):.3f})'
        if versus.at_most is not None:
            verdict = 'met' if middle <= versus.at_most else 'MISSED'
            line += f'   target: at most {versus.at_most:g}, {verdict}'
        yield line
