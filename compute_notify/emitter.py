# SPDX-License-Identifier: Apache-2.0
"""The notifier made from configuration, and whether it sends at all."""

from __future__ import annotations

from collections import abc
import contextlib
import socket
import typing

from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging

from compute_notify import change
from compute_notify import exception
from compute_notify import inforce
from compute_notify import notification
from compute_notify import opts
from compute_notify import payload
from compute_notify import routing
from compute_notify import transport

LOG = logging.getLogger(__name__)

#: Drivers that load and send nothing: oslo.messaging's own, and the one that
#: only activates this library inside Nova.
SILENT_DRIVERS = frozenset(('noop', 'compute_notify'))


class ContextSerializer(oslo_messaging.NoOpSerializer):
    """Serialize the context; the payload is plain data already.

    The Notifier takes credentials out before it asks for this.
    """

    def serialize_context(self, ctxt: typing.Any) -> dict[str, typing.Any]:
        """Return the context as a dictionary."""
        return ctxt if isinstance(ctxt, dict) else dict(ctxt.to_dict())


class Emitter:
    """Build notifications and hand them to an oslo.messaging Notifier.

    :param notifier: the Notifier.
    :param host: named as publisher for a node that has no name at all.
    :param extra_update_fields: payload fields that make an update besides
        :data:`change.TRACKED`.
    :param strict: raise a failure to notify, as tests want it.
    :raises compute_notify.exception.InvalidOption: an extra field is not a
        field of the payload.
    """

    def __init__(self, notifier: oslo_messaging.Notifier, *, host: str,
                 extra_update_fields: abc.Iterable[str] = (),
                 strict: bool = False) -> None:
        self.notifier = notifier
        self.strict = strict
        self.tracked = tracked_fields(extra_update_fields)
        self._host = host
        self._on = sends(notifier)

    def close(self) -> None:
        """Close the transport."""
        self.notifier.transport.cleanup()

    def is_on(self) -> bool:
        """Whether a driver that sends was loaded; decided once."""
        return self._on

    def emit(self, context: typing.Any, what: change.Change) -> None:
        """Build and send one notification.

        :raises: as :func:`send`.
        """
        send(self.notifier, context, what, default_host=self._host)


def send(notifier: oslo_messaging.Notifier, context: typing.Any,
         what: change.Change, *, default_host: str) -> None:
    """Build one notification and send it.

    :param notifier: the Notifier.
    :param context: the request context of the change.
    :param what: the change.
    :param default_host: the host to name for a node that has no name at all.
    :raises compute_notify.exception.PayloadFieldMissing: the stored row
        cannot fill the payload.
    """
    publisher = payload.publisher_id(what.row, default_host)
    body = payload.payload_for(what).obj_to_primitive()
    notification.dispatch(notifier, publisher, 'info', context,
                          what.event_type, body)


def tracked_fields(extra: abc.Iterable[str]) -> frozenset[str]:
    """Return the fields whose change makes an update.

    :param extra: the value of ``extra_update_fields``.
    :raises compute_notify.exception.InvalidOption: one is not a field of the
        payload; the message lists those that are.
    """
    unknown = sorted(set(extra) - set(payload.PAYLOAD_FIELDS))
    if unknown:
        raise exception.InvalidOption(
            group=opts.GROUP, option='extra_update_fields',
            reason=f'no such payload field: {", ".join(unknown)}. Valid names '
                   f'are {", ".join(sorted(payload.PAYLOAD_FIELDS))}.')
    return change.TRACKED | frozenset(extra)


def sends(notifier: oslo_messaging.Notifier) -> bool:
    """Tell whether a Notifier has any driver that really sends.

    Its own ``is_enabled()`` says yes for no driver at all, for a misspelt one
    and for one that only activates this library.
    """
    manager = getattr(notifier, '_driver_mgr', None)
    if manager is None:
        # A stand-in, such as the one of Nova's own test fixture.
        return bool(notifier.is_enabled())
    return not SILENT_DRIVERS.issuperset(manager.names())


def from_conf(conf: cfg.ConfigOpts) -> Emitter:
    """Make the transport, the Notifier and the emitter that options ask for.

    A driver that does not exist is a warning and not an error, since
    oslo.messaging goes on with the others.

    :raises compute_notify.exception.InvalidOption: an option cannot work.
    """
    opts.register_opts(conf)
    opts.register_host(conf)
    options = conf[opts.GROUP]
    for name, value in (('topics', options.topics),
                        ('exchange', [options.exchange])):
        if not value or not all(value):
            raise exception.InvalidOption(group=opts.GROUP, option=name,
                                          reason='must not be empty')
    # Before anything is made.
    tracked_fields(options.extra_update_fields)
    made = transport.on_exchange(conf, options.exchange)
    with contextlib.ExitStack() as undo:
        undo.callback(made.cleanup)
        emitter = _from_transport(conf, made)
        undo.pop_all()
    return emitter


def _from_transport(conf: cfg.ConfigOpts,
                    made: oslo_messaging.Transport) -> Emitter:
    options = conf[opts.GROUP]
    if 'outbox' in conf.oslo_messaging_notifications.driver:
        opts.outbox_options(conf)  # the driver's error would only be logged
    notifier = oslo_messaging.Notifier(
        made, serializer=ContextSerializer(), topics=options.topics)
    for extension in notifier._driver_mgr:
        if extension.name == 'routing':
            routing.load(extension.obj, conf, topics=options.topics,
                         transport=made)
    _warn_of_missing_drivers(conf, notifier)
    return Emitter(notifier, host=conf.host or socket.gethostname(),
                   extra_update_fields=options.extra_update_fields)


def _warn_of_missing_drivers(conf: cfg.ConfigOpts,
                             notifier: oslo_messaging.Notifier) -> None:
    loaded = set(notifier._driver_mgr.names())
    for name in conf.oslo_messaging_notifications.driver:
        if name and name not in loaded:
            LOG.warning(
                'Option [oslo_messaging_notifications] driver: there is no '
                'notification driver %(name)s, or it cannot be loaded; it '
                'sends nothing.', {'name': name})


#: The emitter that the hook asks for at each call.
IN_FORCE: inforce.InForce[Emitter] = inforce.InForce('compute_notify emitter')


def current_notifier() -> oslo_messaging.Notifier | None:
    """Return the Notifier in force, or None while nothing would be sent."""
    emitter = IN_FORCE.current()
    if emitter is None or not emitter.is_on():
        return None
    return emitter.notifier


def serve_by_hand() -> None:
    """Let notifications made by hand go through the Notifier in force."""
    notification.current_notifier = current_notifier


def setup(conf: cfg.ConfigOpts) -> None:
    """Put an emitter made from configuration in force.

    :raises compute_notify.exception.InvalidOption: an option cannot work;
        what was in force before stays.
    """
    emitter = from_conf(conf)
    serve_by_hand()
    before = IN_FORCE.configure(emitter)
    if before is not None:
        before.close()
    LOG.info('Compute node notifications are %(state)s; drivers: %(drivers)s',
             {'state': 'on' if emitter.is_on() else 'off',
              'drivers': ', '.join(emitter.notifier._driver_mgr.names())
              or 'none'})


def teardown() -> None:
    """Close the transport; nothing is announced from here on."""
    before = IN_FORCE.configure(None)
    if before is not None:
        before.close()
