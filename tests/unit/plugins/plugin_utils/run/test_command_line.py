# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's own inventory and limit in a command."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    command_line,
)

DEFAULT = ["/etc/ansible/hosts"]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({"inventory": ("/work/hosts.yml",), "subset": None}, " -i hosts.yml"),
        ({"inventory": ("/elsewhere/a b.ini", "m1,m2,")}, " -i '/elsewhere/a b.ini' -i m1,m2,"),
        ({"inventory": ("/work/x",), "subset": "w1:!w2; rm"}, " -i x --limit 'w1:!w2; rm'"),
        ({"inventory": DEFAULT, "subset": "w1"}, " --limit w1"),
        ({"inventory": "/work/x"}, " -i x"),
        ({"inventory": "/work/it's $HOME.yml"}, """ -i 'it'"'"'s $HOME.yml'"""),
        ({"inventory": "/work/-x.yml"}, " -i ./-x.yml"),
        ({"inventory": "/work/x", "subset": "web:&eu"}, " -i x --limit 'web:&eu'"),
        ({"inventory": "/work/x", "subset": "!x"}, " -i x --limit '!x'"),
        ({"inventory": "/work/x", "subset": "-x*"}, " -i x '--limit=-x*'"),
        ({}, ""),
    ],
)
def test_the_options_are_those_of_the_run_quoted_for_a_shell(arguments, options):
    assert command_line.rendered(arguments, DEFAULT, "/work") == options


def test_a_run_is_taken_back_for_its_own_inventory(monkeypatch):
    monkeypatch.setattr(
        command_line.context, "CLIARGS", {"inventory": ["/x y/hosts"], "subset": "!w1"}
    )
    assert command_line.revert("R1") == (
        "ansible-playbook -i '/x y/hosts' --limit '!w1' kubemend.remediation.revert"
        " -e kubemend_run_id=R1"
    )


@pytest.fixture(name="command")
def _command(monkeypatch):
    monkeypatch.setenv("KUBEMEND_COMMAND", "kubemend")
    monkeypatch.setattr(command_line.context, "CLIARGS", {"inventory": ["/h.yml"], "subset": "w1"})


@pytest.mark.usefixtures("command")
def test_where_the_command_is_in_use_it_is_named():
    assert command_line.revert("R1") == "kubemend revert -i /h.yml --limit w1 -e kubemend_run_id=R1"
    assert command_line.command("remediate", " -i x", "-e y=2") == "kubemend remediate -i x -e y=2"
    assert command_line.explain() == "kubemend explain"


@pytest.mark.usefixtures("command")
def test_hosts_of_a_kubeconfig_are_named_by_it(monkeypatch):
    monkeypatch.setenv("KUBEMEND_COMMAND_HOSTS", "--kubeconfig 'a b'")
    assert command_line.options() == " --kubeconfig 'a b' --limit w1"


def test_without_the_command_no_line_names_it():
    assert command_line.explain() == ""
    assert command_line.command("remediate", " -i x", "-e y=2") == (
        "ansible-playbook -i x kubemend.remediation.remediate -e y=2"
    )


@pytest.mark.parametrize(
    ("program", "line", "parts"),
    [
        ("", "undo: ansible-playbook x", ("undo: ", "ansible-playbook x")),
        ("", "kubemend revert x", ("kubemend revert x", "")),
        (
            "kubemend",
            "kubemend: undo: kubemend revert x",
            ("kubemend: undo: ", "kubemend revert x"),
        ),
    ],
)
def test_a_command_at_the_end_of_a_line_is_parted_from_it(monkeypatch, program, line, parts):
    monkeypatch.setenv("KUBEMEND_COMMAND", program)
    assert command_line.parted(line) == parts
