# SPDX-License-Identifier: Apache-2.0
"""A notification driver that counts what it is given and throws it away."""

from __future__ import annotations

import typing

import oslo_messaging
from oslo_messaging.notify import notifier as messaging_notifier
from stevedore import extension
from stevedore import named


class Driver(messaging_notifier.Driver):
    """See the module."""

    sent = 0

    def notify(self, ctxt: dict[str, typing.Any], msg: dict[str, typing.Any],
               priority: str, retry: int) -> None:
        self.sent += 1


def put_into(notifier: oslo_messaging.Notifier) -> Driver:
    """Give a Notifier this driver and no other; return it."""
    transport = notifier.transport
    driver = Driver(transport.conf, topics=[], transport=transport)
    # An extension made by hand has no entry point and no plugin class.
    nothing: typing.Any = None
    notifier._driver_mgr = named.NamedExtensionManager.make_test_instance([
        extension.Extension('discarding', nothing, nothing, driver)])
    return driver
