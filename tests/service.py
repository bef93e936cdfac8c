# SPDX-License-Identifier: Apache-2.0
"""What the tests of a service stand on that is set up from its own file."""

import pathlib
import tempfile
import typing

from oslo_config import cfg
from oslo_messaging.notify import _impl_test

import compute_notify
from compute_notify import context
from compute_notify import objects
from tests import base


def configuration(**groups: str) -> cfg.ConfigOpts:
    """Return a configuration read from a file.

    :param groups: the lines of each group.
    """
    path = pathlib.Path(tempfile.mkdtemp(), 'service.conf')
    path.write_text('\n'.join(f'[{group}]\n{lines}'
                              for group, lines in groups.items()))
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(path)], default_config_dirs=[])
    return conf


class TestCase(base.TestCase):
    """A test case of a service with a configuration file and a database."""

    def setUp(self) -> None:
        super().setUp()
        self.context = context.get_admin_context()
        self.addCleanup(compute_notify.teardown)
        self.addCleanup(forget)
        forget()

    def configuration(self, **groups: str) -> cfg.ConfigOpts:
        """Return a configuration with an SQLite file of its own.

        :param groups: the lines of each group. Left out, the transport is
            oslo.messaging's in-process one.
        """
        defaults = {
            'DEFAULT': 'transport_url = fake://',
            'database': f'connection = sqlite:///{tempfile.mkdtemp()}/db',
        }
        return configuration(**(defaults | groups))

    def set_up(self, **groups: str) -> cfg.ConfigOpts:
        """Set the library up from a configuration and return that."""
        conf = self.configuration(**groups)
        compute_notify.setup(conf)
        return conf

    def node(self, **values: typing.Any) -> objects.ComputeNode:
        """Return a node that is not stored yet."""
        return objects.ComputeNode(self.context, **(base.MANDATORY | values))

    def live_once(self, **values: typing.Any) -> objects.ComputeNode:
        """Create, change and destroy a node; return it as it was before."""
        node = self.node(**values)
        node.create()
        node.vcpus += 1
        node.save()
        node.destroy()
        return node


def received() -> list[dict[str, typing.Any]]:
    """Return what the driver ``test`` was given, as on the wire."""
    return [message for _, message, _, _ in _impl_test.NOTIFICATIONS]


def forget() -> None:
    """Forget what the driver ``test`` was given."""
    _impl_test.reset()


def event_types() -> list[str]:
    """Return the event types of what the driver ``test`` was given."""
    return [message['event_type'] for message in received()]


def contexts() -> list[dict[str, typing.Any]]:
    """Return the request contexts that the driver ``test`` was given."""
    return [ctxt for ctxt, _, _, _ in _impl_test.NOTIFICATIONS]
