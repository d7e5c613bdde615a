# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is short of: its measures, the kubelet's thresholds for them, and what uses most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...module_utils.shared import quantity
from ...module_utils.shared.text import counted
from ..evidence import contract
from ..evidence.answers.node import pressure
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.largest import Largest
from ..evidence.answers.process_holder import Holder
from ..evidence.document import one_line
from ..parsers import pflag
from ..safe_io import yaml_nodes
from . import container_logs, limits
from .kubelet import config as kubelet_config
from .kubelet.config import KubeletConfig, Setting
from .result import EvidenceRef

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
IMAGES = "imagefs.available"
KINDS = (("evictionHard", "eviction-hard"), ("evictionSoft", "eviction-soft"))
SHOWN = 5
MIN_SHARE = 0.01  # of the largest folder: what has less is not shown
MANY = 10000  # files of a folder, which use up inodes whatever their size
UNIT_NAMES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True)
class Measure:
    """One signal: what is free of how much, and where.

    error: why it is not known
    """

    signal: str
    free: int | None
    total: int | None
    path: str = ""
    mount: str = ""
    error: str = ""

    @property
    def is_bytes(self) -> bool:
        """Return whether it counts bytes, not inodes or process ids."""
        return self.signal.endswith(".available") and not self.signal.startswith("pid.")

    def __str__(self) -> str:
        if self.free is None or not self.total:
            return f"{self.signal} is not known ({self.error or 'the node did not say'})"
        if self.is_bytes:
            amount = f"{size(self.free)} of {size(self.total)}"
        else:
            amount = f"{self.free} of {self.total}"
        return f"{self.signal} is {amount} ({percent(self.free, self.total)})"


@dataclass(frozen=True)
class Threshold:
    """A threshold of eviction, as it was written.

    setting: where it is set; None for the kubelet's own
    """

    signal: str
    value: str
    kind: str
    setting: Setting | None = None

    def amount(self, total: int | None) -> Fraction | None:
        """Return the number of bytes, inodes or ids; None for what is none."""
        is_share = self.value.endswith("%")
        number: Fraction | None = quantity.parse(self.value[:-1] if is_share else self.value)
        if not is_share:
            return number
        if number is None or total is None:
            return None
        return number * total / 100

    def __str__(self) -> str:
        origin = "the kubelet's default" + SINCE.get(self.signal, "")
        if self.setting:
            origin = f"{self.kind}, {_place(self.setting)}"
        return f"{self.signal}<{one_line(self.value, 40)} ({origin})"


@dataclass(frozen=True)
class Large:
    """A folder or a process, by what it uses.

    value: bytes, or a number of threads
    """

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
    """What one host says of pressure.

    problem: why its thresholds may be others
    log_rotation: how the kubelet rotates the logs of containers, None where that is not known
    """

    measures: tuple[Measure, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    filesystems: tuple[Counted, ...] = ()
    memory: tuple[Large, ...] = ()
    threads: tuple[Large, ...] = ()
    problem: str = ""
    log_rotation: container_logs.Rotation | None = None

    def measures_of(self, condition: str) -> Iterator[tuple[Measure, list[Threshold], bool]]:
        """Yield each measure of a condition, its thresholds, and whether one is crossed now."""
        for measure in self.measures:
            if measure.signal in SIGNALS.get(condition, ()):
                bounds = [bound for bound in self.thresholds if bound.signal == measure.signal]
                yield measure, bounds, _is_crossed(measure, bounds)


def _is_crossed(measure: Measure, bounds: Iterable[Threshold]) -> bool:
    """Tell whether less is free than one of the thresholds asks for."""
    if measure.free is None:
        return False
    amounts = [bound.amount(measure.total) for bound in bounds]
    return any(amount is not None and measure.free < amount for amount in amounts)


def extract(document: Mapping[str, Any]) -> Pressure:
    """Return what a host's evidence contains; empty where its collectors did not answer."""
    answer = contract.optional_answer(document, pressure.Pressure)
    if answer is None:
        return Pressure()
    config = kubelet_config.read(contract.answer(document, Kubelet))
    largest = contract.answer(document, Largest)
    return Pressure(
        tuple(_measures(answer)),
        tuple(thresholds(config)),
        tuple(_folders(largest)),
        tuple(_processes(largest.memory, "rss")),
        tuple(_processes(largest.threads, "threads")),
        config.problem,
        container_logs.rotation(config),
    )


def _measures(answer: pressure.Pressure) -> Iterator[Measure]:
    for filesystem in answer.filesystems:
        yield from _of_filesystem(filesystem)
    memory = answer.memory or pressure.Memory()
    yield Measure("memory.available", _natural(memory.available), _natural(memory.total))
    pids = answer.pids or pressure.Pids()
    threads, most = _natural(pids.threads), _natural(pids.max)
    free = None
    if threads is not None and most is not None:
        free = max(0, most - threads)
    yield Measure("pid.available", free, most)


def _of_filesystem(filesystem: pressure.Filesystem) -> Iterator[Measure]:
    name, path = one_line(filesystem.name, 40), one_line(filesystem.path, 200)
    parts = (one_line(filesystem.mount or "", 200), one_line(filesystem.type or "", 200))
    mount = " ".join(parts).strip()
    error = one_line(filesystem.error or "", 80)
    free, total = _natural(filesystem.free), _natural(filesystem.total)
    yield Measure(f"{name}.available", free, total, path, mount, error)
    inodes = _natural(filesystem.inodes)
    if inodes:
        free = _natural(filesystem.inodes_free)
        yield Measure(f"{name}.inodesFree", free, inodes, path, mount, error)


def thresholds(config: KubeletConfig) -> Iterator[Threshold]:
    """Yield those of a kubelet with this configuration; the hard ones come first."""
    for key, flag in KINDS:
        written = _written(config, key, flag)
        merge = config.values.get(("mergeDefaultEvictionSettings",))
        merges = merge is not None and yaml_nodes.boolean(merge.value) is True
        if key == "evictionHard" and (not written or merges):
            missing = {name: value for name, value in DEFAULTS.items() if name not in written}
            yield from (Threshold(name, value, key) for name, value in missing.items())
        yield from (
            Threshold(name, value, key, setting) for name, (value, setting) in written.items()
        )


def _written(config: KubeletConfig, key: str, flag: str) -> dict[str, tuple[str, Setting]]:
    """Return the thresholds that the command line sets, else those of the configuration."""
    flag_value = pflag.string_flag(config.argv, flag)
    if flag_value is None:
        return {name: (value.value, value) for name, value in config.mapping(key, flag).items()}
    pairs = [part.partition("<") for part in flag_value.split(",") if "<" in part]
    return {
        name.strip(): (value.strip(), Setting(value.strip(), f"--{flag}={flag_value}"))
        for name, _sign, value in pairs
    }


def _place(setting: Setting) -> str:
    if setting.path:
        return f"{setting.path}:{setting.line}"
    return one_line(setting.text, 120)


def _folders(largest: Largest) -> Iterator[Counted]:
    for filesystem in largest.filesystems:
        rows = [
            Large(
                one_line(folder.path, 300),
                _natural(folder.bytes) or 0,
                _natural(folder.files) or 0,
            )
            for folder in filesystem.folders
        ]
        yield Counted(
            one_line(filesystem.name, 40),
            tuple(rows[: 3 * SHOWN]),
            _natural(filesystem.bytes),
            filesystem.complete is True,
        )


def _processes(processes: tuple[Holder, ...], key: str) -> Iterator[Large]:
    for process in processes[:SHOWN]:
        holder = limits.holder(process)
        if holder:
            yield Large(str(holder), _natural(getattr(process, key)) or 0, pid=holder.pid)


def _natural(count: int | None) -> int | None:
    """Return a count; None for one below 0, which is none."""
    if count is None or count < 0:
        return None
    return count


def size(count: int) -> str:
    """Return a number of bytes as people read it."""
    value, index = Fraction(count), 0
    while value >= 1024 and index < len(UNIT_NAMES) - 1:
        value, index = value / 1024, index + 1
    if index == 0:
        return f"{count} B"
    return f"{float(value):.1f} {UNIT_NAMES[index]}"


def percent(part: int, whole: int) -> str:
    """Return a share with one digit behind the point."""
    return f"{100 * part / whole:.1f} %"


def describe_condition(
    condition: str, host: str, node_pressure: Pressure
) -> tuple[list[str], list[EvidenceRef]]:
    """Return what a condition is about in clauses, and the proofs of all that is known of it."""
    rows = list(node_pressure.measures_of(condition))
    clauses = [
        f"{measure}{_at(measure)}, below {_bounds(measure, bounds)}"
        for measure, bounds, crossed in rows
        if crossed
    ]
    proofs = [
        _proof(host, measure, bounds) for measure, bounds, crossed in rows if crossed or not clauses
    ]
    if condition == "DiskPressure":
        signals = {measure.signal for measure, _bound, crossed in rows if crossed}
        short = _sharing(node_pressure, {signal.partition(".")[0] for signal in signals})
        proofs += _large_folders(host, node_pressure, short)
        clauses += _largest_clauses(node_pressure, signals)
    return clauses, [*proofs, *_processes_of(condition, host, node_pressure)]


def _processes_of(condition: str, host: str, node_pressure: Pressure) -> Iterator[EvidenceRef]:
    """Yield the largest processes where a node is short of memory or of process ids."""
    if condition == "MemoryPressure":
        for process in node_pressure.memory:
            yield _process(host, process, f"{size(process.value)} resident")
    if condition == "PIDPressure":
        for process in node_pressure.threads:
            yield _process(host, process, f"{process.value} threads")


def _largest(node_pressure: Pressure, signals: set[str]) -> tuple[Large, bool] | None:
    """Return the largest folder behind these signals, and whether all of it was counted."""
    names = _sharing(node_pressure, {signal.partition(".")[0] for signal in signals})
    filesystems = [row for row in node_pressure.filesystems if row.name in names]
    folders = [(folder, row.complete) for row in filesystems for folder in row.folders]
    if not folders:
        return None
    is_of_inodes = all(signal.endswith(".inodesFree") for signal in signals)
    return max(folders, key=lambda row: row[0].files if is_of_inodes else row[0].value)


def _largest_clauses(node_pressure: Pressure, signals: set[str]) -> Iterator[str]:
    """Yield clauses about the largest folder behind these signals, where one was counted."""
    largest = _largest(node_pressure, signals)
    if largest is None:
        return
    folder, complete = largest
    yield f"the largest folder there is {folder.name} ({_content(folder, complete)})"
    rotation = _exceeded(node_pressure, folder)
    if rotation is not None:
        yield rotation.clause(size(rotation.most * folder.files))


def advice_on_logs(node_pressure: Pressure) -> list[str]:
    """Return what to do about logs of containers, where those of the largest folder are too large.

    The kubelet bounds what they hold (container_logs.py).
    """
    rows = node_pressure.measures_of("DiskPressure")
    signals = {measure.signal for measure, _bounds, crossed in rows if crossed}
    largest = _largest(node_pressure, signals)
    if largest is None:
        return []
    rotation = _exceeded(node_pressure, largest[0])
    if rotation is None:
        return []
    return [rotation.advice]


def _exceeded(node_pressure: Pressure, folder: Large) -> container_logs.Rotation | None:
    """Return how the kubelet rotates logs, where those in a folder are larger than that."""
    rotation = node_pressure.log_rotation
    if rotation is None or not rotation.is_exceeded(folder.name, folder.value, folder.files):
        return None
    return rotation


def _sharing(node_pressure: Pressure, names: set[str]) -> set[str]:
    """Return names of filesystems (nodefs, imagefs), with others that are the same filesystem."""
    places = {
        measure.signal.partition(".")[0]: (measure.mount, measure.total)
        for measure in node_pressure.measures
        if measure.mount and measure.is_bytes
    }
    short = {places[name] for name in names if name in places}
    return names | {name for name, place in places.items() if place in short}


def own_mount(node_pressure: Pressure) -> str:
    """Return the folder of a runtime that a mount of its own begins at or above, or ""."""
    for measure in node_pressure.measures:
        mount = measure.mount.partition(" ")[0]
        if measure.signal == IMAGES and len(mount) > 1:
            return measure.path
    return ""


def _process(host: str, process: Large, uses: str) -> EvidenceRef:
    return EvidenceRef("process", host, pid=process.pid, text=f"{process.name}: {uses}")


def _large_folders(host: str, node_pressure: Pressure, short: set[str]) -> list[EvidenceRef]:
    filesystems = [
        filesystem
        for filesystem in node_pressure.filesystems
        if filesystem.name in short or not short
    ]
    rows: dict[tuple[str, int], tuple[Large, bool]] = {}
    for filesystem in filesystems:
        for folder in _shown(filesystem):
            rows[folder.name, folder.value] = folder, filesystem.complete
    proofs = [
        _folder(host, folder, complete) for folder, complete in list(rows.values())[: 2 * SHOWN]
    ]
    return proofs + [
        proof for first in filesystems[:1] for proof in _rest(host, node_pressure, first)
    ]


def _shown(filesystem: Counted) -> list[Large]:
    """Return the folders that are large enough to be shown."""
    most = max((folder.value for folder in filesystem.folders), default=0)
    return [
        folder
        for folder in filesystem.folders
        if folder.value >= MIN_SHARE * most or folder.files >= MANY
    ]


def _folder(host: str, folder: Large, complete: bool) -> EvidenceRef:
    return EvidenceRef("file", host, path=folder.name, text=_content(folder, complete))


def _content(folder: Large, complete: bool) -> str:
    text = f"{size(folder.value)} in {counted(folder.files, 'file')}"
    if not complete:
        text += ", or more: there was no time to count all"
    return text


def _rest(host: str, node_pressure: Pressure, counted: Counted) -> Iterator[EvidenceRef]:
    """Yield what else is in use, where the folders that were counted are not most of it."""
    name = f"{counted.name}.available"
    filesystem = next(
        (measure for measure in node_pressure.measures if measure.signal == name and measure.mount),
        None,
    )
    if filesystem is None or not counted.complete:
        return
    if filesystem.total is None or filesystem.free is None or counted.total is None:
        return
    used, counted_bytes = filesystem.total - filesystem.free, counted.total
    if 2 * counted_bytes < used:
        yield EvidenceRef(
            "file",
            host,
            path=filesystem.path,
            text=(
                f"the folders that were counted hold {size(counted_bytes)} of {size(used)} in use:"
                " the rest lies elsewhere on it, or in deleted files that a process has open (lsof"
                " +L1)"
            ),
        )


def _bounds(measure: Measure, bounds: list[Threshold]) -> str:
    free = measure.free or 0
    return " and ".join(str(bound) for bound in bounds if (bound.amount(measure.total) or 0) > free)


def _at(measure: Measure) -> str:
    if measure.mount:
        return f" on {measure.mount} ({measure.path})"
    return ""


def _proof(host: str, measure: Measure, bounds: list[Threshold]) -> EvidenceRef:
    listed = ", ".join(map(str, bounds)) or "no threshold"
    text = f"{measure}; threshold: {listed}"
    if measure.path:
        return EvidenceRef(
            "file", host, path=measure.path, text=f"mounted at {measure.mount}: {text}"
        )
    return EvidenceRef("process", host, text=text)
