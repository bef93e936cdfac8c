# SPDX-License-Identifier: Apache-2.0
"""The README's Python runs as printed, and does what it says."""

import pathlib
import re
import textwrap
import types
import unittest

import fixtures

import compute_notify
from compute_notify import context
from compute_notify.db import api

from tests import base

_README = pathlib.Path(__file__).parents[2] / 'README.rst'


def _code(word):
    """Return the README's one Python block that contains a word."""
    blocks = re.findall(r'\.\. code-block:: python\n\n((?:    .*\n|\n)+)',
                        _README.read_text())
    block, = [block for block in blocks if word in block]
    return textwrap.dedent(block)


class TestReadme(base.NodeTestCase):

    def test_library_use(self):
        """The ten lines send create, update, nothing, delete."""
        folder = self.useFixture(fixtures.TempDir()).path
        config = pathlib.Path(folder, 'compute.conf')
        config.write_text('[DEFAULT]\ntransport_url = fake://\n')
        self.addCleanup(compute_notify.teardown)
        code = _code('node.destroy()').replace("'compute.conf'",
                                               repr(str(config)))
        exec(code.replace('cfg.CONF', 'CONF').replace(
            'from oslo_config import cfg\n',
            'from oslo_config import cfg\nCONF = cfg.ConfigOpts()\n'), {})
        self.assertEqual(['create', 'update', 'delete'], self.actions())

    def test_outer_transaction(self):
        """Two nodes in one transaction are announced after its commit."""
        first, second = (self.created(hypervisor_hostname=name)
                         for name in ('n1', 'n2'))
        first.vcpus = second.vcpus = 99
        exec(_code('second.save()'), {
            'context': self.context, 'first': first, 'second': second,
            'api': api})
        self.assertEqual(['update', 'update'], self.actions())

    def test_functional_test(self):
        """The functional test passes for a service that registers itself."""
        names = {'my_service': types.SimpleNamespace(
            start=self._start, stop=lambda: None)}
        exec(_code('TestMyService'), names)
        result = unittest.TestResult()
        names['TestMyService']('test_start').run(result)
        self.assertEqual(([], [], 1), (result.errors, result.failures,
                                       result.testsRun))

    def _start(self):
        self.context = context.get_admin_context()
        self.node().create()
