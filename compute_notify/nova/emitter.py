# SPDX-License-Identifier: Apache-2.0
"""Sending through the notifier that Nova made for versioned notifications."""

from __future__ import annotations

import typing

import nova.conf
from nova import rpc

from compute_notify import change
from compute_notify import emitter
from compute_notify import notification
from compute_notify import opts

CONF = nova.conf.CONF

_VERSIONED = ('versioned', 'both')


class NovaEmitter:
    """Asks at each call what Nova's notifier is; there may be none yet.

    :ivar strict: raise a failure to notify, as tests want it.
    :raises compute_notify.exception.InvalidOption: ``[compute_notify]
        extra_update_fields`` names a field that does not exist.
    """

    def __init__(self) -> None:
        self.strict = False
        opts.register_opts(CONF)
        self.tracked = emitter.tracked_fields(
            CONF[opts.GROUP].extra_update_fields)
        self._asked: tuple[object, bool] = (None, False)

    def is_on(self) -> bool:
        """Whether Nova would really send a versioned notification now."""
        notifier = rpc.NOTIFIER
        if notifier is not self._asked[0]:
            # Its drivers are settled when it is made.
            self._asked = notifier, (notifier is not None
                                     and emitter.sends(notifier))
        return self._asked[1] and self._is_versioned()

    def current_notifier(self) -> notification.Notifier | None:
        """Return Nova's notifier, or None while nothing would be sent."""
        return rpc.NOTIFIER if self.is_on() else None

    @staticmethod
    def _is_versioned() -> bool:
        return CONF.notifications.notification_format in _VERSIONED

    def is_early(self) -> bool:
        """Whether only Nova's notifier is missing, as before rpc.init."""
        return rpc.NOTIFIER is None and self._is_versioned()

    def why_off(self) -> str | None:
        """Return which option keeps notifications from being sent, if any.

        Before Nova has a notifier its drivers are not known, nor blamed.
        """
        if not self._is_versioned():
            return ('[notifications] notification_format is '
                    f'{CONF.notifications.notification_format}')
        if rpc.NOTIFIER is not None and not emitter.sends(rpc.NOTIFIER):
            return ('[oslo_messaging_notifications] driver names no driver '
                    'that sends')
        return None

    def emit(self, context: typing.Any, what: change.Change) -> None:
        """Build and send one notification with Nova's notifier."""
        emitter.send(rpc.NOTIFIER, context, what, default_host=CONF.host)
