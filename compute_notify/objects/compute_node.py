# SPDX-License-Identifier: Apache-2.0
"""ComputeNode: a hypervisor, its capacity and its usage, as last reported."""

from __future__ import annotations

from collections import abc
import typing

from oslo_db import exception as db_exc
from oslo_serialization import jsonutils
from oslo_utils import uuidutils
from oslo_versionedobjects import base as ovo_base
from oslo_versionedobjects import fields

from compute_notify.db import api
from compute_notify.db import models
from compute_notify import emitter
from compute_notify import exception
from compute_notify import hook
from compute_notify.objects import base
from compute_notify import payload
from compute_notify import recorder

#: Sees the rows of our table being written.
RECORDER = recorder.Recorder(models.ComputeNode,
                             (*payload.PAYLOAD_FIELDS, 'deleted'))
RECORDER.listen()

_announcing = hook.announcing(RECORDER, emitter.IN_FORCE.current)


@base.VersionedObjectRegistry.register
class ComputeNode(base.Persistent, base.Object):
    """One compute node.

    memory_mb, memory_mb_used and free_ram_mb are MiB; local_gb,
    local_gb_used, free_disk_gb and disk_available_least are GiB. The free
    ones may be negative on an overcommitted node. Assigning a value that does
    not fit its field raises o.vo's own ValueError or TypeError there and
    then.
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields: dict[str, typing.Any] = {
        'id': fields.IntegerField(read_only=True),
        'uuid': fields.UUIDField(read_only=True),
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
        'cpu_info': fields.StringField(nullable=True),
        'stats': fields.DictOfNullableStringsField(nullable=True),
        'cpu_allocation_ratio': fields.FloatField(nullable=True),
        'ram_allocation_ratio': fields.FloatField(nullable=True),
        'disk_allocation_ratio': fields.FloatField(nullable=True),
    }

    @classmethod
    @base.remotable_class
    def get_by_id(cls, context: typing.Any, compute_id: int) -> ComputeNode:
        """Return the node with this id.

        :raises compute_notify.exception.ComputeHostNotFound: there is none.
        """
        return cls._get(context, id=compute_id)

    @classmethod
    @base.remotable_class
    def get_by_uuid(cls, context: typing.Any,
                    compute_uuid: str) -> ComputeNode:
        """Return the node with this uuid.

        :raises compute_notify.exception.ComputeHostNotFound: there is none.
        """
        return cls._get(context, uuid=compute_uuid)

    @classmethod
    @base.remotable_class
    def get_by_host_and_nodename(cls, context: typing.Any, host: str,
                                 nodename: str) -> ComputeNode:
        """Return a host's node with this hypervisor_hostname.

        :raises compute_notify.exception.ComputeHostNotFound: there is none.
        """
        return cls._get(context, host=host, hypervisor_hostname=nodename)

    @classmethod
    @base.remotable_class
    def get_by_nodename(cls, context: typing.Any,
                        hypervisor_hostname: str) -> ComputeNode:
        """Return the node with this hypervisor_hostname.

        :raises compute_notify.exception.ComputeHostNotFound: there is none.
        """
        return cls._get(context, hypervisor_hostname=hypervisor_hostname)

    @classmethod
    def _get(cls, context: typing.Any, **filters: typing.Any) -> ComputeNode:
        return cls(context)._from_row(api.compute_node_get(context, **filters))

    @base.remotable
    @_announcing
    def create(self) -> None:
        """Store the node; announced as compute_node.create.

        A deleted node with the same uuid comes back, with its id.

        :raises compute_notify.exception.ObjectActionError: it has an id, so
            it is stored already, or a mandatory field is not set.
        :raises compute_notify.exception.DuplicateRecord: a live node has its
            uuid, or its host and hypervisor_hostname.
        """
        if self.obj_attr_is_set('id'):
            raise exception.ObjectActionError(
                node=self._name(), action='create', reason='already created')
        missing = [name for name, field in self.fields.items()
                   if not field.nullable and not self.obj_attr_is_set(name)
                   and name not in ('id', 'uuid', 'deleted')]
        if missing:
            raise exception.ObjectActionError(
                node=self._name(), action='create',
                reason=f'not set: {", ".join(missing)}')
        if not self.obj_attr_is_set('uuid'):
            self.uuid = uuidutils.generate_uuid()
        try:
            row = api.compute_node_create(self._context, self._changes())
        except db_exc.DBDuplicateEntry as exc:
            raise exception.DuplicateRecord(
                target=f'compute node {self._name()}') from exc
        self._from_row(row)

    @base.remotable
    @_announcing
    def save(self) -> None:
        """Store what was assigned; announced if a tracked field differs.

        An update is announced if a tracked field has another value in the
        table than before, a create if the node was deleted and is no longer.

        :raises compute_notify.exception.ComputeHostNotFound: it is not
            stored, or deleted and the context does not read deleted nodes.
        :raises compute_notify.exception.DuplicateRecord: another live node
            has its new host and hypervisor_hostname.
        :raises compute_notify.exception.ObjectActionError: it was given
            another uuid than the stored one.
        """
        try:
            row = api.compute_node_update(self._context, self.id,
                                          self._changes())
        except db_exc.DBDuplicateEntry as exc:
            raise exception.DuplicateRecord(
                target=f'compute node {self._name()}') from exc
        self._from_row(row)

    @base.remotable
    @_announcing
    def destroy(self) -> None:
        """Delete the node, softly; announced as compute_node.delete.

        :raises compute_notify.exception.ComputeHostNotFound: it is not
            stored, or deleted and the context does not read deleted nodes.
        :raises compute_notify.exception.ObjectActionError: its host is set
            and the stored node belongs to another one by now.
        """
        host = self.host or None if self.obj_attr_is_set('host') else None
        try:
            api.compute_node_delete(self._context, self.id, host=host)
        except exception.HostChanged as exc:
            raise exception.ObjectActionError(
                node=self._name(), action='destroy',
                reason='host changed') from exc

    def _name(self) -> str:
        """Return what an error message calls this node."""
        names = [str(getattr(self, name))
                 for name in ('hypervisor_hostname', 'uuid', 'id')
                 if self.obj_attr_is_set(name)]
        return ':'.join(names) or 'without a name'

    def _changes(self) -> dict[str, typing.Any]:
        """Return what was assigned, as the columns hold it."""
        values = self.obj_get_changes()
        values.pop('id', None)
        for name, convert in (('stats', jsonutils.dumps), ('host_ip', str)):
            if values.get(name) is not None:
                values[name] = convert(values[name])
        return values

    def _from_row(self, row: models.ComputeNode) -> ComputeNode:
        """Take every field from a stored row; nothing counts as changed."""
        for name in self.fields:
            value = row[name]
            if name == 'stats' and value is not None:
                value = jsonutils.loads(value)
            setattr(self, name, value)
        self.obj_reset_changes()
        return self


@base.VersionedObjectRegistry.register
class ComputeNodeList(  # o.vo's class became generic only in 2026
        ovo_base.ObjectListBase, base.Object):  # type: ignore[type-arg]
    """Compute nodes in the order of their ids."""

    # Version 1.0: Initial version
    #              ComputeNode <= version 1.0
    VERSION = '1.0'

    fields = {
        'objects': fields.ListOfObjectsField('ComputeNode'),
    }

    child_versions = {'1.0': '1.0'}

    @classmethod
    @base.remotable_class
    def get_all(cls, context: typing.Any) -> ComputeNodeList:
        """Return all nodes, which may be none."""
        return cls._get_all(context)

    @classmethod
    @base.remotable_class
    def get_all_by_host(cls, context: typing.Any,
                        host: str) -> ComputeNodeList:
        """Return the nodes of a host.

        :raises compute_notify.exception.ComputeHostNotFound: it has none.
        """
        nodes = cls._get_all(context, host=host)
        if not nodes:
            raise exception.ComputeHostNotFound(host=host)
        return nodes

    @classmethod
    @base.remotable_class
    def get_all_by_uuids(cls, context: typing.Any,
                         compute_uuids: abc.Sequence[str]) -> ComputeNodeList:
        """Return the nodes with these uuids; unknown ones are left out."""
        return cls._get_all(context, uuid=list(compute_uuids))

    @classmethod
    def _get_all(cls, context: typing.Any,
                 **filters: typing.Any) -> ComputeNodeList:
        rows = api.compute_node_get_all(context, **filters)
        nodes = cls(context, objects=[ComputeNode(context)._from_row(row)
                                      for row in rows])
        nodes.obj_reset_changes()
        return nodes
