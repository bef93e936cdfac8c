# SPDX-License-Identifier: Apache-2.0
"""``compute-notify report``: the smallest real compute service.

It registers the machine it runs on and then saves what it measures at an
interval. What changed goes out as a notification, what did not stays silent.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import pathlib
import signal
import socket
import sys
import threading
import typing

from oslo_config import cfg

import compute_notify
from compute_notify.cmd import machine
from compute_notify import context
from compute_notify import exception
from compute_notify import objects


def add_parser(subparsers: typing.Any,
               common: argparse.ArgumentParser) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        'report', parents=[common], help='report the machine this runs on',
        description='Register this machine as a compute node, then report its '
        'capacity and usage at an interval. Without --config-file the node is '
        'kept in an SQLite file under your state directory and each '
        'notification is printed as one line of JSON.')
    parser.add_argument('--count', type=_positive(int), metavar='N',
                        help='report N times and end; without it, until '
                        'interrupted')
    parser.add_argument('--interval', type=_positive(float), default=10.0,
                        metavar='SECONDS', help='the time between two reports '
                        '(default: %(default)s)')
    parser.add_argument('--remove', action='store_true',
                        help='destroy the record at the end')
    parser.set_defaults(run=run, default_config=str(
        pathlib.Path(__file__).with_name('report.conf')))


def run(conf: cfg.ConfigOpts, args: argparse.Namespace) -> None:
    """Report until the count is reached or a signal asks to end."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _end(stop))
    printer = None if args.config_file else _print_notifications(stop)
    compute_notify.setup(conf)
    try:
        report(conf.host or socket.gethostname(), args, stop)
    finally:
        compute_notify.teardown()
    if printer and printer.error:
        raise exception.OutputFailed(reason=printer.error)


def report(host: str, args: argparse.Namespace, stop: threading.Event) -> None:
    """Keep the record of this machine up to date.

    :param host: the name of this host.
    :param args: count, interval in seconds and remove.
    :param stop: ends the wait between two reports, and the work.
    """
    node = register(host)
    for number in itertools.count(2):
        if args.count and number > args.count or stop.wait(args.interval):
            break
        refresh(node, machine.measure())
        node.save()
    if args.remove:
        node.destroy()


def register(host: str) -> objects.ComputeNode:
    """Return the stored record of this machine, made if there is none."""
    ctxt = context.get_admin_context()
    measured = machine.measure()
    # The same machine has the same uuid when it is renamed or comes back.
    uuid = machine.uuid(host)
    try:
        node = objects.ComputeNode.get_by_uuid(ctxt, uuid)
        store = node.save
    except exception.ComputeHostNotFound:
        node = objects.ComputeNode(ctxt, host=host, uuid=uuid)
        store = node.create
    refresh(node, measured)
    store()
    return node


def refresh(node: objects.ComputeNode,
            measured: dict[str, typing.Any]) -> None:
    """Assign what was measured; what is equal to before stays silent."""
    for name, value in measured.items():
        setattr(node, name, value)


def _end(stop: threading.Event) -> None:
    stop.set()
    # Whoever asks twice does not want to wait for a broker.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class _Printer(logging.StreamHandler):  # type: ignore[type-arg]
    """Prints lines until nobody takes them any more; then asks to end."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__(sys.stdout)
        self.error: BaseException | None = None
        self._stop = stop

    def handleError(self, record: logging.LogRecord) -> None:
        """Remember what went wrong, instead of printing where."""
        self.error = sys.exc_info()[1]
        self._stop.set()
        # What is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_notifications(stop: threading.Event) -> _Printer:
    """Print what oslo.messaging's log driver logs, and only that."""
    printer = _Printer(stop)
    printer.setFormatter(logging.Formatter('%(message)s'))
    logger = logging.getLogger('oslo.messaging.notification')
    logger.addHandler(printer)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return printer


def _positive(kind: type) -> typing.Callable[[str], typing.Any]:
    def convert(text: str) -> typing.Any:
        number = kind(text)
        if not 0 < number < threading.TIMEOUT_MAX:
            raise argparse.ArgumentTypeError(f'must be positive: {text}')
        return number
    # argparse quotes it: "invalid int value".
    convert.__name__ = kind.__name__
    return convert
