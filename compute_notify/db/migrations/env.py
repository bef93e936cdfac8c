# SPDX-License-Identifier: Apache-2.0
"""Run by alembic for each command, on the connection it was handed."""

from alembic import context

from compute_notify.db import models

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=models.BASE.metadata,
    render_as_batch=True,
    version_table='compute_notify_version')

with context.begin_transaction():
    context.run_migrations()
