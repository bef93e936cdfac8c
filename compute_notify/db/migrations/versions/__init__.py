# SPDX-License-Identifier: Apache-2.0
"""One module per version of the tables, oldest first by down_revision."""
