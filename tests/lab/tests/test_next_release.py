# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real components of a release refuse what the table of before_upgrade says, and nothing else.

It needs no cluster: each program is started with some settings, and ends at once. Pairs of releases
that follow each other show both sides; those that no cluster of the lab has are built for it.
"""

from __future__ import annotations

import itertools
import os

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    pflag,
    release_table,
)
from tests.lab.cluster import gobuild, paths
from tests.lab.support import program
from tests.lab.support.repairing import UNDRAWN

K8S = os.environ.get("KUBEMEND_K8S", "v1.36.3")


def minor(k8s: str) -> tuple[int, int]:
    return paths.version_tuple(k8s)[:2]


PAIRS = [
    (before, after)
    for before, after in itertools.pairwise(paths.pinned_components())
    if minor(after) == (minor(before)[0], minor(before)[1] + 1)
]
pairs = pytest.mark.parametrize(("before", "after"), PAIRS)
components = pytest.mark.parametrize("component", gobuild.COMPONENTS)


def rows(kind: str) -> list[tuple[str, str, tuple[int, int], str]]:
    """Return component, name, release and value of each row of a kind."""
    lines = release_table.PATH.read_text(encoding="utf-8").splitlines()[1:]
    table = [line.split("\t") for line in lines]
    return [
        (row[1], row[2], pflag.parse_version(row[3]), row[4]) for row in table if row[0] == kind
    ]


@pytest.fixture(scope="module")
def release() -> tuple[int, int]:
    return minor(K8S)


def test_the_kubelet_refuses_the_flags_that_are_gone_and_takes_its_last_ones(release):
    flags = [
        (name, last) for component, name, last, _value in rows("flag") if component == "kubelet"
    ]
    judged = [(name, last) for name, last in flags if last <= release]
    wrong = [
        (name, last)
        for name, last in judged
        if program.takes_flag(K8S, "kubelet", name) != (last == release)
    ]
    assert judged
    assert wrong == []


def test_the_kubelet_refuses_the_gates_that_are_gone_and_takes_its_last_ones(release):
    gates = {name: last for _component, name, last, _value in rows("gate") if last <= release}
    unknown, _locked = program.refused_gates(K8S, "kubelet", dict.fromkeys(gates, "true"))
    assert gates
    assert unknown == {name for name, last in gates.items() if last < release}


def other(value: str) -> str:
    return {"true": "false", "false": "true"}[value]


def test_the_kubelet_refuses_the_other_value_of_a_gate_from_the_release_that_locks_it(release):
    gone = {name for _component, name, last, _value in rows("gate") if last < release}
    locks = [row for row in rows("lock") if row[1] not in gone and abs(row[2][1] - release[1]) < 3]
    gates = {name: other(value) for _component, name, _since, value in locks}
    _unknown, locked = program.refused_gates(K8S, "kubelet", gates)
    assert locks
    assert locked == {name for _component, name, since, _value in locks if since <= release}


def test_the_lab_can_build_both_releases_of_two_pairs():
    assert [(minor(before), minor(after)) for before, after in PAIRS] == [
        ((1, 18), (1, 19)),
        ((1, 35), (1, 36)),
    ]


@UNDRAWN
@pairs
@components
def test_the_next_release_refuses_exactly_the_flags_that_the_table_has(before, after, component):
    table = {
        name
        for one, name, last, _value in rows("flag")
        if (one, last) == (component, minor(before))
    }
    gone = program.listed_flags(before, component) - program.listed_flags(after, component)
    refused = {name for name in table | gone if not program.takes_flag(after, component, name)}
    assert refused == table
    assert [name for name in table if not program.takes_flag(before, component, name)] == []


@UNDRAWN
@pairs
@components
def test_the_next_release_refuses_exactly_the_gates_that_the_table_has(before, after, component):
    """Of the gates that this component knows in the release before."""
    gone = {name: last for _one, name, last, _value in rows("gate")}
    values = {name: value for _one, name, _since, value in rows("lock")}
    gates = {
        name: values.get(name, "true")
        for name in (*gone, *values, *program.listed_gates(before, component))
        if gone.get(name, minor(before)) >= minor(before)
    }
    unknown, _locked = program.refused_gates(before, component, gates)
    known = {name: value for name, value in gates.items() if name not in unknown}
    refused, _locked = program.refused_gates(after, component, known)
    assert refused == {name for name in known if gone.get(name) == minor(before)}
    assert set(gone) & set(known)


@UNDRAWN
@pairs
@components
def test_the_next_release_locks_exactly_the_gates_that_the_table_has(before, after, component):
    """Of the gates that this component knows and does not lock in the release before."""
    gone = {name for _one, name, last, _value in rows("gate") if last <= minor(before)}
    since = {name: first for _one, name, first, _value in rows("lock") if name not in gone}
    values = {name: other(value) for _one, name, _first, value in rows("lock")}
    gates = {name: values[name] for name in since}
    unknown, locked = program.refused_gates(before, component, gates)
    known = {name: value for name, value in gates.items() if name not in unknown}
    assert locked == {name for name in known if since[name] <= minor(before)}
    _unknown, refused = program.refused_gates(after, component, known)
    assert refused == {name for name in known if since[name] <= minor(after)}


@UNDRAWN
@pairs
@pytest.mark.parametrize(
    ("kind", "takes"), [("group", program.takes_api), ("api", program.reads_version)]
)
def test_the_next_release_lacks_the_groups_and_versions_that_the_table_has(
    before, after, kind, takes, tmp_path
):
    """A few of those that are gone before, too."""
    names = {
        name: last
        for component, name, last, _value in rows(kind)
        if component in gobuild.COMPONENTS
    }
    older = [name for name, last in names.items() if last < minor(before)][:3]
    gone = [name for name, last in names.items() if last == minor(before)]
    taken = {
        name: (takes(before, name, tmp_path), takes(after, name, tmp_path))
        for name in [*older, *gone]
    }
    assert taken == {**dict.fromkeys(older, (False, False)), **dict.fromkeys(gone, (True, False))}
