# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""EnforceNodeAllocatable with which no kubelet starts. Pure.

Read in pkg/kubelet/apis/config/validation and pkg/kubelet/cm of 1.14.0 to 1.36.3. A cgroup that is
not there now may be there when the kubelet starts: its own unit may make it. Its last
words prove it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...parsers import pflag as flags
from .config import Setting
from .configured_value import NEWEST, Found, Release, Told, Unsure, listed

ENFORCE, PER_QOS = "enforceNodeAllocatable", "cgroupsPerQOS"
PODS, NONE = "pods", "none"
COMPRESSIBLE = (1, 32)  # the release that first enforced CPUs alone
TWICE = (
    1,
    31,
)  # the first that refuses a word given twice, and that lets cgroupsPerQOS be off beside none


@dataclass(frozen=True)
class Reserved:
    """A word of enforceNodeAllocatable that needs a cgroup, and what must be set for it."""

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


def enforced(told: Told) -> list[tuple[str, Setting]]:
    """Return the words of enforceNodeAllocatable with what sets them."""
    given = flags.string_flags(told.config.argv, "enforce-node-allocatable")
    if given:
        return [
            (word, Setting(word, f"--enforce-node-allocatable={text}"))
            for text in given
            for word in text.split(",")
            if word
        ]
    rows = [(path, one) for path, one in told.config.rows(ENFORCE) if len(path) == 1]
    return [
        (one.value, Setting(one.value, f"{ENFORCE}: {one.value}", one.path, one.line))
        for dummy, one in rows
    ]


def refused(told: Told) -> Iterator[Found]:
    """Yield what is wrong with enforceNodeAllocatable, and the cgroups that are missing."""
    words = enforced(told)
    settings = [one for dummy, one in words]
    yield from told.refused(
        ENFORCE,
        (1, 14),
        lambda release: _words([word for word, dummy in words], release),
        *settings,
    )
    yield from _without_hierarchy(told, words)
    names = {word.removesuffix("-compressible"): one for word, one in words}
    for kind in RESERVED:
        if kind.word in names:
            yield from _needed(told, kind, names[kind.word])


def _words(words: Sequence[str], release: Release) -> str | None:
    accepted = _ACCEPTED + (_NEWER if release >= COMPRESSIBLE else ())
    count = Counter(words)
    for word in words:
        if word not in accepted:
            return (
                None
                if release > NEWEST
                else f"{ENFORCE}: {word}; accepted values are {listed(accepted)}"
            )
        if word == NONE and len(words) > 1:
            return f"{ENFORCE}: {', '.join(words)}; {NONE} goes with no other value"
        if count[word] > 1 and release >= TWICE:
            return f"{ENFORCE}: {', '.join(words)}; {word} is given twice"
        if word in _NEWER and word.removesuffix("-compressible") in count:
            plain = word.removesuffix("-compressible")
            return f"{ENFORCE}: {', '.join(words)}; {plain} and {word} exclude each other"
    return ""


def _without_hierarchy(told: Told, words: Sequence[tuple[str, Setting]]) -> Iterator[Found]:
    """Look at cgroupsPerQOS: without it nothing may be enforced; unsaid, pods are."""
    wanted, setting = told.config.switch(PER_QOS, "cgroups-per-qos")
    silent = (
        not words
        and ENFORCE not in told.config.tops
        and flags.string_flag(told.config.argv, "enforce-node-allocatable") is None
    )
    if wanted is not False or setting is None or not (words or silent):
        return
    only_none = [word for word, dummy in words] == [NONE]

    def judge(release: Release) -> str | None:
        if only_none and release >= TWICE:
            return ""
        now = ", ".join(word for word, dummy in words) or PODS
        must = NONE if release >= TWICE else "[]"
        return f"{setting.text}; {ENFORCE} is {now}, and must be {must}"

    yield from told.refused(PER_QOS, (1, 14), judge, setting)


def _needed(told: Told, kind: Reserved, setting: Setting) -> Iterator[Found]:
    """Look at the cgroup and the amounts that one word needs."""
    cgroup = told.config.setting(kind.cgroup, kind.cgroup_flag)
    if cgroup is None or not cgroup.value:
        why = f"{setting.text}; it needs {kind.cgroup}, which is not set"
        yield from told.refused(ENFORCE, (1, 15), lambda release: why, setting)
        return
    if not told.config.mapping(kind.amounts, kind.amounts_flag) and not _by_list(told, kind):
        why = f"{setting.text}; it needs {kind.amounts}, which is not set"
        yield from told.refused(ENFORCE, (1, 14), lambda release: why, setting)
    if told.node.running and not told.node.proven and _missing(told, cgroup.value):
        yield Unsure(
            kind.cgroup,
            f"{cgroup.text}: there is no such cgroup now, and whether the kubelet's start makes it "
            "is not known",
        )


def _by_list(told: Told, kind: Reserved) -> bool:
    """Whether reservedSystemCPUs makes an amount of systemReserved."""
    found = told.config.setting("reservedSystemCPUs", "reserved-cpus")
    return kind.amounts == "systemReserved" and found is not None and bool(found.value.strip())


def _missing(told: Told, cgroup: str) -> bool:
    """Whether the cgroup is seen to be missing, by the names that both cgroup drivers give it."""
    seen = told.node.seen.get("cgroups")
    known = (
        [one for one in seen if isinstance(one, Mapping) and one.get("name") == cgroup]
        if isinstance(seen, list)
        else []
    )
    return bool(known) and all(
        isinstance(one.get("missing"), list) and one["missing"] for one in known
    )
