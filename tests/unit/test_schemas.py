# SPDX-License-Identifier: Apache-2.0
"""Tests of the JSON Schemas: that they are current, and that they refuse."""

import contextlib
import copy
import io
import json
import pathlib
import tempfile

import jsonschema
from oslo_messaging.notify import _impl_test
from oslo_versionedobjects import fields
import testscenarios

from compute_notify.cmd import main
from compute_notify import emitter
from compute_notify import schemas
from compute_notify.schemas import generate
from tests import base
from tests import service
from tests import validation

load_tests = testscenarios.load_tests_apply_scenarios

_ENVELOPE = {'message_id': '9c3c1f0a-0d0e-4a55-8a5c-1f5a0e8b7c11',
             'timestamp': '2026-11-30 12:00:00.123456'}


class TestShipped(base.TestCase):

    def test_current(self):
        """What is shipped is what the payload classes say.

        ``compute-notify schema --write compute_notify/schemas`` makes it so.
        """
        self.assertEqual(sorted(generate.all_schemas()), schemas.names())
        folder = pathlib.Path(schemas.__file__).parent
        for name, schema in generate.all_schemas().items():
            self.assertEqual(generate.text(schema),
                             (folder / f'{name}.json').read_text())

    def test_valid(self):
        """Each is a schema of the dialect that it names."""
        for name in schemas.names():
            schema = schemas.load(name)
            self.assertEqual(
                'https://json-schema.org/draft/2020-12/schema',
                schema['$schema'])
            jsonschema.Draft202012Validator.check_schema(schema)

    def test_unknown_field(self):
        """A field of a kind that has no schema is an error that names it."""
        exc = self.assertRaises(AssertionError, generate._field,
                                fields.FloatField())
        self.assertIn('Float', str(exc))


class TestValidation(base.TestCase):

    scenarios = [(action, {'action': action})
                 for action in ('create', 'update', 'delete')]

    def notification(self):
        return copy.deepcopy(base.sample(self.action)) | _ENVELOPE

    def test_sample(self):
        """The shipped samples are right."""
        self.assertEqual([], validation.problems(self.notification()))

    def test_newer(self):
        """So is one of a newer minor version, with fields of its own."""
        newer = self.notification()
        newer['payload']['nova_object.version'] = '1.7'
        newer['payload']['nova_object.data']['numa'] = {'cells': 2}
        newer['_unique_id'] = 'x'
        self.assertEqual([], validation.problems(newer))

    def test_refused(self):
        """Whatever the contract forbids is refused, where it stands."""
        for path, value in {
                'publisher_id': 'nova-conductor:cmp1',
                'priority': 'WARN',
                'event_type': 'compute_node.updated',
                'message_id': 17,
                'timestamp': 1764460800,
                'payload.nova_object@name': 'ComputeNode',
                'payload.nova_object@namespace': 'compute_notify',
                'payload.nova_object@version': '2.0',
                'payload.nova_object@changes': ['id'],
                'payload.nova_object@data.id': '1',
                'payload.nova_object@data.uuid': None}.items():
            wrong = self.notification()
            *parents, last = path.split('.')
            there = wrong
            for parent in parents:
                there = there[parent.replace('@', '.')]
            there[last.replace('@', '.')] = value
            self.assertNotEqual([], validation.problems(wrong), path)

    def test_missing(self):
        """No key may be missing, in the envelope, the payload or its data."""
        for *parents, last in (
                [(key,) for key in self.notification()]
                + [('payload', key) for key in self.notification()['payload']]
                + [('payload', 'nova_object.data', key) for key in
                   self.notification()['payload']['nova_object.data']]):
            wrong = self.notification()
            there = wrong
            for parent in parents:
                there = there[parent]
            del there[last]
            self.assertNotEqual([], validation.problems(wrong),
                                (parents, last))


class TestNullable(base.TestCase):

    def test_null(self):
        """Just those fields may be null that the contract says."""
        allowed = set()
        for name in base.sample('update')['payload']['nova_object.data']:
            notification = base.sample('update') | _ENVELOPE
            notification['payload']['nova_object.data'][name] = None
            if not validation.problems(notification):
                allowed.add(name)
        self.assertEqual(
            {'host', 'hypervisor_hostname', 'free_ram_mb', 'free_disk_gb',
             'current_workload', 'running_vms', 'disk_available_least',
             'host_ip'}, allowed)

    def test_host_ip(self):
        """Addresses of both families are right, and nothing else."""
        for value, right in (('192.0.2.7', True), ('2001:db8::1', True),
                             ('cmp1', False), ('192.0.2.777', False)):
            notification = base.sample('update') | _ENVELOPE
            notification['payload']['nova_object.data']['host_ip'] = value
            self.assertEqual(right, not validation.problems(notification))


class TestWire(service.TestCase):

    def test_really_sent(self):
        """What a driver is given, envelope included, is right as it is."""
        self.set_up(oslo_messaging_notifications='driver = test')
        self.live_once()
        self.assertEqual(3, len(_impl_test.NOTIFICATIONS))
        for _, message, _, _ in _impl_test.NOTIFICATIONS:
            self.assertEqual([], validation.problems(message))


class TestWatch(base.NodeTestCase):

    def test_every_test_validates(self):
        """A notification that is wrong fails the test that sent it."""
        watch = validation.Validation()
        watch.setUp()
        emitter.IN_FORCE.current().notifier.info(
            {}, 'compute_node.update', {'a': 1})
        self.assertRaises(AssertionError, watch.cleanUp)
        # This test's own watch has seen it too.
        self.assertRaises(AssertionError, self.validation._judge)
        self.validation.found.clear()


class TestCommand(base.TestCase):

    def run_command(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main.main(['schema', *args])
        return code, out.getvalue(), err.getvalue()

    def test_names(self):
        """Without a name it prints the names, one a line."""
        self.assertEqual(
            (0, 'ComputeNodeDeletePayload-1.0\nComputeNodePayload-1.0\n'
                'notification\n', ''), self.run_command())

    def test_one(self):
        """With a name it prints that schema."""
        code, out, _ = self.run_command('ComputeNodePayload-1.0')
        self.assertEqual(0, code)
        self.assertEqual(schemas.load('ComputeNodePayload-1.0'),
                         json.loads(out))

    def test_write(self):
        """It writes all, and says where."""
        folder = tempfile.mkdtemp()
        code, out, _ = self.run_command('--write', folder)
        self.assertEqual(0, code)
        self.assertEqual({f'{folder}/{name}.json' for name in schemas.names()},
                         set(out.split()))

    def test_cannot_write(self):
        """A folder that is none is an error that names it."""
        code, _, err = self.run_command('--write', '/no/such/folder')
        self.assertEqual(1, code)
        self.assertIn('Cannot write into /no/such/folder: ', err)
