# SPDX-License-Identifier: Apache-2.0
"""Hold every notification that a test sends against the JSON Schemas."""

import functools
import typing
import uuid

import fixtures
import jsonschema
import oslo_messaging
from oslo_utils import timeutils
import referencing
from referencing import jsonschema as dialects

from compute_notify import schemas


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Return what validates against a shipped schema, formats included."""
    registry: typing.Any = referencing.Registry().with_resources(
        (f'{each}.json', referencing.Resource.from_contents(
            schemas.load(each),
            default_specification=dialects.DRAFT202012))
        for each in schemas.names())
    return jsonschema.Draft202012Validator(
        schemas.load(name), registry=registry,
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)


def problems(notification: dict[str, typing.Any]) -> list[str]:
    """Return what a notification of a compute node has wrong."""
    return [f'{error.json_path}: {error.message}' for error in
            validator(schemas.ENVELOPE).iter_errors(notification)]


class Validation(fixtures.Fixture):
    """Fails the test at its end if a notification was not as it should be.

    Not at once, for the library contains what goes wrong in a notifier.
    """

    def _setUp(self) -> None:
        self.found: list[str] = []
        notify = oslo_messaging.Notifier._notify

        @functools.wraps(notify)
        def watched(notifier: typing.Any, ctxt: typing.Any, event_type: str,
                    payload: typing.Any, priority: str,
                    publisher_id: str | None = None,
                    retry: int | None = None) -> None:
            if event_type.startswith('compute_node.'):
                self.found.extend(problems({
                    # These two are oslo.messaging's.
                    'message_id': str(uuid.uuid4()),
                    'timestamp': str(timeutils.utcnow()),
                    'publisher_id': publisher_id or notifier.publisher_id,
                    'event_type': event_type,
                    'priority': priority,
                    'payload': notifier._serializer.serialize_entity(
                        ctxt, payload),
                }))
            notify(notifier, ctxt, event_type, payload, priority,
                   publisher_id, retry)
        self.useFixture(fixtures.MonkeyPatch(
            'oslo_messaging.Notifier._notify', watched))
        self.addCleanup(self._judge)

    def _judge(self) -> None:
        if self.found:
            raise AssertionError(
                f'Notifications that the schemas refuse: {self.found}')
