# SPDX-License-Identifier: Apache-2.0
"""A table of compute nodes that the notifications alone keep up to date.

What counts is when a notification was sent, not when it arrives: of two about
a node the one with the later time stamp wins, so that late ones and those that
come twice do no harm. A deleted node leaves a tombstone behind, or a late
update would bring it back.
"""

from __future__ import annotations

from collections import abc
import dataclasses
import datetime
import itertools
import threading
import typing

import sqlalchemy as sa

from compute_notify.consumer import event
from compute_notify import payload

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)

#: How many rows one statement reads or writes.
_CHUNK = 500

#: What the columns that hold the payload's fields are called; ``id`` is
#: taken by nobody else and kept as it is.
_COLUMNS: dict[str, sa.types.TypeEngine[typing.Any]] = {
    'int': sa.BigInteger(), 'str': sa.String(255)}

_Row = dict[str, typing.Any]

_metadata = sa.MetaData()

_nodes = sa.Table(
    'compute_node_index', _metadata,
    sa.Column('uuid', sa.String(36), primary_key=True),
    *(sa.Column(name,
                _COLUMNS[str(event.Node.__annotations__[name])[:3]],
                index=name in ('host', 'hypervisor_type'))
      for name in payload.PAYLOAD_FIELDS if name != 'uuid'),
    sa.Column('deleted', sa.Boolean, nullable=False),
    # Microseconds since 1970: every database keeps those exactly.
    sa.Column('stamp', sa.BigInteger, nullable=False, index=True),
    sa.Column('message_id', sa.String(64)),
    mysql_charset='utf8mb4')

# One row: the time of the newest snapshot.
_resyncs = sa.Table(
    'compute_node_index_resync', _metadata,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('stamp', sa.BigInteger, nullable=False))


@dataclasses.dataclass(frozen=True)
class Resynced:
    """What a resync has changed.

    :ivar written: nodes that were missing or not as in the snapshot.
    :ivar swept: nodes that the snapshot did not have.
    :ivar newer: nodes left alone, a notification being newer.
    """

    written: int
    swept: int
    newer: int


class Index:
    """The table; threads may share it.

    :param engine: SQLAlchemy's, for SQLite, MariaDB or PostgreSQL.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        # A listener has several threads, and SQLite one writer.
        self._lock = threading.Lock()

    def create(self) -> None:
        """Make the table, unless it is there."""
        _metadata.create_all(self._engine)

    def apply(self, events: abc.Iterable[event.Event]) -> int:
        """Take notifications, in one transaction.

        :param events: in any order; some may have come before.
        :returns: how many nodes are another than before.
        """
        latest: dict[str, event.Event] = {}
        for one in events:
            known = latest.get(one.uuid)
            if known is None or one.timestamp >= known.timestamp:
                latest[one.uuid] = one
        rows = [_row_of_event(one) for one in latest.values()]
        with self._lock, self._engine.begin() as connection:
            # A node that a snapshot did not have was gone by then, whatever
            # comes late about it. There may be no tombstone to tell.
            horizon = self._horizon(connection)
            return sum(self._merge(connection, chunk, horizon).written
                       for chunk in _chunks(rows))

    def resync(self, nodes: abc.Iterable[event.Node], *,
               taken_at: datetime.datetime | None = None) -> Resynced:
        """Make the table equal a snapshot, while notifications go on coming.

        A node that a notification sent later than the snapshot is about stays
        as that says. One that the snapshot does not have is deleted.

        :param nodes: all nodes there are; it may be read bit by bit.
        :param taken_at: when reading them began or earlier, by the clock of
            those who notify; now, if left out. Nothing that was sent before
            may be missing from the snapshot.
        """
        stamp = _stamp(taken_at or datetime.datetime.now(
            datetime.timezone.utc))
        total = Resynced(0, 0, 0)
        seen: set[str] = set()
        rows = (_row_of_node(node, stamp) for node in nodes)
        for chunk in _chunks(rows):
            seen.update(row['uuid'] for row in chunk)
            with self._lock, self._engine.begin() as connection:
                total = _add(total, self._merge(connection, chunk))
        return _add(total, Resynced(0, self._sweep(seen, stamp), 0))

    def nodes(self, *, deleted: bool = False) -> list[dict[str, typing.Any]]:
        """Return the nodes, by host and name.

        :param deleted: whether to return those that were deleted instead.
        """
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(
                sa.select(*(_nodes.c[name]
                            for name in payload.PAYLOAD_FIELDS))
                .where(_nodes.c.deleted.is_(deleted))
                .order_by(_nodes.c.host, _nodes.c.hypervisor_hostname,
                          _nodes.c.uuid)).mappings()]

    def _merge(self, connection: sa.Connection,
               rows: abc.Sequence[_Row],
               horizon: int | None = None) -> Resynced:
        """Write the rows that are not older than what is there.

        :param horizon: nor, if nothing is there, than this.
        """
        known = {row['uuid']: row for row in connection.execute(
            sa.select(_nodes).where(_nodes.c.uuid.in_(
                [row['uuid'] for row in rows])).with_for_update()).mappings()}
        new, changed, newer, written = [], [], 0, 0
        for row in rows:
            there = known.get(row['uuid'])
            if there is None and (horizon is None or row['stamp'] > horizon):
                new.append(row)
                written += 1
            elif there is None or there['stamp'] > row['stamp']:
                newer += 1
            else:
                changed.append({f'_{name}': value
                                for name, value in row.items()})
                written += any(
                    there[name] != row[name] for name in row
                    if name not in ('stamp', 'message_id'))
        for group in _alike(new):
            connection.execute(sa.insert(_nodes), group)
        for group in _alike(changed):
            connection.execute(
                sa.update(_nodes)
                .where(_nodes.c.uuid == sa.bindparam('_uuid'))
                .values({name[1:]: sa.bindparam(name) for name in group[0]
                         if name != '_uuid'}), group)
        return Resynced(written, 0, newer)

    def _sweep(self, seen: abc.Set[str], stamp: int) -> int:
        """Delete what a snapshot did not have and no newer one speaks of."""
        with self._lock, self._engine.begin() as connection:
            ghosts = [uuid for uuid, in connection.execute(
                sa.select(_nodes.c.uuid).where(
                    _nodes.c.deleted.is_(False), _nodes.c.stamp <= stamp))
                if uuid not in seen]
            if stamp > (self._horizon(connection) or 0):
                connection.execute(sa.delete(_resyncs))
                connection.execute(sa.insert(_resyncs), [
                    {'id': 1, 'stamp': stamp}])
            return sum(connection.execute(
                sa.update(_nodes).where(
                    _nodes.c.uuid.in_(chunk), _nodes.c.stamp <= stamp)
                .values(deleted=True, stamp=stamp, message_id=None)).rowcount
                for chunk in _chunks(ghosts))

    @staticmethod
    def _horizon(connection: sa.Connection) -> int | None:
        return connection.execute(sa.select(_resyncs.c.stamp)).scalar()


_Item = typing.TypeVar('_Item')


def _chunks(items: abc.Iterable[_Item]) -> abc.Iterator[list[_Item]]:
    rest = iter(items)
    while chunk := list(itertools.islice(rest, _CHUNK)):
        yield chunk


def _alike(rows: list[_Row]) -> list[list[_Row]]:
    """Return the rows by whether they have the columns that deletes lack.

    One statement writes the same columns of all its rows.
    """
    groups: dict[int, list[_Row]] = {}
    for row in rows:
        groups.setdefault(len(row), []).append(row)
    return list(groups.values())


def _add(one: Resynced, other: Resynced) -> Resynced:
    return Resynced(one.written + other.written, one.swept + other.swept,
                    one.newer + other.newer)


def _stamp(when: datetime.datetime) -> int:
    return (when - _EPOCH) // _MICROSECOND


def _row_of_event(one: event.Event) -> dict[str, typing.Any]:
    row = {'uuid': one.uuid, 'id': one.id, 'deleted': one.node is None,
           'stamp': _stamp(one.timestamp), 'message_id': one.message_id}
    return row if one.node is None else row | _fields(one.node)


def _row_of_node(node: event.Node, stamp: int) -> dict[str, typing.Any]:
    return _fields(node) | {'deleted': False, 'stamp': stamp,
                            'message_id': None}


def _fields(node: event.Node) -> dict[str, typing.Any]:
    return {name: getattr(node, name) for name in payload.PAYLOAD_FIELDS}
