# SPDX-License-Identifier: Apache-2.0
"""What the objects have in common: a registry of their own, RPC, dates.

oslo.versionedobjects keeps one registry per process, by name. In a process
that also runs Nova a second ``ComputeNode`` there would replace Nova's, so
these classes are kept apart and look each other up here.
"""

from __future__ import annotations

from collections import abc
import functools
import typing

from oslo_utils import versionutils
from oslo_versionedobjects import base as ovo_base
from oslo_versionedobjects import exception as ovo_exception
from oslo_versionedobjects import fields

from compute_notify import context

P = typing.ParamSpec('P')
R = typing.TypeVar('R')
T = typing.TypeVar('T', bound='Object')

remotable = ovo_base.remotable


class VersionedObjectRegistry:
    """The classes of this library by name, used as o.vo's registry is."""

    _classes: dict[str, type[Object]] = {}

    @classmethod
    def register(cls, obj_cls: type[T]) -> type[T]:
        """Make the fields of a class work, and let RPC find it by name."""
        ovo_base.VersionedObjectRegistry.objectify(obj_cls)
        cls._classes[obj_cls.obj_name()] = obj_cls
        return obj_cls

    @classmethod
    def obj_classes(cls) -> dict[str, list[type[ovo_base.VersionedObject]]]:
        """Return the classes, as o.vo's ObjectVersionChecker takes them."""
        return {name: [obj_cls] for name, obj_cls in cls._classes.items()}

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Return the version of each class, by name."""
        return {name: obj_cls.VERSION
                for name, obj_cls in cls._classes.items()}

    @classmethod
    def find(cls, objname: str, objver: str) -> type[Object]:
        """Return the class that can hold an object of this version.

        :raises oslo_versionedobjects.exception.UnsupportedObjectError: no
            such class.
        :raises oslo_versionedobjects.exception.IncompatibleObjectVersion: of
            another major version, or newer than this release knows.
        """
        known = cls._classes.get(objname)
        if known is None:
            raise ovo_exception.UnsupportedObjectError(objtype=objname)
        if not versionutils.is_compatible(objver, known.VERSION):
            raise ovo_exception.IncompatibleObjectVersion(
                objname=objname, objver=objver, supported=known.VERSION)
        return known


def remotable_class(
    function: abc.Callable[typing.Concatenate[type[T], typing.Any, P], R],
) -> abc.Callable[typing.Concatenate[type[T], typing.Any, P], R]:
    """Let a class method run elsewhere when there is an indirection API.

    Goes below ``@classmethod``. o.vo's own looks the versions up in its
    registry, where these classes are not.
    """
    @functools.wraps(function)
    def wrapper(cls: type[T], context: typing.Any, /,
                *args: P.args, **kwargs: P.kwargs) -> R:
        if cls.indirection_api is None:
            return function(cls, context, *args, **kwargs)
        return typing.cast(R, cls.indirection_api.object_class_action_versions(
            context, cls.obj_name(), function.__name__,
            VersionedObjectRegistry.versions(), args, kwargs))

    # How o.vo's fingerprint recognises a remotable method.
    setattr(wrapper, 'remotable', True)
    setattr(wrapper, 'original_fn', function)
    return wrapper


@ovo_base.VersionedObjectRegistry.objectify
class Object(ovo_base.VersionedObject):
    """The base of the objects of this library."""

    OBJ_SERIAL_NAMESPACE = 'compute_notify_object'
    OBJ_PROJECT_NAMESPACE = 'compute_notify'

    @classmethod
    def obj_class_from_name(cls, objname: str,
                            objver: str) -> type[Object]:
        """Return the class of a serialized object, from our own registry.

        :raises oslo_versionedobjects.exception.UnsupportedObjectError: no
            such class.
        :raises oslo_versionedobjects.exception.IncompatibleObjectVersion: of
            another major version, or newer than this release knows.
        """
        return VersionedObjectRegistry.find(objname, objver)


class Persistent:
    """The fields of every stored object; deleted ones stay in the table."""

    fields = {
        'created_at': fields.DateTimeField(nullable=True),
        'updated_at': fields.DateTimeField(nullable=True),
        'deleted_at': fields.DateTimeField(nullable=True),
        'deleted': fields.BooleanField(default=False),
    }


class Serializer(ovo_base.VersionedObjectSerializer):
    """Carries these objects over oslo.messaging's RPC, both ways."""

    OBJ_BASE_CLASS = Object

    def serialize_context(self, ctxt: typing.Any) -> dict[str, typing.Any]:
        """Return the request context as a dictionary."""
        return dict(ctxt.to_dict())

    def deserialize_context(
            self, ctxt: dict[str, typing.Any]) -> context.RequestContext:
        """Return the request context that a dictionary came from."""
        return context.RequestContext.from_dict(ctxt)
