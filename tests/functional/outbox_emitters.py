# SPDX-License-Identifier: Apache-2.0
"""Processes that notify through one outbox, are killed, fork and take turns.

Run with ``python -m``, the name of a function below, the path of a
configuration file, a topic, and the arguments of the function. Each line that
is printed is JSON, and says which notifications were stored by whom: those
whose ``info()`` has returned.
"""

import sys

if sys.argv[1:2] == ['green']:
    import eventlet
    eventlet.monkey_patch()

from collections import abc
import gc
import json
import multiprocessing
import os
import random
import signal
import threading
import time
import typing

from oslo_config import cfg
import oslo_messaging

from compute_notify.outbox import store
from tests import outbox

#: What a process is given: the path of its configuration, and its topic.
Where = tuple[str, str]


def make_notifier(where: Where) -> oslo_messaging.Notifier:
    """Make a notifier, as a service does when it starts."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[where[0]], default_config_dirs=[])
    return oslo_messaging.Notifier(
        oslo_messaging.get_notification_transport(conf), 'test',
        topics=[where[1]])


def notify(notifier: oslo_messaging.Notifier, who: str, number: int) -> None:
    """Send one notification; its payload says who sent it as which."""
    notifier.info({}, 'outbox.test', {'who': who, 'number': number})


def say(**values: object) -> None:
    """Print a line."""
    print(json.dumps(values), flush=True)


def spool(where: Where) -> store.Store:
    """Open the outbox."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[where[0]], default_config_dirs=[])
    conf.register_opt(cfg.StrOpt('path'), group='compute_notify_outbox')
    return store.Store(conf.compute_notify_outbox.path)


def fork(job: abc.Callable[[], None]) -> int:
    """Do something in a child, which ends then without any clean-up."""
    pid = os.fork()
    if pid:
        return pid
    try:
        job()
    finally:
        os._exit(0)


def wait_until_sent(where: Where) -> None:
    """Wait until nothing waits in the outbox."""
    opened = spool(where)
    outbox.wait_until(lambda: not opened.waiting(), opened.status)
    opened.close()


def crash(where: Where, kills: str, seed: str) -> None:
    """Kill emitters at random; then send what is left with one more process.

    Every other emitter inherits a notifier that was made before the fork.
    """
    chance = random.Random(int(seed))
    notifier = make_notifier(where)
    for turn in range(int(kills)):
        readable, writable = os.pipe()

        def emit(turn: int = turn, writable: int = writable) -> None:
            mine = notifier if turn % 2 else make_notifier(where)
            number = 0
            while True:
                notify(mine, str(turn), number)
                number += 1
                os.write(writable, b'.')
        pid = fork(emit)
        os.close(writable)
        stored = 0
        if turn % 8:  # some are killed before they have stored anything
            stored = len(os.read(readable, 1))
        time.sleep(chance.uniform(0, 0.06))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        while chunk := os.read(readable, 65536):
            stored += len(chunk)
        os.close(readable)
        # And closed again, or no file would ever have to be recovered.
        opened = spool(where)
        say(who=str(turn), stored=stored, waiting=opened.waiting())
        opened.close()
    make_notifier(where)  # it resumes what was left, without a notification
    wait_until_sent(where)


def crowd(where: Where, how: str, processes: str, each: str) -> None:
    """Let processes notify at once; kill the one that relays in the middle.

    :param how: fork or spawn.
    """
    context: typing.Any = multiprocessing.get_context(how)
    counts = [context.Value('i', 0) for _ in range(int(processes))]
    end = context.Event()
    made = [context.Process(target=_one_of_crowd, daemon=True,
                            args=(where, str(who), int(each), count, end))
            for who, count in enumerate(counts)]
    for process in made:
        process.start()
    half = int(each) * len(made) // 2
    outbox.wait_until(lambda: sum(count.value for count in counts) > half,
                      lambda: [count.value for count in counts])
    relaying = spool(where).noted('relay')
    os.kill(relaying, signal.SIGKILL)
    outbox.wait_until(
        lambda: all(count.value == int(each) or process.pid == relaying
                    for process, count in zip(made, counts, strict=True)),
        lambda: [count.value for count in counts])
    wait_until_sent(where)
    for who, count in enumerate(counts):
        say(who=str(who), stored=count.value,
            killed=made[who].pid == relaying)
    say(relays=[relaying, spool(where).noted('relay')])
    end.set()


def _one_of_crowd(where: Where, who: str, each: int, count: typing.Any,
                  end: typing.Any) -> None:
    notifier = make_notifier(where)
    for number in range(each):
        notify(notifier, who, number)
        count.value = number + 1
    # Without a lock between the processes, which a kill could leave held.
    outbox.wait_until(end.is_set, lambda: 'no end')


def take_turns(where: Where, rounds: str) -> None:
    """Let two processes notify about one node, each after the other."""
    first, second = os.pipe(), os.pipe()

    def player(mine: tuple[int, int], others: tuple[int, int],
               parity: int) -> None:
        notifier = make_notifier(where)
        for number in range(parity, int(rounds), 2):
            os.read(mine[0], 1)
            notify(notifier, 'node', number)
            os.write(others[1], b'.')
        wait_until_sent(where)
    pids = [fork(lambda: player(first, second, 0)),
            fork(lambda: player(second, first, 1))]
    os.write(first[1], b'.')
    for pid in pids:
        os.waitpid(pid, 0)
    say(who='node', stored=int(rounds))


def midflight(where: Where, children: str, each: str) -> None:
    """Fork while a relay runs and threads notify; children notify too."""
    notifier = make_notifier(where)

    def emit(who: str) -> None:
        for number in range(int(each)):
            notify(notifier, who, number)
    threads = [threading.Thread(target=emit, args=(f'thread{n}',))
               for n in range(3)]
    for thread in threads:
        thread.start()
    pids = []
    for n in range(int(children)):
        before = spool(where).status().sent
        pids.append(fork(lambda n=n: emit(f'child{n}')))
        outbox.wait_until(
            lambda: spool(where).status().sent > before
            or not any(thread.is_alive() for thread in threads),
            lambda: spool(where).status())
    for thread in threads:
        thread.join()
    for pid in pids:
        os.waitpid(pid, 0)
    wait_until_sent(where)
    for who in [f'thread{n}' for n in range(3)] + [
            f'child{n}' for n in range(int(children))]:
        say(who=who, stored=int(each))


def green(where: Where, each: str) -> None:
    """Notify from greenthreads, in a parent and in a child forked later."""
    notifier = make_notifier(where)

    def emit(who: str) -> None:
        for number in range(int(each)):
            notify(notifier, who, number)
            eventlet.sleep(0)

    def all_of(prefix: str) -> None:
        pool = eventlet.GreenPool()
        for n in range(4):
            pool.spawn(emit, f'{prefix}{n}')
        pool.waitall()

    def child() -> None:
        # As oslo.service does in each of its children.
        eventlet.hubs.use_hub()
        gc.collect()
        all_of('child')

    all_of('before')
    pid = fork(child)
    all_of('parent')
    os.waitpid(pid, 0)
    wait_until_sent(where)
    for prefix in 'before', 'child', 'parent':
        for n in range(4):
            say(who=f'{prefix}{n}', stored=int(each))


def store_and_die(where: Where, count: str) -> None:
    """Store notifications and be killed."""
    notifier = make_notifier(where)
    for number in range(int(count)):
        notify(notifier, 'dead', number)
    say(who='dead', stored=int(count))
    os.kill(os.getpid(), signal.SIGKILL)


def only_start(where: Where) -> None:
    """Make a notifier, and wait until what others left is sent."""
    make_notifier(where)
    wait_until_sent(where)


if __name__ == '__main__':
    globals()[sys.argv[1]]((sys.argv[2], sys.argv[3]), *sys.argv[4:])
