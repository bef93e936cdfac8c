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
    hook: stevedore would log a bare traceback at best. Nova makes the driver
    before it sets its logging up; the error is then on standard error, and
    in the log with the first notification of any kind.
    """

    _last_error: typing.ClassVar[str | None] = None

    def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        super().__init__(*args, **kwargs)
        self._untold: Exception | None = None
        try:
            # Not above: where Nova is missing, that is worth a clear word.
            from compute_notify.nova import patch
            patch.install()
        except Exception as exc:  # whatever it is, Nova has to start
            error = (exc if isinstance(exc, exception.UnsupportedNova)
                     else exception.UnsupportedNova(reason=exc))
            if str(error) != ActivationDriver._last_error:
                LOG.error('%s', error)
            ActivationDriver._last_error = str(error)
            if not LOG.isEnabledFor(logging.INFO):
                self._untold = error

    def notify(self, ctxt: dict[str, typing.Any], msg: dict[str, typing.Any],
               priority: str, retry: int) -> None:
        """Send nothing; log what could not be logged earlier."""
        error, self._untold = self._untold, None
        if error is not None:
            LOG.error('%s', error)
