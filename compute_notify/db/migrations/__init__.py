# SPDX-License-Identifier: Apache-2.0
"""The alembic environment; see :mod:`compute_notify.db.migration`."""
