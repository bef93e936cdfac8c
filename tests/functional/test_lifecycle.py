# SPDX-License-Identifier: Apache-2.0
"""What create and destroy of a compute node send, and coming back."""

from oslo_db import exception as db_exc
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from compute_notify import context
from compute_notify import exception
from compute_notify import objects
from compute_notify import payload
from tests import base
from tests.functional import servers

load_tests = testscenarios.load_tests_apply_scenarios


class LifecycleTestCase(servers.DatabaseTestCase):
    """Adds what the tests below share."""

    scenarios = servers.SCENARIOS

    def deleted_seen(self):
        """Return a context that reads deleted nodes too."""
        return context.get_admin_context(read_deleted='yes')

    def deleted(self, **values):
        """Return a deleted node as such a context sees it."""
        node = self.created(**values)
        node.destroy()
        self.notifier.reset()
        return objects.ComputeNode.get_by_id(self.deleted_seen(), node.id)

    def on_statement(self, listener):
        """Call a function with each SQL statement that is about to run."""
        engine = self.database.facade.writer.get_engine()

        def before(connection, cursor, statement, *args):
            listener(statement)

        sa.event.listen(engine, 'before_cursor_execute', before)
        self.addCleanup(sa.event.remove, engine, 'before_cursor_execute',
                        before)

    def fail_once(self, verb):
        """Let the next statement that starts so raise; return its error."""
        error = db_exc.DBError()
        errors = [error]

        def raise_once(statement):
            if statement.startswith(verb) and errors:
                raise errors.pop()

        self.on_statement(raise_once)
        return error


class TestCreate(LifecycleTestCase):
    """create(): inserted, or a deleted row came back."""

    def test_sends_the_row_as_stored(self):
        """A new node makes one create with its 18 fields and no other."""
        node = self.node(**base.FULL)
        node.create()
        self.assertEqual(
            [('create', base.FULL | {'id': node.id, 'uuid': node.uuid})],
            self.sent())
        self.assertIsInstance(node.id, int)
        self.assertEqual(set(), node.obj_what_changed())

    def test_nulls(self):
        """What was never given is null in the payload, and zero is not."""
        node = self.node()
        node.create()
        [(action, data)] = self.sent()
        self.assertEqual('create', action)
        self.assertEqual(
            {'free_ram_mb', 'free_disk_gb', 'current_workload', 'running_vms',
             'disk_available_least', 'host_ip'},
            {name for name, value in data.items() if value is None})
        for expected in (['update'], []):
            node.running_vms = 0
            node.current_workload = 0
            node.save()
            self.assertEqual(expected, self.actions())

    def test_again_after_destroy(self):
        """A destroyed node that is created again is the same one."""
        uuid = uuidutils.generate_uuid()
        first = self.node(uuid=uuid)
        first.create()
        first.destroy()
        second = self.node(uuid=uuid, vcpus=4)
        second.create()
        sent = self.sent()
        self.assertEqual(['create', 'delete', 'create'],
                         [action for action, data in sent])
        self.assertEqual([first.id] * 3, [data['id'] for _, data in sent])
        self.assertEqual([uuid] * 3, [data['uuid'] for _, data in sent])
        self.assertEqual(4, sent[-1][1]['vcpus'])
        self.assertEqual(set(payload.PAYLOAD_FIELDS), set(sent[-1][1]))
        self.assertFalse(second.deleted)
        self.assertIsNone(second.deleted_at)
        self.assertEqual(1, len(objects.ComputeNodeList.get_all(
            self.deleted_seen())))

    def test_keeps_what_is_not_given_again(self):
        """A node that comes back is announced with its older values too."""
        uuid = self.deleted(**base.FULL).uuid
        self.node(uuid=uuid).create()
        [(_, data)] = self.sent()
        self.assertEqual(base.FULL | {'id': data['id'], 'uuid': uuid}, data)

    def test_failed_once(self):
        """Only the attempt that stored something is announced."""
        node = self.node()
        error = self.fail_once('INSERT')
        self.assertIs(error, self.assertRaises(db_exc.DBError, node.create))
        self.assertEqual([], self.actions())
        self.assertEqual(0, len(objects.ComputeNodeList.get_all(
            self.context)))
        self.node().create()
        self.assertEqual(['create'], self.actions())

    def test_twice(self):
        """An object that is stored already cannot be created again."""
        node = self.created()
        error = self.assertRaises(exception.ObjectActionError, node.create)
        self.assertEqual(
            f'Compute node node1:{node.uuid}:{node.id}: create failed '
            'because: already created', str(error))
        self.assertEqual([], self.actions())

    def test_duplicate_uuid(self):
        """A second live node with one uuid is refused and not announced."""
        uuid = self.created().uuid
        node = self.node(uuid=uuid, hypervisor_hostname='node2')
        error = self.assertRaises(exception.DuplicateRecord, node.create)
        self.assertEqual('Cannot create duplicate record: compute node '
                         f'node2:{uuid}', str(error))
        self.assertEqual([], self.actions())

    def test_duplicate_name(self):
        """So is a second live node with one host and host name."""
        self.created()
        node = self.node()
        error = self.assertRaises(exception.DuplicateRecord, node.create)
        self.assertIn(f'node1:{node.uuid}', str(error))
        self.assertEqual([], self.actions())

    def test_comes_back_to_a_name_taken(self):
        """A node cannot be created again under a name that is in use."""
        uuid = self.deleted().uuid
        self.created()
        node = self.node(uuid=uuid)
        error = self.assertRaises(exception.DuplicateRecord, node.create)
        self.assertIn(f'node1:{uuid}', str(error))
        self.assertEqual([], self.actions())

    def test_duplicate_of_a_deleted_name(self):
        """The name of a deleted node is free for another one."""
        old = self.deleted()
        node = self.node()
        node.create()
        self.assertNotEqual(old.id, node.id)
        self.assertEqual(['create'], self.actions())


class TestUndelete(LifecycleTestCase):
    """save() of a deleted node, as Nova's resource tracker does it."""

    def undelete(self, node):
        """Assign what makes a deleted node a live one."""
        node.deleted = False
        node.deleted_at = None

    def test_back_by_save(self):
        """A node that is no longer deleted makes one create, all in it."""
        node = self.deleted(**base.FULL)
        self.undelete(node)
        node.vcpus = 4
        node.save()
        self.assertEqual(
            [('create', base.FULL | {'id': node.id, 'uuid': node.uuid,
                                     'vcpus': 4})],
            self.sent())
        live = objects.ComputeNode.get_by_uuid(self.context, node.uuid)
        self.assertEqual((False, None), (live.deleted, live.deleted_at))

    def test_then_update(self):
        """After that its changes are updates, and its end is a delete."""
        node = self.deleted()
        self.undelete(node)
        node.save()
        node.vcpus = 4
        node.save()
        node.destroy()
        self.assertEqual(['create', 'update', 'delete'], self.actions())

    def test_live_already(self):
        """Undeleting a live node is no event."""
        node = self.created()
        self.undelete(node)
        node.save()
        self.assertEqual([], self.actions())

    def test_stays_deleted(self):
        """What changes on a deleted node is stored and not announced."""
        node = self.deleted(vcpus=8)
        node.vcpus = 9
        node.save()
        self.assertEqual([], self.actions())
        self.assertEqual(9, objects.ComputeNode.get_by_id(
            self.deleted_seen(), node.id).vcpus)

    def test_name_taken(self):
        """A node cannot come back to a name that another one has."""
        node = self.deleted()
        self.created()
        self.undelete(node)
        self.assertRaises(exception.DuplicateRecord, node.save)
        self.assertEqual([], self.actions())


class TestDestroy(LifecycleTestCase):
    """destroy(): one delete for a live row, nothing otherwise."""

    def test_live(self):
        """A destroyed node makes one delete that says which one it was."""
        node = self.created(**base.FULL)
        node.destroy()
        self.assertEqual([('delete', {'id': node.id, 'uuid': node.uuid})],
                         self.sent())
        [row] = objects.ComputeNodeList.get_all(self.deleted_seen())
        self.assertTrue(row.deleted)
        self.assertIsNotNone(row.deleted_at)

    def test_publisher(self):
        """A delete is published for the host the node was on."""
        self.created(host='cmp7').destroy()
        self.assertEqual(
            ['nova-compute:cmp7'],
            [sent['publisher_id']
             for sent in self.notifier.versioned_notifications])

    def test_twice(self):
        """The second destroy raises, and only the first is announced."""
        node = self.created()
        node.destroy()
        self.assertEqual(['delete'], self.actions())
        error = self.assertRaises(exception.ComputeHostNotFound, node.destroy)
        self.assertIn(str(node.id), str(error))
        self.assertEqual([], self.actions())

    def test_deleted_already(self):
        """Destroying a node that is seen as deleted does nothing."""
        node = self.deleted()
        node.destroy()
        self.assertEqual([], self.actions())
        self.assertEqual(node.deleted_at, objects.ComputeNode.get_by_id(
            self.deleted_seen(), node.id).deleted_at)

    def test_partly_loaded(self):
        """The id is enough to destroy, and the delete has the right uuid."""
        node = self.created()
        self.assertIsNone(
            objects.ComputeNode(self.context, id=node.id).destroy())
        self.assertEqual([('delete', {'id': node.id, 'uuid': node.uuid})],
                         self.sent())

    def test_owner_changed(self):
        """A host cannot destroy a node that another host has taken over."""
        theirs = self.created(host='h1')
        mine = self.copy_of(theirs)
        theirs.host = 'h2'
        theirs.save()
        error = self.assertRaises(exception.ObjectActionError, mine.destroy)
        self.assertEqual(
            f'Compute node node1:{mine.uuid}:{mine.id}: destroy failed '
            'because: host changed', str(error))
        self.assertEqual([], self.actions())
        self.assertEqual('h2', self.copy_of(theirs).host)

    def test_failed_once(self):
        """A destroy that failed is not announced; repeated, it is, once."""
        node = self.created()
        error = self.fail_once('UPDATE')
        self.assertIs(error, self.assertRaises(db_exc.DBError, node.destroy))
        self.assertEqual([], self.actions())
        node.destroy()
        self.assertEqual(['delete'], self.actions())

    def test_others_stay(self):
        """Only the node that is destroyed is deleted and announced."""
        node, other = self.created(), self.created(hypervisor_hostname='n2')
        node.destroy()
        self.assertEqual([node.id], [data['id'] for _, data in self.sent()])
        self.assertEqual([other.id], [row.id for row in
                                      objects.ComputeNodeList.get_all(
                                          self.context)])
