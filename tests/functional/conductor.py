# SPDX-License-Identifier: Apache-2.0
"""A conductor in a process of its own, until its standard input ends.

It is given a configuration file and the topic to serve.
"""

import sys

from oslo_config import cfg
import oslo_messaging

import compute_notify
from compute_notify.objects import indirection


def main(path: str, topic: str) -> None:
    """Serve the objects' methods."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[path], default_config_dirs=[])
    compute_notify.setup(conf)
    transport = oslo_messaging.get_rpc_transport(
        conf, allowed_remote_exmods=['compute_notify.exception'])
    server = indirection.get_server(transport, 'conductor', topic,
                                    executor='threading')
    server.start()
    print('ready', flush=True)
    sys.stdin.read()
    server.stop()
    server.wait()
    transport.cleanup()
    compute_notify.teardown()


if __name__ == '__main__':
    main(*sys.argv[1:])
