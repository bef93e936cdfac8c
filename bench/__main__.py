# SPDX-License-Identifier: Apache-2.0
"""Run the measurements named on the command line, or all of them."""

from __future__ import annotations

import argparse
from collections import abc
import functools
import importlib
import platform

from bench import rounds

NAMES = ('emit', 'save', 'nova_save', 'outbox')


def main(argv: abc.Sequence[str] | None = None) -> None:
    """Print one table after another; a missed target is no error."""
    options = _options(argv)
    print(f'Python {platform.python_version()}, {platform.machine()}')
    for name in options.names or NAMES:
        # Not imported above: emit and nova_save need Nova, the others not.
        run = importlib.import_module(f'bench.{name}').run
        if name == 'save':
            run = functools.partial(run, with_servers=options.servers)
        for text in run(options.plan):
            print(f'\n{text}', flush=True)


def _options(argv: abc.Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m bench',
                                     description=__doc__)
    parser.add_argument('names', nargs='*', metavar='name',
                        help=f'one of {", ".join(NAMES)}; all by default')
    parser.add_argument(
        '--plan', type=_plan, metavar='ROUNDS,BATCHES,CALLS',
        help='how many rounds, batches an arm and round, calls a batch')
    for server in ('mariadb', 'postgresql'):
        parser.add_argument(
            f'--{server}', dest='servers', action='append_const',
            const=server, default=[],
            help='measure save there too; placed as for the functional tests')
    options = parser.parse_args(argv)
    for name in options.names:
        if name not in NAMES:
            parser.error(f'there is no measurement {name}')
    return options


def _plan(text: str) -> rounds.Plan:
    """Return the plan that three numbers describe.

    :raises ValueError: not three whole numbers above zero.
    """
    count, batches, calls = map(int, text.split(','))
    if min(count, batches, calls) < 1:
        raise ValueError(text)
    return rounds.Plan(rounds=count, batches=batches, calls=calls)


if __name__ == '__main__':
    main()
