# SPDX-License-Identifier: Apache-2.0
"""Objects without database access: their methods run in a conductor.

In the compute service::

    transport = oslo_messaging.get_rpc_transport(
        conf, allowed_remote_exmods=['compute_notify.exception'])
    base.Object.indirection_api = indirection.ConductorAPI(transport)

In the conductor, which has called :func:`compute_notify.setup`::

    server = indirection.get_server(transport, socket.gethostname())
    server.start()

Changes are announced by the conductor, where the row is written.
"""

from __future__ import annotations

from collections import abc
import importlib
import typing

from oslo_config import cfg
import oslo_messaging
from oslo_versionedobjects import base as ovo_base

from compute_notify import exception
from compute_notify.objects import base

F = typing.TypeVar('F', bound=abc.Callable[..., typing.Any])

TOPIC = 'compute_notify_conductor'
_NAMESPACE = 'compute_notify'
# Version 1.0: object_class_action_versions, object_action
_VERSION = '1.0'

#: Marks what a caller may well cause, so that the server does not log it.
_EXPECTED: abc.Callable[[F], F] = oslo_messaging.expected_exceptions(
    exception.ComputeNotifyError)


class ConductorAPI(ovo_base.VersionedObjectIndirectionAPI):
    """Calls the conductor; raises what the method raises there.

    :param transport: an RPC transport that lets ``compute_notify.exception``
        through.
    :param topic: the topic that the conductor serves.
    """

    def __init__(self, transport: oslo_messaging.Transport,
                 topic: str = TOPIC) -> None:
        _register_missing_opts(transport.conf)
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(topic=topic, namespace=_NAMESPACE,
                                  version=_VERSION),
            serializer=base.Serializer())

    def object_action(
            self, context: typing.Any, objinst: ovo_base.VersionedObject,
            objmethod: str, args: tuple[typing.Any, ...],
            kwargs: dict[str, typing.Any],
    ) -> tuple[dict[str, typing.Any], typing.Any]:
        """Run a method of an object; return what it changed and its result."""
        updates, result = self._client.call(
            context, 'object_action', objinst=objinst, objmethod=objmethod,
            args=args, kwargs=kwargs)
        return updates, result

    def object_class_action_versions(
            self, context: typing.Any, objname: str, objmethod: str,
            object_versions: dict[str, str], args: tuple[typing.Any, ...],
            kwargs: dict[str, typing.Any]) -> typing.Any:
        """Run a class method and return its result."""
        return self._client.call(
            context, 'object_class_action_versions', objname=objname,
            objmethod=objmethod, object_versions=object_versions, args=args,
            kwargs=kwargs)


class ConductorEndpoint:
    """Runs the objects' methods for :class:`ConductorAPI`."""

    target = oslo_messaging.Target(namespace=_NAMESPACE, version=_VERSION)

    @_EXPECTED
    def object_action(
            self, context: typing.Any, objinst: base.Object, objmethod: str,
            args: abc.Sequence[typing.Any],
            kwargs: abc.Mapping[str, typing.Any],
    ) -> tuple[dict[str, typing.Any], typing.Any]:
        """Run a method of an object; return what it changed and its result.

        :raises compute_notify.exception.ObjectActionError: the object has no
            such remotable method.
        """
        before = objinst.obj_clone()
        result = _remotable(objinst, objmethod)(*args, **kwargs)
        updates: dict[str, typing.Any] = {}
        for name, field in objinst.fields.items():
            if not objinst.obj_attr_is_set(name):
                continue
            value = getattr(objinst, name)
            if (not before.obj_attr_is_set(name)
                    or getattr(before, name) != value):
                updates[name] = field.to_primitive(objinst, name, value)
        updates['obj_what_changed'] = sorted(objinst.obj_what_changed())
        return updates, result

    @_EXPECTED
    def object_class_action_versions(
            self, context: typing.Any, objname: str, objmethod: str,
            object_versions: dict[str, str],
            args: abc.Sequence[typing.Any],
            kwargs: abc.Mapping[str, typing.Any]) -> typing.Any:
        """Run a class method; the result is in the versions asked for.

        :raises compute_notify.exception.ObjectActionError: the class has no
            such remotable method.
        """
        cls = base.VersionedObjectRegistry.find(objname,
                                                object_versions[objname])
        result = _remotable(cls, objmethod)(context, *args, **kwargs)
        if isinstance(result, ovo_base.VersionedObject):
            return result.obj_to_primitive(
                target_version=object_versions[objname],
                version_manifest=object_versions)
        return result


def get_server(transport: oslo_messaging.Transport, server: str,
               topic: str = TOPIC, **kwargs: typing.Any) -> typing.Any:
    """Return an RPC server that runs the objects' methods.

    :param transport: an RPC transport.
    :param server: the name of this server, unique among those of the topic.
    :param topic: the topic that compute services call.
    :param kwargs: as for :func:`oslo_messaging.get_rpc_server`, for example
        the executor.
    """
    _register_missing_opts(transport.conf)
    return oslo_messaging.get_rpc_server(
        transport, oslo_messaging.Target(topic=topic, server=server),
        [ConductorEndpoint()], serializer=base.Serializer(), **kwargs)


def _register_missing_opts(conf: cfg.ConfigOpts) -> None:
    """Register what RPC reads from the configuration of its transport.

    From release 18 on oslo.messaging registers it on oslo.config's global
    object alone.
    """
    for name in ('oslo_messaging_metrics', 'oslo_messaging_tracing'):
        try:
            client = importlib.import_module(
                f'oslo_messaging._{name.rpartition("_")[2]}.client')
        except ImportError:
            continue  # not in this release
        conf.register_opts(getattr(client, name), group=name)


def _remotable(owner: typing.Any, name: str) -> abc.Callable[..., typing.Any]:
    """Return a method that may be called from afar, and no other."""
    # On the class: reading a field that is not set is an error of its own.
    cls = owner if isinstance(owner, type) else type(owner)
    if not getattr(getattr(cls, name, None), 'remotable', False):
        raise exception.ObjectActionError(
            node=owner.obj_name(), action=name, reason='no such method')
    return typing.cast(abc.Callable[..., typing.Any], getattr(owner, name))
