# SPDX-License-Identifier: Apache-2.0
"""A notification as a consumer wants it: checked, typed and unchangeable."""

from __future__ import annotations

from collections import abc
import dataclasses
import datetime
import enum
import types
import typing

from oslo_utils import timeutils

from compute_notify import exception
from compute_notify import payload

#: The major version of the payloads that this release reads.
MAJOR = 1

_PREFIX = 'nova_object.'


class EventType(enum.Enum):
    """What happened, as the wire names it."""

    CREATE = 'compute_node.create'
    UPDATE = 'compute_node.update'
    DELETE = 'compute_node.delete'


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A compute node, as it was after a create or an update.

    Memory is in MiB, disk in GiB; the free ones may be negative. ``extra``
    holds what a newer minor version of the payload has besides.
    """

    id: int
    uuid: str
    host: str | None
    vcpus: int
    memory_mb: int
    local_gb: int
    vcpus_used: int
    memory_mb_used: int
    local_gb_used: int
    hypervisor_type: str
    hypervisor_version: int
    hypervisor_hostname: str | None
    free_ram_mb: int | None
    free_disk_gb: int | None
    current_workload: int | None
    running_vms: int | None
    disk_available_least: int | None
    host_ip: str | None
    extra: abc.Mapping[str, typing.Any] = dataclasses.field(
        default_factory=lambda: types.MappingProxyType({}), compare=False)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One notification.

    :ivar event_type: what happened.
    :ivar message_id: the same if the notification comes twice.
    :ivar publisher_id: ``nova-compute:`` and the host of the node.
    :ivar timestamp: when it was sent, with its time zone, UTC.
    :ivar id: the row's id.
    :ivar uuid: tells the node from every other.
    :ivar node: the node as it is now; None if it was deleted.
    """

    event_type: EventType
    message_id: str
    publisher_id: str
    timestamp: datetime.datetime
    id: int
    uuid: str
    node: Node | None


def parse(publisher_id: typing.Any, event_type: typing.Any,
          body: typing.Any, metadata: typing.Any) -> Event:
    """Read a notification from what oslo.messaging gives an endpoint.

    Keys may come in any order. Fields and minor versions that this release
    does not know are accepted.

    :param publisher_id: who sent it.
    :param event_type: one of :class:`EventType`.
    :param body: the payload.
    :param metadata: with ``message_id`` and ``timestamp``.
    :raises compute_notify.exception.NotificationVersion: the payload has
        another major version.
    :raises compute_notify.exception.NotificationUnreadable: anything else
        that is not as it should be; it names the field.
    """
    try:
        kind = EventType(event_type)
    except ValueError:
        raise exception.NotificationUnreadable(
            field='event_type', value=event_type) from None
    deleted = kind is EventType.DELETE
    data = _data(body, 'ComputeNodeDeletePayload' if deleted
                 else 'ComputeNodePayload')
    return Event(
        event_type=kind,
        message_id=_text(metadata, 'message_id'),
        publisher_id=_text({'publisher_id': publisher_id}, 'publisher_id'),
        timestamp=_time(metadata),
        id=_known(data, 'id'), uuid=_known(data, 'uuid'),
        node=None if deleted else _node(data))


def _data(body: typing.Any, name: str) -> abc.Mapping[str, typing.Any]:
    for key, expected in (('name', name), ('namespace', 'nova')):
        if _text(body, _PREFIX + key) != expected:
            raise exception.NotificationUnreadable(
                field=_PREFIX + key, value=body[_PREFIX + key])
    version = _text(body, f'{_PREFIX}version')
    if version.partition('.')[0] != str(MAJOR):
        raise exception.NotificationVersion(name=name, found=version,
                                            known=f'{MAJOR}.x')
    data = body.get(f'{_PREFIX}data')
    if not isinstance(data, abc.Mapping):
        raise exception.NotificationUnreadable(field=f'{_PREFIX}data',
                                               value=data)
    return data


def _node(data: abc.Mapping[str, typing.Any]) -> Node:
    return Node(
        **{name: _known(data, name) for name in payload.PAYLOAD_FIELDS},
        extra=types.MappingProxyType({
            name: value for name, value in data.items()
            if name not in payload.PAYLOAD_FIELDS}))


def _known(data: abc.Mapping[str, typing.Any], name: str) -> typing.Any:
    """Return a field's value, if it is of the field's type."""
    annotation = str(Node.__annotations__[name])
    wanted, *nullable = annotation.split(' | ')
    value = data.get(name, _MISSING)
    if value is None and nullable:
        return None
    # A bool is an int to Python, and to nobody else here.
    if (isinstance(value, bool)
            or not isinstance(value, {'int': int, 'str': str}[wanted])):
        raise exception.NotificationUnreadable(field=name, value=value)
    return value


def _text(holder: typing.Any, name: str) -> str:
    value = (holder.get(name, _MISSING) if isinstance(holder, abc.Mapping)
             else _MISSING)
    if not isinstance(value, str) or not value:
        raise exception.NotificationUnreadable(field=name, value=value)
    return value


def _time(metadata: typing.Any) -> datetime.datetime:
    text = _text(metadata, 'timestamp')
    try:
        # oslo.messaging writes UTC without saying so.
        return timeutils.normalize_time(
            timeutils.parse_isotime(text)).replace(
                tzinfo=datetime.timezone.utc)
    except ValueError:
        raise exception.NotificationUnreadable(
            field='timestamp', value=text) from None


class _Missing:
    def __repr__(self) -> str:
        return 'missing'


_MISSING = _Missing()
