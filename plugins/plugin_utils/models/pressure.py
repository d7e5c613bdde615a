# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is short of: its measures, the kubelet's thresholds for them, and what uses most.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...module_utils.shared import quantity
from ..evidence.document import one_line
from ..parsers import pflag as flags
from ..safe_io import yaml_nodes
from . import control_plane
from . import limits as node_limits
from .kubelet import config as kubelet_config
from .kubelet.config import KubeletConfig, Setting
from .result import Proof

# The signals behind each condition, as pkg/kubelet/eviction of Kubernetes has them.
SIGNALS = {
    "MemoryPressure": ("memory.available",),
    "PIDPressure": ("pid.available",),
    "DiskPressure": (
        "nodefs.available",
        "nodefs.inodesFree",
        "imagefs.available",
        "imagefs.inodesFree",
    ),
}
# What a kubelet has where its configuration names no evictionHard at all.
DEFAULTS = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
SINCE = {"imagefs.inodesFree": " since 1.30"}  # kubernetes/kubernetes#121834
KINDS = (("evictionHard", "eviction-hard"), ("evictionSoft", "eviction-soft"))
SHOWN = 5
MIN_SHARE = 0.01  # of the largest folder: what has less is not shown
MANY = 10000  # files of a folder, which use up inodes whatever their size
UNIT_NAMES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True)
class Measure:
    """One signal: what is free of how much, and where. error: why it is not known."""

    signal: str
    free: int | None
    total: int | None
    path: str = ""
    mount: str = ""
    error: str = ""

    @property
    def is_bytes(self) -> bool:
        return self.signal.endswith(".available") and not self.signal.startswith("pid.")

    def __str__(self) -> str:
        if self.free is None or not self.total:
            return f"{self.signal} is not known ({self.error or 'the node did not say'})"
        if self.is_bytes:
            what = f"{size(self.free)} of {size(self.total)}"
        else:
            what = f"{self.free} of {self.total}"
        return f"{self.signal} is {what} ({percent(self.free, self.total)})"


@dataclass(frozen=True)
class Threshold:
    """A threshold of eviction, as it was written. setting: where; None for the kubelet's own."""

    signal: str
    value: str
    kind: str
    setting: Setting | None = None

    def amount(self, total: int | None) -> Fraction | None:
        """Return the number of bytes, inodes or ids; None for what is none."""
        if self.value.endswith("%"):
            share = quantity.parse(self.value[:-1])
            return None if share is None or total is None else share * total / 100
        return quantity.parse(self.value)

    def __str__(self) -> str:
        default = "the kubelet's default" + SINCE.get(self.signal, "")
        where = f"{self.kind}, {_place(self.setting)}" if self.setting else default
        return f"{self.signal}<{one_line(self.value, 40)} ({where})"


@dataclass(frozen=True)
class Large:
    """A folder or a process, by what it uses. value: bytes, or a number of threads."""

    name: str
    value: int
    files: int = 0
    pid: int | None = None


@dataclass(frozen=True)
class Counted:
    """The largest folders of a filesystem, and what all that were counted hold together."""

    name: str
    folders: tuple[Large, ...]
    total: int | None
    complete: bool


@dataclass(frozen=True)
class Pressure:
    """What one host says of it. problem: why its thresholds may be others."""

    measures: tuple[Measure, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    filesystems: tuple[Counted, ...] = ()
    memory: tuple[Large, ...] = ()
    threads: tuple[Large, ...] = ()
    problem: str = ""

    def of(self, condition: str) -> Iterator[tuple[Measure, list[Threshold], bool]]:
        """Yield each measure of a condition, its thresholds, and whether one is crossed now."""
        for one in self.measures:
            if one.signal in SIGNALS.get(condition, ()):
                mine = [bound for bound in self.thresholds if bound.signal == one.signal]
                amounts = [bound.amount(one.total) for bound in mine]
                free = one.free
                crossed = free is not None and any(
                    amount is not None and free < amount for amount in amounts
                )
                yield one, mine, crossed


def extract(document: Mapping[str, Any]) -> Pressure:
    """Return what a host's evidence says; empty where its collectors did not answer."""
    seen = control_plane.data(document, "pressure")
    if not seen:
        return Pressure()
    config = kubelet_config.read(control_plane.data(document, "kubelet"))
    large = control_plane.data(document, "largest")
    return Pressure(
        tuple(_measures(seen)),
        tuple(thresholds(config)),
        tuple(_folders(large)),
        tuple(_processes(large, "memory", "rss")),
        tuple(_processes(large, "threads", "threads")),
        config.problem,
    )


def _measures(seen: Mapping[str, Any]) -> Iterator[Measure]:
    for one in node_limits.items(seen.get("filesystems")):
        name, path = one_line(one.get("name"), 40), one_line(one.get("path"), 200)
        mount = " ".join(one_line(one.get(key) or "", 200) for key in ("mount", "type")).strip()
        error = one_line(one.get("error") or "", 80)
        yield Measure(
            f"{name}.available", _number(one, "free"), _number(one, "total"), path, mount, error
        )
        if _number(one, "inodes"):
            yield Measure(
                f"{name}.inodesFree",
                _number(one, "inodes_free"),
                _number(one, "inodes"),
                path,
                mount,
                error,
            )
    memory, pids = (
        seen.get(key) if isinstance(seen.get(key), Mapping) else {} for key in ("memory", "pids")
    )
    yield Measure("memory.available", _number(memory, "available"), _number(memory, "total"))
    used, most = _number(pids, "threads"), _number(pids, "max")
    left = None if used is None or most is None else max(0, most - used)
    yield Measure("pid.available", left, most)


def thresholds(config: KubeletConfig) -> Iterator[Threshold]:
    """Yield those of a kubelet with this configuration; the hard ones come first."""
    for key, flag in KINDS:
        given = flags.string_flag(config.argv, flag)
        if given is None:
            found = {
                name: (value.value, value) for name, value in config.mapping(key, flag).items()
            }
        else:
            pairs = [part.partition("<") for part in given.split(",") if "<" in part]
            found = {
                name.strip(): (value.strip(), Setting(value.strip(), f"--{flag}={given}"))
                for name, _sign, value in pairs
            }
        merge = config.values.get(("mergeDefaultEvictionSettings",))
        merges = merge is not None and yaml_nodes.boolean(merge.value) is True
        if key == "evictionHard" and (not found or merges):
            yield from (
                Threshold(name, value, key) for name, value in DEFAULTS.items() if name not in found
            )
        yield from (Threshold(name, value, key, where) for name, (value, where) in found.items())


def _place(setting: Setting) -> str:
    return f"{setting.path}:{setting.line}" if setting.path else one_line(setting.text, 120)


def _folders(large: Mapping[str, Any]) -> Iterator[Counted]:
    for one in node_limits.items(large.get("filesystems")):
        rows = [
            Large(
                one_line(row.get("path"), 300),
                _number(row, "bytes") or 0,
                _number(row, "files") or 0,
            )
            for row in node_limits.items(one.get("folders"))
        ]
        yield Counted(
            one_line(one.get("name"), 40),
            tuple(rows[: 3 * SHOWN]),
            _number(one, "bytes"),
            one.get("complete") is True,
        )


def _processes(large: Mapping[str, Any], kind: str, key: str) -> Iterator[Large]:
    for one in node_limits.items(large.get(kind))[:SHOWN]:
        holder = node_limits.holder(one)
        if holder:
            yield Large(str(holder), _number(one, key) or 0, pid=holder.pid)


def _number(one: Any, key: str) -> int | None:
    found = node_limits.number(one.get(key)) if isinstance(one, Mapping) else None
    return None if found is None or found < 0 else found


def size(count: int) -> str:
    """Return a number of bytes as people read it."""
    value, index = Fraction(count), 0
    while value >= 1024 and index < len(UNIT_NAMES) - 1:
        value, index = value / 1024, index + 1
    return f"{float(value):.1f} {UNIT_NAMES[index]}" if index else f"{count} B"


def percent(part: int, whole: int) -> str:
    """Return a share with one digit behind the point."""
    return f"{100 * part / whole:.1f} %"


def told(condition: str, host: str, found: Pressure) -> tuple[list[str], list[Proof]]:
    """Return what a condition is about in clauses, and the proofs of all that is known of it."""
    rows = list(found.of(condition))
    clauses = [
        f"{one}{_at(one)}, below {_bounds(one, mine)}" for one, mine, crossed in rows if crossed
    ]
    proofs = [_proof(host, one, mine) for one, mine, crossed in rows if crossed or not clauses]
    if condition == "DiskPressure":
        short = {one.signal.partition(".")[0] for one, _mine, crossed in rows if crossed}
        proofs += _large_folders(host, found, short)
    large = {"MemoryPressure": found.memory, "PIDPressure": found.threads}.get(condition, ())
    proofs += [
        Proof(
            "process",
            host,
            pid=one.pid,
            text=f"{one.name}: "
            + (
                f"{size(one.value)} resident"
                if condition == "MemoryPressure"
                else f"{one.value} threads"
            ),
        )
        for one in large
    ]
    return clauses, proofs


def _large_folders(host: str, found: Pressure, short: set[str]) -> list[Proof]:
    mine = [one for one in found.filesystems if one.name in short or not short]
    most = [max((row.value for row in one.folders), default=0) for one in mine]
    rows = {
        (row.name, row.value): (row, one.complete)
        for one, bound in zip(mine, most)
        for row in one.folders
        if row.value >= MIN_SHARE * bound or row.files >= MANY
    }
    proofs = [
        Proof(
            "file",
            host,
            path=row.name,
            text=f"{size(row.value)} in {row.files} files"
            + ("" if complete else ", or more: there was no time to count all"),
        )
        for row, complete in list(rows.values())[: 2 * SHOWN]
    ]
    return proofs + [proof for one in mine[:1] for proof in _rest(host, found, one)]


def _rest(host: str, found: Pressure, counted: Counted) -> Iterator[Proof]:
    """Yield what else is in use, where the folders that were counted are not most of it."""
    name = f"{counted.name}.available"
    where = next((one for one in found.measures if one.signal == name and one.mount), None)
    if where is None or None in (where.total, where.free, counted.total) or not counted.complete:
        return
    used, held = (where.total or 0) - (where.free or 0), counted.total or 0
    if 2 * held < used:
        yield Proof(
            "file",
            host,
            path=where.path,
            text=(
                f"the folders that were counted hold {size(held)} of {size(used)} in use: the rest"
                " lies elsewhere on it, or in deleted files that a process has open (lsof +L1)"
            ),
        )


def _bounds(one: Measure, mine: list[Threshold]) -> str:
    return " and ".join(
        str(bound) for bound in mine if (bound.amount(one.total) or 0) > (one.free or 0)
    )


def _at(one: Measure) -> str:
    return f" on {one.mount} ({one.path})" if one.mount else ""


def _proof(host: str, one: Measure, mine: list[Threshold]) -> Proof:
    bounds = ", ".join(str(bound) for bound in mine) or "no threshold"
    text = f"{one}; threshold: {bounds}"
    if one.path:
        return Proof("file", host, path=one.path, text=f"mounted at {one.mount}: {text}")
    return Proof("process", host, text=text)
