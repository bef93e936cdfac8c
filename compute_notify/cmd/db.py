# SPDX-License-Identifier: Apache-2.0
"""``compute-notify db``: make or upgrade the tables, or tell their version."""

from __future__ import annotations

import argparse
import typing

from oslo_config import cfg

from compute_notify.db import engine


def add_parser(subparsers: typing.Any,
               common: argparse.ArgumentParser) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser('db', help='look after the database')
    actions = parser.add_subparsers(required=True, metavar='ACTION')
    sync = actions.add_parser(
        'sync', parents=[common],
        help='make the tables, or upgrade them, and print their version')
    sync.set_defaults(run=_sync)
    version = actions.add_parser(
        'version', parents=[common],
        help='print the version of the tables, "none" where there are none')
    version.set_defaults(run=_version)


def _sync(conf: cfg.ConfigOpts, args: argparse.Namespace) -> None:
    print(engine.Database(conf).sync())


def _version(conf: cfg.ConfigOpts, args: argparse.Namespace) -> None:
    print(engine.Database(conf).version() or 'none')
