# SPDX-License-Identifier: Apache-2.0
"""How nodes are found, and what is said when they are not."""

from oslo_utils import uuidutils
import testscenarios

from compute_notify import context
from compute_notify import exception
from compute_notify import objects
from tests import base
from tests.functional import servers

load_tests = testscenarios.load_tests_apply_scenarios


class TestOne(servers.DatabaseTestCase):
    """ComputeNode.get_by_*: the live node or an error that names it."""

    scenarios = servers.SCENARIOS

    def not_found(self, message, method, *args):
        """Check that a look-up raises an error with this text."""
        error = self.assertRaises(exception.ComputeHostNotFound, method,
                                  self.context, *args)
        self.assertEqual(f'Compute host {message} could not be found.',
                         str(error))

    def test_found(self):
        """Each way finds the same node, with nothing to be saved."""
        node = self.created(**base.FULL)
        self.created(host='cmp2', hypervisor_hostname='node2')
        for found in (
            objects.ComputeNode.get_by_id(self.context, node.id),
            objects.ComputeNode.get_by_uuid(self.context, node.uuid),
            objects.ComputeNode.get_by_nodename(self.context, 'node1'),
            objects.ComputeNode.get_by_host_and_nodename(
                self.context, 'cmp1', 'node1'),
        ):
            self.assertEqual(node.obj_to_primitive(),
                             found.obj_to_primitive())
            self.assertEqual(set(), found.obj_what_changed())

    def test_unknown(self):
        """What was looked for is named when it does not exist."""
        self.created()
        uuid = uuidutils.generate_uuid()
        node = objects.ComputeNode
        self.not_found('4711', node.get_by_id, 4711)
        self.not_found(uuid, node.get_by_uuid, uuid)
        self.not_found('node2', node.get_by_nodename, 'node2')
        self.not_found('cmp1, node2', node.get_by_host_and_nodename,
                       'cmp1', 'node2')
        self.not_found('cmp2, node1', node.get_by_host_and_nodename,
                       'cmp2', 'node1')
        self.assertEqual([], self.actions())

    def test_other_case(self):
        """Names that differ in case only are different names."""
        self.created(hypervisor_hostname='node1')
        self.not_found('NODE1', objects.ComputeNode.get_by_nodename, 'NODE1')

    def test_deleted(self):
        """A deleted node is found by a context that reads those."""
        node = self.created()
        node.destroy()
        self.not_found(node.uuid, objects.ComputeNode.get_by_uuid, node.uuid)
        for read_deleted in ('yes', 'only'):
            found = objects.ComputeNode.get_by_uuid(
                context.get_admin_context(read_deleted=read_deleted),
                node.uuid)
            self.assertEqual((node.id, True), (found.id, found.deleted))


class TestMany(servers.DatabaseTestCase):
    """ComputeNodeList.get_all*: the nodes in the order of their ids."""

    scenarios = servers.SCENARIOS

    def setUp(self):
        """Store three nodes on two hosts, one of them deleted."""
        super().setUp()
        self.first = self.created(host='cmp2', hypervisor_hostname='c')
        self.second = self.created(host='cmp1', hypervisor_hostname='b')
        self.deleted = self.created(host='cmp1', hypervisor_hostname='a')
        self.deleted.destroy()
        self.notifier.reset()

    def assert_found(self, expected, nodes):
        """Check which nodes a list holds, and that they are clean."""
        self.assertEqual([node.uuid for node in expected],
                         [node.uuid for node in nodes])
        self.assertEqual(set(), nodes.obj_what_changed())
        self.assertEqual([], self.actions())

    def test_all(self):
        """All live nodes are listed, or all of the kind asked for."""
        everyone = [self.first, self.second, self.deleted]
        for read_deleted, expected in (
                ('no', everyone[:2]), ('yes', everyone),
                ('only', everyone[2:])):
            self.assert_found(expected, objects.ComputeNodeList.get_all(
                context.get_admin_context(read_deleted=read_deleted)))

    def test_none(self):
        """No nodes at all are an empty list and not an error."""
        self.first.destroy()
        self.second.destroy()
        self.notifier.reset()
        self.assert_found([], objects.ComputeNodeList.get_all(self.context))

    def test_by_host(self):
        """A host's live nodes are listed."""
        self.assert_found([self.second],
                          objects.ComputeNodeList.get_all_by_host(
                              self.context, 'cmp1'))

    def test_by_host_with_none(self):
        """A host without live nodes is an error that names it."""
        self.second.destroy()
        for host in ('cmp1', 'cmp3'):
            error = self.assertRaises(
                exception.ComputeHostNotFound,
                objects.ComputeNodeList.get_all_by_host, self.context, host)
            self.assertEqual(f'Compute host {host} could not be found.',
                             str(error))

    def test_by_uuids(self):
        """Unknown and deleted uuids are left out, none at all is fine."""
        uuids = [self.deleted.uuid, uuidutils.generate_uuid(),
                 self.second.uuid, self.first.uuid]
        self.assert_found([self.first, self.second],
                          objects.ComputeNodeList.get_all_by_uuids(
                              self.context, uuids))
        self.assert_found([], objects.ComputeNodeList.get_all_by_uuids(
            self.context, []))
