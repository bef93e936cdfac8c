# SPDX-License-Identifier: Apache-2.0
"""Tests on a real Nova, which has to be installed."""

import unittest

try:
    # Patches what Nova wants patched, or poisons eventlet, before anything
    # else here imports it.
    import nova.tests.functional  # noqa: F401
except ImportError:
    raise unittest.SkipTest('Nova is not installed')
