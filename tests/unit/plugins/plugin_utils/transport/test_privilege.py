# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Become only where it is needed: the command that asks the node first, and who gets it."""

from __future__ import annotations

import os
import shlex
import subprocess
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import privilege


class Become:
    """Stand for a become plugin that marks the commands that it wraps."""

    def __init__(self, name="ansible.builtin.sudo", **options):
        self.name = name
        self.options = {"become_user": "root", "become_exe": None, **options}

    def get_option(self, name):
        return self.options[name]

    def _build_success_command(self, command, shell, noexe=False):
        return shlex.quote(f"echo MARK; {command}")

    def build_become_command(self, command, shell):
        if not command:
            return command
        return f"echo BECOME; {command}"


def built(become, command="echo work"):
    with privilege.only_where_needed(SimpleNamespace(become=become)):
        return become.build_become_command(command, SimpleNamespace(executable="/bin/sh"))


@pytest.mark.parametrize(
    "become",
    [
        Become(),
        Become("sudo"),
        Become("community.general.doas", become_user=None),
        Become(become_user=""),
        Become(become_exe="/usr/local/bin/sudo -n"),
    ],
)
def test_a_node_that_is_root_already_runs_the_plain_command(become, tmp_path):
    command = built(become)
    for number, lines in (("0", ["MARK", "work"]), ("1000", ["BECOME", "work"])):
        fake = tmp_path / "id"
        fake.write_text(f"#!/bin/sh\necho {number}\n", encoding="utf-8")
        fake.chmod(0o755)
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == lines


@pytest.mark.parametrize(
    "become",
    [
        Become(become_user="alice"),
        Become("community.general.machinectl"),
        Become(become_exe="/opt/bin/enter-namespace"),
    ],
)
def test_a_method_that_does_more_than_become_root_stays(become):
    assert built(become) == "echo BECOME; echo work"


def test_the_plugin_is_as_before_afterwards_even_after_a_failure():
    become = Become()
    with (
        pytest.raises(KeyError),
        privilege.only_where_needed(SimpleNamespace(become=become)),
    ):
        raise KeyError("node")
    assert become.build_become_command("x", None) == "echo BECOME; x"


def test_a_command_that_become_leaves_alone_is_not_wrapped():
    assert built(Become(), "") == ""
    with privilege.only_where_needed(SimpleNamespace(become=None)):
        pass


def test_an_operator_who_becomes_root_as_root_keeps_become(monkeypatch):
    monkeypatch.setattr(privilege.constants.config, "get_config_value", lambda _name: True)
    assert built(Become()) == "echo BECOME; echo work"
