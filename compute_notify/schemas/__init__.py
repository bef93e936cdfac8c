# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas (2020-12) of the notifications, as they are shipped."""

from __future__ import annotations

import functools
from importlib import resources
import json
import typing

#: What a notification is, whatever its payload.
ENVELOPE = 'notification'


def names() -> list[str]:
    """Return the names of the schemas: the envelope's and each payload's."""
    return sorted(found.name.removesuffix('.json')
                  for found in resources.files(__name__).iterdir()
                  if found.name.endswith('.json'))


@functools.cache
def load(name: str) -> dict[str, typing.Any]:
    """Return a schema; it is shared, and must not be changed.

    :param name: ``notification``, or a payload's name and version, such as
        ``ComputeNodePayload-1.0``.
    :raises FileNotFoundError: there is no such schema.
    """
    text = (resources.files(__name__) / f'{name}.json').read_text()
    return typing.cast(dict[str, typing.Any], json.loads(text))
