# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that share one kernel have one finding for what is the kernel's.

They are containers as nodes, known by the id of their boot. Only what a kernel has once is merged:
fs.*, kernel.*, swap. What is of a network namespace (net.*), of a control group or of a node's
own files stays each node's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.system import System
from .result import SEVERITIES, Finding, Verdict

Token = tuple[Any, ...]
SHOWN = 8
LASTING, WISH = "lasting", "wish"  # what a token of KM407 begins with


def token(document: Mapping[str, Any], subject: str, *more: Any) -> Token | None:
    """Return what a host shares with every host of its kernel; None where its boot has no id."""
    boot = contract.answer(document, System).boot_id
    if boot is not None and len(boot) >= 32:
        return (subject, boot, *more)
    return None


def merge(
    findings: list[Finding],
    verdicts: list[Verdict],
    cluster: str | None,
    kernels: Mapping[str, tuple[Token, int]],
    settled: Mapping[Token, str],
) -> None:
    """Make the findings of one cluster's hosts that share a kernel one, in place."""
    groups: dict[Token, list[Finding]] = {}
    for item in findings:
        if item.cluster == cluster and item.id in kernels and item.host:
            groups.setdefault(kernels[item.id][0], []).append(item)
    # The host of what is used up first: what is said of the same setting besides is then said of
    # that host, and one step of a plan answers both.
    chosen: dict[tuple[Any, ...], str | None] = {}
    for shared, group in sorted(groups.items(), key=lambda pair: pair[0][0] in (LASTING, WISH)):
        if shared in settled:
            _drop(findings, verdicts, group, settled[shared])
        elif len({item.host for item in group}) > 1:
            about = (shared[1], group[0].component)
            first = min(
                group,
                key=lambda item: (
                    kernels[item.id][1],
                    item.host != chosen.get(about),
                    item.host or "",
                ),
            )
            chosen.setdefault(about, first.host)
            _join(findings, verdicts, group, first)


def _drop(
    findings: list[Finding], verdicts: list[Verdict], group: list[Finding], host: str
) -> None:
    """Leave out what another host answers for the kernel that these hosts share with it."""
    ids = {item.id for item in group}
    findings[:] = [item for item in findings if item.id not in ids]
    note = f"its kernel is that of {host}, whose files say it"
    for item in group:
        if not any(finding.code == item.code and finding.host == item.host for finding in findings):
            _say(verdicts, item.code, item, "not_applicable", note)


def _join(
    findings: list[Finding], verdicts: list[Verdict], group: list[Finding], first: Finding
) -> None:
    """Put this one in the place of all, for every host."""
    finding = _of_every_host(first, group)
    place, ids = findings.index(first), {item.id for item in group}
    findings[place] = finding
    findings[:] = [item for item in findings if item is finding or item.id not in ids]
    for item in group:
        if item.code != first.code:
            _say(verdicts, first.code, item, "present", "")
            _say(
                verdicts,
                item.code,
                item,
                "not_applicable",
                f"{first.code} of {first.host} names it",
            )
            _rename(findings, item, first.code)


def _of_every_host(first: Finding, group: list[Finding]) -> Finding:
    """Return a finding for the hosts of all, of the greatest severity."""
    names = tuple(dict.fromkeys([first.host or "", *sorted(item.host or "" for item in group)]))
    other_hosts = names[1:]
    text = ", ".join(other_hosts[:SHOWN])
    if len(other_hosts) > SHOWN:
        text += f" and {len(other_hosts) - SHOWN} more"
    verb = "shares" if len(other_hosts) == 1 else "share"
    return replace(
        first,
        hosts=names,
        severity=min((item.severity for item in group), key=SEVERITIES.index),
        summary=f"{first.summary}; {text} {verb} its kernel",
    )


def _rename(findings: list[Finding], item: Finding, code: str) -> None:
    """Let what this finding explained on its host be explained by the one in its place."""
    for index, other in enumerate(findings):
        if other.host == item.host and item.code in other.because:
            because = dict.fromkeys(
                code if cause == item.code else cause for cause in other.because
            )
            findings[index] = replace(other, because=tuple(because))


def _say(verdicts: list[Verdict], code: str, item: Finding, verdict: str, note: str) -> None:
    """Set the verdict of this fault for the host of a finding."""
    entry = Verdict(code, item.cluster, verdict, item.host, None, (), note)
    for index, former in enumerate(verdicts):
        if (former.code, former.cluster, former.host) == (code, item.cluster, item.host):
            verdicts[index] = entry._replace(component=former.component)
            return
    verdicts.append(entry)


def hosts_of(items: Iterable[Finding]) -> set[str]:
    """Return every host that one of these findings is of."""
    return {host for item in items for host in item.everywhere}
