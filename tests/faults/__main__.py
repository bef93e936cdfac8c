# SPDX-License-Identifier: Apache-2.0
"""Measure what a misbehaving RabbitMQ does to notifications, and judge it."""

from __future__ import annotations

import argparse
from collections import abc
import signal
import subprocess
import sys

from tests.faults import drain
from tests.faults import rabbitmq
from tests.faults import scenarios
from tests.faults import tables


def main(argv: abc.Sequence[str] | None = None) -> int:
    """Print the table; a promise that is broken is an error."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    options = _options(arguments)
    # So that fixtures clean up, and no broker stays behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    try:
        rabbitmq.require()
    except FileNotFoundError as exc:
        sys.exit(f'rabbitmq is missing: {exc}')
    command = ' '.join(['python -m tests.faults', *arguments])
    print(f'{tables.versions()}\n{command}\n', flush=True)
    if options.drain:
        print(drain.LEGEND.format(count=options.count))
        print(f'\n{drain.run(options.count, options.rounds)}')
        return 0
    return _faults(options)


def _faults(options: argparse.Namespace) -> int:
    plan = scenarios.LONG if options.long else scenarios.SHORT
    found: list[scenarios.Outcome] = []
    for name in options.only or scenarios.FAULTS:
        fault = scenarios.FAULTS[name]
        for seconds in fault.long if options.long else (fault.short,):
            print(f'{name}: {fault.what}', file=sys.stderr, flush=True)
            try:
                found.append(scenarios.run(name, seconds, plan))
            except (AssertionError, subprocess.SubprocessError) as exc:
                # What the others have shown is worth its minutes.
                found.append(scenarios.Outcome(
                    name, seconds, {}, [f'not measured: {exc!r}']))
    print(f'{tables.LEGEND}\n\n{tables.outcomes(found)}\n\n'
          f'{tables.BACKLOG_LEGEND}\n\n{tables.backlogs(found)}\n')
    for outcome in found:
        for problem in outcome.problems:
            print(f'{outcome.fault}: {problem}')
    failed = sum(bool(outcome.problems) for outcome in found)
    print(f'{len(found) - failed} passed, {failed} failed')
    return int(failed > 0)


def _options(argv: abc.Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m tests.faults',
                                     description=__doc__)
    parser.add_argument('--long', action='store_true',
                        help='longer faults; takes about a quarter of an hour')
    parser.add_argument('--only', type=_names, metavar='FAULT,...',
                        help=f'of {", ".join(scenarios.FAULTS)}')
    parser.add_argument('--drain', action='store_true', help=drain.__doc__)
    parser.add_argument('--count', type=int, default=3000,
                        help='with --drain: how many messages')
    parser.add_argument('--rounds', type=int, default=4,
                        help='with --drain: how many rounds')
    return parser.parse_args(argv)


def _names(text: str) -> list[str]:
    names = text.split(',')
    if unknown := set(names) - set(scenarios.FAULTS):
        raise argparse.ArgumentTypeError(f'there is no fault {unknown}')
    return names


if __name__ == '__main__':
    sys.exit(main())
