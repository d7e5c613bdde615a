# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap that programs activate: zram-generator, services, rc.local, the kernel's command line.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...evidence.answers.file_record import FileRecord
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
    """Program that activates swap by itself.

    file: its configuration
    off: a line of it that leaves swap off
    needs: a line that it requires
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


def from_zram(evidence: Seen) -> Iterator[Source]:
    """Yield what zram-generator will create, by its configuration.

    Where the configuration is not known, what it created in this boot decides.
    """
    there = generator(evidence, "zram-generator")
    existing = {unit.name for unit in evidence.swaps if origin(unit) == "zram-generator"}
    devices, unread = swap_files.zram(evidence.files.values())
    names = [swap_files.unit_name(f"/dev/{device.name}") for device in devices]
    for name, device in zip(names, devices, strict=True):
        on, reason = _configured_zram(evidence, device, there, name in existing)
        yield Source(
            "zram-generator",
            f"{device.path}:{device.line}",
            f"/dev/{device.name}",
            name,
            on,
            reason,
            _without_zram(name, devices),
        )
    is_known = not unread and _configured(evidence)
    for name in sorted(existing - set(names)):
        on, reason = _unconfigured_zram(evidence, name, is_known)
        undo = (Undo("mask", name),)
        yield Source("zram-generator", name, evidence.by_name[name].what, name, on, reason, undo)


def _unconfigured_zram(evidence: Seen, name: str, is_known: bool) -> tuple[bool | None, str]:
    """Return (on, reason) of a zram device that no configuration names."""
    on, reason = evidence.activation(name)
    if evidence.switch("systemd.zram"):
        return on, reason or "systemd.zram on the kernel's command line"
    if on is False:
        return on, reason
    if is_known:
        return False, "no file that a boot leaves names it"
    return None, "its configuration is not known"


def _configured_zram(
    evidence: Seen, device: swap_files.Zram, there: bool | None, exists: bool
) -> tuple[bool | None, str]:
    """Return (on, reason) of a device of zram-generator's configuration."""
    if evidence.switch("systemd.zram") is False:
        return False, "systemd.zram=0 on the kernel's command line"
    if there is False:
        return False, "zram-generator is not there, or masked"
    if device.swap is False:
        return False, "it is no swap, or of no size"
    on, reason = evidence.activation(swap_files.unit_name(f"/dev/{device.name}"))
    if not on or exists:
        return on, reason
    if there is None:
        return None, "whether zram-generator is there is not known"
    if device.swap is None:
        return None, "whether it is made depends on the memory"
    return on, reason


def _without_zram(name: str, devices: Sequence[swap_files.Zram]) -> tuple[Undo, ...]:
    """Mask the generator where it creates nothing but swap, else the unit."""
    if all(device.swap is not False for device in devices):
        return (Undo("generator", f"{GENERATORS[0]}/zram-generator"),)
    return (Undo("mask", name, "zram-generator has other devices as well"),)


def _configured(evidence: Seen) -> bool:
    """Return whether zram-generator's configuration was queried."""
    return any("/systemd/zram-generator.conf" in path for path in evidence.files)


def generator(evidence: Seen, name: str) -> bool | None:
    """Return whether a generator is there and not masked; None where that is not known.

    A file of its name in an earlier directory masks it.
    """
    for folder in GENERATORS:
        file = evidence.files.get(f"{folder}/{name}")
        if file is None or file.error not in (None, "missing"):
            return None
        if file.error is None:
            return conf_lines.target(file) != "/dev/null" and file.size != 0
    return False


def from_kernel(evidence: Seen) -> Iterator[Source]:
    """Yield the swap that the kernel's command line requests."""
    for key, value in evidence.words or ():
        if key != "systemd.swap_extra":
            continue
        device = swap_files.node((value or "").split(":", 1)[0])
        if device:
            name = swap_files.unit_name(device)
            on, reason = _extra(evidence, name)
            place, undo = f"systemd.swap-extra={value}"[:300], (Undo("mask", name),)
            yield Source("kernel", place, device, name, on, reason, undo)


def _extra(evidence: Seen, name: str) -> tuple[bool | None, str]:
    """Return (on, reason) of a swap of systemd.swap-extra."""
    on, reason = evidence.activation(name)
    if not on or name in evidence.by_name:
        return on, reason
    if evidence.answer.systemd is not None and evidence.answer.systemd < 254:
        return False, "systemd heeds it since 254"
    return None, "systemd has no unit of it"


def from_services(evidence: Seen) -> Iterator[Source]:
    """Yield the swap of services that are known for it."""
    for service in SERVICES:
        units = [evidence.by_name[name] for name in service.units if name in evidence.by_name]
        unit = next((unit for unit in units if unit.load != "not-found"), None)
        file = evidence.files.get(service.file)
        missing = file is not None and file.error == "missing"
        if unit is None and (file is None or missing or len(units) == len(service.units)):
            continue
        yield from _service(service, unit, file, missing)


def _service(
    service: Service, unit: Unit | None, file: FileRecord | None, missing: bool
) -> Iterator[Source]:
    name = service.units[0]
    if unit:
        name = unit.name
    on, reason = _enabled(name, unit)
    off, requirement = _line(file, service.off), _line(file, service.needs)
    if off and on is not False:
        on, reason = False, f"{service.file}:{off} leaves it off"
    if requirement:
        place = f"{service.file}:{requirement}"
        undo = Undo("edit", place, "ResourceDisk.EnableSwap=n")
        yield Source("service", place, service.swap_file, name, on, reason, (undo,))
        return
    if service.needs:
        problem = _problem(file)
        if missing or not problem:
            return
        if on is not False:
            on, reason = None, f"{service.file}: {problem}"
    yield Source("service", name, service.swap_file, name, on, reason, (Undo("disable", name),))


def _problem(file: FileRecord | None) -> str | None:
    if file is None:
        return "it was not read"
    return conf_lines.why_unread(file)


def _enabled(name: str, unit: Unit | None) -> tuple[bool | None, str]:
    if unit is None:
        return None, f"whether {name} is enabled is not known"
    if unit.masked:
        return False, f"{name} is masked"
    if unit.state in ("disabled", "enabled-runtime", "transient"):
        return False, f"{name} is {unit.state}"
    if unit.state == "enabled":
        return True, ""
    return None, f"{name} is {unit.state or 'of unknown state'}"


def _line(file: FileRecord | None, pattern: str) -> int:
    """Return the number of the last line that matches, 0 without one."""
    if file is None or not pattern:
        return 0
    numbers = (
        number
        for number, text in conf_lines.lines(file)
        if re.match(pattern, text[: conf_lines.MAX_PATH], re.IGNORECASE)
    )
    return max(numbers, default=0)


def from_scripts(evidence: Seen) -> Iterator[Source]:
    """Yield the swap that rc.local activates; it runs where it may be executed."""
    for path in SCRIPTS:
        file = evidence.files.get(path, FileRecord())
        on, reason = _script(file.mode)
        for number, text in conf_lines.lines(file):
            if _SWAPON.match(text[: conf_lines.MAX_PATH]):
                place = f"{path}:{number}"
                yield Source("script", place, "", "", on, reason, (Undo("comment", place),))


def _script(mode: str | None) -> tuple[bool | None, str]:
    """Return (on, reason) of the swap of a script with these permissions."""
    if mode is None or not re.fullmatch("0?[0-7]{3,4}", mode):
        return None, "whether it is run is not known"
    if int(mode[-3:], 8) & 0o111 == 0:
        return False, "the script may not be executed"
    return None, "if the script gets so far"


def unknown(evidence: Seen) -> Iterator[str]:
    """Yield what was not queried, and files that are not wholly known, with the reason.

    What they activate is unknown.
    """
    unqueried = [service.units[0] for service in SERVICES if not _queried(evidence, service)]
    if unqueried:
        yield f"whether {', '.join(unqueried)} switches swap on is not known"
    if generator(evidence, "zram-generator") is not False and not _configured(evidence):
        yield "the configuration of zram-generator is not known"
    if not any(path in evidence.files for path in SCRIPTS):
        yield f"{SCRIPTS[0]} is not known"
    unread = [*swap_files.zram(evidence.files.values())[1], *_unread_scripts(evidence)]
    yield from (f"{path}: {reason}" for path, reason in unread)


def _queried(evidence: Seen, service: Service) -> bool:
    return service.file in evidence.files or any(name in evidence.by_name for name in service.units)


def _unread_scripts(evidence: Seen) -> Iterator[tuple[str, str]]:
    for path in SCRIPTS:
        if path in evidence.files:
            reason = conf_lines.why_unread(evidence.files[path])
            if reason:
                yield path, reason


def service_of(evidence: Seen, active: Active) -> Source | None:
    """Return the service that activated a swap: a running one that creates such swap.

    It is None where several may have done so.
    """
    able = []
    for service in SERVICES:
        unit = next(
            (evidence.by_name[name] for name in service.units if name in evidence.by_name), None
        )
        if unit is None or not _creates(service, unit, active):
            continue
        if service.swap_file and service.swap_file == active.path:
            able = [unit]
            break
        able.append(unit)
    if len(able) != 1:
        return None
    sources = from_services(evidence)
    return next((source for source in sources if source.unit == able[0].name), None)


def _creates(service: Service, unit: Unit, active: Active) -> bool:
    if unit.active not in ("active", "activating"):
        return False
    if service.swap_file:
        return active.kind == "file"
    return active.zram
