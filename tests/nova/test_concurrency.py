# SPDX-License-Identifier: Apache-2.0
"""Threads, greenthreads, and processes that are forked or spawned."""

from concurrent import futures
import multiprocessing
import os
import sys
import threading
from unittest import mock

from tests.nova import facts
from tests.nova import process
from tests.nova import test_patch

_DRIVERS = ('test', 'compute_notify')


class TestThreads(test_patch.PatchTestCase):

    def setUp(self):
        super().setUp()
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())

    def _together(self, number, function):
        """Call a function in threads that start at the same moment."""
        sys.setswitchinterval(1e-6)
        barrier = threading.Barrier(number)

        def work(index):
            barrier.wait()
            return function(index)

        with futures.ThreadPoolExecutor(number) as pool:
            return list(pool.map(work, range(number)))

    @process.alone
    def test_first_install(self):
        """Threads that all install first install once."""
        nova_ = self.useFixture(process.Nova())
        theirs = facts.entries()
        from compute_notify import nova
        self._together(8, lambda index: nova.install())
        self.assert_ours(theirs)
        self.assertEqual(1, nova_.logged('INFO').count(
            'Compute node notifications are installed'))
        nova.uninstall()
        self.assert_theirs(theirs)

    @process.alone
    def test_install_and_uninstall(self):
        """However calls overlap, the hook is wholly on or wholly off."""
        self.useFixture(process.Nova())
        theirs = facts.entries()
        from compute_notify import nova

        def work(index):
            for turn in range(100):
                (nova.install, nova.uninstall)[(index + turn) % 2]()

        self._together(8, work)
        if nova.is_installed():
            self.assert_ours(theirs)
        else:
            self.assert_theirs(theirs)
        nova.install()
        self.assert_ours(theirs)
        nova.uninstall()
        self.assert_theirs(theirs)

    @process.alone
    def test_in_the_middle_of_a_save(self):
        """A node is saved as ever while the hook goes and comes back.

        The listeners stand for another thread: SQLAlchemy is in the middle
        of its list of listeners.
        """
        nova_ = self.useFixture(process.Nova())
        from compute_notify import nova
        from nova.db.main import models
        import sqlalchemy as sa
        from sqlalchemy import orm
        nova.install()
        node = process.node()
        node.create()

        def switch(*args):
            nova.uninstall()
            nova.install()

        for target, name in ((models.ComputeNode, 'before_update'),
                             (orm.Session, 'do_orm_execute'),
                             (orm.Session, 'after_commit'),
                             (orm.Session, 'after_transaction_end')):
            sa.event.listen(target, name, switch, insert=True)
            node.vcpus += 1
            node.save()
            sa.event.remove(target, name, switch)
        self.assertEqual(12, node.get_by_uuid(node._context, node.uuid).vcpus)
        self.assertEqual(
            ['compute_node.create'] + ['compute_node.update'] * 4,
            process.sent())
        self.assertEqual([], nova_.logged('ERROR'))


class TestModes(test_patch.PatchTestCase):

    def _interleave(self):
        """Save two nodes in two threads, each while the other does."""
        from compute_notify import nova
        from nova import context
        from nova.db.main import api
        from oslo_messaging.notify import _impl_test
        nova.install()
        nodes = [process.node() for _ in range(2)]
        for node in nodes:
            node.create()
        process.sent()
        update = api.compute_node_update
        barrier = threading.Barrier(2)
        one_by_one = threading.Lock()

        def meeting(*args):
            barrier.wait()
            with one_by_one:
                return update(*args)

        def save(node):
            node._context = context.RequestContext(request_id=node.uuid)
            node.vcpus += 1
            node.save()

        with mock.patch.object(api, 'compute_node_update', meeting):
            threads = [threading.Thread(target=save, args=(node,))
                       for node in nodes]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return {node.uuid for node in nodes}, [
            (sent['request_id'],
             message['payload']['nova_object.data']['uuid'])
            for sent, message, _, _ in _impl_test.NOTIFICATIONS]

    def _assert_not_mixed_up(self):
        uuids, sent = self._interleave()
        self.assertEqual(sorted((uuid, uuid) for uuid in uuids), sorted(sent))

    @process.alone
    def test_threading(self):
        """The package does not keep Nova from running native threads."""
        import compute_notify
        self.assertFalse({'nova', 'eventlet'} & set(sys.modules))
        nova_ = self.useFixture(process.Nova(drivers=_DRIVERS))
        eventlet = sys.modules.get('eventlet')
        if eventlet is not None:  # Nova forbids it since 34
            self.assertNotIn('PoisonEventletImport', [
                type(finder).__name__ for finder in sys.meta_path])
            self.assertFalse(eventlet.patcher.is_monkey_patched('thread'))
        self.assertIsNotNone(compute_notify)
        self.assertEqual(process.ALL, process.announced())
        self._assert_not_mixed_up()
        self.assertEqual([], nova_.logged('ERROR'))

    @process.alone(eventlet=True)
    def test_eventlet(self):
        """Under eventlet too, each greenthread announces its own."""
        import compute_notify
        nova_ = self.useFixture(process.Nova(drivers=_DRIVERS))
        import eventlet
        self.assertTrue(eventlet.patcher.is_monkey_patched('thread'))
        self.assertIsNotNone(compute_notify)
        self.assertEqual(process.ALL, process.announced())
        self._assert_not_mixed_up()
        self.assertEqual([], nova_.logged('ERROR'))


def _forked(function):
    """Return what a function returns in a forked process, 0 or 1."""
    pid = os.fork()
    if not pid:
        code = 2
        try:
            code = int(function())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _work(configuration, connection):
    """Be a worker that was spawned: start Nova, and report what was sent."""
    from nova import config
    process.choose_concurrency()
    config.parse_args(['nova-conductor', '--config-file', configuration])
    from nova import objects
    objects.register_all()
    connection.send(process.announced())
    connection.close()


class TestWorkers(test_patch.PatchTestCase):

    def _assert_forked(self):
        """A fork announces once, and so does its parent, then and after."""
        nova_ = self.useFixture(process.Nova(drivers=_DRIVERS))
        from compute_notify import nova
        self.assertEqual(process.ALL, process.announced())
        for _ in range(2):
            self.assertEqual(0, _forked(
                lambda: process.announced() != process.ALL))
        self.assertEqual(process.ALL, process.announced())
        self.assertEqual(0, _forked(
            lambda: nova.uninstall() or process.announced() != process.NONE))
        self.assertTrue(nova.is_installed())
        self.assertEqual(process.ALL, process.announced())
        self.assertEqual([], nova_.logged('ERROR'))

    @process.alone
    def test_fork(self):
        """Workers are forked from a process that runs native threads."""
        self._assert_forked()

    @process.alone(eventlet=True)
    def test_fork_eventlet(self):
        """Workers are forked from a process that runs eventlet."""
        self._assert_forked()

    @process.alone
    def test_spawn(self):
        """A worker that is spawned loads the driver, and announces once."""
        nova_ = self.useFixture(process.Nova(drivers=_DRIVERS))
        spawn = multiprocessing.get_context('spawn')
        here, there = spawn.Pipe()
        worker = spawn.Process(
            target=_work, args=(nova_.configuration, there))
        worker.start()
        there.close()  # so that a worker that fails ends the wait
        self.assertEqual(process.ALL, here.recv())
        worker.join()
        self.assertEqual(0, worker.exitcode)
        self.assertEqual(process.ALL, process.announced())
