# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is taken from Ansible and is no part of its interface.

A release that changes it fails here.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible.executor.task_executor import TaskExecutor
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.action import ActionBase
from ansible.plugins.connection.ssh import Connection
from ansible.template import Templar
from ansible.utils.display import Display
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import hosts


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (TaskExecutor._get_connection, ("cvars", "templar", "current_connection")),
        (TaskExecutor._set_connection_options, ("variables", "templar")),
        (TaskExecutor._set_become_plugin, ("cvars", "templar", "connection")),
        (VariableManager.get_vars, ("play", "host", "task", "_hosts", "_hosts_all")),
        (PlayContext.__init__, ("play", "passwords", "connection_lockfd")),
        (PlayContext.set_task_and_variable_override, ("task", "variables", "templar")),
        (PlayContext.update_vars, ("variables",)),
        (Task.load, ("data", "block", "role", "variable_manager", "loader")),
        (Task.copy, ()),
        (Task.post_validate, ("templar",)),
        (Templar.__init__, ("loader", "variables")),
        (Connection._build_command, ("binary", "subsystem", "other_args")),
        (ActionBase._low_level_execute_command, ("cmd", "in_data", "sudoable", "executable")),
        (ActionBase._compute_environment_string, ()),
        (Display.set_queue, ("queue",)),
    ],
)
def test_a_private_name_takes_what_it_took(function: Any, names: tuple[str, ...]) -> None:
    parameters = inspect.signature(function).parameters
    assert set(names) <= set(parameters)


def test_private_attributes_are_there() -> None:
    source = inspect.getsource(HostVars)
    assert "_variable_manager" in source
    assert "_inventory" in source
    assert isinstance(VariableManager.extra_vars, property)
    templar = Templar(loader=None, variables={})
    assert hasattr(getattr(templar, "_engine", templar), "available_variables")
    assert "_final_q" in inspect.getsource(Display)


def test_an_ansible_that_lacks_one_leaves_all_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = object.__new__(hosts.Fleet)

    def prepare(name: str) -> None:
        raise AttributeError("_get_connection")

    monkeypatch.setattr(fleet, "prepare", prepare)
    with pytest.raises(hosts.Unable, match="_get_connection"):
        fleet.probe(["m1", "m2"])


def test_a_host_with_which_ansible_cannot_begin_does_not_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet, tried = object.__new__(hosts.Fleet), []

    def prepare(name: str) -> None:
        tried.append(name)
        if name == "m1":
            raise hosts.BrokenHost("undefined")

    monkeypatch.setattr(fleet, "prepare", prepare)
    fleet.probe(["m1", "m2", "m3"])
    assert tried == ["m1", "m2"]


def test_the_message_of_a_chain_has_each_cause_once() -> None:
    try:
        try:
            raise ValueError("the cause")
        except ValueError as error:
            raise AnsibleError("the error") from error
    except AnsibleError as error:
        text = hosts.message_of(error)
    assert text.count("the cause") == 1
    assert text.index("the error") < text.index("the cause")
