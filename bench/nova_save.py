# SPDX-License-Identifier: Apache-2.0
"""What the hook adds to a real Nova's ComputeNode.save(), and at scale."""

from __future__ import annotations

from collections import abc
import contextlib
import itertools
import random
import resource
import statistics
import time

import nova.conf
from nova import context as nova_context
from nova.db.main import api as db
from nova.db.main import models
from nova import objects
from nova import rpc
from oslo_messaging import conffixture

from bench import discarding
from bench import emit
from bench import rounds
from compute_notify.nova import patch
from tests import base

_QUIET, _SENDING = 1.05, 1.10

_EXTRA = {'cpu_info': '{}', 'cpu_allocation_ratio': 16.0,
          'ram_allocation_ratio': 1.5, 'disk_allocation_ratio': 1.0}

_serial = itertools.count(1)


def run(plan: rounds.Plan | None) -> abc.Iterator[str]:
    """Measure and return one table after another.

    :param plan: how much to measure, if not as much as is usual here.
    """
    with _nova() as driver:
        # Long batches: entering one attaches SQLAlchemy's listeners, and the
        # first calls after that pay for it.
        yield _saves(plan or rounds.Plan(rounds=9, batches=6, calls=100))
        yield _scale(driver, nodes=10000, turns=10)


@contextlib.contextmanager
def _nova() -> abc.Iterator[discarding.Driver]:
    """Make a Nova with a database in memory and a driver that discards."""
    conf = nova.conf.CONF
    conf([], project='nova', default_config_files=[])
    conf.set_override('connection', 'sqlite://', group='database')
    conf.set_override('notification_format', 'versioned',
                      group='notifications')
    objects.register_all()
    db.configure(conf)
    models.BASE.metadata.create_all(db.get_engine())
    with conffixture.ConfFixture(conf, 'fake:/'):
        rpc.init(conf)
        driver = discarding.put_into(rpc.NOTIFIER)
        try:
            yield driver
        finally:
            rpc.cleanup()


def _stored(name: str) -> objects.ComputeNode:
    node = objects.ComputeNode(
        nova_context.get_admin_context(),
        **(base.FULL | _EXTRA | {'host': name, 'hypervisor_hostname': name}))
    node.create()
    return node


def _report(node: objects.ComputeNode, **news: int) -> objects.ComputeNode:
    """Assign everything, as the resource tracker does each minute."""
    for name in base.FULL:
        setattr(node, name, news.get(name, getattr(node, name)))
    return node


@contextlib.contextmanager
def _installed() -> abc.Iterator[None]:
    patch.install()
    try:
        yield
    finally:
        patch.uninstall()
        # They are left in place otherwise, and the other arms are without.
        patch._state['patch']._recorder.ignore()


def _save(node: objects.ComputeNode) -> None:
    node.save()


def _save_and_notify(node: objects.ComputeNode) -> None:
    """Save and notify as Nova's Service does, with Nova's own classes."""
    node.save()
    emit.notification(node).emit(node._context)


def _saves(plan: rounds.Plan) -> str:
    idle, busy = _stored('idle'), _stored('busy')

    def quiet(count: int) -> list[objects.ComputeNode]:
        return [_report(idle.obj_clone(), free_ram_mb=next(_serial))
                for _ in range(count)]

    def changed(count: int) -> list[objects.ComputeNode]:
        return [_report(busy.obj_clone(), vcpus_used=next(_serial))
                for _ in range(count)]

    arms = [
        rounds.Arm('unpatched', _save, quiet),
        rounds.Arm('unpatched, again', _save, quiet),
        rounds.Arm('installed, nothing tracked changed', _save, quiet,
                   _installed),
        rounds.Arm('change, unpatched', _save, changed),
        rounds.Arm('change, sent and discarded', _save, changed, _installed),
        rounds.Arm("change, sent as Nova's Service does", _save_and_notify,
                   changed),
    ]
    return rounds.table(
        "Nova's ComputeNode.save() on SQLite in memory",
        rounds.measure(arms, plan), [
            rounds.Versus('unpatched, again', 'unpatched'),
            rounds.Versus('installed, nothing tracked changed', 'unpatched',
                          _QUIET),
            rounds.Versus('change, sent and discarded', 'change, unpatched',
                          _SENDING),
            rounds.Versus("change, sent as Nova's Service does",
                          'change, unpatched'),
        ])


def _scale(driver: discarding.Driver, nodes: int, turns: int) -> str:
    """Report many nodes in turns, one in twenty of them changed."""
    stored = [_stored(f'n{number}') for number in range(nodes)]
    lines = [f'{nodes} nodes in one table, reported {turns} times, '
             '5 % changed each time',
             f'  {"turn":>4}{"changed":>9}{"sent":>7}'
             f'{"us per save":>13}{"MiB resident":>14}']
    with _installed():
        for turn in range(turns):
            changed = set(random.sample(range(nodes), nodes // 20))
            before = driver.sent
            took = [_timed(node, number in changed)
                    for number, node in enumerate(stored)]
            sent = driver.sent - before
            lines.append(f'  {turn:4}{len(changed):9}{sent:7}'
                         f'{statistics.median(took) * 1e6:13.0f}'
                         f'{_resident():14.1f}')
            if sent != len(changed):
                raise RuntimeError(f'{sent} were sent of {len(changed)}')
    return '\n'.join(lines)


def _timed(node: objects.ComputeNode, changes: bool) -> float:
    _report(node, vcpus_used=node.vcpus_used + changes,
            memory_mb_used=node.memory_mb_used + 1)
    started = time.perf_counter()
    node.save()
    return time.perf_counter() - started


def _resident() -> float:
    """Return the most memory this process has had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
