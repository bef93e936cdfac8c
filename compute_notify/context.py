# SPDX-License-Identifier: Apache-2.0
"""The request context: who asks, and whether deleted nodes are seen."""

from __future__ import annotations

import typing

from oslo_context import context

READ_DELETED = ('no', 'yes', 'only')


class RequestContext(context.RequestContext):
    """A request context that can also read deleted nodes.

    Any oslo.context request context works with the objects; this one adds
    the switch that Nova's has.

    :param read_deleted: 'no' sees live nodes, 'yes' all of them, 'only' the
        deleted ones.
    :raises ValueError: another value for read_deleted.
    """

    FROM_DICT_EXTRA_KEYS = ['read_deleted']

    def __init__(self, *args: typing.Any, read_deleted: str = 'no',
                 **kwargs: typing.Any) -> None:
        super().__init__(*args, **kwargs)
        if read_deleted not in READ_DELETED:
            raise ValueError(
                f'read_deleted can only be one of {READ_DELETED}, '
                f'not {read_deleted!r}')
        self.read_deleted = read_deleted

    def to_dict(self) -> dict[str, typing.Any]:
        """Return the attributes that cross RPC."""
        values = super().to_dict()
        values['read_deleted'] = self.read_deleted
        return values


def get_admin_context(read_deleted: str = 'no') -> RequestContext:
    """Return a context for work that no request asked for.

    :param read_deleted: as for :class:`RequestContext`.
    """
    return RequestContext(is_admin=True, read_deleted=read_deleted,
                          overwrite=False)
