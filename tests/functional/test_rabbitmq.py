# SPDX-License-Identifier: Apache-2.0
"""Tests of what reaches consumers over a real RabbitMQ, and of its absence.
"""

import logging
import socket
import time

import fixtures
import testscenarios

from compute_notify import context
from compute_notify import exception
from compute_notify import objects
from tests import base
from tests.functional import broker
from tests import service

load_tests = testscenarios.load_tests_apply_scenarios

ALL = ['compute_node.create', 'compute_node.update', 'compute_node.delete']


class CatalogContext(context.RequestContext):
    """A context that carries a service catalog, as Nova's does."""

    def __init__(self, *args, service_catalog=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.service_catalog = service_catalog

    def to_dict(self):
        return super().to_dict() | {'service_catalog': self.service_catalog}


class TestCase(service.TestCase):
    """A service whose notifications go to a topic that no other test has."""

    driver = 'messagingv2'

    def setUp(self):
        super().setUp()
        self.topic = broker.unique('topic')
        self.host = broker.unique('host')

    def set_up(self, **groups):
        defaults = {
            'DEFAULT': broker.TRANSPORT_URL,
            'oslo_messaging_notifications': f'driver = {self.driver}',
            'compute_notify': f'topics = {self.topic}',
        }
        return super().set_up(**(defaults | groups))


class TestRabbitMQ(TestCase):

    scenarios = [('messagingv2', {'driver': 'messagingv2'}),
                 ('messaging', {'driver': 'messaging'})]

    def setUp(self):
        super().setUp()
        broker.require()
        self.spy = self.useFixture(broker.Spy())
        self.listener = self.useFixture(broker.Listener(self.topic))

    def test_listener(self):
        """A listener receives each change once, exactly as contracted."""
        self.set_up()
        values = base.FULL | {'host': self.host}
        node = self.node(**values)
        node.create()
        node.vcpus_used = 3
        node.save()
        node.destroy()
        received = self.listener.wait_for(3)
        self.assertEqual(ALL, [one.event_type for one in received])
        named = {'id': node.id, 'uuid': node.uuid}
        for one, name, data in zip(
                received,
                ('ComputeNodePayload', 'ComputeNodePayload',
                 'ComputeNodeDeletePayload'),
                (values | named, values | named | {'vcpus_used': 3}, named),
                strict=True):
            self.assertEqual({
                'nova_object.name': name,
                'nova_object.namespace': 'nova',
                'nova_object.version': '1.0',
                'nova_object.data': data,
            }, one.payload)
            self.assertEqual(f'nova-compute:{self.host}', one.publisher_id)
            self.assertEqual({'message_id', 'timestamp'}, set(one.metadata))
        self.assertEqual(
            3, len({one.metadata['message_id'] for one in received}))

    def test_wire(self):
        """The routing key is <topic>.info, the priority INFO, no other."""
        self.set_up()
        self.live_once(host=self.host)
        self.listener.wait_for(3)
        messages = self.spy.messages(f'nova-compute:{self.host}')
        self.assertEqual([f'{self.topic}.info'] * 3,
                         [one.routing_key for one in messages])
        self.assertEqual(
            [('INFO', event_type) for event_type in ALL],
            [(one.notification['priority'], one.notification['event_type'])
             for one in messages])
        self.assertEqual(
            ['2.0' if self.driver == 'messagingv2' else None] * 3,
            [one.body.get('oslo.version') for one in messages])

    def test_awkward_values(self):
        """What is not ASCII, negative or null arrives as it was stored."""
        self.set_up()
        self.node(host=self.host, hypervisor_hostname='hôte-计算',
                  disk_available_least=-57, running_vms=2 ** 62,
                  host_ip='2001:DB8::0001').create()
        received, = self.listener.wait_for(1)
        data = received.payload['nova_object.data']
        self.assertEqual('hôte-计算', data['hypervisor_hostname'])
        self.assertEqual(-57, data['disk_available_least'])
        self.assertEqual(2 ** 62, data['running_vms'])
        self.assertEqual('2001:db8::1', data['host_ip'])
        self.assertIsNone(data['free_ram_mb'])

    def test_several_topics(self):
        """Each of several topics gets each notification once."""
        second = broker.unique('topic')
        other = self.useFixture(broker.Listener(second))
        self.set_up(compute_notify=f'topics = {self.topic}, {second}')
        self.live_once(host=self.host)
        for listener in self.listener, other:
            self.assertEqual(
                ALL, [one.event_type for one in listener.wait_for(3)])
        self.assertEqual(
            sorted([f'{self.topic}.info', f'{second}.info'] * 3),
            sorted(one.routing_key for one in self.spy.messages(self.host)))

    def test_unchanged(self):
        """Saves that change nothing tracked put nothing on the wire."""
        self.set_up()
        node = self.node(host=self.host)
        node.create()
        for _ in range(10):
            node.vcpus = node.vcpus
            node.memory_mb_used += 1
            node.save()
        self.assertEqual(1, len(self.spy.messages(self.host)))

    def test_credentials(self):
        """Token and catalog are in no message, and in no log at DEBUG."""
        logs = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        self.context = CatalogContext(
            auth_token='s3cret-token', request_id='req-1', user_id='me',
            service_catalog=[{'type': 'image', 'password': 's3cret-entry'}])
        self.set_up()
        self.live_once(host=self.host)
        for received in self.listener.wait_for(3):
            self.assertEqual('req-1', received.ctxt['request_id'])
            self.assertEqual('me', received.ctxt['user'])
            self.assertNotIn('s3cret', str(received))
        for message in self.spy.messages(self.host):
            self.assertNotIn('s3cret', str(message))
        self.assertNotEqual('', logs.output)
        self.assertNotIn('s3cret', logs.output)


class TestRabbitMQNames(TestCase):

    def setUp(self):
        super().setUp()
        broker.require()

    def test_defaults(self):
        """Stock options mean versioned_notifications.info on nova."""
        queue = 'versioned_notifications.info'
        if not broker.has_queue(queue):
            self.addCleanup(broker.delete, queue)
        self.addCleanup(broker.take_out, queue, self.host)
        spy = self.useFixture(broker.Spy('nova'))
        self.set_up(compute_notify='')
        self.live_once(host=self.host)
        self.assertEqual([queue] * 3,
                         [one.routing_key for one in spy.messages(self.host)])

    def test_exchange(self):
        """Another exchange is used alone; the service keeps its own."""
        theirs, ours = broker.unique('theirs'), broker.unique('ours')
        spy = self.useFixture(broker.Spy(ours))
        nova = self.useFixture(broker.Spy('nova'))
        listener = self.useFixture(broker.Listener(self.topic, exchange=ours))
        conf = self.set_up(
            DEFAULT=f'{broker.TRANSPORT_URL}\ncontrol_exchange = {theirs}',
            compute_notify=f'topics = {self.topic}\nexchange = {ours}')
        self.live_once(host=self.host)
        self.assertEqual(ALL,
                         [one.event_type for one in listener.wait_for(3)])
        self.assertEqual(3, len(spy.messages(self.host)))
        self.assertEqual([], nova.messages(self.host))
        self.assertEqual(theirs, conf.control_exchange)
        self.assertFalse(broker.has_exchange(theirs))

    def test_transport_of_its_own(self):
        """A transport for notifications alone is preferred to the RPC one."""
        listener = self.useFixture(broker.Listener(self.topic))
        self.set_up(
            DEFAULT='transport_url = fake://',
            oslo_messaging_notifications=(
                f'driver = messagingv2\n{broker.TRANSPORT_URL}'))
        self.live_once(host=self.host)
        self.assertEqual(ALL,
                         [one.event_type for one in listener.wait_for(3)])


class TestRabbitMQDown(TestCase):
    """A notification holds its call up no longer than the bound.

    Every notification that needs a new connection makes 1 + retry attempts,
    and waits 1, 3, 5, ... seconds in between. A closed port refuses an
    attempt at once; a port that accepts and then says nothing takes 5
    seconds, which is kombu's connect_timeout and no option of oslo.messaging.
    With retry = -1, the default, the first connection is tried once.
    """

    scenarios = [
        ('closed', {'silent': False, 'retry': 0, 'bound': 0}),
        ('closed, default', {'silent': False, 'retry': -1, 'bound': 0}),
        ('closed, one retry', {'silent': False, 'retry': 1, 'bound': 1}),
        ('silent', {'silent': True, 'retry': 0, 'bound': 5}),
    ]

    #: Seconds for everything else on a busy machine.
    MARGIN = 3

    def setUp(self):
        super().setUp()
        listening = socket.socket()
        self.addCleanup(listening.close)
        listening.bind(('127.0.0.1', 0))
        self.port = listening.getsockname()[1]
        if self.silent:
            listening.listen(100)
        self.debug = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))

    def in_time(self, call):
        before = time.monotonic()
        call()
        took = time.monotonic() - before
        self.assertLess(took, self.bound + self.MARGIN)
        self.assertGreaterEqual(took, self.bound)

    def stored(self, **read):
        node, = objects.ComputeNodeList.get_all(
            context.get_admin_context(**read))
        return node

    def test_down(self):
        """Every change is stored, in time; its loss is logged, no secret."""
        self.context = context.RequestContext(auth_token='s3cret-token')
        self.set_up(
            DEFAULT=f'transport_url = rabbit://me:s3cret@127.0.0.1:'
                    f'{self.port}/',
            oslo_messaging_notifications=(
                f'driver = messagingv2\nretry = {self.retry}'))
        objects.ComputeNodeList.get_all(self.context)  # makes the table
        node = self.node(host=self.host)
        self.in_time(node.create)
        self.assertEqual(node.uuid, self.stored().uuid)
        node.vcpus = 16
        self.in_time(node.save)
        self.assertEqual(16, self.stored().vcpus)
        self.in_time(node.destroy)
        self.assertRaises(
            exception.ComputeHostNotFound, objects.ComputeNode.get_by_id,
            self.context, node.id)
        self.assertTrue(self.stored(read_deleted='only').deleted)
        self.assertEqual({}, node.obj_get_changes())
        self.assertEqual(
            3, self.debug.output.count('Could not send notification'))
        self.assertNotIn('s3cret', self.debug.output)
