# SPDX-License-Identifier: Apache-2.0
"""A notification as the driver ``messagingv2`` would send it."""

from __future__ import annotations

from collections import abc
import dataclasses
import json
import time
import typing

from oslo_messaging._drivers import amqp
from oslo_serialization import jsonutils

_CONTEXT = '_context_'


@dataclasses.dataclass(frozen=True)
class Message:
    """One notification for one topic.

    :param exchange: the control exchange of the emitter's transport.
    :param topic: with its priority, ``versioned_notifications.info``.
    :param body: what stands under ``oslo.message`` in the envelope.
    :param created: when it was handed over, in seconds since 1970.
    :param id: its place in the file, once it has one.
    """

    exchange: str | None
    topic: str
    body: str
    created: float
    id: int | None = None

    def unpack(self) -> tuple[dict[str, typing.Any], dict[str, typing.Any]]:
        """Return context and notification, as a transport takes them."""
        context: dict[str, typing.Any] = {}
        notification: dict[str, typing.Any] = {}
        for key, value in json.loads(self.body).items():
            if key.startswith(_CONTEXT):
                context[key.removeprefix(_CONTEXT)] = value
            elif key != amqp.UNIQUE_ID:
                notification[key] = value
        return context, notification


def body_of(context: typing.Any,
            notification: abc.Mapping[str, typing.Any]) -> str:
    """Return the body of a notification with its context.

    oslo.messaging makes a body at each attempt to send, with a new
    ``_unique_id`` by which a listener knows a message that it gets twice. Here
    it is made once: what is sent again after a fault is the same message.

    :raises Exception: whatever oslo.serialization raises at a value that has
        no JSON.
    """
    raw = dict(notification)
    amqp._add_unique_id(raw)
    amqp.pack_context(raw, context)
    body: str = jsonutils.dumps(raw)
    return body


def for_topics(exchange: str | None, topics: abc.Iterable[str], priority: str,
               body: str) -> list[Message]:
    """Return one message for each topic, as oslo.messaging names them."""
    now = time.time()
    return [Message(exchange, f'{topic}.{priority.lower()}', body, now)
            for topic in topics]
