# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a release of Kubernetes no longer takes, as the sources of all releases have it.

release_table.tsv has one fact in a line. `python3 -m tests.next_release mine` writes it.

    flag, plugin, group, api   the last release in which a component has this name
    gate                       the last release that knows this feature gate
    lock                       the first release that locks a feature gate, and its value
    etcd, skew                 the first release of kubeadm with another limit, and the limit
    tidied                     a release in which kubeadm takes a flag out of its own file
    range                      the oldest and the newest release that were read

No release lacks a key of a KubeletConfiguration that an earlier one has.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from . import pflag

PATH = Path(__file__).with_suffix(".tsv")
COLUMNS = ("kind", "component", "name", "release", "value")
FLAG, GATE, LOCK, PLUGIN, GROUP, API = "flag", "gate", "lock", "plugin", "group", "api"
KUBEADM = "kubeadm"

Release = tuple[int, int]
_Facts = Mapping[tuple[str, str, str], tuple[tuple[Release, str], ...]]


@functools.lru_cache(maxsize=1)
def _facts() -> _Facts:
    facts: dict[tuple[str, str, str], list[tuple[Release, str]]] = {}
    for line in PATH.read_text(encoding="utf-8").splitlines()[1:]:
        kind, component, name, text, value = line.split("\t")
        release = pflag.parse_version(text)
        if release is not None:
            facts.setdefault((kind, component, name), []).append((release, value))
    return {key: tuple(sorted(rows)) for key, rows in facts.items()}


def last_release(kind: str, component: str, name: str) -> Release | None:
    """Return the last release that has a name, None where the newest one has it or none had it."""
    rows = _facts().get((kind, component, name), ())
    return next((release for release, _value in rows), None)


def locked(gate: str) -> tuple[Release, bool] | None:
    """Return the first release that locks a feature gate, and the value; None where none does."""
    rows = _facts().get((LOCK, "", gate), ())
    return next(((release, value == "true") for release, value in rows), None)


def external_etcd(release: Release) -> str:
    """Return the oldest release of an external etcd that kubeadm init of this release takes."""
    return _limit("etcd", release)


def kubelet_skew(release: Release) -> int:
    """Return by how many minor releases a kubelet may be older where kubeadm upgrades to this."""
    return int(_limit("skew", release) or 0)


def _limit(kind: str, release: Release) -> str:
    rows = _facts().get((kind, KUBEADM, ""), ())
    return next((value for first, value in reversed(rows) if first <= release), "")


def is_tidied(flag: str, release: Release) -> bool:
    """Tell whether kubeadm of this release takes a flag out of kubeadm-flags.env by itself."""
    rows = _facts().get(("tidied", KUBEADM, flag), ())
    return any(first == release for first, _value in rows)


def newest() -> Release:
    """Return the newest release that was read."""
    return _facts()[("range", "", "last")][0][0]


def oldest() -> Release:
    """Return the oldest release that was read."""
    return _facts()[("range", "", "first")][0][0]
