# SPDX-License-Identifier: Apache-2.0
"""Tests of what crosses a fork, and what does not."""

import os
import threading

import fixtures

from compute_notify.outbox import forks
from compute_notify.outbox import process
from compute_notify.outbox import spool
from tests import outbox


class TestForks(outbox.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            spool, 'FLUSH_INTERVAL', 3600))
        self.spool = spool.Spool(self.settings())
        self.addCleanup(self.spool.shut)

    def append(self, *numbers):
        for number in numbers:
            self.spool.append(outbox.messages(1, first=number))

    def in_child(self, job):
        """Do something in a child; check that it found all as it should."""
        pid = os.fork()
        if not pid:
            good = False
            try:
                good = job() is not False
            finally:
                os._exit(not good)
        self.assertEqual(0, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    def test_memory(self):
        """What a parent has in memory its child neither has nor writes."""
        with outbox.busy(self.path):
            self.append(0)
        self.assertEqual([], self.waiting())

        def child():
            self.append(1)
            self.spool.shut()
        self.in_child(child)
        self.assertEqual([1], self.waiting())
        self.assertTrue(self.spool.flush())
        self.assertEqual([1, 0], self.waiting())

    def test_connection(self):
        """No connection is open while a process forks."""
        self.append(0)

        def child():
            inherited = self.spool._store
            self.append(1)
            return inherited is None and not forks._left_behind
        self.in_child(child)
        self.append(2)
        self.assertEqual([0, 1, 2], self.waiting())

    def test_lock(self):
        """A fork waits for a thread that is at the file."""
        held, go_on = threading.Event(), threading.Event()

        def work():
            with self.spool.locked():
                held.set()
                go_on.wait(outbox.LONG)
        thread = threading.Thread(target=work)
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(held.wait(outbox.LONG))
        os.register_at_fork(before=go_on.set)  # runs before ours
        self.in_child(lambda: self.append(0))
        self.assertEqual([0], self.waiting())
        self.append(1)
        self.assertEqual([0, 1], self.waiting())

    def test_lock_for_ever(self):
        """It does not wait for ever; the child begins anew all the same."""
        self.useFixture(fixtures.MockPatchObject(forks, '_PATIENCE', 0.01))
        self.append(0)
        before = self.spool._store
        held, go_on = threading.Event(), threading.Event()

        def work():
            with self.spool.locked():
                held.set()
                go_on.wait(outbox.LONG)
        thread = threading.Thread(target=work)
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(held.wait(outbox.LONG))

        def child():
            self.append(1)
            return (before in forks._left_behind
                    and self.spool._store is not before)
        self.in_child(child)
        go_on.set()
        self.append(2)
        self.assertEqual([0, 1, 2], self.waiting())

    def test_by_who_holds_it(self):
        """A thread that forks while it is at the file does not wait."""
        with self.spool.lock:
            self.in_child(lambda: self.append(0))
        self.append(1)
        self.assertEqual([0, 1], self.waiting())

    def test_relay(self):
        """A child has no relay until it has something to send."""
        broker = outbox.FakeSender()
        made = process.Outbox(self.settings(), lambda: broker)
        self.addCleanup(made.shut)
        made.put(outbox.messages(1))
        outbox.wait_until(lambda: broker.taken == [0], lambda: broker.taken)
        self.in_child(lambda: made._relay is None and made._thread is None)
        made.put(outbox.messages(1, first=1))
        outbox.wait_until(lambda: broker.taken == [0, 1],
                          lambda: broker.taken)
