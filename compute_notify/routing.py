# SPDX-License-Identifier: Apache-2.0
"""Make oslo.messaging's routing driver work with any configuration.

The driver reads ``routing_config`` from oslo.config's global object whatever
configuration it is given, and makes the drivers it routes to without the
arguments that they need.
"""

from __future__ import annotations

import typing

from oslo_config import cfg
import oslo_messaging
from oslo_messaging.notify import _impl_routing
from stevedore import dispatch
import yaml

from compute_notify import exception

_GROUP = 'oslo_messaging_notifications'


def load(driver: typing.Any, conf: cfg.ConfigOpts, *, topics: list[str],
         transport: oslo_messaging.Transport) -> None:
    """Load the drivers that a routing driver routes to.

    :param driver: the routing driver, as a Notifier has loaded it.
    :param conf: the configuration that names the file with the routes.
    :param topics: for the drivers that are loaded.
    :param transport: for the drivers that are loaded.
    :raises compute_notify.exception.InvalidOption: ``routing_config`` names
        no file, or one that holds no routes.
    """
    conf.register_opt(_impl_routing.router_config, group=_GROUP)
    try:
        with open(conf[_GROUP].routing_config) as stream:
            groups = yaml.safe_load(stream)
        used = {name for rules in groups.values() for name in rules}
    except (OSError, yaml.YAMLError, AttributeError, TypeError) as exc:
        raise exception.InvalidOption(
            group=_GROUP, option='routing_config',
            reason=f'cannot be read: {exc}') from exc
    driver.routing_groups = groups
    driver.used_drivers = used
    driver.plugin_manager = dispatch.DispatchExtensionManager(
        namespace=driver.NOTIFIER_PLUGIN_NAMESPACE,
        check_func=driver._should_load_plugin, invoke_on_load=True,
        invoke_args=(conf,),
        invoke_kwds={'topics': topics, 'transport': transport})
