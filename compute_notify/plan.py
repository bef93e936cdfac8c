# SPDX-License-Identifier: Apache-2.0
"""How a payload is filled and written out, worked out once per class.

oslo.versionedobjects works it out for every field of every object. Its own
fields still do the coercing and the serializing; a test compares the two ways
over values of every kind.
"""

from __future__ import annotations

from collections import abc
import dataclasses
import functools
import operator
import typing

from oslo_versionedobjects import base
from oslo_versionedobjects import fields

#: The values that a type of field takes as they are: coercing these very
#: types changes nothing, and costs most of the time that a payload takes.
_KEPT: dict[type, type] = {fields.Integer: int, fields.String: str}

#: The fields that parse each value, although the same ones come again and
#: again.
_COSTLY = (fields.UUIDField, fields.IPAddressField)


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """How one field is filled from its source.

    :ivar attribute: where o.vo keeps the field's value.
    :ivar source: the name of the source object.
    :ivar key: the field of the source.
    :ivar get: reads it.
    :ivar required: whether it can neither be null nor has a default.
    """

    name: str
    attribute: str
    source: str
    key: str
    get: abc.Callable[[typing.Any], typing.Any]
    required: bool
    field: fields.Field[typing.Any]
    kept: type | None

    def coerce(self, payload: base.VersionedObject,
               value: typing.Any) -> typing.Any:
        """Return what the field makes of a value.

        :raises ValueError: o.vo's own, for a value that does not fit.
        """
        if type(value) is self.kept:
            return value
        if type(self.field) in _COSTLY and type(value) is str:
            return _coerced(self.field, value)
        return self.field.coerce(payload, self.name, value)


@dataclasses.dataclass(frozen=True, slots=True)
class Primitive:
    """How one field is written out.

    :ivar attribute: where o.vo keeps the field's value.
    :ivar convert: the field's own method; None where a value is its own
        primitive.
    """

    name: str
    attribute: str
    convert: abc.Callable[..., typing.Any] | None


@functools.lru_cache(maxsize=16384)
def _coerced(field: fields.Field[typing.Any], text: str) -> typing.Any:
    """Return what a field makes of a text; each node has its own few."""
    return field.coerce(None, 'text', text)


def steps(cls: type[typing.Any]) -> tuple[Step, ...]:
    """Return how the fields that a class's SCHEMA names are filled."""
    return tuple(
        Step(name=name, attribute=base._get_attrname(name), source=source,
             key=key, get=operator.attrgetter(key), field=field,
             required=(not field.nullable
                       and field.default is fields.UnspecifiedDefault),
             kept=_KEPT.get(type(field._type)))
        for name, (source, key) in cls.SCHEMA.items()
        for field in (cls.fields[name],))


def primitives(cls: type[base.VersionedObject]) -> tuple[Primitive, ...]:
    """Return how the fields of a class are written out."""
    return tuple(
        Primitive(name=name, attribute=base._get_attrname(name),
                  convert=(None if type(field._type).to_primitive
                           is fields.FieldType.to_primitive
                           else field.to_primitive))
        for name, field in cls.fields.items())
