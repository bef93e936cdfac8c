# SPDX-License-Identifier: Apache-2.0
"""The transport that options ask for, or an error that names the option."""

from __future__ import annotations

import typing

from oslo_config import cfg
import oslo_messaging

from compute_notify import exception


class _OnExchange:
    """A configuration seen through another control exchange.

    oslo.messaging takes a transport's exchange from ``control_exchange``,
    which the service's RPC uses too and must keep.
    """

    def __init__(self, conf: cfg.ConfigOpts, exchange: str) -> None:
        self._conf = conf
        self.control_exchange = exchange

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self._conf, name)

    def __getitem__(self, name: str) -> typing.Any:
        return self._conf[name]


def on_exchange(conf: cfg.ConfigOpts, exchange: str) -> typing.Any:
    """Make a notification transport whose exchange is another.

    :raises compute_notify.exception.InvalidOption: as :func:`get`.
    """
    return get(typing.cast(cfg.ConfigOpts, _OnExchange(conf, exchange)))


def get(conf: cfg.ConfigOpts) -> typing.Any:
    """Make the notification transport.

    :raises compute_notify.exception.InvalidOption: the URL cannot be parsed,
        or names a transport that does not exist or lacks a library.
    """
    try:
        return oslo_messaging.get_notification_transport(conf)
    except (oslo_messaging.InvalidTransportURL,
            oslo_messaging.DriverLoadFailure, ImportError,
            ValueError) as exc:
        # The URL holds a password, and so may the reason.
        group, option = 'oslo_messaging_notifications', 'transport_url'
        if not conf[group].transport_url:
            group = 'DEFAULT'
        if isinstance(exc, oslo_messaging.DriverLoadFailure):
            reason = f'no such transport: {exc.driver}'
        elif isinstance(exc, ImportError):
            reason = f'the transport needs {exc.name}, which is missing'
        else:
            reason = 'cannot be parsed'
        raise exception.InvalidOption(
            group=group, option=option, reason=reason) from None
