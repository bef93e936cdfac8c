# SPDX-License-Identifier: Apache-2.0
"""What a difference between two stored rows means; pure, no input or output.
"""

from __future__ import annotations

from collections import abc
import dataclasses
import enum
import typing

#: One stored row: column name to value.
Row = abc.Mapping[str, typing.Any]

#: The fields whose change is worth an update, from the blueprint
#: ``hypervisor-notification``: usage and capacity, so that a save which only
#: refreshes statistics stays silent.
TRACKED = frozenset((
    'vcpus',
    'memory_mb',
    'local_gb',
    'vcpus_used',
    'local_gb_used',
    'hypervisor_hostname',
    'disk_available_least',
    'running_vms',
    'current_workload',
))


class Action(enum.Enum):
    """What happened to a compute node."""

    CREATE = 'create'
    """It is new, or came back from being deleted."""
    UPDATE = 'update'
    """A tracked field has another value than before."""
    DELETE = 'delete'
    """It was live and is no longer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One thing to announce.

    :ivar action: what happened.
    :ivar row: the row as it is stored now.
    """

    action: Action
    row: Row

    @property
    def event_type(self) -> str:
        """The event's full name, for example ``compute_node.update``."""
        return f'compute_node.{self.action.value}'


def between(before: Row | None, after: Row,
            tracked: abc.Set[str] = TRACKED) -> Change | None:
    """Compare a row before and after a transaction.

    Values are compared, not assignments: a versioned object calls a field
    changed as soon as it is assigned, and Nova's resource tracker assigns all
    of them every minute.

    :param before: the row as it was stored, None where there was none.
    :param after: the row as it is stored now.
    :param tracked: the fields whose difference makes an update.
    :returns: what to announce, or None.
    """
    was_live = before is not None and not before['deleted']
    is_live = not after['deleted']
    if is_live and not was_live:
        return Change(Action.CREATE, after)
    if was_live and not is_live:
        return Change(Action.DELETE, after)
    if was_live and is_live and before is not None:
        if any(before[name] != after[name] for name in tracked):
            return Change(Action.UPDATE, after)
    return None
