# SPDX-License-Identifier: Apache-2.0
"""The options of an outbox, read once."""

from __future__ import annotations

import dataclasses

from oslo_config import cfg

from compute_notify import opts


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the options of :data:`opts.OUTBOX_GROUP` say.

    ``synchronous`` is SQLite's word for ``durability``; the rest is named,
    and means, as in :mod:`compute_notify.opts`.
    """

    path: str
    max_messages: int
    max_age: int
    drop_newest: bool
    synchronous: str
    memory_messages: int
    max_tries: int
    status_interval: int
    relay: bool

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Settings:
        """Read the options.

        :raises compute_notify.exception.InvalidOption: one has a value that
            it cannot have.
        """
        values = opts.outbox_options(conf)
        return cls(
            drop_newest=values.pop('drop') == 'newest',
            synchronous={'process': 'NORMAL', 'power': 'FULL'}[
                values.pop('durability')],
            **values)
