# SPDX-License-Identifier: Apache-2.0
"""Tests of the way to a conductor and back, within one process."""

import contextlib
import datetime
import json
from unittest import mock

import fixtures
import oslo_messaging
from oslo_versionedobjects import exception as ovo_exception

from compute_notify import context
from compute_notify import exception
from compute_notify import objects
from compute_notify.objects import base as objects_base
from compute_notify.objects import indirection
from tests import base
from tests import service


@contextlib.contextmanager
def in_the_conductor():
    """Run a block where the objects do the work themselves."""
    with fixtures.MonkeyPatch(
            'compute_notify.objects.base.Object.indirection_api', None):
        yield


class Client:
    """An RPC client that goes no further than through the serializer."""

    def __init__(self):
        self.calls = []
        self._serializer = objects_base.Serializer()

    def _travelled(self, ctxt, value):
        sent = json.dumps(self._serializer.serialize_entity(ctxt, value))
        return self._serializer.deserialize_entity(ctxt, json.loads(sent))

    def call(self, ctxt, method, **kwargs):
        self.calls.append(kwargs['objmethod'])
        there = self._serializer.deserialize_context(json.loads(json.dumps(
            self._serializer.serialize_context(ctxt))))
        kwargs = {name: self._travelled(there, value)
                  for name, value in kwargs.items()}
        with in_the_conductor():
            try:
                result = getattr(indirection.ConductorEndpoint(), method)(
                    there, **kwargs)
            except oslo_messaging.ExpectedException as exc:
                raise exc.exc_info[1] from None
        return self._travelled(ctxt, result)


class Endpoint(indirection.ConductorEndpoint):
    """A conductor in the caller's process: it must not call itself."""

    def object_action(self, context, objinst, objmethod, args, kwargs):
        with in_the_conductor():
            return super().object_action(context, objinst, objmethod, args,
                                         kwargs)

    def object_class_action_versions(self, context, objname, objmethod,
                                     object_versions, args, kwargs):
        with in_the_conductor():
            return super().object_class_action_versions(
                context, objname, objmethod, object_versions, args, kwargs)


def transport():
    """Return an RPC transport, made as the documentation says."""
    return oslo_messaging.get_rpc_transport(
        service.configuration(DEFAULT='transport_url = fake://'),
        allowed_remote_exmods=['compute_notify.exception'])


class TestServer(base.NodeTestCase):

    def setUp(self):
        super().setUp()
        made = transport()
        self.addCleanup(made.cleanup)
        server = oslo_messaging.get_rpc_server(
            made, oslo_messaging.Target(topic=indirection.TOPIC, server='me'),
            [Endpoint()], executor='threading',
            serializer=objects_base.Serializer())
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        self.useFixture(fixtures.MonkeyPatch(
            'compute_notify.objects.base.Object.indirection_api',
            indirection.ConductorAPI(made)))

    def test_life(self):
        """A client and a server do with a configuration of their own."""
        node = self.node(stats={'a': '1'}, host_ip='192.0.2.7')
        node.create()
        node.vcpus = 16
        node.save()
        node.destroy()
        self.assertEqual(['create', 'update', 'delete'], self.actions())

    def test_expected_errors(self):
        """The conductor does not log what a caller may well cause."""
        self.assertRaises(
            exception.ComputeHostNotFound,
            objects.ComputeNode.get_by_nodename, self.context, 'nowhere')
        self.assertNotIn('Exception during message handling',
                         self.logs.output)


class TestIndirection(base.NodeTestCase):

    def setUp(self):
        super().setUp()
        self.client = Client()
        with mock.patch.object(oslo_messaging, 'get_rpc_client',
                               autospec=True, return_value=self.client):
            self.api = indirection.ConductorAPI(transport())
        self.useFixture(fixtures.MonkeyPatch(
            'compute_notify.objects.base.Object.indirection_api', self.api))

    def test_life(self):
        """Every change makes one call and one event."""
        node = self.node(stats={'a': '1'}, host_ip='192.0.2.7')
        node.create()
        self.assertEqual({}, node.obj_get_changes())
        node.vcpus = 16
        node.save()
        node.destroy()
        self.assertEqual(['create', 'save', 'destroy'], self.client.calls)
        self.assertEqual(['create', 'update', 'delete'], self.actions())

    def test_updates(self):
        """What the method set comes back, but for fractions of a second."""
        node = self.node()
        node.create()
        with in_the_conductor():
            stored = self.copy_of(node)
        for name in objects.ComputeNode.fields:
            value = getattr(stored, name)
            if isinstance(value, datetime.datetime):
                value = value.replace(microsecond=0)
            self.assertEqual(value, getattr(node, name), name)

    def test_only_what_changed_comes_back(self):
        """Fields that the method left alone are not sent back."""
        node = self.created()
        updates, result = self.api.object_action(
            self.context, node, 'save', (), {})
        self.assertIsNone(result)
        self.assertEqual([], updates['obj_what_changed'])
        self.assertEqual(
            {'obj_what_changed', 'updated_at'}, set(updates) - {'created_at'})

    def test_lists(self):
        """Lists and nodes arrive as the classes that they are."""
        node = self.created()
        for found in (
                objects.ComputeNodeList.get_all(self.context),
                objects.ComputeNodeList.get_all_by_host(self.context, 'cmp1'),
                objects.ComputeNodeList.get_all_by_uuids(
                    self.context, [node.uuid])):
            self.assertIs(objects.ComputeNodeList, type(found))
            self.assertIs(objects.ComputeNode, type(found[0]))
            self.assertEqual(node.uuid, found[0].uuid)
            self.assertEqual({}, found[0].obj_get_changes())

    def test_context(self):
        """The context arrives whole, read_deleted included."""
        node = self.created()
        node.destroy()
        self.assertRaises(exception.ComputeHostNotFound, self.copy_of, node)
        self.context = context.get_admin_context(read_deleted='only')
        self.assertTrue(self.copy_of(node).deleted)

    def test_errors(self):
        """Errors arrive as they were raised, with their text."""
        node = self.created()
        error = self.assertRaises(exception.ObjectActionError, node.create)
        self.assertEqual(
            f'Compute node node1:{node.uuid}:{node.id}: create failed '
            'because: already created', error.args[0])
        self.assertRaises(exception.DuplicateRecord, self.node().create)
        self.assertEqual([], self.actions())

    def test_serialized(self):
        """An object that has travelled before its save makes one event."""
        node = self.created()
        node.vcpus = 16
        serializer = objects_base.Serializer()
        node = serializer.deserialize_entity(
            self.context, serializer.serialize_entity(self.context, node))
        node.save()
        (action, data), = self.sent()
        self.assertEqual('update', action)
        self.assertEqual(16, data['vcpus'])

    def test_refused(self):
        """A name that is no remotable method of the object is refused."""
        unset = objects.ComputeNode(self.context)
        for name in ('_from_row', '_changes', 'obj_reset_changes', 'fields',
                     'nothing', 'vcpus', '__class__'):
            error = self.assertRaises(
                exception.ObjectActionError, self.api.object_action,
                self.context, unset, name, (), {})
            self.assertIn(name, str(error))
            self.assertIn('no such method', str(error))

    def test_class_method_refused(self):
        """A name that is no remotable class method is refused."""
        for name in ('_get', 'obj_from_primitive', 'nothing'):
            error = self.assertRaises(
                exception.ObjectActionError,
                self.api.object_class_action_versions, self.context,
                'ComputeNode', name, {'ComputeNode': '1.0'}, (), {})
            self.assertIn(name, str(error))


class TestVersions(base.NodeTestCase):

    def call(self, name, versions):
        return indirection.ConductorEndpoint().object_class_action_versions(
            self.context, name, 'get_all', versions, (), {})

    def test_known(self):
        """The result is in the versions that the caller knows."""
        self.created()
        answer = self.call('ComputeNodeList', {
            'ComputeNodeList': '1.0', 'ComputeNode': '1.0'})
        self.assertEqual('1.0', answer['compute_notify_object.version'])
        self.assertEqual('ComputeNodeList',
                         answer['compute_notify_object.name'])

    def test_newer(self):
        """A caller that is newer than the conductor is told so."""
        self.assertRaises(
            ovo_exception.IncompatibleObjectVersion, self.call,
            'ComputeNodeList', {'ComputeNodeList': '1.1'})

    def test_unknown(self):
        """An object that there is not is told by its name."""
        error = self.assertRaises(
            ovo_exception.UnsupportedObjectError, self.call, 'Instance',
            {'Instance': '1.0'})
        self.assertIn('Instance', str(error))
