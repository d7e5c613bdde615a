# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap that programs switch on: zram-generator, services, rc.local, the kernel's command line.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...parsers import conf_lines, swap_files
from ...parsers.swap_files import Active, Unit
from .evidence import Seen, Source, Undo, origin

GENERATORS = (
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
    "/lib/systemd/system-generators",
)
SCRIPTS = ("/etc/rc.local", "/etc/rc.d/rc.local")
_SWAPON = re.compile(r"[^#]*\bswapon\b")


@dataclass(frozen=True)
class Service:
    """A program that switches swap on by itself. file: what configures it; off.

    A line of it that leaves swap off; needs: one that it takes.
    """

    units: tuple[str, ...]
    file: str
    swap_file: str = ""
    off: str = ""
    needs: str = ""


SERVICES = (
    Service(("zramswap.service",), "/etc/default/zramswap"),
    Service(("zram-config.service",), "/usr/bin/init-zram-swapping"),
    Service(
        ("armbian-zram-config.service",),
        "/etc/default/armbian-zram-config",
        off=r"\s*(?:ENABLED|SWAP)\s*=\s*\"?false",
    ),
    Service(
        ("dphys-swapfile.service",),
        "/etc/dphys-swapfile",
        "/var/swap",
        off=r"\s*CONF_SWAPSIZE\s*=\s*\"?0+\"?\s*(?:#|\Z)",
    ),
    Service(("swapspace.service",), "/etc/swapspace.conf", "/var/lib/swapspace"),
    Service(
        ("walinuxagent.service", "waagent.service"),
        "/etc/waagent.conf",
        "/mnt/resource/swapfile",
        needs=r"\s*ResourceDisk\.EnableSwap\s*=\s*y",
    ),
)


def from_zram(seen: Seen) -> Iterator[Source]:
    """What zram-generator will make, by its configuration.

    Where that is not known, by what it made of this boot.
    """
    there = generator(seen, "zram-generator")
    made = {unit.name for unit in seen.swaps if origin(unit) == "zram-generator"}
    devices, unread = swap_files.zram(seen.files.values())
    for one in devices:
        name = swap_files.unit_name(f"/dev/{one.name}")
        on, why = _made(seen, one, there, name in made)
        yield Source(
            "zram-generator",
            f"{one.path}:{one.line}",
            f"/dev/{one.name}",
            name,
            on,
            why,
            _without_zram(name, devices),
        )
    told, known = seen.said("systemd.zram"), not unread and _configured(seen)
    for name in sorted(made - {swap_files.unit_name(f"/dev/{one.name}") for one in devices}):
        on, why = seen.held(name)
        if told:
            why = why or "systemd.zram on the kernel's command line"
        elif on is not False:
            on, why = (
                (False, "no file that a boot leaves names it")
                if known
                else (None, "its configuration is not known")
            )
        yield Source(
            "zram-generator", name, seen.by_name[name].what, name, on, why, (Undo("mask", name),)
        )


def _made(
    seen: Seen, one: swap_files.Zram, there: bool | None, made: bool
) -> tuple[bool | None, str]:
    """(on, why) of a device of zram-generator's configuration."""
    if seen.said("systemd.zram") is False:
        return False, "systemd.zram=0 on the kernel's command line"
    if there is False:
        return False, "zram-generator is not there, or masked"
    if one.swap is False:
        return False, "it is no swap, or of no size"
    on, why = seen.held(swap_files.unit_name(f"/dev/{one.name}"))
    if on and not made and there is None:
        return None, "whether zram-generator is there is not known"
    if on and not made and one.swap is None:
        return None, "whether it is made depends on the memory"
    return on, why


def _without_zram(name: str, devices: Sequence[swap_files.Zram]) -> tuple[Undo, ...]:
    """The generator may be masked where it makes nothing but swap."""
    if all(one.swap is not False for one in devices):
        return (Undo("generator", f"{GENERATORS[0]}/zram-generator"),)
    return (Undo("mask", name, "zram-generator has other devices as well"),)


def _configured(seen: Seen) -> bool:
    """Was its configuration asked for?"""
    return any("/systemd/zram-generator.conf" in path for path in seen.files)


def generator(seen: Seen, name: str) -> bool | None:
    """Is a generator there, and not masked by a file of its name in a folder before it? None
    where a folder was not asked.
    """
    for folder in GENERATORS:
        record = seen.files.get(f"{folder}/{name}")
        if record is None or record.get("error") not in (None, "missing"):
            return None
        if record.get("error") is None:
            return conf_lines.target(record) != "/dev/null" and record.get("size") != 0
    return False


def from_kernel(seen: Seen) -> Iterator[Source]:
    """What the kernel's command line asks for."""
    for key, value in seen.words or ():
        device = (
            swap_files.node((value or "").split(":", 1)[0]) if key == "systemd.swap_extra" else ""
        )
        if device:
            name = swap_files.unit_name(device)
            on, why = seen.held(name)
            if on and name not in seen.by_name:
                on, why = (
                    (False, "systemd heeds it since 254")
                    if seen.version is not None and seen.version < 254
                    else (None, "systemd has no unit of it")
                )
            yield Source(
                "kernel",
                f"systemd.swap-extra={value}"[:300],
                device,
                name,
                on,
                why,
                (Undo("mask", name),),
            )


def from_services(seen: Seen) -> Iterator[Source]:
    """What services that are known for it switch on."""
    for service in SERVICES:
        asked = [seen.by_name[name] for name in service.units if name in seen.by_name]
        unit = next((unit for unit in asked if unit.load != "not-found"), None)
        record = seen.files.get(service.file)
        missing = record is not None and record.get("error") == "missing"
        if unit is None and (record is None or missing or len(asked) == len(service.units)):
            continue
        yield from _service(service, unit, record, missing)


def _service(
    service: Service, unit: Unit | None, record: Mapping[str, Any] | None, missing: bool
) -> Iterator[Source]:
    name = unit.name if unit else service.units[0]
    on, why = _enabled(name, unit)
    place, undo = name, Undo("disable", name)
    problem = "it was not read" if record is None else conf_lines.why_unread(record)
    off, needed = _line(record, service.off), _line(record, service.needs)
    if off and on is not False:
        on, why = False, f"{service.file}:{off} leaves it off"
    if needed:
        place, undo = (
            f"{service.file}:{needed}",
            Undo("edit", f"{service.file}:{needed}", "ResourceDisk.EnableSwap=n"),
        )
    elif service.needs and (missing or not problem):
        return
    elif service.needs and on is not False:
        on, why = None, f"{service.file}: {problem}"
    yield Source("service", place, service.swap_file, name, on, why, (undo,))


def _enabled(name: str, unit: Unit | None) -> tuple[bool | None, str]:
    if unit is None:
        return None, f"whether {name} is enabled is not known"
    if unit.masked or unit.state in ("disabled", "enabled-runtime", "transient"):
        return False, f"{name} is {'masked' if unit.masked else unit.state}"
    return (
        (True, "")
        if unit.state == "enabled"
        else (None, f"{name} is {unit.state or 'of unknown state'}")
    )


def _line(record: Mapping[str, Any] | None, pattern: str) -> int:
    """The last line that fits, 0 where none does."""
    lines = conf_lines.lines(record) if record and pattern else ()
    return max(
        (
            number
            for number, text in lines
            if re.match(pattern, text[: conf_lines.MAX_PATH], re.IGNORECASE)
        ),
        default=0,
    )


def from_scripts(seen: Seen) -> Iterator[Source]:
    """What rc.local switches on; it is run where it may be executed."""
    for path in SCRIPTS:
        record = seen.files.get(path, {})
        mode = record.get("mode")
        runs = (
            int(mode[-3:], 8) & 0o111 != 0
            if isinstance(mode, str) and re.fullmatch("0?[0-7]{3,4}", mode)
            else None
        )
        for number, text in conf_lines.lines(record):
            if _SWAPON.match(text[: conf_lines.MAX_PATH]):
                why = {
                    True: "if the script gets so far",
                    False: "the script may not be executed",
                    None: "whether it is run is not known",
                }[runs]
                yield Source(
                    "script",
                    f"{path}:{number}",
                    "",
                    "",
                    False if runs is False else None,
                    why,
                    (Undo("comment", f"{path}:{number}"),),
                )


def unknown(seen: Seen) -> Iterator[str]:
    """What nobody asked, and files that are not wholly known, with the reason.

    What they switch on is unknown.
    """
    unasked = [
        service.units[0]
        for service in SERVICES
        if service.file not in seen.files
        and not any(name in seen.by_name for name in service.units)
    ]
    if unasked:
        yield f"whether {', '.join(unasked)} switches swap on is not known"
    if generator(seen, "zram-generator") is not False and not _configured(seen):
        yield "the configuration of zram-generator is not known"
    if not any(path in seen.files for path in SCRIPTS):
        yield f"{SCRIPTS[0]} is not known"
    for path, why in swap_files.zram(seen.files.values())[1]:
        yield f"{path}: {why}"
    for path in SCRIPTS:
        why = conf_lines.why_unread(seen.files[path]) if path in seen.files else None
        if why:
            yield f"{path}: {why}"


def service_of(seen: Seen, one: Active) -> Source | None:
    """The service that switched a swap on: one that is at work, and that makes such swap.

    Nobody's guess where several may have.
    """
    able = []
    for service in SERVICES:
        unit = next((seen.by_name[name] for name in service.units if name in seen.by_name), None)
        if (
            unit
            and unit.active in ("active", "activating")
            and (one.zram if not service.swap_file else one.kind == "file")
        ):
            if service.swap_file and service.swap_file == one.path:
                able = [unit]
                break
            able.append(unit)
    name = able[0].name if len(able) == 1 else ""
    return next((source for source in from_services(seen) if name and source.unit == name), None)
