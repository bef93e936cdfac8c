# SPDX-License-Identifier: Apache-2.0
"""Tests on a real Nova, which has to be installed."""

import unittest

try:
    from nova import monkey_patch
except ImportError:
    raise unittest.SkipTest('Nova is not installed')

# Patches what Nova wants patched, or poisons eventlet, before anything else
# here imports it. Nova 31 does it when it is imported; the import of
# nova.tests.functional would do as well but for Nova 32.
if hasattr(monkey_patch, 'patch'):
    monkey_patch.patch()
