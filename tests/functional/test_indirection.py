# SPDX-License-Identifier: Apache-2.0
"""Tests of a compute service whose database is a conductor's alone."""

import pathlib
import subprocess
import sys
import tempfile
import threading

import fixtures
import oslo_messaging
import testscenarios

from compute_notify import context
from compute_notify.db import api
from compute_notify import exception
from compute_notify import fixture
from compute_notify import objects
from compute_notify.objects import base as objects_base
from compute_notify.objects import indirection
from tests import base
from tests.functional import broker
from tests import service

load_tests = testscenarios.load_tests_apply_scenarios

ALL = ['compute_node.create', 'compute_node.update', 'compute_node.delete']
TOP = pathlib.Path(__file__).parents[2]


class Conductor(fixtures.Fixture):
    """A conductor process with a database and notifications of its own.

    :param topic: the topic of its RPC server.
    :param notifications: the topic of its notifications.
    """

    def __init__(self, topic: str, notifications: str) -> None:
        super().__init__()
        self._topic = topic
        self._notifications = notifications

    def _setUp(self) -> None:
        folder = tempfile.mkdtemp()
        path = pathlib.Path(folder, 'conductor.conf')
        path.write_text(
            f'[DEFAULT]\n{broker.TRANSPORT_URL}\n'
            f'[database]\nconnection = sqlite:///{folder}/nodes\n'
            '[oslo_messaging_notifications]\ndriver = messagingv2\n'
            f'[compute_notify]\ntopics = {self._notifications}\n')
        self._process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m',
             'tests.functional.conductor', path, self._topic],
            cwd=TOP, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self._stop)
        # Should it hang, then its output ends here.
        timer = threading.Timer(broker.LONG, self._process.kill)
        timer.start()
        try:
            ready = self._process.stdout.readline()
        finally:
            timer.cancel()
        if ready != 'ready\n':
            raise AssertionError(
                f'The conductor says {ready!r}, not that it is ready:\n'
                f'{self._process.communicate()[1]}')

    def _stop(self) -> None:
        try:
            self._process.communicate(timeout=broker.LONG)
        except (subprocess.TimeoutExpired, ValueError):
            self._process.kill()
            self._process.communicate()
        broker.delete(self._topic, f'{self._topic}.conductor')


class TestIndirection(base.TestCase):

    # The ids of tests that need a server contain its name.
    scenarios = [('rabbitmq', {})]

    def setUp(self):
        super().setUp()
        self.assertIsNone(api.IN_FORCE.current())
        self.context = context.get_admin_context()
        self.host = broker.unique('host')
        topic, notifications = broker.unique('rpc'), broker.unique('topic')
        broker.require()
        self.spy = self.useFixture(broker.Spy())
        self.listener = self.useFixture(broker.Listener(notifications))
        self.useFixture(Conductor(topic, notifications))
        self.notifier = self.useFixture(fixture.NotificationFixture())
        transport = oslo_messaging.get_rpc_transport(
            service.configuration(
                DEFAULT=broker.TRANSPORT_URL,
                # Of the queue for replies, which nobody deletes, in seconds.
                oslo_messaging_rabbit='rabbit_transient_queues_ttl = 10'),
            allowed_remote_exmods=['compute_notify.exception'])
        self.addCleanup(transport.cleanup)
        self.useFixture(fixtures.MonkeyPatch(
            'compute_notify.objects.base.Object.indirection_api',
            indirection.ConductorAPI(transport, topic)))

    def node(self, **values):
        return objects.ComputeNode(
            self.context, **(base.FULL | {'host': self.host} | values))

    def assertSentByConductor(self, *event_types):
        """Assert that these were sent, once each, and none from here."""
        received = self.listener.wait_for(len(event_types))
        self.assertEqual(list(event_types),
                         [one.event_type for one in received])
        self.assertEqual(len(event_types),
                         len(self.spy.messages(self.host)))
        self.assertEqual([], self.notifier.versioned_notifications)
        return received

    def test_life(self):
        """Create, save and destroy work and are announced there, once."""
        node = self.node(stats={'a': '1'})
        self.assertIsNone(node.create())
        self.assertIsInstance(node.id, int)
        self.assertIsNotNone(node.created_at)
        self.assertEqual({}, node.obj_get_changes())
        node.vcpus = 16
        node.host_ip = '2001:db8::1'
        self.assertIsNone(node.save())
        self.assertEqual({}, node.obj_get_changes())
        self.assertIsNotNone(node.updated_at)
        node.save()
        self.assertIsNone(node.destroy())
        received = self.assertSentByConductor(*ALL)
        self.assertEqual(
            base.FULL | {'host': self.host, 'id': node.id, 'uuid': node.uuid,
                         'vcpus': 16, 'host_ip': '2001:db8::1'},
            received[1].payload['nova_object.data'])
        self.assertEqual(f'nova-compute:{self.host}',
                         received[2].publisher_id)

    def test_reading(self):
        """Every way to look nodes up gives what was stored."""
        node = self.node(stats={'a': '1', 'b': None})
        node.create()
        other = self.node(hypervisor_hostname='node2')
        other.create()
        for found in (
                objects.ComputeNode.get_by_id(self.context, node.id),
                objects.ComputeNode.get_by_uuid(self.context, node.uuid),
                objects.ComputeNode.get_by_host_and_nodename(
                    self.context, self.host, 'node1'),
                objects.ComputeNode.get_by_nodename(self.context, 'node1')):
            self.assertIs(objects.ComputeNode, type(found))
            self.assertEqual(node.obj_to_primitive(),
                             found.obj_to_primitive())
        for found in (
                objects.ComputeNodeList.get_all(self.context),
                objects.ComputeNodeList.get_all_by_host(
                    self.context, self.host),
                objects.ComputeNodeList.get_all_by_uuids(
                    self.context, [other.uuid, node.uuid])):
            self.assertIs(objects.ComputeNodeList, type(found))
            self.assertEqual([node.uuid, other.uuid],
                             [one.uuid for one in found])
        found[1].vcpus = 16
        found[1].save()
        self.assertSentByConductor(ALL[0], ALL[0], ALL[1])

    def test_read_deleted(self):
        """The conductor sees deleted nodes only if the context does."""
        node = self.node()
        node.create()
        node.destroy()
        self.assertEqual(
            0, len(objects.ComputeNodeList.get_all(self.context)))
        reader = context.get_admin_context(read_deleted='yes')
        found = objects.ComputeNode.get_by_id(reader, node.id)
        self.assertTrue(found.deleted)
        found.deleted = False
        found.deleted_at = None
        found.save()
        self.assertSentByConductor(ALL[0], ALL[2], ALL[0])

    def test_serialized(self):
        """An object that has travelled before its save makes one event."""
        self.node().create()
        serializer = objects_base.Serializer()
        node = objects.ComputeNode.get_by_nodename(self.context, 'node1')
        node.vcpus = 16
        for _ in range(2):
            node = serializer.deserialize_entity(
                self.context, serializer.serialize_entity(self.context, node))
        node.save()
        self.assertEqual(16, objects.ComputeNode.get_by_id(
            self.context, node.id).vcpus)
        self.assertSentByConductor(*ALL[:2])

    def test_stale_writer(self):
        """What counts is the row there, not what this side remembers."""
        first = self.node(vcpus_used=1)
        first.create()
        stale = objects.ComputeNode.get_by_id(self.context, first.id)
        first.vcpus_used = 6
        first.save()
        stale.vcpus_used = 1
        stale.save()
        received = self.assertSentByConductor(ALL[0], ALL[1], ALL[1])
        self.assertEqual([1, 6, 1], [
            one.payload['nova_object.data']['vcpus_used'] for one in received])

    def test_errors(self):
        """Errors are those of the method, and their text names the node."""
        node = self.node()
        node.create()
        copy = objects.ComputeNode.get_by_id(self.context, node.id)
        for error, text, call in (
                (exception.ObjectActionError, 'already created', node.create),
                (exception.DuplicateRecord, 'node1', self.node().create),
                (exception.ComputeHostNotFound, 'nowhere', lambda: (
                    objects.ComputeNode.get_by_nodename(
                        self.context, 'nowhere'))),
                (exception.ComputeHostNotFound, 'nobody', lambda: (
                    objects.ComputeNodeList.get_all_by_host(
                        self.context, 'nobody')))):
            self.assertIn(text, str(self.assertRaises(error, call)))
        node.host = f'{self.host}-other'
        node.save()
        gone = self.assertRaises(exception.ObjectActionError, copy.destroy)
        self.assertIn(f'node1:{node.uuid}:{node.id}', str(gone))
        self.assertIn('host changed', str(gone))
        node.destroy()
        gone = self.assertRaises(exception.ComputeHostNotFound, node.destroy)
        self.assertIn(str(node.id), str(gone))
        self.assertSentByConductor(ALL[0], ALL[2])

    def test_refused(self):
        """What is no remotable method is refused, and does nothing."""
        node = self.node()
        node.create()
        far = objects_base.Object.indirection_api
        for name in ('_from_row', 'obj_reset_changes', 'vcpus', 'nothing'):
            error = self.assertRaises(
                exception.ObjectActionError, far.object_action,
                self.context, node, name, (), {})
            self.assertIn(name, str(error))
        for name in ('_get', 'obj_from_primitive', '__init__'):
            error = self.assertRaises(
                exception.ObjectActionError, far.object_class_action_versions,
                self.context, 'ComputeNode', name, {'ComputeNode': '1.0'},
                (), {})
            self.assertIn(name, str(error))
        self.assertSentByConductor(ALL[0])
