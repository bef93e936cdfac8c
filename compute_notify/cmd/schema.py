# SPDX-License-Identifier: Apache-2.0
"""``compute-notify schema``: the JSON Schemas of the notifications."""

from __future__ import annotations

import argparse
import pathlib
import typing

from oslo_config import cfg

from compute_notify import exception
from compute_notify import schemas
from compute_notify.schemas import generate


def add_parser(subparsers: typing.Any,
               common: argparse.ArgumentParser) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        'schema', parents=[common],
        help='print or write the JSON Schemas of the notifications',
        description='Print one of the JSON Schemas (2020-12) that are made '
        'from the payload classes, or their names, or write all of them.')
    what = parser.add_mutually_exclusive_group()
    what.add_argument('name', nargs='?', choices=schemas.names(),
                      metavar='NAME', help='print this one; without a NAME, '
                      'print their names')
    what.add_argument('--write', metavar='FOLDER', type=pathlib.Path,
                      help='write all of them there, a file each')
    parser.set_defaults(run=_run)


def _run(conf: cfg.ConfigOpts, args: argparse.Namespace) -> None:
    if args.write:
        try:
            for path in generate.write(args.write):
                print(path)
        except OSError as exc:
            raise exception.FileNotWritten(folder=args.write,
                                           reason=exc) from exc
    elif args.name:
        print(generate.text(generate.all_schemas()[args.name]), end='')
    else:
        print('\n'.join(schemas.names()))
