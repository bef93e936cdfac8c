# SPDX-License-Identifier: Apache-2.0
"""The options: what they are called, what they mean, where they come from."""

from __future__ import annotations

import copy
from importlib import metadata
import os
import typing

from oslo_config import cfg

from compute_notify import exception

GROUP = 'compute_notify'
OUTBOX_GROUP = 'compute_notify_outbox'

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

_state_path_opt = cfg.StrOpt(
    'state_path',
    help='The directory that the service keeps its state in. A service that '
         'defines the option, as Nova does, has its own.')

_outbox_opts = [
    cfg.StrOpt(
        'path',
        sample_default='$state_path/compute-notify-outbox.sqlite',
        help='The file in which the notification driver "outbox" keeps what '
             'the broker has not confirmed, an absolute path on a local file '
             'system. Unset, it is compute-notify-outbox.sqlite in the '
             "service's state_path, or in /var/lib/compute-notify where "
             'there is no such option. Processes that share the file must '
             'send to the same broker: give those with another transport_url '
             'a file of their own.'),
    cfg.BoolOpt(
        'relay',
        default=True,
        help='Whether the processes that store notifications also relay them '
             'to the broker, one of them at a time. Switch it off where '
             '"compute-notify relay" runs as a service.'),
    cfg.IntOpt(
        'max_messages',
        default=100000, min=1,
        help='How many notifications may wait in the file, counted once for '
             'each topic. One of Nova takes 1 to 3 kB.'),
    cfg.IntOpt(
        'max_age',
        default=0, min=0,
        help='Seconds after which a notification that still waits is dropped. '
             '0 keeps all.'),
    cfg.StrOpt(
        'drop',
        default='oldest',
        choices=[('oldest', 'those that have waited longest'),
                 ('newest', 'those that come when the file is full')],
        help='Which notifications are dropped when max_messages wait. How '
             'many is counted, and logged once a minute.'),
    cfg.StrOpt(
        'durability',
        default='process',
        choices=[('process', 'a stored notification survives the end of the '
                             'process, however it ends'),
                 ('power', 'it survives the loss of power too; each one waits '
                           'for the disk')],
        help='What a stored notification survives.'),
    cfg.IntOpt(
        'memory_messages',
        default=10000, min=0,
        help='How many notifications a process keeps in memory while the file '
             'cannot be written, for example because the disk is full. They '
             'are written when it can be again, and lost if the process ends '
             'before that.'),
    cfg.IntOpt(
        'max_tries',
        default=3, min=1,
        help='After how many tries a notification that the broker refuses for '
             'what it is, one that is too large for example, is set aside. '
             '"compute-notify relay --list-failed" shows those. A broker that '
             'is away or full is waited for, however long it takes.'),
    cfg.IntOpt(
        'status_interval',
        default=600, min=0,
        help='Seconds between two lines in the log that say how many '
             'notifications wait and since when, how many were sent, dropped '
             'and set aside, and the last error. 0 logs none.'),
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


def register_state_path(conf: cfg.ConfigOpts) -> None:
    """Register ``state_path`` for a command that reads a service's file.

    Not for the service itself, which may well register its own later.
    """
    conf.register_opt(_state_path_opt)


def outbox_options(conf: cfg.ConfigOpts) -> dict[str, typing.Any]:
    """Return the outbox's options, with the path that is meant.

    :raises compute_notify.exception.InvalidOption: one has a value that it
        cannot have.
    """
    conf.register_opts(_outbox_opts, group=OUTBOX_GROUP)
    values = {}
    for option in _outbox_opts:
        try:
            values[option.dest] = conf[OUTBOX_GROUP][option.dest]
        except cfg.ConfigFileValueError as exc:
            raise exception.InvalidOption(
                group=OUTBOX_GROUP, option=option.name,
                reason=str(exc)) from exc
    path = values['path']
    if not path:
        try:
            state_path = conf.state_path
        except cfg.NoSuchOptError:
            state_path = None
        path = os.path.join(state_path or '/var/lib/compute-notify',
                            'compute-notify-outbox.sqlite')
    if not os.path.isabs(path):
        raise exception.InvalidOption(
            group=OUTBOX_GROUP, option='path',
            reason=f'must be an absolute path, not {path!r}')
    return values | {'path': path}


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
        (OUTBOX_GROUP, _outbox_opts),
        (None, [_host_opt]),
        *theirs,
    ])


def list_outbox_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return the outbox's options alone, for services of other projects.

    The namespace is ``compute_notify.outbox``.
    """
    return [(OUTBOX_GROUP, copy.deepcopy(_outbox_opts))]
