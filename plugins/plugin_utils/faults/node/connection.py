# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that a host gave evidence, and give advice by what Ansible and ssh say where it did not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence.document import NEVER_BEGAN
from ...evidence.sources import BROKEN
from ...models.cluster import Host
from ...models.result import EvidenceRef
from ..base import CheckResult, Detection, node_check

# Messages of ssh, sudo, su and Ansible, and of kubemend where no Python is found. The first that
# matches counts: what becomes root also says "permission denied" or "timed out".
ADVICE = (
    (
        re.escape(BROKEN),
        "copy the file again from where it was written, or audit the host again",
    ),
    (re.escape(NEVER_BEGAN), "correct the inventory: the reason names what Ansible cannot use"),
    (
        r"sudo: (a password|a terminal|not found|command not found)|sudo password|sudoers"
        r"|\b(doas|su): |not allowed to|Incorrect \w+ password|become|privilege escalation",
        "let the account become root: -K asks for its password, a rule of sudoers without a"
        " password needs no option; -e kubemend_become=false audits what the account may read",
    ),
    (
        r"no Python|[Pp]ython[\d.]*: (command )?not found",
        "install Python 3.6 or newer, or set ansible_python_interpreter",
    ),
    (
        r"resolve hostname|Name or service not known|nodename nor servname",
        "correct ansible_host in the inventory, or the name in DNS",
    ),
    (
        r"Host key verification failed|IDENTIFICATION HAS CHANGED",
        "log in once by ssh, which shows the key of the host and writes it to known_hosts; if it"
        " has changed, find out why first",
    ),
    (
        r"Permission denied|Too many authentication failures|no such identity",
        "ssh refuses the account: correct ansible_user, its key or its password",
    ),
    (r"Connection refused", "start sshd on the host, or correct ansible_host and ansible_port"),
    (
        r"timed out|No route to host|Network is unreachable|Host is down",
        "make sure that the host runs, and that this machine reaches its ssh port",
    ),
    (
        r"no answer within",
        "see on the host what slows it down; a larger kubemend_timeout waits longer",
    ),
)
OTHERWISE = "repair what the reason names"
EFFECTS = {"unreachable": "did not answer"}


@node_check(
    "KM901",
    "Host gave no evidence",
    severity="warning",
    applies="every host that the run asked",
)
def unanswered(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM901: report a host that gave no evidence."""
    if host.status == "ok":
        yield CheckResult(host=host.host)
        return
    if host.status == "not_asked":
        yield CheckResult((), host.missing("system"), host=host.host)
        return
    reason = host.reason or host.status
    hit = Detection(
        _effect(host.status, reason),
        (EvidenceRef("log", host.host, text=reason),),
        f"{advice(reason)}. Until then the state of the host is unknown",
        host.host,
        host.node,
    )
    yield CheckResult((hit,), host=host.host)


def _effect(status: str, reason: str) -> str:
    if reason.startswith(BROKEN):
        return reason
    return f"the host {EFFECTS.get(status, 'gave no evidence')}: {reason}"


def advice(reason: str) -> str:
    """Return what to do about the reason that a host gave no evidence."""
    return next((text for pattern, text in ADVICE if re.search(pattern, reason)), OTHERWISE)
