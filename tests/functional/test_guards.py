# SPDX-License-Identifier: Apache-2.0
"""What other code does to a row, or asks of a node, in odd ways."""

import testscenarios

from compute_notify import context
from compute_notify.db import api
from compute_notify.db import models
from compute_notify import exception
from compute_notify import objects
from tests import base
from tests.functional import servers

load_tests = testscenarios.load_tests_apply_scenarios


class TestOtherWriters(servers.DatabaseTestCase):
    """A row that a call has written, written again in its transaction."""

    scenarios = servers.SCENARIOS

    def setUp(self):
        super().setUp()
        self.compute_node = self.created()

    def _save(self, vcpus):
        self.compute_node.vcpus = vcpus
        self.compute_node.save()

    def test_updated(self):
        """The payload is the row as it was committed, whoever wrote last."""
        with api.writer(self.context):
            self._save(9)
            api.compute_node_update(self.context, self.compute_node.id,
                                    {'vcpus': 10})
        self.assertEqual([10], [data['vcpus'] for _, data in self.sent()])

    def test_undone(self):
        """A change that other code takes back is none."""
        with api.writer(self.context):
            self._save(9)
            api.compute_node_update(self.context, self.compute_node.id,
                                    {'vcpus': base.MANDATORY['vcpus']})
        self.assertEqual([], self.actions())

    def test_deleted(self):
        """A node that other code deletes after a save is deleted."""
        with api.writer(self.context):
            self._save(9)
            api.compute_node_delete(self.context, self.compute_node.id)
        self.assertEqual(['delete'], self.actions())

    def test_assigned(self):
        """A value assigned to the mapped row counts as well."""
        with api.writer(self.context) as session:
            self._save(9)
            session.get(models.ComputeNode, self.compute_node.id).vcpus = 11
        self.assertEqual([11], [data['vcpus'] for _, data in self.sent()])

    def test_untouched_by_a_call(self):
        """A row that no call has written is not announced."""
        api.compute_node_update(self.context, self.compute_node.id,
                                {'vcpus': 9})
        self.assertEqual([], self.actions())


class TestOddValues(servers.DatabaseTestCase):

    scenarios = servers.SCENARIOS

    def test_deleted_by_save(self):
        """A save can delete; the row then is like one that was destroyed."""
        for _ in range(2):
            node = self.created()
            node.deleted = True
            node.save()
            self.assertEqual(['delete'], self.actions())
            self.assertRaises(exception.ComputeHostNotFound, self.copy_of,
                              node)
        dead = objects.ComputeNodeList.get_all(
            context.get_admin_context(read_deleted='only'))
        self.assertEqual(2, len(dead))
        self.assertNotIn(None, [node.deleted_at for node in dead])

    def test_created_deleted(self):
        """A node is created live, whatever it says."""
        self.node(deleted=True).create()
        self.assertEqual(['create'], self.actions())

    def test_uuid_never_changes(self):
        """A copy made by hand with another uuid is refused."""
        node = self.created()
        copy = objects.ComputeNode(
            self.context, id=node.id, vcpus=9,
            uuid='4f2ed0c2-8d5c-4c8c-9f0a-6f6f5f0c1d11')
        self.assertRaises(exception.ObjectActionError, copy.save)
        self.assertEqual([], self.actions())
        self.assertEqual(8, self.copy_of(node).vcpus)

    def test_mandatory(self):
        """A field that is missing is named, before the database is asked."""
        error = self.assertRaises(
            exception.ObjectActionError,
            objects.ComputeNode(self.context, host='cmp1', vcpus=1,
                                hypervisor_hostname='node1').create)
        self.assertEqual(
            'Compute node node1: create failed because: not set: memory_mb, '
            'local_gb, vcpus_used, memory_mb_used, local_gb_used, '
            'hypervisor_type, hypervisor_version', str(error))

    def test_read_beside(self):
        """Another context reads while a transaction is open."""
        node = self.created()
        with api.writer(self.context):
            node.vcpus = 9
            node.save()
            beside = context.get_admin_context()
            self.assertEqual(
                8, objects.ComputeNode.get_by_id(beside, node.id).vcpus)
        self.assertEqual(['update'], self.actions())
