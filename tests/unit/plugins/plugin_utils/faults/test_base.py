# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of checks: decorators, results, and that every module with a check is imported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import CATALOGUE, base
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Missing

DIRECTORY = Path(__file__).resolve().parents[5] / "plugins" / "plugin_utils" / "faults"
REGISTERED = re.compile(r'_check\(\n?\s*"(KM\d{3})"')


def test_every_check_of_the_source_is_in_the_catalogue():
    codes = [
        code
        for path in DIRECTORY.rglob("*.py")
        for code in REGISTERED.findall(path.read_text(encoding="utf-8"))
    ]
    assert sorted(codes) == list(CATALOGUE)


def test_a_decorator_registers_the_check_and_returns_it(monkeypatch):
    monkeypatch.setattr(base, "REGISTRY", [])

    @base.node_check("KM002", "Second", severity="info", applies="nodes", needs=("system",))
    def second(_host, _document):
        yield base.CLEAR

    @base.cluster_check("KM001", "First", severity="warning", applies="clusters", risk=2)
    def first(_cluster):
        yield base.CLEAR

    first_fault, second_fault = base.catalogue().values()
    assert (first_fault.code, first_fault.scope, first_fault.cluster) == ("KM001", "cluster", first)
    assert (second_fault.scope, second_fault.node, second_fault.risk) == ("node", second, 0)


def test_a_code_is_used_once(monkeypatch):
    monkeypatch.setattr(base, "REGISTRY", [])
    for title in ("one", "two"):
        base.cluster_check("KM001", title, severity="info", applies="clusters")(lambda _cluster: [])
    with pytest.raises(ValueError, match="KM001 is used twice"):
        base.catalogue()


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (base.CLEAR, "clear"),
        (base.present(base.Detection("summary", (), "fix")), "present"),
        (base.unknown(Missing("w1", "system", "error")), "unknown"),
        (base.not_applicable("no kubelet"), "not_applicable"),
        (base.present(base.Detection("summary", (), "fix"), applies=False), "present"),
    ],
)
def test_a_result_has_a_verdict(result, verdict):
    assert result.verdict == verdict


def test_causes_are_those_of_a_component():
    assert base.causes("KM101") == {("KM101", None)}
    assert base.causes("KM107", component="etcd") == {("KM107", "etcd")}
