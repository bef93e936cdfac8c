# SPDX-License-Identifier: Apache-2.0
"""The shipped samples are what a real action sends, key for key."""

import json

from compute_notify import payload
from tests import base


class TestSamples(base.NodeTestCase):

    def setUp(self):
        super().setUp()
        self.compute_node = self.node(
            uuid='09f9a1a2-0f0e-4d1c-8a7a-1c1c1c7f0b01', **base.FULL)
        self.compute_node.create()

    def _assert_sent(self, action):
        # As text, so that the order of the keys is that of the sample too.
        self.assertEqual(
            json.dumps(base.sample(action), indent=4),
            json.dumps(self.notifier.wait_for_versioned_notifications(
                f'compute_node.{action}')[0], indent=4))

    def test_create(self):
        """compute_node-create.json is what create() sends."""
        self._assert_sent('create')

    def test_update(self):
        """compute_node-update.json is what a save() sends."""
        self.compute_node.vcpus_used = 4
        self.compute_node.memory_mb_used = 8192
        self.compute_node.free_ram_mb = 8192
        self.compute_node.running_vms = 3
        self.compute_node.save()
        self._assert_sent('update')

    def test_delete(self):
        """compute_node-delete.json is what destroy() sends."""
        self.compute_node.destroy()
        self._assert_sent('delete')

    def test_samples_are_of_this_version(self):
        """A sample names the version of the payload class."""
        for action, cls in (('create', payload.ComputeNodePayload),
                            ('update', payload.ComputeNodePayload),
                            ('delete', payload.ComputeNodeDeletePayload)):
            sample = base.sample(action)['payload']
            self.assertEqual((cls.obj_name(), cls.VERSION),
                             (sample['nova_object.name'],
                              sample['nova_object.version']))
