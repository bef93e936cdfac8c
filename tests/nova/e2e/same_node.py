# SPDX-License-Identifier: Apache-2.0
"""nova-compute with a fake node whose uuid is given.

Nova's fake driver makes up another one in each process, where every other
driver keeps the node's.
"""

import sys

from nova.cmd import compute
from oslo_utils.fixture import uuidsentinel


def main() -> None:
    """Run nova-compute; node and uuid come before its own arguments."""
    node, uuid = sys.argv[1:3]
    del sys.argv[1:3]
    setattr(uuidsentinel, f'node_{node}', uuid)
    compute.main()


if __name__ == '__main__':
    main()
