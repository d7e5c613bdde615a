# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An audit in which one task reads all hosts: the same report, and when a task per host does it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import settings
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import hosts

FLEET = ("-e", "kubemend_transport=ssh")
AUTO = ("-e", "kubemend_transport=auto")
TASKS = Path(settings.__file__).parents[3] / "playbooks" / "tasks"
WHOLE_RUN = ("verdicts", "not_judged", "findings", "summary", "hosts", "exit_code", "exit_reason")


def comparable(report):
    """Return the parts of a report that do not name the moment of the run."""
    return {name: report[name] for name in WHOLE_RUN}


@pytest.mark.parametrize("way", [FLEET, AUTO], ids=["ssh", "auto"])
def test_the_report_and_the_exit_code_are_those_of_a_task_per_host(operator, way):
    # Ansible cannot begin with the last one.
    inventory = (
        (operator.folder / "inventory.ini")
        .read_text()
        .replace("[kube_node]", "[kube_node]\nw9 ansible_connection=no.such.plugin")
    )
    operator.write("inventory.ini", inventory)
    by_task = operator.run("audit", "-e", "kubemend_fail_on=unknown")
    expected = comparable(by_task.report())
    by_fleet = operator.run("audit", *way, "-e", "kubemend_fail_on=unknown")
    assert by_fleet.rc == by_task.rc, by_fleet.output
    assert comparable(by_fleet.report()) == expected
    assert len(expected["hosts"]) == 4
    assert "kubemend: w9: error: " in by_fleet.output
    for host in ("m1", "m2", "w1"):
        assert f"kubemend: {host}: unreachable: " in by_fleet.output
        assert f"ok: [{host}]" in by_task.stdout
    assert "kubemend: m1:" not in by_task.output


def test_a_password_for_all_hosts_is_left_to_a_task_per_host(operator):
    password = operator.write("password", "x\n")
    done = operator.run("audit", *FLEET, "--become-password-file", str(password))
    assert done.rc == 0, done.output
    assert "--become-password-file gives one password" in " ".join(done.output.split())
    assert "kubemend: m1:" not in done.output
    assert len(done.report()["hosts"]) == 3


@pytest.mark.parametrize("word", ["ssh", "auto"])
def test_in_the_inventory_it_has_no_effect_and_the_report_says_so(operator, word):
    operator.write("group_vars/all.yml", f"kubemend_transport: {word}\n")
    done = operator.run("audit")
    assert done.rc == 0, done.output
    assert "kubemend: m1:" not in done.output
    assert any(f"kubemend_transport={word}" in notice for notice in done.report()["notices"])


def test_a_wrong_word_is_one_sentence(operator):
    done = operator.run("audit", "-e", "kubemend_transport=flock")
    assert done.rc == 2
    assert "kubemend_transport is 'flock'" in " ".join(done.output.split())


def test_what_differs_between_hosts_is_what_the_task_per_host_has():
    (block,) = yaml.safe_load((TASKS / "task.yml").read_text(encoding="utf-8"))
    task = block["block"][0]
    options = task["kubemend.remediation.node_evidence_info"]
    assert {name: options[name] for name in hosts.OWN_OPTIONS} == hosts.OWN_OPTIONS
    assert task["become"] == hosts.BECOME


@pytest.mark.parametrize("name", ["api", "lock", "repair"])
def test_what_reads_the_results_of_hosts_reads_those_of_one_task_too(name):
    text = (TASKS / f"{name}.yml").read_text(encoding="utf-8")
    per_host = len(re.findall(r"selectattr\('_kubemend_asked\.(?:failed|role)'\)|'equalto'", text))
    assert text.count("_kubemend_fleet | default({})") == per_host
