# SPDX-License-Identifier: Apache-2.0
"""The notification driver ``compute_notify``: loading it installs the hook.

oslo.messaging loads the drivers that nova.conf names when Nova makes its
notifier, in every process that sends notifications. This one sends nothing.
"""

from __future__ import annotations

import typing

from oslo_log import log as logging
from oslo_messaging.notify import notifier

from compute_notify import exception

LOG = logging.getLogger(__name__)


class ActivationDriver(notifier.Driver):
    """Install the hook when it is made; it may be made twice.

    Whatever goes wrong is one error in the log, and Nova starts without the
    hook: stevedore would log a bare traceback at best.
    """

    def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        super().__init__(*args, **kwargs)
        try:
            # Not above: where Nova is missing, that is worth a clear word.
            from compute_notify.nova import patch
            patch.install()
        except (ImportError, exception.ComputeNotifyError) as exc:
            LOG.error('%s', exc)

    def notify(self, ctxt: dict[str, typing.Any], msg: dict[str, typing.Any],
               priority: str, retry: int) -> None:
        """Send nothing."""
