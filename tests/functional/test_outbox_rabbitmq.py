# SPDX-License-Identifier: Apache-2.0
"""Tests of an outbox that a child inherits, and of its wire's properties."""

import json
import pathlib
import subprocess
import sys
import tempfile

import kombu
import oslo_messaging
from testtools import content

from compute_notify.outbox import process
from tests.functional import broker
from tests.functional import test_outbox_processes_rabbitmq as processes
from tests import outbox
from tests import service


class TestHeir(processes.TestCase):

    def test_relay_is_killed_after_a_fork(self):
        """A child forked in mid-send takes over once its parent is dead."""
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m',
             'tests.functional.outbox_process', 'heir', self.config,
             self.topic, '300'],
            cwd=pathlib.Path(__file__).parents[2], capture_output=True,
            text=True, timeout=120)
        self.addDetail('program', content.text_content(
            done.stderr[-10000:] + done.stdout[-10000:]))
        self.assertEqual(0, done.returncode)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertArrived(said, doubled=True)
        with outbox.opened(self.path) as found:
            self.assertNotEqual(said[0]['relay'], found.noted('relay'))


class TestProperties(service.TestCase):

    def setUp(self):
        super().setUp()
        broker.require()
        self.addCleanup(process.shut_all)
        self.topic = broker.unique('topic')
        self.addCleanup(broker.delete, f'{self.topic}.info')

    def properties(self, driver):
        """Return the AMQP properties of one notification."""
        conf = self.configuration(
            DEFAULT=broker.TRANSPORT_URL, compute_notify_outbox=(
                f'path = {tempfile.mkdtemp()}/outbox'))
        transport = oslo_messaging.get_notification_transport(conf)
        self.addCleanup(transport.cleanup)
        oslo_messaging.Notifier(
            transport, 'me', driver=driver, topics=[self.topic],
        ).info({'user': 'you'}, 'some.event', {'text': 'hôte-计算'})
        found = []
        with broker.connection() as opened:
            channel = opened.channel()

            def arrived():
                found.append(kombu.Queue(f'{self.topic}.info',
                                         channel=channel).get(no_ack=True))
                return found[-1] is not None
            outbox.wait_until(lambda: broker.has_queue(f'{self.topic}.info'),
                              lambda: 'no queue')
            outbox.wait_until(arrived, lambda: self.logs.output)
        return found[-1].properties | {
            name: found[-1].delivery_info[name]
            for name in ('exchange', 'routing_key')}, type(found[-1].body)

    def test_same(self):
        """Content type, encoding and the rest are those of messagingv2."""
        direct = self.properties('messagingv2')
        self.assertIn('content_type', direct[0])
        self.assertEqual(direct, self.properties('outbox'))
