# SPDX-License-Identifier: Apache-2.0
"""What a test needs of a real RabbitMQ: a listener, and a spy on the wire."""

from collections import abc
import dataclasses
import json
import queue
import socket
import typing
import uuid

from amqp import exceptions as amqp_exc
import fixtures
import kombu
from kombu import exceptions as kombu_exc
import oslo_messaging
from oslo_utils import timeutils

from tests import base
from tests.functional import servers
from tests import service

#: Seconds after which something that should have happened has not.
LONG = 30

#: The lines of [DEFAULT] that lead to the broker.
TRANSPORT_URL = f'transport_url = {servers.url("rabbitmq")}'


def unique(name: str) -> str:
    """Return a name that no other test has."""
    return f'{name}_{uuid.uuid4().hex}'


def connection() -> kombu.Connection:
    """Return a connection to the broker; without one the test is skipped."""
    made = kombu.Connection(
        servers.url('rabbitmq').replace('rabbit://', 'amqp://'))
    try:
        made.connect()
    except (kombu_exc.OperationalError, OSError) as exc:
        base.missing('rabbitmq', exc)
    return made


def require() -> None:
    """Skip the test without a broker; from a fixture it would be an error."""
    connection().release()


def has_queue(name: str) -> bool:
    """Tell whether the broker has a queue."""
    with connection() as opened:
        return _is_there(opened.channel().queue_declare, name)


def has_exchange(name: str) -> bool:
    """Tell whether the broker has an exchange."""
    with connection() as opened:
        return _is_there(opened.channel().exchange_declare, name, 'topic')


def _is_there(declare: abc.Callable[..., object], *args: str) -> bool:
    try:
        declare(*args, passive=True)
    except amqp_exc.NotFound:
        return False
    return True


@dataclasses.dataclass(frozen=True)
class Message:
    """One message as it went over the wire."""

    routing_key: str
    body: dict[str, typing.Any]

    @property
    def notification(self) -> dict[str, typing.Any]:
        """The notification, out of its envelope if it has one."""
        if 'oslo.message' in self.body:
            return json.loads(self.body['oslo.message'])
        return self.body


class Spy(fixtures.Fixture):
    """Sees everything that goes through an exchange, whatever its topic.

    :param exchange: its name. It is declared as oslo.messaging does, and one
        that is not ``nova`` is deleted at the end.
    """

    def __init__(self, exchange: str = 'nova') -> None:
        super().__init__()
        self.exchange = exchange

    def _setUp(self) -> None:
        opened = connection()
        self.addCleanup(opened.release)
        self._connection = opened
        channel = opened.channel()
        exchange = kombu.Exchange(self.exchange, 'topic', channel=channel,
                                  durable=False)
        exchange.declare()
        if self.exchange != 'nova':
            self.addCleanup(exchange.delete)
        spying = kombu.Queue(unique('spy'), exchange, '#', channel=channel,
                             exclusive=True, auto_delete=True)
        self._seen: list[Message] = []
        consumer = kombu.Consumer(channel, [spying], no_ack=True,
                                  on_message=self._see)
        consumer.consume()
        self._producer = kombu.Producer(opened.channel(), exchange)

    def _see(self, message: kombu.Message) -> None:
        self._seen.append(Message(message.delivery_info['routing_key'],
                                  json.loads(message.body)))

    def messages(self, text: str) -> list[Message]:
        """Return those so far that contain a text, and never another's."""
        end = unique('end')
        self._producer.publish({}, routing_key=end)
        with timeutils.StopWatch(LONG) as timer:
            while not any(seen.routing_key == end for seen in self._seen):
                if timer.expired():
                    raise AssertionError(f'No end in sight: {self._seen}')
                try:
                    self._connection.drain_events(timeout=1)
                except socket.timeout:
                    pass
        return [seen for seen in self._seen if text in json.dumps(seen.body)]


@dataclasses.dataclass(frozen=True)
class Received:
    """What oslo.messaging calls an endpoint with."""

    ctxt: dict[str, typing.Any]
    publisher_id: str
    event_type: str
    payload: dict[str, typing.Any]
    metadata: dict[str, typing.Any]


class Listener(fixtures.Fixture):
    """A consumer's notification listener, in a thread of its own.

    It listens for the priority INFO alone, on the queues ``<topic>.info``.

    :param topics: their names. The queues are deleted at the end.
    :param exchange: the exchange.
    """

    def __init__(self, *topics: str, exchange: str = 'nova') -> None:
        super().__init__()
        self._topics = topics
        self._exchange = exchange
        self._arrived: queue.Queue[Received] = queue.Queue()

    def info(self, ctxt: dict[str, typing.Any], publisher_id: str,
             event_type: str, payload: dict[str, typing.Any],
             metadata: dict[str, typing.Any]) -> None:
        """Keep a notification; called by oslo.messaging."""
        self._arrived.put(Received(ctxt, publisher_id, event_type, payload,
                                   metadata))

    def _setUp(self) -> None:
        connection().release()
        transport = oslo_messaging.get_notification_transport(
            service.configuration(DEFAULT=TRANSPORT_URL))
        self.addCleanup(transport.cleanup)
        listener = oslo_messaging.get_notification_listener(
            transport,
            [oslo_messaging.Target(topic=topic, exchange=self._exchange)
             for topic in self._topics],
            [self], executor='threading')
        for topic in self._topics:
            self.addCleanup(delete, f'{topic}.info')
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)
        listener.start()

    def wait_for(self, count: int) -> list[Received]:
        """Return so many notifications, in the order of their arrival."""
        arrived: list[Received] = []
        with timeutils.StopWatch(LONG) as timer:
            while len(arrived) < count:
                try:
                    arrived.append(self._arrived.get(
                        timeout=timer.leftover()))
                except queue.Empty:
                    raise AssertionError(
                        f'Waited {LONG} seconds for {count} notifications '
                        f'and received {len(arrived)}: {arrived}') from None
        return arrived


def delete(*queues: str) -> None:
    """Delete queues, whatever is in them."""
    with connection() as opened:
        for name in queues:
            kombu.Queue(name, channel=opened.channel()).delete()


def take_out(name: str, text: str) -> None:
    """Take the messages that contain a text out of a queue that stays."""
    with connection() as opened:
        shared = kombu.Queue(name, channel=opened.channel())
        others = []
        while (message := shared.get()) is not None:
            if text in str(message.body):
                message.ack()
            else:
                others.append(message)
        for message in others:
            message.requeue()
