# SPDX-License-Identifier: Apache-2.0
"""What a difference between two rows means."""

import testtools

from compute_notify import change

_ROW = {'deleted': 0, 'stats': '{}'} | {
    name: 1 for name in sorted(change.TRACKED)}


class TestBetween(testtools.TestCase):

    def _action(self, before, after, **kwargs):
        what = change.between(before, after, **kwargs)
        return what and (what.action.value, what.row)

    def test_new_row(self):
        """A row that was not there is a create."""
        self.assertEqual(('create', _ROW), self._action(None, _ROW))

    def test_new_row_already_deleted(self):
        """A row that came and went in one transaction is nothing."""
        self.assertIsNone(self._action(None, _ROW | {'deleted': 7}))

    def test_came_back(self):
        """A deleted row that is live again is a create and no update."""
        after = _ROW | {'deleted': False, 'vcpus': 2}
        self.assertEqual(('create', after),
                         self._action(_ROW | {'deleted': 7}, after))

    def test_deleted(self):
        """A live row that is deleted is a delete, whatever else moved."""
        after = _ROW | {'deleted': 7, 'vcpus': 2}
        self.assertEqual(('delete', after), self._action(_ROW, after))

    def test_stays_deleted(self):
        """A deleted row that changes is nothing."""
        self.assertIsNone(self._action(
            _ROW | {'deleted': 7}, _ROW | {'deleted': 7, 'vcpus': 2}))

    def test_each_tracked_field(self):
        """Each of the nine fields makes an update on its own."""
        for name in ('vcpus', 'memory_mb', 'local_gb', 'vcpus_used',
                     'local_gb_used', 'hypervisor_hostname',
                     'disk_available_least', 'running_vms',
                     'current_workload'):
            after = _ROW | {name: None}
            self.assertEqual(('update', after), self._action(_ROW, after),
                             name)

    def test_untracked_field(self):
        """Another field makes none, unless it is asked for."""
        after = _ROW | {'stats': '{"a": 1}'}
        self.assertIsNone(self._action(_ROW, after))
        self.assertEqual(('update', after), self._action(
            _ROW, after, tracked=change.TRACKED | {'stats'}))

    def test_equal(self):
        """Equal rows are nothing."""
        self.assertIsNone(self._action(_ROW, dict(_ROW)))

    def test_event_type(self):
        """An event is named after its object and action."""
        self.assertEqual(
            ['compute_node.create', 'compute_node.update',
             'compute_node.delete'],
            [change.Change(action, _ROW).event_type
             for action in change.Action])
