# SPDX-License-Identifier: Apache-2.0
"""Tests of what the outbox's file holds."""

import time

from tests import outbox


class TestStore(outbox.TestCase):

    def append(self, store, messages, **values):
        return store.append(messages, **({'max_messages': 100} | values))

    def test_order(self):
        """What was stored first is first, whichever connection stored it."""
        one, other = self.store(), self.store()
        for number in range(6):
            self.append((one, other)[number % 2],
                        outbox.messages(1, first=number))
        self.assertEqual([0, 1, 2, 3], outbox.numbers(one.first(4)))
        self.assertEqual(list(range(6)), outbox.numbers(other.first(10)))

    def test_as_it_was(self):
        """Exchange, topic, body and time come back."""
        given, = outbox.messages(1)
        store = self.store()
        self.append(store, [given])
        found, = store.first(1)
        self.assertEqual(
            (given.exchange, given.topic, given.body, given.created),
            (found.exchange, found.topic, found.body, found.created))

    def test_remove(self):
        """What was sent goes and is counted; the rest stays, in order."""
        store = self.store()
        self.append(store, outbox.messages(5))
        store.remove_sent(store.first(2))
        self.assertEqual([2, 3, 4], self.waiting())
        status = self.store().status()
        self.assertEqual((3, 2), (status.waiting, status.sent))

    def test_after(self):
        """Those behind one that is known can be had alone."""
        store = self.store()
        self.append(store, outbox.messages(5))
        known = store.first(2)[-1]
        self.assertEqual(
            [2, 3], outbox.numbers(store.first(2, after=known.id)))

    def test_id_is_never_used_twice(self):
        """What comes when all was removed is not taken for what went."""
        store = self.store()
        self.append(store, outbox.messages(1))
        old = store.first(1)
        store.remove_sent(old)
        self.append(store, outbox.messages(1, first=7))
        store.remove_sent(old)
        self.assertEqual([7], self.waiting())

    def test_drop_oldest(self):
        """A full file drops what has waited longest, and counts it."""
        store = self.store()
        self.assertEqual(0, self.append(store, outbox.messages(4),
                                        max_messages=4))
        self.assertEqual(2, self.append(store, outbox.messages(2, first=4),
                                        max_messages=4))
        self.assertEqual([2, 3, 4, 5], self.waiting())
        self.assertEqual(2, store.status().dropped)

    def test_drop_newest(self):
        """A full file drops what comes, if that is asked for."""
        store = self.store()
        self.append(store, outbox.messages(3))
        self.assertEqual(1, self.append(
            store, outbox.messages(2, first=3), max_messages=4,
            drop_newest=True))
        self.assertEqual([0, 1, 2, 3], self.waiting())
        self.assertEqual(1, store.status().dropped)

    def test_drop_newest_when_lowered(self):
        """What was there before a lower limit is not counted as dropped."""
        store = self.store()
        self.append(store, outbox.messages(9))
        self.assertEqual(2, self.append(
            store, outbox.messages(2, first=9), max_messages=4,
            drop_newest=True))
        self.assertEqual((9, 2), (store.status().waiting,
                                  store.status().dropped))

    def test_waiting_is_counted_right(self):
        """The figure is what a count would give, whatever was done."""
        store = self.store()

        def check():
            counted, = store._db.execute(
                'SELECT count(*) FROM message').fetchone()
            self.assertEqual(counted, store.waiting())
        for number in range(12):
            self.append(store, outbox.messages(2, first=number),
                        max_messages=7, drop_newest=number % 3 == 0)
            check()
        first, second, *_ = store.first(9)
        store.remove_sent([first])
        store.remove_sent([first])
        store.set_aside(second, 'x', tries=1, keep=9)
        check()
        store.set_aside(outbox.messages(1)[0], 'x', tries=1, keep=9)
        store.retry_failed()
        check()
        store.remove_older(store.first(9)[2].created)
        check()
        store.remove_older(time.time())
        check()
        self.assertEqual(0, store.waiting())

    def test_gaps_do_not_fill_it(self):
        """What went from between the others leaves room."""
        store = self.store()
        self.append(store, outbox.messages(4))
        store.remove_sent(store.first(4)[1:3])
        self.assertEqual(0, self.append(
            store, outbox.messages(2, first=4), max_messages=4))
        self.assertEqual([0, 3, 4, 5], self.waiting())

    def test_remove_older(self):
        """What has waited too long goes and is counted as dropped."""
        store = self.store()
        self.append(store, outbox.messages(2))
        between = time.time()
        self.append(store, outbox.messages(2, first=2))
        self.assertEqual(2, store.remove_older(between))
        self.assertEqual(0, store.remove_older(between))
        self.assertEqual([2, 3], self.waiting())
        self.assertEqual(2, store.status().dropped)

    def test_status(self):
        """An empty file has no age and no error; figures add up."""
        store = self.store()
        empty = store.status()
        self.assertEqual(
            (0, None, 0, 0, 0, None, None),
            (empty.waiting, empty.oldest_age, empty.sent, empty.dropped,
             empty.failed, empty.last_error, empty.last_error_at))
        self.append(store, outbox.messages(1))
        store.note(last_error='gone', last_error_at=5.0)
        status = self.store().status()
        self.assertLess(0, status.oldest_age)
        self.assertEqual(('gone', 5.0),
                         (status.last_error, status.last_error_at))
        self.assertRegex(
            str(status), r'^1 waiting for up to 0 s, 0 sent, 0 dropped, '
            r'0 failed, last error: gone$')


class TestFailed(outbox.TestCase):

    def setUp(self):
        super().setUp()
        self.opened = self.store()
        self.opened.append(outbox.messages(3), max_messages=100)

    def aside(self, one, keep=100, **values):
        self.opened.set_aside(one, 'too large', tries=3, keep=keep, **values)

    def test_set_aside(self):
        """What failed waits no more, and is kept with its error."""
        middle = self.opened.first(3)[1]
        self.aside(middle)
        self.assertEqual([0, 2], self.waiting())
        kept, = self.store().list_failed()
        self.assertEqual(
            ('topic.info', middle.created, 3, 'too large', True),
            (kept.topic, kept.created, kept.tries, kept.error,
             kept.sendable))
        self.assertEqual(1, self.opened.status().failed)

    def test_retry(self):
        """It can be put behind the others again, one or all."""
        for one in self.opened.first(2):
            self.aside(one)
        first, second = self.opened.list_failed()
        self.assertEqual(1, self.opened.retry_failed([second.id]))
        self.assertEqual([2, 1], self.waiting())
        self.assertEqual(1, self.opened.retry_failed())
        self.assertEqual([2, 1, 0], self.waiting())
        self.assertEqual([], self.opened.list_failed())

    def test_retry_is_not_too_old(self):
        """What is sent again counts as stored now."""
        self.aside(self.opened.first(1)[0])
        before = time.time()
        self.opened.retry_failed()
        self.assertGreaterEqual(self.opened.first(3)[-1].created, before)

    def test_not_sendable(self):
        """What has no JSON is kept, and not sent again."""
        self.aside(outbox.messages(1, first=9)[0], sendable=False)
        self.assertEqual(0, self.opened.retry_failed())
        self.assertFalse(self.opened.list_failed()[0].sendable)

    def test_bounded(self):
        """No more are kept than asked for; the oldest go and are counted."""
        for one in self.opened.first(3):
            self.aside(one, keep=2)
        self.assertEqual([2, 3],
                         [one.id for one in self.opened.list_failed()])
        self.assertEqual(1, self.opened.status().dropped)
