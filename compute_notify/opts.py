# SPDX-License-Identifier: Apache-2.0
"""The options: what they are called, what they mean, where they come from."""

from __future__ import annotations

import copy
from importlib import metadata

from oslo_config import cfg

GROUP = 'compute_notify'

_host_opt = cfg.StrOpt(
    'host',
    sample_default='<current_hostname>',
    help='The name of this host. A notification names the host of the compute '
         'node it is about; this one is named where a node has neither host '
         'nor hypervisor_hostname. Unset, it is what the machine calls '
         'itself. A service that defines the option, as Nova does, has its '
         'own.')

_compute_notify_opts = [
    cfg.ListOpt(
        'topics',
        default=['versioned_notifications'],
        help='The topics that each notification is sent to. With RabbitMQ a '
             'topic named "versioned_notifications" is the routing key '
             '"versioned_notifications.info". Give every consumer a topic of '
             'its own if they must not share messages; some consumers do not '
             'accept a topic with a dot in it. Which drivers send, and over '
             'which transport, is configured in '
             '[oslo_messaging_notifications].'),
    cfg.StrOpt(
        'exchange',
        default='nova',
        help='The exchange that notifications are sent through. Consumers of '
             'compute notifications listen on "nova"; change it only together '
             'with theirs. It concerns notifications alone and leaves the '
             "service's RPC where it is."),
    cfg.ListOpt(
        'extra_update_fields',
        default=[],
        help='More fields whose change is worth a compute_node.update, for '
             'example "memory_mb_used, host". Always watched are vcpus, '
             'memory_mb, local_gb, vcpus_used, local_gb_used, '
             'hypervisor_hostname, disk_available_least, running_vms and '
             'current_workload. Any field of the payload can be named; a busy '
             'one means more messages.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register this library's options on a service's configuration."""
    conf.register_opts(_compute_notify_opts, group=GROUP)


def register_host(conf: cfg.ConfigOpts) -> None:
    """Register ``host``, unless the service has one of its own already.

    Apart from the others, which a service may well register before its own.
    """
    try:
        conf.register_opt(_host_opt)
    except cfg.DuplicateOptError:
        pass


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return every option that the library reads, for the sample file.

    The options of the libraries that store, send and log are included, so
    that ``oslo-config-generator --namespace compute_notify`` gives one
    complete file. The entry point ``oslo.config.opts`` calls it.
    """
    theirs = [
        group
        for name in ('oslo.db', 'oslo.log', 'oslo.messaging')
        for entry in metadata.entry_points(group='oslo.config.opts', name=name)
        for group in entry.load()()
    ]
    return copy.deepcopy([
        (GROUP, _compute_notify_opts),
        (None, [_host_opt]),
        *theirs,
    ])
