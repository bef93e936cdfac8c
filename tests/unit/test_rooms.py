# SPDX-License-Identifier: Apache-2.0
"""The architecture: who may import whom, and what an import may do."""

import ast
import pathlib
import subprocess
import sys

import testtools

import compute_notify

_ROOT = pathlib.Path(compute_notify.__file__).parent

#: Room: the rooms of this package that it may import.
_MAY_IMPORT = {
    '': {'emitter', 'db'},  # the façade, inside its functions
    'change': set(),
    'context': set(),
    'exception': set(),
    'inforce': set(),
    'opts': {'exception'},
    'transport': {'exception'},
    'hook': {'change'},
    'plan': set(),
    'notification': {'change', 'exception', 'plan'},
    'payload': {'change', 'notification'},
    'routing': {'exception'},
    'recorder': {'change', 'hook'},
    'transaction': set(),
    'statement': {'change', 'hook', 'recorder', 'transaction'},
    'emitter': {'change', 'exception', 'inforce', 'notification', 'opts',
                'payload', 'routing', 'transport'},
    'db': {'db', 'exception', 'inforce', 'transaction'},
    'objects': {'context', 'db', 'emitter', 'exception', 'hook', 'objects',
                'payload', 'recorder'},
    'fixture': {'db', 'emitter'},
    # It has no emitter, payload or recorder of its own.
    'nova': {'change', 'emitter', 'exception', 'hook', 'nova',
             'notification', 'opts', 'payload', 'statement'},
    'outbox': {'exception', 'opts', 'outbox'},
    'schemas': {'change', 'payload', 'schemas'},
    'consumer': {'consumer', 'exception', 'payload'},
    'cmd': {'', 'cmd', 'context', 'db', 'exception', 'objects', 'opts',
            'outbox', 'schemas', 'transport'},
}

#: What the import of the façade must not load.
_HEAVY = ('nova', 'oslo_messaging', 'oslo_service', 'eventlet', 'sqlalchemy')


def _room(path):
    parts = path.relative_to(_ROOT).with_suffix('').parts
    return '' if parts == ('__init__',) else parts[0]


def _imported_rooms(path):
    """Return the rooms that a module imports, in functions too."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f'{node.module}.{alias.name}' for alias in node.names]
        else:
            continue
        for name in names:
            package, *rest = name.split('.')
            if package == 'compute_notify':
                rooms.add(rest[0] if rest else '')
    return rooms


class TestRooms(testtools.TestCase):

    def test_imports_point_one_way(self):
        """Each room imports only those that the table allows."""
        wrong = {}
        for path in sorted(_ROOT.rglob('*.py')):
            extra = _imported_rooms(path) - _MAY_IMPORT[_room(path)]
            if extra:
                wrong[str(path.relative_to(_ROOT))] = extra
        self.assertEqual({}, wrong)

    def test_table_is_not_wider_than_needed(self):
        """The table allows nothing that no module does."""
        used = {room: set() for room in _MAY_IMPORT}
        for path in _ROOT.rglob('*.py'):
            used[_room(path)] |= _imported_rooms(path)
        self.assertEqual(_MAY_IMPORT, used)

    def test_package_is_light(self):
        """Importing the package loads nothing that could hurt its host."""
        loaded = self._run(
            'import sys, compute_notify; '
            'print(*{name.split(".")[0] for name in sys.modules})').split()
        self.assertIn('compute_notify', loaded)
        self.assertEqual([], [name for name in _HEAVY if name in loaded])

    def test_import_starts_nothing(self):
        """Importing everything starts no thread and registers no option."""
        self.assertEqual('1 []\n', self._run(
            'import threading\n'
            'from oslo_config import cfg\n'
            'from compute_notify import emitter, objects, opts, recorder\n'
            'print(threading.active_count(),'
            ' [name for name in cfg.CONF if name == "compute_notify"])'))

    def test_only_one_place_catches_everything(self):
        """No handler stops an exception that it does not name."""
        broad = [
            f'{path.name}:{node.lineno}'
            for path in _ROOT.rglob('*.py')
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ExceptHandler)
            and (node.type is None or getattr(node.type, 'id', '')
                 in ('Exception', 'BaseException'))
            and not isinstance(node.body[-1], ast.Raise)
            # The host must start whatever is wrong with the driver, and
            # values that cannot be sent may raise anything.
            and path.name not in ('activate.py', 'driver.py')]
        self.assertEqual([], broad)

    @staticmethod
    def _run(code):
        return subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', code], check=True,
            capture_output=True, text=True, timeout=60).stdout
