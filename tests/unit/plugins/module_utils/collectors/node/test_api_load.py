# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of an API server, by its metrics and by whose requests wait."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import api_load

LOW = 'priority_level="workload-low"'
FIRST = f"""apiserver_flowcontrol_current_executing_requests{{flow_schema="a",{LOW}}} 5
apiserver_flowcontrol_current_inqueue_requests{{flow_schema="a",{LOW}}} 40
apiserver_flowcontrol_nominal_limit_seats{{{LOW}}} 6
apiserver_flowcontrol_rejected_requests_total{{flow_schema="a",{LOW},reason="queue-full"}} 100
apiserver_request_terminations_total{{code="429",verb="LIST"}} 7
"""
SECOND = FIRST.replace(" 100\n", " 112\n").replace(" 7\n", " 9\n")
# kube-apiserver 1.36, as it writes it
DUMP = """\
PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime, \
InitialSeats, FinalSeats, AdditionalLatency, StartTime, UserName, Verb, APIPath, Namespace, Name, \
APIVersion, Resource, SubResource
workload-low, service-accounts, 14, 0, system:serviceaccount:kube:agent, \
2026-11-27T04:00:00.1Z, 1, 0, 0s, , system:serviceaccount:kube:agent, list, /api/v1/pods, , , v1, \
pods,
workload-low, service-accounts, 14, 1, system:serviceaccount:kube:agent, \
2026-11-27T04:00:00.2Z, 1, 0, 0s, , system:serviceaccount:kube:agent, list, /api/v1/pods, , , v1, \
pods,
global-default, global-default, 3, 0, admin, 2026-11-27T04:00:00.3Z, 1, 0, 0s, , admin, get, \
/version, , , , ,
"""


def samples(text):
    return api_load.samples(text.encode())


def test_a_level_between_two_readings():
    (row,) = api_load.levels(samples(FIRST), samples(SECOND))
    assert row == {
        "name": "workload-low",
        "running": 5,
        "waiting": 40,
        "limit": 6,
        "rejected": 12,
        "reasons": ["queue-full"],
    }
    grown = api_load.total(samples(SECOND), api_load.TERMINATED)
    assert grown - api_load.total(samples(FIRST), api_load.TERMINATED) == 2


def test_a_server_without_priority_and_fairness():
    text = 'apiserver_current_inflight_requests{request_kind="readOnly"} 400\n'
    dropped = 'apiserver_dropped_requests_total{request_kind="readOnly"} '
    (row,) = api_load.levels(samples(text), samples(text))
    assert (row["name"], row["running"]) == ("readOnly", 400)
    (row,) = api_load.levels(samples(text + dropped + "1\n"), samples(text + dropped + "4\n"))
    assert (row["name"], row["rejected"]) == ("readOnly", 3)


def test_a_quiet_server():
    quiet = f"apiserver_flowcontrol_current_inqueue_requests{{{LOW}}} 0\n"
    assert api_load.levels(samples(quiet), samples(quiet)) == []


@pytest.mark.parametrize("text", ["", "x{", 'x{a="b"}', 'x{a="b"} NaNa\n', "plain 1\n"])
def test_lines_that_are_none(text):
    assert samples(text) == []


def test_whose_requests_wait():
    first, second = api_load.clients_of(DUMP)
    assert first == {
        "user": "system:serviceaccount:kube:agent",
        "level": "workload-low",
        "verb": "list",
        "resource": "pods",
        "requests": 2,
    }
    assert (second["user"], second["verb"], second["resource"]) == ("admin", "get", "")


@pytest.mark.parametrize("text", ["", "no, header\na, b\n", DUMP.splitlines()[0]])
def test_a_dump_without_requests(text):
    assert api_load.clients_of(text) == []


def test_long_lists_are_bounded():
    head = DUMP.splitlines()[0] + "\n"
    lines = [f"low, s, 1, 1, u{n}, t, 1, 0, 0s, , u{n}, list, /p, , , v1, pods," for n in range(50)]
    assert len(api_load.clients_of(head + "\n".join(lines))) == api_load.MAX_CLIENTS


@pytest.mark.parametrize("servers", [[], [{"pid": 1, "address": "127.0.0.1", "port": 1}]])
def test_nothing_to_ask_where_no_server_is_slow(servers):
    answer = {"servers": servers, "used_up": []}
    with pytest.raises(base.Absent):
        api_load.collect(base.Context({}, [], {"api_server": answer}))


def test_without_a_credential(monkeypatch):
    from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
        client_certificates,
    )

    monkeypatch.setattr(client_certificates, "of_components", lambda *_more: iter(()))
    answer = {"pid": 1, "address": "127.0.0.1", "port": 1}
    with pytest.raises(base.Failed) as failed:
        api_load.collect(
            base.Context({}, [], {"api_server": {"servers": [answer], "used_up": ["requests"]}})
        )
    assert "certificate" in str(failed.value)
