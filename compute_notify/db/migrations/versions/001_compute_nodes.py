# SPDX-License-Identifier: Apache-2.0
"""The table of compute nodes."""

from alembic import op
import sqlalchemy as sa

revision = '001'
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        'compute_nodes',
        sa.Column('created_at', sa.DateTime()),
        sa.Column('updated_at', sa.DateTime()),
        sa.Column('deleted_at', sa.DateTime()),
        sa.Column('deleted', sa.Integer()),
        sa.Column('id', sa.Integer(), primary_key=True),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('host', sa.String(255), index=True),
        sa.Column('vcpus', sa.BigInteger(), nullable=False),
        sa.Column('memory_mb', sa.BigInteger(), nullable=False),
        sa.Column('local_gb', sa.BigInteger(), nullable=False),
        sa.Column('vcpus_used', sa.BigInteger(), nullable=False),
        sa.Column('memory_mb_used', sa.BigInteger(), nullable=False),
        sa.Column('local_gb_used', sa.BigInteger(), nullable=False),
        sa.Column('hypervisor_type', sa.Text(), nullable=False),
        sa.Column('hypervisor_version', sa.BigInteger(), nullable=False),
        sa.Column('hypervisor_hostname', sa.String(255), index=True),
        sa.Column('free_ram_mb', sa.BigInteger()),
        sa.Column('free_disk_gb', sa.BigInteger()),
        sa.Column('current_workload', sa.BigInteger()),
        sa.Column('running_vms', sa.BigInteger()),
        sa.Column('disk_available_least', sa.BigInteger()),
        sa.Column('host_ip', sa.String(45)),
        sa.Column('cpu_info', sa.Text()),
        sa.Column('stats', sa.Text()),
        sa.Column('cpu_allocation_ratio', sa.Float()),
        sa.Column('ram_allocation_ratio', sa.Float()),
        sa.Column('disk_allocation_ratio', sa.Float()),
        sa.UniqueConstraint('uuid', name='uniq_compute_nodes0uuid'),
        sa.UniqueConstraint(
            'host', 'hypervisor_hostname', 'deleted',
            name='uniq_compute_nodes0host0hypervisor_hostname0deleted'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin')
