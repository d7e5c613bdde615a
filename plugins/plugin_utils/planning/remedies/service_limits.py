# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process at its limit of open files, as steps.

Of a service its unit's limit by a drop-in of ours, of a login limits.d.

A kubelet sets its own limit (maxOpenFiles), a container has that which its runtime gives it, and
what else runs in a kubelet's unit would not be helped without one of it: of those the finding says
what to do. A restart gives a service at once what the kernel lets nobody tell its process; it is
planned only where that is so, and where its operator allowed it by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....module_utils.shared import service_restart_rules
from ....module_utils.shared.consent import SERVICE_RESTART
from ....module_utils.shared.step_kinds import UNIT_LIMIT
from ....module_utils.shared.unit_limits import DROPINS, OURS, UNIT
from ....module_utils.shared.units import KUBELET_UNITS, RUNTIMES
from ...evidence.document import one_line
from ...models import control_plane
from ...models import limits as node_limits
from ...models.limits import NOFILE, UNLIMITED, Holder, Limits
from ..plan import Scene, Step, all_of, label, left_out
from . import login_limits

# of a file; of a restart; of one of a runtime, or beside pods that may lose their devices by the
# reload
RISK, RESTARTS, RUNTIME = 1, 2, 3
USER = "user@"  # how the unit of a user's own manager begins
PAM_USER = "/etc/pam.d/systemd-user"  # whose session that manager has
NEXT = (
    "nothing is restarted and systemd is not told: the file counts from the next start of the unit"
    " after systemctl daemon-reload (a reboot is both), which may take their devices away from"
    " running containers"
)
ONCE = (
    "systemd reads its units again and restarts {name}, which ends what it does for its users in"
    " that moment{kept}; one that does not come up with its limit gets its file as it was and is"
    " started with that"
)
SELECT = 1024  # as many as select() can wait for
WITHOUT = ("runtime", "sshd")  # roles of programs that do not use it
# where the file of a unit lies that is there again after a boot
LASTING = ("/etc/", "/usr/", "/lib/", "/run/systemd/generator")
MORE = f"ask for more with -e {node_limits.VARIABLES[NOFILE]}=NUMBER"


def steps(scene: Scene, fenced: str | None) -> Sequence[Step]:
    """KM404: a step of each service and one for logins.

    Where some of them may be done, those that may not are a note of the others.
    """
    limits = node_limits.read(scene.document)
    target, full = (
        int(scene.consent.limits.get(NOFILE, login_limits.TARGETS[NOFILE])),
        limits.full(),
    )
    of: dict[str, list[Holder]] = {}
    for one in full:
        if (
            one.role != "kubelet"
            and UNIT.match(one.unit)
            and one.unit not in KUBELET_UNITS
            and not one.unit.startswith(USER)
        ):
            of.setdefault(one.unit, []).append(one)
    found = [
        _of_unit(scene, limits, name, those, target, fenced) for name, those in sorted(of.items())
    ]
    # A host that is to have the whole profile gets the limits of logins by a wish of its own.
    logins = (
        None
        if scene.finding.host in scene.consent.profile
        else _of_logins(scene, limits, full, target, fenced)
    )
    made = [step for step in [*found, logins] if step]
    able = [one for one in made if not one.blocked_by]
    if not able:
        return made
    raised = {
        told["pid"]
        for one in able
        for told in (one.change or {}).get("processes") or ()
        if "restart" in (one.change or {})
        or (
            told["soft"] is not None
            and any(
                each.pid == told["pid"] and each.open < node_limits.FULL * told["soft"]
                for each in full
            )
        )
    }
    # What is still at its limit afterwards is no failure of a step that counts from the next start.
    expect = {"component": None, "later": any(one.pid not in raised for one in full)}
    note = "; ".join(
        "nothing is done for"
        f" {one.change['unit'] if one.change and 'unit' in one.change else 'logins'}:"
        f" {one.blocked_by}"
        for one in made
        if one.blocked_by
    )
    return [
        replace(one, expect=expect, note="; ".join(filter(None, [one.note, note]))) for one in able
    ]


def _of_unit(
    scene: Scene,
    limits: Limits,
    name: str,
    those: Sequence[Holder],
    target: int,
    fenced: str | None,
) -> Step | None:
    """The step of one service, or what stands in its way.

    None where nothing but a restart is left to do.
    """
    told = limits.units().get(name) or {}
    has, ceiling = node_limits.pair(told.get("limit_nofile")), limits.ceiling()
    refused = _refused(name, those, has, ceiling, target)
    if refused or has is None:
        return _step(scene, name, None, [], refused)
    line = _line(has, target)
    passing = bool(line) and not str(told.get("fragment_path") or "").startswith(LASTING)
    line = None if passing else line
    running = [_running(limits, one, target) for one in those if one.ticks is not None]
    if line and line == told.get("ours"):
        diff, line = "", None  # our file says it; systemd has not read it yet
    else:
        diff = (
            f"--- {_path(name)}\n+++ {_path(name)}\n+[Service]\n+LimitNOFILE={line}\n"
            if line
            else ""
        )
    short = len(running) < len(those) or any((now["soft"] or 0) < target for now in running)
    # The role that brings a host to the whole profile restarts nothing, whatever is allowed.
    if (
        short
        and running
        and not passing
        and SERVICE_RESTART in scene.consent.allow
        and scene.finding.host not in scene.consent.profile
    ):
        return _restarted(
            scene,
            name,
            those,
            target,
            _step(scene, name, line, running, fenced or _later(told, name), diff),
        )
    able = [
        (one, now)
        for one in those
        for now in running
        if one.pid == now["pid"] and now["soft"] is not None
    ]
    blocked = None if running else "when its processes were started is not known"
    if running and not (line or able):
        return None
    diff += "".join(
        f"process {one.pid} ({one.comm}): {one.soft} (hard {one.hard}) -> {now['soft']} (hard"
        f" {now['hard']})\n"
        for one, now in able
    )
    kept = any(now["soft"] is None and not now.get("select") for now in running) or len(
        running
    ) < len(those)
    main = _main(told, name)
    first = _running(limits, main, target) if main and main.soft < target else {}
    if main and first.get("soft") is not None:
        running.append(first)
        diff += (
            f"process {main.pid} ({main.comm}), from which others inherit it: {main.soft} (hard"
            f" {main.hard}) -> {first['soft']} (hard {first['hard']})\n"
        )
    select = any(now.get("select") for now in running)
    notes = [
        NEXT if line else "",
        (
            "a running process whose limit the kernel does not let us raise keeps it until then"
            if kept
            else ""
        ),
        (
            f"a running process that may have at most {SELECT} may use select(), and keeps its"
            " limit until then"
            if select
            else ""
        ),
        (
            f"what its first process {main.pid} starts has {main.soft} until then"
            if main and first and first["soft"] is None
            else ""
        ),
        _sooner(name, those) if line and (kept or select) else "",
        (
            f"{name} is a transient unit, and gets no file: only what runs now is told"
            if passing
            else ""
        ),
        _select(those),
    ]
    return _step(
        scene,
        name,
        line,
        running,
        fenced or (_later(told, name) if line else None) or blocked,
        diff,
        "; ".join(filter(None, notes)),
    )


def _refused(
    name: str,
    those: Sequence[Holder],
    has: tuple[int, int] | None,
    ceiling: tuple[int, str] | None,
    target: int,
) -> str | None:
    """Why nothing can be done for this service, whatever is allowed."""
    if ceiling is None or has is None:
        what = (
            f"what systemd gives {name}"
            if has is None
            else "how many files a process may have open at most"
        )
        return f"{what} could not be read"
    if all(one.soft >= target for one in those):
        return (
            f"{name} has {those[0].soft} already, which are used up: see what it has open, or"
            f" {MORE}"
        )
    return (
        f"LimitNOFILE={target} is above {ceiling[0]} ({ceiling[1]}), and {name} would not start"
        f" with it: ask for less with -e {node_limits.VARIABLES[NOFILE]}=NUMBER"
        if target > ceiling[0]
        else None
    )


def _restarted(scene: Scene, name: str, those: Sequence[Holder], target: int, step: Step) -> Step:
    """The step with a restart in it, where its operator allows that: no process is told."""
    # What runs with devices may lose them when systemd reads its units again; where nobody knows,
    # the node asks once more.
    held = control_plane.data(scene.document, "devices").get("running")
    pids = ", ".join(f"process {one.pid} ({one.comm}) has {one.soft}" for one in those[:3])
    risky = (
        held
        or (held is None and "kubelet_restart" in scene.consent.allow)
        or _is_runtime(name, those)
    )
    notes, never = (
        [
            ONCE.format(name=name, kept=_price(name, those)),
            _select(those),
        ],
        service_restart_rules.never_reason(name),
    )
    return replace(
        step,
        risk=RUNTIME if risky else RESTARTS,
        blocked_by=step.blocked_by
        or (service_restart_rules.refusal(name, step.host, never) if never else None),
        diff=f"{step.diff}systemctl daemon-reload; systemctl restart {name}: {pids} -> {target}\n",
        limit=service_restart_rules.SECONDS,
        note="; ".join(filter(None, notes)),
        guard={"allow": sorted(scene.consent.allow)},
        change={**(step.change or {}), "restart": target},
    )


def _select(those: Sequence[Holder]) -> str:
    return (
        f"a program that uses select() breaks beyond {SELECT} files"
        if any(one.soft <= SELECT for one in those)
        else ""
    )


def _is_runtime(name: str, those: Sequence[Holder]) -> bool:
    return name in RUNTIMES or any(one.role == "runtime" for one in those)


def _price(name: str, those: Sequence[Holder]) -> str:
    if not _is_runtime(name, those):
        return ""
    return (
        ", and of docker containers without live-restore (refused then)"
        if name == service_restart_rules.DOCKER
        else ", and leaves containers running"
    )


def _sooner(name: str, those: Sequence[Holder]) -> str:
    """How what could not be told to a running process comes into effect at once, and at what
    price.
    """
    if service_restart_rules.never_reason(name):
        return ""
    risk = RUNTIME if _is_runtime(name, those) else RESTARTS
    return (
        f"a restart would give it at once ({SERVICE_RESTART}, which ends what {name} does in"
        f" that moment{_price(name, those)}): -e kubemend_allow={SERVICE_RESTART} -e"
        f" kubemend_max_risk={risk}"
    )


def _main(told: Mapping[str, Any], name: str) -> Holder | None:
    """The unit's first process, where that is none of those at their limit.

    Without it the next worker that it starts has the old limit.
    """
    one = told.get("main")
    if not isinstance(one, Mapping):
        return None
    pid, ticks, has = (
        node_limits.number(one.get("pid")),
        node_limits.number(one.get("ticks")),
        node_limits.pair(one.get("nofile")),
    )
    if not pid or ticks is None or has is None:
        return None
    return Holder(
        pid,
        one_line(one.get("comm") or "?", 64),
        0,
        name,
        soft=has[0],
        hard=has[1],
        unit=name,
        ticks=ticks,
    )


def _line(has: tuple[int, int], target: int) -> str | None:
    """What our file has to say, None where the unit gives as much.

    One whose limits differ is of a systemd that takes them apart.
    """
    soft, hard = has
    if soft == UNLIMITED or soft >= target:
        return None
    more = "infinity" if hard == UNLIMITED else str(hard)
    return f"{target}:{more}" if hard == UNLIMITED or hard > target else str(target)


def _running(limits: Limits, one: Holder, target: int) -> dict[str, Any]:
    """What the process is told: without CAP_SYS_RESOURCE no more than its hard limit, None where
    that is nothing.

    select: nor more than select() can wait for, where the program may use it.
    """
    init = limits.seen.get("init")
    able = isinstance(init, Mapping) and init.get("cap_sys_resource") is True
    hard = UNLIMITED if one.hard == UNLIMITED else max(one.hard, target) if able else one.hard
    soft = target if hard == UNLIMITED else min(target, hard)
    select = one.role not in WITHOUT and one.soft <= SELECT < soft
    raised = soft > one.soft and not select
    return {
        "pid": one.pid,
        "ticks": one.ticks,
        "soft": soft if raised else None,
        "hard": hard if raised else None,
        **({"select": True} if select else {}),
    }


def _later(told: Mapping[str, Any], name: str) -> str | None:
    """The drop-in that is read after ours and decides."""
    for one in node_limits.items(told.get("sets")):
        path, text = str(one.get("path")), str(one.get("text") or "")
        if (
            path.rpartition("/")[0].endswith(".d")
            and path.rpartition("/")[2] > OURS
            and text.startswith("LimitNOFILE=")
        ):
            return (
                f"{path}:{one.get('line')} is read after {_path(name)} and says {text}: raise it"
                " there, or take the line away"
            )
    return None


def _path(name: str) -> str:
    return f"{DROPINS}/{name}.d/{OURS}"


def _step(
    scene: Scene,
    name: str,
    line: str | None,
    processes: Sequence[Mapping[str, Any]],
    blocked: str | None,
    diff: str = "",
    note: str = "",
) -> Step:
    finding = scene.finding
    where = finding.host or ""
    return Step(
        label(where, UNIT_LIMIT.replace("_", "-"), name),
        where,
        finding.code,
        UNIT_LIMIT,
        RISK,
        _path(name),
        None,
        finding.node,
        blocked_by=all_of(left_out(scene, where), blocked),
        note=note,
        diff=diff,
        limit=60,
        expect={"component": None},
        change={
            "kind": UNIT_LIMIT,
            "path": _path(name),
            "unit": name,
            "line": line,
            "processes": list(processes),
        },
    )


def _of_logins(
    scene: Scene, limits: Limits, full: Sequence[Holder], target: int, fenced: str | None
) -> Step | None:
    """Hard limits for those whose sessions are at theirs.

    None where a session could raise its own (ulimit -Sn), or logins have it from the next on.
    """
    asked = {one.get("path") for one in node_limits.items(limits.seen.get("pam"))}
    those = [
        one
        for one in full
        if one.session
        and not one.container
        and one.hard != UNLIMITED
        and one.hard < target
        and (not one.session.startswith(USER) or PAM_USER in asked)
    ]
    domains = sorted({"root" if one.uid == 0 else "*" for one in those})
    step = login_limits.profile(scene, NOFILE, fenced, domains) if domains else None
    others = sorted(
        {
            one_line(one.domain, 40)
            for one in limits.entries()
            if one.item == NOFILE and one.domain not in login_limits.EVERYBODY
        }
    )
    note = (
        f"a line of a user or a group counts before it, as that of {', '.join(others[:3])}"
        if others and "*" in domains
        else ""
    )
    return (
        replace(step, component=None, note="; ".join(filter(None, [step.note, note])))
        if step
        else None
    )
