# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector next_start: what the next start of this node reads, and what runs does not have.

It reads files, and asks systemd of containerd's unit. Where unattended-upgrades is there it asks
apt-config and apt-cache, and where dnf or yum upgrades by itself it asks rpm. It starts the program
of the kubelet or of the runtime, which tells its version or reads its configuration and ends, only
where that program or a file of it was changed since its start.
"""

from ...system import (
    automatic_upgrades,
    boot_mounts,
    command,
    files,
    gpu_driver,
    installed_kernels,
    procfs,
    replaced_program,
    rpm_upgrades,
    runtime_files,
    systemd,
)
from ..base import Absent
from . import runtime, swap

FSTAB, CRYPTTAB = "/etc/fstab", "/etc/crypttab"
CONTAINERD = "containerd.service"
MAX_TEXT = 65536


def collect(context):
    """Return {programs, runtime_files, mounts, kernels, gpu, upgrades, ...} of the next start.

    runtime_files: of containerd alone; kernels: None in a container.
    """
    kubelet = context.data.get("kubelet")
    if not kubelet:
        raise Absent("no kubelet")
    context.source = "/proc/PID/exe, /etc/fstab, /boot, /lib/modules, containerd's configuration"
    container, kernels = swap.container(), None
    if not container:
        kernels = installed_kernels.installed()
    units = (context.data.get("runtime") or {}).get("units") or []
    programs = _programs(kubelet, units, context)
    return {
        "programs": programs,
        "runtime_files": _runtime_files(units, programs, context),
        "mounts": mounts(container),
        "kernels": kernels,
        "gpu": gpu_driver.versions(),
        "upgrades": automatic_upgrades.of_apt(seconds=context.seconds),
        "rpm_upgrades": rpm_upgrades.of_rpm(seconds=context.seconds),
    }


def _programs(kubelet, units, context):
    """Return the rows of the kubelet and of the runtime's units that run."""
    process = kubelet.get("process") or {}
    pids = [("kubelet", process.get("pid"))]
    pids += [
        (unit["name"].rpartition(".")[0], unit.get("main_pid"))
        for unit in units
        if not unit["absent"]
    ]
    return [replaced_program.replaced(name, pid, context.seconds) for name, pid in pids if pid]


def _runtime_files(units, programs, context):
    """Return what containerd's next start makes of its files, None where it has no unit."""
    unit = next((row for row in units if row["name"] == CONTAINERD and not row["absent"]), None)
    if unit is None:
        return None
    try:
        names, properties, _dummy = runtime.question()
        blocks = systemd.show(names, properties, context.seconds(5))
    except command.CommandError:
        return None
    argv = systemd.command_line(blocks.get(CONTAINERD) or {})
    program = next((row for row in programs if row["name"] == "containerd"), {})
    return runtime_files.containerd(
        runtime.config_of(blocks),
        "".join(argv[:1]),
        procfs.started_at(unit.get("main_pid") or 0),
        bool(program.get("replaced")),
        context.seconds,
    )


def mounts(container, path=FSTAB):
    """Return {rows, unknown, error} of the lines of fstab whose source is not there."""
    try:
        text = files.read(path, MAX_TEXT).decode("utf-8", "backslashreplace")
    except FileNotFoundError:
        return {"rows": [], "unknown": 0, "error": None}
    except OSError as error:
        return {"rows": [], "unknown": 0, "error": files.reason(error)}
    rows, unknown = boot_mounts.absent(text, container, files.text(CRYPTTAB, MAX_TEXT) or "")
    return {"rows": rows, "unknown": unknown, "error": None}
