# SPDX-License-Identifier: Apache-2.0
"""When the recorder speaks: commits, rollbacks and savepoints."""

import gc
from unittest import mock
import weakref

from oslo_db import exception as db_exc

from tests.unit import test_recorder

Other = test_recorder.Other
Thing = test_recorder.Thing
row = test_recorder.row


class TestTransaction(test_recorder.RecorderTestCase):
    """When the sink is called, and with what."""

    def test_after_the_block(self):
        """The sink is called when the block has ended, not at the commit."""
        with self.recording():
            with self.session.begin():
                self.session.add(Thing(name='a', size=1))
            self.assertEqual([], self.changes)
        self.assertEqual([(None, row())], self.changes)

    def test_after_a_block_that_raises(self):
        """What was committed before an error was changed all the same."""
        def fail():
            with self.recording():
                with self.session.begin():
                    self.session.add(Thing(name='a', size=1))
                raise KeyError()

        self.assertRaises(KeyError, fail)
        self.assertEqual([(None, row())], self.changes)

    def test_after_the_commit(self):
        """A transaction that outlives the block is given at its commit."""
        with self.recording():
            self.session.add(Thing(name='a', size=1))
            self.session.flush()
        self.assertEqual([], self.changes)
        self.session.commit()
        self.assertEqual([(None, row())], self.changes)

    def test_once(self):
        """A second commit gives nothing again."""
        self.test_after_the_commit()
        self.session.add(Other(size=1))
        self.session.commit()
        self.assertEqual(1, len(self.changes))

    def test_rolled_back(self):
        """A transaction that is rolled back or closed gives nothing."""
        for end in (self.session.rollback, self.session.close):
            with self.recording():
                self.session.add(Thing(name='a', size=1))
                self.session.flush()
                end()
            self.session.commit()
            self.assertEqual([], self.changes)

    def test_flush_fails(self):
        """A row that the database refuses gives nothing."""
        thing = self.stored('a')
        self.stored('b')
        with self.recording():
            thing.name = 'b'
            self.assertRaises(db_exc.DBDuplicateEntry,
                              self.session.flush)
            self.session.rollback()
            thing.size = 2
            self.session.commit()
        self.assertEqual([(row(), row(size=2))], self.changes)

    def test_not_recorded(self):
        """Nothing is given of what is written outside of the block."""
        with self.recording():
            pass
        self.stored()
        self.assertEqual([], self.changes)

    def test_net_change(self):
        """Several flushes of one row are one change."""
        thing = self.stored()
        with self.recording():
            for size in (2, 3, 4):
                thing.size = size
                self.session.flush()
            self.session.commit()
        self.assertEqual([(row(), row(size=4))], self.changes)

    def test_net_change_of_a_new_row(self):
        """A row that is new and changed is a new one."""
        thing = Thing(name='a', size=1)
        with self.recording():
            self.session.add(thing)
            self.session.flush()
            thing.size = 2
            self.session.commit()
        self.assertEqual([(None, row(size=2))], self.changes)

    def test_two_blocks(self):
        """The last block that wrote a row is told, of the whole change."""
        thing = self.stored()
        first = []
        with self.recorder.recording(lambda *args: first.append(args)):
            thing.size = 2
            self.session.flush()
        with self.recording():
            thing.size = 3
            self.session.flush()
        self.session.commit()
        self.assertEqual([], first)
        self.assertEqual([(row(), row(size=3))], self.changes)

    def test_nested_blocks(self):
        """A block inside another takes what is written in it."""
        inner = []
        with self.recording():
            with self.recorder.recording(lambda *args: inner.append(args)):
                self.stored('a')
            self.stored('b')
        self.assertEqual([(None, row('a'))], inner)
        self.assertEqual([(None, row('b'))], self.changes)

    def test_two_sessions(self):
        """Sessions that are open at once are kept apart."""
        other = self.new_session()
        with self.recording():
            for session, name in ((self.session, 'a'), (other, 'b')):
                session.add(Thing(name=name, size=1))
                session.flush()
            other.rollback()
            self.session.commit()
        self.assertEqual([(None, row('a'))], self.changes)

    def test_nothing_is_kept(self):
        """A session that has ended holds on to neither rows nor sinks."""
        sink = mock.Mock()
        gone = weakref.ref(sink)
        for end in (self.session.commit, self.session.rollback):
            with self.recorder.recording(sink):
                self.session.add(Thing(name=str(end), size=1))
                self.session.flush()
                end()
            self.assertEqual({}, self.session.info)
        del sink
        gc.collect()
        self.assertIsNone(gone())


class TestSavepoint(test_recorder.RecorderTestCase):
    """Savepoints: released, rolled back, nested."""

    def setUp(self):
        super().setUp()
        self.thing = self.stored()

    def write(self, size):
        """Write a size to the database."""
        self.thing.size = size
        self.session.flush()

    def test_released(self):
        """Releasing a savepoint gives nothing yet."""
        with self.recording():
            with self.session.begin_nested():
                self.write(2)
        self.assertEqual([], self.changes)
        self.session.commit()
        self.assertEqual([(row(), row(size=2))], self.changes)

    def test_rolled_back(self):
        """What a savepoint undoes is not given, what it leaves is."""
        with self.recording():
            self.write(2)
            savepoint = self.session.begin_nested()
            self.write(3)
            savepoint.rollback()
            self.session.commit()
        self.assertEqual([(row(), row(size=2))], self.changes)

    def test_written_after(self):
        """An instance that a rollback has expired is recorded rightly."""
        with self.recording():
            self.write(2)
            savepoint = self.session.begin_nested()
            self.write(3)
            savepoint.rollback()
            self.write(4)
            self.session.commit()
        self.assertEqual([(row(), row(size=4))], self.changes)

    def test_nested(self):
        """A savepoint that was released goes with the one around it."""
        with self.recording():
            outer = self.session.begin_nested()
            with self.session.begin_nested():
                self.write(2)
            outer.rollback()
            self.session.commit()
        self.assertEqual([], self.changes)

    def test_siblings(self):
        """A savepoint that was released outlives the next one's rollback."""
        with self.recording():
            with self.session.begin_nested():
                self.write(2)
            self.session.begin_nested().rollback()
            self.session.commit()
        self.assertEqual([(row(), row(size=2))], self.changes)

    def test_outer_rolled_back(self):
        """A savepoint that was released goes with the transaction."""
        with self.recording():
            with self.session.begin_nested():
                self.write(2)
            self.session.rollback()
            self.session.commit()
        self.assertEqual([], self.changes)

    def test_flush_fails(self):
        """A row refused in a savepoint is undone with the savepoint."""
        other = self.stored('b')

        def clash():
            with self.session.begin_nested():
                other.name = 'a'
                self.session.flush()

        with self.recording():
            self.write(2)
            self.assertRaises(db_exc.DBDuplicateEntry, clash)
            self.session.commit()
        self.assertEqual([(row(), row(size=2))], self.changes)

    def test_closed(self):
        """A savepoint that is closed and not released is undone too."""
        with self.recording():
            self.write(2)
            savepoint = self.session.begin_nested()
            self.write(3)
            savepoint.close()
            self.session.commit()
        self.session.refresh(self.thing)
        self.assertEqual(2, self.thing.size)
        self.assertEqual([(row(), row(size=2))], self.changes)
