# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step that raises a kernel setting which a fault proved to be exhausted, or not to last.

If a host is to have the whole profile (the role open_files), a request for each limit takes the
place of a finding. Such a request may lower a setting, if that is allowed by name and the number is
the operator's own. It never goes below what is in use, and never against a foreign file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ....module_utils.shared.consent import LOWER_LIMITS
from ....module_utils.shared.step_kinds import KERNEL_SETTING
from ...models import limits as model_limits
from ...models import persistent_sysctl
from ...models.cluster import Cluster
from ...models.persistent_sysctl import Later
from ...models.result import Finding
from .. import fencing
from ..plan import RemedyContext, Step, all_of, label, left_out
from . import login_limits, service_limits

RISK = 1


def raised(scene: RemedyContext) -> Step | None:
    """KM401, KM402, KM403, KM405 and KM407.

    The setting that the finding names, to its target, never below what anything says already.
    """
    key, limits = scene.finding.component or "", model_limits.read(scene.document)
    running = limits.kernel.get(key)
    if running is None or key not in model_limits.WATCHED:
        return None
    target = int(scene.consent.limits.get(key, model_limits.TARGETS.get(key, 0)))
    if scene.finding.code != PROFILE and _may_lower(scene, limits, key, running, target):
        return None  # the wish for it answers
    exhausted = _is_exhausted(limits, key)
    floor = _floor(scene, target, exhausted)
    value = max([running, *persistent_sysctl.asked_for(limits, key), floor])
    later = persistent_sysctl.later(limits, key, value)
    blocked = until_then(later.blocked, key, running, value)
    if exhausted and value <= running:
        blocked = f"{key} is {running} already, and it is used up: {_more(key)}"
    return replace(
        step_of(scene, key, running, value, _fenced(scene) or blocked, later), nodes=_sharing(scene)
    )


def _floor(scene: RemedyContext, target: int, exhausted: bool) -> int:
    """Return what a setting gets at least.

    One that is enough today only lasts, where the whole profile is not asked for.
    """
    return target if exhausted or _is_wished(scene) else 0


def _is_exhausted(limits: model_limits.Limits, key: str) -> bool:
    return any(short.key == key for short in limits.shortages())


def _sharing(scene: RemedyContext) -> tuple[str, ...]:
    """Return the other Nodes that the finding is of: they share its host's kernel."""
    return tuple(
        host.node
        for host in scene.cluster.hosts
        if host.node and host.host in scene.finding.hosts and host.host != scene.finding.host
    )


def until_then(reason: str | None, key: str, running: int, value: int) -> str | None:
    """Return what decides in place of the managed file, with what helps until it is changed."""
    if reason and value > running:
        return f"{reason}; until then sysctl -w {key}={value} helps, up to the next boot"
    return reason


def _is_wished(scene: RemedyContext) -> bool:
    return scene.finding.host in scene.consent.profile


def _fenced(scene: RemedyContext) -> str | None:
    """Return what forbids changes on this host. A host without a kubelet cannot be fenced."""
    kubelet = (scene.document.get("collectors") or {}).get("kubelet") or {}
    plain = _is_wished(scene) and scene.finding.node is None and kubelet.get("status") == "absent"
    return None if plain else fencing.refusal(scene)


def profiled(scene: RemedyContext) -> Step | None:
    """Return the step of one limit of a host that is to have all of them.

    The result is None where the host has it, now and after a boot.
    """
    key, limits = scene.finding.component or "", model_limits.read(scene.document)
    if key in login_limits.TARGETS:
        return login_limits.profile(scene, key, _fenced(scene))
    running = limits.kernel.get(key)
    if running is None:
        return replace(
            step_of(scene, key, 0, 0, f"what {key} of {scene.finding.host} is could not be read"),
            diff="",
            change=None,
        )
    target = int(scene.consent.limits.get(key, model_limits.TARGETS[key]))
    if _may_lower(scene, limits, key, running, target):
        return _lowered(scene, limits, key, running, target)
    return None if _has(limits, key, running, target) else raised(scene)


def _may_lower(
    scene: RemedyContext, limits: model_limits.Limits, key: str, running: int, target: int
) -> bool:
    """Tell whether a setting is, or will be after a boot, above the number to lower it to."""
    if (
        not _is_wished(scene)
        or LOWER_LIMITS not in scene.consent.allow
        or key not in scene.consent.limits
    ):
        return False
    setting = limits.at_boot().get(key)
    return running > target or (
        setting is not None
        and (persistent_sysctl.accepted_number(key, setting.value) or 0) > target
    )


def _lowered(
    scene: RemedyContext, limits: model_limits.Limits, key: str, running: int, target: int
) -> Step:
    """Return the step that lowers a setting to this number, or what forbids it."""
    later = persistent_sysctl.later(limits, key, target)
    blocked = _fenced(scene) or _unlowerable(limits, key, target, later)
    step = step_of(scene, key, running, target, blocked)
    down = f"the kernel: {running} -> {target}\n" if running != target else ""
    note = (
        "a process that needs more from now on is refused (too many open files, no space left on"
        " device); a revert brings the former number back"
    )
    return replace(
        step,
        diff=f"--- {step.target}\n+++ {step.target}\n+{key} = {target}\n{down}",
        note="; ".join(filter(None, [note, later.note])),
        change={**(step.change or {}), "lower": True, "running": running},
    )


def _unlowerable(limits: model_limits.Limits, key: str, target: int, later: Later) -> str | None:
    """Return why a setting cannot have this lower number, or None.

    later: what decides after a boot.
    """
    other_lines = persistent_sysctl.above(limits, key, target)
    if other_lines:
        return (
            f"{other_lines[0]} says more, and is not ours to lower: change that line, or take it"
            " away, first"
        )
    less = f"{later.why}, and {target} is asked for" if later.edit else later.blocked
    return less or _in_use(limits, key, target)


def _in_use(limits: model_limits.Limits, key: str, target: int) -> str | None:
    """Return why so many are not enough for what is in use, or that this is not known.

    A queue's length bounds only what waits in it.
    """
    if key == model_limits.EVENTS:
        return None
    # A try that failed proves more than counting: /proc does not show everybody who holds one.
    short = next(
        (
            shortage
            for shortage in limits.shortages()
            if shortage.key == key and shortage.limit >= target
        ),
        None,
    )
    if short:
        return (
            f"{key} is {short.limit} and used up, for which {target} is not enough ({short.shown}):"
            f" {_more(key)}"
        )
    used, user_clause = limits.in_use(key)
    if used is None:
        return f"how many of {key} are in use is not known: ask with -e kubemend_deep=true, as root"
    if used >= model_limits.FULL * target:
        return (
            f"{used} of {key} are in use{user_clause}, for which {target} is not enough: ask for"
            f" more with -e {model_limits.VARIABLES[key]}=NUMBER"
        )
    return None


def _has(limits: model_limits.Limits, key: str, running: int, target: int) -> bool:
    """Return whether the kernel has as much, and will have after a boot.

    Without a file systemd gives it as many file handles as it can count.
    """
    setting = limits.at_boot().get(key)
    lasting = (
        running == persistent_sysctl.UNBOUNDED
        if setting is None
        else (persistent_sysctl.accepted_number(key, setting.value) or 0) >= target
    )
    return running >= target and lasting


def _more(key: str) -> str:
    return (
        f"find out who holds so many, or ask for more with -e {model_limits.VARIABLES[key]}=NUMBER"
    )


NOT_LATER = Later(None, "")


def step_of(
    scene: RemedyContext,
    key: str,
    running: int,
    value: int,
    blocked: str | None,
    later: Later = NOT_LATER,
) -> Step:
    """Return the step that raises a setting in the deciding file, and in the kernel."""
    finding, edit = scene.finding, later.edit
    host, path = finding.host or "", edit.path if edit else persistent_sysctl.FILE
    lines = f"-{edit.old.strip()}\n+{edit.new}\n" if edit else f"+{key} = {value}\n"
    diff = f"--- {path}\n+++ {path}\n{lines}" + (
        f"the kernel: {running} -> {value}\n" if value > running else ""
    )
    note = f"{later.why}; whatever writes {path} has to say so too" if edit else ""
    change = {
        "kind": KERNEL_SETTING,
        "path": path,
        "settings": {key: value},
        **({"line": {"number": edit.line, "text": edit.old}} if edit else {}),
    }
    return Step(
        label(host, KERNEL_SETTING.replace("_", "-"), key),
        host,
        finding.code,
        KERNEL_SETTING,
        RISK,
        path,
        key,
        finding.node,
        blocked_by=all_of(left_out(scene, host), blocked),
        note="; ".join(filter(None, [note, later.note])),
        diff=diff,
        limit=60,
        change=change,
        expect={"component": None},
    )


def unlocked(scene: RemedyContext) -> Step | None:
    """KM406: write a managed line over each that locks logins out."""
    return login_limits.lowered(scene, _fenced(scene))


def at_limit(scene: RemedyContext) -> Sequence[Step]:
    """KM404: write a managed drop-in for each service, and a managed line for logins."""
    return service_limits.steps(scene, _fenced(scene))


PROFILE = "profile"
REMEDIES = {
    **dict.fromkeys(("KM401", "KM402", "KM403", "KM405", "KM407"), raised),
    "KM404": at_limit,
    "KM406": unlocked,
    PROFILE: profiled,
}


def wishes(clusters: Iterable[Cluster], hosts: Iterable[str], digits: int) -> Iterator[Finding]:
    """Yield a request for each limit of each of these hosts, in the form of a finding."""
    for cluster in clusters:
        for host in cluster.hosts:
            if host.host in hosts:
                for key in (*model_limits.TARGETS, *login_limits.TARGETS):
                    yield Finding(
                        PROFILE,
                        "info",
                        cluster.key[:digits] if cluster.key else None,
                        host.host,
                        key,
                        "asked for",
                        host.node,
                    )
