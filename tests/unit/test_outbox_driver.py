# SPDX-License-Identifier: Apache-2.0
"""Tests of the notification driver ``outbox``, without a broker."""

import json
import os
import pathlib
import socket
import tempfile
from unittest import mock

import oslo_messaging
from oslo_utils import timeutils

import compute_notify
from compute_notify import emitter
from compute_notify import exception
from compute_notify.outbox import process
from compute_notify.outbox import relay
from compute_notify.outbox import sender
from tests import outbox
from tests import service


class Endpoint:
    """Keeps what a listener is given."""

    def __init__(self):
        self.received = []

    def info(self, ctxt, publisher_id, event_type, payload, metadata):
        """Keep a notification."""
        self.received.append((ctxt, publisher_id, event_type, payload,
                              metadata))


class TestCase(service.TestCase):

    def setUp(self):
        super().setUp()
        self.addCleanup(process.shut_all)
        self.path = str(pathlib.Path(tempfile.mkdtemp(), 'outbox'))

    def conf(self, extra='', **groups):
        return self.configuration(**({
            'oslo_messaging_notifications': 'driver = outbox',
            'compute_notify_outbox': f'path = {self.path}\n{extra}'}
            | groups))

    def notifier(self, conf, **values):
        transport = oslo_messaging.get_notification_transport(conf)
        self.addCleanup(transport.cleanup)
        return oslo_messaging.Notifier(
            transport, 'nova-compute:cmp1',
            serializer=emitter.ContextSerializer(),
            **({'topics': ['one', 'two']} | values))

    def stored(self):
        with outbox.opened(self.path) as found:
            return found.first(1000)


class TestDriver(TestCase):

    def test_stored(self):
        """Each topic gets the whole message, as it would have been sent."""
        conf = self.conf('relay = false')
        self.notifier(conf).info(self.context, 'some.event', {'a': [1, None]})
        first, second = self.stored()
        self.assertEqual(['one.info', 'two.info'],
                         [first.topic, second.topic])
        self.assertEqual('openstack', first.exchange)
        self.assertEqual(first.body, second.body)
        context, message = first.unpack()
        self.assertEqual(self.context.request_id, context['request_id'])
        self.assertEqual(
            {'message_id', 'publisher_id', 'event_type', 'priority',
             'payload', 'timestamp'}, set(message))
        self.assertEqual(
            ('nova-compute:cmp1', 'some.event', 'INFO', {'a': [1, None]}),
            tuple(message[key] for key in ('publisher_id', 'event_type',
                                           'priority', 'payload')))
        self.assertIn('_unique_id', json.loads(first.body))

    def test_no_network(self):
        """Storing touches no network, and starts nothing if told so."""
        notifier = self.notifier(self.conf(
            'relay = false', DEFAULT='transport_url = rabbit://127.0.0.1:1/'))
        with mock.patch.object(socket, 'socket', autospec=True,
                               side_effect=AssertionError('network')):
            notifier.info({}, 'some.event', {})
        self.assertEqual(2, len(self.stored()))
        self.assertIsNone(process.outbox_for(
            mock.Mock(path=self.path), mock.Mock)._relay)

    def test_relayed(self):
        """What is stored arrives at a listener, over the same transport."""
        endpoint = Endpoint()
        conf = self.conf()
        notifier = self.notifier(conf, topics=['here'])
        listener = oslo_messaging.get_notification_listener(
            notifier.transport, [oslo_messaging.Target(topic='here')],
            [endpoint], executor='threading')
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)
        listener.start()
        notifier.info(self.context, 'some.event', {'a': 1})
        outbox.wait_until(lambda: endpoint.received,
                          lambda: [self.stored(), self.logs.output])
        (context, publisher_id, event_type, payload, metadata), = (
            endpoint.received)
        self.assertEqual(
            ('nova-compute:cmp1', 'some.event', {'a': 1}),
            (publisher_id, event_type, payload))
        self.assertEqual(self.context.request_id, context['request_id'])
        self.assertEqual({'message_id', 'timestamp'}, set(metadata))
        outbox.wait_until(lambda: not self.stored(), self.stored)

    def test_setup(self):
        """The library's own notifications take this way too."""
        compute_notify.setup(self.conf('relay = false'))
        self.live_once()
        self.assertEqual(
            ['compute_node.create', 'compute_node.update',
             'compute_node.delete'],
            [one.unpack()[1]['event_type'] for one in self.stored()])
        self.assertEqual(
            [('nova', 'versioned_notifications.info')] * 3,
            [(one.exchange, one.topic) for one in self.stored()])

    def test_two_drivers_share(self):
        """However many notifiers a process makes, there is one relay."""
        conf = self.conf()
        for notifier in self.notifier(conf), self.notifier(conf):
            notifier.info({}, 'some.event', {})
        first, = process.paths().values()
        self.assertEqual(self.path, first.spool.settings.path)

    def test_no_json(self):
        """What has no JSON is set aside with the reason, and logged."""
        circle = []
        circle.append(circle)
        self.notifier(self.conf('relay = false')).info(
            {}, 'some.event', {'circle': circle, 'key': {(1, 2): 'x'}})
        self.assertEqual([], self.stored())
        with outbox.opened(self.path) as found:
            kept = found.list_failed()
        self.assertEqual(['one.info', 'two.info'],
                         [one.topic for one in kept])
        self.assertFalse(kept[0].sendable)
        self.assertIn('some.event, has no form in which it can be sent',
                      self.logs.output)

    def test_raising_value(self):
        """Whatever a value's own methods raise stays here."""
        class Lazy:
            def __getattr__(self, name):
                raise RuntimeError('detached')

            __repr__ = __getattr__
        self.notifier(self.conf('relay = false')).info(
            {}, 'some.event', {'lazy': Lazy()})
        with outbox.opened(self.path) as found:
            self.assertEqual(['RuntimeError: detached'] * 2,
                             [one.error for one in found.list_failed()])
        self.assertIn('was set aside: RuntimeError', self.logs.output)

    def test_cannot_set_aside(self):
        """What can be neither sent nor kept is said to be lost."""
        notifier = self.notifier(self.conf('relay = false'))
        with outbox.busy(self.path):
            notifier.info({}, 'some.event', {'key': {(1, 2): 'x'}})
        self.assertIn('is lost: ', self.logs.output)
        self.assertIn('database is locked', self.logs.output)

    def test_two_brokers(self):
        """Notifiers to two brokers must not share a file."""
        conf = self.conf('relay = false')
        self.notifier(conf)
        self.notifier(self.conf(
            'relay = false',
            DEFAULT='transport_url = rabbit://me:s3cret@elsewhere/'))
        self.assertIn(
            f'Outbox {self.path} is relayed to fake://', self.logs.output)
        self.assertIn('and not to rabbit://elsewhere/', self.logs.output)
        self.assertNotIn('s3cret', self.logs.output)


class TestOptions(TestCase):

    def test_path(self):
        """A path that is not absolute is refused; setup names the option."""
        self.path = 'outbox'
        exc = self.assertRaises(exception.InvalidOption, compute_notify.setup,
                                self.conf())
        self.assertIn('[compute_notify_outbox] path: must be an absolute '
                      "path, not 'outbox'", str(exc))

    def test_no_such_choice(self):
        """A word that means nothing is refused, with those that do."""
        exc = self.assertRaises(exception.InvalidOption, compute_notify.setup,
                                self.conf('durability = none'))
        self.assertIn('[compute_notify_outbox] durability', str(exc))
        self.assertIn('process, power', str(exc))

    def test_path_elsewhere(self):
        """Whoever else loads the driver finds the reason in the log."""
        self.path = 'outbox'
        self.notifier(self.conf()).info({}, 'some.event', {})
        self.assertIn('Notifications are not sent: Option '
                      '[compute_notify_outbox] path', self.logs.output)

    def test_unusable(self):
        """A place that cannot be used is named at start, and tried again."""
        blocked = pathlib.Path(self.path)
        blocked.write_text('')
        self.path += '/outbox'
        self.notifier(self.conf())
        self.assertIn(f'Outbox {self.path} cannot be used', self.logs.output)
        blocked.unlink()
        with outbox.opened(self.path) as found:
            found.append(outbox.messages(1), max_messages=9)
        outbox.wait_until(lambda: not self.stored(), self.stored)

    def test_durability(self):
        """Surviving the loss of power means that each commit is synced."""
        for durability, synchronous in (('process', 1), ('power', 2)):
            self.path += durability
            self.notifier(self.conf(
                f'relay = false\ndurability = {durability}'))
            with process.paths()[self.path].spool.locked() as used:
                self.assertEqual(
                    synchronous,
                    used._db.execute('PRAGMA synchronous').fetchone()[0])


class TestStart(TestCase):

    def setUp(self):
        super().setUp()
        with outbox.opened(self.path) as found:
            found.append(outbox.messages(2), max_messages=9)

    def test_left_over(self):
        """What an earlier process left is sent without another call."""
        self.notifier(self.conf())
        outbox.wait_until(lambda: not self.stored(), self.stored)

    def test_nothing_stored(self):
        """Where nothing was ever stored nothing is made."""
        self.path += '-new'
        self.notifier(self.conf())
        self.assertFalse(os.path.exists(self.path))
        self.assertIsNone(process.paths()[self.path]._thread)

    def test_nothing_left(self):
        """With nothing to send nothing starts and no file stays open."""
        with outbox.opened(self.path) as found:
            found.remove_sent(found.first(9))
        self.notifier(self.conf())
        made = process.paths()[self.path]
        self.assertIsNone(made._thread)
        self.assertIsNone(made.spool._store)

    def test_uwsgi_master(self):
        """In a master of uWSGI, where no thread runs, none starts."""
        with mock.patch.dict('sys.modules',
                             uwsgi=mock.Mock(worker_id=lambda: 0)):
            self.notifier(self.conf())
        self.assertEqual(2, len(self.stored()))
        self.assertIsNone(process.paths()[self.path]._thread)

    def test_end(self):
        """A process that ends lets its relay finish what it can send."""
        conf = self.conf()
        notifier = self.notifier(conf, topics=['here'])
        for _ in range(50):
            notifier.info({}, 'some.event', {})
        process.shut_all()
        self.assertEqual([], self.stored())

    def test_end_while_away(self):
        """It does not wait for a broker that is away."""
        with mock.patch.object(process, 'FAREWELL', outbox.LONG), \
                mock.patch.object(
                    sender.Sender, 'send', autospec=True,
                    side_effect=sender.Away('gone')):
            notifier = self.notifier(self.conf(), topics=['here'])
            notifier.info({}, 'some.event', {})
            with timeutils.StopWatch() as timer:
                process.shut_all()
                self.assertLess(timer.elapsed(),
                                relay.LONGEST_PAUSE + relay.PAUSE)
        self.assertEqual(3, len(self.stored()))
        self.assertTrue(os.path.exists(self.path))
