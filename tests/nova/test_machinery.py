# SPDX-License-Identifier: Apache-2.0
"""On and off, once and where the row is written, and what it may not touch."""

import json
from unittest import mock

from nova.notifications.objects import base as notification_base
from nova import objects
from nova.objects import base as objects_base
from nova.objects import fields
from nova import rpc
from nova.tests import fixtures as nova_fixtures
from oslo_messaging.notify import _impl_test
from oslo_utils import uuidutils
from oslo_versionedobjects import fixture as ovo_fixture

from compute_notify import hook
from compute_notify.nova import patch
from compute_notify import payload
from tests import base as tests_base
from tests.nova import base


class TestOff(base.NovaTestCase):
    """Off is off: no payload, no query, no error."""

    def setUp(self):
        super().setUp()
        self.compute_node = self.created()
        patched = mock.patch.object(payload, 'payload_for', autospec=True)
        self.built = patched.start()
        self.addCleanup(patched.stop)

    def _work(self):
        self.compute_node.vcpus += 1
        self.compute_node.save()
        self.node(hypervisor_hostname=uuidutils.generate_uuid()).create()

    def _assert_off(self):
        self._work()
        self.compute_node.destroy()
        self.assertEqual([], self.actions())
        self.built.assert_not_called()

    def test_on(self):
        """The other tests of this class can fail."""
        self._work()
        self.assertEqual(2, self.built.call_count)

    def test_unversioned(self):
        """Nova's default format sends nothing."""
        self.flags(notification_format='unversioned', group='notifications')
        self._assert_off()

    def test_drivers(self):
        """No driver, noop, a misspelt one, ours alone: nothing is built."""
        self.flags(notification_format='versioned', group='notifications')
        for drivers in ([], ['noop'], ['mesagingv2'], ['compute_notify'],
                        ['compute_notify', 'noop']):
            self.flags(driver=drivers, group='oslo_messaging_notifications')
            rpc.init(rpc.CONF)
            self._work()
        self._assert_off()

    def test_before_init(self):
        """Before rpc.init and after rpc.cleanup a node is saved as ever."""
        self.stub_out('nova.rpc.NOTIFIER', None)
        self._work()
        self.compute_node.destroy()
        self.built.assert_not_called()

    def test_no_query_when_off(self):
        """Off, the statements are those of an unpatched Nova."""
        self.flags(notification_format='unversioned', group='notifications')
        with_hook = self.statements(self._everything)
        patch.uninstall()
        without = self.statements(self._everything)
        self.assertEqual(without, with_hook)

    def _everything(self):
        node = self.node(hypervisor_hostname=uuidutils.generate_uuid())
        node.create()
        node.vcpus += 1
        node.save()
        node.destroy()


class TestFormats(base.NovaTestCase):

    def test_versioned_and_both(self):
        """With a real Notifier each event goes out once, in both formats."""
        self.flags(driver=['test', 'compute_notify'],
                   group='oslo_messaging_notifications')
        for name in ('versioned', 'both'):
            self.flags(notification_format=name, group='notifications')
            rpc.init(rpc.CONF)
            _impl_test.reset()
            self.node(hypervisor_hostname=name).create()
            self.assertEqual(
                [('compute_node.create', 'nova-compute:cmp1', 'INFO')],
                [(message['event_type'], message['publisher_id'], priority)
                 for _, message, priority, _ in _impl_test.NOTIFICATIONS])

    def test_credentials(self):
        """The token of the request is not in the message."""
        self.flags(driver=['test'], group='oslo_messaging_notifications')
        rpc.init(rpc.CONF)
        _impl_test.reset()
        self.context.auth_token = 's3cret'
        self.context.service_catalog = [{'endpoints': 's3cret'}]
        self.node().create()
        self.assertNotIn('s3cret', json.dumps(_impl_test.NOTIFICATIONS))


class TestQueries(base.NovaTestCase):
    """What noticing a change costs the database."""

    def _assert_added(self, expected, prepare, call):
        """Compare a call's statements with and without the hook."""
        things = [prepare(), prepare()]
        with_hook = self.statements(lambda: call(things[0]))
        patch.uninstall()
        without = self.statements(lambda: call(things[1]))
        self.assertEqual(expected, len(with_hook) - len(without))

    def _prepare(self):
        return self.created(hypervisor_hostname=uuidutils.generate_uuid())

    def test_create(self):
        """A create costs no query."""
        self._assert_added(
            0, lambda: self.node(
                hypervisor_hostname=uuidutils.generate_uuid()),
            lambda node: node.create())

    def test_save(self):
        """A save costs no query, whether it is announced or not."""
        def save(node):
            node.vcpus = 99
            node.save()
            node.save()

        self._assert_added(0, self._prepare, save)

    def test_destroy(self):
        """A destroy costs one."""
        self._assert_added(1, self._prepare, lambda node: node.destroy())

    def test_service_destroy(self):
        """A compute service's destroy costs one for all its nodes."""
        def prepare():
            host = uuidutils.generate_uuid()
            for name in ('n1', 'n2'):
                self.created(host=host, hypervisor_hostname=name)
            return self.service(host=host)

        self._assert_added(1, prepare, lambda service: service.destroy())


class _Conductor(ovo_fixture.FakeIndirectionAPI):
    """Runs a method as a conductor does: on a copy, with database access."""

    def __init__(self):
        super().__init__(objects_base.NovaObjectSerializer())

    def object_action(self, *args, **kwargs):
        with mock.patch.object(objects_base.NovaObject, 'indirection_api',
                               None):
            return super().object_action(*args, **kwargs)


class TestIndirection(base.NovaTestCase):

    def test_sent_where_the_row_is_written(self):
        """Through a conductor each change is sent once, not on this side."""
        node = self.created()
        self.useFixture(nova_fixtures.IndirectionAPIFixture(_Conductor()))
        remote = []

        def note(*args):
            remote.append(objects_base.NovaObject.indirection_api is None)
            return announce(*args)

        announce = hook.announce
        with mock.patch.object(hook, 'announce', autospec=True,
                               side_effect=note):
            node.vcpus = 99
            node.save()
            node.save()
            node.destroy()
        self.assertEqual({True}, set(remote))
        self.assertEqual(['update', 'delete'], self.actions())

    def test_serialized(self):
        """A node that was serialized before the save is announced once."""
        node = self.created()
        node.vcpus = 99
        serializer = objects_base.NovaObjectSerializer()
        there = serializer.deserialize_entity(
            self.context, serializer.serialize_entity(self.context, node))
        there.save()
        self.assertEqual(['update'], self.actions())


class TestFailure(base.NovaTestCase):

    def test_notifier_fails(self):
        """A failing notifier changes nothing but the log."""
        patch.set_strict(strict=False)
        node = self.created()
        for error in (RuntimeError, RecursionError, AssertionError):
            node.vcpus += 1
            with mock.patch.object(rpc.NOTIFIER, 'prepare', autospec=True,
                                   side_effect=error('s3cret')):
                node.save()
            self.assertEqual(set(), node.obj_what_changed())
            self.assertEqual(node.vcpus, self.copy_of(node).vcpus)
            lines = [line for line in self.stdlog.logger.output.splitlines()
                     if error.__name__ in line]
            self.assertEqual(1, len(lines))
            for word in ('compute_node.update', node.uuid):
                self.assertIn(word, lines[0])
            self.assertNotIn('s3cret', lines[0])


@objects_base.NovaObjectRegistry.register_if(False)
class ComputeNodePayload(notification_base.NotificationPayloadBase):
    """The blueprint's class on Nova's own base."""

    VERSION = '1.0'
    SCHEMA = dict(payload.ComputeNodePayload.SCHEMA)
    fields = {
        name: getattr(fields, f'{type(field).__name__}')(
            nullable=field.nullable)
        for name, field in payload.ComputeNodePayload.fields.items()}

    def __init__(self, compute_node):
        super().__init__()
        self.populate_schema(compute_node=compute_node)


class TestByHand(base.NovaTestCase):

    def test_emit(self):
        """A notification made by hand goes through Nova's notifier."""
        node = self.created()
        notification = payload.ComputeNodeNotification(
            publisher=payload.NotificationPublisher(host='cmp1'),
            event_type=payload.EventType(object='compute_node',
                                         action='update'),
            priority='info', payload=payload.ComputeNodePayload(node))
        notification.emit(self.context)
        self.assertEqual(['update'], self.actions())
        patch.uninstall()
        notification.emit(self.context)
        self.assertEqual([], self.actions())

    def test_strict(self):
        """With the fixture a failure to notify fails the test."""
        node = self.created()
        node.vcpus = 99
        with mock.patch.object(payload, 'payload_for', autospec=True,
                               side_effect=RuntimeError):
            self.assertRaises(RuntimeError, node.save)


class TestPayload(base.NovaTestCase):

    def test_equals_novas_own(self):
        """Byte for byte what the same class on Nova's base makes."""
        for values in (tests_base.MANDATORY, tests_base.FULL):
            self.node(**(values | {
                'hypervisor_hostname': uuidutils.generate_uuid()})).create()
            event, = self.events()
            node = objects.ComputeNode.get_by_uuid(
                self.context,
                event['payload']['nova_object.data']['uuid'])
            for made in (event['payload'],
                         payload.ComputeNodePayload(node).obj_to_primitive()):
                self.assertEqual(
                    json.dumps(ComputeNodePayload(node).obj_to_primitive()),
                    json.dumps(made))

    def test_samples(self):
        """The shipped samples are what Nova's own objects send."""
        node = self.node(uuid='09f9a1a2-0f0e-4d1c-8a7a-1c1c1c7f0b01',
                         **tests_base.FULL)
        node.create()
        node.vcpus_used = 4
        node.memory_mb_used = 8192
        node.free_ram_mb = 8192
        node.running_vms = 3
        node.save()
        node.destroy()
        self.assertEqual(
            [tests_base.sample(action)
             for action in ('create', 'update', 'delete')], self.events())
