# SPDX-License-Identifier: Apache-2.0
"""What a test on Nova's own objects stands on."""

from nova import context
from nova import objects
from nova import test
from nova.tests import fixtures as nova_fixtures
import sqlalchemy as sa

from compute_notify.nova import fixture
from tests import base

#: What Nova's table wants besides the fields of the payload.
EXTRA = {'cpu_info': '{}', 'cpu_allocation_ratio': 16.0,
         'ram_allocation_ratio': 1.5, 'disk_allocation_ratio': 1.0}


class NovaTestCase(test.TestCase):
    """Nova's test case, its notification fixture, and the hook."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.notifier = self.useFixture(
            nova_fixtures.NotificationFixture(self))
        self.useFixture(fixture.NovaPatchFixture())
        self.context = context.get_admin_context()

    def node(self, **values):
        """Return a node that is not stored yet."""
        return objects.ComputeNode(
            self.context, **(base.MANDATORY | EXTRA | values))

    def created(self, **values):
        """Return a stored node and forget what its creation sent."""
        node = self.node(**values)
        node.create()
        self.notifier.reset()
        return node

    def copy_of(self, node):
        """Return another copy of a stored node."""
        return objects.ComputeNode.get_by_id(self.context, node.id)

    def service(self, host='cmp1', binary='nova-compute'):
        """Return a stored service and forget what its creation sent."""
        service = objects.Service(self.context, host=host, binary=binary,
                                  topic=binary, report_count=0)
        service.create()
        self.notifier.reset()
        return service

    def events(self):
        """Return what was sent so far, of every kind, and forget it."""
        sent = list(self.notifier.versioned_notifications)
        self.notifier.reset()
        return sent

    def sent(self):
        """Return action and data of what nodes sent, and forget it."""
        return [(event['event_type'].removeprefix('compute_node.'),
                 event['payload']['nova_object.data'])
                for event in self.events()
                if event['event_type'].startswith('compute_node.')]

    def actions(self):
        """Return the actions of what nodes sent, and forget it."""
        return [action for action, _ in self.sent()]

    def statements(self, call):
        """Return the SQL that a call issues."""
        issued = []

        def note(connection, cursor, statement, *args):
            issued.append(statement)

        sa.event.listen(sa.Engine, 'before_cursor_execute', note)
        try:
            call()
        finally:
            sa.event.remove(sa.Engine, 'before_cursor_execute', note)
        return issued
