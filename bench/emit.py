# SPDX-License-Identifier: Apache-2.0
"""Build and emit one update: ours against Nova's own notification bases."""

from __future__ import annotations

from collections import abc
import contextlib
import json
import typing

import nova.conf
from nova import context as nova_context
from nova.notifications.objects import base as nova_base
from nova import objects as nova_objects
from nova.objects import base as nova_object
from nova.objects import fields as nova_fields
from nova import rpc
import oslo_messaging
from oslo_messaging import conffixture
from oslo_messaging.notify import _impl_test

from bench import rounds
from compute_notify import change
from compute_notify import context
from compute_notify import emitter
from compute_notify import payload
from tests import base

#: The stored row that is announced.
ROW: dict[str, typing.Any] = base.FULL | {
    'id': 1,
    'uuid': 'a6f3b1f0-5c2e-4c8c-9a0d-3c1c1f5d6e7a',
    'deleted': 0,
}

_FIFTH = 0.2


@nova_object.NovaObjectRegistry.register_notification
class ComputeNodePayload(nova_base.NotificationPayloadBase):
    """The same 18 fields, defined the way Nova defines a payload."""

    # Version 1.0: Initial version
    VERSION = '1.0'

    SCHEMA = {name: ('compute_node', name) for name in payload.PAYLOAD_FIELDS}

    fields = {
        'id': nova_fields.IntegerField(),
        'uuid': nova_fields.UUIDField(),
        'host': nova_fields.StringField(nullable=True),
        'vcpus': nova_fields.IntegerField(),
        'memory_mb': nova_fields.IntegerField(),
        'local_gb': nova_fields.IntegerField(),
        'vcpus_used': nova_fields.IntegerField(),
        'memory_mb_used': nova_fields.IntegerField(),
        'local_gb_used': nova_fields.IntegerField(),
        'hypervisor_type': nova_fields.StringField(),
        'hypervisor_version': nova_fields.IntegerField(),
        'hypervisor_hostname': nova_fields.StringField(nullable=True),
        'free_ram_mb': nova_fields.IntegerField(nullable=True),
        'free_disk_gb': nova_fields.IntegerField(nullable=True),
        'current_workload': nova_fields.IntegerField(nullable=True),
        'running_vms': nova_fields.IntegerField(nullable=True),
        'disk_available_least': nova_fields.IntegerField(nullable=True),
        'host_ip': nova_fields.IPAddressField(nullable=True),
    }

    def __init__(self, compute_node: nova_objects.ComputeNode) -> None:
        super().__init__()
        self.populate_schema(compute_node=compute_node)


@nova_object.NovaObjectRegistry.register_notification
class ComputeNodeNotification(nova_base.NotificationBase):
    """The notification around it."""

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        'payload': nova_fields.ObjectField('ComputeNodePayload'),
    }


def run(plan: rounds.Plan | None) -> abc.Iterator[str]:
    """Measure and return one table after another.

    :param plan: how much to measure, if not as much as is usual here.
    """
    plan = plan or rounds.Plan(rounds=15, batches=20, calls=40)
    with _nova_that_notifies() as transport:
        node = nova_objects.ComputeNode(**{
            name: ROW[name] for name in payload.PAYLOAD_FIELDS})
        yield _payload(node, plan)
        yield _whole(node, transport, plan)


@contextlib.contextmanager
def _nova_that_notifies() -> abc.Iterator[oslo_messaging.Transport]:
    nova_objects.register_all()
    conf = nova.conf.CONF
    conf([], project='nova', default_config_files=[], default_config_dirs=[])
    with conffixture.ConfFixture(conf, 'fake:/'):
        conf.set_override('driver', ['test'],
                          group='oslo_messaging_notifications')
        conf.set_override('notification_format', 'versioned',
                          group='notifications')
        rpc.init(conf)
        try:
            yield rpc.NOTIFICATION_TRANSPORT
        finally:
            rpc.cleanup()


def _payload(node: nova_objects.ComputeNode, plan: rounds.Plan) -> str:
    """Measure the payload from its source to its primitive."""
    what = change.Change(change.Action.UPDATE, ROW)

    def theirs(_: object) -> typing.Any:
        return ComputeNodePayload(node).obj_to_primitive()

    def ours(_: object) -> typing.Any:
        return payload.payload_for(what).obj_to_primitive()

    _require_equal(json.dumps(theirs(0), sort_keys=True),
                   json.dumps(ours(0), sort_keys=True))
    times = rounds.measure([
        rounds.Arm('Nova', theirs), rounds.Arm('ours', ours), _floor(node),
    ], plan)
    return rounds.table('Payload, from a node to the primitive', times, [
        rounds.Versus('ours', 'Nova'),
        rounds.Versus('ours', 'floor'),
    ])


def _floor(node: nova_objects.ComputeNode) -> rounds.Arm:
    """What no way can do without: read the values, write JSON."""
    def floor(_: object) -> str:
        return json.dumps({name: getattr(node, name)
                           for name in payload.PAYLOAD_FIELDS}, default=str)
    return rounds.Arm('floor', floor)


def _whole(node: nova_objects.ComputeNode,
           transport: oslo_messaging.Transport, plan: rounds.Plan) -> str:
    """Measure from a node to what the test driver has received."""
    arms = [_theirs(node, nova_context.get_admin_context()),
            _ours('ours', transport, context.get_admin_context()),
            _ours("ours, Nova's context", transport,
                  nova_context.get_admin_context()),
            _by_hand(node, transport), _floor(node)]
    received = []
    for arm in arms[:-1]:
        with arm.during():
            arm.call(0)
            received.append(_sent_last())
    _require_equal(*received)
    times = rounds.measure(arms, plan)
    return rounds.table(
        'Build and emit one update through the test driver', times, [
            rounds.Versus('ours', 'Nova', _FIFTH),
            rounds.Versus("ours, Nova's context", 'Nova', _FIFTH),
            rounds.Versus('ours, by hand', 'Nova'),
            rounds.Versus('ours', 'floor'),
        ])


@contextlib.contextmanager
def _forgetting() -> abc.Iterator[None]:
    """Let the test driver keep one batch only."""
    _impl_test.reset()
    try:
        yield
    finally:
        _impl_test.reset()


def _theirs(node: nova_objects.ComputeNode,
            request: nova_context.RequestContext) -> rounds.Arm:
    def emit(_: object) -> None:
        notification(node).emit(request)
    return rounds.Arm('Nova', emit, during=_forgetting)


def notification(node: nova_objects.ComputeNode) -> ComputeNodeNotification:
    """Return an update as a developer of Nova would make it."""
    return ComputeNodeNotification(
        priority='info',
        publisher=nova_base.NotificationPublisher(
            host=node.host, source='nova-compute'),
        event_type=nova_base.EventType(
            object='compute_node', action='update'),
        payload=ComputeNodePayload(node))


def _emitter(transport: oslo_messaging.Transport) -> emitter.Emitter:
    return emitter.Emitter(oslo_messaging.Notifier(
        transport, serializer=emitter.ContextSerializer()), host='cmp1')


def _ours(name: str, transport: oslo_messaging.Transport,
          request: typing.Any) -> rounds.Arm:
    """Return the way that a changed node takes, from the row recorded."""
    mine = _emitter(transport)
    what = change.Change(change.Action.UPDATE, ROW)

    def emit(_: object) -> None:
        mine.emit(request, what)
    return rounds.Arm(name, emit, during=_forgetting)


def _by_hand(node: nova_objects.ComputeNode,
             transport: oslo_messaging.Transport) -> rounds.Arm:
    """Return the way of a developer who writes it out as Nova does."""
    mine = _emitter(transport)
    request = context.get_admin_context()

    @contextlib.contextmanager
    def in_force() -> abc.Iterator[None]:
        emitter.IN_FORCE.configure(mine)
        emitter.serve_by_hand()
        try:
            with _forgetting():
                yield
        finally:
            emitter.IN_FORCE.configure(None)

    def emit(_: object) -> None:
        payload.ComputeNodeNotification(
            priority='info',
            publisher=payload.NotificationPublisher(host=node.host),
            event_type=payload.EventType(
                object='compute_node', action='update'),
            payload=payload.ComputeNodePayload(node)).emit(request)
    return rounds.Arm('ours, by hand', emit, during=in_force)


def _sent_last() -> str:
    """Return what the test driver has received last, but for id and time."""
    _, message, priority, _ = _impl_test.NOTIFICATIONS[-1]
    return json.dumps([priority, *(message[name] for name in (
        'publisher_id', 'event_type', 'priority', 'payload'))],
        sort_keys=True)


def _require_equal(first: str, *others: str) -> None:
    """Refuse to compare the speed of ways that do not do the same."""
    for other in others:
        if other != first:
            raise RuntimeError(f'not the same:\n{first}\n{other}')
