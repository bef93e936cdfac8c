# SPDX-License-Identifier: Apache-2.0
"""What can be read off the machine this runs on, as a compute node's fields.
"""

from __future__ import annotations

import ipaddress
import json
import os
import platform
import re
import shutil
import socket
import typing
import uuid as uuid_lib

from compute_notify import exception

try:
    import psutil
except ImportError:
    psutil = None

try:
    import libvirt
except ImportError:
    libvirt = None

_MIB = 1024 ** 2
_GIB = 1024 ** 3


class MissingDependency(exception.ComputeNotifyError):
    """Reading the machine needs a package that is not installed."""

    msg_fmt = ('%(package)s is not installed; it comes with '
               '"pip install compute-notify[report]"')


def measure() -> dict[str, typing.Any]:
    """Return the fields of a compute node that can be measured here.

    Memory is in MiB, disk in GiB of the file system that holds ``/``. Without
    a hypervisor vcpus_used is the number of processors busy since the last
    call, rounded, and running_vms is unknown.

    :raises MissingDependency: psutil is not installed.
    """
    if psutil is None:
        raise MissingDependency(package='psutil')
    memory = psutil.virtual_memory()
    disk = shutil.disk_usage('/')
    vcpus = os.cpu_count() or 1
    measured = {
        'hypervisor_hostname': platform.node(),
        'hypervisor_type': platform.system(),
        'hypervisor_version': version_number(platform.release()),
        'vcpus': vcpus,
        'vcpus_used': round(psutil.cpu_percent() / 100 * vcpus),
        'memory_mb': memory.total // _MIB,
        'memory_mb_used': (memory.total - memory.available) // _MIB,
        'free_ram_mb': memory.available // _MIB,
        'local_gb': disk.total // _GIB,
        'local_gb_used': disk.used // _GIB,
        'free_disk_gb': disk.free // _GIB,
        'disk_available_least': disk.free // _GIB,
        'running_vms': None,
        'host_ip': address(),
        'cpu_info': json.dumps({'arch': platform.machine()}),
        'stats': {'load_average': f'{os.getloadavg()[0]:.2f}'},
    }
    return measured | _hypervisor()


def uuid(host: str) -> str:
    """Return the uuid of this machine, the same each time."""
    return str(uuid_lib.uuid5(uuid_lib.NAMESPACE_DNS,
                              f'{platform.node()}.{host}'))


def version_number(text: str) -> int:
    """Return a version as libvirt writes it: 6.1.15 is 6001015."""
    major, minor, patch = (
        int(part) for part in (re.findall(r'\d+', text) + ['0'] * 3)[:3])
    return major * 1000000 + minor * 1000 + min(patch, 999)


def address() -> str | None:
    """Return the first address of an interface that is up, IPv4 before IPv6.

    Loopback and link-local addresses do not count; None if there is no other.
    """
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    found = [
        ipaddress.ip_address(entry.address)
        for name, entries in sorted(psutil.net_if_addrs().items())
        if name in up for entry in entries
        if entry.family in (socket.AF_INET, socket.AF_INET6)
        and '%' not in entry.address]
    usable = [ip for ip in found if not (ip.is_loopback or ip.is_link_local)]
    return str(min(usable, key=lambda ip: ip.version)) if usable else None


def _hypervisor() -> dict[str, typing.Any]:
    """Return what libvirt knows better, where there is a libvirt."""
    if libvirt is None:
        return {}
    try:
        connection = libvirt.openReadOnly(None)
    except libvirt.libvirtError:
        return {}  # the module alone does not make a hypervisor
    try:
        domains = connection.listAllDomains(
            libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)
        return {
            'hypervisor_hostname': connection.getHostname(),
            'hypervisor_type': connection.getType(),
            'hypervisor_version': connection.getVersion(),
            'running_vms': len(domains),
            'vcpus_used': sum(domain.maxVcpus() for domain in domains),
        }
    finally:
        connection.close()
