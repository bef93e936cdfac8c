# SPDX-License-Identifier: Apache-2.0
"""Tests of the outbox among processes that are killed, fork and compete."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading

import fixtures
import kombu
import testscenarios
from testtools import content

from tests import base
from tests.functional import broker
from tests.functional import servers
from tests import outbox

load_tests = testscenarios.load_tests_apply_scenarios

#: Seconds that a program with all its processes may take.
_TIMEOUT = 240


class Arrivals(fixtures.Fixture):
    """A consumer that keeps what arrives, in its order.

    :param topic: of a queue that is deleted at the end.
    """

    def __init__(self, topic):
        super().__init__()
        self._name = f'{topic}.info'
        self.messages = []

    def _setUp(self):
        self._connection = broker.connection()
        self._end = threading.Event()
        channel = self._connection.channel()
        queue = kombu.Queue(
            self._name, kombu.Exchange('openstack', 'topic', durable=False),
            self._name, durable=False, channel=channel)
        queue.declare()
        channel.basic_qos(0, 200, False)
        consumer = kombu.Consumer(channel, [queue], on_message=self._keep)
        consumer.consume()
        self._thread = threading.Thread(target=self._consume, daemon=True)
        self._thread.start()
        self.addCleanup(broker.delete, self._name)
        self.addCleanup(self._connection.release)
        self.addCleanup(self._thread.join)
        self.addCleanup(self._end.set)

    def _keep(self, message):
        self.messages.append(json.loads(
            json.loads(message.body)['oslo.message']))
        message.ack()

    def _consume(self):
        while not self._end.is_set():
            try:
                self._connection.drain_events(timeout=0.1)
            except TimeoutError:
                pass

    def numbers(self, who):
        """Return the numbers that somebody's messages first arrived with."""
        return list(dict.fromkeys(
            one['payload']['number'] for one in list(self.messages)
            if one['payload']['who'] == who))


class TestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        broker.require()
        self.topic = broker.unique('outbox')
        self.arrivals = self.useFixture(Arrivals(self.topic))
        self.config = pathlib.Path(tempfile.mkdtemp(), 'service.conf')
        self.path = self.config.with_name('outbox')
        self.configure()

    def configure(self, url=None, more=''):
        self.config.write_text(
            f'[DEFAULT]\ntransport_url = {url or servers.url("rabbitmq")}\n'
            '[oslo_messaging_notifications]\ndriver = outbox\n'
            f'[compute_notify_outbox]\npath = {self.path}\n{more}')

    def run_program(self, *args, code=0):
        """Run :mod:`outbox_emitters`; return what it has said."""
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m',
             'tests.functional.outbox_emitters', args[0], self.config,
             self.topic, *map(str, args[1:])],
            cwd=pathlib.Path(__file__).parents[2], capture_output=True,
            text=True, timeout=_TIMEOUT)
        self.addDetail('program', content.text_content(
            done.stderr[-10000:] + done.stdout[-10000:]))
        self.assertEqual(code, done.returncode)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assertArrived(self, said, *, doubled):
        """All that was stored arrives, in the order of each who stored it.

        :param doubled: whether some may arrive twice.
        """
        stored = {line['who']: line['stored'] for line in said
                  if 'who' in line}
        outbox.wait_until(
            lambda: all(len(self.arrivals.numbers(who)) >= count
                        for who, count in stored.items()),
            lambda: {who: (count, self.arrivals.numbers(who))
                     for who, count in stored.items()
                     if len(self.arrivals.numbers(who)) < count})
        for who, count in stored.items():
            numbers = self.arrivals.numbers(who)
            # One that was killed may have stored one more than it could say.
            self.assertIn(len(numbers), (count, count + 1))
            self.assertEqual(list(range(len(numbers))), numbers)
        self.assertEqual(
            len({one['message_id'] for one in self.arrivals.messages}),
            sum(len(self.arrivals.numbers(who)) for who in stored))
        if not doubled:
            self.assertEqual(sum(stored.values()),
                             len(self.arrivals.messages))


class TestCrash(TestCase):

    def test_kill(self):
        """After 200 times kill -9 all that was stored arrives, in order."""
        seed = random.randrange(2 ** 32)
        self.addDetail('seed', content.text_content(str(seed)))
        said = self.run_program('crash', 200, seed)
        self.assertEqual(200, len(said))
        self.assertArrived(said, doubled=True)
        # It did hit them at work: while storing, and with some not yet sent.
        self.assertGreater(len({line['stored'] for line in said}), 20)
        self.assertGreater(sum(line['waiting'] > 0 for line in said), 20)


class TestCrowd(TestCase):

    scenarios = testscenarios.multiply_scenarios(
        [('fork', {'how': 'fork'}), ('spawn', {'how': 'spawn'})],
        [('2', {'count': 2}), ('8', {'count': 8})])

    def test_crowd(self):
        """Processes share one file; if the relay is killed another sends."""
        said = self.run_program('crowd', self.how, self.count, 400)
        self.assertArrived(said, doubled=True)
        before, after = said[-1]['relays']
        self.assertNotEqual(before, after)
        self.assertEqual(1, sum(line.get('killed', False) for line in said))
        # Of two relays at once each would have sent everything.
        self.assertLess(len(self.arrivals.messages),
                        400 * self.count + 2 * 100 + 1)


class TestOrder(TestCase):

    def test_node(self):
        """Changes of one node keep their order over two processes."""
        said = self.run_program('take_turns', 200)
        self.assertArrived(said, doubled=False)


class TestFork(TestCase):

    def test_midflight(self):
        """A fork at full speed neither loses nor doubles anything."""
        said = self.run_program('midflight', 4, 400)
        self.assertArrived(said, doubled=False)

    def test_eventlet(self):
        """Greenthreads of a parent and its child keep their order."""
        said = self.run_program('green', 100)
        self.assertArrived(said, doubled=False)


class TestRestart(TestCase):

    def test_left_over(self):
        """What a killed process left is sent by the next that starts."""
        self.configure('rabbit://127.0.0.1:1/')
        said = self.run_program('store_and_die', 20, code=-9)
        with outbox.opened(self.path) as found:
            left = [one.unpack()[1] for one in found.first(100)]
        self.assertEqual(20, len(left))
        self.configure()
        self.run_program('only_start')
        self.assertArrived(said, doubled=False)
        for one, other in zip(left, self.arrivals.messages, strict=True):
            self.assertLessEqual(one.items(), other.items())
