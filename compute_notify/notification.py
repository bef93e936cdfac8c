# SPDX-License-Identifier: Apache-2.0
"""The bases of the notification objects, publisher and event type.

The classes are registered nowhere: the registry of oslo.versionedobjects is
one per process, and it is Nova's. What goes on the wire is what Nova's own
base classes would put there, key for key.
"""

from __future__ import annotations

from collections import abc
import functools
import typing

from oslo_context import context as oslo_context
from oslo_versionedobjects import base
from oslo_versionedobjects import exception as ovo_exception
from oslo_versionedobjects import fields

from compute_notify import change
from compute_notify import exception
from compute_notify import plan

#: What reading an unset field of a versioned object raises: no lazy loading
#: at all, none for this field, or none without a context.
_UNSET = (NotImplementedError, ovo_exception.ObjectActionError,
          ovo_exception.OrphanedObjectError)


class Notifier(typing.Protocol):
    """The part of oslo.messaging's Notifier that is used here."""

    def prepare(self, publisher_id: str) -> Notifier:
        """Return a notifier that names this publisher."""


def no_notifier() -> Notifier | None:
    """Stand in until the emitter, or Nova, gives a notifier."""
    return None


#: Gives the notifier that :meth:`NotificationBase.emit` sends through. It is
#: set by whoever owns the notifier, since this module imports no transport.
current_notifier: abc.Callable[[], Notifier | None] = no_notifier


def dispatch(notifier: Notifier, publisher_id: str, priority: str,
             context: typing.Any, event_type: str,
             body: dict[str, typing.Any]) -> None:
    """Send one notification through a Notifier.

    The Notifier redacts a copy of the context, and oslo.context makes each
    new context the thread's current one; that is undone here.

    :param notifier: the Notifier.
    :param publisher_id: as in the envelope.
    :param priority: as Nova writes it, for example ``info``.
    :param context: the request context.
    :param event_type: as in the envelope.
    :param body: the payload's primitive.
    """
    current = oslo_context.get_current()
    try:
        notify = getattr(notifier.prepare(publisher_id=publisher_id), priority)
        notify(context, event_type, body)
    finally:
        if current is not None:
            current.update_store()
        else:
            # There is no public way to have none again.
            vars(oslo_context._request_store).pop('context', None)


class NotificationPriority(fields.Enum):
    """Nova's enumeration of the same name; the fingerprint includes it."""

    def __init__(self) -> None:
        super().__init__(valid_values=('audit', 'critical', 'debug', 'info',
                                       'error', 'sample', 'warn'))


class NotificationPriorityField(fields.BaseEnumField):
    """How urgent a notification is; a compute node's is always ``info``."""

    AUTO_TYPE = NotificationPriority()


class NotificationAction(fields.Enum):
    """What can happen to a compute node."""

    def __init__(self) -> None:
        super().__init__(
            valid_values=tuple(action.value for action in change.Action))


class NotificationActionField(fields.BaseEnumField):
    """The last part of the event type."""

    AUTO_TYPE = NotificationAction()


class NotificationSource(fields.Enum):
    """Whose object it is; Nova's word for the service's binary."""

    def __init__(self) -> None:
        super().__init__(valid_values=('nova-compute',))


class NotificationSourceField(fields.BaseEnumField):
    """The first part of the publisher_id."""

    AUTO_TYPE = NotificationSource()


@base.VersionedObjectRegistry.objectify
class NotificationObject(base.VersionedObject):
    """The base of everything here; lives in Nova's namespaces."""

    # Version 1.0: Initial version
    VERSION = '1.0'

    OBJ_SERIAL_NAMESPACE = 'nova_object'
    OBJ_PROJECT_NAMESPACE = 'nova'

    def __init__(self, **kwargs: typing.Any) -> None:
        super().__init__(**kwargs)
        # Made on the fly, so every field would count as changed; that says
        # nothing to a consumer and must not reach the wire.
        if kwargs:
            self.obj_reset_changes(recursive=False)


@base.VersionedObjectRegistry.objectify
class EventType(NotificationObject):
    """The name of an event, in parts.

    :param object: what it happened to.
    :param action: what happened, a value of :class:`change.Action`.
    :raises ValueError: an unknown action.
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        'object': fields.StringField(),
        'action': NotificationActionField(),
    }

    def __init__(self, object: str, action: str) -> None:
        super().__init__(object=object, action=action)

    def to_notification_event_type_field(self) -> str:
        """Return it as it stands in the envelope: ``object.action``."""
        return f'{self.object}.{self.action}'


@base.VersionedObjectRegistry.objectify
class NotificationPublisher(NotificationObject):
    """Whose change is announced: the service and the host it runs on.

    :param host: the host of the compute node, whatever process sends.
    :param source: the binary that owns compute nodes.
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        'host': fields.StringField(),
        'source': NotificationSourceField(),
    }

    def __init__(self, host: str, source: str = 'nova-compute') -> None:
        super().__init__(host=host, source=source)

    @property
    def publisher_id(self) -> str:
        """The publisher as it stands in the envelope: ``source:host``."""
        return f'{self.source}:{self.host}'


@base.VersionedObjectRegistry.objectify
class NotificationPayloadBase(NotificationObject):
    """The base of the payloads.

    ``SCHEMA`` maps each payload field to the name of a source object and one
    of its fields. Fields that it does not name are set like those of any
    versioned object.
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    SCHEMA: dict[str, tuple[str, str]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.populated = not self.SCHEMA

    @classmethod
    @functools.cache
    def _steps(cls) -> tuple[plan.Step, ...]:
        return plan.steps(cls)

    @classmethod
    @functools.cache
    def _primitives(cls) -> tuple[plan.Primitive, ...]:
        return plan.primitives(cls)

    def populate_schema(self, **sources: typing.Any) -> None:
        """Fill the fields that SCHEMA names.

        What is unset in its source becomes null.

        :param sources: the objects that SCHEMA names.
        :raises compute_notify.exception.PayloadFieldMissing: a field that is
            not nullable is unset, or None, in its source.
        :raises compute_notify.exception.PayloadSourceInvalid: the source has
            no such field at all, or is not given.
        :raises ValueError: o.vo's own, for a value that does not fit.
        """
        # Straight into the instance and not through o.vo's setters: those
        # only add the field to the set of changed ones, emptied right after.
        # The value is coerced by the very same field.
        target = self.__dict__
        for step in self._steps():
            source = sources.get(step.source)
            try:
                value = step.get(source)
            except _UNSET:
                value = None
            except AttributeError as exc:
                raise exception.PayloadSourceInvalid(
                    payload=self.obj_name(), field=step.name,
                    object=type(source).__name__, source=step.key) from exc
            if value is None and step.required:
                raise exception.PayloadFieldMissing(
                    payload=self.obj_name(), field=step.name,
                    object=type(source).__name__, source=step.key)
            target[step.attribute] = step.coerce(self, value)
        self.populated = True

    def obj_to_primitive(
        self,
        target_version: str | None = None,
        version_manifest: dict[str, str] | None = None,
    ) -> dict[str, typing.Any]:
        """Return the payload as it goes on the wire, see VersionedObject."""
        if (target_version not in (None, self.VERSION) or version_manifest
                or self._changed_fields):
            return super().obj_to_primitive(target_version, version_manifest)
        # The plain case without o.vo's three look-ups per field.
        values = self.__dict__
        data = {}
        for field in self._primitives():
            if field.attribute in values:
                value = values[field.attribute]
                data[field.name] = (field.convert(self, field.name, value)
                                    if field.convert else value)
        return {
            'nova_object.name': self.obj_name(),
            'nova_object.namespace': self.OBJ_PROJECT_NAMESPACE,
            'nova_object.version': self.VERSION,
            'nova_object.data': data,
        }


@base.VersionedObjectRegistry.objectify
class NotificationBase(NotificationObject):
    """The base of the notifications; each adds its ``payload`` field."""

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        'priority': NotificationPriorityField(),
        'event_type': fields.ObjectField('EventType'),
        'publisher': fields.ObjectField('NotificationPublisher'),
    }
    payload: NotificationPayloadBase

    def emit(self, context: typing.Any) -> None:
        """Send the notification; does nothing while there is no notifier.

        Unlike a notification that a change of a node causes, one that is
        emitted by hand raises what goes wrong.

        :param context: the request context; credentials in it are left out.
        :raises compute_notify.exception.PayloadNotPopulated: the payload has
            a SCHEMA that was not applied.
        """
        if not self.payload.populated:
            raise exception.PayloadNotPopulated(
                notification=self.obj_name(), payload=self.payload.obj_name())
        notifier = current_notifier()
        if notifier is None:
            return
        self.payload.obj_reset_changes(recursive=True)
        dispatch(notifier, self.publisher.publisher_id, self.priority, context,
                 self.event_type.to_notification_event_type_field(),
                 self.payload.obj_to_primitive())
