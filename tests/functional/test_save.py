# SPDX-License-Identifier: Apache-2.0
"""What a save of a compute node sends, on each database."""

import math

from oslo_db import exception as db_exc
import testscenarios

from compute_notify import change
from compute_notify import exception
from tests import base
from tests.functional import test_lifecycle

load_tests = testscenarios.load_tests_apply_scenarios

#: Another value than base.FULL has, for each field that can be assigned.
OTHER = {
    'host': 'cmp2',
    'vcpus': 16,
    'memory_mb': 32768,
    'local_gb': 200,
    'vcpus_used': 3,
    'memory_mb_used': 5120,
    'local_gb_used': 20,
    'hypervisor_type': 'KVM',
    'hypervisor_version': 9000000,
    'hypervisor_hostname': 'node2',
    'free_ram_mb': 11264,
    'free_disk_gb': 80,
    'current_workload': 1,
    'running_vms': 3,
    'disk_available_least': 75,
    'host_ip': '192.0.2.8',
}

UNTRACKED = {name: value for name, value in OTHER.items()
             if name not in change.TRACKED}


def assign(node, values):
    """Assign fields of a node by name."""
    for name, value in values.items():
        setattr(node, name, value)


class TestSave(test_lifecycle.LifecycleTestCase):
    """save(): values are compared, not assignments."""

    def test_each_tracked_field(self):
        """A change of any tracked field makes one update of all fields."""
        expected = base.FULL
        node = self.created(**expected)
        for name in sorted(change.TRACKED):
            setattr(node, name, OTHER[name])
            node.save()
            expected = expected | {name: OTHER[name]}
            self.assertEqual(
                [('update', expected | {'id': node.id, 'uuid': node.uuid})],
                self.sent(), name)

    def test_each_untracked_field(self):
        """A change of any other field is stored and stays silent."""
        node = self.created(**base.FULL)
        for name, value in UNTRACKED.items():
            setattr(node, name, value)
            node.save()
            self.assertEqual([], self.actions(), name)
        node.vcpus = 9
        node.save()
        [(_, data)] = self.sent()
        self.assertEqual(base.FULL | UNTRACKED | {
            'id': node.id, 'uuid': node.uuid, 'vcpus': 9}, data)

    def test_fields_outside_the_payload(self):
        """Statistics, CPU details and ratios alone make no event."""
        node = self.created()
        for name, value in (('stats', {'num_instances': '3'}),
                            ('cpu_info', '{"model": "Nehalem"}'),
                            ('cpu_allocation_ratio', 16.0)):
            setattr(node, name, value)
            node.save()
            self.assertEqual([], self.actions(), name)
            self.assertEqual(value, getattr(self.copy_of(node), name))

    def test_everything_at_once(self):
        """Many changes in one save make one update."""
        node = self.created(**base.FULL)
        assign(node, OTHER)
        node.save()
        self.assertEqual(
            [('update', OTHER | {'id': node.id, 'uuid': node.uuid})],
            self.sent())

    def test_equal_values(self):
        """Assigning what is stored already makes no event."""
        node = self.created(**base.FULL)
        assign(node, base.FULL)
        self.assertEqual(set(base.FULL), node.obj_what_changed())
        node.save()
        self.assertEqual([], self.actions())

    def test_there_and_back(self):
        """A value that went away and came back before the save is equal."""
        node = self.created(vcpus_used=2)
        node.vcpus_used = 0
        node.vcpus_used = 2
        node.save()
        self.assertEqual([], self.actions())

    def test_nothing_assigned(self):
        """A save without any assignment is a sign of life but no event."""
        node = self.created()
        self.assertIsNone(node.updated_at)
        node.save()
        self.assertIsNotNone(node.updated_at)
        self.assertEqual([], self.actions())

    def test_twice(self):
        """Saving a change again makes no second update."""
        node = self.created()
        node.vcpus = 9
        node.save()
        node.save()
        self.assertEqual(['update'], self.actions())

    def test_rename(self):
        """A new host name is an update of the same node; the same is none."""
        node = self.created(hypervisor_hostname='n1')
        uuid = node.uuid
        node.hypervisor_hostname = 'n2'
        node.save()
        [(action, data)] = self.sent()
        self.assertEqual(('update', uuid, 'n2'), (
            action, data['uuid'], data['hypervisor_hostname']))
        node.hypervisor_hostname = 'n2'
        node.save()
        self.assertEqual([], self.actions())

    def test_names(self):
        """Names in any script survive, and a first or no name is a change."""
        node = self.created(hypervisor_hostname=None)
        node.hypervisor_hostname = 'hôte-计算'
        node.save()
        [(action, data)] = self.sent()
        self.assertEqual(('update', 'hôte-计算'),
                         (action, data['hypervisor_hostname']))
        self.assertEqual('hôte-计算', self.copy_of(node).hypervisor_hostname)
        # MariaDB's usual collations would call these equal.
        for name in ('HÔTE-计算', 'hote-计算', 'hote-计算 ', None):
            node.hypervisor_hostname = name
            node.save()
            [(action, data)] = self.sent()
            self.assertEqual(('update', name),
                             (action, data['hypervisor_hostname']))

    def test_negative(self):
        """An overcommitted node has negative room, and it is told as is."""
        node = self.node(disk_available_least=-57, free_ram_mb=-512)
        node.create()
        [(_, data)] = self.sent()
        self.assertEqual((-57, -512), (data['disk_available_least'],
                                       data['free_ram_mb']))
        node.disk_available_least = -58
        node.save()
        [(action, data)] = self.sent()
        self.assertEqual(('update', -58, -512), (
            action, data['disk_available_least'], data['free_ram_mb']))

    def test_large(self):
        """The largest integer that the column holds is told exactly."""
        node = self.created(local_gb=2 ** 63 - 2)
        node.local_gb = 2 ** 63 - 1
        node.save()
        self.assertEqual([2 ** 63 - 1],
                         [data['local_gb'] for _, data in self.sent()])

    def test_float(self):
        """A fraction of a GiB is not a change of whole ones."""
        node = self.created(local_gb_used=10)
        node.local_gb_used = 10.4
        node.save()
        self.assertEqual([], self.actions())
        node.vcpus_used = 3
        node.save()
        [(_, data)] = self.sent()
        self.assertEqual(10, data['local_gb_used'])
        self.assertIs(int, type(data['local_gb_used']))

    def test_wrong_types(self):
        """A value that cannot fit is refused when it is assigned."""
        node = self.created()
        statements = []
        self.on_statement(statements.append)
        for name, value in (('hypervisor_version', ''), ('vcpus', math.nan),
                            ('vcpus', None), ('host_ip', 'fe80::1%eth0')):
            self.assertRaises(ValueError, setattr, node, name, value)
        self.assertEqual(set(), node.obj_what_changed())
        self.assertEqual([], statements)
        self.assertEqual([], self.actions())

    def test_addresses(self):
        """An address is told in its canonical form, or as null."""
        for number, (address, told) in enumerate((
                ('2001:DB8::0001', '2001:db8::1'), ('192.0.2.7', '192.0.2.7'),
                ('::ffff:192.0.2.7', '::ffff:192.0.2.7'), (None, None))):
            node = self.node(host_ip=address,
                             hypervisor_hostname=f'node{number}')
            node.create()
            node.vcpus = 9
            node.save()
            self.assertEqual([('create', told), ('update', told)],
                             [(action, data['host_ip'])
                              for action, data in self.sent()])

    def test_host_unset(self):
        """A node without a host is published under its own name."""
        node = self.created(host=None)
        node.vcpus = 9
        node.save()
        [sent] = self.notifier.versioned_notifications
        self.assertEqual('nova-compute:node1', sent['publisher_id'])
        self.assertIsNone(sent['payload']['nova_object.data']['host'])

    def test_stale_writer(self):
        """A writer that restores its own old value changes the row."""
        stale = self.created(vcpus_used=1)
        fresh = self.copy_of(stale)
        fresh.vcpus_used = 6
        fresh.save()
        self.notifier.reset()
        stale.vcpus_used = 1
        stale.save()
        self.assertEqual([('update', 1)],
                         [(action, data['vcpus_used'])
                          for action, data in self.sent()])

    def test_stale_writer_of_another_field(self):
        """An update tells what others have stored in the meantime."""
        stale = self.created(vcpus_used=1)
        fresh = self.copy_of(stale)
        fresh.vcpus_used = 6
        fresh.save()
        self.notifier.reset()
        stale.running_vms = 7
        stale.save()
        self.assertEqual([(6, 7)], [(data['vcpus_used'], data['running_vms'])
                                    for _, data in self.sent()])
        self.assertEqual(6, stale.vcpus_used)

    def test_failed_once(self):
        """A save that failed is not announced; repeated, it is, once."""
        node = self.created(vcpus=12)
        node.vcpus = 13
        error = self.fail_once('UPDATE')
        self.assertIs(error, self.assertRaises(db_exc.DBError, node.save))
        self.assertEqual([], self.actions())
        self.assertEqual(12, self.copy_of(node).vcpus)
        node.save()
        self.assertEqual([('update', 13)], [(action, data['vcpus'])
                                            for action, data in self.sent()])

    def test_duplicate_name(self):
        """Taking a name that is in use is refused and not announced."""
        self.created()
        node = self.created(hypervisor_hostname='node2')
        node.hypervisor_hostname = 'node1'
        node.vcpus = 9
        error = self.assertRaises(exception.DuplicateRecord, node.save)
        self.assertIn(f'node1:{node.uuid}:{node.id}', str(error))
        self.assertEqual([], self.actions())
        self.assertEqual(8, self.copy_of(node).vcpus)

    def test_not_stored(self):
        """Saving a node that is gone is an error that names it."""
        node = self.created()
        stale = self.copy_of(node)
        node.destroy()
        self.notifier.reset()
        stale.vcpus = 9
        error = self.assertRaises(exception.ComputeHostNotFound, stale.save)
        self.assertIn(str(node.id), str(error))
        self.assertEqual([], self.actions())


class TestExtraFields(test_lifecycle.LifecycleTestCase):
    """[compute_notify] extra_update_fields."""

    extra_update_fields = tuple(UNTRACKED)

    def test_each_field(self):
        """A change of a field that was added makes one update."""
        node = self.created(**base.FULL)
        for name, value in UNTRACKED.items():
            setattr(node, name, value)
            node.save()
            [(action, data)] = self.sent()
            self.assertEqual(('update', value), (action, data[name]), name)

    def test_equal_values(self):
        """An equal value still makes none."""
        node = self.created(**base.FULL | {'host_ip': '2001:DB8::0001'})
        assign(node, base.FULL | {'host_ip': '2001:db8:0::1'})
        node.save()
        self.assertEqual([], self.actions())

    def test_tracked(self):
        """The fields that are always watched still are."""
        node = self.created()
        node.vcpus = 9
        node.save()
        self.assertEqual(['update'], self.actions())
