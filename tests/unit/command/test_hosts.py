# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories, names and kubeconfigs as arguments of ansible-playbook."""

from __future__ import annotations

import argparse
import json
import stat
from pathlib import Path

import pytest
from kubemend import hosts, kubeconfig, nodes
from kubemend.wrong_input import WrongInput


def options(**more):
    values = {"inventory": [], "kubeconfig": None, "context": None, "limit": None}
    return argparse.Namespace(**{**values, **more})


def arguments(names=(), **more):
    with hosts.of(options(**more), names) as members:
        return members.arguments


@pytest.fixture(name="inventory")
def _inventory(tmp_path):
    path = tmp_path / "hosts.yml"
    path.write_text("", encoding="utf-8")
    return str(path)


def test_inventories_are_passed_on(inventory):
    assert arguments(inventory=[inventory, "m1,"]) == ["-i", inventory, "-i", "m1,"]
    assert arguments(inventory=[inventory], limit="w1") == ["-i", inventory, "--limit", "w1"]


def test_names_alone_are_an_inventory():
    assert arguments(["m1", "m2,fd00::1", "m1"]) == ["-i", "m1,m2,fd00::1,"]
    assert arguments(["m1"], limit="m1") == ["-i", "m1,", "--limit", "m1"]


def test_names_beside_an_inventory_are_a_part_of_it(inventory):
    assert arguments(["m1", "m2"], inventory=[inventory]) == ["-i", inventory, "--limit", "m1,m2"]


@pytest.mark.parametrize(
    ("names", "more", "sentence"),
    [
        ([], {"inventory": ["nowhere.yml"]}, "no inventory nowhere.yml"),
        ([], {"inventory": ["x,"], "kubeconfig": "y"}, "exclude each other"),
        (["m1"], {"inventory": ["x,"], "limit": "m1"}, "exclude each other"),
        ([], {"context": "x"}, "--context names a context"),
        (["a b"], {}, "a b is no name of a host"),
        (["{{x}}"], {}, "is no name of a host"),
        ([__file__], {}, "is a file; an inventory is given as -i"),
    ],
)
def test_wrong_input_is_one_sentence(names, more, sentence):
    with pytest.raises(WrongInput, match=sentence):
        arguments(names, **more)


def test_without_any_host_the_settings_of_ansible_count(monkeypatch, inventory):
    from ansible import constants

    monkeypatch.setattr(constants, "DEFAULT_HOST_LIST", [inventory])
    assert arguments() == []
    monkeypatch.setattr(constants, "DEFAULT_HOST_LIST", ["/nonexistent/hosts"])
    with pytest.raises(WrongInput, match="no host is named"):
        arguments()


def test_a_kubeconfig_becomes_an_inventory_for_the_time_of_the_run(monkeypatch):
    members = [nodes.Node("m1", "10.0.0.1", True), nodes.Node("w1", "fd00::2", False)]
    monkeypatch.setattr(kubeconfig, "read", lambda path, context: (path, context))
    monkeypatch.setattr(nodes, "read", lambda access: members if access == ("k c", "x") else [])
    with hosts.of(options(kubeconfig="k c", context="x"), ["w1"]) as found:
        path = Path(found.arguments[1])
        assert found.arguments == ["-i", str(path), "--limit", "w1"]
        assert found.words == ["--kubeconfig", "k c", "--context", "x"]
        assert json.loads(path.read_text(encoding="utf-8"))["all"]["children"] == {
            "kube_control_plane": {"hosts": {"m1": {"ansible_host": "10.0.0.1"}}},
            "kube_node": {"hosts": {"w1": {"ansible_host": "fd00::2"}}},
        }
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()
    wrong = pytest.raises(WrongInput, match="no Node w2; the nearest one is w1")
    with wrong, hosts.of(options(kubeconfig="k c", context="x"), ["w2"]):
        pass
