# SPDX-License-Identifier: Apache-2.0
"""Side-by-side measurements; only ratios of one run mean anything."""
