# SPDX-License-Identifier: Apache-2.0
"""The field-diff hook around create, save and destroy, and its containment.

It belongs *inside* ``remotable``: with an indirection API the method body
runs in another process, and only where the row is written may it be heard.
"""

from __future__ import annotations

from collections import abc
import contextlib
import functools
import inspect
import traceback
import types
import typing

from oslo_log import log as logging

from compute_notify import change

LOG = logging.getLogger(__name__)

P = typing.ParamSpec('P')
R = typing.TypeVar('R')

#: Takes a row before and after a committed transaction.
Sink = abc.Callable[[change.Row | None, change.Row], None]


class Emitter(typing.Protocol):
    """What the hook needs of whoever sends."""

    @property
    def strict(self) -> bool:
        """Whether a failure to notify is raised, as tests want it."""

    @property
    def tracked(self) -> abc.Set[str]:
        """The fields whose change makes an update."""

    def is_on(self) -> bool:
        """Whether anything sent would go anywhere; cheap."""

    def emit(self, context: typing.Any, what: change.Change) -> None:
        """Build and send one notification."""


class Recorder(typing.Protocol):
    """What the hook needs of whoever sees rows being written."""

    def recording(self, sink: Sink, *, context: typing.Any,
                  tracked: abc.Set[str],
                  strict: bool) -> typing.ContextManager[object]:
        """Give the sink the rows that the block writes and commits."""


class contained:
    """A block whose failure is logged and goes no further.

    The only place in the package that stops an unexpected exception: a
    notification that cannot be sent must not change what happened to the
    node. One line is logged, with the event, the uuid, the exception's type
    and where it was raised, but without its text, which may quote a
    transport URL or a value.

    :param strict: let the exception through, as tests want it.
    """

    __slots__ = ('strict', 'event', 'uuid')

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.event = 'compute_node notification'
        self.uuid: object = 'unknown'

    def __enter__(self) -> contained:
        return self

    def __exit__(self, exc_type: type[BaseException] | None,
                 exc: BaseException | None,
                 tb: types.TracebackType | None) -> bool:
        if exc is None or self.strict or not isinstance(exc, Exception):
            return False
        with contextlib.suppress(Exception):  # a broken handler or filter
            self._log(exc_type, tb)
        return True

    def _log(self, exc_type: type[BaseException] | None,
             tb: types.TracebackType | None) -> None:
        frames = traceback.extract_tb(tb)
        where = f'{frames[-1].filename}:{frames[-1].lineno}' if frames else '?'
        LOG.error('%(event)s for compute node %(uuid)s was not sent; the '
                  'operation itself is not affected: %(type)s at %(where)s',
                  {'event': self.event, 'uuid': self.uuid,
                   'type': getattr(exc_type, '__name__', exc_type),
                   'where': where})


def announcing(
    recorder: Recorder,
    current_emitter: abc.Callable[[], Emitter | None],
) -> abc.Callable[[abc.Callable[P, R]], abc.Callable[P, R]]:
    """Decorate a method of a compute node so that its changes are announced.

    What is announced is what the method wrote and committed. Inside an outer
    transaction the announcement waits for that one's commit. The method's
    result, its exception and the node itself are left as they are.

    :param recorder: sees the rows that are written.
    :param current_emitter: gives whoever sends, asked at each call, or None
        while there is none.
    """
    def decorate(method: abc.Callable[P, R]) -> abc.Callable[P, R]:
        @functools.wraps(method)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            emitter = None
            with contained():
                emitter = current_emitter()
                if emitter is not None and not emitter.is_on():
                    emitter = None
            if emitter is None:
                return method(*args, **kwargs)
            context = getattr(args[0], '_context', None)
            sink = functools.partial(announce, emitter, context)
            with recorder.recording(sink, context=context,
                                    tracked=emitter.tracked,
                                    strict=emitter.strict):
                return method(*args, **kwargs)

        # o.vo's fingerprint reads the signature without following
        # __wrapped__, so the wrapper has to show the method's own.
        wrapper.__signature__ = (  # type: ignore[attr-defined]
            inspect.signature(method))
        return wrapper
    return decorate


def announce(emitter: Emitter, context: typing.Any,
             before: change.Row | None, after: change.Row) -> None:
    """Send what the difference between two stored rows calls for, if anything.

    :param emitter: who sends.
    :param context: the request context of the call that wrote.
    :param before: the row before the transaction, None where there was none.
    :param after: the row as committed.
    """
    with contained(strict=emitter.strict) as attempt:
        attempt.uuid = after.get('uuid')
        what = change.between(before, after, emitter.tracked)
        if what is not None:
            attempt.event = what.event_type
            emitter.emit(context, what)
