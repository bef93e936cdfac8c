# SPDX-License-Identifier: Apache-2.0
"""Open the outbox's file: private, of the known format, or moved aside.

The standard library's sqlite3 in WAL mode, because many processes may write
one file, what is written survives kill -9, and an append costs tens of
microseconds. The queues on PyPI that were tried sync the disk three times for
each message, or give one message to two processes.
"""

from __future__ import annotations

from collections import abc
import contextlib
import fcntl
import logging
import os
import sqlite3
import stat
import time

from compute_notify import exception

#: Of the layout below; a file with a higher one is another release's.
FORMAT = 1
#: Marks an SQLite file as an outbox.
APPLICATION_ID = 0x636E6F62

#: Seconds to wait for another process that is at the file. A fixed bound,
#: because callers of notify() wait with us.
PATIENCE = 0.15

_LAYOUT = f"""
BEGIN IMMEDIATE;
CREATE TABLE message (
    -- AUTOINCREMENT: an id is never used twice, so that what the relay sent
    -- is what it removes.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created REAL NOT NULL,
    exchange TEXT,
    topic TEXT NOT NULL,
    body TEXT NOT NULL);
CREATE TABLE failed (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created REAL NOT NULL,
    exchange TEXT,
    topic TEXT NOT NULL,
    body TEXT NOT NULL,
    sendable INTEGER NOT NULL,
    error TEXT NOT NULL,
    tries INTEGER NOT NULL,
    failed REAL NOT NULL);
CREATE TABLE figure (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO figure VALUES ('name', hex(randomblob(16)));
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""


class _NotOurs(Exception):
    """The file is corrupt, or a newer release's."""


def corrupt(exc: BaseException) -> bool:
    """Tell whether an error means that the file is no database any more."""
    code = getattr(exc, 'sqlite_errorcode', None)
    return code is not None and code & 0xff in (
        sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another that takes its place."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


#: Says something, as a logger's method ``log`` does.
Say = abc.Callable[[int, str, abc.Mapping[str, object]], None]


def connect(path: str, *, synchronous: str, checkpoint: int, make: bool,
            say: Say) -> sqlite3.Connection:
    """Open the file.

    :param path: where it is.
    :param synchronous: NORMAL or FULL, as SQLite means them.
    :param checkpoint: after how many pages in the log a commit of this
        connection moves them to the file.
    :param make: make it where there is none, and move one aside that is
        corrupt or of a newer format. That is for those who store: a command
        of another release or another user must not, and changes nothing
        about a file that is no outbox.
    :param say: told what an operator should know.
    :raises compute_notify.exception.OutboxMissing: there is none.
    :raises compute_notify.exception.OutboxUnusable: it belongs to somebody
        else, or is no outbox but a database of something else.
    :raises OSError: there is no room, no permission, no such directory.
    :raises sqlite3.Error: SQLite cannot use it.
    """
    if make:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    elif identity(path) is None:
        raise exception.OutboxMissing(path=path)
    with _alone(path) if make else contextlib.nullcontext():
        for last in (False, True):
            _secure(path, make=make, say=say)
            connection = sqlite3.connect(
                path, timeout=PATIENCE, isolation_level=None,
                check_same_thread=False)
            try:
                _prepare(connection, path)
                connection.execute(f'PRAGMA synchronous = {synchronous}')
                connection.execute(f'PRAGMA wal_autocheckpoint = {checkpoint}')
                # From here on store.py waits, in steps finer than SQLite's.
                connection.execute('PRAGMA busy_timeout = 0')
                return connection
            except (sqlite3.Error, _NotOurs) as exc:
                connection.close()
                if not (isinstance(exc, _NotOurs) or corrupt(exc)):
                    raise
                if last or not make:
                    raise exception.OutboxUnusable(
                        path=path, reason=exc) from exc
                _move_aside(path, exc, say)
    raise AssertionError('the second round returns or raises')


def beside(path: str, suffix: str) -> str:
    """Make a file for a lock beside another; return its path.

    :raises OSError: it cannot be made.
    """
    lock = f'{path}.{suffix}'
    _make(lock)
    return lock


def move_aside_corrupt(path: str, seen: tuple[int, int] | None,
                       why: sqlite3.Error, say: Say) -> None:
    """Move a file aside that turned out to be corrupt while it was in use.

    :param path: where it is.
    :param seen: its :func:`identity`; another process may have been faster.
    :param why: what SQLite said.
    :param say: told what an operator should know.
    """
    with _alone(path):
        if identity(path) == seen:
            _move_aside(path, why, say)


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    application = connection.execute('PRAGMA application_id').fetchone()[0]
    version = connection.execute('PRAGMA user_version').fetchone()[0]
    tables = connection.execute(
        'SELECT count(*) FROM sqlite_master').fetchone()[0]
    if not (application or version or tables):
        connection.execute('PRAGMA journal_mode = WAL')
        connection.executescript(_LAYOUT)
    elif application != APPLICATION_ID:
        raise exception.OutboxUnusable(
            path=path, reason='it is an SQLite database of something else')
    elif version != FORMAT:
        raise _NotOurs(f'its format is {version} and this release knows '
                       f'{FORMAT}')
    # A first look inside, while a corrupt file can still make way.
    name_of(connection)


def name_of(connection: sqlite3.Connection) -> str:
    """Return what differs from file to file, of the same path too."""
    row: tuple[str] | None = connection.execute(
        "SELECT value FROM figure WHERE name = 'name'").fetchone()
    if row is None:
        raise _NotOurs('it has no name')
    return row[0]


def _secure(path: str, *, make: bool, say: Say) -> None:
    """Make the file if need be; see that it is ours and nobody else reads it.

    SQLite gives the files it keeps beside it the same mode and owner.
    """
    if make:
        _make(path)
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise exception.OutboxUnusable(path=path, reason='it is no file')
    # Root looks after the files of its services.
    if os.geteuid() not in (found.st_uid, 0):
        raise exception.OutboxUnusable(
            path=path, reason=f'it belongs to user {found.st_uid} and this '
                              f'process runs as {os.geteuid()}')
    if make and stat.S_IMODE(found.st_mode) != 0o600:
        os.chmod(path, 0o600)
        say(logging.WARNING, 'Outbox %(path)s had mode %(mode)o; it is 600 '
            'now.', {'path': path, 'mode': stat.S_IMODE(found.st_mode)})


def _make(path: str) -> None:
    """Make a file that only its owner can read, unless it is there.

    What root makes belongs to whom the directory does: a command that root
    runs first must not shut the service out.
    """
    try:
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        return
    try:
        if os.geteuid() == 0:
            owner = os.stat(os.path.dirname(path))
            os.fchown(made, owner.st_uid, owner.st_gid)
    finally:
        os.close(made)


def _move_aside(path: str, why: Exception, say: Say) -> None:
    aside = f'{path}.aside-{time.strftime("%Y%m%dT%H%M%S")}'
    number = 1
    while os.path.exists(aside):
        number += 1
        aside = f'{aside.partition("~")[0]}~{number}'
    for suffix in ('', '-wal', '-shm'):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + suffix, aside + suffix)
    say(logging.ERROR, 'Outbox %(path)s cannot be used: %(why)s. It is '
        '%(aside)s now, with the notifications in it, and a new one takes its '
        'place.', {'path': path, 'why': why, 'aside': aside})


@contextlib.contextmanager
def _alone(path: str) -> abc.Iterator[None]:
    """Keep other processes, and threads, from making or moving the file.

    flock, and not the lock that elects the relay: it also holds between two
    threads of a process.
    """
    deadline = time.monotonic() + PATIENCE
    lock = os.open(beside(path, 'lock'), os.O_RDWR)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
        yield
    finally:
        os.close(lock)
