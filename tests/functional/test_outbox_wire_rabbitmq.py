# SPDX-License-Identifier: Apache-2.0
"""Tests that the outbox sends what messagingv2 would have sent."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile

import fixtures
import oslo_messaging
from oslo_utils import timeutils
import testscenarios

import compute_notify
from compute_notify import emitter
from compute_notify.outbox import process
from compute_notify.outbox import spool
from tests.functional import broker
from tests.functional import test_rabbitmq
from tests import outbox


class TestCase(test_rabbitmq.TestCase):

    driver = 'outbox'

    def setUp(self):
        super().setUp()
        broker.require()
        self.addCleanup(process.shut_all)
        self.path = os.path.join(tempfile.mkdtemp(), 'outbox')

    def groups(self, more=''):
        return {'DEFAULT': broker.TRANSPORT_URL,
                'compute_notify_outbox': f'path = {self.path}\n{more}'}


class TestWire(TestCase):

    def wire(self, driver, topics):
        """Return what goes over the wire for one notification."""
        marker = broker.unique('marker')
        transport = oslo_messaging.get_notification_transport(
            self.configuration(**self.groups()))
        self.addCleanup(transport.cleanup)
        for topic in topics:
            self.addCleanup(broker.delete, f'{topic}.info')
        oslo_messaging.Notifier(
            transport, 'nova-compute:cmp1', driver=driver, topics=topics,
            serializer=emitter.ContextSerializer(),
        ).info(self.context, 'some.event', {
            'marker': marker, 'text': 'hôte-计算', 'number': 2 ** 70,
            'list': [None, True, 1.5]})
        outbox.wait_until(
            lambda: len(self.spy.messages(marker)) >= len(topics),
            lambda: (self.spy.messages(marker), self.logs.output))
        return [(one.routing_key, sorted(one.body), one.body['oslo.version'],
                 {key: value for key, value in one.notification.items()
                  if key not in ('message_id', 'timestamp', '_unique_id')
                  } | {'payload': one.notification['payload']
                       | {'marker': None}},
                 list(one.notification))
                for one in self.spy.messages(marker)]

    def test_same(self):
        """Routing keys, envelope, notification and context are the same."""
        self.spy = self.useFixture(broker.Spy('openstack'))
        topics = [broker.unique('topic'), broker.unique('topic')]
        direct = self.wire('messagingv2', topics)
        self.assertEqual(direct, self.wire('outbox', topics))
        self.assertEqual([f'{topic}.info' for topic in topics],
                         [routing_key for routing_key, *_ in direct])

    def test_listener(self):
        """A listener is given the library's own, once and in order."""
        listener = self.useFixture(broker.Listener(self.topic))
        self.set_up(**self.groups())
        node = self.live_once(host=self.host)
        received = listener.wait_for(3)
        self.assertEqual(
            set(test_rabbitmq.ALL), {one.event_type for one in received})
        self.assertEqual(
            {node.uuid}, {one.payload['nova_object.data']['uuid']
                          for one in received})


class TestAway(testscenarios.WithScenarios, TestCase):

    scenarios = [('closed', {'listens': False}), ('silent', {'listens': True})]

    def test_down(self):
        """With the broker away each call returns, and nothing is lost."""
        with socket.socket() as server:
            server.bind(('127.0.0.1', 0))
            if self.listens:
                server.listen(100)
            self.set_up(**self.groups() | {
                'DEFAULT': 'transport_url = rabbit://me:s3cret@127.0.0.1:'
                           f'{server.getsockname()[1]}/'})
            with timeutils.StopWatch() as timer:
                node = self.live_once(host=self.host)
                # A connection to the broker alone would take five seconds.
                self.assertLess(timer.elapsed(), 3)
            compute_notify.teardown()
            process.shut_all()
        self.assertNotIn('s3cret', self.logs.output)
        listener = self.useFixture(broker.Listener(self.topic))
        self.set_up(**self.groups())
        received = listener.wait_for(3)
        self.assertEqual({node.uuid}, {
            one.payload['nova_object.data']['uuid'] for one in received})


class TestStandAlone(TestCase):

    def start(self, config):
        started = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-c',
             'import sys; from compute_notify.cmd import main; '
             'sys.exit(main.main())', 'relay', '--config-file', config],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(started.stdout.close)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        self.assertRegex(started.stdout.readline(),
                         f'^relaying {self.path} to rabbit://127.0.0.1')
        return started

    def test_service(self):
        """With the relay in a service of its own, only that one sends."""
        conf = self.set_up(**self.groups('relay = false'))
        self.live_once(host=self.host)
        with outbox.opened(self.path) as found:
            self.assertEqual(3, found.waiting())
            self.assertIsNone(found.noted('relay'))
        listener = self.useFixture(broker.Listener(self.topic))
        service = self.start(conf.default_config_files[0])
        listener.wait_for(3)
        self.live_once(host=self.host)
        listener.wait_for(3)
        with outbox.opened(self.path) as found:
            self.assertEqual(service.pid, found.noted('relay'))
            outbox.wait_until(lambda: not found.waiting(), found.status)
        for number in signal.SIGTERM, signal.SIGINT:
            service.send_signal(number)
            self.assertEqual(0, service.wait(outbox.LONG))
            service = self.start(conf.default_config_files[0])


class TestFullDisk(TestCase):

    def test_full_disk(self):
        """What a real full disk refuses is sent once there is room.

        Root gets a small file system of its own; for others, the files of
        this process may not grow.
        """
        self.useFixture(fixtures.MockPatchObject(
            spool, 'FLUSH_INTERVAL', 0.05))
        listener = self.useFixture(broker.Listener(self.topic))
        directory, make_room = self._small_disk()
        self.path = os.path.join(directory, 'outbox')
        # Nothing may leave the disk by itself while it is to be full.
        conf = self.configuration(**self.groups('relay = false'))
        notifier = self._notifier(conf)
        for number in range(300):
            notifier.info({}, 'some.event', {'number': number,
                                             'more': 'x' * 10000})
        self.assertIn('cannot be written', self.logs.output)
        made = process.paths()[self.path].spool
        with outbox.opened(self.path) as found:
            stored = found.waiting()
        self.assertTrue(0 < stored < 300, stored)
        make_room()
        with outbox.opened(self.path) as found:
            outbox.wait_until(lambda: found.waiting() == 300,
                              lambda: (found.status(), self.logs.output))
            self.assertEqual(
                list(range(300)),
                [json.loads(one.body)['payload']['number']
                 for one in found.first(400)])
        self.assertEqual([], list(made._memory))
        process.shut_all()
        self._notifier(self.configuration(**self.groups()))
        numbers = {one.payload['number'] for one in listener.wait_for(300)}
        self.assertEqual(set(range(300)), numbers)

    def _notifier(self, conf):
        transport = oslo_messaging.get_notification_transport(conf)
        self.addCleanup(transport.cleanup)
        return oslo_messaging.Notifier(transport, 'test', driver='outbox',
                                       topics=[self.topic])

    def _small_disk(self):
        """Return a directory on it, and what makes it larger."""
        directory = tempfile.mkdtemp()
        if os.geteuid() == 0 and not subprocess.run(
                ['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory],
                capture_output=True).returncode:
            self.addCleanup(subprocess.run, ['umount', '-l', directory],
                            check=True)
            return directory, lambda: subprocess.run(
                ['mount', '-o', 'remount,size=50m', directory], check=True)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 ** 20, limits[1]))
        return directory, lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, limits)
