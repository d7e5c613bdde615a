# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM504: check swap that a kubelet refuses, now or after the next boot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...evidence.document import one_line
from ...models import shared_kernel
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ...models.swap import node as swap_node
from ...models.swap.evidence import Source
from ...models.swap.node import NodeSwap
from ..base import CheckResult, Detection, node_check, present, unknown
from . import swap_before_kubelet

SHOWN = 5
TOLERATED = "swap is on, or will be, and the kubelet tolerates it (failSwapOn false)"


@node_check(
    "KM504",
    "Swap is on where the kubelet refuses it",
    severity="critical",
    applies="nodes with a kubelet, and machines that are to get one",
    risk=3,
    needs=("kubelet", "swap", "installer"),
)
def swap_on(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM504: report a kubelet that refuses swap where swap is on or will be."""
    if swap_before_kubelet.is_awaited(host):
        yield _before_kubelet(host, document)
        return
    if host.statuses.get("kubelet") == "absent":
        yield CheckResult((), host=host.host, component="kubelet", applies=False, note="no kubelet")
        return
    missing = host.missing("kubelet") or host.missing("swap", absent_is_answer=False)
    if missing:
        yield CheckResult((), missing, host=host.host, component="kubelet")
        return
    node = swap_node.read(document)
    yield _evaluated(host, node, document)


def _before_kubelet(host: Host, document: Mapping[str, Any]) -> CheckResult:
    """Return the result of a machine on which a kubelet will come."""
    hit = swap_before_kubelet.of_host(host, document, _place, undone)
    if hit is not None:
        return present(hit, host=host.host, component="kubelet")
    missing = host.missing("swap", absent_is_answer=False)
    return CheckResult((), missing, host=host.host, component="kubelet", note="no kubelet yet")


def _evaluated(host: Host, node: NodeSwap, document: Mapping[str, Any]) -> CheckResult:
    swapped = bool(node.on) or bool(node.coming())
    if swapped and node.refused:
        return present(_shared_hit(host, node, document), host=host.host, component="kubelet")
    if node.wanted.refuses is False:
        note = ""
        if swapped:
            note = TOLERATED
        return CheckResult(host=host.host, component="kubelet", note=note)
    if swapped:
        return _unknown(host, "kubelet", [*node.wanted.unknown, *node.wanted.fatal])
    if node.on is None:
        return _unknown(host, "swap", ["/proc/swaps is not known"])
    if node.later.on is None:
        unclear = [
            f"{source.place}: {source.why}" for source in node.later.sources if source.on is None
        ]
        return _unknown(host, "swap", [*node.later.unknown, *unclear])
    return CheckResult(host=host.host, component="kubelet")


def _shared_hit(host: Host, node: NodeSwap, document: Mapping[str, Any]) -> Detection:
    """Return the hit with what other hosts share of it.

    Swap that is on is the kernel's; the host that has its file is named, which may be one of the
    containers.
    """
    hit = _hit(host, node)
    if not node.on:
        return replace(hit, rank=1)
    paths = sorted(swap.active.path for swap in node.on)
    rank = 1
    if any(node.owns_swap(swap) for swap in node.on):
        rank = 0
    return replace(hit, kernel=shared_kernel.token(document, "swap", *paths), rank=rank)


def _unknown(host: Host, collector: str, reasons: Iterable[str]) -> CheckResult:
    missing = Missing(host.host, collector, "error")
    note = one_line("; ".join(list(reasons)[:3]), 300)
    return unknown(missing, host=host.host, component="kubelet", note=note)


def _hit(host: Host, node: NodeSwap) -> Detection:
    coming = node.coming()
    named = {source.device for source in coming}
    running = [
        swap.source
        for swap in node.on or ()
        if swap.source.origin != "unknown" or swap.active.path not in named
    ]
    sources = "; ".join(dict.fromkeys(_source(source) for source in [*running, *coming]))
    summary = _state(node)
    if sources:
        summary = f"{summary}; {sources}"
    severity: str | None = "warning"
    risk = None
    if not node.on:
        risk = 1
    elif not node.answers:
        severity = None
    return Detection(
        summary,
        tuple(_proofs(host, node, coming)),
        _remedy(node, coming),
        host=host.host,
        node=host.node,
        component="kubelet",
        severity=severity,
        risk=risk,
    )


def _state(node: NodeSwap) -> str:
    if node.wanted.wants:
        return (
            f"swap is meant for pods ({node.wanted.behavior}), and its kubelet refuses"
            " it: failSwapOn is not false"
        )
    if not node.on:
        return (
            "swap is off and comes back with the next boot: its kubelet refuses it, and"
            " will not start then"
        )
    effect = "it does not run, and will not start"
    if node.answers:
        effect = "it runs, because it started before, and will not start again"
    paths = ", ".join(one_line(swap.active.path, 80) for swap in node.on[:SHOWN])
    return f"swap is on ({paths}), and its kubelet refuses it: {effect}"


def _remedy(node: NodeSwap, coming: list[Source]) -> str:
    if node.wanted.wants is not False:
        return (
            "set failSwapOn: false where pods are meant to use swap (memorySwap.swapBehavior), or"
            " take that away: nothing is switched off here before"
        )
    if node.on and not any(node.owns_swap(swap) for swap in node.on):
        return (
            "switch it off on the machine that runs this container, or in the container whose file"
            " it is"
        )
    commands = [undone(source) for source in coming]
    first = "; ".join(dict.fromkeys(commands)) or "nothing known brings it back at a boot"
    if node.on:
        return f"{first}; then swapoff, if memory takes what lies in swap"
    return first


def undone(source: Source) -> str:
    """Return what keeps a source off, by hand."""
    templates = {
        "comment": "comment {0}",
        "mask": "systemctl disable --now {0}"
        if source.lies_where_a_mask_would
        else "systemctl mask {0}",
        "disable": "systemctl disable --now {0}",
        "generator": "{1}",
        "edit": "edit {0}",
    }
    commands = [
        templates.get(undo.kind, "{0}").format(undo.operand, undo.link) for undo in source.undo
    ]
    return ", ".join(commands) or f"find out what switches {source.device} on"


def _source(source: Source) -> str:
    text = f"source: {source.origin}"
    if source.place:
        text += f" {one_line(source.place, 120)}"
    if source.why:
        text += f" ({one_line(source.why, 120)})"
    return text


def _proofs(host: Host, node: NodeSwap, coming: list[Source]) -> Iterator[EvidenceRef]:
    active = node.on or ()
    for number, swap in enumerate(active[:SHOWN], 2):
        row = swap.active
        text = f"{row.path} {row.kind} {row.size_kib} KiB, {row.used_kib} KiB used"
        yield EvidenceRef(
            "file", host.host, path="/proc/swaps", line=number, text=one_line(text, 200)
        )
    sources = dict.fromkeys([*(swap.source for swap in active if swap.source.place), *coming])
    for source in list(sources)[: 2 * SHOWN]:
        yield _place(host, source)
    if node.setting:
        yield node.setting.proof(host.host)


def _place(host: Host, source: Source) -> EvidenceRef:
    path, colon, line = source.place.rpartition(":")
    text = f"{source.origin}: {source.device or source.unit}"
    if source.why:
        text += f", {source.why}"
    text = one_line(text, 200)
    if source.place.startswith("/") and colon and line.isdigit():
        return EvidenceRef("file", host.host, path=one_line(path, 200), line=int(line), text=text)
    if source.place.startswith("/"):
        return EvidenceRef("file", host.host, path=one_line(source.place, 200), text=text)
    return EvidenceRef(
        "unit", host.host, object=one_line(source.place or source.unit, 120), text=text
    )
