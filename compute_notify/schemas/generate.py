# SPDX-License-Identifier: Apache-2.0
"""Make the JSON Schemas from the payload classes.

oslo.versionedobjects can make one of an object, but not of a field that holds
an IP address, and not of a notification.
"""

from __future__ import annotations

import json
import pathlib
import typing

from oslo_versionedobjects import fields

from compute_notify import change
from compute_notify import payload
from compute_notify import schemas

_DIALECT = 'https://json-schema.org/draft/2020-12/schema'

_Schema = dict[str, typing.Any]

#: The payload of each action.
PAYLOADS: dict[change.Action, type[typing.Any]] = {
    change.Action.CREATE: payload.ComputeNodePayload,
    change.Action.UPDATE: payload.ComputeNodePayload,
    change.Action.DELETE: payload.ComputeNodeDeletePayload,
}

_TYPES: tuple[tuple[type[typing.Any], _Schema], ...] = (
    (fields.IntegerField, {'type': 'integer'}),
    (fields.UUIDField, {'type': 'string', 'format': 'uuid'}),
    (fields.IPAddressField, {
        'type': 'string',
        'anyOf': [{'format': 'ipv4'}, {'format': 'ipv6'}]}),
    (fields.StringField, {'type': 'string'}),
)


def all_schemas() -> dict[str, _Schema]:
    """Return every schema by its name."""
    made = {schemas.ENVELOPE: envelope()}
    for what in PAYLOADS.values():
        made[name_of(what)] = payload_schema(what)
    return made


def name_of(what: type[typing.Any]) -> str:
    """Return the name of a payload's schema."""
    return f'{what.obj_name()}-{what.VERSION}'


def payload_schema(what: type[typing.Any]) -> _Schema:
    """Return the schema of a payload, around which ``nova_object`` keys stand.

    A newer minor version may add fields, so others are allowed; all that
    there are in this one are required.
    """
    data = {name: _field(field) for name, field in what.fields.items()}
    constants = {'name': what.obj_name(),
                 'namespace': what.OBJ_PROJECT_NAMESPACE}
    major = what.VERSION.partition('.')[0]
    return {
        '$schema': _DIALECT,
        'title': f'{what.obj_name()} {what.VERSION}',
        'description': (what.__doc__ or '').partition('\n')[0],
        'type': 'object',
        'properties': {
            **{f'nova_object.{key}': {'const': value}
               for key, value in constants.items()},
            'nova_object.version': {
                'type': 'string', 'pattern': rf'^{major}\.[0-9]+$'},
            'nova_object.data': {
                'type': 'object', 'properties': data,
                'required': list(data)},
        },
        'required': ['nova_object.name', 'nova_object.namespace',
                     'nova_object.version', 'nova_object.data'],
        'not': {'required': ['nova_object.changes']},
    }


def envelope() -> _Schema:
    """Return the schema of a notification as ``oslo.message`` holds it.

    oslo.messaging adds keys with the context and a ``_unique_id``, and hands
    a listener the parts of it one by one.
    """
    events = {f'compute_node.{action.value}': name_of(what)
              for action, what in PAYLOADS.items()}
    return {
        '$schema': _DIALECT,
        'title': 'A versioned notification of a compute node',
        'type': 'object',
        'properties': {
            'message_id': {'type': 'string', 'format': 'uuid'},
            'publisher_id': {'type': 'string',
                             'pattern': '^nova-compute:.+$'},
            'event_type': {'enum': list(events)},
            'priority': {'const': 'INFO'},
            'timestamp': {
                'type': 'string',
                'pattern': r'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?$'},
            'payload': {'type': 'object'},
        },
        'required': ['message_id', 'publisher_id', 'event_type', 'priority',
                     'timestamp', 'payload'],
        'allOf': [{
            'if': {'properties': {'event_type': {'const': event}}},
            'then': {'properties': {'payload': {'$ref': f'{name}.json'}}},
        } for event, name in events.items()],
    }


def text(schema: _Schema) -> str:
    """Return a schema as its file holds it."""
    return json.dumps(schema, indent=4) + '\n'


def write(folder: pathlib.Path) -> list[pathlib.Path]:
    """Write every schema into a folder; return the files.

    :raises OSError: one cannot be written.
    """
    written = []
    for name, schema in all_schemas().items():
        path = folder / f'{name}.json'
        path.write_text(text(schema))
        written.append(path)
    return written


def _field(field: typing.Any) -> _Schema:
    for known, schema in _TYPES:
        if isinstance(field, known):
            if not field.nullable:
                return dict(schema)
            return {**schema, 'type': [schema['type'], 'null']}
    raise AssertionError(f'no JSON Schema is known for {field}')
