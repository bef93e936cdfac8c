# SPDX-License-Identifier: Apache-2.0
"""``compute-notify relay``: send what the outbox holds, or look into it."""

from __future__ import annotations

import argparse
from collections import abc
import contextlib
import dataclasses
import json
import os
import signal
import sqlite3
import threading
import time
import typing

import fasteners
from oslo_config import cfg

from compute_notify import exception
from compute_notify import opts
from compute_notify.outbox import relay
from compute_notify.outbox import sender
from compute_notify.outbox import settings
from compute_notify.outbox import store
from compute_notify import transport

#: Seconds that a signal leaves the message on its way.
_GRACE = 5.0


def add_parser(subparsers: typing.Any,
               common: argparse.ArgumentParser) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        'relay', parents=[common],
        help='send what the notification driver "outbox" has stored',
        description='Send what the notification driver "outbox" has stored, '
        'and what it stores, until interrupted; or, with one of the first '
        'three options, look after it. Give it the configuration file of the '
        'service that stores, and run it as the same user.')
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument('--status', action='store_true',
                         help='print what waits, since when, and the counts')
    actions.add_argument('--list-failed', action='store_true',
                         help='print the notifications that were set aside')
    actions.add_argument('--retry-failed', type=int, nargs='*', metavar='ID',
                         help='send those again; without an ID, all')
    parser.add_argument('--json', action='store_true',
                        help='print --status or --list-failed as JSON')
    parser.add_argument('--path', metavar='FILE', type=os.path.abspath,
                        help='the outbox, such as one that was moved aside, '
                        'instead of [compute_notify_outbox] path')
    parser.set_defaults(run=run)


def run(conf: cfg.ConfigOpts, args: argparse.Namespace) -> None:
    """Do what the arguments ask for.

    :raises compute_notify.exception.ComputeNotifyError: an option cannot
        work, or there is no outbox that can be used.
    """
    opts.register_state_path(conf)
    wanted = settings.Settings.from_conf(conf)
    if args.path:
        wanted = dataclasses.replace(wanted, path=args.path)
    if args.status:
        _print_status(wanted.path, as_json=args.json)
    elif args.list_failed:
        _print_failed(wanted.path, as_json=args.json)
    elif args.retry_failed is not None:
        _retry_failed(wanted.path, args.retry_failed)
    else:
        _relay(conf, wanted)


def _relay(conf: cfg.ConfigOpts, wanted: settings.Settings) -> None:
    # Also says at once if the URL is wrong.
    made = transport.get(conf)
    way = sender.Sender(conf, made._driver._url)
    exists = os.path.lexists(wanted.path)
    if exists:
        with _opened(wanted.path):
            pass  # an error now, and not one in a log for ever
    running = relay.Relay(wanted, way)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    # In a thread of its own: sending may wait for the broker, and a signal
    # must not.
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    print(f'relaying {wanted.path} to {way.broker()}'
          + ('' if exists else ', once there is such a file'), flush=True)
    while not stop.wait(1.0):
        if not thread.is_alive():
            raise exception.RelayEnded(path=wanted.path)
    running.stop()
    thread.join(_GRACE)


def _print_status(path: str, *, as_json: bool) -> None:
    with _opened(path) as used:
        status = used.status()
        relaying = used.noted('relay') if _is_relayed(path) else None
    if as_json:
        print(json.dumps({'path': path, 'relay': relaying}
                         | dataclasses.asdict(status)))
        return
    age = status.oldest_age
    error = status.last_error
    if error and status.last_error_at:
        error = f'{_time(status.last_error_at)} {error}'
    for name, value in (
            ('outbox', path),
            ('relayed by', f'process {relaying}' if relaying else 'nobody'),
            ('waiting', status.waiting),
            ('oldest age', 'none' if age is None else f'{age:.1f} s'),
            ('sent', status.sent), ('dropped', status.dropped),
            ('failed', status.failed), ('last error', error or 'none')):
        print(f'{name + ":":<12}{value}')


def _print_failed(path: str, *, as_json: bool) -> None:
    with _opened(path) as used:
        failed = used.list_failed()
    if as_json:
        print(json.dumps([dataclasses.asdict(one) for one in failed]))
        return
    for one in failed:
        again = '' if one.sendable else ' (cannot be sent again)'
        print(f'{one.id}: {one.topic}, stored {_time(one.created)}, '
              f'{one.tries} tries: {one.error}{again}')


def _retry_failed(path: str, ids: list[int]) -> None:
    with _opened(path) as used:
        unknown = set(ids) - {one.id for one in used.list_failed()
                              if one.sendable}
        if unknown:
            raise exception.NotSetAside(
                path=path, ids=', '.join(map(str, sorted(unknown))))
        print(f'{used.retry_failed(ids or None)} wait to be sent again')


@contextlib.contextmanager
def _opened(path: str) -> abc.Iterator[store.Store]:
    try:
        opened = store.Store(path, make=False)
        with contextlib.closing(opened):
            yield opened
    except (OSError, sqlite3.Error) as exc:
        raise exception.OutboxUnusable(path=path, reason=exc) from exc


def _is_relayed(path: str) -> bool:
    """Tell whether a process holds the lock that elects a relay."""
    lock = f'{path}.{relay.RELAY_LOCK}'
    if not os.path.exists(lock):  # and this must not make it
        return False
    held = fasteners.InterProcessLock(lock)
    if held.acquire(blocking=False):
        held.release()
        return False
    return True


def _time(seconds: float) -> str:
    return time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))
