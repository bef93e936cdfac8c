# SPDX-License-Identifier: Apache-2.0
"""A plain consumer of Nova's notifications."""

import dataclasses
import threading
import typing
import uuid

import fixtures
import oslo_messaging

from tests.nova.e2e import child
from tests import service

#: The second would carry an unversioned twin.
_TOPICS = ('versioned_notifications', 'notifications')

#: Publishes what marks how far the listener must have come.
_END = 'end'


@dataclasses.dataclass(frozen=True)
class Received:
    """One notification."""

    publisher_id: str
    event_type: str
    payload: dict[str, typing.Any]
    message_id: str

    @property
    def data(self) -> dict[str, typing.Any]:
        """The fields of the payload."""
        return self.payload['nova_object.data']


class Listener(fixtures.Fixture):
    """Keeps whatever arrives at INFO, in its order.

    :param transport_url: where Nova sends.
    """

    def __init__(self, transport_url: str) -> None:
        super().__init__()
        self._url = transport_url
        self._arrived = threading.Condition()
        self._received: list[Received] = []

    def info(self, ctxt: dict[str, typing.Any], publisher_id: str,
             event_type: str, payload: dict[str, typing.Any],
             metadata: dict[str, typing.Any]) -> None:
        """Keep a notification; called by oslo.messaging."""
        with self._arrived:
            self._received.append(Received(
                publisher_id, event_type, payload, metadata['message_id']))
            self._arrived.notify_all()

    def _setUp(self) -> None:
        transport = oslo_messaging.get_notification_transport(
            service.configuration(DEFAULT=f'transport_url = {self._url}\n'
                                          'control_exchange = nova'))
        self.addCleanup(transport.cleanup)
        self._notifier = oslo_messaging.Notifier(
            transport, _END, driver='messagingv2', topics=_TOPICS[:1])
        listener = oslo_messaging.get_notification_listener(
            transport, [oslo_messaging.Target(topic=topic, exchange='nova')
                        for topic in _TOPICS],
            [self], executor='threading')
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)
        listener.start()

    def wait_for(self, event_type: str) -> None:
        """Wait until there is a notification of a type."""
        with self._arrived:
            if not self._arrived.wait_for(
                    lambda: any(each.event_type == event_type
                                for each in self._received), child.LONG):
                raise AssertionError(
                    f'Waited {child.LONG} seconds for {event_type} and '
                    f'received {self._received}')

    def received(self) -> list[Received]:
        """Return all that was sent before this call, since the start."""
        end = uuid.uuid4().hex
        self._notifier.info({}, end, {})
        self.wait_for(end)
        with self._arrived:
            return [each for each in self._received
                    if each.publisher_id != _END]
