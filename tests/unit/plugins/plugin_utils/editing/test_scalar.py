# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One scalar of a YAML file, replaced in its place."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing import (
    argument as editing_argument,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing import (
    scalar as editing_scalar,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing.argument import (
    EditRefused,
)
from tests.unit.support.edit_check import check_edit, mask_secrets

pytestmark = pytest.mark.usefixtures("both_parsers")
ELECT = ("leaderElection", "leaderElect")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("leaderElection: [1]\n", "leaderElection is no mapping"),
        ("leaderElection: x\n", "leaderElection is no mapping"),
        ("leaderElection:\n  leaderElect: {a: 1}\n", "no single value"),
        ("x: &x {a: 1}\nleaderElection: *x\n", "an anchor or alias"),
        ("leaderElection: {a: 1}\nleaderElection: {a: 1}\n", "occurs twice"),
        ("leaderElection:\n  leaderElect: &a false\n", "anchor"),
        ("leaderElection:\n  leaderElect: |\n    a\n", "a block scalar"),
        ("x: &x\n  a: 1\nleaderElection:\n  y: *x\n", "anchor or alias"),
        ("leaderElection:\n  leaderElect: !!bool false\n", "a YAML tag"),
        ("leaderElection: {{ x }}\n", "template"),
        ("", "empty"),
        ("leaderElection:\n  a: |+\n    t", "more of the file"),
    ],
)
def test_scalar_refused(text, why):
    with pytest.raises(EditRefused, match=why):
        editing_scalar.set_scalar(text, ELECT, True)


def test_scalar_of_another_kind():
    with pytest.raises(EditRefused, match="its kind is A, not B"):
        editing_scalar.set_scalar("kind: A\n", ELECT, True, kind="B")
    with pytest.raises(EditRefused, match="its kind is missing"):
        editing_scalar.set_scalar("x: A\n", ELECT, True, kind="B")


def test_a_masked_scalar_elsewhere_and_here():
    source, data = mask_secrets(
        "token: hunter2\nleaderElection:\n  leaderElect: false\n", "hunter2"
    )
    result = editing_scalar.set_scalar(source, ELECT, True)
    assert editing_argument.apply(data, result.splices) == data.replace(b"false", b"true")
    with pytest.raises(EditRefused, match="a secret stands"):
        editing_scalar.set_scalar(source, ("token",), "x")


V3, V4 = (
    f"apiVersion: kubeadm.k8s.io/{v}\nkind: ClusterConfiguration\n" for v in ("v1beta3", "v1beta4")
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            V3 + 'scheduler:\n  extraArgs:\n    leader-elect: "false"\n',
            V3 + 'scheduler:\n  extraArgs:\n    leader-elect: "true"\n',
        ),
        (
            V3 + "scheduler:\n  extraArgs:\n    leader-elect: 'false'\n",
            V3 + "scheduler:\n  extraArgs:\n    leader-elect: 'true'\n",
        ),
        (
            V3 + "scheduler:\n  extraArgs:\n    leader_elect: false\n",
            V3 + 'scheduler:\n  extraArgs:\n    leader_elect: "true"\n',
        ),
        (
            V3 + 'scheduler:\n  extraArgs:\n    v: "2"\n',
            V3 + 'scheduler:\n  extraArgs:\n    v: "2"\n    leader-elect: "true"\n',
        ),
        (V3 + "scheduler: {}\n", V3 + 'scheduler: {extraArgs: {leader-elect: "true"}}\n'),
        (
            V3 + "scheduler:\n  extraArgs: {}\n",
            V3 + 'scheduler:\n  extraArgs: {leader-elect: "true"}\n',
        ),
        (V3, V3 + 'scheduler:\n  extraArgs:\n    leader-elect: "true"\n'),
        (
            V4 + 'scheduler:\n  extraArgs:\n  - name: leader-elect\n    value: "true"\n  - name:'
            ' leader-elect\n    value: "false"\n',
            V4 + 'scheduler:\n  extraArgs:\n  - name: leader-elect\n    value: "true"\n  - name:'
            ' leader-elect\n    value: "true"\n',
        ),
        (
            V4 + 'scheduler:\n  extraArgs:\n  - name: v\n    value: "2" # c\n  x: 1\n',
            V4
            + 'scheduler:\n  extraArgs:\n  - name: v\n    value: "2" # c\n  - name: leader-elect\n '
            '   value: "true"\n  x: 1\n',
        ),
        (
            V4 + "scheduler:\n  extraArgs:\n    -  name: leader-elect\nx: 1\n",
            V4
            + 'scheduler:\n  extraArgs:\n    -  name: leader-elect\n       value: "true"\nx: 1\n',
        ),
        (
            V4 + "scheduler: {extraArgs: [{name: leader-elect, value: 'false'}]}\n",
            V4 + "scheduler: {extraArgs: [{name: leader-elect, value: 'true'}]}\n",
        ),
        (
            V4 + "scheduler: {extraArgs: []}\n",
            V4 + 'scheduler: {extraArgs: [{name: leader-elect, value: "true"}]}\n',
        ),
        (
            V4 + "scheduler: {}\n",
            V4 + 'scheduler: {extraArgs: [{name: leader-elect, value: "true"}]}\n',
        ),
        (V4, V4 + 'scheduler:\n  extraArgs:\n  - name: leader-elect\n    value: "true"\n'),
    ],
)
def test_extra_arg(before, after):
    assert (
        check_edit(
            editing_scalar.set_extra_arg(before, "scheduler", "leader-elect", "true"), before
        )
        == after
    )
    assert not editing_scalar.set_extra_arg(after, "scheduler", "leader-elect", "true").changed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: ClusterConfiguration\n", "apiVersion is missing"),
        ("kind: InitConfiguration\n", "its kind is InitConfiguration"),
        ("apiVersion: kubeadm.k8s.io/v9x\nkind: ClusterConfiguration\n", "v9x"),
        (V4 + "scheduler:\n  extraArgs:\n  - leader-elect\n", "no mapping of name and value"),
        (V3 + "scheduler: [1]\n", "scheduler is no mapping"),
        (
            V4 + "scheduler:\n  extraArgs:\n  - &a {name: v, value: '1'}\n  - *a\n",
            "an anchor or alias",
        ),
    ],
)
def test_extra_arg_refused(text, why):
    with pytest.raises(EditRefused, match=why):
        editing_scalar.set_extra_arg(text, "scheduler", "leader-elect", "true")
