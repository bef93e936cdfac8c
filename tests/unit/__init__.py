# SPDX-License-Identifier: Apache-2.0
"""Tests that need no server and test one module each."""
