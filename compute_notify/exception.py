# SPDX-License-Identifier: Apache-2.0
"""Every error this library raises of its own accord."""

from __future__ import annotations

import typing


class ComputeNotifyError(Exception):
    """The base: a message template filled from keyword arguments.

    :param message: the whole text, where it exists already. An error that
        crosses RPC is rebuilt from its text and its keyword arguments.
    :param kwargs: what the template names; kept as :attr:`kwargs`.
    """

    msg_fmt = 'An unknown error occurred.'

    def __init__(self, message: str | None = None,
                 **kwargs: typing.Any) -> None:
        self.kwargs = kwargs
        if message is None:
            try:
                message = self.msg_fmt % kwargs
            except (KeyError, TypeError, ValueError):
                # Raising an error must never raise another one.
                message = self.msg_fmt
        super().__init__(message)


class ObjectActionError(ComputeNotifyError):
    """The object is not in a state that allows the action."""

    msg_fmt = 'Compute node %(node)s: %(action)s failed because: %(reason)s'


class DuplicateRecord(ComputeNotifyError):
    """Another live node has this uuid, or this host and host name."""

    msg_fmt = 'Cannot create duplicate record: %(target)s'


class ComputeHostNotFound(ComputeNotifyError):
    """No such node, or it is deleted and the context does not read those."""

    msg_fmt = 'Compute host %(host)s could not be found.'


class HostChanged(ComputeNotifyError):
    """The stored row belongs to another host by now."""

    msg_fmt = 'Compute node %(node)s no longer belongs to host %(host)s.'


class InvalidOption(ComputeNotifyError):
    """An option has a value that cannot work."""

    msg_fmt = 'Option [%(group)s] %(option)s: %(reason)s'


class NotConfigured(ComputeNotifyError):
    """The objects have no database: compute_notify.setup() was not called."""

    msg_fmt = ('No database is configured: call compute_notify.setup(conf) '
               'first, or set an indirection API.')


class DatabaseUnreachable(ComputeNotifyError):
    """The database server does not answer, or refuses us."""

    msg_fmt = 'Database %(url)s cannot be reached: %(reason)s'


class DatabaseNotMigrated(ComputeNotifyError):
    """The tables are missing, older or newer than this release needs."""

    msg_fmt = ('Database %(url)s is at version %(found)s and this release '
               'needs %(wanted)s; "compute-notify db sync" upgrades an '
               'older one.')


class PayloadFieldMissing(ComputeNotifyError):
    """A payload field that may not be null has no value in its source."""

    msg_fmt = ('%(payload)s.%(field)s cannot be filled: %(object)s.%(source)s '
               'is not set and the field is not nullable.')


class PayloadSourceInvalid(ComputeNotifyError):
    """The source of a payload does not have the field its SCHEMA names."""

    msg_fmt = ('%(payload)s.%(field)s cannot be filled: %(object)s has no '
               'field %(source)s.')


class PayloadNotPopulated(ComputeNotifyError):
    """A notification was emitted before its payload was filled."""

    msg_fmt = ('%(notification)s cannot be emitted: its %(payload)s is not '
               'populated.')


class UnsupportedNova(ComputeNotifyError):
    """This Nova is not one that the hook can be installed on."""

    msg_fmt = ('Compute node notifications are not installed, and Nova is '
               'left as it is: %(reason)s')


class OutputFailed(ComputeNotifyError):
    """What a command prints could not be written."""

    msg_fmt = 'Cannot write to standard output: %(reason)s'


class NotificationUnreadable(ComputeNotifyError):
    """A received notification is not what it says, or lacks something."""

    msg_fmt = 'The notification cannot be read: %(field)s is %(value)r.'


class NotificationVersion(ComputeNotifyError):
    """A received notification has a major version that is not known."""

    msg_fmt = ('The notification cannot be read: %(name)s has version '
               '%(found)s and this release knows %(known)s.')


class FileNotWritten(ComputeNotifyError):
    """A command could not write a file."""

    msg_fmt = 'Cannot write into %(folder)s: %(reason)s'


class OutboxUnusable(ComputeNotifyError):
    """The file of the outbox is one that must not be used."""

    msg_fmt = ('Outbox %(path)s cannot be used: %(reason)s. Option '
               '[compute_notify_outbox] path names another.')


class OutboxMissing(ComputeNotifyError):
    """There is no file of the outbox to look into."""

    msg_fmt = ('There is no outbox %(path)s: nothing has been stored there '
               'yet, or option [compute_notify_outbox] path means another '
               'file.')


class NotSetAside(ComputeNotifyError):
    """No such notification was set aside, or it has no form to be sent in."""

    msg_fmt = ('Outbox %(path)s has set nothing aside that can be sent again '
               'under: %(ids)s')


class RelayEnded(ComputeNotifyError):
    """The relay met an error that it does not know; see the traceback."""

    msg_fmt = 'The relay of outbox %(path)s has ended because of an error.'
