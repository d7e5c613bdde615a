# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""EnforceNodeAllocatable with which no kubelet starts. Pure.

The rules are from pkg/kubelet/apis/config/validation and pkg/kubelet/cm of 1.14.0 to 1.36.3. A
cgroup that is not there now may be there when the kubelet starts: its own unit may make it. The
kubelet's last log lines prove it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...parsers import pflag
from .config import Setting
from .configured_value import NEWEST, ConfiguredKubelet, Found, Release, Unsure, listed

ENFORCE, PER_QOS = "enforceNodeAllocatable", "cgroupsPerQOS"
PODS, NONE = "pods", "none"
COMPRESSIBLE = (1, 32)  # the release that first enforced CPUs alone
# The first that refuses a value given twice, and that lets cgroupsPerQOS be off with none.
TWICE = (1, 31)


@dataclass(frozen=True)
class Reserved:
    """Value of enforceNodeAllocatable that needs a cgroup, and the settings that it requires."""

    word: str
    cgroup: str
    cgroup_flag: str
    amounts: str
    amounts_flag: str


RESERVED = (
    Reserved(
        "kube-reserved",
        "kubeReservedCgroup",
        "kube-reserved-cgroup",
        "kubeReserved",
        "kube-reserved",
    ),
    Reserved(
        "system-reserved",
        "systemReservedCgroup",
        "system-reserved-cgroup",
        "systemReserved",
        "system-reserved",
    ),
)
_ACCEPTED = (PODS, "system-reserved", "kube-reserved", NONE)
_NEWER = ("system-reserved-compressible", "kube-reserved-compressible")


def enforced(kubelet: ConfiguredKubelet) -> list[tuple[str, Setting]]:
    """Return the values of enforceNodeAllocatable with what sets them."""
    uses = pflag.string_flags(kubelet.config.argv, "enforce-node-allocatable")
    if uses:
        return [
            (word, Setting(word, f"--enforce-node-allocatable={use}"))
            for use in uses
            for word in filter(None, use.split(","))
        ]
    rows = [setting for path, setting in kubelet.config.rows(ENFORCE) if len(path) == 1]
    return [
        (row.value, Setting(row.value, f"{ENFORCE}: {row.value}", row.path, row.line))
        for row in rows
    ]


def refused(kubelet: ConfiguredKubelet) -> Iterator[Found]:
    """Yield the problems of enforceNodeAllocatable, and the cgroups that are missing."""
    values = enforced(kubelet)
    yield from kubelet.refused(
        ENFORCE,
        (1, 14),
        lambda release: _words([word for word, dummy in values], release),
        *(setting for dummy, setting in values),
    )
    yield from _without_hierarchy(kubelet, values)
    settings = {word.removesuffix("-compressible"): setting for word, setting in values}
    for kind in RESERVED:
        if kind.word in settings:
            yield from _needed(kubelet, kind, settings[kind.word])


def _words(words: Sequence[str], release: Release) -> str | None:
    accepted: tuple[str, ...] = _ACCEPTED
    if release >= COMPRESSIBLE:
        accepted += _NEWER
    for word in words:
        if word not in accepted:
            return _unaccepted(word, accepted, release)
        conflict = _conflict(word, Counter(words), release)
        if conflict:
            return f"{ENFORCE}: {', '.join(words)}; {conflict}"
    return ""


def _unaccepted(word: str, accepted: tuple[str, ...], release: Release) -> str | None:
    if release > NEWEST:
        return None
    return f"{ENFORCE}: {word}; accepted values are {listed(accepted)}"


def _conflict(word: str, count: Mapping[str, int], release: Release) -> str:
    """Return why a value does not go with the others, empty where it does."""
    plain = word.removesuffix("-compressible")
    if word == NONE and sum(count.values()) > 1:
        return f"{NONE} goes with no other value"
    if count[word] > 1 and release >= TWICE:
        return f"{word} is given twice"
    if word in _NEWER and plain in count:
        return f"{plain} and {word} exclude each other"
    return ""


def _without_hierarchy(
    kubelet: ConfiguredKubelet, values: Sequence[tuple[str, Setting]]
) -> Iterator[Found]:
    """Check cgroupsPerQOS: without it nothing may be enforced; by default, pods are."""
    per_qos, setting = kubelet.config.switch(PER_QOS, "cgroups-per-qos")
    if per_qos is not False or setting is None or not (values or _is_default(kubelet)):
        return
    words = [word for word, dummy in values]

    def judge(release: Release) -> str | None:
        if words == [NONE] and release >= TWICE:
            return ""
        required = "[]"
        if release >= TWICE:
            required = NONE
        return f"{setting.text}; {ENFORCE} is {', '.join(words) or PODS}, and must be {required}"

    yield from kubelet.refused(PER_QOS, (1, 14), judge, setting)


def _needed(kubelet: ConfiguredKubelet, kind: Reserved, setting: Setting) -> Iterator[Found]:
    """Check the cgroup and the amounts that one value needs."""
    cgroup = kubelet.config.setting(kind.cgroup, kind.cgroup_flag)
    if cgroup is None or not cgroup.value:
        reason = f"{setting.text}; it needs {kind.cgroup}, which is not set"
        yield from kubelet.refused(ENFORCE, (1, 15), lambda release: reason, setting)
        return
    if not kubelet.config.mapping(kind.amounts, kind.amounts_flag) and not _by_list(kubelet, kind):
        reason = f"{setting.text}; it needs {kind.amounts}, which is not set"
        yield from kubelet.refused(ENFORCE, (1, 14), lambda release: reason, setting)
    if kubelet.node.running and not kubelet.node.proven and _missing(kubelet, cgroup.value):
        yield Unsure(
            kind.cgroup,
            f"{cgroup.text}: there is no such cgroup now, and whether the kubelet's start makes it "
            "is not known",
        )


def _is_default(kubelet: ConfiguredKubelet) -> bool:
    """Return whether neither a file nor a flag sets enforceNodeAllocatable."""
    flag = pflag.string_flag(kubelet.config.argv, "enforce-node-allocatable")
    return ENFORCE not in kubelet.config.tops and flag is None


def _by_list(kubelet: ConfiguredKubelet, kind: Reserved) -> bool:
    """Return whether reservedSystemCPUs provides an amount of systemReserved."""
    cpus = kubelet.config.setting("reservedSystemCPUs", "reserved-cpus")
    return kind.amounts == "systemReserved" and cpus is not None and bool(cpus.value.strip())


def _missing(kubelet: ConfiguredKubelet, name: str) -> bool:
    """Return whether the cgroup is missing by the names that both cgroup drivers give it."""
    cgroups = kubelet.node.seen.cgroups or ()
    records = [cgroup.missing for cgroup in cgroups if cgroup.name == name]
    return bool(records) and all(records)
