# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host without evidence: KM901, and what to do by what Ansible and ssh say."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import sources
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.document import (
    NEVER_BEGAN,
    write,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import CATALOGUE
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.engine import evaluate
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import connection
from tests.unit.support.verdicts import present, verdicts

SSH = 'Data could not be sent to remote host "192.0.2.1". Make sure this host can be reached: '
ENDED = "Premature end of stream waiting for become success. >>> Standard Error "
OLD_PYTHON = "w1 has no Python 3.6 or newer (only 2.7)"


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        (f"{SSH}ssh: Could not resolve hostname m1.invalid: Name or service not known", "DNS"),
        (f"{SSH}ssh: connect to host 192.0.2.1 port 22: Connection refused", "ansible_port"),
        (f"{SSH}ssh: connect to host 192.0.2.1 port 22: Connection timed out", "ssh port"),
        (f"{SSH}ssh: connect to host 192.0.2.1 port 22: No route to host", "ssh port"),
        (f"{SSH}ops@192.0.2.1: Permission denied (publickey,password).", "ansible_user"),
        (f"{SSH}Host key verification failed.", "known_hosts"),
        (f"{ENDED}sudo: a password is required", "-K"),
        (f"{ENDED}ops is not in the sudoers file.  This incident will be reported.", "-K"),
        ("Missing sudo password", "-K"),
        ("Timeout (12s) waiting for privilege escalation prompt: ", "-K"),
        ("exit status 1; standard error: su: Permission denied", "-K"),
        ("bash: sudo: command not found", "-K"),
        ("sudo: unable to resolve host w1; connect to host w1: No route to host", "ssh port"),
        ("/bin/sh: 1: /usr/bin/python3: not found", "ansible_python_interpreter"),
        (OLD_PYTHON, "ansible_python_interpreter"),
        ("no answer within 45 seconds", "kubemend_timeout"),
        (f"{NEVER_BEGAN}: the connection plugin 'nosuch' was not found", "the inventory: "),
    ],
)
def test_the_advice_is_about_the_reason(reason, word):
    assert [text for _pattern, text in connection.ADVICE if word in text] == [
        connection.advice(reason)
    ]


def test_a_reason_of_no_known_kind_has_an_advice_too():
    assert connection.advice("the answer is too large") == connection.OTHERWISE


@pytest.mark.parametrize("status", ["unreachable", "error"])
def test_a_host_without_evidence(world, status):
    world.silence("m2", status)
    result = world.judge()
    assert present(result) == {("KM901", "m2", None)}
    assert verdicts(result, "KM901")["m1"] == "clear"
    assert connection.advice(result.findings[0].evidence[0].text) in result.findings[0].remedy


@pytest.mark.parametrize("size", [0, 1, 2000])
def test_a_cut_file_is_named_and_the_host_is_not_called_silent(world, tmp_path, size):
    for host in world.documents.values():
        write(host, tmp_path)
    file = tmp_path / "w1.json"
    file.write_bytes(file.read_bytes()[:size])
    result = evaluate(sources.stream([tmp_path]))
    (found,) = (item for item in result.findings if item.code == "KM901")
    assert found.host == "w1"
    assert "w1.json: no JSON, or cut" in found.summary
    assert "the host " not in found.summary
    assert found.remedy.startswith("copy the file again")
    assert "answer" not in CATALOGUE["KM901"].title
