# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check how many files one process may have open: services by unit, logins by pam_limits."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....module_utils.shared.text import counted
from ....module_utils.shared.unit_limits import ROLES
from ...evidence import contract
from ...evidence.answers.file_record import SettingLine
from ...evidence.answers.node.system import System
from ...evidence.answers.systemd_unit import LimitedUnit
from ...evidence.document import one_line
from ...models import limits as model_limits
from ...models.cluster import Host
from ...models.limits import NOFILE as LOGINS
from ...models.limits import NR_OPEN, UNLIMITED, VARIABLES, Holder, Limits
from ...models.result import EvidenceRef
from ...parsers.limits_conf import Entry
from ..base import CheckResult, Detection, node_check
from .kernel import uncounted, unless

SHOWN = 10
EXIT_LIMITS = 205  # of a unit whose limits the kernel refuses
RUNTIMES = frozenset(name for name, role in ROLES if role == "runtime")
DROPIN = (
    "a drop-in with LimitNOFILE= (systemctl edit UNIT) and a restart of it, when that is convenient"
)
# the setting of a unit; how the unit of a user's own manager begins
NOFILE, USER = "LimitNOFILE", "user@"
UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9@:._-]*\.service\Z")  # what an operator may copy
MAX_OPEN_FILES = 1000000  # what a kubelet sets for itself, unless its configuration says otherwise
# Distributions whose pam_limits skips a limit that the kernel refuses, and the login goes on
# without it (seen on Debian 12).
FORGIVING = ("debian", "ubuntu")
IGNORED = ("optional", "sufficient")  # PAM lets the login go on when such a line fails


@node_check(
    "KM404",
    "A process is at its limit of open files",
    severity="warning",
    applies="kubelet, runtimes and sshd; every process where they were looked at",
    risk=3,
    needs=("limits",),
)
def full(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM404: report processes that have as many files open as they may."""
    limits = model_limits.read(document)
    holders = limits.full()
    hits = []
    if holders:
        hits.append(_full_hit(host, limits, holders))
    missing = (
        host.missing("limits")
        or unless(host, _answered(limits))
        or unless(host, _counted(limits), "denied") + uncounted(host, limits)
    )
    yield CheckResult(tuple(hits), missing, host=host.host)


def _full_hit(host: Host, limits: Limits, holders: list[Holder]) -> Detection:
    first = next((holder for holder in holders if holder.role), holders[0])
    units = limits.units()
    proofs = [_open_files(host, holder) for holder in holders[:SHOWN]]
    for name in dict.fromkeys(holder.unit for holder in holders[:SHOWN]):
        if name in units:
            proofs += _set(host, units[name], f"{NOFILE}=")[:SHOWN]
    severity = None
    if any(holder.role for holder in holders):
        severity = "critical"
    clause, more = "", _more(first, units.get(first.unit, LimitedUnit()))
    runtime = _runtime_without_limit(first, units.values())
    if runtime:
        clause = f"; it has that limit from {runtime}, whose unit sets none of its own"
        more = (
            f"{more}: systemctl edit {shlex.quote(runtime)} ([Service] LimitNOFILE=1048576); drain"
            " the node, restart the runtime, and make the pod again, for a container keeps the"
            " limit with which it was made"
        )
    return Detection(
        f"{first} has {first.open} of {first.soft} files open{_others(len(holders) - 1)}{clause}",
        tuple(proofs),
        f"see what it has open, for it may leak them (ls -l /proc/{first.pid}/fd); where it"
        f" needs more: {more}",
        host=host.host,
        node=host.node,
        severity=severity,
    )


def _runtime_without_limit(holder: Holder, units: Iterable[LimitedUnit]) -> str:
    """Return the unit of a runtime whose default limit a container has, or ""."""
    if not holder.container:
        return ""
    for unit in units:
        soft = unit.limit_nofile[0] if unit.limit_nofile else None
        if unit.name in RUNTIMES and soft == holder.soft and not unit.sets:
            return one_line(unit.name, 80)
    return ""


def _others(count: int) -> str:
    if count == 0:
        return ""
    return f", and {counted(count, 'other process', 'other processes')} likewise"


def _open_files(host: Host, holder: Holder) -> EvidenceRef:
    hard = str(holder.hard)
    if holder.hard == UNLIMITED:
        hard = "unlimited"
    text = f"{holder}: {holder.open} open, soft limit {holder.soft}, hard limit {hard}"
    return EvidenceRef("process", host.host, pid=holder.pid, text=text)


def _more(holder: Holder, unit: LimitedUnit) -> str:
    """Return how a process gets a higher limit.

    unit: what is known of its service
    """
    if holder.role == "kubelet":
        return "maxOpenFiles in the kubelet's configuration, and a restart of it"
    if holder.container:
        return "the limit that its runtime gives the container"
    if UNIT.match(holder.unit) and not holder.unit.startswith(USER):
        return _more_for_service(holder, unit)
    if holder.session:
        return (
            "ulimit -Sn, up to the hard limit; above that the plan writes a managed line in"
            " limits.d, which counts from the next login on"
        )
    return "the limit that it gets from the process that starts it"


def _more_for_service(holder: Holder, unit: LimitedUnit) -> str:
    next_start = _next_start(unit)
    if next_start != UNLIMITED and next_start <= holder.soft:
        return (
            f"the plan raises it, in a managed drop-in for {holder.unit} and in the running"
            f" process, to what -e {VARIABLES[LOGINS]}=NUMBER asks for (by hand: LimitNOFILE= by"
            f" systemctl edit {shlex.quote(holder.unit)}, and a restart of it)"
        )
    number = str(next_start)
    if next_start == UNLIMITED:
        number = "any number"
    return (
        f"its unit gives {number} from its"
        " next start on; the plan gives the running process as much as the kernel lets it"
        " have (no more than its hard limit where PID 1 lacks CAP_SYS_RESOURCE, nothing"
        " beyond 1024 where it may use select()); the rest takes systemctl daemon-reload"
        f" and systemctl restart {shlex.quote(holder.unit)}, by hand or by the plan with -e"
        " kubemend_allow=service_restart"
    )


def _next_start(unit: LimitedUnit) -> int:
    """Return the soft limit of the unit's next process, once systemd has read kubemend's drop-in.

    It is 0 if it is not known.
    """
    configured = model_limits.pair(unit.limit_nofile)
    managed = (unit.ours or "").partition(":")[0]
    limits = [0]
    if configured:
        limits.append(configured[0])
    if managed.isdigit() and len(managed) < 20:
        limits.append(int(managed))
    if UNLIMITED in limits:
        return UNLIMITED
    return max(limits)


def _answered(limits: Limits) -> bool:
    """Tell whether systemd answered: without it the processes of units are not known."""
    return limits.answer.units is not None and limits.answer.processes is not None


def _counted(limits: Limits) -> bool:
    """Tell whether open files and limits of kubelet, runtimes and sshd are all known."""
    pids = [process.pid for process in limits.answer.processes or ()]
    counted = {holder.pid for holder in limits.processes()}
    return all(pid in counted for pid in pids if model_limits.number(pid) is not None)


@node_check(
    "KM406",
    "Login limits would lock users out",
    severity="critical",
    applies="nodes where pam_limits is in use",
    risk=1,
    needs=("limits",),
)
def locked_out(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM406: report limits above what the kernel allows, with which pam_limits refuses logins."""
    limits = model_limits.read(document)
    lines = [line for line in limits.answer.pam or () if _refuses(line)]
    silent = host.missing("limits") or unless(host, limits.answer.pam is not None)
    if silent or not lines:
        yield CheckResult((), silent, host=host.host, applies=bool(silent))
        return
    ceiling, unread, above = limits.ceiling(), limits.unread_limits(), limits.impossible()
    missing = unless(host, ceiling is not None, "denied") + unless(host, not unread)
    hits = []
    if above and ceiling:
        forgiving = _is_forgiving(document)
        hits.append(_lockout(host, above, lines, ceiling, forgiving))
    yield CheckResult(tuple(hits), missing, host=host.host, note=_unread_note(unread))


def _unread_note(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    return f"{paths[0]} could not be read"


def _is_forgiving(document: Mapping[str, Any]) -> bool:
    release = contract.answer(document, System).os_release
    return release is not None and release.id in FORGIVING


def _refuses(line: SettingLine) -> bool:
    words = line.text.lower().split()
    return bool(line.path) and len(words) > 1 and words[1] not in IGNORED


@dataclass(frozen=True)
class _Excess:
    """A limit above the ceiling.

    users: whose logins it concerns. certain: whether every version of pam_limits refuses it.
    """

    users: str
    value: str
    ceiling: int
    certain: bool


def _lockout(
    host: Host,
    above: list[Entry],
    lines: list[SettingLine],
    limit: tuple[int, str],
    forgiving: bool,
) -> Detection:
    """Report the entries above the ceiling, and the lines of PAM that make them count.

    Any version refuses a number above the ceiling; "unlimited" is refused only by versions before
    1.5.2, which do not take fs.nr_open instead.
    """
    ceiling, setting = limit
    certain = [entry for entry in above if entry.number != UNLIMITED or setting != NR_OPEN]
    domains = sorted({one_line(entry.domain, 40) for entry in certain or above})
    users = ", ".join(_users(domain) for domain in domains[:SHOWN])
    first = (certain or above)[0]
    proofs = tuple(
        [_entry(host, entry) for entry in above[:SHOWN]]
        + [_line(host, line) for line in lines[:SHOWN]]
    )
    value = f"nofile {one_line(first.value, 40)} is above {ceiling} ({setting})"
    excess = _Excess(users, value, ceiling, bool(certain))
    if forgiving:
        return _other_limit_hit(host, excess, proofs)
    return _refused_login_hit(host, excess, proofs)


def _other_limit_hit(host: Host, excess: _Excess, proofs: tuple[EvidenceRef, ...]) -> Detection:
    severity = "info"
    if excess.certain:
        severity = "warning"
    return Detection(
        f"the host ignores the limit that its files set for logins of {excess.users}:"
        f" {excess.value}",
        proofs,
        f"set these to {excess.ceiling} or less, or run the plan, which adds a managed file that is"
        " read last. Until then, a login keeps the limit that it had before",
        host=host.host,
        node=host.node,
        severity=severity,
    )


def _refused_login_hit(host: Host, excess: _Excess, proofs: tuple[EvidenceRef, ...]) -> Detection:
    severity: str | None = "warning"
    version = ", where its pam_limits is older than 1.5.2"
    if excess.certain:
        severity, version = None, ""
    return Detection(
        f"the host refuses logins of {excess.users}: {excess.value}{version}",
        proofs,
        f"keep the open session. Set these to {excess.ceiling} or less there, or run the plan,"
        " which adds a managed file that is read last. Try a second login before you close the"
        " first session",
        host=host.host,
        node=host.node,
        severity=severity,
    )


def _users(domain: str) -> str:
    if domain == "*":
        return "all users (*; on Debian and Ubuntu except root)"
    return domain


def _entry(host: Host, entry: Entry) -> EvidenceRef:
    text = f"{entry.domain} {entry.kind} nofile {entry.value}"
    return EvidenceRef("file", host.host, path=entry.path, line=entry.line, text=text)


def _line(host: Host, line: SettingLine) -> EvidenceRef:
    number = model_limits.number(line.line)
    return EvidenceRef("file", host.host, path=line.path, line=number, text=line.text)


@node_check(
    "KM408",
    "limits.conf does not reach services",
    severity="info",
    applies="nodes whose limits.conf has open files for root or everybody",
    needs=("limits",),
)
def services(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM408: report a limit of limits.conf that services do not have, because it is for logins."""
    limits = model_limits.read(document)
    entries = [entry for entry in limits.hard_limits() if entry.domain in ("*", "root")]
    highest = max(entries, key=_rank, default=None)
    hits = []
    if highest:
        below = [holder for holder in limits.processes() if _has_less(holder, highest)]
        if below:
            hits.append(_services_hit(host, highest, below))
    unread: Sequence[str] = ()
    if host.statuses.get("limits") == "ok":
        unread = limits.unread_limits()
    missing = host.missing("limits") or unless(host, not unread and _answered(limits))
    applies = bool(highest or missing)
    yield CheckResult(
        tuple(hits), missing, host=host.host, applies=applies, note=_unread_note(unread)
    )


def _has_less(holder: Holder, entry: Entry) -> bool:
    if holder.role not in ("kubelet", "runtime"):
        return False
    if (holder.role, holder.hard) == ("kubelet", MAX_OPEN_FILES):
        return False
    return 0 < holder.hard < _rank(entry)


def _services_hit(host: Host, highest: Entry, below: list[Holder]) -> Detection:
    processes = [
        EvidenceRef(
            "process", host.host, pid=holder.pid, text=f"{holder}: hard limit {holder.hard}"
        )
        for holder in below[:SHOWN]
    ]
    return Detection(
        f"{one_line(highest.path, 80)} says"
        f" {one_line(highest.value, 40)}, and {below[0]} has {below[0].hard}: it applies to"
        " logins only",
        (_entry(host, highest), *processes),
        f"nothing, unless a service needs more: then {DROPIN}; for the kubelet maxOpenFiles"
        " in its configuration",
        host=host.host,
        node=host.node,
    )


def _rank(entry: Entry) -> float:
    if entry.number == UNLIMITED:
        return float("inf")
    return entry.number or 0


@node_check(
    "KM409",
    "Kernel rejects the limits of a unit",
    severity="critical",
    applies="kubelet, runtimes and sshd",
    needs=("limits",),
)
def refused(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM409: report units that do not start because the kernel refuses their limits."""
    limits = model_limits.read(document)
    units = [
        unit
        for unit in _units(limits)
        if unit.exec_main_status == EXIT_LIMITS and unit.active_state != "active"
    ]
    hits = []
    if units:
        hits.append(_refused_hit(host, limits, units))
    missing = host.missing("limits") or unless(host, _answered(limits))
    yield CheckResult(tuple(hits), missing, host=host.host)


def _refused_hit(host: Host, limits: Limits, units: list[LimitedUnit]) -> Detection:
    proofs: list[EvidenceRef] = []
    for unit in units:
        text = f"{_word(unit.active_state)}, {_word(unit.result)}, status=205/LIMITS"
        proofs.append(EvidenceRef("unit", host.host, object=_name(unit), text=text))
        proofs += _set(host, unit, "Limit")
    names = [_name(unit) for unit in units]
    ceiling = limits.ceiling()
    highest = "what PID 1 itself has (/proc/1/limits)"
    if ceiling:
        highest = f"{ceiling[0]} ({ceiling[1]})"
    place = f"the file where systemctl cat {shlex.quote(names[0])} shows it"
    if any(proof.kind == "file" for proof in proofs):
        place = "the file that is named"
    return Detection(
        f"{' and '.join(names)} cannot start: a limit of the"
        " unit is above what it can have (205/LIMITS)",
        tuple(proofs),
        f"set LimitNOFILE= to {highest} or less in {place}, then systemctl daemon-reload and"
        f" systemctl restart {shlex.join(names)}{_lowered(limits)}",
        host=host.host,
        node=host.node,
    )


def _lowered(limits: Limits) -> str:
    """Return further advice if PID 1 has more since the boot than the kernel allows now.

    In that case systemd cannot give a unit what PID 1 has.
    """
    init, allowed = limits.answer.init, limits.kernel.get(model_limits.NR_OPEN)
    if init is None or allowed is None:
        return ""
    init_limits = model_limits.pair(init.nofile)
    if init_limits is None or UNLIMITED < init_limits[1] <= allowed:
        return ""
    number = str(init_limits[1])
    if init_limits[1] == UNLIMITED:
        number = "any number of"
    return (
        f"; or raise fs.nr_open again, which is {allowed}: PID 1 may have {number} files since the"
        " boot"
    )


def _units(limits: Limits) -> list[LimitedUnit]:
    return [unit for unit in limits.answer.units or () if unit.name]


def _name(unit: LimitedUnit) -> str:
    return one_line(unit.name, 80)


def _word(text: str) -> str:
    return one_line(text or "?", 40)


def _set(host: Host, unit: LimitedUnit, prefix: str) -> list[EvidenceRef]:
    """Return the lines that set a unit's limits, as systemd reads them."""
    lines = [line for line in unit.sets if line.path and line.text.startswith(prefix)]
    return [_line(host, line) for line in lines[:SHOWN]]


@node_check(
    "KM410",
    "A runtime without a limit of open files",
    severity="info",
    applies="nodes with a runtime",
    needs=("limits",),
    tier="deep",
)
def infinite(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM410: report a runtime without a limit of open files, which its containers inherit."""
    limits = model_limits.read(document)
    running = _running_runtimes(limits)
    limit_pairs = [(unit, model_limits.pair(unit.limit_nofile)) for unit in running]
    units = [unit for unit, pair in limit_pairs if pair and pair[1] == UNLIMITED]
    are_known = all(pair for _unit, pair in limit_pairs)
    hits = []
    if units:
        hits.append(_infinite_hit(host, units))
    missing = host.missing("limits") or unless(host, _answered(limits) and are_known)
    yield CheckResult(tuple(hits), missing, host=host.host, applies=bool(running or missing))


def _running_runtimes(limits: Limits) -> list[LimitedUnit]:
    runtimes = [unit for unit in _units(limits) if unit.name in RUNTIMES]
    return [unit for unit in runtimes if unit.active_state == "active"]


def _infinite_hit(host: Host, units: list[LimitedUnit]) -> Detection:
    proofs: list[EvidenceRef] = []
    for unit in units:
        default = EvidenceRef("unit", host.host, object=_name(unit), text="LimitNOFILE=infinity")
        proofs += _set(host, unit, "LimitNOFILE") or [default]
    return Detection(
        f"{' and '.join(_name(unit) for unit in units)} runs with"
        " LimitNOFILE=infinity, and so do its containers",
        tuple(proofs),
        "nothing has to be done; programs that visit every descriptor they could have (old"
        " Java, MySQL, rpm) are slow, or use much memory",
        host=host.host,
        node=host.node,
    )
