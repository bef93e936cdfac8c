# SPDX-License-Identifier: Apache-2.0
"""What every test stands on."""

from importlib import resources
import json
import os
import typing
import unittest
import warnings

import fixtures
from sqlalchemy import exc as sa_exc
import testtools

from compute_notify import context
from compute_notify import fixture
from compute_notify import objects
from tests import validation

#: A node with every mandatory field and no other.
MANDATORY = {
    'host': 'cmp1',
    'hypervisor_hostname': 'node1',
    'vcpus': 8,
    'memory_mb': 16384,
    'local_gb': 100,
    'vcpus_used': 2,
    'memory_mb_used': 4096,
    'local_gb_used': 10,
    'hypervisor_type': 'QEMU',
    'hypervisor_version': 8002002,
}

#: A node with every field of the payload but id and uuid.
FULL = MANDATORY | {
    'free_ram_mb': 12288,
    'free_disk_gb': 90,
    'current_workload': 0,
    'running_vms': 2,
    'disk_available_least': 85,
    'host_ip': '192.0.2.7',
}


def sample(action: str) -> dict[str, typing.Any]:
    """Return the shipped sample of an action."""
    folder = resources.files('compute_notify') / 'samples'
    text = (folder / f'compute_node-{action}.json').read_text()
    return typing.cast(dict[str, typing.Any], json.loads(text))


def missing(server: str, why: object) -> typing.NoReturn:
    """Skip a test whose server is missing, or fail it under CI."""
    if os.environ.get('CI') == 'true':
        raise AssertionError(f'{server} is missing: {why}')
    raise unittest.SkipTest(f'{server} is missing: {why}')


class TestCase(testtools.TestCase):
    """A test case whose logs are kept, formatted, and shown on failure."""

    def setUp(self) -> None:
        super().setUp()
        self.logs = self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.NestedTempfile())
        self.validation = self.useFixture(validation.Validation())
        warnings_caught = warnings.catch_warnings()
        warnings_caught.__enter__()
        self.addCleanup(warnings_caught.__exit__)
        warnings.simplefilter('error', sa_exc.SAWarning)


class NodeTestCase(TestCase):
    """A test case with a table of its own and a notifier that records."""

    #: The URL of a database on a server; None is an SQLite file.
    connection: str | None = None
    extra_update_fields: tuple[str, ...] = ()

    def setUp(self) -> None:
        super().setUp()
        self.database = self.useFixture(
            fixture.DatabaseFixture(self.connection)).database
        self.notifier = self.useFixture(fixture.NotificationFixture(
            extra_update_fields=self.extra_update_fields))
        self.context = context.get_admin_context()

    def node(self, **values: typing.Any) -> objects.ComputeNode:
        """Return a node that is not stored yet."""
        return objects.ComputeNode(self.context, **(MANDATORY | values))

    def created(self, **values: typing.Any) -> objects.ComputeNode:
        """Return a stored node and forget what its creation sent."""
        node = self.node(**values)
        node.create()
        self.notifier.reset()
        return node

    def copy_of(self, node: objects.ComputeNode) -> objects.ComputeNode:
        """Return another copy of a stored node."""
        return objects.ComputeNode.get_by_id(self.context, node.id)

    def sent(self) -> list[tuple[str, dict[str, typing.Any]]]:
        """Return action and data of what was sent, and forget it."""
        sent = [(notification['event_type'].removeprefix('compute_node.'),
                 notification['payload']['nova_object.data'])
                for notification in self.notifier.versioned_notifications]
        self.notifier.reset()
        return sent

    def actions(self) -> list[str]:
        """Return the actions of what was sent, and forget it."""
        return [action for action, _ in self.sent()]
