# SPDX-License-Identifier: Apache-2.0
"""Several writers of one table: deadlocks, threads and processes."""

from concurrent import futures
import multiprocessing
import threading

from oslo_config import cfg
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc
from oslo_db import options
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from compute_notify import context
from compute_notify.db import api
from compute_notify.db import engine
from compute_notify.db import models
from compute_notify import exception
from compute_notify import fixture
from compute_notify import objects
from tests.functional import servers
from tests.functional import test_lifecycle

load_tests = testscenarios.load_tests_apply_scenarios

#: Seconds after which a test that waits has failed.
TIMEOUT = 60
SAVES = 50

#: SQLite has one lock, so that nothing happens while a writer is at work.
ROW_LOCKS = [(name, attributes) for name, attributes in servers.SCENARIOS
             if attributes['server'] is not None]


def at_once(*functions):
    """Run functions in a thread each; return their results."""
    with futures.ThreadPoolExecutor(len(functions)) as pool:
        running = [pool.submit(function) for function in functions]
        return [future.result(TIMEOUT) for future in running]


class TestRetry(test_lifecycle.LifecycleTestCase):
    """A call that the database picks as a deadlock's victim."""

    def deadlock(self, times):
        """Let UPDATE raise a deadlock; return the list of its attempts."""
        attempts = []

        def raise_first(statement):
            if statement.startswith('UPDATE'):
                attempts.append(statement)
                if len(attempts) <= times:
                    raise db_exc.DBDeadlock()

        self.on_statement(raise_first)
        return attempts

    def test_save(self):
        """A save is repeated, and announced once, from its last attempt."""
        node = self.created()
        attempts = self.deadlock(2)
        node.vcpus = 9
        node.save()
        self.assertEqual(3, len(attempts))
        self.assertEqual([('update', 9)], [(action, data['vcpus'])
                                           for action, data in self.sent()])

    def test_destroy(self):
        """A destroy is repeated, and announced once."""
        node = self.created()
        attempts = self.deadlock(1)
        node.destroy()
        self.assertEqual(2, len(attempts))
        self.assertEqual(['delete'], self.actions())

    def test_create(self):
        """A create that brings a node back is repeated and told once."""
        uuid = self.deleted().uuid
        attempts = self.deadlock(1)
        self.node(uuid=uuid).create()
        self.assertEqual(2, len(attempts))
        self.assertEqual(['create'], self.actions())

    def test_not_inside(self):
        """Inside an outer transaction only its owner can repeat it."""
        node = self.created()
        attempts = self.deadlock(1)

        def outer():
            with api.writer(self.context):
                node.vcpus = 9
                node.save()

        self.assertRaises(db_exc.DBDeadlock, outer)
        self.assertEqual(1, len(attempts))
        self.assertEqual([], self.actions())
        outer()
        self.assertEqual(['update'], self.actions())


class TestDeadlock(servers.DatabaseTestCase):
    """Two threads that lock two nodes in opposite order, for real."""

    scenarios = ROW_LOCKS

    def setUp(self):
        """Store the two nodes."""
        super().setUp()
        self.one = self.created()
        self.two = self.created(hypervisor_hostname='node2')

    def open(self, node):
        """Return a node in a context, and so a transaction, of its own."""
        return objects.ComputeNode.get_by_id(context.get_admin_context(),
                                             node.id)

    def test_save(self):
        """The victim's save is repeated and each change announced once."""
        held, waits = threading.Event(), threading.Event()
        attempts = []

        def lock_one(mapper, connection, target):
            # As a service's own listener might, or a trigger.
            if target.memory_mb == 1:
                attempts.append(target.id)
                waits.set()
                connection.execute(
                    sa.select(models.ComputeNode.id)
                    .where(models.ComputeNode.id == self.one.id)
                    .with_for_update()).all()

        def owner():
            one, two = self.open(self.one), self.open(self.two)
            two._context = one._context
            with api.writer(one._context) as session:
                if self.server == 'postgresql':
                    # Who looks for a deadlock first becomes its victim;
                    # MariaDB takes the one that has written less.
                    session.execute(
                        sa.text("SET LOCAL deadlock_timeout = '60s'"))
                for vcpus in (9, 10, 11):
                    one.vcpus = vcpus
                    one.save()
                held.set()
                self.assertTrue(waits.wait(TIMEOUT))
                two.vcpus = 11
                two.save()

        def victim():
            two = self.open(self.two)
            self.assertTrue(held.wait(TIMEOUT))
            two.memory_mb = 1
            two.save()

        sa.event.listen(models.ComputeNode, 'before_update', lock_one)
        self.addCleanup(sa.event.remove, models.ComputeNode, 'before_update',
                        lock_one)
        at_once(owner, victim)
        self.assertEqual([self.two.id] * 2, attempts)
        self.assertEqual(
            {(self.one.id, 11, 16384), (self.two.id, 11, 16384),
             (self.two.id, 11, 1)},
            {(data['id'], data['vcpus'], data['memory_mb'])
             for data in self.updates(3)})

    def updates(self, count):
        """Return the data of so many updates, and of no more."""
        sent = self.sent()
        self.assertEqual(['update'] * count, [action for action, _ in sent])
        return [data for _, data in sent]

    def test_transactions(self):
        """Whole transactions, repeated by their owners, are told once."""
        barrier = threading.Barrier(2)
        attempts = []

        def writer(field, first, second):
            request = context.get_admin_context()

            @oslo_db_api.wrap_db_retry(max_retries=5, retry_on_deadlock=True)
            def transaction():
                attempts.append(field)
                with api.writer(request):
                    self.write(request, first, field)
                    if len(attempts) <= 2:
                        barrier.wait(TIMEOUT)
                    self.write(request, second, field)
            transaction()

        at_once(lambda: writer('memory_mb', self.one, self.two),
                lambda: writer('running_vms', self.two, self.one))
        self.assertEqual(['memory_mb', 'running_vms'],
                         sorted(set(attempts)))
        self.assertEqual(3, len(attempts))
        updates = self.updates(4)
        for node in (self.one, self.two):
            last = self.open(node)
            self.assertEqual((1, 1), (last.memory_mb, last.running_vms))
            told = {(data['memory_mb'], data['running_vms'])
                    for data in updates if data['id'] == node.id}
            self.assertIn(told, ({(1, None), (1, 1)}, {(16384, 1), (1, 1)}))

    def write(self, request, node, field):
        """Store 1 in a field of a node."""
        node = objects.ComputeNode.get_by_id(request, node.id)
        setattr(node, field, 1)
        node.save()


class TestStaleRead(servers.DatabaseTestCase):
    """A transaction that has read what another one then changed."""

    scenarios = ROW_LOCKS

    def test_save(self):
        """A save compares with the row it locks, not with one read before."""
        node = self.created(vcpus=8)
        other = objects.ComputeNode.get_by_id(context.get_admin_context(),
                                              node.id)
        with api.writer(self.context):
            row = api.compute_node_get(self.context, id=node.id)
            self.assertEqual(8, row.vcpus)
            other.vcpus = 9
            other.save()
            self.assertEqual(['update'], self.actions())
            node.vcpus = 9
            node.save()
        self.assertEqual([], self.actions())


class TestThreads(servers.DatabaseTestCase):
    """Two threads that write one node, in any order the database likes."""

    scenarios = servers.SCENARIOS

    def setUp(self):
        """Store the node, and note each time its vcpus_used is written."""
        super().setUp()
        self.one = self.created(vcpus_used=0)
        self.written = []
        engine = self.database.facade.writer.get_engine()
        sa.event.listen(engine, 'before_cursor_execute', self.note)
        self.addCleanup(sa.event.remove, engine, 'before_cursor_execute',
                        self.note)
        self.barrier = threading.Barrier(2)

    def note(self, connection, cursor, statement, parameters, execution,
             executemany):
        """Note the value that an UPDATE is about to write."""
        # The row is locked by now, so this is the order of the commits too;
        # SQLAlchemy writes only columns that differ from the locked row.
        if execution is not None and execution.isupdate:
            [values] = execution.compiled_parameters
            if 'vcpus_used' in values:
                self.written.append(values['vcpus_used'])

    def save_all(self, values):
        """Save each value through a copy of the node of one's own."""
        node = objects.ComputeNode.get_by_id(context.get_admin_context(),
                                             self.one.id)
        self.barrier.wait(TIMEOUT)
        for value in values:
            node.vcpus_used = value
            node.save()

    def assert_told(self):
        """Check that what was written was told, each write once."""
        sent = self.sent()
        self.assertEqual({'update'}, {action for action, _ in sent})
        self.assertEqual(sorted(self.written),
                         sorted(data['vcpus_used'] for _, data in sent))
        self.assertEqual(self.written[-1],
                         self.copy_of(self.one).vcpus_used)

    def test_distinct_values(self):
        """Each save of a new value makes one update with that value."""
        at_once(lambda: self.save_all(range(1, 2 * SAVES, 2)),
                lambda: self.save_all(range(2, 2 * SAVES + 1, 2)))
        self.assertEqual(list(range(1, 2 * SAVES + 1)), sorted(self.written))
        self.assert_told()

    def test_equal_values(self):
        """Only saves that change what the other has stored are told."""
        at_once(lambda: self.save_all([1, 1, 0, 0] * (SAVES // 4)),
                lambda: self.save_all([1, 0] * (SAVES // 2)))
        # Each change is one from the other value.
        self.assertEqual([1, 0] * (len(self.written) // 2)
                         + [1] * (len(self.written) % 2), self.written)
        self.assert_told()

    def test_increments(self):
        """Read and written under one lock, no step is lost or told twice."""
        def increment():
            request = context.get_admin_context()
            node = objects.ComputeNode.get_by_id(request, self.one.id)
            self.barrier.wait(TIMEOUT)
            for _ in range(SAVES):
                with api.writer(request):
                    node.save()  # locks the row, and reads it again
                    node.vcpus_used += 1
                    node.save()

        at_once(increment, increment)
        self.assertEqual(list(range(1, 2 * SAVES + 1)), self.written)
        self.assert_told()

    def test_destroyed_by_both(self):
        """A node that two threads destroy is deleted once."""
        def destroy():
            node = objects.ComputeNode.get_by_id(
                context.get_admin_context(read_deleted='yes'), self.one.id)
            self.barrier.wait(TIMEOUT)
            node.destroy()

        at_once(destroy, destroy)
        self.assertEqual([('delete', {'id': self.one.id,
                                      'uuid': self.one.uuid})], self.sent())

    def test_undeleted_by_both(self):
        """A node that two threads bring back by a save is created once."""
        self.one.destroy()
        self.notifier.reset()

        def undelete():
            node = objects.ComputeNode.get_by_id(
                context.get_admin_context(read_deleted='yes'), self.one.id)
            node.deleted = False
            node.deleted_at = None
            self.barrier.wait(TIMEOUT)
            node.save()

        at_once(undelete, undelete)
        self.assertEqual(['create'], self.actions())

    def assert_created_once(self, uuid):
        """Check that of two threads that create a node one is refused."""
        self.one.destroy()
        self.notifier.reset()

        def create():
            node = self.node(uuid=uuid)
            node._context = context.get_admin_context()
            self.barrier.wait(TIMEOUT)
            try:
                node.create()
            except exception.DuplicateRecord:
                return 'refused'
            return 'created'

        self.assertEqual(['created', 'refused'],
                         sorted(at_once(create, create)))
        self.assertEqual([('create', uuid)], [(action, data['uuid'])
                                              for action, data in self.sent()])

    def test_created_by_both(self):
        """A node that two threads create is created once."""
        self.assert_created_once(uuidutils.generate_uuid())

    def test_revived_by_both(self):
        """A node that two threads bring back by a create is created once."""
        self.assert_created_once(self.one.uuid)


_start = None


def _in_process(start):
    """Keep what the processes of one test share."""
    global _start
    _start = start


def _save_in_process(url, node_id, values):
    """Save values of vcpus_used; return the updates that this makes."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    options.set_defaults(conf, connection=url)
    api.configure(engine.Database(conf))
    with fixture.NotificationFixture() as notifier:
        node = objects.ComputeNode.get_by_id(context.get_admin_context(),
                                             node_id)
        _start.wait(TIMEOUT)
        for value in values:
            node.vcpus_used = value
            node.save()
        sent = [(notification['event_type'],
                 notification['payload']['nova_object.data']['vcpus_used'])
                for notification in notifier.versioned_notifications]
    api.dispose()
    return sent


class TestProcesses(servers.DatabaseTestCase):
    """Two processes that write one node at once."""

    scenarios = servers.SCENARIOS

    def save(self, *values):
        """Save values in a process each; return the updates of each."""
        self.one = self.created(vcpus_used=0)
        url = self.database.facade.writer.get_engine().url
        spawn = multiprocessing.get_context('spawn')
        with futures.ProcessPoolExecutor(
                2, mp_context=spawn, initializer=_in_process,
                initargs=(spawn.Barrier(2),)) as pool:
            running = [
                pool.submit(_save_in_process,
                            url.render_as_string(hide_password=False),
                            self.one.id, mine) for mine in values]
            return [future.result(TIMEOUT) for future in running]

    def test_distinct_values(self):
        """Each process tells its own changes, all of them and no other."""
        odd = list(range(1, 2 * SAVES, 2))
        even = list(range(2, 2 * SAVES + 1, 2))
        self.assertEqual(
            [[('compute_node.update', value) for value in values]
             for values in (odd, even)], self.save(odd, even))
        self.assertIn(self.copy_of(self.one).vcpus_used, (odd[-1], even[-1]))
        self.assertEqual([], self.actions())

    def test_opposite_values(self):
        """The changes of both there and back add up to what is stored."""
        up, down = self.save([1] * SAVES, [0] * SAVES)
        self.assertEqual({('compute_node.update', 1)}, set(up))
        self.assertLessEqual(set(down), {('compute_node.update', 0)})
        self.assertEqual(len(up) - len(down),
                         self.copy_of(self.one).vcpus_used)
