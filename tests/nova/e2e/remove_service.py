# SPDX-License-Identifier: Apache-2.0
"""What Nova's API does to a nova-compute service that is deleted."""

import sys

from nova import config
from nova import context
from nova import objects


def main(host: str, *arguments: str) -> None:
    """Destroy a host's service, configured by Nova's own arguments."""
    config.parse_args(['remove-service', *arguments])
    objects.register_all()
    objects.Service.get_by_compute_host(context.get_admin_context(),
                                        host).destroy()


if __name__ == '__main__':
    main(*sys.argv[1:])
