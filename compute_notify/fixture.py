# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the functional tests of a compute service."""

from __future__ import annotations

from collections import abc
import functools
import json
import os
import pathlib
import tempfile
import threading
import typing
import weakref

import fixtures
from oslo_config import cfg
from oslo_db import options as db_options
from oslo_log import log as logging
import oslo_messaging
from oslo_messaging.notify import notifier as messaging_notifier
from oslo_utils import timeutils
from stevedore import extension
from stevedore import named

from compute_notify.db import api
from compute_notify.db import engine
from compute_notify.db import models
from compute_notify import emitter

LOG = logging.getLogger(__name__)

Notification = dict[str, typing.Any]

#: Threads that a test started and left running when it ended.
_left_over: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


class _StrictSerializer(emitter.ContextSerializer):
    """Turn the payload into what a consumer would parse, or fail."""

    def serialize_entity(self, ctxt: typing.Any,
                         entity: typing.Any) -> typing.Any:
        return json.loads(json.dumps(entity, allow_nan=False))


class _RecordingDriver(messaging_notifier.Driver):
    """Keeps what the Notifier sends, for waiting threads to see."""

    def __init__(self, transport: oslo_messaging.Transport) -> None:
        super().__init__(transport.conf, topics=[], transport=transport)
        #: Only these can be left over from an earlier test. Tests may run
        #: side by side, and one that ends takes others' threads for its own.
        self._older = weakref.WeakSet(
            set(threading.enumerate()) - {threading.current_thread()})
        self.arrived = threading.Condition()
        self.notifications: list[Notification] = []
        self.contexts: list[dict[str, typing.Any]] = []

    def notify(self, ctxt: dict[str, typing.Any], msg: dict[str, typing.Any],
               priority: str, retry: int) -> None:
        thread = threading.current_thread()
        if thread in _left_over and thread in self._older:
            LOG.warning('%(event)s was sent by thread %(thread)s, which an '
                        'earlier test left running; it is ignored.',
                        {'event': msg['event_type'], 'thread': thread.name})
            return
        with self.arrived:
            self.contexts.append(ctxt)
            self.notifications.append({
                name: msg[name] for name in ('publisher_id', 'priority',
                                             'event_type', 'payload')})
            self.arrived.notify_all()


class NotificationFixture(fixtures.Fixture):
    """Catch the notifications of one test.

    A real Notifier builds and serializes them; only its driver is replaced.
    What production would log and swallow is raised, so that a test cannot
    miss a notification that failed. It wins over a ``setup()`` that the
    service under test calls itself. A notification goes to the fixture that
    was in force when the call began; a thread that an earlier test left
    running is not heard. Tests may run side by side in threads, as long as
    they start no threads of their own: those would be heard by the fixture
    that was set up last.

    :param extra_update_fields: as the option of the same name.
    """

    def __init__(self, *, extra_update_fields: abc.Iterable[str] = ()) -> None:
        super().__init__()
        self._extra_update_fields = tuple(extra_update_fields)

    def _setUp(self) -> None:
        conf = _conf()
        transport = oslo_messaging.get_notification_transport(conf, 'fake://')
        self.addCleanup(transport.cleanup)
        self._driver = _RecordingDriver(transport)
        notifier = oslo_messaging.Notifier(
            transport, driver='noop', serializer=_StrictSerializer())
        # An extension of a test has no entry point and no plugin class.
        nothing: typing.Any = None
        notifier._driver_mgr = named.NamedExtensionManager.make_test_instance([
            extension.Extension('recording', nothing, nothing, self._driver)])
        mine = emitter.Emitter(
            notifier, host='fixture', strict=True,
            extra_update_fields=self._extra_update_fields)
        self.addCleanup(self._note_threads, set(threading.enumerate()))
        self.addCleanup(emitter.IN_FORCE.take_away, mine)
        emitter.IN_FORCE.put_in_front(mine)
        emitter.serve_by_hand()

    @staticmethod
    def _note_threads(before: set[threading.Thread]) -> None:
        _left_over.update(set(threading.enumerate()) - before
                          - {threading.current_thread()})

    @property
    def versioned_notifications(self) -> list[Notification]:
        """What was sent so far, oldest first.

        Each is a dictionary of ``publisher_id``, ``priority``, ``event_type``
        and ``payload``.
        """
        return self._driver.notifications

    @property
    def contexts(self) -> list[dict[str, typing.Any]]:
        """The request contexts that went with them, as serialized."""
        return self._driver.contexts

    def wait_for_versioned_notifications(
            self, event_type: str, n_events: int = 1,
            timeout: float = 10.0) -> list[Notification]:
        """Wait until so many notifications of one type have been sent.

        :param event_type: for example ``compute_node.update``.
        :param n_events: how many, at least.
        :param timeout: seconds.
        :returns: all of that type so far.
        :raises AssertionError: it took longer; the message tells what was
            sent instead.
        """
        def of_type() -> list[Notification]:
            return [sent for sent in self.versioned_notifications
                    if sent['event_type'] == event_type]

        with timeutils.StopWatch(timeout) as timer, self._driver.arrived:
            while len(of_type()) < n_events:
                if timer.expired():
                    raise AssertionError(
                        f'Waited {timeout} seconds for {n_events} '
                        f'{event_type} and received {len(of_type())}. All '
                        'that was received:\n' + json.dumps(
                            self.versioned_notifications, indent=2))
                self._driver.arrived.wait(timer.leftover())
            return of_type()

    def reset(self) -> None:
        """Forget what was sent so far."""
        with self._driver.arrived:
            self._driver.notifications.clear()
            self._driver.contexts.clear()


class DatabaseFixture(fixtures.Fixture):
    """Give one test an empty table of compute nodes.

    :param connection: the URL of a database on a server. Its table is made if
        need be, and emptied before and after the test. Left out, it is an
        SQLite file of the test's own.
    """

    def __init__(self, connection: str | None = None) -> None:
        super().__init__()
        self._connection = connection

    def _setUp(self) -> None:
        conf = _conf()
        db_options.set_defaults(
            conf, connection=self._connection or self._sqlite())
        # A lost power supply is no concern here, and tests are many.
        conf.set_override('sqlite_synchronous', False, group='database')
        self.database = engine.Database(conf)
        self.addCleanup(self.database.dispose)
        if self._connection:
            self.database.sync()
            self.addCleanup(self._empty)
            self._empty()
        self.addCleanup(api.IN_FORCE.take_away, self.database)
        api.IN_FORCE.put_in_front(self.database)

    def _sqlite(self) -> str:
        folder = self.useFixture(fixtures.TempDir()).path
        path = pathlib.Path(folder, 'compute_nodes.sqlite')
        path.write_bytes(_migrated())
        return f'sqlite:///{path}'

    def _empty(self) -> None:
        with self.database.facade.writer.get_engine().begin() as connection:
            connection.execute(models.ComputeNode.__table__.delete())


@functools.cache
def _migrated() -> bytes:
    """Return a migrated, empty SQLite database; made once per process."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'template.sqlite')
        conf = _conf()
        db_options.set_defaults(conf, connection=f'sqlite:///{path}')
        database = engine.Database(conf)
        database.sync()
        database.dispose()
        return pathlib.Path(path).read_bytes()


def _conf() -> cfg.ConfigOpts:
    """Return a configuration of its own that reads no file."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    return conf
