# SPDX-License-Identifier: Apache-2.0
"""The hook on a real Nova: install it, take it off, ask whether it is there.

Only this room imports Nova, and nothing in this package imports this room.
Operators do not call it either: naming the notification driver
``compute_notify`` in nova.conf does, see :mod:`compute_notify.nova.activate`.
"""

from compute_notify.nova.patch import install
from compute_notify.nova.patch import is_installed
from compute_notify.nova.patch import uninstall

__all__ = ['install', 'is_installed', 'uninstall']
