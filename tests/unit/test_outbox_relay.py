# SPDX-License-Identifier: Apache-2.0
"""Tests of the relay: order, patience, and what it sets aside."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
import time
from unittest import mock

import fixtures

from compute_notify.outbox import relay
from compute_notify.outbox import sender
from compute_notify.outbox import store
from compute_notify.outbox import tally
from tests import outbox


class TestCase(outbox.TestCase):

    def setUp(self):
        super().setUp()
        for name, value in (('PAUSE', 0.001), ('LONGEST_PAUSE', 0.01),
                            ('ELECTION', 0.01), ('POLL', 0.005)):
            self.useFixture(fixtures.MockPatchObject(relay, name, value))
        self.broker = outbox.FakeSender()
        self.opened = self.store()

    def append(self, count, first=0):
        self.opened.append(outbox.messages(count, first=first),
                           max_messages=100000)

    def start(self, tick=lambda: None, **values):
        made = relay.Relay(self.settings(**values), self.broker, tick=tick)
        thread = threading.Thread(target=made.run, daemon=True)
        thread.start()

        def end():
            made.stop()
            thread.join(outbox.LONG)
            self.assertFalse(thread.is_alive())
        self.addCleanup(end)
        return made

    def wait_for(self, *numbers):
        """Wait until the broker has these, in this order, and no others."""
        outbox.wait_until(lambda: self.broker.taken == list(numbers)
                          and not self.opened.waiting(),
                          lambda: (self.broker.taken, self.waiting()))


class TestRelay(TestCase):

    def test_in_order(self):
        """All is sent once, in order, over several batches, and removed."""
        self.append(relay.BATCH * 2 + 5)
        self.start()
        self.wait_for(*range(relay.BATCH * 2 + 5))
        self.append(2, first=500)
        self.wait_for(*range(relay.BATCH * 2 + 5), 500, 501)
        self.assertEqual(relay.BATCH * 2 + 7, self.opened.status().sent)

    def test_away(self):
        """A broker that is away is asked again until it is back."""
        left = iter(range(20))

        def away(one):
            if next(left, None) is not None:
                raise sender.Away('connection refused')
        self.broker.mood = away
        self.append(3)
        self.start()
        self.wait_for(0, 1, 2)
        self.assertEqual([0] * 20 + [0, 1, 2], self.broker.attempts)
        self.assertEqual(1, self.logs.output.count(
            f'Notifications wait in outbox {self.path}: connection refused'))
        self.assertEqual(1, self.logs.output.count('are sent again, after'))
        status = self.opened.status()
        self.assertEqual('connection refused', status.last_error)
        self.assertAlmostEqual(time.time(), status.last_error_at,
                               delta=outbox.LONG)

    def test_away_midway(self):
        """What was confirmed before a fault is not sent again."""
        failures = [1, 4]

        def away(one):
            number, = outbox.numbers([one])
            if number in failures:
                failures.remove(number)
                raise sender.Away('reset')
        self.broker.mood = away
        self.append(6)
        self.start()
        self.wait_for(*range(6))
        self.assertEqual([0, 1, 1, 2, 3, 4, 4, 5], self.broker.attempts)

    def test_refused(self):
        """What the broker never takes is set aside; the others go on."""
        def refuse(one):
            if outbox.numbers([one]) == [1]:
                raise sender.Refused(one, ValueError('too large'))
        self.broker.mood = refuse
        self.append(4)
        self.start(max_tries=3)
        self.wait_for(0, 2, 3)
        self.assertEqual(3, self.broker.attempts.count(1))
        kept, = self.opened.list_failed()
        self.assertEqual((3, 'ValueError: too large'),
                         (kept.tries, kept.error))
        self.assertIn('was set aside after 3 tries: ValueError: too large',
                      self.logs.output)
        self.assertEqual('ValueError: too large',
                         self.opened.status().last_error)
        self.broker.mood = lambda one: None
        self.opened.retry_failed()
        self.wait_for(0, 2, 3, 1)

    def test_too_old(self):
        """What has waited too long is dropped, and that is said."""
        self.broker.mood = self._away
        old = outbox.messages(2)
        self.opened.append(
            [one.__class__(one.exchange, one.topic, one.body,
                           one.created - 3600) for one in old],
            max_messages=9)
        self.append(1, first=5)
        self.start(max_age=60)
        outbox.wait_until(lambda: self.waiting() == [5], self.waiting)
        self.assertEqual(2, self.opened.status().dropped)
        outbox.wait_until(
            lambda: '2 notifications were dropped, having waited for more '
                    'than 60 seconds' in self.logs.output,
            lambda: self.logs.output)

    @staticmethod
    def _away(one):
        raise sender.Away('gone')

    def test_status_line(self):
        """The figures are logged at the interval, also while it waits."""
        self.broker.mood = self._away
        self.append(2)
        clock = self.useFixture(fixtures.MockPatchObject(
            relay.time, 'monotonic', autospec=True, return_value=1000.0)).mock
        self.start(status_interval=300)
        outbox.wait_until(lambda: len(self.broker.attempts) > 3,
                          lambda: self.broker.attempts)
        self.assertNotIn('waiting', self.logs.output)
        clock.return_value = 1300.0
        outbox.wait_until(
            lambda: f'Outbox {self.path}: 2 waiting for up to'
                    in self.logs.output,
            lambda: self.logs.output)

    def test_made_later(self):
        """There need be no file yet, and the relay makes none."""
        self.path += '-later'
        self.start()
        self.assertFalse(os.path.exists(self.path))
        self.assertFalse(os.path.exists(self.path + '.relay'))
        self.opened = self.store()
        self.append(1)
        self.wait_for(0)

    def test_copied_by_a_fork(self):
        """A greenthread ends in a child, and leaves the connection alone."""
        self.append(1)
        made = relay.Relay(self.settings(), self.broker)
        pids = [1]
        self.broker.mood = lambda one: pids.append(2)
        with mock.patch.object(self.broker, 'close', autospec=True) as close:
            with mock.patch.object(os, 'getpid', autospec=True,
                                   side_effect=lambda: pids[-1]):
                made.run()
            close.assert_not_called()
            self.append(1)
            made = relay.Relay(self.settings(), self.broker)
            self.broker.mood = lambda one: made.stop()
            made.run()
            close.assert_called_once_with()

    def test_settled(self):
        """One can wait until nothing is left that could be sent."""
        self.append(3)
        made = self.start()
        self.assertTrue(made.settled.wait(outbox.LONG))
        self.assertEqual([0, 1, 2], self.broker.taken)
        made.wake()
        self.assertTrue(made.settled.wait(outbox.LONG))

    def test_cannot_remove(self):
        """What cannot be removed from a full disk is not sent again."""
        self.append(3)
        ticks = []
        with contextlib.closing(sqlite3.connect(self.path)) as other:
            other.execute('BEGIN IMMEDIATE')
            self.start(tick=lambda: ticks.append(None))
            outbox.wait_until(lambda: len(ticks) > 3, lambda: ticks)
            self.assertEqual([0, 1, 2], self.broker.taken)
            self.assertIn('cannot use outbox', self.logs.output)
            other.execute('ROLLBACK')
        self.wait_for(0, 1, 2)
        self.assertEqual([0, 1, 2], self.broker.attempts)
        self.assertEqual(3, self.opened.status().sent)

    def test_corrupt(self):
        """A file that turns out to be corrupt makes way for a new one."""
        self.append(3000)
        self.opened.close()
        size = os.path.getsize(self.path)
        with open(self.path, 'r+b') as file:
            file.seek(size // 2)
            file.write(b'\xff' * (size - size // 2))
        self.start()
        outbox.wait_until(lambda: not os.path.exists(self.path),
                          lambda: self.logs.output)
        self.assertIn('It is ' + self.path + '.aside-', self.logs.output)
        sent = list(self.broker.taken)
        self.assertEqual(list(range(len(sent))), sent)
        self.opened = self.store()
        self.append(2, first=5000)
        self.wait_for(*sent, 5000, 5001)

    def test_slow(self):
        """A slow broker's words are noted before a batch is through."""
        self.useFixture(fixtures.MockPatchObject(relay, 'LONGEST_BATCH', 0))
        removed = []
        self.broker.mood = lambda one: removed.append(
            self.opened.status().sent)
        self.append(5)
        self.start()
        self.wait_for(*range(5))
        self.assertEqual(list(range(5)), removed)

    def test_stopped_midway(self):
        """It ends after the message on its way, and removes what was sent."""
        self.append(50)
        made = relay.Relay(self.settings(), self.broker)

        def mood(one):
            if outbox.numbers([one]) == [7]:
                made.stop()
        self.broker.mood = mood
        made.run()
        self.assertEqual(list(range(8)), self.broker.taken)
        self.assertEqual(list(range(8, 50)), self.waiting())

    def test_refused_of_another_file(self):
        """What was refused of one file is not set aside in the next."""
        self.append(1)

        def refuse(one):
            if outbox.numbers([one]) != [0]:
                return
            for suffix in '', '-wal', '-shm':
                os.rename(self.path + suffix, self.path + '-old' + suffix)
            self.opened = self.store()
            self.append(1, first=5)
            raise sender.Refused(one, ValueError('too large'))
        self.broker.mood = refuse
        self.start(max_tries=1)
        self.wait_for(5)
        self.assertEqual([], self.opened.list_failed())

    def test_replaced(self):
        """What was sent from one file is not taken for what is in the next.

        Both begin to count at one.
        """
        self.append(2)
        with contextlib.closing(sqlite3.connect(self.path)) as other:
            other.execute('BEGIN IMMEDIATE')
            self.start()
            outbox.wait_until(lambda: self.broker.taken == [0, 1],
                              lambda: self.broker.taken)
            self.opened.close()
            for suffix in '', '-wal', '-shm':
                os.rename(self.path + suffix, self.path + '-old' + suffix)
            self.opened = self.store()
            self.append(3, first=5)
            self.wait_for(0, 1, 5, 6, 7)
            other.execute('ROLLBACK')


class TestElection(TestCase):

    #: Holds the lock until its standard input ends.
    _OTHER = ('import sys, fasteners\n'
              'lock = fasteners.InterProcessLock(sys.argv[1])\n'
              'assert lock.acquire(blocking=False)\n'
              'print("elected", flush=True)\n'
              'sys.stdin.read()\n')

    def other(self, broker):
        self.opened.note(broker=broker)
        process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-c', self._OTHER,
             self.path + '.relay'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.kill)
        self.assertEqual('elected\n', process.stdout.readline())
        return process

    def test_one_at_a_time(self):
        """While another process relays this one does not; then it does."""
        self.append(2)
        process = self.other('fake://')
        made = self.start()
        self.assertTrue(made.settled.wait(outbox.LONG))
        self.assertEqual([], self.broker.attempts)
        process.kill()
        self.wait_for(0, 1)
        self.assertEqual(os.getpid(), self.opened.noted('relay'))
        self.assertNotIn('is relayed to', self.logs.output)

    def test_another_broker(self):
        """A file that is relayed elsewhere is an error that names both."""
        self.other('rabbit://elsewhere/')
        self.start()
        outbox.wait_until(
            lambda: f'Outbox {self.path} is relayed to rabbit://elsewhere/ by '
                    'another process, while this one sends to fake://'
                    in self.logs.output,
            lambda: self.logs.output)


class TestTally(TestCase):

    def test_once_a_minute(self):
        """The first is said at once, the rest together after a minute."""
        said = []
        clock = self.useFixture(fixtures.MockPatchObject(
            tally.time, 'monotonic', autospec=True, return_value=5.0)).mock
        counted = tally.Tally(said.append)
        counted.tell()
        counted.add(2)
        counted.add(3)
        counted.add()
        self.assertEqual([2], said)
        clock.return_value = 64.9
        counted.tell()
        self.assertEqual([2], said)
        clock.return_value = 65.0
        counted.tell()
        counted.tell()
        self.assertEqual([2, 4], said)
        counted.add()
        counted.tell(now=True)
        self.assertEqual([2, 4, 1], said)


class TestCheckpoint(TestCase):

    def test_while_away(self):
        """While nothing can be sent the log is moved into the file."""
        self.broker.mood = TestRelay._away
        self.opened.close()
        self.opened = self.store(checkpoint=store.APPEND_CHECKPOINT)
        self.append(500)
        before = os.path.getsize(self.path)
        self.start()
        # A few tries, and not the hundreds whose notes fill the log.
        outbox.wait_until(lambda: len(self.broker.attempts) > 3,
                          lambda: self.broker.attempts)
        self.assertGreater(os.path.getsize(self.path), before)
