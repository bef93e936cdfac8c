# SPDX-License-Identifier: Apache-2.0
"""Tests of the outbox's file among processes that fork and are killed."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

from testtools import content

from tests import base

#: Seconds that a program with all its processes may take.
_TIMEOUT = 120


class TestCase(base.TestCase):

    relay = False

    def run_program(self, *args):
        """Run :mod:`outbox_process`; return what it has said."""
        self.path = pathlib.Path(tempfile.mkdtemp(), 'outbox')
        config = pathlib.Path(tempfile.mkdtemp(), 'service.conf')
        config.write_text(
            '[DEFAULT]\ntransport_url = fake://\n'
            '[oslo_messaging_notifications]\ndriver = outbox\n'
            f'[compute_notify_outbox]\npath = {self.path}\n'
            f'relay = {self.relay}\n')
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m',
             'tests.functional.outbox_process', args[0], config, 'topic',
             *map(str, args[1:])],
            cwd=pathlib.Path(__file__).parents[2], capture_output=True,
            text=True, timeout=_TIMEOUT)
        self.addDetail('program', content.text_content(
            done.stderr[-10000:] + done.stdout[-10000:]))
        self.assertEqual(0, done.returncode)
        return [json.loads(line) for line in done.stdout.splitlines()]


class TestOrphan(TestCase):

    def test_stores_on(self):
        """What a child stores once its parent is dead is in the file.

        A connection that was open at the fork would leave the child without
        SQLite's locks: whoever looks into the file would end it for all.
        """
        said = self.run_program('orphan', 5)
        self.assertEqual([{'waiting': 6, 'sent': 0}], said)


class TestNewborn(TestCase):

    def test_killed_while_it_makes_the_file(self):
        """Whatever there is of a file, nothing stored is lost with it."""
        seed = random.randrange(2 ** 32)
        self.addDetail('seed', content.text_content(str(seed)))
        said = self.run_program('newborn', 100, seed)
        self.assertEqual(100, len(said))
        for line in said:
            # It may have stored one more than it could say.
            self.assertIn(line['waiting'] - 1,
                          (line['stored'], line['stored'] + 1))
            self.assertNotIn('aside', str(line['files']))
        # Some were killed before the file was whole, and some later.
        self.assertIn(0, {line['stored'] for line in said})
        self.assertLess(3, len({line['stored'] for line in said}))


class TestGreen(TestCase):

    relay = True

    def test_child_keeps_the_hub(self):
        """A copied greenthread sends nothing over its parent's connection."""
        *sent, last = self.run_program('keep_hub')
        self.assertEqual([{'sender': last['parent']}] * 2, sent)
