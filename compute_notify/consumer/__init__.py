# SPDX-License-Identifier: Apache-2.0
"""The reading side: what consumers of the notifications start from."""
