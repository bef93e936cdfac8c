# SPDX-License-Identifier: Apache-2.0
"""The consumers' guide: its code runs as printed, and does what it says."""

import os
import pathlib
import re
import tempfile
import textwrap

import compute_notify
from tests import outbox
from tests import service

_GUIDE = pathlib.Path(__file__).parents[2] / 'doc/source/consumers.rst'


class TestGuide(service.TestCase):

    def test_index(self):
        """Its listener keeps the table as the stream has it."""
        block, = re.findall(r'\.\. code-block:: python\n\n((?:   .*\n|\n)+)',
                            _GUIDE.read_text())
        path = os.path.join(tempfile.mkdtemp(), 'nodes.db')
        conf = self.configuration(
            oslo_messaging_notifications='driver = messagingv2')
        there = {'conf': conf}
        exec(textwrap.dedent(block).replace('/var/lib/nodes.db', path), there)
        self.addCleanup(there['listener'].wait)
        self.addCleanup(there['listener'].stop)
        compute_notify.setup(conf)
        stays, goes = (self.node(host=host) for host in ('cmp1', 'cmp2'))
        stays.create()
        goes.create()
        stays.vcpus_used = 7
        stays.save()
        goes.destroy()
        table = there['table']
        outbox.wait_until(
            lambda: [(row['host'], row['vcpus_used'])
                     for row in table.nodes()] == [('cmp1', 7)]
            and table.nodes(deleted=True), table.nodes)
