# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What denies a file to a program that owner and mode do not keep out. Pure.

The kernel lets root pass by owner and mode (CAP_DAC_OVERRIDE). What denies root a file with EACCES
is a security module: where SELinux enforces, that is SELinux. Its policy may deny without a line in
the audit log (dontaudit). The server of a share denies root too (root_squash).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...module_utils.shared.file_systems import REMOTE
from ..evidence.answers.node.boot import Boot
from ..evidence.answers.node.instances import ComponentProcess, Instances
from ..evidence.document import one_line, shell_name

_DENIED = re.compile(r"(?P<path>/[^\s\"'\\:,]{1,300}): permission denied", re.IGNORECASE)
# The kernel's own refusals there have other reasons: a lockdown, a setting, a cgroup.
_OF_KERNEL = ("/proc/", "/sys/", "/dev/")
# These run as root wherever no process shows otherwise; etcd has a user of its own in some layouts.
AS_ROOT = frozenset(
    ("kubelet", "k3s", "rke2", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
)
ENFORCES = "1"
# The package whose policy knows the folders of a layout, by the folder.
_POLICIES = (("/var/lib/rancher/rke2", "rke2-selinux"), ("/var/lib/rancher/k3s", "k3s-selinux"))
USUAL_POLICY = "container-selinux"


class Denial(NamedTuple):
    """Who denies a file, as a sentence, and what to do about it, as a clause; both may be empty."""

    sentence: str = ""
    advice: str = ""


def of_component(line: str, component: str, boot: Boot, instances: Instances) -> Denial:
    """Return who denies a component the file that a line of its log names."""
    rows = [row for row in instances.processes if row.component == component]
    row = max(rows, key=lambda item: item.started_at or 0.0, default=ComponentProcess())
    passes = row.ignores_modes
    if passes is None:
        passes = component in AS_ROOT
    return read(line, boot, row.label or "") if passes else Denial()


def read(line: str, boot: Boot, label: str = "") -> Denial:
    """Return who denies a program that runs as root the file that a line names.

    label: with which SELinux knows the program, "" where that is not known
    """
    match = _DENIED.search(line)
    enforces = boot.selinux is not None and boot.selinux.enforce == ENFORCES
    if match is None or not enforces or boot.container:
        return Denial()
    path = match.group("path")
    if path.startswith(_OF_KERNEL) or _is_of_server(path, boot):
        return Denial()
    shown = f" ({one_line(label, 120)})" if label else ""
    policy = next((name for folder, name in _POLICIES if path.startswith(folder)), USUAL_POLICY)
    word = path if shell_name(path.replace("/", "."), "") else "FILE"
    return Denial(
        f"SELinux enforces on that machine, and denies {one_line(path, 200)} to a program that runs"
        f" as root{shown}, whom owner and mode do not keep out",
        f"ls -ldZ {word} and its folder show the label, ausearch -m avc -ts recent the denial"
        f" (semodule -DB logs those too that the policy hides): install or update {policy}, which"
        " has the labels of the usual folders, then restorecon -Rv the folder; semanage fcontext"
        " -a -e gives another folder the labels of the usual one",
    )


def _is_of_server(path: str, boot: Boot) -> bool:
    """Tell whether a path lies on a file system whose server has rights of its own."""
    above = [mount for mount in boot.mounts or () if f"{path}/".startswith(_folder(mount.point))]
    mount = max(above, key=lambda row: len(row.point), default=None)
    return mount is not None and mount.type in REMOTE


def _folder(point: str) -> str:
    return f"{point.rstrip('/')}/"
