# SPDX-License-Identifier: Apache-2.0
"""The façade: switch the announcing of compute nodes on and off.

Importing this package loads nothing but the standard library, so that it can
stand in any process without disturbing it: oslo.messaging, for one, picks a
threading model when it is imported.
"""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from oslo_config import cfg

__all__ = ['setup', 'teardown']

__version__ = '0.1.0'


def setup(conf: cfg.ConfigOpts) -> None:
    """Read the options, make the notifier and point the objects at a store.

    Nothing is connected yet: the database is reached by the first call that
    reads or writes a node, the message broker by the first notification.
    Calling it again replaces what the earlier call made.

    :param conf: the service's configuration, already parsed. The options of
        this library are registered on it; nothing is registered elsewhere.
    :raises compute_notify.exception.InvalidOption: an option names something
        that does not exist (a payload field, a transport) or is left empty.
    """
    # Imported here and not above, to keep the import of the package light.
    from compute_notify.db import api
    from compute_notify.db import engine
    from compute_notify import emitter
    database = engine.Database(conf)  # may refuse, so before all else
    emitter.setup(conf)
    api.configure(database)


def teardown() -> None:
    """Close the notification transport and the database connections.

    Objects stay usable afterwards but announce nothing, and have no store
    until the next :func:`setup`. Calling it twice is calling it once.
    """
    from compute_notify.db import api
    from compute_notify import emitter
    try:
        emitter.teardown()
    finally:
        api.dispose()
