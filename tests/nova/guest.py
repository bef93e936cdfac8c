# SPDX-License-Identifier: Apache-2.0
"""Run Nova's own tests as they are and with the hook, and compare each one.

``python -m tests.nova.guest [module ...]`` ends with 1 where they differ.
"""

import argparse
import collections
from importlib import metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import typing

MODULES = (
    'nova.tests.unit.objects.test_objects',
    'nova.tests.unit.objects.test_compute_node',
    'nova.tests.unit.objects.test_service',
    'nova.tests.unit.compute.test_resource_tracker',
    'nova.tests.functional.db.test_compute_node',
    'nova.tests.functional.regressions.test_bug_1853009',
    'nova.tests.functional.regressions.test_bug_1839560',
    'nova.tests.functional.regressions.test_bug_2085135',
)

Report = dict[str, typing.Any]


def main(arguments: list[str] | None = None) -> int:
    """Run everything and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--mode', choices=('eventlet', 'threading'),
                        default='eventlet', help='the concurrency mode')
    parser.add_argument('module', nargs='*', default=MODULES)
    options = parser.parse_args(arguments)
    plain, installed = (
        _run(arm, options.mode, options.module)
        for arm in ('plain', 'installed'))
    wrong = [*_missing(options.module, plain), *_differing(plain, installed),
             *installed['wrong']]
    for line in wrong:
        print(line)
    print(_summary(plain, installed))
    return 1 if wrong else 0


def _run(arm: str, mode: str, modules: typing.Iterable[str]) -> Report:
    """Run the modules in a process of their own and return its report."""
    print(f'{arm}, {mode} ...', flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, 'report.json')
        done = subprocess.run(
            [sys.executable, '-m', 'tests.nova.guest_runner', arm, str(path),
             *modules], env=_environment(mode), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not path.exists():
            raise SystemExit(f'{done.stdout}\n{arm}: no report')
        report: Report = json.loads(path.read_text())
    print(f'{arm}: {len(report["outcomes"])} tests in '
          f'{time.monotonic() - started:.0f} s', flush=True)
    return report


def _environment(mode: str) -> dict[str, str]:
    return os.environ | {
        'OS_NOVA_DISABLE_EVENTLET_PATCHING':
            'true' if mode == 'threading' else '',
        # Nova's tests look for it two levels above the package, where its
        # source has it and its wheel does not; oslo.config asks here first.
        'OS_WSGI__API_PASTE_CONFIG': _api_paste(),
        'PYTHONWARNINGS': 'ignore',
    }


def _api_paste() -> str:
    found = [file.locate() for file in metadata.files('nova') or ()
             if file.match('etc/nova/api-paste.ini')]
    if not found:
        raise SystemExit('Nova was not installed from its wheel: there is no '
                         'etc/nova/api-paste.ini')
    return str(pathlib.Path(found[0]).resolve())


def _missing(modules: typing.Iterable[str],
             plain: Report) -> typing.Iterator[str]:
    """Yield the modules of which no test passes even without the hook."""
    for module in modules:
        if not any(test.startswith(f'{module}.') and outcome == 'success'
                   for test, (outcome, _) in plain['outcomes'].items()):
            yield f'{module}: no test passed'
    for test, (_, details) in plain['outcomes'].items():
        if test.startswith('unittest.loader.'):
            yield f'{test}: {details}'


def _differing(plain: Report, installed: Report) -> typing.Iterator[str]:
    before, after = plain['outcomes'], installed['outcomes']
    for test in sorted({*before, *after}):
        (was, old), (is_, new) = (
            outcomes.get(test, ('not run', '')) for outcomes in (before,
                                                                 after))
        if was != is_:
            yield f'{test}: {was} without the hook, {is_} with it\n{old}{new}'


def _summary(plain: Report, installed: Report) -> str:
    before, after = plain['outcomes'], installed['outcomes']
    pairs = collections.Counter(
        (before.get(test, [''])[0], after.get(test, [''])[0])
        for test in {*before, *after})
    same = {was: number for (was, is_), number in pairs.items() if was == is_}
    passed = same.pop('success', 0)
    return (f'{sum(pairs.values())} tests: {passed} passed both ways, '
            + ''.join(f'{number} {outcome} both ways, '
                      for outcome, number in sorted(same.items()))
            + f'{sum(pairs.values()) - passed - sum(same.values())} differ; '
            f'with the hook they sent {installed["sent"]}')


if __name__ == '__main__':
    sys.exit(main())
