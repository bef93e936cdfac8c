# SPDX-License-Identifier: Apache-2.0
"""Tests of the fixtures that a service's own functional tests rely on."""

from concurrent import futures
import contextlib
import json
import queue
import threading
from unittest import mock

import fixtures

from compute_notify import context
from compute_notify import exception
from compute_notify import fixture
from compute_notify import objects
from compute_notify import payload
from tests import base
from tests import service

#: Seconds after which something that should have happened has not.
LONG = 20


class Worker:
    """A thread that runs what it is told and gives back what came of it."""

    def __init__(self):
        self._work = queue.Queue()
        self.thread = threading.Thread(target=self._run, name='worker')
        self.thread.start()

    def _run(self):
        for future, function in iter(self._work.get, None):
            try:
                future.set_result(function())
            except Exception as exc:
                future.set_exception(exc)

    def run(self, function):
        future = futures.Future()
        self._work.put((future, function))
        return future.result(LONG)

    def stop(self):
        self._work.put(None)
        self.thread.join(LONG)


class TestNotifications(base.NodeTestCase):

    def test_shape(self):
        """A notification has Nova's four keys and no other."""
        node = self.node()
        node.create()
        sent, = self.notifier.versioned_notifications
        self.assertEqual(
            {'event_type', 'payload', 'priority', 'publisher_id'}, set(sent))
        self.assertEqual('compute_node.create', sent['event_type'])
        self.assertEqual('INFO', sent['priority'])
        self.assertEqual('nova-compute:cmp1', sent['publisher_id'])
        data = sent['payload']['nova_object.data']
        self.assertEqual(node.uuid, data['uuid'])

    def test_json(self):
        """A payload is plain data, the same before and after JSON."""
        self.node(host_ip='2001:DB8::1').create()
        sent, = self.notifier.versioned_notifications
        self.assertEqual(sent, json.loads(json.dumps(sent)))
        self.assertEqual('2001:db8::1',
                         sent['payload']['nova_object.data']['host_ip'])

    def test_impure_payload(self):
        """What JSON cannot hold is refused and not recorded."""
        node = self.created()
        node.vcpus = 9
        with mock.patch.object(payload.ComputeNodePayload, 'obj_to_primitive',
                               autospec=True, return_value={'x': {1, 2}}):
            self.assertRaises(TypeError, node.save)
        self.assertEqual([], self.notifier.versioned_notifications)

    def test_not_a_number(self):
        """Not even Python's own addition to JSON gets through."""
        node = self.created()
        node.vcpus = 9
        with mock.patch.object(
                payload.ComputeNodePayload, 'obj_to_primitive', autospec=True,
                return_value={'x': float('nan')}):
            self.assertRaises(ValueError, node.save)

    def test_strict(self):
        """A payload that cannot be built is raised by the call itself."""
        node = self.created()
        node.vcpus = 9
        with mock.patch.object(payload, 'payload_for', autospec=True,
                               side_effect=exception.PayloadFieldMissing):
            self.assertRaises(exception.PayloadFieldMissing, node.save)
        self.assertEqual(9, self.copy_of(node).vcpus)

    def test_reset(self):
        """A reset forgets what was sent, and no more than that."""
        node = self.node()
        node.create()
        self.notifier.reset()
        self.assertEqual([], self.notifier.versioned_notifications)
        self.assertEqual([], self.notifier.contexts)
        node.destroy()
        self.assertEqual(['delete'], self.actions())

    def test_contexts(self):
        """The context is kept beside the notification, redacted."""
        self.context = context.RequestContext(
            auth_token='s3cret', request_id='req-1')
        self.node().create()
        ctxt, = self.notifier.contexts
        self.assertEqual('req-1', ctxt['request_id'])
        self.assertIsNone(ctxt['auth_token'])

    def test_extra_update_fields(self):
        """Extra fields are watched as the option of that name would."""
        with fixture.NotificationFixture(
                extra_update_fields=['memory_mb_used']) as notifier:
            node = self.node()
            node.create()
            node.memory_mb_used += 1
            node.save()
            self.assertEqual(2, len(notifier.versioned_notifications))

    def test_unknown_extra_update_field(self):
        """An extra field that does not exist is refused."""
        error = self.assertRaises(
            fixtures.MultipleExceptions,
            fixture.NotificationFixture(extra_update_fields=['vcpu']).setUp)
        self.assertIs(exception.InvalidOption, error.args[0][0])


class TestWait(base.NodeTestCase):

    def wait(self, *args, **kwargs):
        return self.notifier.wait_for_versioned_notifications(*args, **kwargs)

    def test_already_there(self):
        """What has been sent already is returned without a wait."""
        self.node().create()
        sent, = self.wait('compute_node.create', timeout=0)
        self.assertEqual('compute_node.create', sent['event_type'])

    def test_arrival(self):
        """A notification from another thread ends the wait."""
        waiting = threading.Event()
        real = threading.Condition.wait

        def wait(condition, timeout=None):
            waiting.set()
            return real(condition, timeout)

        def change():
            self.assertTrue(waiting.wait(LONG), 'nobody waited')
            node.save()
            node.destroy()

        node = self.node()
        node.create()
        node.vcpus = 9
        thread = threading.Thread(target=change)
        with mock.patch.object(threading.Condition, 'wait', wait):
            thread.start()
            self.addCleanup(thread.join, LONG)
            sent, = self.wait('compute_node.delete', timeout=LONG)
        self.assertEqual({'id': node.id, 'uuid': node.uuid},
                         sent['payload']['nova_object.data'])

    def test_several(self):
        """All of the type are returned, and only of that type."""
        for name in ('node1', 'node2', 'node3'):
            self.node(hypervisor_hostname=name).create()
        self.node(hypervisor_hostname='node4').create()
        objects.ComputeNode.get_by_nodename(self.context, 'node4').destroy()
        sent = self.wait('compute_node.create', n_events=3)
        self.assertEqual(
            ['node1', 'node2', 'node3', 'node4'],
            [one['payload']['nova_object.data']['hypervisor_hostname']
             for one in sent])

    def test_timeout(self):
        """A wait in vain fails, and the failure shows what did arrive."""
        self.node(hypervisor_hostname='arrived').create()
        error = self.assertRaises(
            AssertionError, self.wait, 'compute_node.delete', timeout=0.01)
        for text in ('0.01 seconds', '1 compute_node.delete', 'received 0',
                     'compute_node.create', '"arrived"'):
            self.assertIn(text, str(error))

    def test_too_few(self):
        """Fewer than asked for is a wait in vain too."""
        self.node().create()
        error = self.assertRaises(AssertionError, self.wait,
                                  'compute_node.create', 2, 0.01)
        self.assertIn('received 1', str(error))


class TestIsolation(base.TestCase):

    def setUp(self):
        super().setUp()
        self.context = context.get_admin_context()

    def worker(self):
        worker = Worker()
        self.addCleanup(worker.stop)
        return worker

    def create(self, name):
        objects.ComputeNode(self.context, **(
            base.MANDATORY | {'hypervisor_hostname': name})).create()

    def names(self, notifier):
        return [sent['payload']['nova_object.data']['hypervisor_hostname']
                for sent in notifier.versioned_notifications]

    @contextlib.contextmanager
    def thread_test(self, worker):
        """Stand for a whole test that runs in a thread."""
        database = fixture.DatabaseFixture()
        notifier = fixture.NotificationFixture()
        worker.run(database.setUp)
        worker.run(notifier.setUp)
        try:
            yield notifier
        finally:
            worker.run(notifier.cleanUp)
            worker.run(database.cleanUp)

    def test_side_by_side(self):
        """Two tests in threads see their own nodes and notifications."""
        one, two = self.worker(), self.worker()
        with self.thread_test(one) as first:
            with self.thread_test(two) as second:
                for _ in range(3):
                    one.run(lambda: self.create('one'))
                    two.run(lambda: self.create('two'))
                    for worker in one, two:
                        worker.run(self.destroy_all)
                self.assertEqual(['one', None] * 3, self.events(first))
                self.assertEqual(['two', None] * 3, self.events(second))

    def destroy_all(self):
        node, = objects.ComputeNodeList.get_all(self.context)
        node.destroy()

    def events(self, notifier):
        return [sent['payload']['nova_object.data'].get('hypervisor_hostname')
                for sent in notifier.versioned_notifications]

    def test_other_test_ends_first(self):
        """A test is still heard after one that began before it has ended."""
        one = self.worker()
        with contextlib.ExitStack() as rest:
            with self.thread_test(one):
                two = self.worker()
                second = rest.enter_context(self.thread_test(two))
            two.run(lambda: self.create('two'))
            self.assertEqual(['two'], self.names(second))

    def test_left_over_thread(self):
        """A thread that an earlier test left running is not heard."""
        self.useFixture(fixture.DatabaseFixture())
        with fixture.NotificationFixture() as first:
            worker = self.worker()
            worker.run(lambda: self.create('in time'))
        with fixture.NotificationFixture() as second:
            worker.run(lambda: self.create('late'))
            self.create('mine')
            self.assertEqual(['in time'], self.names(first))
            self.assertEqual(['mine'], self.names(second))
        self.assertIn('worker', self.logs.output)

    def test_nested(self):
        """An inner fixture hides the outer one until it is cleaned up."""
        self.useFixture(fixture.DatabaseFixture())
        outer = self.useFixture(fixture.NotificationFixture())
        self.create('before')
        with fixture.NotificationFixture() as inner:
            self.create('during')
            self.assertEqual(['during'], self.names(inner))
        self.create('after')
        self.assertEqual(['before', 'after'], self.names(outer))

    def test_nested_databases(self):
        """An inner database hides the outer one until it is cleaned up."""
        self.useFixture(fixture.DatabaseFixture())
        self.create('outer')
        with fixture.DatabaseFixture():
            self.assertEqual([], self.all_names())
            self.create('inner')
        self.assertEqual(['outer'], self.all_names())

    def all_names(self):
        return [node.hypervisor_hostname
                for node in objects.ComputeNodeList.get_all(self.context)]

    def test_call_across_the_end(self):
        """A call belongs to the fixture under which it began."""
        self.useFixture(fixture.DatabaseFixture())
        worker, begun, ended = self.worker(), threading.Event(), (
            threading.Event())
        real = payload.payload_for

        def slowly(what):
            begun.set()
            self.assertTrue(ended.wait(LONG), 'the first test never ended')
            return real(what)

        first = fixture.NotificationFixture()
        first.setUp()
        with mock.patch.object(payload, 'payload_for', slowly):
            pool = futures.ThreadPoolExecutor(1)
            self.addCleanup(pool.shutdown)
            call = pool.submit(worker.run, lambda: self.create('slow'))
            self.assertTrue(begun.wait(LONG), 'the call never began')
            first.cleanUp()
            second = self.useFixture(fixture.NotificationFixture())
            ended.set()
            call.result(LONG)
        self.assertEqual(['slow'], self.names(first))
        self.assertEqual([], self.names(second))


class TestService(service.TestCase):

    def test_setup_does_not_hide(self):
        """A service that sets itself up is caught by the fixtures as well."""
        database = self.useFixture(fixture.DatabaseFixture()).database
        notifier = self.useFixture(fixture.NotificationFixture())
        self.set_up(oslo_messaging_notifications='driver = test')
        self.live_once()
        self.assertEqual(3, len(notifier.versioned_notifications))
        self.assertEqual([], service.received())
        with database.facade.writer.get_engine().connect() as connection:
            self.assertEqual(1, connection.exec_driver_sql(
                'SELECT COUNT(*) FROM compute_nodes').scalar())

    def test_setup_before(self):
        """A service that was set up before is caught, and free afterwards."""
        self.set_up(oslo_messaging_notifications='driver = test')
        with fixture.DatabaseFixture(), fixture.NotificationFixture() as mine:
            self.live_once()
            self.assertEqual(3, len(mine.versioned_notifications))
        self.assertEqual([], service.received())
        self.node().create()
        self.assertEqual(['compute_node.create'], service.event_types())
