# SPDX-License-Identifier: Apache-2.0
"""What can be done to stored compute nodes; mappings in, rows out.

Rows are soft-deleted. Every function joins the transaction that the context
has open, see :func:`writer`, and has one of its own otherwise.
"""

from __future__ import annotations

from collections import abc
import contextlib
import datetime
import functools
import typing

from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc
from oslo_utils import timeutils
import sqlalchemy as sa
from sqlalchemy import orm

from compute_notify.db import engine
from compute_notify.db import locking
from compute_notify.db import models
from compute_notify import exception
from compute_notify import inforce
from compute_notify import transaction

P = typing.ParamSpec('P')
R = typing.TypeVar('R')

Values = abc.Mapping[str, typing.Any]

#: The database that every function here works on.
IN_FORCE: inforce.InForce[engine.Database] = inforce.InForce(
    'compute_notify database')

_MODEL = models.ComputeNode


def configure(database: engine.Database) -> None:
    """Put a database in force; it connects when first used."""
    _forget(IN_FORCE.configure(database))


def dispose() -> None:
    """Close the connections and forget the database; twice is once."""
    _forget(IN_FORCE.configure(None))


def _forget(before: engine.Database | None) -> None:
    if before is not None:
        before.dispose()


def database() -> engine.Database:
    """Return the database in use.

    :raises compute_notify.exception.NotConfigured: there is none.
    """
    current = IN_FORCE.current()
    if current is None:
        raise exception.NotConfigured()
    return current


@contextlib.contextmanager
def writer(context: typing.Any, *,
           savepoint: bool = False) -> abc.Iterator[orm.Session]:
    """Open a transaction, or join the one that the context has open.

    What is written inside is committed when the outermost block ends, and
    rolled back if that raises. Changes of compute nodes are announced after
    the commit.

    :param context: the request context that the objects inside use.
    :param savepoint: inside another block, make this one a savepoint that can
        be rolled back alone, by an exception that the outer one catches.
    :raises compute_notify.exception.NotConfigured: there is no database.
    :raises compute_notify.exception.DatabaseUnreachable: it does not answer.
    :raises compute_notify.exception.DatabaseNotMigrated: it has other tables.
    """
    facade = database().facade.writer
    if savepoint:
        facade = facade.savepoint
    outermost = transaction.session_of(context) is None
    with facade.using(context) as session:
        if outermost:
            session.connection(execution_options=locking.WRITES)
        yield session


def _retried(function: abc.Callable[P, R]) -> abc.Callable[P, R]:
    """Run a whole transaction again when the database chose it as victim.

    Inside an outer transaction there is nothing to run again here: the
    database has undone all of it, and only its owner can repeat it.
    """
    retried = oslo_db_api.wrap_db_retry(
        max_retries=5, retry_on_deadlock=True, retry_interval=0.1,
        inc_retry_interval=True, max_retry_interval=2)(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = transaction.session_of(args[0]) is not None
        return typing.cast(R, (function if outer else retried)(
            *args, **kwargs))
    return wrapper


def _visible(context: typing.Any) -> sa.Select[typing.Any]:
    """Select the nodes that the context may see, in the order of their ids."""
    query = sa.select(_MODEL).order_by(_MODEL.id)
    read_deleted = getattr(context, 'read_deleted', 'no')
    if read_deleted == 'no':
        query = query.where(_MODEL.deleted == 0)
    elif read_deleted == 'only':
        query = query.where(_MODEL.deleted != 0)
    return query


def compute_node_get_all(context: typing.Any,
                         **filters: typing.Any) -> list[models.ComputeNode]:
    """Return the nodes whose columns have these values.

    :param context: the request context.
    :param filters: column names with a value, or a list of values.
    """
    query = _visible(context)
    for name, value in filters.items():
        column = getattr(_MODEL, name)
        query = query.where(column.in_(value) if isinstance(value, list)
                            else column == value)
    with database().facade.reader.using(context) as session:
        return list(session.scalars(query))


def compute_node_get(context: typing.Any,
                     **filters: typing.Any) -> models.ComputeNode:
    """Return the one node whose columns have these values.

    :raises compute_notify.exception.ComputeHostNotFound: there is none.
    """
    nodes = compute_node_get_all(context, **filters)
    if not nodes:
        raise exception.ComputeHostNotFound(
            host=', '.join(str(value) for value in filters.values()))
    return nodes[0]


@_retried
def compute_node_create(context: typing.Any,
                        values: Values) -> models.ComputeNode:
    """Insert a node, or bring a deleted one with the same uuid back.

    A node that comes back keeps its id, and the values of the columns that
    are not given.

    :param context: the request context.
    :param values: the columns, ``uuid`` among them.
    :raises oslo_db.exception.DBDuplicateEntry: a live node has this uuid, or
        this host and hypervisor_hostname.
    """
    values = {name: value for name, value in _storable(values).items()
              if name not in ('deleted', 'deleted_at')}
    with writer(context) as session:
        try:
            with session.begin_nested():
                node = _MODEL(**values)
                session.add(node)
        except db_exc.DBDuplicateEntry:
            dead = session.scalars(
                sa.select(_MODEL)
                .where(_MODEL.uuid == values['uuid'], _MODEL.deleted != 0)
                .with_for_update()
                .execution_options(populate_existing=True)).first()
            if dead is None:
                raise
            node = dead
            # A savepoint here too: its name may be taken by now, and an
            # outer transaction outlives that.
            with session.begin_nested():
                node.update({**values, 'deleted': 0, 'deleted_at': None,
                             'updated_at': timeutils.utcnow()})
    return node


@_retried
def compute_node_update(context: typing.Any, compute_id: int,
                        values: Values) -> models.ComputeNode:
    """Store new values and return the row.

    Columns that are not given keep what another process may have stored.
    ``updated_at`` always moves: it tells that the node reports.

    :raises compute_notify.exception.ComputeHostNotFound: there is no such
        node, or it is deleted and the context does not read those.
    :raises oslo_db.exception.DBDuplicateEntry: another live node has the new
        host and hypervisor_hostname.
    :raises compute_notify.exception.ObjectActionError: the uuid differs.
    """
    values = {**_storable(values), 'updated_at': timeutils.utcnow()}
    # No savepoint: where the database has chosen an outer transaction as the
    # victim of a deadlock, MySQL has no savepoints left, and says only that.
    with writer(context) as session:
        node = _locked(context, session, compute_id)
        if values.pop('uuid', node.uuid) != node.uuid:
            raise exception.ObjectActionError(
                node=compute_id, action='save',
                reason=f'its uuid is {node.uuid} and cannot be changed')
        if values.get('deleted'):
            values = {'deleted_at': timeutils.utcnow(), **values,
                      'deleted': node.id}
        node.update(values)
        session.flush()
    return node


@_retried
def compute_node_delete(context: typing.Any, compute_id: int,
                        host: str | None = None) -> None:
    """Soft-delete a node.

    :param context: the request context.
    :param compute_id: the node's id.
    :param host: if given, the host it must still belong to.
    :raises compute_notify.exception.ComputeHostNotFound: there is no such
        node, or it is deleted and the context does not read those.
    :raises compute_notify.exception.HostChanged: it belongs to another host.
    """
    with writer(context) as session:
        node = _locked(context, session, compute_id)
        if host is not None and node.host != host:
            raise exception.HostChanged(node=compute_id, host=host)
        if not node.deleted:
            # Without touching updated_at, which says when it last reported.
            node.update({'deleted': node.id, 'updated_at': node.updated_at,
                         'deleted_at': timeutils.utcnow()})
            session.flush()


def _locked(context: typing.Any, session: orm.Session,
            compute_id: int) -> models.ComputeNode:
    """Return the newest committed state of a node and keep others off it."""
    node: models.ComputeNode | None = session.scalars(
        _visible(context).where(_MODEL.id == compute_id).with_for_update()
        .execution_options(populate_existing=True)).first()
    if node is None:
        raise exception.ComputeHostNotFound(host=compute_id)
    return node


def _storable(values: Values) -> dict[str, typing.Any]:
    """Return the values with date and time as the columns hold them: UTC."""
    return {
        name: (timeutils.normalize_time(value)
               if isinstance(value, datetime.datetime) and value.tzinfo
               else value)
        for name, value in values.items()}
