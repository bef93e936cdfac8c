# SPDX-License-Identifier: Apache-2.0
"""What the tests of the outbox stand on."""

from collections import abc
import contextlib
import dataclasses
import json
import pathlib
import sqlite3
import tempfile
import time
import typing

from oslo_utils import timeutils

from compute_notify.outbox import message
from compute_notify.outbox import process
from compute_notify.outbox import sender
from compute_notify.outbox import settings
from compute_notify.outbox import store
from tests import base

#: Seconds after which something that should have happened has not.
LONG = 30


def wait_until(condition: abc.Callable[[], bool],
               tell: abc.Callable[[], object]) -> None:
    """Wait for a condition.

    :param condition: looked at every few milliseconds.
    :param tell: what to say if it does not come true.
    """
    with timeutils.StopWatch(LONG) as timer:
        while not condition():
            if timer.expired():
                raise AssertionError(f'Waited {LONG} seconds: {tell()}')
            time.sleep(0.005)


def messages(count: int, first: int = 0,
             topic: str = 'topic') -> list[message.Message]:
    """Return messages that are numbered."""
    return [made for number in range(first, first + count)
            for made in message.for_topics(
                'nova', [topic], 'INFO',
                message.body_of({}, {'number': number}))]


def numbers(found: abc.Iterable[message.Message]) -> list[int]:
    """Return the numbers of messages."""
    return [json.loads(one.body)['number'] for one in found]


class FakeSender(sender.Sender):
    """A broker that takes messages, unless it is told otherwise."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.attempts: list[int] = []
        #: Called with each message; what it raises is raised.
        self.mood: abc.Callable[[message.Message], None] = lambda one: None

    def broker(self) -> str:
        """Return where it is."""
        return 'fake://'

    def close(self) -> None:
        """Drop the connection that there is not."""

    def send(self, messages: abc.Iterable[message.Message],
             confirmed: list[message.Message],
             go_on: abc.Callable[[], bool] = lambda: True) -> None:
        """Take messages."""
        for one in messages:
            if not go_on():
                return
            self.attempts += numbers([one])
            self.mood(one)
            self.taken += numbers([one])
            confirmed.append(one)


class TestCase(base.TestCase):
    """A test case with a place for an outbox."""

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(process.shut_all)
        self.path = str(pathlib.Path(tempfile.mkdtemp(), 'outbox'))

    def settings(self, **values: typing.Any) -> settings.Settings:
        """Return the options, as they are by default but for some."""
        return dataclasses.replace(settings.Settings(
            path=self.path, max_messages=100000, max_age=0, drop_newest=False,
            synchronous='NORMAL', memory_messages=10000, max_tries=3,
            status_interval=0, relay=True), **values)

    def store(self, **values: typing.Any) -> store.Store:
        """Return a connection of its own to the file."""
        opened = store.Store(self.path, **values)
        self.addCleanup(opened.close)
        return opened

    def waiting(self) -> list[int]:
        """Return the numbers of what waits in the file, in order."""
        return numbers(self.store().first(1000000))


def opened(path: object) -> contextlib.closing[store.Store]:
    """Open a file for the length of a ``with``."""
    return contextlib.closing(store.Store(str(path)))


@contextlib.contextmanager
def busy(path: str) -> abc.Iterator[None]:
    """Keep a file busy, as a process that was stopped there would."""
    store.Store(path).close()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute('BEGIN IMMEDIATE')
        yield
        other.execute('ROLLBACK')
