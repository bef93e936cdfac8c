# SPDX-License-Identifier: Apache-2.0
"""Tests of how the outbox's file is opened, guarded and moved aside."""

import contextlib
import os
import pathlib
import sqlite3
import stat
from unittest import mock

import fixtures
import testscenarios

from compute_notify import exception
from compute_notify.outbox import spoolfile
from compute_notify.outbox import store
from tests import outbox

load_tests = testscenarios.load_tests_apply_scenarios


class TestMode(outbox.TestCase):

    def mode(self, suffix=''):
        return stat.S_IMODE(os.stat(self.path + suffix).st_mode)

    def test_private(self):
        """Nobody else can read the file, what is beside it, or look there."""
        self.path = str(pathlib.Path(self.path, 'deeper', 'outbox'))
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.store().append(outbox.messages(1), max_messages=9)
        self.assertEqual(
            [0o600] * 4,
            [self.mode(suffix) for suffix in ('', '-wal', '-shm', '.lock')])
        self.assertEqual(
            0o700, stat.S_IMODE(os.stat(os.path.dirname(self.path)).st_mode))

    def test_too_open(self):
        """A mode that lets others in is mended, and that is said."""
        self.store().append(outbox.messages(1), max_messages=9)
        os.chmod(self.path, 0o644)
        self.assertEqual([0], self.waiting())
        self.assertEqual(0o600, self.mode())
        self.assertIn(f'Outbox {self.path} had mode 644', self.logs.output)

    def test_somebody_elses(self):
        """A file of another user is not used; the error names both."""
        self.store()
        owner = os.geteuid()
        with mock.patch.object(os, 'geteuid', autospec=True,
                               return_value=owner + 1):
            exc = self.assertRaises(exception.OutboxUnusable,
                                    store.Store, self.path)
        self.assertIn(f'belongs to user {owner} and this process runs as '
                      f'{owner + 1}', str(exc))
        self.assertIn(self.path, str(exc))

    def test_root(self):
        """Root may look after the file of a service."""
        self.store()
        found = os.stat_result((0o100600, *os.lstat(self.path)[1:4], 4711,
                                *os.lstat(self.path)[5:]))
        self.useFixture(fixtures.MockPatchObject(
            os, 'lstat', autospec=True, return_value=found))
        with mock.patch.object(os, 'geteuid', autospec=True, return_value=0):
            store.Store(self.path).close()
        with mock.patch.object(os, 'geteuid', autospec=True, return_value=5):
            self.assertRaises(exception.OutboxUnusable,
                              store.Store, self.path)

    def test_made_by_root(self):
        """What root makes belongs to whom the directory does."""
        directory = os.path.dirname(self.path)
        with (mock.patch.object(os, 'geteuid', autospec=True, return_value=0),
              mock.patch.object(os, 'fchown', autospec=True) as fchown):
            store.Store(self.path).close()
        owner = os.stat(directory)
        self.assertEqual([(owner.st_uid, owner.st_gid)] * 2,
                         [call.args[1:] for call in fchown.call_args_list])

    def test_no_file(self):
        """A link could lead anywhere, and is not followed."""
        other = pathlib.Path(self.path + '-other')
        other.write_text('')
        os.symlink(other, self.path)
        self.assertRaisesRegex(
            exception.OutboxUnusable, 'it is no file', store.Store, self.path)
        self.assertEqual('', other.read_text())


def _newer(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f'PRAGMA user_version = {spoolfile.FORMAT + 1}')


def _garbage(path):
    pathlib.Path(path).write_bytes(b'not a database' * 1000)


def _truncated(path):
    os.truncate(path, 3000)


class TestMovedAside(outbox.TestCase):
    """A file that cannot be used makes way, with what is in it."""

    scenarios = [
        ('newer', {'spoil': _newer, 'why': 'its format is 2 and this release '
                                           'knows 1'}),
        ('garbage', {'spoil': _garbage, 'why': 'file is not a database'}),
        ('truncated', {'spoil': _truncated, 'why': 'malformed'})]

    def setUp(self):
        super().setUp()
        with contextlib.closing(store.Store(self.path)) as opened:
            opened.append(outbox.messages(3), max_messages=9)
        self.spoil(self.path)
        self.before = pathlib.Path(self.path).read_bytes()

    def aside(self):
        found, = pathlib.Path(self.path).parent.glob('outbox.aside-*[0-9]')
        return found

    def test_moved(self):
        """A new file takes its place, the old one stays as it was."""
        self.store().append(outbox.messages(1, first=5), max_messages=9)
        self.assertEqual([5], self.waiting())
        self.assertEqual(self.before, self.aside().read_bytes())
        self.assertRegex(
            self.logs.output,
            f'Outbox {self.path} cannot be used: .*{self.why}.* It is '
            f'{self.aside()} now')

    def test_moved_twice(self):
        """A second one within the same second does not replace the first."""
        self.useFixture(fixtures.MockPatchObject(
            spoolfile.time, 'strftime', autospec=True, return_value='now'))
        store.Store(self.path).close()
        pathlib.Path(self.path).write_bytes(b'garbage' * 1000)
        store.Store(self.path).close()
        self.assertEqual(
            self.before, pathlib.Path(self.path + '.aside-now').read_bytes())
        self.assertTrue(os.path.exists(self.path + '.aside-now~2'))

    def test_not_by_a_command(self):
        """One that only looks leaves it, with an error that says why."""
        self.assertRaisesRegex(
            exception.OutboxUnusable, self.why, store.Store, self.path,
            make=False)
        self.assertEqual(self.before, pathlib.Path(self.path).read_bytes())


class TestRefused(outbox.TestCase):

    def test_only_looked_at(self):
        """A file that is no outbox is not touched by one that only looks."""
        pathlib.Path(self.path).write_text('[DEFAULT]\n' * 500)
        os.chmod(self.path, 0o644)
        self.assertRaises(exception.OutboxUnusable, store.Store, self.path,
                          make=False)
        self.assertEqual(0o644, stat.S_IMODE(os.stat(self.path).st_mode))
        self.assertEqual(['outbox'], os.listdir(os.path.dirname(self.path)))

    def test_half_made(self):
        """One of our format that lacks what it must have makes way."""
        with contextlib.closing(store.Store(self.path)) as opened:
            opened._db.execute('DELETE FROM figure')
        self.store().append(outbox.messages(1), max_messages=9)
        self.assertIn('it has no name', self.logs.output)
        self.assertEqual([0], self.waiting())

    def test_another_database(self):
        """A database of something else is neither used nor moved."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.execute('CREATE TABLE compute_nodes (id INTEGER)')
        before = pathlib.Path(self.path).read_bytes()
        self.assertRaisesRegex(
            exception.OutboxUnusable, 'database of something else',
            store.Store, self.path)
        self.assertEqual(before, pathlib.Path(self.path).read_bytes())

    def test_missing(self):
        """One that only looks makes nothing."""
        exc = self.assertRaises(exception.OutboxMissing, store.Store,
                                self.path, make=False)
        self.assertIn(self.path, str(exc))
        self.assertEqual([], os.listdir(os.path.dirname(self.path)))
