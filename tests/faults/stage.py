# SPDX-License-Identifier: Apache-2.0
"""A private broker with a listener, and a publisher for each arm."""

from collections import abc
import dataclasses
import pathlib
import threading
import time
import typing

import fixtures

from tests.faults import child
from tests.faults import rabbitmq
from tests.faults import results

#: How many messages fit into a queue that is said to be full.
MAX_LENGTH = 10

#: Seconds without an arrival after which none is expected any more.
_QUIET = 3

_PUBLISHER_CONF = """
[DEFAULT]
transport_url = {url}
[oslo_messaging_rabbit]
amqp_durable_queues = true
[compute_notify_outbox]
path = {directory}/{topic}.sqlite
"""

# The listener is to come back soon after the broker, and without leaps:
# otherwise it would be what limits the rate at which a backlog arrives.
_LISTENER_CONF = """
[DEFAULT]
transport_url = {url}
executor_thread_pool_size = 1
[oslo_messaging_rabbit]
amqp_durable_queues = true
rabbit_retry_backoff = 0
rabbit_interval_max = 1
"""


@dataclasses.dataclass(frozen=True)
class Arm:
    """A way to send notifications."""

    name: str
    driver: str
    retry: int
    topic: str
    #: Seconds from one call to the next.
    pace: float = 0.05


# Faster, for p99 of a few hundred calls is no more than their longest.
OUTBOX = Arm('outbox', 'outbox', -1, 'faults_outbox', pace=0.01)
FOREVER = Arm('messagingv2, retry -1', 'messagingv2', -1, 'faults_forever')
ONCE = Arm('messagingv2, retry 0', 'messagingv2', 0, 'faults_once')
THRICE = Arm('messagingv2, retry 3', 'messagingv2', 3, 'faults_thrice')
ARMS = (OUTBOX, FOREVER, ONCE, THRICE)


class Publisher(child.Child):
    """The process of an arm, with what it has reported."""

    def __init__(self, arm: Arm, config: pathlib.Path) -> None:
        super().__init__('tests.faults.publisher', config, arm.driver,
                         arm.topic, arm.retry, see=self._keep)
        self.calls: list[results.Call] = []
        self.sent: list[dict[str, typing.Any]] = []
        self.stopped = False
        self._begun: float | None = None

    def _keep(self, report: dict[str, typing.Any]) -> None:
        if 'begun' in report:
            self._begun = report['start']
        elif 'done' in report:
            self.calls.append(results.Call(
                report['done'], report['start'], report['took']))
            self._begun = None
        elif 'stopped' in report:
            self.stopped = True
        else:
            self.sent.append(report)

    def give_up(self) -> float | None:
        """End it; return for how long its last call blocked, if it did."""
        begun = self._begun
        if self.stopped or begun is None:
            self.finish()
            return None
        self.kill()
        return time.monotonic() - begun


class Stage(fixtures.Fixture):
    """The broker is up and the listener listens; publishers come later.

    :param arms: for whom there will be a publisher.
    """

    def __init__(self, arms: abc.Sequence[Arm] = ARMS) -> None:
        super().__init__()
        self.arms = arms
        self.arrivals: dict[str, list[results.Arrival]] = {
            arm.topic: [] for arm in arms}
        self.publishers: dict[Arm, Publisher] = {}

    def _setUp(self) -> None:
        self._directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.rabbitmq = self.useFixture(rabbitmq.RabbitMQ())
        self.rabbitmq.start()
        self._latest = time.monotonic()
        self.listen()

    def _config(self, name: str, text: str) -> pathlib.Path:
        path = self._directory / f'{name}.conf'
        path.write_text(text.format(url=self.rabbitmq.url, topic=name,
                                    directory=self._directory))
        return path

    def listen(self) -> None:
        """Start a listener."""
        self._listener = self.useFixture(child.Child(
            'tests.faults.listener',
            self._config('listener', _LISTENER_CONF), *self.arrivals,
            see=self._arrived))
        self._listener.wait_until_ready()

    def stop_listening(self) -> None:
        """End the listener; what comes then stays in the queues."""
        self._listener.finish()

    def _arrived(self, report: dict[str, typing.Any]) -> None:
        self._latest = time.monotonic()
        self.arrivals[report['topic']].append(results.Arrival(
            report['seq'], report['message_id'], report['at']))

    def start_publishers(self) -> None:
        """Start the processes of all arms."""
        for arm in self.arms:
            self.publishers[arm] = self.useFixture(Publisher(
                arm, self._config(arm.topic, _PUBLISHER_CONF)))
        for publisher in self.publishers.values():
            publisher.wait_until_ready()

    def publish(self) -> None:
        """Let all arms call, from now until they are told to stop."""
        for arm, publisher in self.publishers.items():
            publisher.tell('pace', arm.pace)

    def stop_publishing(self, patience: float) -> None:
        """Let all arms stop; one that cannot is given up after a while."""
        for publisher in self.publishers.values():
            publisher.tell('stop')
        child.wait_until(lambda: all(
            publisher.stopped for publisher in self.publishers.values()),
            patience)

    def wait_for_the_rest(self, patience: float) -> None:
        """Wait until all has arrived, or nothing arrives any more.

        Only with the outbox something may yet come after a silence.
        """
        child.wait_until(lambda: not self.missing(OUTBOX), patience)
        child.wait_until(lambda: not any(map(self.missing, self.arms))
                         or time.monotonic() - self._latest > _QUIET,
                         patience)

    def missing(self, arm: Arm) -> int:
        """Return how many notifications of an arm have yet to arrive."""
        if arm not in self.publishers:
            return 0
        arrived = {one.seq for one in list(self.arrivals[arm.topic])}
        return len({call.seq for call in list(self.publishers[arm].calls)}
                   - arrived)

    def queued(self) -> dict[str, int]:
        """Return how many messages the broker holds, by topic."""
        lines = self.rabbitmq.control('list_queues', '--no-table-headers',
                                      'name', 'messages').splitlines()
        held = {name.removesuffix('.info'): int(count)
                for name, count in map(str.split, lines)}
        return {topic: held.get(topic, 0) for topic in self.arrivals}


def sleep(seconds: float) -> None:
    """Let time pass, which is what a phase is."""
    threading.Event().wait(seconds)
