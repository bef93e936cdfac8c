# SPDX-License-Identifier: Apache-2.0
"""Tests of what the outbox's sender makes of a real RabbitMQ's answers."""

import json
import socket
import threading

import kombu
import oslo_messaging

from compute_notify.outbox import message
from compute_notify.outbox import sender
from tests import base
from tests.functional import broker
from tests.functional import servers
from tests import outbox
from tests import service


class TestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        broker.require()
        self.topic = broker.unique('outbox')
        self.exchange = broker.unique('exchange')
        self.confirmed = []
        self.sender = self.sender_to(servers.url('rabbitmq'))
        self.addCleanup(self._clean)

    def _clean(self):
        with broker.connection() as opened:
            channel = opened.channel()
            channel.queue_delete(f'{self.topic}.info')
            channel.exchange_delete(self.exchange)

    def sender_to(self, url):
        conf = service.configuration(DEFAULT=f'transport_url = {url}')
        transport = oslo_messaging.get_notification_transport(conf)
        made = sender.Sender(conf, transport._driver._url)
        self.addCleanup(made.close)
        return made

    def messages(self, count, first=0, topic=None, more=''):
        return [one for number in range(first, first + count)
                for one in message.for_topics(
                    self.exchange, [topic or self.topic], 'INFO',
                    message.body_of({}, {'number': number, 'more': more}))]

    def send(self, messages):
        self.sender.send(messages, self.confirmed)

    def arrived(self):
        """Return the numbers of what is in the queue, and take it out."""
        found = []
        with broker.connection() as opened:
            queue = kombu.Queue(f'{self.topic}.info', channel=opened.channel())
            while (one := queue.get(no_ack=True)) is not None:
                found.append(json.loads(
                    json.loads(one.body)['oslo.message'])['number'])
        return found


class TestSender(TestCase):

    def test_in_order(self):
        """All arrive once, in order, and each is confirmed."""
        self.send(self.messages(50))
        self.send(self.messages(50, first=50))
        self.assertEqual(list(range(100)), self.arrived())
        self.assertEqual(list(range(100)), outbox.numbers(self.confirmed))

    def test_too_large(self):
        """What is larger than the broker takes is refused; the next goes.

        RabbitMQ takes 128 MiB unless told otherwise.
        """
        large, = self.messages(1, first=1, more='x' * (2 ** 27 + 1))
        batch = [*self.messages(1), large, *self.messages(1, first=2)]
        exc = self.assertRaises(sender.Refused, self.send, batch)
        self.assertIs(large, exc.one)
        self.assertRegex(str(exc), '^PreconditionFailed: .*larger than')
        self.send(batch[2:])
        self.assertEqual([0, 2], self.arrived())
        self.assertEqual([0, 2], outbox.numbers(self.confirmed))

    def test_not_for_the_wire(self):
        """What the protocol has no form for is refused; the next goes."""
        batch = self.messages(1, topic='x' * 300)
        exc = self.assertRaises(sender.Refused, self.send, batch)
        self.assertIs(batch[0], exc.one)
        self.send(self.messages(1, first=1))
        self.assertEqual([1], self.arrived())

    def test_full(self):
        """A queue that rejects is waited for; nothing is refused."""
        opened = broker.connection()
        self.addCleanup(opened.release)
        self.send(self.messages(1))
        exchange = kombu.Exchange(self.exchange, 'topic', durable=False)
        full = kombu.Queue(
            broker.unique('full'), exchange, f'{self.topic}.info',
            channel=opened.channel(), exclusive=True, auto_delete=True,
            queue_arguments={'x-max-length': 1,
                             'x-overflow': 'reject-publish'})
        full.declare()
        exc = self.assertRaises(sender.Away, self.send,
                                self.messages(3, first=1))
        self.assertIn('a queue is full', str(exc))
        self.assertEqual([0, 1], outbox.numbers(self.confirmed))
        full.purge()
        self.send(self.messages(1, first=2))
        self.assertEqual([0, 1, 2], outbox.numbers(self.confirmed))

    def test_queue_deleted(self):
        """A queue that is deleted is declared again; nothing vanishes."""
        self.send(self.messages(2))
        broker.delete(f'{self.topic}.info')
        self.assertRaises(sender.Away, self.send, self.messages(2, first=2))
        self.assertEqual([0, 1], outbox.numbers(self.confirmed))
        self.send(self.messages(2, first=2))
        self.assertEqual([2, 3], self.arrived())

    def test_declared_otherwise(self):
        """A queue that is of another kind is the operator's to mend.

        Nothing is set aside for it.
        """
        with broker.connection() as opened:
            kombu.Queue(f'{self.topic}.info', durable=True,
                        channel=opened.channel()).declare()
        exc = self.assertRaises(sender.Away, self.send, self.messages(1))
        self.assertIn("inequivalent arg 'durable'", str(exc))
        broker.delete(f'{self.topic}.info')
        self.send(self.messages(1))
        self.assertEqual([0], self.arrived())

    def test_heartbeat_thread_is_gone(self):
        """A sender that is closed leaves no thread."""
        before = set(threading.enumerate())
        self.send(self.messages(1))
        self.sender.close()
        self.assertEqual(before, set(threading.enumerate()))


class TestAway(TestCase):

    def test_closed_port(self):
        """Where nothing listens the broker is away, at once."""
        with socket.socket() as taken:
            taken.bind(('127.0.0.1', 0))
            self.sender = self.sender_to(
                f'rabbit://me:s3cret@127.0.0.1:{taken.getsockname()[1]}/')
            exc = self.assertRaises(sender.Away, self.send, self.messages(1))
        self.assertIn('Connection refused', str(exc))
        self.assertNotIn('s3cret', str(exc))
        self.assertNotIn('s3cret', self.sender.broker())

    def test_hosts(self):
        """Which broker it is does not depend on the order of its hosts."""
        one, other = (self.sender_to(f'rabbit://me:s3cret@{hosts}/vhost')
                      for hosts in ('b:1,me:s3cret@a', 'a,me:s3cret@b:1'))
        self.assertEqual('rabbit://a,b:1/vhost', one.broker())
        self.assertEqual(one.broker(), other.broker())

    def test_wrong_password(self):
        """Who is not let in waits too, and the log holds no password."""
        self.sender = self.sender_to(servers.url('rabbitmq').replace(
            'guest:guest', 'guest:s3cret'))
        exc = self.assertRaises(sender.Away, self.send, self.messages(1))
        self.assertNotIn('s3cret', str(exc) + self.logs.output)
