# SPDX-License-Identifier: Apache-2.0
"""The rate of the outbox's relay, against plain messagingv2 flat out."""

from __future__ import annotations

from collections import abc
import statistics

from tests.faults import child
from tests.faults import results
from tests.faults import stage as stages
from tests.faults import tables

#: Seconds in which so many messages must have been sent and have arrived.
_LONG = 300

LEGEND = """\
Notifications per second, from the first to the last that the listener was
given, of {count} in a row. outbox: they are stored while the broker takes
nothing, because of its memory alarm, and sent by the relay when that is
cleared. messagingv2: one thread sends them directly. Durable queues, the same
broker and listener; the order of the two changes from round to round."""


def run(count: int, rounds: int) -> str:
    """Measure in so many rounds, and return a table."""
    rows: list[tuple[float, float]] = []
    with stages.Stage((stages.OUTBOX, stages.FOREVER)) as stage:
        stage.start_publishers()
        for arm in stage.arms:
            _send(stage, arm, 1)
            _arrive(stage, arm, 1)
        for turn in range(rounds):
            measure = [_backlog, _direct]
            if turn % 2:
                measure.reverse()
            rates = {each: each(stage, count) for each in measure}
            rows.append((rates[_backlog], rates[_direct]))
    return _table(rows)


def _table(rows: abc.Sequence[tuple[float, float]]) -> str:
    shown = [(str(place), f'{outbox:.0f}', f'{direct:.0f}',
              f'{outbox / direct:.2f}')
             for place, (outbox, direct) in enumerate(rows, 1)]
    middle = [statistics.median(column) for column in (
        [outbox for outbox, _ in rows], [direct for _, direct in rows],
        [outbox / direct for outbox, direct in rows])]
    return tables.table(
        ('round', 'outbox', 'messagingv2', 'ratio'),
        [*shown, ('median', f'{middle[0]:.0f}', f'{middle[1]:.0f}',
                  f'{middle[2]:.2f}')])


def _backlog(stage: stages.Stage, count: int) -> float:
    # Under the alarm the listener keeps its connection. After a restart it
    # would come later than the relay, and take at once what that has sent.
    stage.rabbitmq.alarm()
    first = _send(stage, stages.OUTBOX, count)
    stage.rabbitmq.clear_alarm()
    return _arrive(stage, stages.OUTBOX, count, first)


def _direct(stage: stages.Stage, count: int) -> float:
    first = _send(stage, stages.FOREVER, count)
    return _arrive(stage, stages.FOREVER, count, first)


def _send(stage: stages.Stage, arm: stages.Arm, count: int) -> int:
    """Call so often, and return the number of the first."""
    publisher = stage.publishers[arm]
    reports = len(publisher.sent)
    publisher.tell('send', count)
    if not child.wait_until(lambda: len(publisher.sent) > reports, _LONG):
        raise AssertionError(f'{arm.name} has not made {count} calls in '
                             f'{_LONG} s: {publisher.tail()}')
    return publisher.sent[-1]['first']


def _arrive(stage: stages.Stage, arm: stages.Arm, count: int,
            first: int = 0) -> float:
    """Wait until all have arrived, and return their rate."""
    arrivals = stage.arrivals[arm.topic]
    place = 0
    # The first time counts.
    times: dict[int, float] = {}

    def complete() -> bool:
        # Each is looked at once: this shares the machine with the measured.
        nonlocal place
        for one in arrivals[place:]:
            place += 1
            if one.seq >= first:
                times.setdefault(one.seq, one.at)
        return len(times) >= count

    if not child.wait_until(complete, _LONG):
        raise AssertionError(
            f'{len(times)} of {count} of {arm.name} have arrived in '
            f'{_LONG} s: {stage.publishers[arm].tail()}')
    return results.rate(list(times.values())) or 0.0
