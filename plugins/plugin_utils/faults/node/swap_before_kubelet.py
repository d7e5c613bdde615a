# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find swap on a machine that is being made a node and has no kubelet yet.

The configuration of that kubelet is not known, so it is a warning. Programs that bring a kubelet
with failSwapOn false (k3s, RKE2, k0s, MicroK8s) do not count, nor does a server of etcd alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...evidence.document import one_line
from ...models.cluster import Host
from ...models.result import EvidenceRef
from ...models.swap import node as swap_node
from ...models.swap.evidence import Source
from ...models.swap.sources import Running
from ..base import Detection

# Deckhouse's steps, and a kubelet that has no unit yet.
STEPS, PROGRAM = "/var/lib/bashible", "/kubelet"
FOLDERS = ("/bin", "/sbin")
# Units that systemd makes again at each boot and at each daemon-reload: only a mask keeps them off.
GENERATORS = frozenset(("fstab", "generator", "gpt-auto", "kernel", "zram-generator"))
SHOWN = 3


def is_awaited(host: Host) -> bool:
    """Tell whether a kubelet will come to a machine that has none."""
    traces = host.traces or ()
    return host.statuses.get("kubelet") == "absent" and any(map(_is_sign, traces))


def _is_sign(trace: str) -> bool:
    folder, _slash, _name = trace.rpartition("/")
    return trace == STEPS or (trace.endswith(PROGRAM) and folder.endswith(FOLDERS))


def of_host(
    host: Host,
    document: Mapping[str, Any],
    place: Callable[[Host, Source], EvidenceRef],
    undone: Callable[[Source], str],
) -> Detection | None:
    """Return the hit of swap that is on, and what brings it back; None where none is on.

    place, undone: return the evidence of a source, and what keeps it off
    """
    node = swap_node.read(document)
    swaps = [swap for swap in node.on or () if node.owns_swap(swap)]
    if not swaps:
        return None
    sources = list(dict.fromkeys([*(swap.source for swap in swaps), *node.coming()]))
    causes = [source for source in sources if source.origin not in ("hand", "unknown")]
    return Detection(
        f"swap is on ({_names(swaps)}), and this machine has no kubelet yet: a kubelet ends at its"
        f" start where failSwapOn is not false{_back(causes)}",
        (*_proofs(host, swaps), *(place(host, source) for source in causes[:SHOWN])),
        _advice(swaps, causes, undone),
        host=host.host,
        node=host.node,
        component="kubelet",
        severity="warning",
    )


def _names(swaps: Iterable[Running]) -> str:
    return ", ".join(one_line(swap.active.path, 80) for swap in list(swaps)[:SHOWN])


def _units(causes: Iterable[Source]) -> list[str]:
    """Return the units that swap.target starts again whenever a start of another one needs it."""
    return [one_line(row.unit, 80) for row in causes if row.unit and row.origin in GENERATORS][
        :SHOWN
    ]


def _back(causes: list[Source]) -> str:
    """Return what brings it back, as a clause, or ""."""
    if not causes:
        return ""
    first = causes[0]
    comes = "brings it back at each boot" if first.on else "made it"
    text = f"; {first.origin} ({one_line(first.place, 120)}) {comes}"
    units = _units(causes)
    if units:
        text += (
            f". swap.target starts {units[0]} again after a swapoff or systemctl stop, and a set-up"
            " that waits for it may hang"
        )
    return text


def _advice(swaps: list[Running], causes: list[Source], undone: Callable[[Source], str]) -> str:
    masks = [f"systemctl mask {unit}" for unit in _units(causes)]
    persistent = [undone(source) for source in causes]
    commands = ", ".join(f"swapoff {one_line(swap.active.path, 80)}" for swap in swaps[:SHOWN])
    first = "; ".join(dict.fromkeys([*masks, *persistent]))
    if first:
        commands = f"first keep it off: {first}. Then {commands}"
    return (
        f"on that machine {commands}, and let the set-up of the node go on (systemctl list-jobs"
        " shows what waits). Where pods are meant to use swap: failSwapOn: false in the kubelet's"
        " configuration instead"
    )


def _proofs(host: Host, swaps: list[Running]) -> Iterator[EvidenceRef]:
    for swap in swaps[:SHOWN]:
        row = swap.active
        text = f"{row.path} {row.kind} {row.size_kib} KiB, {row.used_kib} KiB used"
        yield EvidenceRef("file", host.host, path="/proc/swaps", text=one_line(text, 200))
