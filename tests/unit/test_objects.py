# SPDX-License-Identifier: Apache-2.0
"""The objects as RPC sees them: versions, registry, serializer."""

from oslo_versionedobjects import base as ovo_base
from oslo_versionedobjects import exception as ovo_exception
from oslo_versionedobjects import fixture as ovo_fixture
import testtools

from compute_notify import context
from compute_notify import objects
from compute_notify.objects import base
from tests import base as tests_base

_FINGERPRINTS = {
    'ComputeNode': '1.0-f4b6b4609376e239e27d0a006e5b0889',
    'ComputeNodeList': '1.0-c7f71e7cc8d2588c762ba0ac44519aa4',
}


class TestVersions(testtools.TestCase):

    def test_fingerprints(self):
        """A field or a remotable method changed without a new VERSION.

        If this fails, bump VERSION, tell its story above it, and teach
        obj_make_compatible about the older one.
        """
        checker = ovo_fixture.ObjectVersionChecker(
            base.VersionedObjectRegistry.obj_classes())
        self.assertEqual(_FINGERPRINTS, checker.get_hashes())

    def test_hooked_methods_are_remotable(self):
        """The hook is inside remotable, to run where the body does."""
        for name in ('create', 'save', 'destroy'):
            method = getattr(objects.ComputeNode, name)
            self.assertTrue(method.remotable)
            self.assertTrue(hasattr(method.original_fn, '__wrapped__'))


class TestRegistry(testtools.TestCase):

    def test_apart_from_the_global_one(self):
        """Nova's names stay free in the registry of the process."""
        self.assertNotIn('ComputeNode',
                         ovo_base.VersionedObjectRegistry.obj_classes())

    def test_unknown_class(self):
        """A name that is not ours is an error that names it."""
        error = self.assertRaises(
            ovo_exception.UnsupportedObjectError,
            base.Object.obj_class_from_name, 'Instance', '1.0')
        self.assertIn('Instance', str(error))

    def test_unknown_version(self):
        """Another major version is an error that names both."""
        error = self.assertRaises(
            ovo_exception.IncompatibleObjectVersion,
            base.Object.obj_class_from_name, 'ComputeNode', '2.0')
        self.assertIn('2.0', str(error))


class TestSerializer(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.serializer = base.Serializer()
        self.context = context.get_admin_context(read_deleted='yes')

    def _over_the_wire(self, thing):
        return self.serializer.deserialize_entity(
            self.context,
            self.serializer.serialize_entity(self.context, thing))

    def test_node(self):
        """A node arrives as it was sent, changes included."""
        node = objects.ComputeNode(self.context, id=7, **tests_base.FULL)
        node.obj_reset_changes(['id'])
        there = self._over_the_wire(node)
        self.assertEqual(node.obj_what_changed(), there.obj_what_changed())
        for each in (node, there):
            each.obj_reset_changes()
        self.assertEqual(node.obj_to_primitive(), there.obj_to_primitive())

    def test_list(self):
        """A list arrives with its nodes, in order."""
        nodes = objects.ComputeNodeList(self.context, objects=[
            objects.ComputeNode(self.context, id=number)
            for number in (3, 1, 2)])
        self.assertEqual([3, 1, 2],
                         [node.id for node in self._over_the_wire(nodes)])

    def test_context(self):
        """The context keeps who asks, and whether deleted nodes are seen."""
        there = self.serializer.deserialize_context(
            self.serializer.serialize_context(self.context))
        self.assertEqual(('yes', True, self.context.request_id),
                         (there.read_deleted, there.is_admin,
                          there.request_id))


class TestContext(testtools.TestCase):

    def test_unknown_read_deleted(self):
        """A typo in read_deleted is told, with the valid values."""
        error = self.assertRaises(ValueError, context.get_admin_context,
                                  read_deleted='maybe')
        self.assertIn("('no', 'yes', 'only')", str(error))
