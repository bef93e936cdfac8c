# SPDX-License-Identifier: Apache-2.0
"""The way to the broker: oslo.messaging's, and each message confirmed.

A message is sent after the one before it was confirmed. More at a time would
be faster, but where a queue that is full refuses one and has room for the
next, their order would be lost.
"""

from __future__ import annotations

from collections import abc
import contextlib
import itertools
import struct
import typing

from amqp import exceptions as amqp_exc
from amqp import spec
from kombu import entity
from kombu import exceptions as kombu_exc
from oslo_config import cfg
import oslo_messaging
from oslo_messaging._drivers import common
from oslo_messaging._drivers import impl_rabbit

from compute_notify.outbox import message

#: AMQP's code for content that is larger than the broker takes, and the one
#: that RabbitMQ uses.
_TOO_LARGE = (311, 406)

#: What the libraries raise at a message that cannot be put on the wire.
_NOT_FOR_THE_WIRE = (TypeError, ValueError, struct.error,
                     kombu_exc.EncodeError)


class Away(Exception):
    """The broker cannot be reached, or takes nothing now."""


class Refused(Exception):
    """The broker, or the library, refuses this message for what it is.

    :param one: the message.
    :param why: the error.
    """

    def __init__(self, one: message.Message, why: BaseException) -> None:
        super().__init__(describe(why))
        self.one = one


def describe(exc: BaseException) -> str:
    """Return an error as one line, with the name of its class."""
    return f'{type(exc).__name__}: {exc}'.splitlines()[0].rstrip(': ')


class Sender:
    """Sends messages over a transport of its own, made when it is needed.

    :param conf: the configuration of the transport.
    :param url: its URL.
    """

    def __init__(self, conf: cfg.ConfigOpts,
                 url: oslo_messaging.TransportURL) -> None:
        self._conf = conf
        self._url = url
        self._transport: oslo_messaging.Transport | None = None

    def send(self, messages: abc.Iterable[message.Message],
             confirmed: list[message.Message],
             go_on: abc.Callable[[], bool] = lambda: True) -> None:
        """Send messages in order.

        :param messages: what to send.
        :param confirmed: those that the broker has confirmed are added.
        :param go_on: asked before each message; the rest is left.
        :raises Away: the broker is away or full; the rest may be sent again.
        :raises Refused: it refuses the next one.
        """
        try:
            driver = self._driver()
            messages = itertools.takewhile(lambda _: go_on(), messages)
            if isinstance(driver, impl_rabbit.RabbitDriver):
                self._to_rabbit(driver, messages, confirmed)
            else:
                self._to_any(driver, messages, confirmed)
        except Refused:
            self.close()
            raise
        except amqp_exc.MessageNacked as exc:
            # An answer like another: the connection is as good as before.
            raise Away('a queue is full, or cannot store what it is sent '
                       '(basic.nack)') from exc
        except Exception as exc:
            # Neither the connection nor what is on its way is of any use. A
            # confirmation that is still to come would be taken for the next
            # message's.
            self.close()
            # What cannot parse a URL shows it, password and all.
            raise Away('the transport URL cannot be used'
                       if isinstance(exc, ValueError)
                       else describe(exc)) from exc

    def close(self) -> None:
        """Drop the connection."""
        transport, self._transport = self._transport, None
        if transport is not None:
            # What a broken connection says at its end is no news.
            with contextlib.suppress(Exception):
                transport.cleanup()

    def broker(self) -> str:
        """Return where this sends to, for a person, without a password."""
        # Sorted, for oslo.messaging shuffles them when it connects.
        hosts = ','.join(sorted(
            f'{host.hostname}:{host.port or ""}'.rstrip(':')
            for host in self._url.hosts))
        return '/'.join((f'{self._url.transport}:/', hosts,
                         self._url.virtual_host or ''))

    def _driver(self) -> typing.Any:
        if self._transport is None:
            self._transport = oslo_messaging.get_notification_transport(
                self._conf, url=self._url)
        return self._transport._driver

    @staticmethod
    def _to_rabbit(driver: typing.Any, messages: abc.Iterable[message.Message],
                   confirmed: list[message.Message]) -> None:
        """Send over one connection, without taking it anew for each message.

        Which takes half of the time of a call of the driver ``messagingv2``.
        """
        with (driver._get_connection(common.PURPOSE_SEND, retry=0) as opened,
              opened._connection_lock):
            for one in messages:
                with _refusals_of(one):
                    _publish(opened, one, driver._default_exchange)
                confirmed.append(one)

    @staticmethod
    def _to_any(driver: typing.Any, messages: abc.Iterable[message.Message],
                confirmed: list[message.Message]) -> None:
        for one in messages:
            context, notification = one.unpack()
            target = oslo_messaging.Target(topic=one.topic,
                                           exchange=one.exchange)
            with _refusals_of(one):
                driver.send_notification(target, context, notification,
                                         version=2.0, retry=0)
            confirmed.append(one)


def _publish(connection: typing.Any, one: message.Message,
             default_exchange: str) -> None:
    exchange = entity.Exchange(
        one.exchange or default_exchange, type='topic',
        durable=connection.durable, auto_delete=connection.amqp_auto_delete)
    body = {common._VERSION_KEY: common._RPC_ENVELOPE_VERSION,
            common._MESSAGE_KEY: one.body}
    if (exchange.name, one.topic) in connection._declared_queues:
        # Mandatory: a message for a queue that somebody has deleted would
        # vanish, and be confirmed.
        connection._publish(
            exchange, body, routing_key=one.topic,
            transport_options=oslo_messaging.TransportOptions(
                at_least_once=True))
    else:
        connection._publish_and_creates_default_queue(
            exchange, body, routing_key=one.topic)


@contextlib.contextmanager
def _refusals_of(one: message.Message) -> abc.Iterator[None]:
    try:
        yield
    except amqp_exc.MessageNacked:
        raise  # a queue is full; it may have room later
    except _NOT_FOR_THE_WIRE as exc:
        raise Refused(one, exc) from exc
    except amqp_exc.AMQPError as exc:
        # The same code says that a queue was declared otherwise before, which
        # concerns all messages and is for the operator to mend.
        if (exc.reply_code in _TOO_LARGE
                and exc.method_sig == spec.Basic.Publish):
            raise Refused(one, exc) from exc
        raise
