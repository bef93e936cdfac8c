# SPDX-License-Identifier: Apache-2.0
"""Tests of the emitting side: no call waits long, and nothing is lost."""

import contextlib
import logging
import os
import pathlib
import threading
import time
from unittest import mock

import fixtures

from compute_notify.outbox import handle
from compute_notify.outbox import spool
from compute_notify.outbox import spoolfile
from compute_notify.outbox import store
from compute_notify.outbox import tally
from tests import outbox


class TestCase(outbox.TestCase):

    def spool(self, **values):
        made = spool.Spool(self.settings(**values))
        self.addCleanup(made.shut)
        return made

    def append(self, made, *numbers):
        for number in numbers:
            made.append(outbox.messages(1, first=number))

    def wait_for(self, *numbers):
        """Wait until these wait in the file, in this order."""
        opened = self.store()
        outbox.wait_until(
            lambda: outbox.numbers(opened.first(1000)) == list(numbers),
            lambda: outbox.numbers(opened.first(1000)))


class TestAppend(TestCase):

    def test_stored(self):
        """What is taken is in the file when the call returns."""
        made = self.spool()
        self.append(made, 0, 1)
        self.assertEqual([0, 1], self.waiting())

    def test_dropped(self):
        """What a full file drops is said at once, then once a minute."""
        clock = self.useFixture(fixtures.MockPatchObject(
            tally.time, 'monotonic', autospec=True, return_value=100.0)).mock
        made = self.spool(max_messages=2)
        self.append(made, *range(5))
        self.assertEqual([3, 4], self.waiting())
        said = '1 notifications were dropped, the oldest.'
        self.assertEqual(1, self.logs.output.count(said))
        self.assertEqual(1, self.logs.output.count('dropped'))
        clock.return_value = 160.0
        made.housekeep()
        self.assertIn('2 notifications were dropped', self.logs.output)

    def test_replaced(self):
        """A file that was deleted is made again; nothing goes to the old."""
        made = self.spool()
        self.append(made, 0)
        for suffix in '', '-wal', '-shm':
            os.unlink(self.path + suffix)
        self.append(made, 1)
        self.assertEqual([1], self.waiting())

    def test_corrupted_in_use(self):
        """A file that is spoilt while in use is moved; emission goes on."""
        made = self.spool()
        self.append(made, *range(100))
        made.close()
        size = os.path.getsize(self.path)
        with open(self.path, 'r+b') as file:
            file.seek(4096)
            file.write(b'\xff' * (size - 4096))
        self.append(made, 200, 201)
        self.wait_for(200, 201)
        self.assertEqual(1, len(list(
            pathlib.Path(self.path).parent.glob('outbox.aside-*[0-9]'))))
        self.assertIn('malformed', self.logs.output)


class _Notifying(logging.Handler):
    """Notifies of each error, as oslo.log's publish_errors does."""

    def __init__(self, made):
        super().__init__(logging.ERROR)
        self.made = made

    def emit(self, record):
        """Store an error."""
        self.made.append(outbox.messages(1, first=1000))


class TestPublishErrors(TestCase):

    def test_publish_errors(self):
        """What is said may come back as a notification."""
        made = self.spool(max_messages=2)
        handler = _Notifying(made)
        logging.getLogger('compute_notify').addHandler(handler)
        self.addCleanup(
            logging.getLogger('compute_notify').removeHandler, handler)
        thread = threading.Thread(target=self.append, args=(made, 0, 1, 2),
                                  daemon=True)
        thread.start()
        thread.join(outbox.LONG)
        self.assertFalse(thread.is_alive())
        self.assertIn('dropped', self.logs.output)
        self.assertEqual([2, 1000], self.waiting())

    def test_not_while_it_is_held(self):
        """Nobody waits for the log of another."""
        made = self.spool(max_messages=1)
        free = []

        def look(level, *args):
            def work():
                with made.lock:
                    free.append(True)
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            thread.join(outbox.LONG)
        with mock.patch.object(handle.LOG, 'log', autospec=True,
                               side_effect=look):
            made.append(outbox.messages(2))
        self.assertEqual([True], free)


class TestMemory(TestCase):
    """While the file cannot be written."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            spool, 'FLUSH_INTERVAL', 0.01))

    def busy(self):
        return outbox.busy(self.path)

    def full(self, made):
        """Let the file grow no more; return what lets it grow again."""
        with made.locked() as used:
            pages, = used._db.execute('PRAGMA page_count').fetchone()
            used._db.execute(f'PRAGMA max_page_count = {pages}')

        def more():
            with made.locked() as used:
                used._db.execute('PRAGMA max_page_count = 100000')
        return more

    def test_busy(self):
        """One call waits for the file a moment, the next not at all."""
        made = self.spool()
        with self.busy():
            before = time.monotonic()
            self.append(made, 0)
            self.assertLess(time.monotonic() - before, 0.5)
            with mock.patch.object(spoolfile, 'PATIENCE', 60):
                before = time.monotonic()
                self.append(made, *range(1, 100))
                self.assertLess(time.monotonic() - before, 30)
        self.wait_for(*range(100))

    def test_order(self):
        """What comes once the file can be written again stays behind."""
        self.useFixture(fixtures.MockPatchObject(
            spool, 'FLUSH_INTERVAL', 3600))
        made = self.spool()
        with self.busy():
            self.append(made, 0, 1)
        self.append(made, 2)
        self.assertEqual([], self.waiting())
        self.assertTrue(made.flush())
        self.append(made, 3)
        self.assertEqual([0, 1, 2, 3], self.waiting())

    def test_full_disk(self):
        """What a full disk refuses is kept, said, and written later."""
        made = self.spool()
        more = self.full(made)
        body = 'x' * 10000
        given = outbox.messages(30)
        for one in given:
            made.append([one.__class__(
                one.exchange, one.topic, one.body[:-1] + f', "x": "{body}"}}',
                one.created)])
        self.assertIn('database or disk is full', self.logs.output)
        self.assertRegex(self.logs.output,
                         '1 notifications are in memory, and lost if')
        self.assertEqual(1, self.logs.output.count('in memory'))
        self.assertLess(len(self.waiting()), 30)
        more()
        self.wait_for(*range(30))
        self.assertIn('can be written again', self.logs.output)

    def test_bound_oldest(self):
        """Memory has a bound too; what is dropped there is said."""
        made = self.spool(memory_messages=3)
        with self.busy():
            self.append(made, *range(5))
            self.assertIn('notifications were dropped, the oldest',
                          self.logs.output)
        self.wait_for(2, 3, 4)

    def test_bound_newest(self):
        """The newest go if that is asked for."""
        made = self.spool(memory_messages=3, drop_newest=True)
        with self.busy():
            self.append(made, *range(5))
        self.wait_for(0, 1, 2)

    def test_no_memory(self):
        """With a bound of zero what cannot be stored is dropped, and said."""
        made = self.spool(memory_messages=0)
        with self.busy():
            self.append(made, 0)
        self.assertIn('1 notifications were dropped', self.logs.output)

    def test_end(self):
        """What is still in memory at the end is said to be lost."""
        made = self.spool()
        with self.busy():
            self.append(made, 0, 1)
            made.shut()
        self.assertRegex(self.logs.output,
                         r'could not be written \(.*locked.*\): 2 '
                         'notifications in memory are lost')

    def test_end_in_time(self):
        """What can be written at the end is."""
        self.useFixture(fixtures.MockPatchObject(
            spool, 'FLUSH_INTERVAL', 3600))
        made = self.spool()
        with self.busy():
            self.append(made, 0, 1)
        made.shut()
        self.assertEqual([0, 1], self.waiting())
        self.assertNotIn('lost.', self.logs.output)

    def test_no_directory(self):
        """A directory that cannot be made is waited for, and named."""
        blocked = pathlib.Path(self.path)
        blocked.write_text('in the way')
        self.path = str(blocked / 'outbox')
        made = self.spool()
        self.append(made, 0)
        self.assertIn(f'Outbox {self.path} cannot be written',
                      self.logs.output)
        blocked.unlink()
        outbox.wait_until(lambda: os.path.exists(self.path),
                          lambda: self.logs.output)
        self.wait_for(0)

    def test_no_thread(self):
        """Where no thread can be started the next call tries again."""
        made = self.spool()
        with self.busy():
            with mock.patch.object(
                    threading.Thread, 'start', autospec=True,
                    side_effect=RuntimeError("can't start new thread")):
                self.append(made, 0)
            self.append(made, 1)
        self.wait_for(0, 1)
        self.assertIn("locked; can't start new thread", self.logs.output)

    def test_flusher_ends(self):
        """The thread that writes later ends; new trouble starts another."""
        made = self.spool()
        for first in 0, 1:
            with self.busy():
                self.append(made, first)
                self.assertIsNotNone(made._flusher)
            self.wait_for(*range(first + 1))
            outbox.wait_until(lambda: made._flusher is None,
                              lambda: made._flusher)


class TestAside(TestCase):

    def test_set_aside(self):
        """What has no form to be sent in is kept with its error."""
        made = self.spool()
        made.set_aside(outbox.messages(1), 'no JSON')
        kept, = self.store().list_failed()
        self.assertEqual(('no JSON', 0, False),
                         (kept.error, kept.tries, kept.sendable))


class TestCheckpoint(TestCase):

    def test_not_by_a_caller(self):
        """Storing leaves it to the relay to move the log into the file."""
        made = self.spool()
        made.append(outbox.messages(2000))
        for _ in range(20):
            made.append(outbox.messages(200))
        self.assertGreater(os.path.getsize(self.path + '-wal'),
                           store.RELAY_CHECKPOINT * 4096 // 8)
        before = os.path.getsize(self.path)
        with contextlib.closing(store.Store(self.path)) as opened:
            opened.checkpoint()
        self.assertGreater(os.path.getsize(self.path), before)
