# SPDX-License-Identifier: Apache-2.0
"""The tables: made, upgraded, compared with the models, refused if strange."""

import concurrent.futures
import subprocess
import sys

from alembic import autogenerate
from alembic import migration as alembic_migration
import fixtures
from oslo_config import cfg
from oslo_db import options
import sqlalchemy as sa
import testscenarios

from compute_notify.db import engine
from compute_notify.db import migration
from compute_notify.db import models
from compute_notify import exception
from tests import base
from tests.functional import servers

load_tests = testscenarios.load_tests_apply_scenarios

_CODE = """
import sys
from oslo_config import cfg
from oslo_db import options
from compute_notify.db import engine
conf = cfg.ConfigOpts()
conf([], default_config_files=[], default_config_dirs=[])
options.set_defaults(conf, connection=sys.argv[1])
engine.Database(conf).facade
"""


def _database(url):
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    options.set_defaults(conf)
    conf.set_default('max_retries', 0, group='database')
    options.set_defaults(conf, connection=url)
    return engine.Database(conf)


class TestMigrations(base.TestCase):

    scenarios = servers.SCENARIOS

    server: str | None = None

    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        self.url = (servers.database(self.server)
                    or f'sqlite:///{folder}/nodes.sqlite')
        self.database = _database(self.url)
        self.addCleanup(self.database.dispose)
        self.addCleanup(self._drop)
        self._drop()

    def _drop(self):
        with self._engine().begin() as connection:
            for table in ('compute_nodes', 'compute_notify_version'):
                connection.execute(sa.text(f'DROP TABLE IF EXISTS {table}'))

    def _engine(self):
        made = sa.create_engine(self.url, poolclass=sa.NullPool)
        self.addCleanup(made.dispose)
        return made

    def _set_version(self, version):
        with self._engine().begin() as connection:
            connection.execute(sa.text(
                f"UPDATE compute_notify_version SET version_num='{version}'"))

    def test_sync(self):
        """sync makes the tables; a second time it changes nothing."""
        self.assertIsNone(self.database.version())
        for _ in range(2):
            self.assertEqual(migration.head(), self.database.sync())
        self.assertEqual(migration.head(), self.database.version())

    def test_tables_are_those_of_the_models(self):
        """The migrations end where the models are."""
        self.database.sync()
        with self._engine().connect() as connection:
            context = alembic_migration.MigrationContext.configure(
                connection, opts={'compare_type': True,
                                  'version_table': 'compute_notify_version'})
            self.assertEqual([], [
                difference for difference
                in autogenerate.compare_metadata(
                    context, models.BASE.metadata)
                if 'compute_nodes' in str(difference)])

    def test_not_migrated(self):
        """A server without tables is an error; the file makes its own."""
        if self.server is None:
            self.assertIsNotNone(self.database.facade)
            self.assertEqual(migration.head(), self.database.version())
            return
        error = self.assertRaises(exception.DatabaseNotMigrated,
                                  getattr, self.database, 'facade')
        self.assertIn('is at version none and this release needs 001; '
                      '"compute-notify db sync" upgrades', str(error))

    def test_newer(self):
        """Tables of a newer release are refused, by sync too."""
        self.database.sync()
        self._set_version('999')
        for use in (lambda: self.database.facade, self.database.sync):
            error = self.assertRaises(exception.DatabaseNotMigrated, use)
            self.assertIn('this release needs 001', str(error))


class TestUnreachable(base.TestCase):

    scenarios = [('mariadb', {'server': 'mariadb'}),
                 ('postgresql', {'server': 'postgresql'})]

    def _refused(self, **changes):
        servers.database(self.server)
        url = sa.make_url(servers.url(self.server)).set(**changes)
        error = self.assertRaises(
            exception.DatabaseUnreachable, getattr,
            _database(url.render_as_string(hide_password=False)), 'facade')
        self.assertIn(f'Database {url} cannot be reached: ', str(error))
        self.assertNotIn('s3cret', str(error))

    def test_no_server(self):
        """A server that does not answer is named, without its password."""
        self._refused(port=9, password='s3cret')

    def test_no_login(self):
        """A server that refuses the user is named, without its password."""
        self._refused(username='nobody', password='s3cret')

    def test_no_database(self):
        """A database that does not exist is named."""
        self._refused(database='no_such_database')


class TestFirstStart(base.TestCase):

    def test_processes_at_once(self):
        """Processes that start together on a new file all get its tables."""
        folder = self.useFixture(fixtures.TempDir()).path
        url = f'sqlite:///{folder}/nodes.sqlite'

        def start(_):
            return subprocess.run(
                [sys.executable, '-W', 'ignore', '-c', _CODE, url],
                capture_output=True, text=True, timeout=60)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            for done in pool.map(start, range(6)):
                self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertEqual(migration.head(), _database(url).version())
