# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of SELinux: its mode, and what it denied since the boot."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.kubemend.remediation.plugins.module_utils.system import boot_firewall

from .cluster import Evidence


def selinux(
    evidence: Evidence,
    hosts: Iterable[str],
    enforce: str = "1",
    config: str = "enforcing",
    denied: Iterable[str] = (),
    last: int = 30,
) -> None:
    """Let SELinux run on hosts, with these denials.

    denied: each as the audit log has it behind "msg=audit(...): ". last: the age of the last one,
    in seconds.
    """
    texts = list(denied)
    for host in hosts:
        first = evidence.now - last - len(texts)
        lines = [
            f"type=AVC msg=audit({first + number:.3f}:{4000 + number}): {text}"
            for number, text in enumerate(texts, 1)
        ]
        kept = [line[:400] for line in lines[-boot_firewall.MAX_LINES :]]
        log = {"cut": False, "since": True, "path": boot_firewall.AUDIT, "error": None}
        boot = evidence.data(host, "boot")
        boot["selinux"] = {"enforce": enforce, "config": config}
        boot["denials"] = {"count": len(lines), "lines": kept, **log}
