# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fault KM504: swap that a kubelet refuses, now or after the next boot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...evidence.document import one_line
from ...models import shared_kernel
from ...models.cluster import Host
from ...models.result import Missing, Proof
from ...models.swap import node as node_swap
from ...models.swap.evidence import Source
from ...models.swap.node import NodeSwap
from ..base import Hit, Outcome, node_check

SHOWN = 5
TOLERATED = "swap is on, or will be, and the kubelet tolerates it (failSwapOn false)"


@node_check(
    "KM504",
    "Swap is on where the kubelet refuses it",
    severity="critical",
    applies="nodes with a kubelet",
    risk=3,
    needs=("kubelet", "swap"),
)
def swap_on(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM504: the kubelet refuses swap, and swap is on or will be."""
    if host.statuses.get("kubelet") == "absent":
        yield Outcome((), host=host.host, component="kubelet", applies=False, note="no kubelet")
        return
    missing = host.missing("kubelet") or host.missing("swap", absent_is_answer=False)
    if missing:
        yield Outcome((), missing, host=host.host, component="kubelet")
        return
    node = node_swap.read(document)
    yield _judged(host, node, document)


def _judged(host: Host, node: NodeSwap, document: Mapping[str, Any]) -> Outcome:
    on, comes = bool(node.on), bool(node.coming())
    if (on or comes) and node.refused:
        # Swap that is on is the kernel's; it goes where its file is, which one of the containers
        # may have.
        shared = (
            shared_kernel.token(document, "swap", *sorted(one.active.path for one in node.on or ()))
            if on
            else None
        )
        hit = replace(
            _hit(host, node),
            kernel=shared,
            rank=0 if any(node.own(one) for one in node.on or ()) else 1,
        )
        return Outcome((hit,), host=host.host, component="kubelet")
    if node.wanted.refuses is False:
        return Outcome(
            (), host=host.host, component="kubelet", note=TOLERATED if on or comes else ""
        )
    if on or comes:
        return _unknown(host, "kubelet", [*node.wanted.unknown, *node.wanted.fatal])
    if node.on is None:
        return _unknown(host, "swap", ["/proc/swaps is not known"])
    if node.later.on is None:
        told = [
            f"{source.place}: {source.why}" for source in node.later.sources if source.on is None
        ]
        return _unknown(host, "swap", [*node.later.unknown, *told])
    return Outcome((), host=host.host, component="kubelet")


def _unknown(host: Host, collector: str, why: Iterable[str]) -> Outcome:
    return Outcome(
        (),
        (Missing(host.host, collector, "error"),),
        host=host.host,
        component="kubelet",
        note=one_line("; ".join(list(why)[:3]), 300),
    )


def _hit(host: Host, node: NodeSwap) -> Hit:
    name, coming = host.node or host.host, node.coming()
    what = ", ".join(one_line(one.active.path, 80) for one in (node.on or ())[:SHOWN])
    named = {source.device for source in coming}
    running = [
        one.source
        for one in node.on or ()
        if one.source.origin != "unknown" or one.active.path not in named
    ]
    sources = "; ".join(dict.fromkeys(_told(source) for source in [*running, *coming]))
    if node.wanted.wants:
        state = (
            f"swap is meant for pods on {name} ({node.wanted.behavior}), and its kubelet refuses"
            " it: failSwapOn is not false"
        )
    elif node.on:
        state = f"swap is on at {name} ({what}), and its kubelet refuses it" + (
            ": it runs, because it started before, and will not start again"
            if node.answers
            else ": it does not run, and will not start"
        )
    else:
        state = (
            f"swap is off at {name} and comes back with the next boot: its kubelet refuses it, and"
            " will not start then"
        )
    critical = bool(node.on) and not node.answers
    return Hit(
        f"{state}; {sources}" if sources else state,
        tuple(_proofs(host, node, coming)),
        _remedy(node, coming),
        host=host.host,
        node=host.node,
        component="kubelet",
        severity=None if critical else "warning",
        risk=None if node.on else 1,
    )


def _remedy(node: NodeSwap, coming: list[Source]) -> str:
    if node.wanted.wants is not False:
        return (
            "set failSwapOn: false where pods are meant to use swap (memorySwap.swapBehavior), or"
            " take that away: nothing is switched off here before"
        )
    if node.on and not any(node.own(one) for one in node.on):
        return (
            "switch it off on the machine that runs this container, or in the container whose file"
            " it is"
        )
    by = [undone(source) for source in coming]
    first = "; ".join(dict.fromkeys(by)) or "nothing known brings it back at a boot"
    return f"{first}; then swapoff, if memory takes what lies in swap" if node.on else first


def undone(source: Source) -> str:
    """What keeps a source off, by hand."""
    said = {
        "comment": "comment {0}",
        "mask": "systemctl mask {0}",
        "disable": "systemctl disable --now {0}",
        "generator": "ln -s /dev/null {0}",
        "edit": "edit {0}",
    }
    return (
        ", ".join(
            said.get(undo.kind, "{0}").format(one_line(undo.target, 120)) for undo in source.undo
        )
        or f"find out what switches {source.device} on"
    )


def _told(source: Source) -> str:
    place = one_line(source.place or source.device, 120)
    return (
        f"source: {source.origin}"
        + (f" {place}" if source.place else "")
        + (f" ({one_line(source.why, 120)})" if source.why else "")
    )


def _proofs(host: Host, node: NodeSwap, coming: list[Source]) -> Iterator[Proof]:
    for number, one in enumerate((node.on or ())[:SHOWN], 2):
        text = (
            f"{one.active.path} {one.active.kind} {one.active.size_kib} KiB, {one.active.used_kib}"
            " KiB used"
        )
        yield Proof("file", host.host, path="/proc/swaps", line=number, text=one_line(text, 200))
    sources = dict.fromkeys([*(one.source for one in node.on or () if one.source.place), *coming])
    for source in list(sources)[: 2 * SHOWN]:
        yield _place(host, source)
    if node.setting:
        yield node.setting.proof(host.host)


def _place(host: Host, source: Source) -> Proof:
    path, colon, line = source.place.rpartition(":")
    text = one_line(
        f"{source.origin}: {source.device or source.unit}"
        + (f", {source.why}" if source.why else ""),
        200,
    )
    if source.place.startswith("/") and colon and line.isdigit():
        return Proof("file", host.host, path=one_line(path, 200), line=int(line), text=text)
    if source.place.startswith("/"):
        return Proof("file", host.host, path=one_line(source.place, 200), text=text)
    return Proof("unit", host.host, object=one_line(source.place or source.unit, 120), text=text)
