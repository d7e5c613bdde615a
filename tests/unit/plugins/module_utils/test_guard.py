# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server goes away only while another one is well."""

import pytest
from ansible_collections.kubemend.remediation.plugins.module_utils import guard, prove

MINE = [{"component": "kube-apiserver", "host_network": True, "argv": ["kube-apiserver", "--advertise-address=10.0.0.2"]}]
SERVERS = {"api_servers": ["10.0.0.2:6443", "10.0.0.1:6443", "10.0.0.3:6443", "nonsense"]}


def healthz(monkeypatch, answers):
    asked = []

    def told(address, port, credentials, seconds):
        asked.append((address, port, credentials, seconds > 0))
        status = answers.get(address)
        return {"status": status, "body": "", "error": None if status else "timed out"}

    monkeypatch.setattr(prove, "healthz", told)
    return asked


def test_another_one_that_is_well_is_enough(monkeypatch):
    asked = healthz(monkeypatch, {"10.0.0.2": 200, "10.0.0.1": 500, "10.0.0.3": 200})
    guard.another(SERVERS, MINE, ["pair"], "m2")
    assert asked == [("10.0.0.1", 6443, ["pair"], True), ("10.0.0.3", 6443, ["pair"], True)]


@pytest.mark.parametrize("servers, answers, word", [
    (SERVERS, {"10.0.0.2": 200, "10.0.0.1": 500}, "10.0.0.1:6443: HTTP 500; 10.0.0.3:6443: timed out"),
    ({"api_servers": ["10.0.0.2:6443"]}, {"10.0.0.2": 200}, "none is known"), ({}, {}, "none is known"), (None, {}, "none is known"),
])
def test_its_own_answer_does_not_count(monkeypatch, servers, answers, word):
    healthz(monkeypatch, answers)
    with pytest.raises(guard.Refused) as refused:
        guard.another(servers, MINE, [], "m2")
    assert word in str(refused.value) and "no API server but the one of m2 is well" in str(refused.value)


@pytest.mark.parametrize("first, second, wanted", [(200, None, 200), (401, 200, 200), (403, 403, 403), (None, 200, None), (500, 200, 500)])
def test_who_may_ask_a_server_that_lets_nobody_ask(monkeypatch, first, second, wanted):
    given = iter([first, second])
    monkeypatch.setattr(prove.web, "get", lambda *dummy: {"status": next(given), "body": "", "error": None})
    monkeypatch.setattr(prove.tls, "context", lambda *pair: pair)
    assert prove.healthz("10.0.0.1", 6443, [("path", "certificate", "key")])["status"] == wanted
