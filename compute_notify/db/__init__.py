# SPDX-License-Identifier: Apache-2.0
"""Storage of compute nodes; knows neither objects nor notifications."""
