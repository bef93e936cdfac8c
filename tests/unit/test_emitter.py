# SPDX-License-Identifier: Apache-2.0
"""Tests of the emitter in production, where no failure reaches the caller."""

from unittest import mock

import fixtures
from oslo_context import context as oslo_context
import oslo_messaging
import sqlalchemy as sa
import testscenarios

import compute_notify
from compute_notify import change
from compute_notify import context
from compute_notify.db import api
from compute_notify import emitter
from compute_notify import exception
from compute_notify import fixture
from compute_notify import notification
from compute_notify import objects
from compute_notify import payload
from tests import base
from tests import service

load_tests = testscenarios.load_tests_apply_scenarios

ALL = ['compute_node.create', 'compute_node.update', 'compute_node.delete']


class TestNotificationFailed(service.TestCase):

    scenarios = [
        (error.__name__, {'error': error})
        for error in (RuntimeError, RecursionError, AssertionError)]

    def setUp(self):
        super().setUp()
        self.set_up(oslo_messaging_notifications='driver = test')
        self.stored = self.node(host='cmp2', hypervisor_hostname='node2')
        self.stored.create()
        service.forget()

    def assertOneLine(self, event, uuid):
        lines = self.logs.output.splitlines()
        self.assertEqual(1, len(lines), lines)
        self.assertIn(event, lines[0])
        self.assertIn(uuid, lines[0])
        self.assertIn(self.error.__name__, lines[0])
        for unwanted in ('what the error says', 'nova_object', 'node2',
                         'Traceback'):
            self.assertNotIn(unwanted, lines[0])

    def failing(self, target=oslo_messaging.Notifier, name='info'):
        self.useFixture(fixtures.MockPatchObject(
            target, name, autospec=True,
            side_effect=self.error('what the error says')))
        self.logs.reset_output()

    def test_create(self):
        """A create is stored although its notification failed."""
        self.failing()
        node = self.node(hypervisor_hostname='node3')
        self.assertIsNone(node.create())
        self.assertEqual({}, node.obj_get_changes())
        self.assertEqual(node.uuid, objects.ComputeNode.get_by_id(
            self.context, node.id).uuid)
        self.assertOneLine('compute_node.create', node.uuid)

    def test_save(self):
        """A save is stored although its notification failed."""
        self.failing()
        self.stored.vcpus = 16
        self.assertIsNone(self.stored.save())
        self.assertEqual({}, self.stored.obj_get_changes())
        self.assertEqual(16, objects.ComputeNode.get_by_id(
            self.context, self.stored.id).vcpus)
        self.assertOneLine('compute_node.update', self.stored.uuid)

    def test_destroy(self):
        """A destroy is stored although its notification failed."""
        self.failing()
        self.assertIsNone(self.stored.destroy())
        self.assertEqual({}, self.stored.obj_get_changes())
        self.assertRaises(
            exception.ComputeHostNotFound, objects.ComputeNode.get_by_id,
            self.context, self.stored.id)
        self.assertOneLine('compute_node.delete', self.stored.uuid)

    def test_payload(self):
        """A payload that cannot be built is contained in the same way."""
        self.failing(payload, 'payload_for')
        self.stored.vcpus = 16
        self.assertIsNone(self.stored.save())
        self.assertOneLine('compute_node.update', self.stored.uuid)
        self.assertEqual([], service.received())

    def test_serializer(self):
        """A context that cannot be serialized is contained too."""
        self.failing(context.RequestContext, 'to_dict')
        self.stored.vcpus = 16
        self.assertIsNone(self.stored.save())
        self.assertOneLine('compute_node.update', self.stored.uuid)

    def test_afterwards(self):
        """The next change is announced as if nothing had been."""
        with mock.patch.object(oslo_messaging.Notifier, 'info', autospec=True,
                               side_effect=self.error):
            self.stored.vcpus = 16
            self.stored.save()
        self.stored.vcpus = 17
        self.stored.save()
        message, = service.received()
        self.assertEqual(17, message['payload']['nova_object.data']['vcpus'])


class TestStockConfiguration(service.TestCase):

    scenarios = [
        ('unset', {'lines': '', 'expected': []}),
        ('noop', {'lines': 'driver = noop', 'expected': []}),
        ('misspelt', {'lines': 'driver = tset', 'expected': []}),
        ('noop and misspelt', {'lines': 'driver = noop\ndriver = tset',
                               'expected': []}),
        ('test', {'lines': 'driver = test', 'expected': ALL}),
        ('test and misspelt', {'lines': 'driver = test\ndriver = tset',
                               'expected': ALL}),
    ]

    def test_events_and_payloads(self):
        """No payload is built unless a driver sends it."""
        self.set_up(oslo_messaging_notifications=self.lines)
        with mock.patch.object(payload, 'payload_for', autospec=True,
                               side_effect=payload.payload_for) as build:
            self.live_once()
        self.assertEqual(self.expected, service.event_types())
        self.assertEqual(len(self.expected), build.call_count)

    def test_current_notifier(self):
        """The notifier is for by-hand notifications, while it would send."""
        self.set_up(oslo_messaging_notifications=self.lines)
        self.assertEqual(bool(self.expected),
                         notification.current_notifier() is not None)

    def test_warning(self):
        """A misspelt driver is named in a warning, and no other is."""
        self.set_up(oslo_messaging_notifications=self.lines)
        warnings = [line for line in self.logs.output.splitlines()
                    if 'there is no notification driver' in line]
        self.assertEqual(self.lines.count('tset'), len(warnings), warnings)
        for warning in warnings:
            self.assertIn('notification driver tset,', warning)

    def test_queries(self):
        """Announcing adds no query, on or off."""
        database = self.useFixture(fixture.DatabaseFixture()).database
        statements = []
        sa.event.listen(
            database.facade.writer.get_engine(), 'before_cursor_execute',
            lambda *args: statements.append(args[2]))
        self.live_once()
        without, statements[:] = list(statements), []
        self.set_up(oslo_messaging_notifications=self.lines)
        self.live_once(host='cmp2')
        self.assertNotEqual([], without)
        self.assertEqual(without, statements)


class TestSetup(service.TestCase):

    def test_never(self):
        """Without a setup nodes are stored, and nothing is announced."""
        self.useFixture(fixture.DatabaseFixture())
        self.assertIsNone(notification.current_notifier())
        node = self.live_once()
        self.assertIsInstance(node.id, int)
        self.assertEqual([], service.received())
        self.assertNotIn('was not sent', self.logs.output)

    def test_after_teardown(self):
        """After a teardown nodes are stored, and nothing is announced."""
        self.set_up(oslo_messaging_notifications='driver = test')
        compute_notify.teardown()
        self.useFixture(fixture.DatabaseFixture())
        self.assertIsNone(notification.current_notifier())
        self.live_once()
        self.assertEqual([], service.received())

    def test_teardown_forgets_the_database(self):
        """After a teardown there is no database either, and it says so."""
        self.set_up()
        compute_notify.teardown()
        self.assertRaises(exception.NotConfigured, self.node().create)

    def test_setup_twice(self):
        """A second setup sends once and closes what the first opened."""
        self.set_up(oslo_messaging_notifications='driver = test')
        first = emitter.current_notifier().transport
        with mock.patch.object(oslo_messaging.transport.Transport, 'cleanup',
                               autospec=True) as cleanup:
            self.set_up(oslo_messaging_notifications='driver = test')
            self.assertEqual([mock.call(first)], cleanup.mock_calls)
        self.live_once()
        self.assertEqual(ALL, service.event_types())

    def test_teardown_twice(self):
        """A second teardown does nothing."""
        self.set_up(oslo_messaging_notifications='driver = test')
        with mock.patch.object(oslo_messaging.transport.Transport, 'cleanup',
                               autospec=True) as cleanup:
            compute_notify.teardown()
            compute_notify.teardown()
        self.assertEqual(1, cleanup.call_count)

    def test_info_line(self):
        """One line at setup says whether anything will be sent."""
        self.set_up(oslo_messaging_notifications='driver = noop')
        self.assertIn('notifications are off; drivers: noop',
                      self.logs.output)
        self.set_up(oslo_messaging_notifications='driver = test')
        self.assertIn('notifications are on; drivers: test',
                      self.logs.output)

    def test_empty_driver(self):
        """A driver that is set to nothing is none, not a misspelt one."""
        self.set_up(oslo_messaging_notifications='driver =')
        self.assertNotIn('there is no notification driver', self.logs.output)
        self.assertIn('drivers: none', self.logs.output)

    def test_failed_setup(self):
        """A setup that fails leaves the earlier one in force."""
        self.set_up(oslo_messaging_notifications='driver = test')
        before = emitter.IN_FORCE.current(), api.IN_FORCE.current()
        for groups in ({'compute_notify': 'extra_update_fields = vcpu'},
                       {'compute_notify': 'exchange ='},
                       {'DEFAULT': 'transport_url = nonsense'}):
            self.assertRaises(exception.InvalidOption, self.set_up, **groups)
            self.assertEqual(
                before, (emitter.IN_FORCE.current(), api.IN_FORCE.current()))
        self.live_once()
        self.assertEqual(ALL, service.event_types())

    def test_failed_database(self):
        """A database option that is wrong leaves the earlier setup whole."""
        self.set_up(oslo_messaging_notifications='driver = test')
        before = emitter.IN_FORCE.current(), api.IN_FORCE.current()
        self.assertRaises(ValueError, self.set_up,
                          database='max_pool_size = many')
        self.assertEqual(
            before, (emitter.IN_FORCE.current(), api.IN_FORCE.current()))

    def test_exchange_of_the_service(self):
        """The service's own control exchange is left alone."""
        conf = self.set_up(
            DEFAULT='transport_url = fake://\ncontrol_exchange = svc')
        self.assertEqual('svc', conf.control_exchange)


class TestInvalidOption(service.TestCase):

    def refused(self, **groups):
        return str(self.assertRaises(exception.InvalidOption, self.set_up,
                                     **groups))

    def test_extra_update_fields(self):
        """An unknown field is refused by name, and all valid ones listed."""
        text = self.refused(
            compute_notify='extra_update_fields = vcpu, memory_mb_used')
        self.assertIn('[compute_notify] extra_update_fields', text)
        self.assertIn('no such payload field: vcpu.', text)
        for name in payload.PAYLOAD_FIELDS:
            self.assertIn(name, text.partition('Valid names')[2])

    def test_empty_topics(self):
        """No topic at all is refused."""
        self.assertIn('[compute_notify] topics: must not be empty',
                      self.refused(compute_notify='topics ='))

    def test_empty_topic(self):
        """A topic without a name among others is refused too."""
        self.assertIn('[compute_notify] topics',
                      self.refused(compute_notify='topics = a,,b'))

    def test_empty_exchange(self):
        """No exchange is refused."""
        self.assertIn('[compute_notify] exchange: must not be empty',
                      self.refused(compute_notify='exchange ='))

    def test_transport_url(self):
        """A bad URL is refused; the text names the option, no password."""
        for url, reason in (
                ('rabbit://me:s3cret@broker:port/', 'cannot be parsed'),
                ('rabbit://me:s3cret@[::1', 'cannot be parsed'),
                ('rabbit://me:s3cret/@broker:1/', 'cannot be parsed'),
                ('broker', 'cannot be parsed'),
                ('rabit://me:s3cret@broker/', 'no such transport: rabit')):
            for group, option in (
                    ('DEFAULT', '[DEFAULT] transport_url'),
                    ('oslo_messaging_notifications',
                     '[oslo_messaging_notifications] transport_url')):
                text = self.refused(**{group: f'transport_url = {url}'})
                self.assertEqual(f'Option {option}: {reason}', text)
        self.assertNotIn('s3cret', self.logs.output)

    def test_transport_library_missing(self):
        """A transport whose own library is missing is refused like one."""
        with mock.patch.dict('sys.modules', {'confluent_kafka': None}):
            text = self.refused(DEFAULT='transport_url = kafka://broker/')
        self.assertIn('[DEFAULT] transport_url', text)
        self.assertIn('kafka', text)


class TestEmit(service.TestCase):

    def setUp(self):
        super().setUp()
        self.set_up(
            DEFAULT='transport_url = fake://\nhost = ctl1',
            oslo_messaging_notifications='driver = test',
            compute_notify='extra_update_fields = memory_mb_used')

    def publishers(self, **values):
        self.live_once(**values)
        return {message['publisher_id'] for message in service.received()}

    def test_publisher_of_another_host(self):
        """The node's own host is named, whichever host sends."""
        self.assertEqual({'nova-compute:cmp7'}, self.publishers(host='cmp7'))

    def test_publisher_without_host(self):
        """A node without a host is named by its hypervisor_hostname."""
        self.assertEqual({'nova-compute:node1'}, self.publishers(host=None))

    def test_publisher_without_names(self):
        """A node without any name is named by the host that sends."""
        self.assertEqual(
            {'nova-compute:ctl1'},
            self.publishers(host=None, hypervisor_hostname=None))

    def test_extra_update_field(self):
        """An extra field makes an update; one not watched does not."""
        node = self.node()
        node.create()
        node.free_ram_mb = 1
        node.save()
        node.memory_mb_used += 1
        node.save()
        self.assertEqual(ALL[:2], service.event_types())

    def test_context(self):
        """What identifies the request is sent, what authorises it is not."""
        self.context = context.RequestContext(
            auth_token='s3cret', user_id='me', request_id='req-1')
        self.live_once()
        for ctxt in service.contexts():
            self.assertEqual('req-1', ctxt['request_id'])
            self.assertEqual('me', ctxt['user'])
            self.assertNotIn('s3cret', str(ctxt))

    def test_current_context(self):
        """The request's context stays the thread's current one."""
        self.context = context.RequestContext(auth_token='s3cret')
        self.live_once()
        self.assertIs(self.context, oslo_context.get_current())

    def test_context_of_another_kind(self):
        """A context that cannot be redacted stays away from the bus."""
        what = change.Change(change.Action.DELETE, {
            'id': 1, 'uuid': '9b2c5a4e-6f0d-4f5a-8f5e-0f5a4e6f0d4f',
            'host': 'cmp1', 'hypervisor_hostname': None})
        emitter.IN_FORCE.current().emit({'auth_token': 's3cret'}, what)
        self.assertEqual([{}], service.contexts())


class TestSends(base.TestCase):

    def test_stand_in(self):
        """A stand-in without drivers, such as Nova's, is asked itself."""
        notifier = mock.create_autospec(oslo_messaging.Notifier, instance=True)
        notifier.is_enabled.return_value = True
        self.assertIs(True, emitter.sends(notifier))
        notifier.is_enabled.return_value = False
        self.assertIs(False, emitter.sends(notifier))

    def test_decided_once(self):
        """Whether anything is sent costs nothing to ask."""
        notifier = mock.create_autospec(oslo_messaging.Notifier, instance=True)
        notifier.is_enabled.return_value = True
        made = emitter.Emitter(notifier, host='h')
        self.assertIs(True, made.is_on())
        self.assertIs(True, made.is_on())
        self.assertEqual(1, notifier.is_enabled.call_count)
