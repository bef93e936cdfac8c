# SPDX-License-Identifier: Apache-2.0
"""Processes whose parents die, that die early, or that keep a copied hub.

Run with ``python -m`` as :mod:`outbox_emitters`, with these functions.
"""

import sys

if sys.argv[1:2] == ['keep_hub']:
    import eventlet
    eventlet.monkey_patch()

import os
import pathlib
import random
import signal
import threading
import time

from oslo_config import cfg

from compute_notify.outbox import message
from compute_notify.outbox import sender
from compute_notify.outbox import settings
from tests.functional import outbox_emitters


def orphan(where: outbox_emitters.Where, count: str) -> None:
    """Let a child store on after its parent was killed.

    Between two notifications this process opens the outbox and closes it, as
    ``compute-notify relay --status`` does.
    """
    go, done = os.pipe(), os.pipe()

    def child_of(notifier: object) -> None:
        os.close(go[1])
        for number in range(int(count)):
            os.read(go[0], 1)
            outbox_emitters.notify(notifier, 'child', number)
            os.write(done[1], b'.')
        os.read(go[0], 1)  # until the end, for it may relay

    def parent() -> None:
        notifier = outbox_emitters.make_notifier(where)
        outbox_emitters.notify(notifier, 'parent', 0)
        outbox_emitters.fork(lambda: child_of(notifier))
        signal.pause()
    pid = outbox_emitters.fork(parent)
    os.close(done[1])
    for number in range(int(count)):
        os.write(go[1], b'.')
        assert os.read(done[0], 1), 'the child has failed'
        if not number:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        opened = outbox_emitters.spool(where)
        status = opened.status()
        opened.close()
    outbox_emitters.say(waiting=status.waiting, sent=status.sent)


def heir(where: outbox_emitters.Where, count: str) -> None:
    """Fork a relay that is busy, kill it, and let the child go on."""
    stored, done, end = os.pipe(), os.pipe(), os.pipe()

    def flat_out(notifier: object) -> None:
        for number in range(10 ** 9):
            outbox_emitters.notify(notifier, 'parent', number)
            os.write(stored[1], b'.')

    def child_of(notifier: object) -> None:
        os.close(end[1])
        for number in range(int(count)):
            outbox_emitters.notify(notifier, 'child', number)
        os.write(done[1], b'.')
        os.read(end[0], 1)

    def parent() -> None:
        notifier = outbox_emitters.make_notifier(where)
        threading.Thread(target=flat_out, args=(notifier,),
                         daemon=True).start()
        outbox_emitters.outbox.wait_until(_sends(where), lambda: 'not sent')
        outbox_emitters.fork(lambda: child_of(notifier))
        signal.pause()
    pid = outbox_emitters.fork(parent)
    for writable in stored[1], done[1]:
        os.close(writable)
    # Not before: the parent would not have been the one that relayed.
    assert os.read(done[0], 1), 'the child has failed'
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    told = _count_written(stored[0])
    outbox_emitters.wait_until_sent(where)
    outbox_emitters.say(who='parent', stored=told, relay=pid)
    outbox_emitters.say(who='child', stored=int(count))


def _count_written(readable: int) -> int:
    """Return how much was written into a pipe whose other end is open."""
    os.set_blocking(readable, False)
    count = 0
    try:
        while chunk := os.read(readable, 65536):
            count += len(chunk)
    except BlockingIOError:
        pass
    return count


def _sends(where: outbox_emitters.Where):
    def sends():
        opened = outbox_emitters.spool(where)
        try:
            return opened.status().sent > 0
        finally:
            opened.close()
    return sends


def newborn(where: outbox_emitters.Where, kills: str, seed: str) -> None:
    """Kill emitters while they make the file; the next one uses it."""
    chance = random.Random(int(seed))
    outbox_emitters.make_notifier(where)  # imports everything
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[where[0]], default_config_dirs=[])
    path = pathlib.Path(settings.Settings.from_conf(conf).path)
    # What it takes to live to the first notification.
    started = time.monotonic()
    _live_and_die(where, 0)
    longest = 1.5 * (time.monotonic() - started)
    for _ in range(int(kills)):
        for found in path.parent.glob(f'{path.name}*'):
            found.unlink()
        stored = _live_and_die(
            where, 10 ** 9, after=chance.uniform(longest / 3, longest))
        _live_and_die(where, 1)
        opened = outbox_emitters.spool(where)
        outbox_emitters.say(
            stored=stored, waiting=opened.waiting(),
            files=sorted(one.name for one in path.parent.iterdir()))
        opened.close()


def _live_and_die(where: outbox_emitters.Where, count: int,
                  after: float | None = None) -> int:
    """Notify in a child, killed after some time; return how often it did."""
    readable, writable = os.pipe()

    def life() -> None:
        notifier = outbox_emitters.make_notifier(where)
        for number in range(count):
            outbox_emitters.notify(notifier, 'newborn', number)
            os.write(writable, b'.')
    pid = outbox_emitters.fork(life)
    os.close(writable)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    stored = 0
    while chunk := os.read(readable, 65536):
        stored += len(chunk)
    os.close(readable)
    os.waitpid(pid, 0)
    return stored


class _Sender(sender.Sender):
    """A broker that says which process sends what to it."""

    def send(self, messages, confirmed: list[message.Message],
             go_on: object = None) -> None:
        """Take messages."""
        for one in messages:
            outbox_emitters.say(sender=os.getpid())
            confirmed.append(one)


def keep_hub(where: outbox_emitters.Where) -> None:
    """Fork a relay's greenthread, and block its own process for a while."""
    sender.Sender = _Sender
    notifier = outbox_emitters.make_notifier(where)
    outbox_emitters.notify(notifier, 'parent', 0)
    outbox_emitters.wait_until_sent(where)

    def child() -> None:
        outbox_emitters.notify(notifier, 'child', 0)
        eventlet.sleep(1)  # longer than a relay rests
    pid = outbox_emitters.fork(child)
    os.waitpid(pid, 0)  # blocks every greenthread of this process
    outbox_emitters.wait_until_sent(where)
    outbox_emitters.say(parent=os.getpid())
    os._exit(0)


if __name__ == '__main__':
    globals()[sys.argv[1]]((sys.argv[2], sys.argv[3]), *sys.argv[4:])
