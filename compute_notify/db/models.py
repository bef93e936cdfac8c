# SPDX-License-Identifier: Apache-2.0
"""The table of compute nodes, as SQLAlchemy maps it."""

from __future__ import annotations

import typing

from oslo_db.sqlalchemy import models
import sqlalchemy as sa
from sqlalchemy import orm

BASE: typing.Any = orm.declarative_base()


class ComputeNode(BASE, models.TimestampMixin, models.SoftDeleteMixin,
                  models.ModelBase):
    """One compute node.

    A deleted row stays, with its own id in ``deleted``, so that the unique
    constraint lets a new node take the name.
    """

    __tablename__ = 'compute_nodes'
    __table_args__ = (
        sa.UniqueConstraint('uuid', name='uniq_compute_nodes0uuid'),
        sa.UniqueConstraint(
            'host', 'hypervisor_hostname', 'deleted',
            name='uniq_compute_nodes0host0hypervisor_hostname0deleted'),
        # Names differ if a byte differs, on every database alike.
        {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4',
         'mysql_collate': 'utf8mb4_bin'},
    )

    id = sa.Column(sa.Integer, primary_key=True)
    uuid = sa.Column(sa.String(36), nullable=False)
    host = sa.Column(sa.String(255), index=True)
    vcpus = sa.Column(sa.BigInteger, nullable=False)
    memory_mb = sa.Column(sa.BigInteger, nullable=False)
    local_gb = sa.Column(sa.BigInteger, nullable=False)
    vcpus_used = sa.Column(sa.BigInteger, nullable=False)
    memory_mb_used = sa.Column(sa.BigInteger, nullable=False)
    local_gb_used = sa.Column(sa.BigInteger, nullable=False)
    hypervisor_type = sa.Column(sa.Text, nullable=False)
    hypervisor_version = sa.Column(sa.BigInteger, nullable=False)
    hypervisor_hostname = sa.Column(sa.String(255), index=True)
    free_ram_mb = sa.Column(sa.BigInteger)
    free_disk_gb = sa.Column(sa.BigInteger)
    current_workload = sa.Column(sa.BigInteger)
    running_vms = sa.Column(sa.BigInteger)
    disk_available_least = sa.Column(sa.BigInteger)
    #: The longest is an IPv6 address that embeds an IPv4 one.
    host_ip = sa.Column(sa.String(45))
    cpu_info = sa.Column(sa.Text)
    #: A JSON object.
    stats = sa.Column(sa.Text)
    cpu_allocation_ratio = sa.Column(sa.Float)
    ram_allocation_ratio = sa.Column(sa.Float)
    disk_allocation_ratio = sa.Column(sa.Float)
