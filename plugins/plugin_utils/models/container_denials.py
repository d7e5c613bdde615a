# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SELinux denies the containers of the cluster's own pods, by the audit log. Pure.

A denial explains a line of a container where the line says that a file is denied, the denial is of
a container, and both name the same file and the same program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..evidence import contract
from ..evidence.answers.node.boot import Boot
from ..evidence.document import one_line, shell_name
from ..parsers import avc_denial
from ..parsers.avc_denial import AvcDenial
from ..parsers.known_age import Versions
from . import volume_labels
from .denied_file import ENFORCES, Denial
from .pod_roles import OwnPod, workload

AUDIT = "/var/log/audit/audit.log"
_PATH = r"/[^\s\"'`\u2018\u2019\\:,;\[\](){}]{1,300}"
_BEFORE = re.compile(
    rf"(?P<path>{_PATH})[\"'`\u2019\\\])]{{0,4}}:? ?(?:(?:connect|bind|exec|open): )?"
    r"permission denied",
    re.IGNORECASE,
)
_AFTER = re.compile(rf"permission denied\b[^/\n]{{0,60}}(?P<path>{_PATH})", re.IGNORECASE)
# The domains of containers, of container-selinux and its predecessors, of rke2-selinux and of
# rancher-selinux. That of the runtime itself is none of them (KM528).
_CONTAINERS = re.compile(
    r"(?:container|container_(?!runtime)\w+|svirt_(?:lxc_net|sandbox|qemu_net)|spc|rke_\w+)_t"
)
_FILES_OF_CONTAINERS = ("container_file_t", "svirt_sandbox_file_t", "svirt_lxc_file_t")
# What the programs of the machine use too: another label would keep these out.
_OF_MACHINE = (
    *("/run/", "/var/run/", "/etc/", "/usr/", "/bin/", "/sbin/", "/lib", "/boot/", "/dev/"),
    *("/proc/", "/sys/", "/var/log/", "/home/", "/root/", "/tmp/", "/var/tmp/"),
)
# By these a name in a folder is made, changed or taken away, so that the denial names the folder.
_CHANGES = frozenset(("write", "add_name", "remove_name", "create", "rmdir"))
SAME_NAME = 4  # characters of the shorter one of two names, at least


class FileDenial(NamedTuple):
    """What denies a file, and the line of the audit log that shows it; all are empty without."""

    denial: Denial = Denial()
    line: str = ""


def extract(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the lines about containers of a machine where SELinux enforces."""
    boot = contract.answer(document, Boot)
    enforces = boot.selinux is not None and boot.selinux.enforce == ENFORCES
    if not enforces or boot.container or boot.denials is None:
        return ()
    return tuple(line for line in boot.denials.lines if _is_of_container(avc_denial.read(line)))


def _is_of_container(denial: AvcDenial) -> bool:
    return denial.is_enforced and _CONTAINERS.fullmatch(denial.domain) is not None


def find(
    line: str, pod: OwnPod, host: str, denials: Sequence[str], versions: Versions = ()
) -> FileDenial:
    """Return what denies a container of a host the file that its line names.

    versions: the releases of the kernel and the runtime of that host
    """
    path = _path(line)
    if not path:
        return FileDenial()
    names = (pod.container, pod.pod, workload(pod))
    for text in reversed(denials):
        row = avc_denial.read(text)
        if _is_of_file(row, path) and _is_of_program(row, line, names):
            return FileDenial(_read(row, path, host, versions), one_line(text, 300))
    return FileDenial()


def _path(line: str) -> str:
    """Return the file that a line says is denied, or ""."""
    paths = _BEFORE.findall(line) or _AFTER.findall(line)
    return "".join(paths[-1:]).rstrip("/.")


def _is_of_file(row: AvcDenial, path: str) -> bool:
    """Tell whether a denial is about a file, or about a folder above it."""
    *folders, leaf = path.split("/")
    if row.file and row.file == leaf:
        return True
    if row.kind != "dir" or not row.file:
        return False
    if _CHANGES.isdisjoint(row.permissions):
        return row.file in folders
    return row.file == folders[-1]


def _is_of_program(row: AvcDenial, line: str, names: Sequence[str]) -> bool:
    """Tell whether the line names the program of a denial, or its container has that name."""
    program = row.program
    if not program:
        return False
    if re.search(rf"(?<![\w-]){re.escape(program)}(?![\w-])", line):
        return True
    if len(program) < SAME_NAME:
        return False
    return any(_is_alike(program, name) for name in names)


def _is_alike(program: str, name: str) -> bool:
    """Tell whether one of two names begins with the other, such as flanneld of kube-flannel."""
    name = name.removeprefix("kube-")
    return len(name) >= SAME_NAME and (program.startswith(name) or name.startswith(program))


def _read(row: AvcDenial, path: str, host: str, versions: Versions) -> Denial:
    kind = row.kind.replace("dir", "folder")
    labels = f"the {kind} {row.file} has the label {row.label}, the container the domain"
    labels += f" {row.domain}"
    categories = _categories(row)
    if categories:
        labels += f", and the file has the categories of another container ({categories})"
    volume = volume_labels.read(row, path, versions)
    return Denial(
        f"Known cause: SELinux of {host} denies {one_line(path, 200)} to"
        f" {one_line(row.program, 40)} of that container ({' '.join(row.permissions)}):"
        f" {one_line(labels, 300)}{volume.sentence}",
        volume.advice or _advice(row, path, is_of_other=bool(categories)),
    )


def _categories(row: AvcDenial) -> str:
    """Return the categories of a file of containers that the program has not, or ""."""
    level = avc_denial.part(row.target, 3)
    is_same = level == avc_denial.part(row.source, 3)
    if row.label not in _FILES_OF_CONTAINERS or "c" not in level or is_same:
        return ""
    return level


def _advice(row: AvcDenial, path: str, *, is_of_other: bool) -> str:
    word = "FILE"
    if shell_name(path.replace("/", "."), ""):
        word = path
    free = (
        "give that container securityContext.privileged: true, or securityContext.seLinuxOptions"
        " type: spc_t alone (in the manifest or the values of its chart), which SELinux does not"
        " confine"
    )
    look = "ausearch -m avc -ts boot shows the denials"
    if is_of_other:
        return (
            f"give the pods that share {word} the same securityContext.seLinuxOptions.level, or the"
            f" folder no categories (chcon -R -l s0); {look}"
        )
    if path.startswith(_OF_MACHINE):
        return f"{free}; leave the label of {word}, which programs of the machine use; {look}"
    folder = word.rsplit("/", 1)[0] or "/"
    if row.kind == "dir" and row.file == path.rsplit("/", 1)[-1]:
        folder = word
    label = "container_file_t"
    if row.domain.startswith("svirt_"):
        label = "svirt_lxc_file_t or svirt_sandbox_file_t, whichever the policy has"
    return (
        f"give {folder} the label of the files of containers, {label} (semanage fcontext -a -t"
        f" LABEL '{folder}(/.*)?' and restorecon -Rv {folder}; without semanage chcon -R -t LABEL"
        f" {folder}), or {free}; {look}"
    )
