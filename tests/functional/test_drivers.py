# SPDX-License-Identifier: Apache-2.0
"""Tests of oslo.messaging's own drivers that need no broker."""

import json
import pathlib
import tempfile


from tests import service

ALL = ['compute_node.create', 'compute_node.update', 'compute_node.delete']


class TestDrivers(service.TestCase):

    def logged(self):
        """Return the notifications that the driver ``log`` has logged."""
        return [json.loads(line) for line in self.logs.output.splitlines()
                if line.startswith('{')]

    def test_noop(self):
        """The driver noop loads, and nothing is sent."""
        self.set_up(oslo_messaging_notifications='driver = noop')
        self.live_once()
        self.assertEqual([], service.received())
        self.assertEqual([], self.logged())

    def test_log(self):
        """The driver log writes one line of JSON each."""
        self.set_up(oslo_messaging_notifications='driver = log')
        node = self.live_once()
        messages = self.logged()
        self.assertEqual(ALL, [one['event_type'] for one in messages])
        for message in messages:
            self.assertEqual('INFO', message['priority'])
            self.assertEqual('nova-compute:cmp1', message['publisher_id'])
            self.assertEqual(
                node.uuid, message['payload']['nova_object.data']['uuid'])

    def test_test(self):
        """The driver test keeps the messages as they are."""
        self.set_up(oslo_messaging_notifications='driver = test')
        self.live_once()
        self.assertEqual(ALL, service.event_types())

    def test_several(self):
        """Each driver gets each notification once."""
        self.set_up(oslo_messaging_notifications=(
            'driver = log\ndriver = noop\ndriver = test'))
        self.live_once()
        self.assertEqual(ALL, service.event_types())
        self.assertEqual(ALL, [one['event_type'] for one in self.logged()])

    def test_no_transport_url(self):
        """Stock options make a transport that nothing connects to."""
        self.set_up(DEFAULT='',
                    oslo_messaging_notifications='driver = test')
        self.live_once()
        self.assertEqual(ALL, service.event_types())


class TestRouting(service.TestCase):

    def route(self, rules):
        path = pathlib.Path(tempfile.mkdtemp(), 'routing.yaml')
        path.write_text(json.dumps({'group': rules}))  # JSON is YAML, too
        self.set_up(oslo_messaging_notifications=(
            f'driver = routing\nrouting_config = {path}'))

    def test_events(self):
        """The routing file picks the events that a driver gets."""
        self.route({'test': {'accepted_events': ['compute_node.[cd]*']}})
        self.live_once()
        self.assertEqual(['compute_node.create', 'compute_node.delete'],
                         service.event_types())

    def test_priorities(self):
        """The routing file can pick by the priority, which is info."""
        self.route({'test': {'accepted_priorities': ['info']},
                    'noop': {'accepted_priorities': ['error']}})
        self.live_once()
        self.assertEqual(ALL, service.event_types())

    def test_nothing_accepted(self):
        """What no rule accepts is not sent, and no error either."""
        self.route({'test': {'accepted_priorities': ['error']}})
        self.live_once()
        self.assertEqual([], service.received())
        self.assertNotIn('Problem', self.logs.output)

    def test_read_again(self):
        """A second setup reads the file that its own options name."""
        self.route({'test': {'accepted_events': ['compute_node.create']}})
        self.route({'test': {'accepted_events': ['compute_node.delete']}})
        self.live_once()
        self.assertEqual(['compute_node.delete'], service.event_types())
