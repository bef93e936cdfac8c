# SPDX-License-Identifier: Apache-2.0
"""The hook in Nova's own daemons, with every server it talks to, for real."""
