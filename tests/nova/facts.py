# SPDX-License-Identifier: Apache-2.0
"""What is to be seen of Nova's objects from outside: equal before and after.

Nova's modules are imported inside the functions, once it is patched or not.
"""

import inspect
import typing

#: The methods that the hook wraps.
METHODS = (('ComputeNode', 'create'), ('ComputeNode', 'save'),
           ('ComputeNode', 'destroy'), ('Service', 'destroy'))


def entries() -> dict[tuple[str, str], typing.Any]:
    """Return what the classes' own dictionaries hold for each method."""
    from nova import objects
    return {(owner, name): vars(getattr(objects, owner)).get(name)
            for owner, name in METHODS}


def facts() -> dict[str, typing.Any]:
    """Return the registry, the fingerprints and how the methods look."""
    from nova.objects import base
    from oslo_versionedobjects import fixture
    classes = base.NovaObjectRegistry.obj_classes()
    checker = fixture.ObjectVersionChecker(classes)
    looks: dict[str, typing.Any] = {
        'registry': {name: list(found) for name, found in classes.items()},
        'fingerprints': {name: checker.get_hashes()[name]
                         for name in ('ComputeNode', 'Service')},
    }
    for key, method in entries().items():
        looks['.'.join(key)] = _look(method)
    return looks


def _look(method: typing.Any) -> tuple[typing.Any, ...]:
    return (str(inspect.signature(method)),
            inspect.signature(method.original_fn),
            inspect.getfullargspec(inspect.unwrap(method)),
            method.remotable, method.__name__, method.__qualname__,
            method.__module__, method.__doc__, type(method))
