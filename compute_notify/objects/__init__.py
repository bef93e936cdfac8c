# SPDX-License-Identifier: Apache-2.0
"""Versioned objects that announce their own changes."""

from compute_notify.objects.compute_node import ComputeNode
from compute_notify.objects.compute_node import ComputeNodeList

__all__ = ['ComputeNode', 'ComputeNodeList']
