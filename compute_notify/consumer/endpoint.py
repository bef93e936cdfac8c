# SPDX-License-Identifier: Apache-2.0
"""An endpoint for oslo.messaging's notification listener."""

from __future__ import annotations

import collections
from collections import abc
import dataclasses
import typing

from oslo_log import log as logging
import oslo_messaging

from compute_notify.consumer import event
from compute_notify import exception

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """A notification that could not be read.

    :ivar message_id: its id, if it has one.
    :ivar event_type: what it says it is.
    :ivar error: why it cannot be read.
    """

    message_id: str | None
    event_type: str
    error: exception.ComputeNotifyError


class Endpoint:
    """Hands each notification of a compute node on, as an :class:`Event`.

    Others are filtered out by the listener. One that cannot be read is kept
    in :attr:`unreadable`, counted and logged, and acknowledged: it would not
    be any better the next time. What the handler raises is oslo.messaging's to
    deal with: it logs it, and puts the message back into the queue only if the
    listener was made with ``allow_requeue``.

    :param handle: called with each event.
    :param keep: how many of the unreadable are kept; the oldest go.
    """

    #: Anchored at both ends, for oslo.messaging only matches the beginning.
    filter_rule = oslo_messaging.NotificationFilter(
        event_type='^(%s)$' % '|'.join(
            kind.value.replace('.', r'\.') for kind in event.EventType))

    def __init__(self, handle: abc.Callable[[event.Event], None], *,
                 keep: int = 100) -> None:
        self._handle = handle
        self.unreadable: collections.deque[Unreadable] = collections.deque(
            maxlen=keep)
        self.unreadable_count = 0

    def info(self, ctxt: typing.Any, publisher_id: typing.Any,
             event_type: str, payload: typing.Any,
             metadata: typing.Any) -> None:
        """Take a notification; called by oslo.messaging."""
        try:
            found = event.parse(publisher_id, event_type, payload, metadata)
        except (exception.NotificationUnreadable,
                exception.NotificationVersion) as exc:
            message_id = (metadata or {}).get('message_id')
            self.unreadable_count += 1
            self.unreadable.append(Unreadable(message_id, event_type, exc))
            LOG.error('Notification %(id)s, %(event_type)s, cannot be read '
                      'and is passed over (%(count)d so far): %(why)s',
                      {'id': message_id, 'event_type': event_type,
                       'count': self.unreadable_count, 'why': exc})
            return
        self._handle(found)
