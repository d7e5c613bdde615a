# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a program of a node from being executed, by the errno and the node's settings. Pure.

A kernel tells a file without the right to be executed, a mount with noexec and SELinux by EACCES.
What decides on each execution beside them, as fapolicyd does, tells it by EPERM.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...evidence.answers.node.boot import Boot, Mount
from ...evidence.document import one_line, shell_name

_REFUSED = re.compile(
    r"(?:\bexec |\bfork/exec |\bEXEC spawning )\"?(?P<path>/[^\s\"':]{1,300})\"?:"
    r" (?P<errno>operation not permitted"
    r"|permission denied)",
    re.IGNORECASE,
)
# By whether fapolicyd runs; None where that is not known.
_DECIDES = {
    True: "fapolicyd runs here, and denies what it does not trust",
    False: (
        "not fapolicyd, which does not run here, but another program that decides on each execution"
        " (protection against malware), or a policy of the kernel (IPE, IMA)"
    ),
    None: "fapolicyd, or another program that decides on each execution, denies that",
}
_RULES = (
    "for RKE2 and k3s a file /etc/fapolicyd/rules.d/80-kubernetes.rules with the lines allow"
    " perm=any all : dir=/var/lib/rancher/, and the same of /run/k3s/, /opt/cni/ and"
    " /var/lib/kubelet/; for packages fapolicyd-cli --file add FOLDER/; then fagenrules --load and"
    " systemctl restart fapolicyd"
)


class Refusal(NamedTuple):
    """Why a program was not executed, as a clause, and what to do about it; both may be empty."""

    clause: str = ""
    advice: str = ""


def read(line: str, boot: Boot) -> Refusal:
    """Return why the program that a line names was not executed."""
    match = _REFUSED.search(line)
    if match is None:
        return Refusal()
    path = match.group("path")
    if match.group("errno").lower() == "permission denied":
        return _denied(path, boot)
    return _not_permitted(path, boot)


def _not_permitted(path: str, boot: Boot) -> Refusal:
    shown, word = one_line(path, 200), _in_shell(path, "FILE")
    return Refusal(
        f"; the kernel does not let it execute {shown}: {_DECIDES[boot.fapolicyd]}",
        f"systemctl is-active fapolicyd, and ausearch -m FANOTIFY -ts recent, show what denies"
        f" {word} (not a mount with noexec, nor SELinux: these say permission denied); {_RULES}",
    )


def _denied(path: str, boot: Boot) -> Refusal:
    shown, word = one_line(path, 200), _in_shell(path, "FILE")
    mount = _mount(path, boot.mounts or ())
    if mount is not None and "noexec" in mount.options.split(","):
        point = one_line(mount.point, 200)
        return Refusal(
            f"; {point} is mounted with noexec, so that nothing below it is executed",
            f"mount -o remount,exec {_in_shell(mount.point, 'FOLDER')}, and take noexec of it out"
            " of /etc/fstab or of its mount unit. Each program there can be executed then: else"
            " move this one to another file system",
        )
    return Refusal(
        f"; it may not execute {shown}",
        f"ls -lZ {word} shows whether it has the right to be executed, findmnt -no OPTIONS -T"
        f" {word} whether its mount has noexec, and ausearch -m AVC -ts recent whether SELinux"
        " denies it (restorecon -v corrects a wrong label)",
    )


def _in_shell(path: str, instead: str) -> str:
    """Return a path that an operator may copy into a shell, or the other word."""
    return path if shell_name(path.replace("/", "."), "") else instead


def _mount(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """Return the file system that has a path: of those that are known, the nearest."""
    above = [row for row in mounts if f"{path}/".startswith(f"{row.point.rstrip('/')}/")]
    return max(above, key=lambda row: len(row.point), default=None)
