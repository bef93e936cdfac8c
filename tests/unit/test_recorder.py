# SPDX-License-Identifier: Apache-2.0
"""The recorder alone, on models that are not a compute node."""

from unittest import mock

from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
from sqlalchemy import orm

from compute_notify import recorder
from tests import base

BASE = orm.declarative_base()


class Thing(BASE):
    """A row to be watched."""

    __tablename__ = 'things'

    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.String(32), unique=True)
    size = sa.Column(sa.Integer)
    note = sa.Column(sa.String(32))
    deleted = sa.Column(sa.Integer, default=0)


class Other(BASE):
    """A row of another kind."""

    __tablename__ = 'others'

    id = sa.Column(sa.Integer, primary_key=True)
    size = sa.Column(sa.Integer)
    deleted = sa.Column(sa.Integer, default=0)


def row(name='a', size=1, deleted=0):
    """Return what is recorded of a thing."""
    return {'name': name, 'size': size, 'deleted': deleted}


class RecorderTestCase(base.TestCase):
    """A test case with a recorder, a table in memory and a session."""

    columns = ('name', 'size', 'deleted')

    def setUp(self):
        super().setUp()
        self.session = self.new_session()
        self.recorder = recorder.Recorder(Thing, self.columns)
        self.recorder.listen()
        self.addCleanup(self.recorder.ignore)
        self.changes = []

    def new_session(self):
        """Return a session on tables of its own."""
        facade = enginefacade.transaction_context()
        facade.configure(connection='sqlite://')
        engine = facade.writer.get_engine()
        self.addCleanup(engine.dispose)
        BASE.metadata.create_all(engine)
        session = orm.Session(engine, expire_on_commit=False)
        self.addCleanup(session.close)
        return session

    def statements(self):
        """Return a list that gets the first word of each statement."""
        words = []
        sa.event.listen(self.session.bind, 'before_cursor_execute',
                        lambda *args: words.append(args[2].split()[0]))
        return words

    def sink(self, before, after):
        """Keep what the recorder gives."""
        self.changes.append((before, after))

    def recording(self, **kwargs):
        """Record into the list of changes."""
        return self.recorder.recording(self.sink, **kwargs)

    def stored(self, name='a', size=1):
        """Return a thing that was committed before the recording."""
        thing = Thing(name=name, size=size)
        self.session.add(thing)
        self.session.commit()
        return thing


class TestRow(RecorderTestCase):
    """One row before and after."""

    def test_insert(self):
        """A new row has none before it, and its defaults after it."""
        with self.recording(), self.session.begin():
            self.session.add(Thing(name='a', size=1))
        self.assertEqual([(None, row())], self.changes)

    def test_insert_without_values(self):
        """A column without a value is null, and reading it is no query."""
        statements = self.statements()
        with self.recording(), self.session.begin():
            self.session.add(Thing(name='a'))
        self.assertEqual([(None, row(size=None))], self.changes)
        self.assertEqual(['BEGIN', 'INSERT'], statements)

    def test_update(self):
        """A changed row is given as it was and as it is."""
        thing = self.stored()
        with self.recording():
            thing.size = 2
            self.session.commit()
        self.assertEqual([(row(), row(size=2))], self.changes)

    def test_update_of_another_column(self):
        """A row whose recorded columns stay is given with equal ones."""
        thing = self.stored()
        with self.recording():
            thing.note = 'new'
            self.session.commit()
        self.assertEqual([(row(), row())], self.changes)

    def test_equal_value(self):
        """An equal value assigned is an equal value."""
        thing = self.stored()
        with self.recording():
            thing.size = 1
            thing.note = 'new'
            self.session.commit()
        self.assertEqual([(row(), row())], self.changes)

    def test_update_costs_no_query(self):
        """The values before come from memory if they have been loaded."""
        thing = self.stored()
        statements = self.statements()
        with self.recording():
            thing.size = 2
            self.session.commit()
        self.assertEqual(['BEGIN', 'UPDATE'], statements)

    def test_expired(self):
        """The value before is read where it was assigned without loading."""
        thing = self.stored(size=7)
        self.session.expire(thing)
        with self.recording():
            thing.size = 2
            self.session.commit()
        self.assertEqual([(row(size=7), row(size=2))], self.changes)

    def test_expired_altogether(self):
        """So are those of all columns, without a mix-up."""
        thing = self.stored(size=7)
        self.session.expire(thing)
        with self.recording():
            thing.deleted, thing.size, thing.name = 5, 2, 'b'
            self.session.commit()
        self.assertEqual([(row(size=7), row('b', 2, 5))], self.changes)

    def test_expired_and_equal(self):
        """An equal value assigned without loading is equal all the same."""
        thing = self.stored(size=7)
        self.session.expire(thing)
        with self.recording():
            thing.size = 7
            self.session.commit()
        self.assertEqual([(row(size=7), row(size=7))], self.changes)

    def test_null(self):
        """A null before and a null after are values like any other."""
        thing = self.stored(size=None)
        for before, after in ((None, 0), (0, None)):
            with self.recording():
                thing.size = after
                self.session.commit()
            self.assertEqual((row(size=before), row(size=after)),
                             self.changes.pop())

    def test_not_loaded(self):
        """A column that was never loaded has the same value on both sides."""
        self.stored(size=7)
        self.session.expunge_all()
        thing = self.session.scalars(
            sa.select(Thing).options(orm.load_only(Thing.name))).one()
        with self.recording():
            thing.name = 'b'
            self.session.commit()
        self.assertEqual([(row(size=7), row('b', 7))], self.changes)


class TestListening(RecorderTestCase):
    """Attaching and detaching."""

    def test_listen_twice(self):
        """Listening twice records once, and is ended by ignoring once."""
        self.recorder.listen()
        with self.recording():
            self.stored('a')
        self.assertEqual(1, len(self.changes))
        self.recorder.ignore()
        with self.recording():
            self.stored('b')
        self.assertEqual(1, len(self.changes))

    def test_ignore_twice(self):
        """Ignoring can be repeated, and undone."""
        self.recorder.ignore()
        self.recorder.ignore()
        with self.recording():
            self.stored('a')
        self.assertEqual([], self.changes)
        self.recorder.listen()
        with self.recording():
            self.stored('b')
        self.assertEqual([(None, row('b'))], self.changes)

    def test_another_model(self):
        """Two recorders of two models see a row each, and stay apart."""
        others = recorder.Recorder(Other, ('size', 'deleted'))
        others.listen()
        self.addCleanup(others.ignore)
        changes = []
        with self.recording():
            with others.recording(lambda *args: changes.append(args)):
                self.session.add_all([Thing(name='a', size=1), Other(size=2)])
                self.session.commit()
        self.assertEqual([(None, row())], self.changes)
        self.assertEqual([(None, {'size': 2, 'deleted': 0})], changes)
        self.recorder.ignore()
        with others.recording(lambda *args: changes.append(args)):
            self.session.add(Other(size=3))
            self.session.commit()
        self.assertEqual(2, len(changes))


class TestErrors(RecorderTestCase):
    """An error of the recorder's own."""

    def setUp(self):
        super().setUp()
        patcher = mock.patch.object(recorder.Journal, 'add', autospec=True,
                                    side_effect=RuntimeError('secret'))
        patcher.start()
        self.addCleanup(patcher.stop)

    def test_contained(self):
        """It is logged, without its text, and the row is stored."""
        with self.recording():
            thing = self.stored()
            thing.size = 2
            self.session.commit()
        self.assertEqual(2, thing.size)
        self.assertEqual([], self.changes)
        lines = self.logs.output.splitlines()
        self.assertEqual(2, len(lines))
        for line in lines:
            self.assertIn('RuntimeError', line)
            self.assertNotIn('secret', line)

    def test_strict(self):
        """It is raised where that is asked for."""
        def write():
            with self.recording(strict=True):
                self.stored()

        self.assertRaises(RuntimeError, write)
        self.session.rollback()
        self.assertEqual(0, self.session.query(Thing).count())


class TestUnknownColumn(RecorderTestCase):
    """A column that the model does not have."""

    columns = ('name', 'size', 'deleted', 'color')

    def test_contained(self):
        """It makes no event, and does no harm to the row."""
        thing = self.stored()
        with self.recording():
            thing.size = 2
            self.session.commit()
        self.assertEqual(2, thing.size)
        self.assertEqual([], self.changes)
        self.assertIn('AttributeError', self.logs.output)
