# SPDX-License-Identifier: Apache-2.0
"""Receive notifications in a process of its own, and report each of them.

It is a notification listener of oslo.messaging's, with one thread, so that it
keeps the order of what arrives. The end of stdin ends it.
"""

import argparse
from collections import abc
import json
import logging
import sys
import time
import typing

from oslo_config import cfg
import oslo_messaging


class Endpoint:
    """Reports."""

    def info(self, ctxt: dict[str, typing.Any], publisher_id: str,
             event_type: str, payload: dict[str, typing.Any],
             metadata: dict[str, typing.Any]) -> None:
        """Report a notification; called by oslo.messaging."""
        print(json.dumps({'topic': publisher_id, 'seq': payload['seq'],
                          'message_id': metadata['message_id'],
                          'at': time.monotonic()}), flush=True)


def main(argv: abc.Sequence[str] | None = None) -> None:
    """Listen until the end of stdin."""
    parser = argparse.ArgumentParser(prog='python -m tests.faults.listener',
                                     description=__doc__)
    parser.add_argument('config', help='the configuration file')
    parser.add_argument('topic', nargs='+')
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.WARNING,
                        format='%(asctime)s %(levelname)s %(message)s')
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[options.config], default_config_dirs=[])
    listener = oslo_messaging.get_notification_listener(
        oslo_messaging.get_notification_transport(conf),
        [oslo_messaging.Target(topic=topic) for topic in options.topic],
        [Endpoint()], executor='threading')
    listener.start()
    print(json.dumps({'ready': True}), flush=True)
    sys.stdin.read()
    listener.stop()
    listener.wait()


if __name__ == '__main__':
    main()
