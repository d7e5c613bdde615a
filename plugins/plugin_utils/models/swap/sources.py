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


def running(seen: Seen) -> list[Running] | None:
    """Return every swap that is on, with its source; None where /proc/swaps is not known."""
    swaps = swap_files.active(seen.answer.swaps)
    if swaps is None:
        return None
    return [Running(active, _switched_on(seen, active)) for active in swaps]


def after_boot(seen: Seen) -> Forecast:
    """Return what the next boot activates, with this boot's command line of the kernel."""
    lines = [_from_line(seen, line) for line in seen.lines]
    listed = {source.unit for source in lines}
    units = [unit for unit in seen.swaps if unit.name not in listed or origin(unit) == "unit"]
    sources = [
        *lines,
        *(_from_unit(seen, unit) for unit in units),
        *generators.from_zram(seen),
        *generators.from_kernel(seen),
        *generators.from_services(seen),
        *generators.from_scripts(seen),
    ]
    by_place: dict[tuple[str, str], Source] = {}
    for source in sources:
        if source is not None:
            by_place.setdefault((source.origin, source.place), source)
    return Forecast(tuple(by_place.values()), tuple(_unknown(seen)), tuple(seen.malformed))


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


def _from_line(seen: Seen, line: Line) -> Source:
    name = swap_files.unit_name(line.device)
    place = f"{line.path}:{line.line}"
    on, why = _line_state(seen, line, name)
    undo = Undo("comment", place, _taken_up(seen, line))
    return Source("fstab", place, line.device, name, on, why, (undo,))


def _gpt_may(seen: Seen) -> bool:
    """Return whether systemd-gpt-auto-generator may activate partitions without fstab."""
    return (
        not seen.container
        and seen.switch("systemd.gpt_auto") is not False
        and not seen.masked(TARGET)
    )


def _taken_up(seen: Seen, line: Line) -> str:
    """Return what takes over once a line of fstab is gone, and how to prevent it.

    While fstab names any swap, systemd-gpt-auto-generator leaves swap partitions alone.
    """
    if not line.device.startswith("/dev/") or not _gpt_may(seen):
        return ""
    return (
        "without any swap line in fstab, systemd-gpt-auto-generator takes up swap partitions of"
        f" the root disk: mask {TARGET} as well"
    )


def _line_state(seen: Seen, line: Line, name: str) -> tuple[bool | None, str]:
    """Return (on, why) of a line of fstab after a boot."""
    if line.noauto:
        return False, "noauto"
    if seen.switch("fstab") is False:
        return False, "fstab=no on the kernel's command line"
    on, why = seen.activation(name)
    if on is False or seen.switch("systemd.swap") is not False or _has_unit(seen, name):
        return on, why
    why_off = "systemd.swap=0 on the kernel's command line, which systemd heeds since 246"
    if seen.answer.systemd is None:
        return None, why_off
    if seen.answer.systemd >= 246:
        return False, why_off
    return on, why


def _has_unit(seen: Seen, name: str) -> bool:
    return any(unit.name == name and origin(unit) == "fstab" for unit in seen.swaps)


def _from_unit(seen: Seen, unit: Unit) -> Source | None:
    """Return the source of a unit that comes from no text which is evaluated itself.

    The texts that are evaluated are fstab, the kernel's command line and zram-generator's
    configuration.
    """
    created_by, undo = origin(unit), (Undo("mask", unit.name),)
    if created_by == "unit":
        on, why = _own(seen, unit)
        return Source(created_by, unit.fragment, unit.what, unit.name, on, why, undo)
    if created_by == "generator":
        on, why = seen.activation(unit.name)
        return Source(created_by, unit.name, unit.what, unit.name, on, why, undo)
    if created_by == "gpt-auto":
        return _from_gpt(seen, unit)
    if created_by or "masked" not in (unit.load, unit.state) or seen.masked(unit.name):
        return None
    why = "it is masked until the next boot only"
    return Source("unknown", unit.name, unit.what, unit.name, None, why, undo)


def _from_gpt(seen: Seen, unit: Unit) -> Source:
    on, why = seen.activation(unit.name)
    if on and (seen.lines or seen.fstab_problem):
        on, why = (
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
    return Source("gpt-auto", unit.name, unit.what, unit.name, on, why, undo)


def _own(seen: Seen, unit: Unit) -> tuple[bool | None, str]:
    """Return (on, why) of a unit file by hand: what pulls it in need not be swap.target."""
    if seen.container:
        return False, IN_CONTAINER
    if seen.masked(unit.name):
        return False, f"{unit.name} is masked"
    if unit.fragment.startswith(_RUNTIME) or unit.state in _UNTIL_BOOT:
        return False, "it is gone with the next boot"
    if unit.wanted is not None:
        return _wanted_by([name for name in unit.wanted if not seen.masked(name)])
    return _by_state(seen, unit.state)


def _wanted_by(units: list[str]) -> tuple[bool, str]:
    if not units:
        return False, "nothing wants it that is not masked"
    return True, f"{', '.join(units[:5])} wants it"


def _unknown(seen: Seen) -> Iterator[str]:
    if seen.fstab_problem:
        yield f"{swap_files.FSTAB}: {seen.fstab_problem}"
    if seen.units is None:
        yield "systemd's units are not known"
    if seen.words is None:
        yield "the kernel's command line is not known"
    yield from generators.unknown(seen)
    partitions = [unit.what for unit in seen.swaps if origin(unit) == "fstab"]
    partitions = [path for path in partitions if path.startswith("/dev/")]
    if partitions and not seen.lines and _gpt_may(seen):
        yield (
            f"fstab names no swap any more: systemd-gpt-auto-generator may take up {partitions[0]}"
        )


def _by_state(seen: Seen, state: str) -> tuple[bool | None, str]:
    """Return (on, why) of a unit file of which it is not known what wants it."""
    if state == "disabled":
        return False, "it is disabled"
    if state != "enabled":
        return None, f"it is {state or 'of unknown state'}, and what wants it is not known"
    if seen.masked(TARGET):
        return None, f"{TARGET} is masked, and what else wants it is not known"
    return True, ""


def _switched_on(seen: Seen, active: Active) -> Source:
    """Return the source of an active swap: systemd's unit, a service, or a line of fstab."""
    if seen.container:
        return _unknown_source(active, "a container shows the swap of its host")
    if not active.path.startswith("/"):
        return _unknown_source(active, "it names no path")
    names = seen.names(active.path)
    unit_names = _unit_names(seen, names)
    units = _units(seen, names, unit_names)
    line = _line_of(seen, names.union(*(seen.names(unit.what) for unit in units)), unit_names)
    if units and units[0].active in ("active", "activating", "deactivating"):
        return _source_of_unit(seen, units[0], line, active)
    source = generators.service_of(seen, active)
    if source:
        return source
    if line:
        return _from_line(seen, line)
    if units:
        return _source_of_unit(seen, units[0], None, active)
    return _by_hand(seen, active)


def _unit_names(seen: Seen, names: set[str]) -> set[str]:
    """Return the names that a unit of these paths may have."""
    own = {swap_files.unit_name(name) for name in names}
    followed = {unit.following for unit in seen.swaps if unit.name in own and unit.following}
    return own | followed


def _units(seen: Seen, names: set[str], unit_names: set[str]) -> list[Unit]:
    """Return the units of a swap, active ones first."""
    units = [unit for unit in seen.swaps if unit.name in unit_names or unit.what in names]
    return sorted(filter(origin, units), key=lambda unit: unit.active != "active")


def _unknown_source(active: Active, why: str) -> Source:
    return Source("unknown", "", active.path, on=None, why=why)


def _line_of(seen: Seen, names: set[str], units: set[str]) -> Line | None:
    for line in seen.lines:
        if line.device in names or swap_files.unit_name(line.device) in units:
            return line
    return None


def _by_hand(seen: Seen, active: Active) -> Source:
    """Return the source of a swap that nothing on the host activates, if everything is known."""
    incomplete = seen.units is None or seen.fstab_problem or list(generators.unknown(seen))
    unlinked = active.path.startswith("/dev/") and seen.answer.links is None
    if incomplete or unlinked:
        return _unknown_source(active, "not all of its sources are known")
    return Source("hand", "", active.path, on=False)


def _source_of_unit(seen: Seen, unit: Unit, line: Line | None, active: Active) -> Source:
    created_by = origin(unit)
    if created_by == "fstab":
        return _source_of_fstab(seen, unit, line, active)
    source = _from_unit(seen, unit)
    if source:
        return source
    for candidate in (*generators.from_zram(seen), *generators.from_kernel(seen)):
        if candidate.unit == unit.name:
            return candidate
    why = "what made it is not known any more"
    undo = (Undo("mask", unit.name),)
    return Source(created_by, unit.name, active.path, unit.name, None, why, undo)


def _source_of_fstab(seen: Seen, unit: Unit, line: Line | None, active: Active) -> Source:
    if line:
        return _from_line(seen, line)
    if seen.fstab_problem:
        why = f"{swap_files.FSTAB}: {seen.fstab_problem}"
        return Source("fstab", swap_files.FSTAB, active.path, unit.name, None, why)
    why = "its line is no longer in fstab"
    return Source("fstab", swap_files.FSTAB, active.path, unit.name, False, why)
