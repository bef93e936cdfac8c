# SPDX-License-Identifier: Apache-2.0
"""Placement's API, served by the standard library until it is killed."""

import socketserver
from wsgiref import simple_server

from placement import wsgi


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True


def main() -> None:
    """Serve what OS_PLACEMENT_CONFIG_DIR configures on a free port."""
    with simple_server.make_server('127.0.0.1', 0, wsgi.init_application(),
                                   server_class=_Server) as server:
        print(f'Serving http://127.0.0.1:{server.server_port}', flush=True)
        server.serve_forever()


if __name__ == '__main__':
    main()
