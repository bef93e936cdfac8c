# SPDX-License-Identifier: Apache-2.0
"""Activation as operators do it: nova.conf names the driver, Nova loads it."""

import contextlib
import sys
from unittest import mock

import sqlalchemy as sa

from tests.nova import facts
from tests.nova import process
from tests.nova import test_patch

_DRIVERS = ('test', 'compute_notify')


def _about_us(nova_):
    return [line for line in nova_.logged('INFO')
            if 'notifications are' in line]


class TestActivation(test_patch.PatchTestCase):

    @process.alone
    def test_versioned(self):
        """Two lines of nova.conf install the hook, before any object."""
        nova_ = self.useFixture(process.Nova(drivers=_DRIVERS))
        from compute_notify import nova
        self.assertTrue(nova.is_installed())
        self.assertEqual(process.ALL, process.announced())
        self.assertEqual({'Compute node notifications are installed'},
                         set(_about_us(nova_)))

    @process.alone
    def test_both(self):
        """The driver is made twice, the hook installed once."""
        nova_ = self.useFixture(process.Nova(
            drivers=_DRIVERS, notification_format='both', init_rpc=False))
        theirs = facts.entries()
        from compute_notify.nova import activate
        from nova import rpc
        with mock.patch.object(
                activate.ActivationDriver, '__init__', autospec=True,
                side_effect=activate.ActivationDriver.__init__) as made:
            rpc.init(rpc.CONF)
        self.assertEqual(2, made.call_count)
        self.assert_ours(theirs)
        self.assertEqual([], nova_.logged('ERROR'))

    @process.alone
    def test_off(self):
        """Installed, but the format is Nova's default: one line says so."""
        nova_ = self.useFixture(process.Nova(
            drivers=_DRIVERS, notification_format='unversioned'))
        from compute_notify import nova
        self.assertTrue(nova.is_installed())
        self.assertEqual([], [event for event in process.announced()
                              if event.startswith('compute_node.')])
        self.assertEqual(
            1, '\n'.join(_about_us(nova_)).count(
                'off: [notifications] notification_format is unversioned'))

    @process.alone
    def test_not_named(self):
        """Without the driver Nova knows nothing of us."""
        self.useFixture(process.Nova())
        self.assertNotIn('compute_notify', sys.modules)
        self.assertEqual(process.NONE, process.announced())

    @process.alone
    def test_before_and_after(self):
        """Without a notifier, before and after, nodes are saved as ever."""
        nova_ = self.useFixture(process.Nova(
            drivers=_DRIVERS, init_rpc=False))
        from compute_notify import nova
        from nova import rpc
        nova.install()
        process.node(host='cmp0').create()
        rpc.init(rpc.CONF)
        self.assertEqual(process.ALL, process.announced())
        rpc.cleanup()
        process.node().create()
        self.assertEqual([], process.sent())
        self.assertEqual(['Compute node notifications are installed'],
                         _about_us(nova_))
        rpc.init(rpc.CONF)
        process.node().create()
        self.assertEqual(['compute_node.create'], process.sent())
        self.assertEqual([], nova_.logged('ERROR'))


@contextlib.contextmanager
def _without(owner, name):
    """Take an attribute away for a while."""
    value = vars(owner)[name]
    delattr(owner, name)
    try:
        yield
    finally:
        setattr(owner, name, value)


def _version(number):
    return mock.patch('importlib.metadata.version', autospec=True,
                      return_value=number)


def _without_column(name):
    from nova.db.main import models
    table = sa.Table('compute_nodes', sa.MetaData(), *(
        sa.Column(column.name, column.type)
        for column in models.ComputeNode.__table__.columns
        if column.name != name))
    return mock.patch.object(models.ComputeNode, '__table__', table)


def _instead(name, method):
    from nova import objects
    return mock.patch.object(objects.ComputeNode, name, method)


def _unknown():
    """Return Novas that the hook does not know, and what the error names."""
    from nova.db.main import models
    from nova import objects
    from nova.objects import base
    from nova import rpc
    yield _version('30.2.1'), 'Nova 30.2.1'
    yield _version('35.0.0'), 'Nova 35.0.0'
    yield _version('2026.2'), 'Nova 2026.2'
    yield _version('unknown'), 'Nova unknown'
    yield _instead('destroy', lambda self: None), 'ComputeNode.destroy'
    yield _instead('save', base.remotable(lambda node: None)), (
        'ComputeNode.save')
    yield _without(objects.ComputeNode, 'create'), 'ComputeNode.create'
    yield _without(objects.Service, 'destroy'), 'Service.destroy'
    yield _without_column('vcpus_used'), 'vcpus_used'
    yield _without_column('deleted'), 'deleted'
    yield _without(models, 'ComputeNode'), 'nova.db.main.models'
    yield mock.patch.object(objects, 'ComputeNode', object), (
        'nova.objects.ComputeNode')
    yield _without(rpc, 'NOTIFIER'), 'nova.rpc'


class TestRefused(test_patch.PatchTestCase):

    def _assert_refused(self, nova_, unknown, named):
        """One error, no class is touched, and Nova goes on."""
        from nova import rpc
        with unknown:
            before = facts.entries()
            rpc.init(rpc.CONF)
            for key, entry in facts.entries().items():
                self.assertIs(before[key], entry)
        from compute_notify import nova
        self.assertFalse(nova.is_installed())
        error, = nova_.logged('ERROR')
        self.assertIn('Compute node notifications are not installed', error)
        self.assertIn(named, error)
        self.assertEqual(process.NONE, process.announced())

    @process.alone
    def test_unknown_nova(self):
        """A Nova of another version or shape is refused as a whole."""
        nova_ = self.useFixture(process.Nova(
            drivers=_DRIVERS, init_rpc=False))
        theirs = facts.entries()
        for unknown, named in _unknown():
            self._assert_refused(nova_, unknown, named)
        from nova import rpc
        rpc.init(rpc.CONF)
        self.assert_ours(theirs)

    @process.alone
    def test_all_that_differs(self):
        """The one error names everything that is not as it should be."""
        nova_ = self.useFixture(process.Nova(
            drivers=_DRIVERS, init_rpc=False))
        unknown = contextlib.ExitStack()
        for each in (_version('35.0.0'), _without_column('vcpus'),
                     _instead('save', len)):
            unknown.enter_context(each)
        self._assert_refused(
            nova_, unknown,
            'Nova 35.0.0 is installed, supported are 31 and newer, below 35; '
            'the table of compute nodes has no vcpus; '
            'ComputeNode.save is not a remotable method')

    @process.alone
    def test_both(self):
        """A driver that is made twice says once what is wrong."""
        nova_ = self.useFixture(process.Nova(
            drivers=_DRIVERS, notification_format='both', init_rpc=False))
        self._assert_refused(nova_, _version('35.0.0'), 'Nova 35.0.0')

    @process.alone
    def test_option(self):
        """An option that cannot work is refused in the same way."""
        nova_ = self.useFixture(process.Nova(
            drivers=_DRIVERS, init_rpc=False,
            more='[compute_notify]\nextra_update_fields = memory'))
        self._assert_refused(
            nova_, contextlib.nullcontext(),
            'Option [compute_notify] extra_update_fields: no such payload '
            'field: memory.')

    @process.alone
    def test_module_gone(self):
        """A module of Nova's that is not there is one clear error too."""
        nova_ = self.useFixture(process.Nova(
            drivers=_DRIVERS, init_rpc=False))
        from nova import objects
        unknown = contextlib.ExitStack()
        unknown.enter_context(_without(objects, 'service'))
        unknown.enter_context(mock.patch.dict(
            sys.modules, {'nova.objects.service': None}))
        self._assert_refused(nova_, unknown, 'nova.objects.service')
