# SPDX-License-Identifier: Apache-2.0
"""The notification driver ``outbox``, in place of ``messagingv2``."""

from __future__ import annotations

import typing

from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging
from oslo_messaging.notify import notifier

from compute_notify import exception
from compute_notify.outbox import handle
from compute_notify.outbox import message
from compute_notify.outbox import process
from compute_notify.outbox import sender
from compute_notify.outbox import settings

LOG = logging.getLogger(__name__)


class OutboxDriver(notifier.Driver):
    """Stores each notification and returns; a relay sends it.

    :param conf: the configuration of the service.
    :param topics: the topics to send to.
    :param transport: names the broker and the exchange; it is not used to
        send, so that nothing here depends on when the process forks.
    :raises compute_notify.exception.InvalidOption: an option cannot work.
    """

    def __init__(self, conf: cfg.ConfigOpts, topics: list[str],
                 transport: oslo_messaging.Transport) -> None:
        super().__init__(conf, topics, transport)
        try:
            wanted = settings.Settings.from_conf(conf)
        except exception.InvalidOption as exc:
            # Whoever loads drivers goes on without this one.
            LOG.error('Notifications are not sent: %s', exc)
            raise
        self._exchange = getattr(transport._driver, '_default_exchange', None)
        url = transport._driver._url
        self._outbox = process.outbox_for(
            wanted, lambda: sender.Sender(conf, url))
        self._outbox.resume()

    def notify(self, ctxt: typing.Any, message_: dict[str, typing.Any],
               priority: str, retry: int | None) -> None:
        """Store a notification for each topic; touches no network.

        :param ctxt: the serialized request context.
        :param message_: the notification.
        :param priority: the last part of the topic's name.
        :param retry: of no meaning here: what is stored is sent.
        """
        try:
            body = message.body_of(ctxt, message_)
        except Exception as exc:  # whatever a value's own methods raise
            self._set_aside(message_, priority, sender.describe(exc))
            return
        self._outbox.put(message.for_topics(
            self._exchange, self.topics, priority, body))

    def _set_aside(self, message_: dict[str, typing.Any], priority: str,
                   why: str) -> None:
        try:
            shown = repr(message_)
        except Exception as exc:
            shown = sender.describe(exc)
        values = {'id': message_.get('message_id'), 'why': why,
                  'event_type': message_.get('event_type')}
        try:
            self._outbox.spool.set_aside(message.for_topics(
                self._exchange, self.topics, priority, shown), why)
        except handle.UNAVAILABLE as exc:
            LOG.error('Notification %(id)s, %(event_type)s, has no form in '
                      'which it can be sent and is lost: %(why)s; it could '
                      'not be set aside: %(reason)s',
                      values | {'reason': sender.describe(exc)})
        else:
            LOG.error('Notification %(id)s, %(event_type)s, has no form in '
                      'which it can be sent and was set aside: %(why)s',
                      values)
