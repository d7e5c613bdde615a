# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what each release no longer has, from the sources of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.next_release import flags, gates, interfaces

HERE = Path(__file__).parent
Row = tuple[str, str, str, str, str]
Names = frozenset[str]


def releases() -> dict[int, list[str]]:
    """Return the modules of each minor release."""
    lines = (HERE / "sources.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {int(release.partition(".")[2]): modules.split() for release, modules in rows}


def folders(modules: Iterable[str], sources: Path) -> dict[str, Path]:
    """Return the folder of each module of a release by the module's last name."""
    return {module.partition("@")[0].rpartition("/")[2]: sources / module for module in modules}


def rows(sources: Path) -> list[Row]:
    """Return the rows of the table, sorted: kind, component, name, release, value."""
    places = {minor: folders(modules, sources) for minor, modules in releases().items()}
    known = {minor: gates.of_release(minor, place) for minor, place in places.items()}
    found: list[Row] = []
    for component in flags.PACKAGES:
        names = {minor: flags.of_component(component, place) for minor, place in places.items()}
        found += _gone("flag", component, names)
    found += _gone("gate", "", {minor: names for minor, (names, _locks) in known.items()})
    found += _locked({minor: locks for minor, (_names, locks) in known.items()})
    kinds = (
        ("plugin", "kube-apiserver", interfaces.plugins),
        ("group", "kube-apiserver", interfaces.groups),
        ("group", "kube-apiserver", interfaces.group_versions),
        ("api", "kube-scheduler", interfaces.scheduler_versions),
        ("api", "kubeadm", interfaces.kubeadm_versions),
    )
    for kind, component, read in kinds:
        found += _gone(kind, component, {minor: read(place) for minor, place in places.items()})
    for kind, read_value in (("etcd", interfaces.external_etcd), ("skew", interfaces.kubelet_skew)):
        found += _changed(kind, {minor: read_value(place) for minor, place in places.items()})
    found += [
        ("tidied", "kubeadm", flag, f"1.{minor}", "")
        for minor, place in places.items()
        for flag in interfaces.tidied(place)
    ]
    found += [("range", "", "first", f"1.{min(places)}", "")]
    found += [("range", "", "last", f"1.{max(places)}", "")]
    return sorted(found)


def _gone(kind: str, component: str, names: Mapping[int, Names]) -> list[Row]:
    """Return what the newest release lacks, with the last release that has it."""
    everything = frozenset().union(*names.values()) - names[max(names)]
    return [
        (kind, component, name, f"1.{max(minor for minor in names if name in names[minor])}", "")
        for name in everything
    ]


def _locked(locks: Mapping[int, Mapping[str, str]]) -> list[Row]:
    """Return each gate that is locked, with the first of the last releases that lock it."""
    everything = {gate for locked in locks.values() for gate in locked}
    found = []
    for gate in everything:
        first = max(minor for minor in locks if gate in locks[minor])
        value = locks[first][gate]
        while locks.get(first - 1, {}).get(gate) == value:
            first -= 1
        found.append(("lock", "", gate, f"1.{first}", value))
    return found


def _changed(kind: str, values: Mapping[int, str]) -> list[Row]:
    """Return the releases of kubeadm that have another value than the one before."""
    return [
        (kind, "kubeadm", "", f"1.{minor}", values[minor])
        for minor in sorted(values)
        if values.get(minor - 1) != values[minor]
    ]
