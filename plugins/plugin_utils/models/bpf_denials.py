# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BPF programs and maps that SELinux denies privileged containers, by the audit log. Pure.

The domain of these containers is to be confined by nothing: the policy lacks a rule. Networks with
BPF (Cilium, Calico's eBPF mode) translate the addresses of Services by such programs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..evidence.document import one_line
from ..parsers import avc_denial
from .denied_file import Denial

COMPONENT = "bpf"
_KIND, _DOMAIN = "bpf", "spc_t"
# container-selinux: 4c51e97 brings the rule, e8be5d3 corrects its comment.
_FIXED = "2.164.1"
_THREADS = (
    "https://github.com/coreos/fedora-coreos-tracker/issues/881",
    "https://github.com/containers/container-selinux/pull/138",
)


def of_privileged(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines by which a privileged container may not use BPF."""
    return tuple(line for line in lines if _is_of_privileged(line))


def _is_of_privileged(line: str) -> bool:
    denial = avc_denial.read(line)
    return denial.is_enforced and denial.kind == _KIND and denial.domain == _DOMAIN


def read(lines: Sequence[str]) -> Denial:
    """Return what such lines mean, and what to do about it; nothing without any."""
    denials = [avc_denial.read(line) for line in lines]
    if not denials:
        return Denial()
    programs = dict.fromkeys(one_line(row.program or "?", 40) for row in denials)
    rights = sorted({right for row in denials for right in row.permissions})
    return Denial(
        f"SELinux denies BPF programs to privileged containers: {', '.join(list(programs)[:5])}"
        f" may not {', '.join(rights[:5])} (class bpf, domain {_DOMAIN}). The policy lacks that"
        " rule, and a network that translates Services by BPF (Cilium, Calico's eBPF mode) may not"
        " do so: pods then do not reach the addresses of Services",
        f"see rpm -q container-selinux: install {_FIXED} or later, or the image of the system that"
        " has it, and start the pods of the network on that node again. Where it is newer,"
        " ausearch -m avc -ts boot --raw | grep tclass=bpf | audit2allow -M bpf-of-pods shows the"
        f" rule that is missing, and semodule -i bpf-of-pods.pp adds it. See {', '.join(_THREADS)}",
    )
