# SPDX-License-Identifier: Apache-2.0
"""Tests of the index: it converges, whatever the stream does on its way."""

from concurrent import futures
import dataclasses
import datetime
import random
import tempfile

import hypothesis
from hypothesis import strategies
import sqlalchemy as sa
import testscenarios

from compute_notify.consumer import event
from compute_notify.consumer import index
from tests import base
from tests.functional import servers

load_tests = testscenarios.load_tests_apply_scenarios

_START = datetime.datetime(2026, 11, 30, tzinfo=datetime.timezone.utc)

_UUIDS = [f'00000000-0000-4000-8000-00000000000{n}' for n in range(4)]


def when(tick):
    """Return a moment."""
    return _START + datetime.timedelta(microseconds=tick)


def node(uuid, vcpus_used=0, **values):
    """Return a node."""
    return event.Node(**(base.FULL | {
        'id': int(uuid[-1]) + 1, 'uuid': uuid, 'vcpus_used': vcpus_used}
        | values))


def happened(kind, uuid, tick, **values):
    """Return the notification of what happened at a moment."""
    return event.Event(
        event_type=event.EventType(f'compute_node.{kind}'),
        message_id=f'id-{tick}', publisher_id='nova-compute:cmp1',
        timestamp=when(tick), id=int(uuid[-1]) + 1, uuid=uuid,
        node=None if kind == 'delete' else node(uuid, **values))


def live(history):
    """Play changes of a table; return notifications, and the table after each.

    :param history: pairs of a node's number and whether it is to be deleted.
    """
    table, sent, tables = {}, [], [{}]
    for tick, (number, delete) in enumerate(history, 1):
        uuid = _UUIDS[number]
        if delete and uuid in table:
            del table[uuid]
            sent.append(happened('delete', uuid, tick))
        elif not delete:
            kind = 'update' if uuid in table else 'create'
            sent.append(happened(kind, uuid, tick, vcpus_used=tick))
            table[uuid] = sent[-1].node
        tables.append(dict(table))
    return sent, tables


class TestCase(base.TestCase):

    scenarios = servers.SCENARIOS
    server = None

    def setUp(self):
        super().setUp()
        url = (servers.database(self.server)
               or f'sqlite:///{tempfile.mkdtemp()}/index')
        self.engine = sa.create_engine(url)
        self.addCleanup(self.engine.dispose)
        self.addCleanup(index._metadata.drop_all, self.engine)
        self.index = index.Index(self.engine)
        self.index.create()

    def found(self, **which):
        return {row['uuid']: event.Node(**row)
                for row in self.index.nodes(**which)}


class TestIndex(TestCase):

    def test_life(self):
        """Create, update, delete and revival are followed."""
        uuid = _UUIDS[0]
        self.assertEqual(1, self.index.apply([happened('create', uuid, 1)]))
        self.assertEqual({uuid: node(uuid)}, self.found())
        self.assertEqual(1, self.index.apply(
            [happened('update', uuid, 2, vcpus_used=7, host_ip=None)]))
        self.assertEqual({uuid: node(uuid, vcpus_used=7, host_ip=None)},
                         self.found())
        self.assertEqual(1, self.index.apply([happened('delete', uuid, 3)]))
        self.assertEqual({}, self.found())
        self.assertEqual([uuid], list(self.found(deleted=True)))
        self.assertEqual(1, self.index.apply([happened('create', uuid, 4)]))
        self.assertEqual({uuid: node(uuid)}, self.found())

    def test_twice(self):
        """What comes twice changes nothing the second time."""
        created = happened('create', _UUIDS[0], 1)
        self.index.apply([created])
        self.assertEqual(0, self.index.apply([created, created]))

    def test_late(self):
        """A late update does not bring a deleted node back."""
        uuid = _UUIDS[0]
        self.index.apply([happened('create', uuid, 1),
                          happened('delete', uuid, 3)])
        self.assertEqual(0, self.index.apply([happened('update', uuid, 2)]))
        self.assertEqual({}, self.found())

    def test_delete_first(self):
        """Nor does one about a node that was never seen before its end."""
        uuid = _UUIDS[0]
        self.index.apply([happened('delete', uuid, 2)])
        self.index.apply([happened('create', uuid, 1)])
        self.assertEqual({}, self.found())

    def test_update_only(self):
        """An update of a node that is not known makes it known."""
        self.index.apply([happened('update', _UUIDS[0], 1)])
        self.assertEqual([_UUIDS[0]], list(self.found()))

    def test_mixed_batch(self):
        """Deletes and others go together, known nodes and new ones."""
        self.index.apply([happened('create', _UUIDS[0], 1),
                          happened('create', _UUIDS[1], 2)])
        self.assertEqual(4, self.index.apply([
            happened('delete', _UUIDS[0], 3),
            happened('update', _UUIDS[1], 4, vcpus_used=5),
            happened('create', _UUIDS[2], 5),
            happened('delete', _UUIDS[3], 6)]))
        self.assertEqual({_UUIDS[1], _UUIDS[2]}, set(self.found()))

    def test_resync(self):
        """A snapshot adds what is missing and removes what is gone."""
        self.index.apply([happened('create', uuid, 1) for uuid in _UUIDS[:2]])
        done = self.index.resync(
            [node(_UUIDS[1], 9), node(_UUIDS[2])], taken_at=when(5))
        self.assertEqual(index.Resynced(written=2, swept=1, newer=0), done)
        self.assertEqual(
            {_UUIDS[1]: node(_UUIDS[1], 9), _UUIDS[2]: node(_UUIDS[2])},
            self.found())
        self.assertEqual(0, self.index.apply(
            [happened('update', _UUIDS[0], 4)]))

    def test_resync_newer(self):
        """What was sent after the snapshot was begun wins over it."""
        self.index.apply([happened('create', _UUIDS[0], 6, vcpus_used=6),
                          happened('create', _UUIDS[1], 6),
                          happened('delete', _UUIDS[2], 6)])
        done = self.index.resync(
            [node(_UUIDS[0]), node(_UUIDS[2])], taken_at=when(5))
        self.assertEqual(index.Resynced(written=0, swept=0, newer=2), done)
        self.assertEqual(
            {_UUIDS[0]: node(_UUIDS[0], 6), _UUIDS[1]: node(_UUIDS[1])},
            self.found())

    def test_resync_while_it_goes_on(self):
        """The snapshot may be read bit by bit, with events in between."""
        def slowly():
            yield node(_UUIDS[0])
            self.index.apply([happened('delete', _UUIDS[0], 6),
                              happened('create', _UUIDS[3], 7)])
            yield node(_UUIDS[1])
        self.index.apply([happened('create', _UUIDS[2], 1)])
        self.index.resync(slowly(), taken_at=when(5))
        self.assertEqual({_UUIDS[1], _UUIDS[3]}, set(self.found()))

    def test_threads(self):
        """The threads of a listener do not get in each other's way."""
        sent, tables = live([(n % 4, n % 7 == 6) for n in range(80)])
        with futures.ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(self.index.apply, [one])
                         for one in sent]:
                done.result(30)
        self.assertEqual(tables[-1], self.found())

    def test_many(self):
        """More nodes than one statement takes are no different."""
        nodes = [dataclasses.replace(
            node(_UUIDS[0]), uuid=f'{n:036}', hypervisor_hostname=f'n{n}')
            for n in range(1201)]
        self.assertEqual(1201, self.index.resync(nodes).written)
        self.assertEqual(0, self.index.resync(nodes).written)
        self.assertEqual(1201, self.index.resync([]).swept)


_HISTORY = strategies.lists(strategies.tuples(
    strategies.integers(0, len(_UUIDS) - 1), strategies.booleans()),
    max_size=25)


class TestConvergence(TestCase):

    scenarios = [('sqlite', {'server': None})]

    def fresh(self):
        index._metadata.drop_all(self.engine)
        self.index.create()

    @hypothesis.settings(deadline=None, max_examples=150)
    @hypothesis.given(_HISTORY, strategies.randoms(use_true_random=False),
                      strategies.integers(1, 7))
    def test_without_losses(self, history, chance, size):
        """Doubled and in any order, the stream alone gives the table."""
        self.fresh()
        sent, tables = live(history)
        stream = sent + chance.sample(sent, len(sent) // 2)
        chance.shuffle(stream)
        for first in range(0, len(stream), size):
            self.index.apply(stream[first:first + size])
        self.assertEqual(tables[-1], self.found())

    @hypothesis.settings(deadline=None, max_examples=150)
    @hypothesis.given(_HISTORY, strategies.randoms(use_true_random=False),
                      strategies.data())
    def test_resync(self, history, chance, data):
        """Whatever was lost before a snapshot, after it the two are equal."""
        self.fresh()
        sent, tables = live(history)
        taken = data.draw(strategies.integers(0, len(history)))
        before = [one for one in sent if one.timestamp <= when(taken)]
        after = [one for one in sent if one.timestamp > when(taken)]
        kept = [one for one in before if chance.random() < 0.5]
        # Some arrive before the snapshot is read and some later, old ones
        # too, and what was sent after it may be there already.
        stream = kept + after
        chance.shuffle(stream)
        cut = chance.randint(0, len(stream))
        self.index.apply(stream[:cut])
        self.index.resync(tables[taken].values(), taken_at=when(taken))
        self.index.apply(stream[cut:] + random.Random(1).sample(
            after, len(after) // 2))
        self.assertEqual(tables[-1], self.found())
