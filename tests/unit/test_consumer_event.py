# SPDX-License-Identifier: Apache-2.0
"""Tests of what a consumer makes of a notification."""

import dataclasses
import datetime
import json

import oslo_messaging
import testscenarios

from compute_notify.consumer import endpoint
from compute_notify.consumer import event
from compute_notify import exception
from compute_notify import payload
from tests import base
from tests import outbox
from tests import service

load_tests = testscenarios.load_tests_apply_scenarios

_METADATA = {'message_id': '9c3c1f0a-0d0e-4a55-8a5c-1f5a0e8b7c11',
             'timestamp': '2026-11-30 12:00:00.123456'}


def parse(sample, **metadata):
    """Read a sample as if it had arrived."""
    return event.parse(sample['publisher_id'], sample['event_type'],
                       sample['payload'], _METADATA | metadata)


class TestParse(base.TestCase):

    scenarios = [(action, {'action': action})
                 for action in ('create', 'update', 'delete')]

    def setUp(self):
        super().setUp()
        self.sample = base.sample(self.action)
        self.data = self.sample['payload']['nova_object.data']

    def test_sample(self):
        """All that the notification says is there, typed."""
        found = parse(self.sample)
        self.assertEqual(
            (event.EventType(f'compute_node.{self.action}'),
             _METADATA['message_id'], 'nova-compute:cmp1', self.data['id'],
             self.data['uuid']),
            (found.event_type, found.message_id, found.publisher_id, found.id,
             found.uuid))
        self.assertEqual(
            datetime.datetime(2026, 11, 30, 12, 0, 0, 123456,
                              tzinfo=datetime.timezone.utc), found.timestamp)
        if self.action == 'delete':
            self.assertIsNone(found.node)
        else:
            self.assertEqual(self.data, {
                name: getattr(found.node, name) for name in self.data})
            self.assertEqual({}, dict(found.node.extra))

    def test_frozen(self):
        """Nobody can change it on its way."""
        found = parse(self.sample)
        self.assertRaises(dataclasses.FrozenInstanceError, setattr, found,
                          'uuid', 'x')

    def test_order_of_keys(self):
        """The order of keys means nothing."""
        turned = json.loads(json.dumps(self.sample), object_pairs_hook=(
            lambda pairs: dict(reversed(pairs))))
        self.assertNotEqual(list(self.sample), list(turned))
        self.assertEqual(parse(self.sample), parse(turned))

    def test_newer_minor(self):
        """A newer minor version with more fields is read."""
        before = parse(self.sample)
        self.sample['payload']['nova_object.version'] = '1.12'
        self.sample['payload']['nova_object.changes'] = []
        self.data['numa'] = {'cells': 2}
        found = parse(self.sample)
        self.assertEqual(before, found)
        if found.node:
            self.assertEqual({'numa': {'cells': 2}}, dict(found.node.extra))

    def test_other_major(self):
        """Another major version is an error that names both."""
        for version in '2.0', '10.1', '0.9':
            self.sample['payload']['nova_object.version'] = version
            exc = self.assertRaises(exception.NotificationVersion, parse,
                                    self.sample)
            self.assertIn(f'version {version} and this release knows 1.x',
                          str(exc))

    def test_unreadable(self):
        """Whatever else is wrong is an error that names the field."""
        for holder, key, values in (
                (self.sample, 'event_type', ('compute_node.updated', None)),
                (self.sample, 'publisher_id', (None, 7, '')),
                (self.sample, 'payload', (None, [], {})),
                (self.sample['payload'], 'nova_object.name',
                 ('ComputeNode', None)),
                (self.sample['payload'], 'nova_object.namespace',
                 ('compute_notify',)),
                (self.sample['payload'], 'nova_object.version', (None, 1.0)),
                (self.sample['payload'], 'nova_object.data', (None, 'x')),
                (self.data, 'id', (None, '1', 1.0, True)),
                (self.data, 'uuid', (None, 1))):
            before = holder[key]
            for value in values:
                holder[key] = value
                exc = self.assertRaises(exception.NotificationUnreadable,
                                        parse, self.sample)
                if key != 'payload':
                    self.assertIn(f'{key} is ', str(exc))
            holder[key] = before
        self.assertRaises(exception.NotificationUnreadable, parse,
                          self.sample, timestamp='yesterday')
        self.assertRaises(exception.NotificationUnreadable, parse,
                          self.sample, message_id=None)


class TestNode(base.TestCase):

    def test_fields(self):
        """A node has the fields of the payload, and what is unknown."""
        self.assertEqual(
            [*payload.PAYLOAD_FIELDS, 'extra'],
            [field.name for field in dataclasses.fields(event.Node)])

    def test_types(self):
        """Each is of the type, and may be null, as in the payload."""
        sample = base.sample('update')
        data = sample['payload']['nova_object.data']
        for name, field in payload.ComputeNodePayload.fields.items():
            before = data[name]
            data[name] = None
            if field.nullable:
                self.assertIsNone(getattr(parse(sample).node, name))
            else:
                self.assertRaises(exception.NotificationUnreadable, parse,
                                  sample)
            data[name] = 1.5
            exc = self.assertRaises(exception.NotificationUnreadable, parse,
                                    sample)
            self.assertIn(f'{name} is 1.5', str(exc))
            del data[name]
            exc = self.assertRaises(exception.NotificationUnreadable, parse,
                                    sample)
            self.assertIn(f'{name} is missing', str(exc))
            data[name] = before

    def test_huge(self):
        """Numbers of any size stay whole."""
        sample = base.sample('update')
        sample['payload']['nova_object.data'] |= {
            'running_vms': 2 ** 70, 'disk_available_least': -57}
        node = parse(sample).node
        self.assertEqual((2 ** 70, -57),
                         (node.running_vms, node.disk_available_least))


class TestEndpoint(service.TestCase):

    def setUp(self):
        super().setUp()
        self.events = []
        self.endpoint = endpoint.Endpoint(self.events.append, keep=2)

    def listen(self):
        conf = self.set_up(
            oslo_messaging_notifications='driver = messagingv2')
        transport = oslo_messaging.get_notification_transport(conf)
        self.addCleanup(transport.cleanup)
        listener = oslo_messaging.get_notification_listener(
            transport, [oslo_messaging.Target(
                exchange='nova', topic='versioned_notifications')],
            [self.endpoint], executor='threading')
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)
        listener.start()
        return oslo_messaging.Notifier(
            transport, 'nova-compute:cmp1', driver='messagingv2',
            topics=['versioned_notifications'])

    def wait_for(self, count):
        outbox.wait_until(lambda: len(self.events) >= count,
                          lambda: (self.events, self.logs.output))

    def test_listener(self):
        """It gets the library's own, whatever else is on the topic."""
        self.listen()
        node = self.live_once()
        self.wait_for(3)
        self.assertEqual(set(event.EventType),
                         {one.event_type for one in self.events})
        self.assertEqual({node.uuid}, {one.uuid for one in self.events})

    def test_filter(self):
        """Only the exact event types are its own."""
        rule = endpoint.Endpoint.filter_rule
        for event_type, own in (
                ('compute_node.create', True), ('compute_node.update', True),
                ('compute_node.delete', True),
                ('compute_node.create.start', False),
                ('my_compute_node.create', False),
                ('compute_node_create', False), ('instance.update', False)):
            self.assertEqual(own, rule.match({}, 'x', event_type, {}, {}))

    def test_unreadable(self):
        """What cannot be read is kept and counted, and the rest goes on."""
        sample = base.sample('update')
        arguments = [{}, sample['publisher_id'], sample['event_type'],
                     sample['payload'], _METADATA]
        for number in range(3):
            wrong = list(arguments)
            wrong[3] = {'number': number}
            self.assertIsNone(self.endpoint.info(*wrong))
        newer = list(arguments)
        newer[3] = sample['payload'] | {'nova_object.version': '2.0'}
        self.assertIsNone(self.endpoint.info(*newer))
        self.endpoint.info(*arguments[:4], None)
        self.endpoint.info(*arguments)
        self.assertEqual(1, len(self.events))
        self.assertEqual(5, self.endpoint.unreadable_count)
        kept, last = self.endpoint.unreadable
        self.assertEqual((_METADATA['message_id'], 'compute_node.update'),
                         (kept.message_id, kept.event_type))
        self.assertIsInstance(kept.error, exception.NotificationVersion)
        self.assertIsNone(last.message_id)
        self.assertIn('(5 so far)', self.logs.output)

    def test_handler_fails(self):
        """What the handler raises is for the listener to see."""
        sample = base.sample('delete')
        failing = endpoint.Endpoint({}.__getitem__)
        self.assertRaises(
            KeyError, failing.info, {}, sample['publisher_id'],
            sample['event_type'], sample['payload'], _METADATA)
