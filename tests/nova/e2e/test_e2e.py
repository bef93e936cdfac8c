# SPDX-License-Identifier: Apache-2.0
"""The life of a compute node, as Nova's own daemons announce it."""

import json

import testscenarios

from compute_notify import payload
from tests import base
from tests.nova.e2e import cloud
from tests import outbox

#: In the state_path.
_OUTBOX = 'compute-notify-outbox.sqlite'

_SENT = "NOTIFY exchange 'nova' topic 'versioned_notifications.info'"


def _stored(row):
    """Return what a payload says of a row."""
    return {name: row[name] for name in payload.PAYLOAD_FIELDS}


def _identity(row):
    """Return what the payload of a delete says of a row."""
    return {'id': row['id'], 'uuid': row['uuid']}


class TestDaemons(testscenarios.WithScenarios, base.TestCase):

    scenarios = testscenarios.multiply_scenarios(
        [('threading', {'eventlet': False}), ('eventlet', {'eventlet': True})],
        [('messagingv2', {'driver': 'messagingv2'}),
         ('outbox', {'driver': 'outbox'})])

    def setUp(self):
        super().setUp()
        cloud.require()
        self.cloud = self.useFixture(cloud.Cloud(
            eventlet=self.eventlet, driver=self.driver))
        self._reported = 0
        self.conductor = self.cloud.conductor()
        self.cloud.listener.wait_for('service.create')
        self.news('service.create', publisher='nova-conductor:controller')

    def test_life_on_mariadb_and_rabbitmq(self):
        first = self.settled(self.cloud.compute())
        _, created, updated = self.news(
            'service.create', 'compute_node.create', 'compute_node.update')
        row = self.cloud.row()
        self.assertEqual(_identity(row), _identity(created.data))
        self.assertEqual(_stored(row), updated.data)

        first.kill()
        self.cloud.remove_service()
        _, deleted = self.news('service.delete', 'compute_node.delete')
        self.assertEqual(_identity(row), deleted.data)
        self.assertEqual(row['id'], self.cloud.row()['deleted'])

        second = self.settled(self.cloud.compute_again())
        _, revived = self.news('service.create', 'compute_node.create')
        self.assertEqual(0, self.cloud.row()['deleted'])
        self.assertEqual(_stored(row), revived.data)

        self.assertNothingTwice()
        self.assertSentByConductor(first, second)

    def settled(self, compute):
        """Wait until a nova-compute has audited its resources thrice."""
        compute.wait_for('Compute_service record updated', 3)
        return compute

    def news(self, *event_types, publisher='nova-compute:cmp1'):
        """Return what was sent since the last call: exactly these events."""
        news = self.cloud.listener.received()[self._reported:]
        self._reported += len(news)
        self.assertEqual(
            [(publisher, each) for each in event_types],
            [(each.publisher_id, each.event_type) for each in news])
        return news

    def assertNothingTwice(self):
        """Check that nothing arrived twice, nor was sent twice."""
        received = self.cloud.listener.received()
        ids = {each.message_id for each in received}
        self.assertEqual(len(received), len(ids))
        contents = {(each.event_type, json.dumps(each.payload))
                    for each in received}
        self.assertEqual(len(received), len(contents))

    def assertSentByConductor(self, *computes):
        """Check who sent all but what the removal of the service sent."""
        self.assertNotIn('ERROR compute_notify', self.conductor.log())
        if self.driver == 'outbox':
            self.assertAllStored(*computes)
            return
        removal = ('service.delete', 'compute_node.delete')
        others = [each for each in self.cloud.listener.received()
                  if each.event_type not in removal]
        self.assertEqual(len(others), self.conductor.log().count(_SENT))
        for compute in computes:
            self.assertNotIn(' NOTIFY ', compute.log())

    def assertAllStored(self, *computes):
        """Check that all went through the file, which is empty now."""
        with outbox.opened(self.cloud.path / _OUTBOX) as opened:
            outbox.wait_until(lambda: not opened.waiting(), opened.status)
            status = opened.status()
            self.assertEqual(
                (len(self.cloud.listener.received()), 0, 0),
                (status.sent, status.dropped, status.failed))
        for process in self.conductor, *computes:
            self.assertNotIn(' NOTIFY ', process.log())
