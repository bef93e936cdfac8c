# SPDX-License-Identifier: Apache-2.0
"""What is sent around transactions: after the commit, the net change, once."""

from unittest import mock

from oslo_db import exception as db_exc
import oslo_messaging
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from compute_notify.db import api
from compute_notify import emitter
from compute_notify import exception
from compute_notify import objects
from compute_notify import payload
from tests.functional import servers
from tests.functional import test_lifecycle

load_tests = testscenarios.load_tests_apply_scenarios


class Undo(Exception):
    """Raised by a test to roll back."""


class TestOuter(servers.DatabaseTestCase):
    """Calls inside one outer transaction."""

    scenarios = servers.SCENARIOS

    def test_committed(self):
        """Nothing is sent before the outer transaction has been committed."""
        node = self.created()
        with api.writer(self.context):
            node.vcpus = 9
            node.save()
            self.assertEqual([], self.actions())
        self.assertEqual([('update', 9)], [(action, data['vcpus'])
                                           for action, data in self.sent()])

    def test_rolled_back(self):
        """Nothing is sent for what an exception undoes."""
        node = self.created()
        other = self.node(hypervisor_hostname='node2')

        def undone():
            with api.writer(self.context):
                node.vcpus = 9
                node.save()
                other.create()
                node.destroy()
                raise Undo()

        self.assertRaises(Undo, undone)
        self.assertEqual([], self.actions())
        self.assertEqual([8], [row.vcpus for row in
                               objects.ComputeNodeList.get_all(self.context)])

    def test_after_a_rollback(self):
        """A transaction after one rolled back starts afresh."""
        node = self.created()
        for error in (Undo, None):
            try:
                with api.writer(self.context):
                    node.vcpus = 9
                    node.save()
                    if error:
                        raise error()
            except Undo:
                self.assertEqual([], self.actions())
        self.assertEqual(['update'], self.actions())

    def test_commit_fails(self):
        """A commit that the database refuses is no commit."""
        node = self.created()
        engine = self.database.facade.writer.get_engine()
        error = db_exc.DBError()

        def refuse(connection):
            raise error

        def save():
            node.vcpus = 9
            node.save()

        sa.event.listen(engine, 'commit', refuse)
        try:
            self.assertIs(error, self.assertRaises(db_exc.DBError, save))
        finally:
            sa.event.remove(engine, 'commit', refuse)
        self.assertEqual([], self.actions())
        self.assertEqual(8, self.copy_of(node).vcpus)

    def test_several_saves(self):
        """Several saves make one update with the last values."""
        node = self.created()
        with api.writer(self.context):
            for vcpus in (9, 10, 11):
                node.vcpus = vcpus
                node.save()
            node.running_vms = 3
            node.save()
        self.assertEqual(
            [('update', 11, 3)],
            [(action, data['vcpus'], data['running_vms'])
             for action, data in self.sent()])

    def test_saves_there_and_back(self):
        """Saves that end where they began make no event."""
        node = self.created(vcpus=8)
        with api.writer(self.context):
            for vcpus in (9, 8):
                node.vcpus = vcpus
                node.save()
        self.assertEqual([], self.actions())

    def test_last_save_changes_nothing(self):
        """A last save without a change does not hide an earlier one."""
        node = self.created()
        with api.writer(self.context):
            node.vcpus = 9
            node.save()
            node.free_ram_mb = 5
            node.save()
        self.assertEqual([('update', 9, 5)],
                         [(action, data['vcpus'], data['free_ram_mb'])
                          for action, data in self.sent()])

    def test_create_and_save(self):
        """A node made and changed makes one create with the last values."""
        node = self.node()
        with api.writer(self.context):
            node.create()
            node.vcpus = 9
            node.save()
        self.assertEqual([('create', 9)], [(action, data['vcpus'])
                                           for action, data in self.sent()])

    def test_create_and_destroy(self):
        """A node made and destroyed was never there."""
        node = self.node()
        with api.writer(self.context):
            node.create()
            node.destroy()
        self.assertEqual([], self.actions())

    def test_save_and_destroy(self):
        """A node changed and destroyed makes one delete."""
        node = self.created()
        with api.writer(self.context):
            node.vcpus = 9
            node.save()
            node.destroy()
        self.assertEqual([('delete', {'id': node.id, 'uuid': node.uuid})],
                         self.sent())

    def test_destroy_and_create(self):
        """A node that is back at the end is updated if it has changed."""
        node = self.created()
        for vcpus, expected in ((8, []), (9, ['update'])):
            with api.writer(self.context):
                node.destroy()
                node = self.node(uuid=node.uuid, vcpus=vcpus)
                node.create()
            self.assertEqual(expected, self.actions())

    def test_two_nodes(self):
        """Each node that changed makes one event, in the order of saving."""
        first = self.created()
        second = self.created(hypervisor_hostname='node2')
        third = self.created(hypervisor_hostname='node3')
        with api.writer(self.context):
            for node in (second, first, third, second, first):
                if node is not third:
                    node.vcpus += 1
                node.save()
        self.assertEqual(
            {('update', first.id, 10), ('update', second.id, 10)},
            {(action, data['id'], data['vcpus'])
             for action, data in self.sent()})

    def test_caught_error(self):
        """A create refused inside leaves the rest of the transaction."""
        node = self.created()
        with api.writer(self.context):
            node.vcpus = 9
            node.save()
            self.assertRaises(exception.DuplicateRecord, self.node().create)
            node.running_vms = 1
            node.save()
        self.assertEqual([('update', 9, 1)],
                         [(action, data['vcpus'], data['running_vms'])
                          for action, data in self.sent()])

    def test_caught_revival(self):
        """A revival refused inside leaves the rest of the transaction."""
        dead = self.created()
        dead.destroy()
        node = self.created()
        with api.writer(self.context):
            node.vcpus = 9
            node.save()
            self.assertRaises(exception.DuplicateRecord,
                              self.node(uuid=dead.uuid).create)
        self.assertEqual([('update', 9)], [(action, data['vcpus'])
                                           for action, data in self.sent()])

    def test_two_blocks(self):
        """Two transactions are two changes, even there and back."""
        node = self.created(vcpus=8)
        for vcpus in (9, 8):
            with api.writer(self.context):
                node.vcpus = vcpus
                node.save()
        self.assertEqual([9, 8], [data['vcpus'] for _, data in self.sent()])


class TestSavepoint(servers.DatabaseTestCase):
    """Calls inside savepoints of one outer transaction."""

    scenarios = servers.SCENARIOS

    def setUp(self):
        """Store the node that the tests change."""
        super().setUp()
        self.one = self.created(vcpus=8)

    def save(self, vcpus, *, undo=False):
        """Save a number of CPUs in a savepoint, and perhaps undo it."""
        try:
            with api.writer(self.context, savepoint=True):
                node = self.copy_of(self.one)
                node.vcpus = vcpus
                node.save()
                if undo:
                    raise Undo()
        except Undo:
            pass

    def assert_updates(self, *expected):
        """Check the CPUs of the updates so far, and of the stored row."""
        self.assertEqual([('update', vcpus) for vcpus in expected],
                         [(action, data['vcpus'])
                          for action, data in self.sent()])
        self.assertEqual(expected[-1] if expected else 8,
                         self.copy_of(self.one).vcpus)

    def test_released(self):
        """What a released savepoint holds is sent after the outer commit."""
        with api.writer(self.context):
            self.save(9)
            self.assertEqual([], self.actions())
        self.assert_updates(9)

    def test_rolled_back(self):
        """What a savepoint undoes is not sent when the outer commits."""
        with api.writer(self.context):
            self.save(9, undo=True)
        self.assert_updates()

    def test_released_then_outer_rolled_back(self):
        """A released savepoint is undone with the outer transaction."""
        def undone():
            with api.writer(self.context):
                self.save(9)
                raise Undo()

        self.assertRaises(Undo, undone)
        self.assert_updates()

    def test_between_others(self):
        """Only the middle one of three writes is undone."""
        with api.writer(self.context):
            self.save(9)
            self.save(99, undo=True)
            node = self.copy_of(self.one)
            self.assertEqual(9, node.vcpus)
            node.running_vms = 1
            node.save()
        self.assert_updates(9)

    def test_back_by_rollback(self):
        """A value restored by a savepoint's rollback is no second change."""
        with api.writer(self.context):
            self.save(9)
            self.save(8, undo=True)
        self.assert_updates(9)

    def test_nested_inner_rolled_back(self):
        """A savepoint in a savepoint is undone alone."""
        with api.writer(self.context):
            with api.writer(self.context, savepoint=True):
                self.save(9)
                self.save(10, undo=True)
        self.assert_updates(9)

    def test_nested_outer_rolled_back(self):
        """A released savepoint is undone with the one around it."""
        with api.writer(self.context):
            self.save(9)
            try:
                with api.writer(self.context, savepoint=True):
                    self.save(10)
                    self.save(11)
                    raise Undo()
            except Undo:
                pass
        self.assert_updates(9)

    def test_failed_save(self):
        """A save that fails in a savepoint leaves the rest."""
        other = self.created(hypervisor_hostname='node2')
        with api.writer(self.context):
            self.save(9)
            try:
                with api.writer(self.context, savepoint=True):
                    other.hypervisor_hostname = 'node1'
                    other.save()
            except exception.DuplicateRecord:
                pass
        self.assert_updates(9)

    def test_create_rolled_back(self):
        """A create that is undone and repeated is one create."""
        uuid = uuidutils.generate_uuid()
        with api.writer(self.context):
            for undo in (True, False):
                try:
                    with api.writer(self.context, savepoint=True):
                        self.node(uuid=uuid, hypervisor_hostname='n2').create()
                        if undo:
                            raise Undo()
                except Undo:
                    pass
        self.assertEqual([('create', uuid)], [(action, data['uuid'])
                                              for action, data in self.sent()])

    def test_destroy_rolled_back(self):
        """A destroy that is undone is none."""
        with api.writer(self.context):
            try:
                with api.writer(self.context, savepoint=True):
                    self.one.destroy()
                    raise Undo()
            except Undo:
                pass
        self.assert_updates()


class TestCost(test_lifecycle.LifecycleTestCase):
    """What announcing costs, and what it costs when it is off."""

    def setUp(self):
        """Record the statements, and count the payloads being built."""
        super().setUp()
        self.database.facade  # connected, so that what follows is ours
        self.statements = []
        self.on_statement(self.statements.append)
        patcher = mock.patch.object(payload, 'payload_for', autospec=True,
                                    side_effect=payload.payload_for)
        self.payload_for = patcher.start()
        self.addCleanup(patcher.stop)

    def turn_off(self):
        """Take the emitter away."""
        emitter.IN_FORCE.take_away(emitter.IN_FORCE.current())
        self.assertIsNone(emitter.IN_FORCE.current())

    def silence(self):
        """Put an emitter in force whose only driver sends nothing."""
        transport = self.notifier._driver.transport
        silent = emitter.Emitter(
            oslo_messaging.Notifier(transport, driver='noop'), host='silent')
        self.addCleanup(emitter.IN_FORCE.take_away, silent)
        emitter.IN_FORCE.put_in_front(silent)
        self.assertIs(silent, emitter.IN_FORCE.current())

    def life(self, name):
        """Run each kind of call; return the statements of each."""
        node = self.node(hypervisor_hostname=name)
        statements = []
        self.statements.clear()
        for call, values in ((node.create, {}), (node.save, {}),
                             (node.save, {'vcpus': node.vcpus}),
                             (node.save, {'vcpus': 9, 'host_ip': '::1'}),
                             (node.save, {'free_ram_mb': 5}),
                             (node.destroy, {})):
            for field, value in values.items():
                setattr(node, field, value)
            call()
            statements.append(list(self.statements))
            self.statements.clear()
        return statements

    def test_no_emitter(self):
        """Announcing adds no statement to those without an emitter."""
        on = self.life('on')
        self.assertEqual(3, self.payload_for.call_count)
        self.assertEqual(['create', 'update', 'delete'], self.actions())
        self.turn_off()
        off = self.life('off')
        self.assertEqual(off, on)
        self.assertNotIn([], on)

    def test_no_payload_without_an_emitter(self):
        """Without an emitter no payload is built."""
        self.turn_off()
        self.life('off')
        self.assertEqual(0, self.payload_for.call_count)
        self.assertEqual([], self.actions())

    def test_silent_driver(self):
        """With a driver that sends nothing it is the same as without any."""
        on = self.life('on')
        self.payload_for.reset_mock()
        self.notifier.reset()
        self.silence()
        self.assertEqual(on, self.life('off'))
        self.assertEqual(0, self.payload_for.call_count)
        self.assertEqual([], self.actions())

    def test_no_payload_without_a_change(self):
        """No payload is built for a save that changes nothing tracked."""
        node = self.created()
        self.payload_for.reset_mock()
        for _ in range(1000 if self.server is None else 10):
            node.vcpus = 8
            node.stats = {'io_workload': '1'}
            node.save()
        self.assertEqual(0, self.payload_for.call_count)
        self.assertEqual([], self.actions())
