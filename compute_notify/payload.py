# SPDX-License-Identifier: Apache-2.0
"""The four notification objects of compute nodes, as Nova would define them.
"""

from __future__ import annotations

import types
import typing

from oslo_versionedobjects import base
from oslo_versionedobjects import fields

from compute_notify import change
from compute_notify import notification

# With these two the notifications can be built by hand.
EventType = notification.EventType
NotificationPublisher = notification.NotificationPublisher


@base.VersionedObjectRegistry.objectify
class ComputeNodePayload(notification.NotificationPayloadBase):
    """A compute node as it is after a create or an update.

    memory_mb, memory_mb_used and free_ram_mb are MiB; local_gb,
    local_gb_used, free_disk_gb and disk_available_least are GiB. The free
    ones may be negative on an overcommitted node. Left out on purpose:
    cpu_info, stats and allocation ratios (large, or placement's to tell) and
    anything secret.

    :param compute_node: a ComputeNode, this library's or Nova's.
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    SCHEMA = {
        'id': ('compute_node', 'id'),
        'uuid': ('compute_node', 'uuid'),
        'host': ('compute_node', 'host'),
        'vcpus': ('compute_node', 'vcpus'),
        'memory_mb': ('compute_node', 'memory_mb'),
        'local_gb': ('compute_node', 'local_gb'),
        'vcpus_used': ('compute_node', 'vcpus_used'),
        'memory_mb_used': ('compute_node', 'memory_mb_used'),
        'local_gb_used': ('compute_node', 'local_gb_used'),
        'hypervisor_type': ('compute_node', 'hypervisor_type'),
        'hypervisor_version': ('compute_node', 'hypervisor_version'),
        'hypervisor_hostname': ('compute_node', 'hypervisor_hostname'),
        'free_ram_mb': ('compute_node', 'free_ram_mb'),
        'free_disk_gb': ('compute_node', 'free_disk_gb'),
        'current_workload': ('compute_node', 'current_workload'),
        'running_vms': ('compute_node', 'running_vms'),
        'disk_available_least': ('compute_node', 'disk_available_least'),
        'host_ip': ('compute_node', 'host_ip'),
    }

    fields = {
        'id': fields.IntegerField(),
        'uuid': fields.UUIDField(),
        'host': fields.StringField(nullable=True),
        'vcpus': fields.IntegerField(),
        'memory_mb': fields.IntegerField(),
        'local_gb': fields.IntegerField(),
        'vcpus_used': fields.IntegerField(),
        'memory_mb_used': fields.IntegerField(),
        'local_gb_used': fields.IntegerField(),
        'hypervisor_type': fields.StringField(),
        'hypervisor_version': fields.IntegerField(),
        'hypervisor_hostname': fields.StringField(nullable=True),
        'free_ram_mb': fields.IntegerField(nullable=True),
        'free_disk_gb': fields.IntegerField(nullable=True),
        'current_workload': fields.IntegerField(nullable=True),
        'running_vms': fields.IntegerField(nullable=True),
        'disk_available_least': fields.IntegerField(nullable=True),
        'host_ip': fields.IPAddressField(nullable=True),
    }

    def __init__(self, compute_node: typing.Any) -> None:
        super().__init__()
        self.populate_schema(compute_node=compute_node)


@base.VersionedObjectRegistry.objectify
class ComputeNodeDeletePayload(notification.NotificationPayloadBase):
    """What is left of a deleted compute node: how it can be told apart.

    :param compute_node: a ComputeNode, this library's or Nova's.
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    SCHEMA = {
        'id': ('compute_node', 'id'),
        'uuid': ('compute_node', 'uuid'),
    }

    fields = {
        'id': fields.IntegerField(),
        'uuid': fields.UUIDField(),
    }

    def __init__(self, compute_node: typing.Any) -> None:
        super().__init__()
        self.populate_schema(compute_node=compute_node)


@base.VersionedObjectRegistry.objectify
class ComputeNodeNotification(notification.NotificationBase):
    """compute_node.create and compute_node.update."""

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        'payload': fields.ObjectField('ComputeNodePayload'),
    }


@base.VersionedObjectRegistry.objectify
class ComputeNodeDeleteNotification(notification.NotificationBase):
    """compute_node.delete."""

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        'payload': fields.ObjectField('ComputeNodeDeletePayload'),
    }


#: The names a payload has, in the order of the wire.
PAYLOAD_FIELDS = tuple(ComputeNodePayload.SCHEMA)


def publisher_id(row: change.Row, default_host: str) -> str:
    """Return whose change it is, as :class:`NotificationPublisher` has it.

    :param row: the node as stored.
    :param default_host: the host to name where the row names none.
    """
    host = row['host'] or row['hypervisor_hostname'] or default_host
    return f'nova-compute:{host}'


class StoredComputeNode(types.SimpleNamespace):
    """A stored row, read like the ComputeNode that it holds."""


def payload_for(what: change.Change) -> notification.NotificationPayloadBase:
    """Return the payload that a change calls for, populated from its row.

    :raises compute_notify.exception.PayloadFieldMissing: the row has no value
        where there must be one.
    """
    node = StoredComputeNode(**what.row)
    if what.action is change.Action.DELETE:
        return ComputeNodeDeletePayload(node)
    return ComputeNodePayload(node)
