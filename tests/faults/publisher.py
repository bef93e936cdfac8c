# SPDX-License-Identifier: Apache-2.0
"""Send notifications in a process of its own, and report each call.

The orders come on stdin, one a line: ``pace SECONDS`` calls once in so many
seconds, until ``stop``; ``send COUNT`` calls as fast as it goes. The end of
stdin ends the process. Until then a driver's threads go on.
"""

import argparse
from collections import abc
import json
import logging
import os
import queue
import sys
import threading
import time

from oslo_config import cfg
import oslo_messaging

#: With it a payload is about as long as that of a compute node.
_PADDING = 'x' * 870

#: Seconds from the end of stdin to that of the process, whatever blocks it.
_PATIENCE = 30


def report(**values: object) -> None:
    """Write a report."""
    print(json.dumps(values), flush=True)


class Publisher:
    """Calls a notifier.

    :param notifier: it.
    """

    def __init__(self, notifier: oslo_messaging.Notifier) -> None:
        self._notifier = notifier
        self._orders: queue.Queue[list[str]] = queue.Queue()
        self._stop = threading.Event()
        self._seq = 0

    def run(self) -> None:
        """Obey until the end of stdin."""
        threading.Thread(target=self._listen, daemon=True).start()
        report(ready=True)
        while order := self._orders.get():
            match order:
                case ['pace', seconds]:
                    self._pace(float(seconds))
                case ['send', count]:
                    self._send(int(count))

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == 'stop':
                self._stop.set()
            else:
                self._orders.put(line.split())
        self._stop.set()
        self._orders.put([])
        # Nothing else ends a call that the broker blocks.
        timer = threading.Timer(_PATIENCE, os._exit, [1])
        timer.daemon = True
        timer.start()

    def _pace(self, interval: float) -> None:
        """Call once in an interval; a call that takes longer delays others."""
        due = time.monotonic()
        while not self._stop.wait(max(0, due - time.monotonic())):
            start = time.monotonic()
            report(begun=self._seq, start=start)
            start = time.monotonic()
            self._call()
            took = time.monotonic() - start
            report(done=self._seq - 1, start=start, took=took)
            due = max(due + interval, time.monotonic())
        report(stopped=self._seq)
        self._stop.clear()

    def _send(self, count: int) -> None:
        first, start = self._seq, time.monotonic()
        for _ in range(count):
            self._call()
        report(sent=count, first=first, took=time.monotonic() - start)

    def _call(self) -> None:
        seq = self._seq
        self._seq += 1
        self._notifier.info({}, 'fault.test', {'seq': seq, 'pad': _PADDING})


def main(argv: abc.Sequence[str] | None = None) -> None:
    """Do as ordered."""
    parser = argparse.ArgumentParser(prog='python -m tests.faults.publisher',
                                     description=__doc__)
    parser.add_argument('config', help='the configuration file')
    parser.add_argument('driver')
    parser.add_argument('topic', help='also the publisher_id')
    parser.add_argument('retry', type=int)
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.WARNING,
                        format='%(asctime)s %(levelname)s %(message)s')
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[options.config], default_config_dirs=[])
    transport = oslo_messaging.get_notification_transport(conf)
    Publisher(oslo_messaging.Notifier(
        transport, options.topic, driver=options.driver,
        topics=[options.topic], retry=options.retry)).run()


if __name__ == '__main__':
    main()
