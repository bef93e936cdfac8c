# SPDX-License-Identifier: Apache-2.0
"""The notification objects: the wire contract and the errors."""

import json
import types
from unittest import mock

import fixtures
from oslo_versionedobjects import base as ovo_base
from oslo_versionedobjects import fixture as ovo_fixture
import testtools

from compute_notify import change
from compute_notify import exception
from compute_notify import fixture
from compute_notify import notification
from compute_notify import objects
from compute_notify import payload
from tests import base

_UUID = '4f2ed0c2-8d5c-4c8c-9f0a-6f6f5f0c1d11'

#: Taken on Nova's own bases with Nova's own test; SCHEMA is part of them.
_FINGERPRINTS = {
    'ComputeNodeNotification': '1.0-a73147b93b520ff0061865849d3dfa56',
    'ComputeNodeDeleteNotification': '1.0-a73147b93b520ff0061865849d3dfa56',
    'ComputeNodePayload': '1.0-0d8671d3c280348076edfa524743cdf8',
    'ComputeNodeDeletePayload': '1.0-ef5581b2c7bc49cd14906af05096bfa3',
}

_NULLABLE = ('host', 'hypervisor_hostname', 'free_ram_mb', 'free_disk_gb',
             'current_workload', 'running_vms', 'disk_available_least',
             'host_ip')


def _node(**values):
    return objects.ComputeNode(id=7, uuid=_UUID, **(base.FULL | values))


def _data(node):
    primitive = payload.ComputeNodePayload(node).obj_to_primitive()
    return primitive['nova_object.data']


class TestContract(testtools.TestCase):

    def test_fingerprints(self):
        """The four classes are what they would be inside Nova.

        If this fails you changed a payload: bump VERSION, and with it the
        sample, the schema and the documentation.
        """
        def with_schema(cls):
            schema = getattr(cls, 'SCHEMA', None)
            return (sorted(schema.items()),) if schema else ()

        checker = ovo_fixture.ObjectVersionChecker(
            {name: [getattr(payload, name)] for name in _FINGERPRINTS})
        self.assertEqual(_FINGERPRINTS,
                         checker.get_hashes(extra_data_func=with_schema))

    def test_primitive(self):
        """The primitive has Nova's four keys and no list of changes."""
        primitive = payload.ComputeNodePayload(_node()).obj_to_primitive()
        self.assertEqual({
            'nova_object.name': 'ComputeNodePayload',
            'nova_object.namespace': 'nova',
            'nova_object.version': '1.0',
            'nova_object.data': {'id': 7, 'uuid': _UUID} | base.FULL,
        }, primitive)

    def test_primitive_is_what_ovo_makes(self):
        """The short way to a primitive gives what o.vo's own way gives."""
        short = payload.ComputeNodePayload(_node())
        self.assertEqual(
            ovo_base.VersionedObject.obj_to_primitive(short),
            short.obj_to_primitive())
        short.vcpus = 3
        self.assertEqual(
            ['vcpus'], short.obj_to_primitive()['nova_object.changes'])

    def test_delete_payload(self):
        """A delete carries id and uuid, and needs nothing else."""
        partly = objects.ComputeNode(id=7, uuid=_UUID)
        primitive = payload.ComputeNodeDeletePayload(
            partly).obj_to_primitive()
        self.assertEqual('ComputeNodeDeletePayload',
                         primitive['nova_object.name'])
        self.assertEqual({'id': 7, 'uuid': _UUID},
                         primitive['nova_object.data'])

    def test_unset_nullable_fields_are_null(self):
        """All 18 keys are there; what is unset is null, never 0."""
        node = objects.ComputeNode(id=7, uuid=_UUID, **{
            name: value for name, value in base.FULL.items()
            if name not in _NULLABLE})
        data = _data(node)
        self.assertEqual(18, len(data))
        self.assertEqual({name: None for name in _NULLABLE},
                         {name: data[name] for name in _NULLABLE})

    def test_integers_stay_integers(self):
        """Negative and huge integers arrive as they are."""
        for number in (-57, 0, 2 ** 63, -2 ** 70):
            node = _node(local_gb=number, free_ram_mb=number)
            text = json.dumps(_data(node), allow_nan=False)
            self.assertEqual([number, number],
                             [json.loads(text)[name]
                              for name in ('local_gb', 'free_ram_mb')])

    def test_addresses_are_canonical(self):
        """An address is a canonical string, or null."""
        self.assertEqual('2001:db8::1',
                         _data(_node(host_ip='2001:DB8::0001'))['host_ip'])
        self.assertIsNone(_data(_node(host_ip=None))['host_ip'])
        self.assertRaises(ValueError, _node, host_ip='fe80::1%eth0')

    def test_not_in_the_global_registry(self):
        """No class of ours is in the process's one o.vo registry."""
        ours = [cls for classes
                in ovo_base.VersionedObjectRegistry.obj_classes().values()
                for cls in classes
                if cls.__module__.startswith('compute_notify')]
        self.assertEqual([], ours)

    def test_schema_names_fields_of_both_sides(self):
        """SCHEMA fills every field, from one of the same name."""
        for cls in (payload.ComputeNodePayload,
                    payload.ComputeNodeDeletePayload):
            self.assertEqual(
                {name: ('compute_node', name) for name in cls.fields},
                cls.SCHEMA)
            self.assertEqual(
                set(), set(cls.fields) - set(objects.ComputeNode.fields))


class TestErrors(testtools.TestCase):

    def test_missing_value(self):
        """A required value that is unset names object, field and payload."""
        node = objects.ComputeNode(id=7, uuid=_UUID)
        error = self.assertRaises(exception.PayloadFieldMissing,
                                  payload.ComputeNodePayload, node)
        self.assertEqual(
            'ComputeNodePayload.vcpus cannot be filled: ComputeNode.vcpus is '
            'not set and the field is not nullable.', str(error))

    def test_null_value(self):
        """None where a value is required is the same error."""
        row = types.SimpleNamespace(
            **({'id': 7, 'uuid': _UUID} | base.FULL | {'vcpus': None}))
        self.assertRaises(exception.PayloadFieldMissing,
                          payload.ComputeNodePayload, row)

    def test_wrong_source(self):
        """A source without the field is told apart from an unset field."""
        error = self.assertRaises(exception.PayloadSourceInvalid,
                                  payload.ComputeNodeDeletePayload, object())
        self.assertEqual('ComputeNodeDeletePayload.id cannot be filled: '
                         'object has no field id.', str(error))

    def test_wrong_value(self):
        """A value that does not fit is o.vo's own error."""
        row = types.SimpleNamespace(
            **({'id': 7, 'uuid': _UUID} | base.FULL | {'vcpus': 'many'}))
        self.assertRaises(ValueError, payload.ComputeNodePayload, row)

    def test_unknown_action(self):
        """An event type knows its actions."""
        self.assertRaises(ValueError, payload.EventType, 'compute_node',
                          'explode')


class TestPublisher(testtools.TestCase):

    def _publisher_id(self, host, hostname):
        row = {'host': host, 'hypervisor_hostname': hostname}
        return payload.publisher_id(row, 'ctl1')

    def test_host_of_the_node(self):
        """The publisher is the node's host, whatever process sends."""
        self.assertEqual('nova-compute:cmp7',
                         self._publisher_id('cmp7', 'n7'))
        self.assertEqual(
            'nova-compute:cmp7',
            payload.NotificationPublisher(host='cmp7').publisher_id)

    def test_no_host(self):
        """Without a host it is the hypervisor_hostname, then CONF.host."""
        self.assertEqual('nova-compute:n7', self._publisher_id(None, 'n7'))
        self.assertEqual('nova-compute:ctl1', self._publisher_id(None, None))


class TestByHand(testtools.TestCase):
    """The classes as a Nova developer would use them."""

    def setUp(self):
        super().setUp()
        self.prepared = mock.Mock(spec_set=['info'])
        self.notifier = mock.Mock(spec_set=['prepare'])
        self.notifier.prepare.return_value = self.prepared
        self.useFixture(fixtures.MonkeyPatch(
            'compute_notify.notification.current_notifier',
            lambda: self.notifier))

    def _notification(self, body):
        return payload.ComputeNodeNotification(
            publisher=payload.NotificationPublisher(host='cmp1'),
            event_type=payload.EventType(object='compute_node',
                                         action='update'),
            priority='info', payload=body)

    def test_emit(self):
        """It sends through the Notifier in force, without changes."""
        body = payload.ComputeNodePayload(_node())
        self._notification(body).emit('a context')
        self.notifier.prepare.assert_called_once_with(
            publisher_id='nova-compute:cmp1')
        self.prepared.info.assert_called_once_with(
            'a context', 'compute_node.update', body.obj_to_primitive())

    def test_off(self):
        """Without a Notifier nothing is sent and nothing is raised."""
        self.useFixture(fixtures.MonkeyPatch(
            'compute_notify.notification.current_notifier', lambda: None))
        self._notification(payload.ComputeNodePayload(_node())).emit(None)
        self.prepared.info.assert_not_called()

    def test_not_populated(self):
        """A payload that was not filled is an exception, not an assert."""
        body = payload.ComputeNodePayload.__new__(payload.ComputeNodePayload)
        notification.NotificationPayloadBase.__init__(body)
        error = self.assertRaises(exception.PayloadNotPopulated,
                                  self._notification(body).emit, None)
        self.assertEqual('ComputeNodeNotification cannot be emitted: its '
                         'ComputeNodePayload is not populated.', str(error))


class TestByHandUnderFixtures(testtools.TestCase):

    def test_fixtures_that_overlap(self):
        """One that goes first leaves the other's notifier in force."""
        first, second = (fixture.NotificationFixture() for _ in range(2))
        first.setUp()
        self.useFixture(second)
        first.cleanUp()
        payload.ComputeNodeNotification(
            publisher=payload.NotificationPublisher(host='cmp1'),
            event_type=payload.EventType(object='compute_node',
                                         action='update'),
            priority='info',
            payload=payload.ComputeNodePayload(_node())).emit(None)
        self.assertEqual(
            ['compute_node.update'],
            [sent['event_type'] for sent in second.versioned_notifications])


class TestPayloadFor(testtools.TestCase):

    def test_class(self):
        """A delete has the small payload, the others the full one."""
        row = {'id': 7, 'uuid': _UUID, 'deleted': 0} | base.FULL
        self.assertEqual(
            ['ComputeNodePayload', 'ComputeNodePayload',
             'ComputeNodeDeletePayload'],
            [payload.payload_for(change.Change(action, row)).obj_name()
             for action in change.Action])
