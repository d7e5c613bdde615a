# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Active swap, swap after a boot, the source of each and what would undo it there. Pure.

systemd is taken at its word for what it made of this boot, files for what it will make of the next.
Missing evidence leaves a source unknown, never clear: off needs a reason to stay off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...parsers import swap_files
from ...parsers.swap_files import Active, Line, Unit
from . import generators
from .evidence import IN_CONTAINER, TARGET, Seen, Source, Undo, origin

# below this the kubelet evicts pods, by its own default of memory.available
RESERVE_KIB = 100 * 1024
_RUNTIME = ("/run/systemd/system/", "/run/systemd/transient/")
_UNTIL_BOOT = ("enabled-runtime", "transient", "linked-runtime")


@dataclass(frozen=True)
class Running:
    """Swap that is on, and what activated it.

    The source is unknown where the evidence does not show it, hand where nothing on the host would.
    """

    active: Active
    source: Source


@dataclass(frozen=True)
class Forecast:
    """Swap after the next boot.

    unknown: what is not known of it, in clauses
    malformed: (line, why) of lines of fstab that cannot be read
    """

    sources: tuple[Source, ...]
    unknown: tuple[str, ...] = ()
    malformed: tuple[tuple[int, str], ...] = ()

    @property
    def on(self) -> bool | None:
        """Return whether any swap will be on; False only where everything is known."""
        states = [source.on for source in self.sources]
        if any(states):
            return True
        if self.unknown or None in states:
            return None
        return False


def running(evidence: Seen) -> list[Running] | None:
    """Return every swap that is on, with its source; None where /proc/swaps is not known."""
    swaps = swap_files.active(evidence.answer.swaps)
    if swaps is None:
        return None
    return [Running(active, _switched_on(evidence, active)) for active in swaps]


def after_boot(evidence: Seen) -> Forecast:
    """Return what the next boot activates, with this boot's command line of the kernel."""
    lines = [_from_line(evidence, line) for line in evidence.lines]
    listed = {source.unit for source in lines}
    units = [unit for unit in evidence.swaps if unit.name not in listed or origin(unit) == "unit"]
    sources = [
        *lines,
        *(_from_unit(evidence, unit) for unit in units),
        *generators.from_zram(evidence),
        *generators.from_kernel(evidence),
        *generators.from_services(evidence),
        *generators.from_scripts(evidence),
    ]
    by_place: dict[tuple[str, str], Source] = {}
    for source in sources:
        if source is not None:
            by_place.setdefault((source.origin, source.place), source)
    return Forecast(tuple(by_place.values()), tuple(_unknown(evidence)), tuple(evidence.malformed))


def off_is_safe(swap_used_kib: int | None, mem_available_kib: int | None) -> bool | None:
    """Return whether memory takes what lies in swap, and leaves the kubelet enough not to evict.

    The result is None where a number is not known.
    """
    used, free = _size(swap_used_kib), _size(mem_available_kib)
    if used == 0:
        return True
    if used is None or free is None:
        return None
    return used + RESERVE_KIB < free


def _size(number: int | None) -> int | None:
    if number is None or number < 0:
        return None
    return number


def _from_line(evidence: Seen, line: Line) -> Source:
    name = swap_files.unit_name(line.device)
    place = f"{line.path}:{line.line}"
    on, reason = _line_state(evidence, line, name)
    undo = Undo("comment", place, _taken_up(evidence, line))
    return Source("fstab", place, line.device, name, on, reason, (undo,))


def _gpt_may(evidence: Seen) -> bool:
    """Return whether systemd-gpt-auto-generator may activate partitions without fstab."""
    return (
        not evidence.container
        and evidence.switch("systemd.gpt_auto") is not False
        and not evidence.masked(TARGET)
    )


def _taken_up(evidence: Seen, line: Line) -> str:
    """Return what takes over once a line of fstab is gone, and how to prevent it.

    While fstab names any swap, systemd-gpt-auto-generator leaves swap partitions alone.
    """
    if not line.device.startswith("/dev/") or not _gpt_may(evidence):
        return ""
    return (
        "without any swap line in fstab, systemd-gpt-auto-generator takes up swap partitions of"
        f" the root disk: mask {TARGET} as well"
    )


def _line_state(evidence: Seen, line: Line, name: str) -> tuple[bool | None, str]:
    """Return (on, reason) of a line of fstab after a boot."""
    if line.noauto:
        return False, "noauto"
    if evidence.switch("fstab") is False:
        return False, "fstab=no on the kernel's command line"
    on, reason = evidence.activation(name)
    if on is False or evidence.switch("systemd.swap") is not False or _has_unit(evidence, name):
        return on, reason
    why_off = "systemd.swap=0 on the kernel's command line, which systemd heeds since 246"
    if evidence.answer.systemd is None:
        return None, why_off
    if evidence.answer.systemd >= 246:
        return False, why_off
    return on, reason


def _has_unit(evidence: Seen, name: str) -> bool:
    return any(unit.name == name and origin(unit) == "fstab" for unit in evidence.swaps)


def _from_unit(evidence: Seen, unit: Unit) -> Source | None:
    """Return the source of a unit that comes from no text which is evaluated itself.

    The texts that are evaluated are fstab, the kernel's command line and zram-generator's
    configuration.
    """
    created_by, undo = origin(unit), (Undo("mask", unit.name),)
    if created_by == "unit":
        on, reason = _own(evidence, unit)
        return Source(created_by, unit.fragment, unit.what, unit.name, on, reason, undo)
    if created_by == "generator":
        on, reason = evidence.activation(unit.name)
        return Source(created_by, unit.name, unit.what, unit.name, on, reason, undo)
    if created_by == "gpt-auto":
        return _from_gpt(evidence, unit)
    if created_by or "masked" not in (unit.load, unit.state) or evidence.masked(unit.name):
        return None
    reason = "it is masked until the next boot only"
    return Source("unknown", unit.name, unit.what, unit.name, None, reason, undo)


def _from_gpt(evidence: Seen, unit: Unit) -> Source:
    on, reason = evidence.activation(unit.name)
    if on and (evidence.lines or evidence.fstab_problem):
        on, reason = (
            None,
            (
                "systemd-gpt-auto-generator leaves swap partitions alone where fstab has a swap"
                " line, unless systemd is old"
            ),
        )
    undo = (
        Undo("mask", unit.name, "a partition may have another name after a boot"),
        Undo("mask", TARGET),
    )
    return Source("gpt-auto", unit.name, unit.what, unit.name, on, reason, undo)


def _own(evidence: Seen, unit: Unit) -> tuple[bool | None, str]:
    """Return (on, reason) of a unit file by hand: what pulls it in need not be swap.target."""
    if evidence.container:
        return False, IN_CONTAINER
    if evidence.masked(unit.name):
        return False, f"{unit.name} is masked"
    if unit.fragment.startswith(_RUNTIME) or unit.state in _UNTIL_BOOT:
        return False, "it is gone with the next boot"
    if unit.wanted is not None:
        return _wanted_by([name for name in unit.wanted if not evidence.masked(name)])
    return _by_state(evidence, unit.state)


def _wanted_by(units: list[str]) -> tuple[bool, str]:
    if not units:
        return False, "nothing wants it that is not masked"
    return True, f"{', '.join(units[:5])} wants it"


def _unknown(evidence: Seen) -> Iterator[str]:
    if evidence.fstab_problem:
        yield f"{swap_files.FSTAB}: {evidence.fstab_problem}"
    if evidence.units is None:
        yield "systemd's units are not known"
    if evidence.words is None:
        yield "the kernel's command line is not known"
    yield from generators.unknown(evidence)
    partitions = [unit.what for unit in evidence.swaps if origin(unit) == "fstab"]
    partitions = [path for path in partitions if path.startswith("/dev/")]
    if partitions and not evidence.lines and _gpt_may(evidence):
        yield (
            f"fstab names no swap any more: systemd-gpt-auto-generator may take up {partitions[0]}"
        )


def _by_state(evidence: Seen, state: str) -> tuple[bool | None, str]:
    """Return (on, reason) of a unit file of which it is not known what wants it."""
    if state == "disabled":
        return False, "it is disabled"
    if state != "enabled":
        return None, f"it is {state or 'of unknown state'}, and what wants it is not known"
    if evidence.masked(TARGET):
        return None, f"{TARGET} is masked, and what else wants it is not known"
    return True, ""


def _switched_on(evidence: Seen, active: Active) -> Source:
    """Return the source of an active swap: systemd's unit, a service, or a line of fstab."""
    if evidence.container:
        return _unknown_source(active, "a container shows the swap of its host")
    if not active.path.startswith("/"):
        return _unknown_source(active, "it names no path")
    names = evidence.names(active.path)
    unit_names = _unit_names(evidence, names)
    units = _units(evidence, names, unit_names)
    line = _line_of(
        evidence, names.union(*(evidence.names(unit.what) for unit in units)), unit_names
    )
    if units and units[0].active in ("active", "activating", "deactivating"):
        return _source_of_unit(evidence, units[0], line, active)
    source = generators.service_of(evidence, active)
    if source:
        return source
    if line:
        return _from_line(evidence, line)
    if units:
        return _source_of_unit(evidence, units[0], None, active)
    return _by_hand(evidence, active)


def _unit_names(evidence: Seen, names: set[str]) -> set[str]:
    """Return the names that a unit of these paths may have."""
    own_names = {swap_files.unit_name(name) for name in names}
    followed = {
        unit.following for unit in evidence.swaps if unit.name in own_names and unit.following
    }
    return own_names | followed


def _units(evidence: Seen, names: set[str], unit_names: set[str]) -> list[Unit]:
    """Return the units of a swap, active ones first."""
    units = [unit for unit in evidence.swaps if unit.name in unit_names or unit.what in names]
    return sorted(filter(origin, units), key=lambda unit: unit.active != "active")


def _unknown_source(active: Active, reason: str) -> Source:
    return Source("unknown", "", active.path, on=None, why=reason)


def _line_of(evidence: Seen, names: set[str], units: set[str]) -> Line | None:
    for line in evidence.lines:
        if line.device in names or swap_files.unit_name(line.device) in units:
            return line
    return None


def _by_hand(evidence: Seen, active: Active) -> Source:
    """Return the source of a swap that nothing on the host activates, if everything is known."""
    incomplete = (
        evidence.units is None or evidence.fstab_problem or list(generators.unknown(evidence))
    )
    unlinked = active.path.startswith("/dev/") and evidence.answer.links is None
    if incomplete or unlinked:
        return _unknown_source(active, "not all of its sources are known")
    return Source("hand", "", active.path, on=False)


def _source_of_unit(evidence: Seen, unit: Unit, line: Line | None, active: Active) -> Source:
    created_by = origin(unit)
    if created_by == "fstab":
        return _source_of_fstab(evidence, unit, line, active)
    source = _from_unit(evidence, unit)
    if source:
        return source
    for candidate in (*generators.from_zram(evidence), *generators.from_kernel(evidence)):
        if candidate.unit == unit.name:
            return candidate
    reason = "what made it is not known any more"
    undo = (Undo("mask", unit.name),)
    return Source(created_by, unit.name, active.path, unit.name, None, reason, undo)


def _source_of_fstab(evidence: Seen, unit: Unit, line: Line | None, active: Active) -> Source:
    if line:
        return _from_line(evidence, line)
    if evidence.fstab_problem:
        reason = f"{swap_files.FSTAB}: {evidence.fstab_problem}"
        return Source("fstab", swap_files.FSTAB, active.path, unit.name, None, reason)
    reason = "its line is no longer in fstab"
    return Source("fstab", swap_files.FSTAB, active.path, unit.name, False, reason)
