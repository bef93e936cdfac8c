# SPDX-License-Identifier: Apache-2.0
"""The transaction that a request context has open, if it has one."""

from __future__ import annotations

import typing

from sqlalchemy import orm


def session_of(context: typing.Any) -> orm.Session | None:
    """Return the session of the transaction open in this thread, or None.

    oslo.db's enginefacade keeps it on the context, whatever its class. Its
    public properties say that there is none by raising an error whose text
    has the whole context in it, which costs more than the hook.

    :param context: a request context.
    """
    by_thread = getattr(context, '_enginefacade_context', None)
    current = getattr(by_thread, 'current', None)
    return typing.cast('orm.Session | None',
                       getattr(current, 'session', None))
