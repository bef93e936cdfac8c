# SPDX-License-Identifier: Apache-2.0
"""The faults, and how each is brought about, measured and proved."""

from __future__ import annotations

from collections import abc
import contextlib
import dataclasses
import time
import typing

from tests.faults import results
from tests.faults import stage as stages

#: Seconds until what an import, a connection and a queue cost is over.
_SETTLE = 1.5

Records = dict[stages.Arm, results.Record]


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long the phases are, in seconds.

    :ivar calm: the time without a fault.
    :ivar recovery: from the end of the fault to that of publishing.
    :ivar patience: the limit of each wait for what the fault has held up.
    """

    calm: float
    recovery: float
    patience: float


SHORT = Plan(calm=5, recovery=4, patience=30)
LONG = Plan(calm=20, recovery=20, patience=120)


@contextlib.contextmanager
def _killed(stage: stages.Stage) -> abc.Iterator[None]:
    stage.rabbitmq.kill()
    yield
    stage.rabbitmq.start()


@contextlib.contextmanager
def _frozen(stage: stages.Stage) -> abc.Iterator[None]:
    stage.rabbitmq.freeze()
    yield
    stage.rabbitmq.thaw()


@contextlib.contextmanager
def _alarm(stage: stages.Stage) -> abc.Iterator[None]:
    stage.rabbitmq.alarm()
    yield
    stage.rabbitmq.clear_alarm()


@contextlib.contextmanager
def _full(stage: stages.Stage) -> abc.Iterator[None]:
    # In this order: a queue that is too long already when it gets the limit
    # drops what it holds, instead of refusing what comes.
    stage.rabbitmq.reject('^faults_', stages.MAX_LENGTH)
    stage.stop_listening()
    yield
    stage.listen()
    stage.rabbitmq.accept()


def _lost(arm: stages.Arm) -> abc.Callable[[Records, float], bool]:
    return lambda records, seconds: bool(records[arm].missing)


def _blocked(records: Records, seconds: float) -> bool:
    return all(records[arm].longest > 0.8 * seconds
               for arm in (stages.FOREVER, stages.ONCE, stages.THRICE))


def _full_felt(records: Records, seconds: float) -> bool:
    return (bool(records[stages.ONCE].missing)
            and records[stages.FOREVER].longest > 0.8 * seconds)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault of the broker.

    :ivar what: what it is.
    :ivar around: entered to bring it about, left to end it.
    :ivar short: for how many seconds, in the short form.
    :ivar long: the same, for each run in the long form.
    :ivar felt: whether stock messagingv2 suffered from it as it is certain
        to do; otherwise the measurement proves nothing.
    :ivar at_start: whether it is there already when publishers start.
    :ivar fills: whether the queues are full then.
    :ivar connected: whether the listener keeps its connection. One that has
        to come back does so later than the relay, and then takes at once
        what the broker holds, which says nothing of the relay.
    """

    what: str
    around: abc.Callable[[stages.Stage], typing.ContextManager[None]]
    short: float
    long: tuple[float, ...]
    felt: abc.Callable[[Records, float], bool]
    at_start: bool = False
    fills: bool = False
    connected: bool = False


FAULTS = {
    'killed': Fault('the broker is killed, and started again', _killed, 4,
                    (15,), _lost(stages.ONCE)),
    'frozen': Fault('the broker is stopped by SIGSTOP, and goes on', _frozen,
                    7, (30, 90), _blocked),
    'alarm': Fault('the memory alarm of the broker is raised, and cleared',
                   _alarm, 7, (30, 150), _blocked,
                   connected=True),
    'down': Fault('the broker is down when the publishers start', _killed, 4,
                  (15,), _lost(stages.FOREVER), at_start=True),
    'full': Fault('the queues reject what they have no room for, until they '
                  'get room and a reader', _full, 6, (30,),
                  _full_felt, fills=True, connected=True),
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run has shown.

    :ivar fault: its name.
    :ivar seconds: how long it lasted.
    :ivar records: what happened to each arm.
    :ivar problems: what should not be.
    """

    fault: str
    seconds: float
    records: Records
    problems: list[str]


@dataclasses.dataclass(frozen=True)
class _Times:
    """When a fault was, and what the broker held when it began to end."""

    span: results.Span
    lifted: float
    queued: dict[str, int]


def run(name: str, seconds: float, plan: Plan) -> Outcome:
    """Measure all arms under a fault."""
    fault = FAULTS[name]
    with stages.Stage() as stage:
        if fault.at_start:
            times = _suffer(stage, fault, seconds)
            after = _phase(plan.recovery)
            calm = _phase(plan.calm)
        else:
            stage.start_publishers()
            stage.publish()
            stages.sleep(_SETTLE)
            calm = _phase(plan.calm)
            times = _suffer(stage, fault, seconds)
            after = _phase(plan.recovery)
        stage.stop_publishing(plan.patience)
        stage.wait_for_the_rest(plan.patience)
        records = {}
        for arm, publisher in stage.publishers.items():
            blocked = publisher.give_up()
            records[arm] = results.Record(
                publisher.calls, stage.arrivals[arm.topic], calm, times.span,
                after, times.lifted, times.queued[arm.topic], blocked)
    return Outcome(name, times.span.end - times.span.start, records,
                   _problems(fault, records, times))


def _suffer(stage: stages.Stage, fault: Fault, seconds: float) -> _Times:
    """Bring a fault about and end it."""
    queued = dict.fromkeys(stage.arrivals, 0)
    start = time.monotonic()
    with fault.around(stage):
        if fault.at_start:
            stage.start_publishers()
            stage.publish()
        stages.sleep(seconds)
        if fault.fills:
            queued = stage.queued()
        lifted = time.monotonic()
    return _Times(results.Span(start, time.monotonic()), lifted, queued)


def _phase(seconds: float) -> results.Span:
    start = time.monotonic()
    stages.sleep(seconds)
    return results.Span(start, time.monotonic())


def _problems(fault: Fault, records: Records, times: _Times) -> list[str]:
    found = [f'outbox: {text}' for text in records[stages.OUTBOX].broken()]
    if fault.fills and min(times.queued.values()) < stages.MAX_LENGTH:
        found.append(f'the queues were not full: {times.queued}')
    if not fault.felt(records, times.lifted - times.span.start):
        found.append('stock messagingv2 has not felt the fault')
    return found
