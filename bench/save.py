# SPDX-License-Identifier: Apache-2.0
"""What the hook adds to save(): off, with nothing to say, and sending."""

from __future__ import annotations

from collections import abc
import contextlib
import dataclasses
import itertools
import tempfile
import typing
import unittest

from oslo_config import cfg
from oslo_db import options as db_options
import oslo_messaging
from oslo_versionedobjects import base as ovo_base
import sqlalchemy as sa

from bench import discarding
from bench import rounds
from compute_notify import context
from compute_notify.db import api
from compute_notify.db import engine
from compute_notify import emitter
from compute_notify import fixture
from compute_notify import hook
from compute_notify import objects
from compute_notify.objects import compute_node
from tests import base
from tests.functional import servers

_QUIET, _SENDING = 1.05, 1.10

_SAVE: typing.Any = objects.ComputeNode.save
#: save() as it would be if there were no hook.
_BARE = ovo_base.remotable(_SAVE.original_fn.__wrapped__)

_serial = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class _Bench:
    """What the arms of one table share.

    :ivar idle: a stored node whose saves change nothing tracked.
    :ivar busy: a stored node whose saves change a tracked value each.
    """

    notifying: emitter.Emitter
    silent: emitter.Emitter
    driver: discarding.Driver
    idle: objects.ComputeNode
    busy: objects.ComputeNode

    def idle_copies(self, count: int) -> list[objects.ComputeNode]:
        """Return copies on which all was assigned, as Nova's tracker does."""
        return [self._reported(self.idle, free_ram_mb=next(_serial))
                for _ in range(count)]

    def busy_copies(self, count: int) -> list[objects.ComputeNode]:
        """Return copies the same way, each with another tracked value."""
        return [self._reported(self.busy, vcpus_used=next(_serial))
                for _ in range(count)]

    @staticmethod
    def _reported(node: objects.ComputeNode,
                  **news: int) -> objects.ComputeNode:
        copy = node.obj_clone()
        for name in base.FULL:
            setattr(copy, name, news.get(name, getattr(node, name)))
        return copy

    def arms(self) -> list[rounds.Arm]:
        """Return every way to save."""
        idle, busy = self.idle_copies, self.busy_copies
        return [
            rounds.Arm('no hook', _BARE, idle, _without_hook),
            rounds.Arm('no hook, again', _BARE, idle, _without_hook),
            rounds.Arm('hook off: no notifier', _save, idle),
            rounds.Arm('hook off: no driver that sends', _save, idle,
                       lambda: _in_force(self.silent)),
            rounds.Arm('hook on, nothing tracked changed', _save, idle,
                       lambda: _in_force(self.notifying)),
            rounds.Arm('change, no hook', _BARE, busy, _without_hook),
            rounds.Arm('change, sent and discarded', _save, busy,
                       lambda: _in_force(self.notifying)),
        ]


_COMPARED = [
    # How far apart two runs of the very same are.
    rounds.Versus('no hook, again', 'no hook'),
    rounds.Versus('hook off: no notifier', 'no hook'),
    rounds.Versus('hook off: no driver that sends', 'no hook'),
    rounds.Versus('hook on, nothing tracked changed',
                  'hook off: no notifier', _QUIET),
    rounds.Versus('hook on, nothing tracked changed', 'no hook'),
    rounds.Versus('change, sent and discarded', 'change, no hook', _SENDING),
]


def _save(node: objects.ComputeNode) -> None:
    node.save()


@contextlib.contextmanager
def _without_hook() -> abc.Iterator[None]:
    """Take the recorder's listeners away as well."""
    compute_node.RECORDER.ignore()
    try:
        yield
    finally:
        compute_node.RECORDER.listen()


@contextlib.contextmanager
def _in_force(mine: emitter.Emitter) -> abc.Iterator[None]:
    emitter.IN_FORCE.configure(mine)
    try:
        yield
    finally:
        emitter.IN_FORCE.configure(None)


def run(plan: rounds.Plan | None,
        with_servers: abc.Sequence[str] = ()) -> abc.Iterator[str]:
    """Measure and return one table after another.

    :param plan: how much to measure, if not as much as is usual here.
    :param with_servers: databases to measure besides SQLite, by the names
        that the functional tests have for them.
    """
    yield _call(rounds.Plan(rounds=15, batches=20, calls=2000))
    plan = plan or rounds.Plan(rounds=15, batches=20, calls=20)
    with _embedded():
        yield _saves('the embedded SQLite, as it is by default', plan)
    yield _on_fixture('SQLite in a file, without fsync', None, plan)
    yield _on_fixture('SQLite in memory', 'sqlite://', plan)
    for name in with_servers:
        try:
            url = servers.database(name)
        except unittest.SkipTest as exc:
            yield str(exc)
        else:
            yield _on_fixture(name, url, plan)


def _call(plan: rounds.Plan) -> str:
    """Measure the hook alone, around a method that does nothing."""
    def method(_: object) -> None:
        pass

    announcing = hook.announcing(compute_node.RECORDER,
                                 emitter.IN_FORCE.current)
    times = rounds.measure([rounds.Arm('no hook', method),
                            rounds.Arm('hook off', announcing(method))], plan)
    return rounds.table('A method that does nothing', times, [])


@contextlib.contextmanager
def _embedded() -> abc.Iterator[None]:
    """Use the database that a service has which configures none."""
    with tempfile.TemporaryDirectory() as folder:
        conf = _conf()
        db_options.set_defaults(
            conf, connection=f'sqlite:///{folder}/compute_nodes.sqlite')
        database = engine.Database(conf)
        api.IN_FORCE.put_in_front(database)
        try:
            yield
        finally:
            api.IN_FORCE.take_away(database)
            database.dispose()


def _on_fixture(title: str, url: str | None, plan: rounds.Plan) -> str:
    with fixture.DatabaseFixture(url):
        return _saves(title, plan)


def _saves(title: str, plan: rounds.Plan) -> str:
    with _made() as bench:
        arms = bench.arms()
        queries = {arm.name: _queries(arm) for arm in arms}
        before = bench.driver.sent
        times = rounds.measure(arms, plan)
        _require_sent(bench.driver.sent - before, plan)
    return rounds.table(f'save() on {title}', times, _COMPARED, {
        name: f'{count} statements' for name, count in queries.items()})


@contextlib.contextmanager
def _made() -> abc.Iterator[_Bench]:
    conf = _conf()
    transport = oslo_messaging.get_notification_transport(conf, 'fake:/')
    notifier = _notifier(transport)
    driver = discarding.put_into(notifier)
    try:
        yield _Bench(
            notifying=emitter.Emitter(notifier, host='cmp1'),
            silent=emitter.Emitter(_notifier(transport), host='cmp1'),
            driver=driver, idle=_stored('idle'), busy=_stored('busy'))
    finally:
        transport.cleanup()


def _conf() -> cfg.ConfigOpts:
    """Return a configuration that reads no file."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


def _notifier(transport: oslo_messaging.Transport) -> oslo_messaging.Notifier:
    return oslo_messaging.Notifier(transport, driver='noop',
                                   serializer=emitter.ContextSerializer())


def _stored(name: str) -> objects.ComputeNode:
    node = objects.ComputeNode(
        context.get_admin_context(),
        **(base.FULL | {'host': name, 'hypervisor_hostname': name}))
    node.create()
    return node


def _queries(arm: rounds.Arm) -> int:
    """Return how many statements one save takes."""
    statements = []

    def note(connection: sa.Connection, cursor: object, statement: str,
             *args: object) -> None:
        statements.append(statement)

    target = api.database().facade.writer.get_engine()
    (argument,) = arm.prepare(1)
    sa.event.listen(target, 'before_cursor_execute', note)
    try:
        with arm.during():
            arm.call(argument)
    finally:
        sa.event.remove(target, 'before_cursor_execute', note)
    return len(statements)


def _require_sent(sent: int, plan: rounds.Plan) -> None:
    """Refuse figures of saves that did not send what they should have."""
    batches = plan.rounds * plan.batches + 1  # one to warm up
    expected = batches * (plan.calls + 1)
    if sent != expected:
        raise RuntimeError(f'{sent} were sent instead of {expected}')
