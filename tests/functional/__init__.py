# SPDX-License-Identifier: Apache-2.0
"""Tests of the whole, on every database and over a real broker."""
