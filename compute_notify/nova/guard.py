# SPDX-License-Identifier: Apache-2.0
"""Whether this Nova is one that the hook knows: its version and its shape."""

from __future__ import annotations

from collections import abc
from importlib import metadata
import inspect

from nova.db.main import models
from nova import objects
from nova.objects import compute_node
from nova.objects import service
from nova import rpc

from compute_notify import exception
from compute_notify import payload

#: The first release that works, and the first that has not been tried.
SUPPORTED = (31, 35)

#: The methods that are wrapped, by class.
METHODS: dict[type, tuple[str, ...]] = {
    compute_node.ComputeNode: ('create', 'save', 'destroy'),
    service.Service: ('destroy',),
}


def check(methods: abc.Iterable[tuple[type, str]]) -> None:
    """Refuse a Nova that the hook does not know.

    :param methods: those that are about to be wrapped.
    :raises compute_notify.exception.UnsupportedNova: naming all that differs.
    """
    conflicts = [*_version_conflicts(), *_shape_conflicts()]
    for owner, name in methods:
        conflicts += _method_conflicts(owner, name)
    if conflicts:
        raise exception.UnsupportedNova(reason='; '.join(conflicts))


def _version_conflicts() -> abc.Iterator[str]:
    found = metadata.version('nova')
    major = found.partition('.')[0]
    if not (major.isdigit() and int(major) in range(*SUPPORTED)):
        yield (f'Nova {found} is installed, supported are {SUPPORTED[0]} and '
               f'newer, below {SUPPORTED[1]}')


def _method_conflicts(owner: type, name: str) -> abc.Iterator[str]:
    method = owner.__dict__.get(name)
    original = getattr(method, 'original_fn', None)
    if not getattr(method, 'remotable', False) or original is None:
        yield f'{owner.__name__}.{name} is not a remotable method'
    elif next(iter(inspect.signature(original).parameters), None) != 'self':
        yield f'{owner.__name__}.{name} does not take self first'
    elif getattr(method, '__wrapped__', None) is not original:
        # A wrapper on top, with the attributes of what it wraps; rebuilding
        # the method from the original would bypass it.
        yield f'{owner.__name__}.{name} is wrapped by something else'


def _shape_conflicts() -> abc.Iterator[str]:
    if getattr(objects, 'ComputeNode', None) not in (
            None, compute_node.ComputeNode):
        yield 'nova.objects.ComputeNode is not the class of its own module'
    columns = models.ComputeNode.__table__.columns.keys()
    missing = sorted({*payload.PAYLOAD_FIELDS, 'deleted'} - set(columns))
    if missing:
        yield f'the table of compute nodes has no {", ".join(missing)}'
    if not hasattr(rpc, 'NOTIFIER'):
        yield 'nova.rpc has no NOTIFIER'
