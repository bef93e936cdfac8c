# SPDX-License-Identifier: Apache-2.0
"""A compute host's life on Nova's own functional base, from first to last."""

import os
import sys

from nova import context
from nova import objects
from nova.tests.functional import integrated_helpers

from compute_notify.nova import fixture
from compute_notify import payload

_PASTE = os.path.join(sys.prefix, 'etc', 'nova', 'api-paste.ini')


class TestHostLife(integrated_helpers.ProviderUsageBaseTestCase):

    compute_driver = 'fake.SmallFakeDriver'

    def setUp(self):
        self.flags(api_paste_config=_PASTE, group='wsgi')
        super().setUp()
        self.useFixture(fixture.NovaPatchFixture())
        self.events = []

    def _new_events(self):
        """Return what nodes have sent since the last call."""
        sent = [event for event in self.notifier.versioned_notifications
                if event['event_type'].startswith('compute_node.')]
        new = sent[len(self.events):]
        self.events = sent
        return new

    def _assert_events(self, *expected):
        """Check actions and usage, and the last payload against the row."""
        new = self._new_events()
        data = [event['payload']['nova_object.data'] for event in new]
        self.assertEqual(list(expected), [
            (event['event_type'].removeprefix('compute_node.'),
             *(values.get(name) for name in ('vcpus_used', 'running_vms')))
            for event, values in zip(new, data)])
        if new and not new[-1]['event_type'].endswith('delete'):
            node = objects.ComputeNode.get_by_uuid(
                context.get_admin_context(), data[-1]['uuid'])
            self.assertEqual(
                payload.ComputeNodePayload(node).obj_to_primitive(),
                new[-1]['payload'])
        self.assertLessEqual({event['publisher_id'] for event in new},
                             {'nova-compute:host1'})

    def _service_id(self):
        service, = self.admin_api.get_services(host='host1')  # one binary
        return service['id']

    def test_life(self):
        """Start, boot, delete, remove the service, come back."""
        compute = self.start_service('compute', host='host1')
        self._assert_events(('create', 0, None), ('update', 0, 0))
        self._run_periodics()
        self._assert_events()

        server = self._create_server(networks='none')
        self._assert_events(('update', 1, 1))
        self._run_periodics()
        self._assert_events()

        self._delete_server(server)
        self._run_periodics()
        self._assert_events(('update', 0, 0))

        compute.stop()
        self.admin_api.api_delete(f'/os-services/{self._service_id()}')
        self._assert_events(('delete', None, None))

        self.restart_compute_service(compute)
        self._assert_events(('create', 0, 0))
        self._run_periodics()
        self._assert_events()
