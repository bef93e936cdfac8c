# SPDX-License-Identifier: Apache-2.0
"""Install and uninstall in every order, each in a process of its own."""

import contextlib
import copy
import functools
import pickle
import sys
from unittest import mock

import testtools

from tests.nova import facts
from tests.nova import process


class PatchTestCase(testtools.TestCase):
    """A test case that looks at what the classes hold."""

    def assert_ours(self, theirs):
        """Each method is wrapped, once, around what was there before."""
        for key, entry in facts.entries().items():
            self.assertIsNot(theirs[key], entry)
            self.assertIs(theirs[key].original_fn,
                          entry.original_fn.__wrapped__)
        self.assertEqual(process.ALL, process.announced())

    def assert_theirs(self, theirs):
        """Each method is the very same as before."""
        for key, entry in facts.entries().items():
            self.assertIs(theirs[key], entry)
        self.assertEqual(process.NONE, process.announced())


class TestOrder(PatchTestCase):

    @process.alone
    def test_import_alone(self):
        """Importing the room changes nothing."""
        self.useFixture(process.Nova())
        theirs = facts.entries()
        from compute_notify import nova
        self.assertFalse(nova.is_installed())
        self.assert_theirs(theirs)

    @process.alone
    def test_before_nova_objects(self):
        """Install is what imports Nova's objects; then Nova starts."""
        process.choose_concurrency()
        self.assertNotIn('nova.objects', sys.modules)
        from compute_notify import nova
        nova.install()
        from nova import objects
        first = vars(objects.ComputeNode)['save']
        self.useFixture(process.Nova())
        self.assertIs(first, facts.entries()['ComputeNode', 'save'])
        self.assertEqual(process.ALL, process.announced())
        nova.uninstall()
        for entry in facts.entries().values():
            self.assertFalse(hasattr(entry.original_fn, '__wrapped__'))
        self.assertEqual(process.NONE, process.announced())

    @process.alone
    def test_after_nova_objects(self):
        """Nova has started, and has a node, when the hook is installed."""
        self.useFixture(process.Nova())
        older = process.node(host='cmp0')
        older.create()
        theirs = facts.entries()
        from compute_notify import nova
        nova.install()
        self.assertTrue(nova.is_installed())
        self.assert_ours(theirs)
        older.vcpus += 1
        older.save()
        self.assertEqual(['compute_node.update'], process.sent())

    @process.alone
    def test_install_twice(self):
        """The second install changes nothing, and one uninstall undoes it."""
        self.useFixture(process.Nova())
        theirs = facts.entries()
        from compute_notify import nova
        nova.install()
        ours = facts.entries()
        nova.install()
        for key, entry in facts.entries().items():
            self.assertIs(ours[key], entry)
        self.assert_ours(theirs)
        nova.uninstall()
        self.assertFalse(nova.is_installed())
        self.assert_theirs(theirs)

    @process.alone
    def test_uninstall_first(self):
        """Uninstall before any install does nothing, and once too often."""
        self.useFixture(process.Nova())
        theirs = facts.entries()
        from compute_notify import nova
        nova.uninstall()
        self.assertFalse(nova.is_installed())
        self.assert_theirs(theirs)
        nova.install()
        self.assert_ours(theirs)
        nova.uninstall()
        nova.uninstall()
        self.assert_theirs(theirs)

    @process.alone
    def test_again_and_again(self):
        """Install, uninstall, install: on, off, on; nothing is left over."""
        self.useFixture(process.Nova())
        theirs = facts.entries()
        from compute_notify import nova
        from compute_notify.nova import patch
        for _ in range(3):
            nova.install()
            self.assertTrue(nova.is_installed())
            self.assert_ours(theirs)
            nova.uninstall()
            self.assertFalse(nova.is_installed())
            self.assert_theirs(theirs)
        self.assertEqual([], patch._state['patch']._entries)

    @process.alone
    def test_fixture(self):
        """The fixture undoes what it did, and only that."""
        self.useFixture(process.Nova())
        theirs = facts.entries()
        from compute_notify import nova
        from compute_notify.nova import fixture
        with fixture.NovaPatchFixture():
            self.assert_ours(theirs)
        self.assert_theirs(theirs)
        nova.install()
        with fixture.NovaPatchFixture():
            self.assert_ours(theirs)
        self.assert_ours(theirs)


class TestFailure(PatchTestCase):

    @contextlib.contextmanager
    def failing(self, number, error):
        """Let the n-th attempt to put something in a class fail."""
        from compute_notify.nova import patch
        attempts = []

        def put(owner, name, value):
            attempts.append(name)
            if len(attempts) == number:
                raise error
            setattr(owner, name, value)

        with mock.patch.object(patch, 'setattr', put, create=True):
            yield

    @process.alone
    def test_half_way(self):
        """Whichever method cannot be wrapped, none is left wrapped."""
        self.useFixture(process.Nova())
        theirs = facts.entries()
        from compute_notify import nova
        for number in range(1, len(theirs) + 1):
            for error in (TypeError('immutable'), KeyboardInterrupt()):
                with self.failing(number, error):
                    raised = self.assertRaises(type(error), nova.install)
                self.assertIs(error, raised)
                self.assertFalse(nova.is_installed())
                self.assert_theirs(theirs)
        nova.install()
        self.assert_ours(theirs)
        nova.uninstall()
        self.assert_theirs(theirs)


def _wrapped(owner, name):
    """Wrap a method as a tracer would; return the wrapper and its calls."""
    inner = vars(owner)[name]
    calls = []

    @functools.wraps(inner)
    def wrapper(*args, **kwargs):
        calls.append(name)
        return inner(*args, **kwargs)

    setattr(owner, name, wrapper)
    return wrapper, calls


class TestOtherWrapper(PatchTestCase):

    def _installed_below(self):
        """Install, and let something else wrap save() on top."""
        self.useFixture(process.Nova())
        self.before = facts.entries()
        from compute_notify import nova
        from nova import objects
        nova.install()
        self.ours = facts.entries()
        self.wrapper, self.calls = _wrapped(objects.ComputeNode, 'save')
        self.assertEqual(process.ALL, process.announced())
        self.assertEqual(['save'], self.calls)
        return nova

    def _assert_save_is_wrapped(self, others):
        for key, entry in facts.entries().items():
            self.assertIs(
                self.wrapper if key[1] == 'save' else others[key], entry)

    @process.alone
    def test_on_top_stays(self):
        """Uninstall leaves a wrapper on top, and ours below it is inert."""
        nova = self._installed_below()
        nova.uninstall()
        self.assertFalse(nova.is_installed())
        self._assert_save_is_wrapped(self.before)
        self.assertEqual(process.NONE, process.announced())
        self.assertEqual(['save', 'save'], self.calls)

    @process.alone
    def test_on_top_and_again(self):
        """Installed again, ours below the wrapper is active, once."""
        nova = self._installed_below()
        for _ in range(2):
            nova.uninstall()
            nova.install()
        self.assertTrue(nova.is_installed())
        self.assertIs(self.wrapper, facts.entries()['ComputeNode', 'save'])
        self.assertIsNot(self.before['ComputeNode', 'create'],
                         facts.entries()['ComputeNode', 'create'])
        self.assertEqual(process.ALL, process.announced())
        self.assertEqual(['save', 'save'], self.calls)
        nova.uninstall()
        self._assert_save_is_wrapped(self.before)

    @process.alone
    def test_on_top_comes_off(self):
        """A wrapper comes off when ours is off: inert, then undone."""
        nova = self._installed_below()
        nova.uninstall()
        from nova import objects
        objects.ComputeNode.save = self.ours['ComputeNode', 'save']
        self.assertEqual(process.NONE, process.announced())
        nova.install()
        self.assertEqual(process.ALL, process.announced())
        nova.uninstall()
        self.assert_theirs(self.before)

    @process.alone
    def test_below(self):
        """A method that something else wrapped before is not bypassed."""
        self.useFixture(process.Nova())
        from compute_notify import exception
        from compute_notify import nova
        from nova import objects
        _, calls = _wrapped(objects.ComputeNode, 'save')
        theirs = facts.entries()
        error = self.assertRaises(exception.UnsupportedNova, nova.install)
        self.assertIn('ComputeNode.save', str(error))
        self.assertFalse(nova.is_installed())
        self.assert_theirs(theirs)
        self.assertEqual(['save'], calls)


class TestGuest(PatchTestCase):

    @process.alone
    def test_looks(self):
        """Registry, fingerprints, signatures and names stay as they were."""
        self.useFixture(process.Nova())
        before = facts.facts()
        from compute_notify import nova
        nova.install()
        self.assertEqual(before, facts.facts())
        from compute_notify import objects
        self.assertIsNot(before['registry']['ComputeNode'][0],
                         objects.ComputeNode)
        self.assertEqual(before, facts.facts())
        nova.uninstall()
        self.assertEqual(before, facts.facts())

    @process.alone
    def test_copies(self):
        """Methods are pickled by name and nodes are copied, as before."""
        self.useFixture(process.Nova())
        from compute_notify import nova
        nova.install()
        for entry in facts.entries().values():
            self.assertIs(entry, pickle.loads(pickle.dumps(entry)))
        node = process.node()
        node.create()
        twin = copy.deepcopy(node)
        twin.vcpus += 1
        twin.save()
        self.assertEqual(['compute_node.create', 'compute_node.update'],
                         process.sent())
