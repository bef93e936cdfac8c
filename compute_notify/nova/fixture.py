# SPDX-License-Identifier: Apache-2.0
"""A fixture that installs the hook on Nova for one test."""

from __future__ import annotations

import fixtures

from compute_notify.nova import patch


class NovaPatchFixture(fixtures.Fixture):
    """Install the hook; take it off at the end if it was not there before.

    Nova's own NotificationFixture then catches compute_node.* beside the
    rest, if ``[notifications] notification_format`` is versioned or both.
    What production would log and swallow is raised.
    """

    def _setUp(self) -> None:
        if not patch.is_installed():
            self.addCleanup(patch.uninstall)
            patch.install()
        before = patch.set_strict(strict=True)
        self.addCleanup(self._loosen, before)

    @staticmethod
    def _loosen(before: bool) -> None:
        if patch.is_installed():  # a test may have taken the hook off
            patch.set_strict(strict=before)
