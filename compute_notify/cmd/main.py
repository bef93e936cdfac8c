# SPDX-License-Identifier: Apache-2.0
"""The command line: parse, read the configuration, call the subcommand."""

from __future__ import annotations

import argparse
from collections import abc
import sys

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db import options as db_options
from oslo_log import log as logging

import compute_notify
from compute_notify.cmd import db
from compute_notify.cmd import relay
from compute_notify.cmd import report
from compute_notify.cmd import schema
from compute_notify import exception

_SUBCOMMANDS = (report, relay, schema, db)


def main(argv: abc.Sequence[str] | None = None) -> int:
    """Run ``compute-notify``.

    :param argv: the arguments; those of the process if left out.
    :returns: the exit status: 0, or 1 after one line that says what is wrong.
        Wrong usage ends the process with 2.
    """
    args = _parser().parse_args(argv)
    conf = cfg.ConfigOpts()
    logging.register_options(conf)
    logging.set_defaults(default_log_levels=[
        *logging.get_default_log_levels(), 'alembic=WARNING'])
    # Standard output is for what was asked for.
    conf.set_default('use_stderr', True)
    # A person waits here: say at once that the database does not answer. The
    # configuration can ask for more.
    db_options.set_defaults(conf)
    conf.set_default('max_retries', 0, group='database')
    config_file = args.config_file or args.default_config
    try:
        conf([], prog='compute-notify', version=compute_notify.__version__,
             default_config_files=[config_file] if config_file else [],
             default_config_dirs=[])
        logging.setup(conf, 'compute_notify')
        args.run(conf, args)
    except (exception.ComputeNotifyError, cfg.Error, db_exc.DBError) as exc:
        print(f'compute-notify: {exc}', file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='compute-notify',
        description='Versioned notifications for compute nodes.')
    parser.add_argument('--version', action='version',
                        version=compute_notify.__version__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        '--config-file', metavar='FILE',
        help='the configuration; "oslo-config-generator --namespace '
             'compute_notify" prints a sample')
    common.set_defaults(default_config=None)
    subparsers = parser.add_subparsers(required=True, metavar='COMMAND')
    for subcommand in _SUBCOMMANDS:
        subcommand.add_parser(subparsers, common)
    return parser
