# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap that a kubelet refuses, switched off as steps.

First what would bring it back, at its source, then the swap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....module_utils.shared.step_kinds import SWAP_OFF as OFF
from ....module_utils.shared.step_kinds import SWAP_PERSISTENCE as PERSISTENCE
from ....module_utils.shared.step_kinds import kind_of
from ...editing.draft import Splice, change_of
from ...evidence import contract
from ...evidence.answers.file_record import FileRecord
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.swap import Memory
from ...evidence.document import one_line
from ...models.swap import generators
from ...models.swap import node as swap_node
from ...models.swap import sources as swap_sources
from ...models.swap.evidence import TARGET, UNITS, Source, Undo
from ...models.swap.node import NodeSwap
from ...models.swap.sources import Running
from ...parsers import swap_files
from .. import fencing
from ..plan import RemedyContext, Step, label, left_out

SECONDS = kind_of(OFF).seconds
RISKS, LIMITS = {OFF: 3, PERSISTENCE: 1}, {OFF: SECONDS, PERSISTENCE: 60}
MARK = "# kubemend: "
ZRAM = "/etc/systemd/zram-generator.conf"
# zram-generator's configuration once it was made empty
EMPTY = FileRecord(ZRAM, kind="file", text="")
_NAME = re.compile(r"[A-Za-z0-9:_.\\-]{1,200}\.(?:swap|target)\Z")


@dataclass
class Sources:
    """What keeps every source off.

    Lines of fstab, files that are made empty (masks of units, zram-generator's configuration), what
    is done by hand.
    """

    lines: set[int] = field(default_factory=set)
    empty: dict[str, str] = field(default_factory=dict)
    hand: list[str] = field(default_factory=list)


def off(scene: RemedyContext) -> list[Step]:
    """KM504: the sources one by one, then each swap; or what stands in the way."""
    node = swap_node.read(scene.document)
    here = _own_swaps(node)
    # a container that only shows the swap of its machine: there is nothing to be done in it
    if not node.refused or (node.on and not here):
        return []
    measures = sources(node)
    forbidden = _forbidden(scene, node, measures)
    keep = list(_persistence(scene, node, measures, forbidden))
    unsafe = None if forbidden else _unsafe(node, here)
    if unsafe and keep:
        return _noted(keep, f"the swap that is on stays: {unsafe}")
    return keep + [_off(scene, swap, forbidden or unsafe) for swap in here]


def _own_swaps(node: NodeSwap) -> list[Running]:
    """Return the swap that is on and belongs to this node."""
    return [swap for swap in node.on or () if node.owns_swap(swap)]


def _forbidden(scene: RemedyContext, node: NodeSwap, measures: Sources) -> str | None:
    """Return why neither the swap nor its sources are touched, or None."""
    untouched = left_out(scene, scene.finding.host or "") or fencing.refusal(scene)
    return untouched or _unwanted(node) or _by_hand(node, measures)


def _noted(steps: Sequence[Step], note: str) -> list[Step]:
    """Return the steps with a note: what is written lasts, whether or not swap can go today."""
    return [step if step.blocked_by else replace(step, note=note) for step in steps]


def sources(node: NodeSwap) -> Sources:
    """Return what keeps off whatever comes back."""
    measures = Sources()
    for source in node.coming():
        if not source.undo:
            measures.hand.append(
                f"find out what switches {one_line(source.device or source.place, 80)} on"
            )
        for undo in source.undo:
            _undone(node, source, undo, measures)
    return measures


def _undone(node: NodeSwap, source: Source, undo: Undo, measures: Sources) -> None:
    path, _dummy, line = undo.target.rpartition(":")
    if undo.kind == "comment" and path == swap_files.FSTAB and line.isdigit():
        measures.lines.add(int(line))
        if undo.note:  # without any line, systemd takes up partitions that it finds by itself
            measures.empty[f"{UNITS}/{TARGET}"] = f"{TARGET} masked"
    elif undo.kind == "mask" and _is_maskable(source, undo):
        measures.empty[f"{UNITS}/{undo.target}"] = f"{undo.target} masked"
    elif undo.kind == "mask":
        measures.hand.append(
            f"systemctl disable --no-reload {undo.operand} (its own file lies where a mask would):"
            f" {source.place}"
        )
    elif undo.kind == "generator" and _emptied(node, source):
        measures.empty[ZRAM] = "zram-generator makes nothing"
    else:
        measures.hand.append(_hand(undo))


def _is_maskable(source: Source, undo: Undo) -> bool:
    """Return whether a mask can be made: the unit's own file does not lie where it would."""
    return bool(_NAME.match(undo.target)) and not source.lies_where_a_mask_would


def _hand(undo: Undo) -> str:
    """Return what only a person does, as a command where one does it."""
    target = undo.operand
    return {
        "disable": f"systemctl disable --now {target}",
        "generator": undo.link,
    }.get(undo.kind, f"{undo.kind} {target}" + (f" ({undo.note})" if undo.note else ""))


def _emptied(node: NodeSwap, source: Source) -> bool:
    """Return whether an empty managed file leaves zram-generator nothing to make."""
    configuration = node.seen.files.get(ZRAM)
    if configuration is None or configuration.error != "missing":
        return False
    after = node.seen.with_file(EMPTY)
    return not any(
        product.on is not False
        for product in generators.from_zram(after)
        if product.unit == source.unit
    )


def _unwanted(node: NodeSwap) -> str | None:
    """Return why this swap cannot be what is wrong, or None."""
    if node.wanted.wants:
        return (
            f"pods are meant to use swap here ({node.wanted.behavior}): set failSwapOn: false, or"
            " take memorySwap.swapBehavior away"
        )
    if node.wanted.wants is None:
        return (
            "whether pods are meant to use swap is not known:"
            f" {'; '.join(node.wanted.unknown[:2]) or 'its settings contradict each other'}"
        )
    return None


def _by_hand(node: NodeSwap, measures: Sources) -> str | None:
    """Return what has to be done first, because a boot would bring the swap back."""
    if measures.hand:
        return one_line(
            "by hand, so that no boot brings it back: " + "; ".join(dict.fromkeys(measures.hand)),
            600,
        )
    unsure = [
        *node.later.unknown,
        *(
            f"{source.place or source.device}: {source.why}"
            for source in node.later.sources
            if source.on is None
        ),
    ]
    if unsure and not measures.lines and not measures.empty:
        return one_line(f"what a boot restores is not known: {'; '.join(unsure[:2])}", 600)
    return None


def _unsafe(node: NodeSwap, here: Sequence[Running]) -> str | None:
    """Return why swap may not be switched off now, or None."""
    for swap in here:
        reason = _unnameable(swap)
        if reason:
            return reason
    used = [swap.active.used_kib for swap in here]
    free = (node.seen.answer.memory or Memory()).mem_available_kib
    whole = None
    if None not in used:
        whole = sum(number for number in used if number is not None)
    safe = swap_sources.off_is_safe(whole, free)
    if safe:
        return None
    if safe is None:
        return "how much of it is used, or what memory has left, is not known"
    return (
        f"{whole} KiB of it are used, and memory has {free} KiB left: make room first (drain"
        " the node, or stop what needs so much), then swapoff -a"
    )


def _unnameable(swap: Running) -> str | None:
    """Return why swapoff cannot be given this path, or None."""
    path = one_line(swap.active.path, 80)
    if swap.active.deleted:
        return f"the file {path} was deleted while it is on: only a reboot ends it"
    if not swap.active.path.startswith("/") or not swap.active.path.isprintable():
        return f"{path} is no path that can be named to swapoff"
    return None


def _persistence(
    scene: RemedyContext, node: NodeSwap, measures: Sources, reason: str | None
) -> Iterator[Step]:
    if measures.lines:
        yield _fstab(scene, node, sorted(measures.lines), reason)
    for path, effect in sorted(measures.empty.items()):
        change: dict[str, Any] = {"kind": PERSISTENCE, "path": path, "sha256": None, "splices": []}
        yield _step(
            scene,
            PERSISTENCE,
            path,
            reason,
            f"--- /dev/null\n+++ {path}\n(an empty file: {effect})\n",
            change,
        )


def _fstab(scene: RemedyContext, node: NodeSwap, numbers: list[int], reason: str | None) -> Step:
    """Return the lines as comments; every other byte stays."""
    record = node.seen.answer.fstab or FileRecord()
    if record.text is None or record.sha256 is None or record.truncated:
        return _step(
            scene,
            PERSISTENCE,
            swap_files.FSTAB,
            reason or f"{swap_files.FSTAB} is not wholly known: comment line {numbers[0]} by hand",
            "",
            {},
        )
    lines = record.text.split("\n")
    splices, diff = [], f"--- {swap_files.FSTAB}\n+++ {swap_files.FSTAB}\n"
    for number in numbers:
        begin = len("".join(line + "\n" for line in lines[: number - 1]).encode())
        splices.append(Splice(begin, begin, b"", MARK.encode()))
        shown = one_line(lines[number - 1], 200)
        diff += f"@@ line {number} @@\n-{shown}\n+{MARK}{shown}\n"
    return _step(
        scene,
        PERSISTENCE,
        swap_files.FSTAB,
        reason,
        diff,
        change_of(swap_files.FSTAB, record.sha256, splices, PERSISTENCE),
    )


def _off(scene: RemedyContext, swap: Running, reason: str | None) -> Step:
    kubelet = contract.answer(scene.document, Kubelet)
    config = [
        {"path": file.path, "sha256": file.sha256}
        for file in (kubelet.config, *kubelet.config_dropins)
        if file is not None and file.sha256
    ]
    path = swap.active.path
    change = {"kind": OFF, "path": path, "config": config, "seconds": SECONDS}
    return _step(
        scene,
        OFF,
        path,
        reason,
        f"/proc/swaps: {one_line(path, 200)} off ({swap.active.used_kib} of {swap.active.size_kib}"
        " KiB used)\n",
        change,
    )


def _step(
    scene: RemedyContext,
    remedy: str,
    target: str,
    reason: str | None,
    diff: str,
    change: Mapping[str, Any],
) -> Step:
    finding = scene.finding
    host = finding.host or ""
    return Step(
        label(host, remedy.replace("_", "-"), target.rpartition("/")[2][:80]),
        host,
        finding.code,
        remedy,
        RISKS[remedy],
        one_line(target, 200),
        None,
        finding.node,
        blocked_by=reason,
        diff=diff,
        limit=LIMITS[remedy],
        change=change,
        expect={"component": None},
    )


REMEDIES = {"KM504": off}
