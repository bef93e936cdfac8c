# SPDX-License-Identifier: Apache-2.0
"""The short way through a payload gives what o.vo's own way gives."""

import decimal
import enum
import types
import uuid
import warnings

import ipaddress
import netaddr
from oslo_versionedobjects import base as ovo_base
from oslo_versionedobjects import fields
import testtools

from compute_notify import notification
from compute_notify import payload
from tests import base


class _Number(enum.IntEnum):
    SEVEN = 7


class _Text(str):
    pass


_VALUES = (
    None, 0, 1, -57, 2 ** 63, -2 ** 70, True, False, 10.4, -0.0,
    float('nan'), float('inf'), '', '7', ' 7 ', 'seven', 'hôte-计算', _Text('7'),
    _Number.SEVEN, decimal.Decimal('7.9'), b'7', [], {}, object,
    uuid.UUID(int=7), str(uuid.UUID(int=7)), 'not a uuid',
    '192.0.2.7', '2001:DB8::0001', 'fe80::1%eth0', '192.0.2.256',
    netaddr.IPAddress('192.0.2.7'), ipaddress.ip_address('::1'))


def _outcome(call):
    """Return what a call gives, or the type and text of what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', FutureWarning)
            value = call()
    except Exception as exc:
        return type(exc), str(exc)
    return type(value), repr(value)


class TestEquivalence(testtools.TestCase):

    def _ovo(self, name, value):
        """Return a field's primitive by setter and o.vo's serializer."""
        body = payload.ComputeNodePayload.__new__(payload.ComputeNodePayload)
        notification.NotificationPayloadBase.__init__(body)
        setattr(body, name, value)
        primitive = ovo_base.VersionedObject.obj_to_primitive(body)
        return primitive['nova_object.data'][name]

    def _ours(self, name, value):
        values = {'id': 7, 'uuid': str(uuid.UUID(int=7))} | base.FULL
        node = types.SimpleNamespace(**(values | {name: value}))
        body = payload.ComputeNodePayload(node)
        return body.obj_to_primitive()['nova_object.data'][name]

    def test_every_field(self):
        """Same value and type, or same error, for every field and value."""
        for name, field in payload.ComputeNodePayload.fields.items():
            for value in _VALUES:
                if value is None and not field.nullable:
                    continue  # an error of our own, which names more
                self.assertEqual(_outcome(lambda: self._ovo(name, value)),
                                 _outcome(lambda: self._ours(name, value)),
                                 f'{name} = {value!r}')

    def test_default(self):
        """A field with a default takes it where its source has no value."""
        @ovo_base.VersionedObjectRegistry.objectify
        class Payload(notification.NotificationPayloadBase):
            SCHEMA = {'size': ('thing', 'size')}
            fields = {'size': fields.IntegerField(default=7)}

        body = Payload()
        body.populate_schema(thing=types.SimpleNamespace(size=None))
        self.assertEqual(7, body.size)
