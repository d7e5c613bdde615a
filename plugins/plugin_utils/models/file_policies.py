# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which policy of a node denies root a file of the runtime or of the kubelet. Pure.

Owner and mode do not keep root out. EACCES is of a security module (SELinux, AppArmor, the
appraisal of IMA); EPERM is of what decides on each access (fapolicyd, protection against malware),
of the attribute i of a file, or of a machine that is a container itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.boot import Boot
from ..evidence.answers.node.failed_units import FailedUnits
from ..evidence.answers.node.kernel_log import KernelLog
from ..evidence.answers.node.path_states import PathStates
from ..evidence.document import ends, one_line
from ..parsers import error_origin
from ..parsers.error_origin import Origin
from .denied_file import ENFORCES, Denial

APPARMOR, FAPOLICYD = "apparmor", "fapolicyd"
UNCONFINED = "unconfined"
_NAMESPACES = re.compile(r"/proc/(?:self|thread-self|\d{1,10}(?:/task/\d{1,10})?)/ns/")
_RULES = (
    "give fapolicyd rules that allow these folders (/etc/fapolicyd/rules.d: allow perm=any all :"
    " dir=/var/lib/containerd/, and the same of the runtime's other folders and /var/lib/kubelet/;"
    " fagenrules --load; systemctl restart fapolicyd), or let no node of the cluster run it"
)


@dataclass(frozen=True)
class Policies:
    """What may deny files to root on a machine, as its evidence shows it.

    fapolicyd, selinux: whether it runs and enforces; None where that is not known
    apparmor: the newest line of the kernel by which AppArmor denied a program something
    immutable: files and folders that carry the attribute i
    profiles: those of AppArmor that confine or watch a program of the runtime, with their mode
    """

    fapolicyd: bool | None = None
    selinux: bool | None = None
    apparmor: str = ""
    immutable: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()


def extract(document: Mapping[str, Any]) -> Policies:
    """Return the policies of one node."""
    boot = contract.answer(document, Boot)
    kernel = contract.answer(document, KernelLog)
    states = contract.answer(document, PathStates)
    enforces = None
    if boot.selinux is not None:
        enforces = boot.selinux.enforce == ENFORCES and not boot.container
    denials = [row.line for row in kernel.rows if row.kind == APPARMOR]
    return Policies(
        boot.fapolicyd or _tries_fapolicyd(document),
        enforces,
        one_line(denials[-1], 300) if denials else "",
        # Of a path that is missing, the folder above it carries the attribute.
        tuple(dict.fromkeys(row.above or row.path for row in states.paths if row.immutable)),
        tuple(
            f"{one_line(name, 120)} ({one_line(mode, 20)})"
            for name, mode in (boot.apparmor or {}).items()
            if mode != UNCONFINED
        ),
    )


def _tries_fapolicyd(document: Mapping[str, Any]) -> bool | None:
    """Return True where systemd starts fapolicyd again and again, None where it does not."""
    units = contract.answer(document, FailedUnits).units
    names = {unit.name for unit in units if unit.n_restarts}
    return True if f"{FAPOLICYD}.service" in names else None


def read(origin: Origin, policies: Policies) -> Denial:
    """Return which policy denies what an error is about; empty where it is of another kind."""
    if origin.is_refused and policies.profiles and _NAMESPACES.match(origin.path):
        return _of_profiles(policies)
    if not origin.is_refused or origin.path.startswith(("/proc/", "/sys/", "/dev/")):
        return Denial()
    active, advice = _active(origin, policies)
    begin = (
        "Owner and mode do not keep root out: a security module, a file policy or a file attribute"
        " of that machine denies the access"
    )
    if not active:
        return Denial(f"{begin}; the evidence does not show which one")
    return Denial(f"{begin}. Active there: {', '.join(active)}", advice)


def _of_profiles(policies: Policies) -> Denial:
    """Return the profiles that may deny a program its own namespaces."""
    return Denial(
        f"Not unconfined there is AppArmor's profile {', '.join(policies.profiles[:3])}",
        "write flags=(unconfined) into that file of /etc/apparmor.d, as the package has it, and"
        " load it (apparmor_parser -r FILE)",
    )


def _active(origin: Origin, policies: Policies) -> tuple[list[str], str]:
    """Return what is active and answers with this errno, and what to do about the first."""
    if origin.errno == error_origin.NOT_PERMITTED:
        return _of_decisions(origin, policies)
    names, advice = [], ""
    if policies.selinux:
        names.append("SELinux, which enforces")
        advice = (
            "ausearch -m avc -ts recent shows the denial, restorecon -Rv of the folder labels it"
        )
    if policies.apparmor or policies.profiles:
        shown = ends(policies.apparmor, 160) or f"profile {', '.join(policies.profiles[:3])}"
        names.append(f"AppArmor ({shown})")
        advice = advice or "see the mode and the rules of that profile (aa-status)"
    return names, advice


def _of_decisions(origin: Origin, policies: Policies) -> tuple[list[str], str]:
    names, advice = [], ""
    if policies.fapolicyd:
        names.append(FAPOLICYD)
        advice = _RULES
    # In a folder with the attribute no entry is made or removed; what lies deeper may change.
    places = (origin.path, origin.path.rpartition("/")[0])
    fixed = next((row for row in policies.immutable if row in places), "")
    if fixed:
        names.append(f"the attribute i of {one_line(fixed, 200)}")
        name = shlex.quote(one_line(fixed, 200))
        advice = advice or f"on that node lsattr -d {name} shows it, chattr -i {name} removes it"
    return names, advice
