# SPDX-License-Identifier: Apache-2.0
"""What Nova's own ComputeNode and Service announce, and what they do not."""

from unittest import mock

from nova.db.main import api as db
from nova import exception
from nova import objects
from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from tests import base as tests_base
from tests.nova import base


class TestCreate(base.NovaTestCase):

    def test_create(self):
        """A create sends the row as stored, nulls included."""
        node = self.node(uuid=uuidutils.generate_uuid())
        node.create()
        (action, data), = self.sent()
        self.assertEqual('create', action)
        self.assertEqual(
            tests_base.MANDATORY | {'id': node.id, 'uuid': node.uuid} | {
                name: None for name in (
                    'free_ram_mb', 'free_disk_gb', 'current_workload',
                    'running_vms', 'disk_available_least', 'host_ip')},
            data)

    def test_envelope(self):
        """Publisher, priority and names are those of the contract."""
        self.flags(host='ctl1')
        self.node(host='cmp7').create()
        event, = self.events()
        self.assertEqual(
            ('nova-compute:cmp7', 'INFO', 'compute_node.create',
             'ComputeNodePayload', 'nova', '1.0'),
            (event['publisher_id'], event['priority'], event['event_type'],
             event['payload']['nova_object.name'],
             event['payload']['nova_object.namespace'],
             event['payload']['nova_object.version']))
        self.assertEqual([], self.notifier.notifications)

    def test_comes_back(self):
        """A deleted uuid comes back: create, delete, create, one id."""
        node = self.node(uuid=uuidutils.generate_uuid())
        node.create()
        node.destroy()
        again = self.node(uuid=node.uuid, vcpus=4)
        again.create()
        sent = self.sent()
        self.assertEqual(['create', 'delete', 'create'],
                         [action for action, _ in sent])
        self.assertEqual({node.id}, {data['id'] for _, data in sent})
        self.assertEqual(4, sent[-1][1]['vcpus'])

    def test_failed(self):
        """A create that fails sends nothing, and then once."""
        with mock.patch.object(db, 'compute_node_create', autospec=True,
                               side_effect=db_exc.DBError):
            self.assertRaises(db_exc.DBError, self.node().create)
        self.node().create()
        self.assertEqual(['create'], self.actions())

    def test_duplicate(self):
        """A duplicate raises as Nova does and sends nothing."""
        self.created()
        self.assertRaises(exception.DuplicateRecord, self.node().create)
        self.assertEqual([], self.actions())


class TestSave(base.NovaTestCase):

    def test_values_count(self):
        """Equal values, there and back, and other fields send nothing."""
        node = self.created()
        node.vcpus = node.vcpus
        node.save()
        node.vcpus_used = 0
        node.vcpus_used = tests_base.MANDATORY['vcpus_used']
        node.save()
        node.stats = {'io_workload': '3'}
        node.mapped = 1
        node.memory_mb_used = 1
        node.save()
        node.save()
        self.assertEqual([], self.actions())
        node.vcpus_used = 0
        node.save()
        self.assertEqual([('update', 0)], [
            (action, data['vcpus_used']) for action, data in self.sent()])

    def test_stale_writer(self):
        """A copy's own old value is a change if the row differs."""
        node = self.created(vcpus_used=1)
        late = self.copy_of(node)
        node.vcpus_used = 6
        node.save()
        self.events()
        late.vcpus_used = 1
        late.save()
        self.assertEqual([1], [data['vcpus_used'] for _, data in self.sent()])

    def test_undelete(self):
        """The resource tracker's undelete is one create and no update."""
        node = self.created()
        node.destroy()
        self.events()
        self.context.read_deleted = 'yes'
        node = self.copy_of(node)
        node.deleted = False
        node.deleted_at = None
        node.vcpus = 99
        node.save()
        self.assertEqual([('create', 99)], [
            (action, data['vcpus']) for action, data in self.sent()])

    def test_stays_deleted(self):
        """A save of a node that stays deleted sends nothing."""
        node = self.created()
        node.destroy()
        self.events()
        self.context.read_deleted = 'yes'
        node = self.copy_of(node)
        node.vcpus = 99
        node.save()
        self.assertEqual([], self.actions())

    def test_failed_once(self):
        """A save that fails sends nothing; the next one sends once."""
        node = self.created()
        node.vcpus = 13
        failure = db_exc.DBError()
        with mock.patch.object(db, 'compute_node_update', autospec=True,
                               side_effect=failure):
            self.assertIs(failure, self.assertRaises(db_exc.DBError,
                                                     node.save))
        self.assertEqual([], self.actions())
        node.save()
        self.assertEqual(['update'], self.actions())

    def test_rename_and_null(self):
        """A rename is one update; the same name again is none."""
        node = self.created()
        for name in ('n2', 'n2', 'hôte-计算'):
            node.hypervisor_hostname = name
            node.save()
        self.assertEqual(['n2', 'hôte-计算'], [
            data['hypervisor_hostname'] for _, data in self.sent()])

    def test_host_unset(self):
        """Without a host the publisher is the hypervisor_hostname."""
        node = self.created(host=None)
        node.vcpus = 99
        node.save()
        event, = self.events()
        self.assertEqual('nova-compute:node1', event['publisher_id'])
        self.assertIsNone(event['payload']['nova_object.data']['host'])

    def test_addresses_and_negative_numbers(self):
        """Addresses are canonical, negative resources stay as they are."""
        node = self.created(host_ip='2001:DB8::0001',
                            disk_available_least=-57, free_ram_mb=-512)
        node.disk_available_least = -58
        node.save()
        (_, data), = self.sent()
        self.assertEqual(('2001:db8::1', -58, -512), tuple(
            data[name] for name in ('host_ip', 'disk_available_least',
                                    'free_ram_mb')))

    def test_deadlock_retry(self):
        """What a deadlock's retry writes is announced once."""
        node = self.created()
        attempts = []

        def deadlock_once(context, compute_id):
            attempts.append(compute_id)
            model = get(context, compute_id)
            if len(attempts) == 1:
                model.vcpus = 77
                context.session.flush()
                raise db_exc.DBDeadlock()
            return model

        get = db.compute_node_get_model
        node.vcpus = 9
        with mock.patch.object(db, 'compute_node_get_model', autospec=True,
                               side_effect=deadlock_once):
            node.save()
        self.assertEqual(2, len(attempts))
        self.assertEqual([9], [data['vcpus'] for _, data in self.sent()])


class TestDestroy(base.NovaTestCase):

    def test_destroy(self):
        """A destroy sends id and uuid."""
        node = self.created()
        node.destroy()
        self.assertEqual([('delete', {'id': node.id, 'uuid': node.uuid})],
                         self.sent())

    def test_twice(self):
        """The second destroy raises as before and sends nothing."""
        node = self.created()
        node.destroy()
        self.assertRaises(exception.ComputeHostNotFound, node.destroy)
        self.assertEqual(['delete'], self.actions())
        self.context.read_deleted = 'yes'
        node.destroy()
        self.assertEqual([], self.actions())

    def test_host_changed(self):
        """A node that another host owns by now is not announced."""
        node = self.created()
        late = self.copy_of(node)
        node.host = 'cmp2'
        node.save()
        self.assertRaises(exception.ObjectActionError, late.destroy)
        self.assertEqual([], self.actions())

    def test_partly_loaded(self):
        """An object with only its id set is enough."""
        node = self.created()
        objects.ComputeNode(self.context, id=node.id).destroy()
        self.assertEqual([('delete', {'id': node.id, 'uuid': node.uuid})],
                         self.sent())


class TestService(base.NovaTestCase):

    def test_compute_service(self):
        """A compute service takes its nodes along, after its own event."""
        service = self.service()
        nodes = [self.created(hypervisor_hostname=name)
                 for name in ('n1', 'n2')]
        other = self.created(host='cmp2')
        dead = self.created(hypervisor_hostname='n3')
        dead.destroy()
        self.events()
        service.destroy()
        events = self.events()
        self.assertEqual(
            ['service.delete', 'compute_node.delete', 'compute_node.delete'],
            [event['event_type'] for event in events])
        self.assertEqual({node.uuid for node in nodes}, {
            event['payload']['nova_object.data']['uuid']
            for event in events[1:]})
        self.assertEqual({'nova-compute:cmp1'},
                         {event['publisher_id'] for event in events})
        self.assertEqual(other.id, self.copy_of(other).id)

    def test_deleted_nodes_are_visible(self):
        """Nodes that were deleted before stay unannounced."""
        service = self.service()
        self.created().destroy()
        self.events()
        self.context.read_deleted = 'yes'
        service.destroy()
        self.assertEqual([], self.actions())

    def test_other_service(self):
        """Another binary on that host takes no node along."""
        service = self.service(binary='nova-scheduler')
        self.created()
        service.destroy()
        self.assertEqual([], self.actions())

    def test_failed(self):
        """A destroy that fails sends nothing."""
        service = self.service()
        self.created()
        service.destroy()
        self.events()
        self.assertRaises(exception.ServiceNotFound, service.destroy)
        self.assertEqual([], self.actions())


class TestTransactions(base.NovaTestCase):

    def _transaction(self):
        return db.get_context_manager(self.context).writer.using(self.context)

    def _in_transaction(self, *calls, error=None):
        with self._transaction():
            for call in calls:
                call()
            self.assertEqual([], self.actions())
            if error:
                raise error

    def test_committed(self):
        """Two saves in one transaction are one update, after the commit."""
        node = self.created()

        def save(vcpus):
            node.vcpus = vcpus
            node.save()

        self._in_transaction(lambda: save(9), lambda: save(10))
        self.assertEqual([10], [data['vcpus'] for _, data in self.sent()])

    def test_rolled_back(self):
        """A transaction that is rolled back announces nothing."""
        node = self.created()
        node.vcpus = 9
        self.assertRaises(KeyError, self._in_transaction, node.save,
                          error=KeyError())
        self.assertEqual([], self.actions())

    def test_savepoint(self):
        """A savepoint that is rolled back takes its change along."""
        node = self.created()
        with self._transaction() as session:
            node.vcpus = 9
            node.save()
            savepoint = session.begin_nested()
            node.vcpus = 10
            node.save()
            savepoint.rollback()
        self.assertEqual([9], [data['vcpus'] for _, data in self.sent()])

    def test_destroyed(self):
        """A destroy waits for the commit too."""
        node = self.created()
        self._in_transaction(node.destroy)
        self.assertEqual(['delete'], self.actions())

    def test_destroy_rolled_back(self):
        """A destroy that is rolled back announces nothing."""
        node = self.created()
        self.assertRaises(KeyError, self._in_transaction, node.destroy,
                          error=KeyError())
        self.assertEqual([], self.actions())
        self.assertFalse(self.copy_of(node).deleted)

    def test_created_and_destroyed(self):
        """A node that came and went in one transaction is no event."""
        node = self.node()
        self._in_transaction(node.create, node.destroy)
        self.assertEqual([], self.actions())
