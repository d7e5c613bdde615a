# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hard limits of logins, raised by a managed file in limits.d, as a step.

pam_limits lets a user's line count before a group's, and that before *; of the same domain the last
line counts. So a file that sorts after all others is enough, and no foreign file is changed. Soft
limits stay: a program, or ulimit -S, raises its own as far as the hard one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....module_utils.shared.managed_files import LOGIN_LIMIT_KEY
from ....module_utils.shared.step_kinds import FILE_LIMIT
from ...evidence.answers.file_record import FileRecord
from ...evidence.answers.node.limits import InitLimits
from ...evidence.document import one_line
from ...models import limits as model_limits
from ...models.limits import NOFILE, NPROC, PID_MAX, UNLIMITED, Limits
from ...parsers import limits_conf
from ...parsers.limits_conf import Entry
from ..plan import RemedyContext, Step, all_of, label, left_out

RISK = 1
FILE = f"{limits_conf.FOLDER}/99-zz-kubemend.conf"
TARGETS = {NOFILE: 655360, NPROC: 655360}
EVERYBODY = ("*", "root")  # of Debian's pam_limits, * does not mean root
NEXT = (
    "a login has it from the next one on, and the sessions that are open keep theirs; soft limits"
    " stay (ulimit -S raises them)"
)


def profile(
    scene: RemedyContext, item: str, fenced: str | None, domains: Sequence[str] = EVERYBODY
) -> Step | None:
    """Return the step for the hard limit of an item, or None where the logins have it.

    fenced: why this host is left alone.
    """
    limits = model_limits.read(scene.document)
    target, note = corrected(limits, item, int(scene.consent.limits.get(item, TARGETS[item])))
    unread = limits.unread_limits()
    if unread:
        return step(
            scene, item, {}, f"{unread[0]} could not be read: what logins have now is not known"
        )
    numbers = {domain: needed_limit(limits, domain, item, target) for domain in domains}
    values = {
        f"{domain} hard {item}": number for domain, number in numbers.items() if number is not None
    }
    if not values:
        return None
    blocked = fenced or above(limits, item, values) or later(limits, values)
    return step(scene, item, values, blocked, note)


def lowered(scene: RemedyContext, fenced: str | None) -> Step | None:
    """Set the most that is possible for each domain that asks for more (KM406)."""
    limits = model_limits.read(scene.document)
    most, entries = limits.ceiling(), limits.impossible()
    if most is None or not entries:
        return None
    values = {f"{entry.domain} hard {NOFILE}": most[0] for entry in entries}
    odd = next(
        (
            f"{entry.path}:{entry.line} names {one_line(entry.domain, 40)!r}, which is not written"
            " again here: correct that line"
            for entry in entries
            if not LOGIN_LIMIT_KEY.match(f"{entry.domain} hard {NOFILE}")
        ),
        None,
    )
    return step(
        scene,
        NOFILE,
        values,
        fenced or odd or later(limits, values),
        "no foreign line is touched, of one domain the last line counts; keep this "
        "session open until a second login was tried",
    )


def corrected(limits: Limits, item: str, target: int) -> tuple[int, str]:
    """Return (the target as it makes sense on this machine, what is to be said of it)."""
    most = limits.kernel.get(PID_MAX)
    if item == NPROC and most is not None and target > most:
        return (
            most,
            f"nproc {target} makes no sense here, where {PID_MAX} is {most}: it is {most} instead",
        )
    return target, ""


def last(entries: Sequence[Entry], domain: str, item: str) -> Entry | None:
    """Return the line that gives a domain its hard limit."""
    return next(
        (
            entry
            for entry in reversed(entries)
            if (entry.domain, entry.item) == (domain, item) and entry.kind in ("hard", "-")
        ),
        None,
    )


def needed_limit(limits: Limits, domain: str, item: str, target: int) -> int | None:
    """Return what the managed file has to set; None where logins have as much, or are exempt.

    The limit is never less than what logins have.
    """
    entries = limits.entries()
    if any(entry.domain == domain and not entry.item for entry in entries):
        return None
    last_entry = last(entries, domain, item)
    if last_entry is not None:
        return None if _is_enough(last_entry.number, target) else target
    is_certain, inherited = _inherited(limits, item)
    if is_certain and _is_enough(inherited, target):
        return None
    return max(target, inherited)


def _is_enough(number: int | None, target: int) -> bool:
    return number == UNLIMITED or (number or 0) >= target


def _inherited(limits: Limits, item: str) -> tuple[bool, int]:
    """(whether logins without a line surely have it, the hard limit).

    Sessions have what sshd has, and of processes what PID 1 has.
    """
    sshd = [process.hard for process in limits.processes() if process.role == "sshd"]
    if item == NOFILE and sshd:
        return True, UNLIMITED if UNLIMITED in sshd else max(sshd)
    init = limits.answer.init or InitLimits()
    init_limits = model_limits.pair(init.nproc if item == NPROC else init.nofile)
    if init_limits is None:
        return False, 0
    return item == NPROC, init_limits[1]


def ceiling(limits: Limits, item: str) -> tuple[int, str] | None:
    """Return (what no hard limit of it may exceed, whose it is), -1 without one.

    The result is None where that is not known.
    """
    if item == NOFILE:
        return limits.ceiling()
    init = limits.answer.init
    if init is None or init.cap_sys_resource is None:
        return None
    if init.cap_sys_resource:
        return UNLIMITED, ""
    init_limits = model_limits.pair(init.nproc)
    if init_limits is None:
        return None
    return init_limits[1], "the hard limit of PID 1, which has no CAP_SYS_RESOURCE"


def above(limits: Limits, item: str, values: Mapping[str, int]) -> str | None:
    """Return what forbids these limits: a login above the ceiling would be refused."""
    most, bound = max(values.values(), default=0), ceiling(limits, item)
    if bound is None:
        return (
            f"how large a hard limit of {item} may be on this node could not be read, and one that"
            " is too large refuses every login"
        )
    if bound[0] == UNLIMITED or most <= bound[0]:
        return None
    return (
        f"{item} {most} is above {bound[0]} ({bound[1]}), which would refuse logins: ask for less"
        f" with -e {model_limits.VARIABLES[item]}=NUMBER"
    )


def later(limits: Limits, values: Mapping[str, int]) -> str | None:
    """Return the line of another file that is read after kubemend's and decides."""
    other_files = [file for file in limits.login_records if file.path != FILE]
    text = "".join(f"{key} {value}\n" for key, value in values.items())
    beside = limits_conf.entries([*other_files, FileRecord(FILE, kind="file", text=text)])
    for domain, _kind, item in (key.split() for key in values):
        entry = last(beside, domain, item)
        if entry is None or entry.path != FILE:
            place = (
                f"{entry.path}:{entry.line}" if entry else f"another line of {one_line(domain, 40)}"
            )
            return f"{place} is read after {FILE}: raise it there, or take the line away"
    return None


def step(
    scene: RemedyContext, item: str, values: Mapping[str, int], blocked: str | None, note: str = ""
) -> Step:
    """Return the step that writes these lines."""
    host = scene.finding.host or ""
    diff = f"--- {FILE}\n+++ {FILE}\n" + "".join(
        f"+{key} {value}\n" for key, value in sorted(values.items())
    )
    return Step(
        label(host, FILE_LIMIT.replace("_", "-"), item),
        host,
        scene.finding.code,
        FILE_LIMIT,
        RISK,
        FILE,
        item,
        scene.finding.node,
        blocked_by=all_of(left_out(scene, host), blocked),
        note="; ".join(filter(None, [note, _unused(scene), NEXT])),
        diff=diff,
        limit=60,
        change={"kind": FILE_LIMIT, "path": FILE, "lines": dict(values)},
        expect={"component": None},
    )


def _unused(scene: RemedyContext) -> str:
    pam = model_limits.read(scene.document).answer.pam
    if pam is None or pam:
        return ""
    return "no service of /etc/pam.d asks for pam_limits, without which no login reads it"
