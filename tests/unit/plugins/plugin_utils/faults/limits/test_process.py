# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of processes and logins, KM404, KM406 and KM408 to KM410.

Then all of KM401 to KM410, on nodes that are well, silent or strange.
"""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.support.facts import facts
from tests.unit.support.fake_limits import (
    CODES,
    LIMITS_D,
    POD,
    Alone,
    Node,
    full_of_faults,
    process,
    record,
    unit,
    well,
)


@pytest.fixture
def node(world):
    return Node(world)


# KM404


@pytest.mark.parametrize(
    ("opened", "nofile", "verdict"),
    [
        (94, (100, 4096), "clear"),
        (95, (100, 4096), "present"),
        (200, (100, 4096), "present"),
        (5000000, (-1, -1), "clear"),
        (0, (0, 0), "clear"),
        (-1, (-1, -1), "clear"),
        (None, (100, 100), "unknown"),
        (99, None, "unknown"),
        ("99", (100, 100), "unknown"),
        (99, ("100", "100"), "unknown"),
        (10**400, (10**400, -1), "unknown"),
    ],
)
def test_a_process_at_its_soft_limit(node, opened, nofile, verdict):
    node.seen["processes"][0] = {**process(), "open": opened, "nofile": nofile and list(nofile)}
    assert node.verdict("KM404") == verdict


@pytest.mark.parametrize(
    ("nofile", "sets", "is_named"),
    [
        ([1024, 524288], [], True),
        ([1048576, 1048576], [], False),
        ([1024, 524288], [{"path": "/x", "line": 1, "text": "LimitNOFILE=1024"}], False),
        (None, [], False),
    ],
)
def test_a_container_with_the_default_of_its_runtime_s_unit(node, nofile, sets, is_named):
    node.walk["nofile"] = [
        {
            "pid": 50,
            "comm": "envoy",
            "uid": 0,
            "unit": None,
            "pod_uid": POD,
            "container_id": "c" * 64,
            "open": 1024,
            "soft": 1024,
            "hard": -1,
        }
    ]
    unit = next(one for one in node.seen["units"] if one["name"] == "containerd.service")
    unit.update(limit_nofile=nofile, sets=sets)
    found = node.finding("KM404")
    assert ("containerd.service, whose unit sets none" in found.summary) is is_named
    assert ("LimitNOFILE=1048576" in found.remedy) is is_named


def test_kubelet_and_runtime_are_critical_and_others_are_not(node):
    other = {
        "pid": 50,
        "comm": "java",
        "uid": 0,
        "unit": None,
        "pod_uid": POD,
        "container_id": "c" * 64,
        "open": 1024,
        "soft": 1024,
        "hard": -1,
    }
    node.walk["nofile"] = [other, {**other, "pid": 51, "open": 1}]
    found = node.finding("KM404")
    assert found.severity == "warning"
    facts(
        found.summary,
        "java",
        f"pod {POD}",
        "container cccccccccccc",
        "1024 of 1024 files",
        "that limit from containerd.service",
    )
    assert "soft limit 1024, hard limit unlimited" in node.said("KM404")
    assert "ls -l /proc/50/fd" in found.remedy
    assert "the limit that its runtime gives the container" in found.remedy
    node.seen["processes"][1].update(open=1000, nofile=[1024, 4096])
    found = node.finding("KM404")
    assert found.severity == "critical"
    assert "a managed drop-in for containerd.service" in found.remedy
    assert "-e kubemend_nofile=NUMBER" in found.remedy
    assert "by hand: LimitNOFILE= by systemctl edit containerd.service" in found.remedy
    facts(found.summary, "containerd", "containerd.service", "1000 of 1024 files", "1 other")
    for unit_ in (None, "a; reboot.service", "session-1.scope"):
        node.seen["processes"][1]["unit"] = unit_
        assert node.finding("KM404").remedy.endswith(
            "the limit that it gets from the process that starts it"
        )
    node.seen["processes"][0].update(open=1000, nofile=[1024, 4096])
    assert "maxOpenFiles" in node.finding("KM404").remedy
    assert "2 other processes" in node.finding("KM404").summary


def test_a_process_that_both_collectors_saw_is_one(node):
    node.seen["processes"][0].update(open=99, nofile=[100, 100])
    node.walk["nofile"] = [
        {"pid": 1, "comm": "kubelet", "uid": 0, "open": 99, "soft": 100, "hard": 100}
    ]
    assert len(node.finding("KM404").evidence) == 1


def test_without_an_answer_of_systemd_nothing_of_units_is_clear(node):
    node.seen.update(units=None, processes=[])
    node.limits_d("* hard nofile 1048576\n")
    assert {node.verdict(code) for code in ("KM404", "KM408", "KM409", "KM410")} == {"unknown"}


# KM406


@pytest.mark.parametrize(
    ("text", "cap", "verdict"),
    [
        ("* hard nofile 1048576\n", True, "clear"),
        ("* hard nofile 1048577\n", True, "present"),
        ("* - nofile 1048577\n", True, "present"),
        ("* soft nofile 1048577\n", True, "clear"),  # is lowered to the hard one
        ("* hard nproc 99999999\n", True, "clear"),
        ("* hard nofile many\n", True, "clear"),
        ("* hard nofile 1048577\n* hard nofile 65536\n", True, "clear"),  # the last one counts
        ("root hard nofile 1048577\nroot -\n", True, "clear"),  # and the exempt have none
        ("* hard nofile 65537\n", False, "present"),
        ("* hard nofile 65536\n", False, "clear"),
        ("* hard nofile 65537\n", True, "clear"),
        ("* hard nofile unlimited\n", False, "present"),
        ("* hard nofile 65537\n", None, "unknown"),
    ],
)
def test_limits_that_lock_everybody_out(node, text, cap, verdict):
    node.limits_d(text)
    node.seen["init"] = {"nofile": [1024, 65536], "nproc": [1, 1], "cap_sys_resource": cap}
    assert node.verdict("KM406") == verdict


def test_no_limit_at_all_depends_on_the_version(node):
    node.limits_d("* hard nofile unlimited\n")
    found = node.finding("KM406")
    assert found.severity == "warning"
    assert found.summary.endswith(
        "is above 1048576 (fs.nr_open), where its pam_limits is older than 1.5.2"
    )


@pytest.mark.parametrize(
    ("distribution", "value", "severity"),
    [
        ("debian", "2000000", "warning"),
        ("ubuntu", "2000000", "warning"),
        ("debian", "unlimited", "info"),
        ("rhel", "2000000", "critical"),
        (None, "2000000", "critical"),
        (["debian"], "2000000", "critical"),
    ],
)
def test_where_pam_limits_passes_over_what_the_kernel_refuses(node, distribution, value, severity):
    node.document["collectors"]["system"]["data"]["os_release"] = {"id": distribution}
    found = node.limits_d(f"* hard nofile {value}\n").finding("KM406")
    assert found.severity == severity
    assert ("refuses logins" in found.summary) is (severity == "critical")
    assert ("the host ignores the limit" in found.summary) is (severity != "critical")
    assert "1048576" in found.remedy


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"pam": []}, "not_applicable"),
        (
            {
                "pam": [
                    {"path": "/etc/pam.d/x", "line": 1, "text": "session optional pam_limits.so"}
                ]
            },
            "not_applicable",
        ),
        ({"pam": None}, "unknown"),
        ({"init": None}, "unknown"),
        ({"init": {"nofile": [1, 1], "cap_sys_resource": None}}, "unknown"),
        ({"init": {"nofile": None, "cap_sys_resource": False}}, "unknown"),
        ({"kernel": {}}, "unknown"),
        ({"limits_files": None}, "unknown"),
        ({"limits_files": [record(LIMITS_D, None, error="denied")]}, "unknown"),
        (
            {
                "limits_files": [
                    record("/etc/security/limits.d", None, kind="directory", error="denied")
                ]
            },
            "unknown",
        ),
        ({"limits_files": [record(LIMITS_D, "* hard nofile 5\n", truncated=True)]}, "unknown"),
        ({"limits_files": [record(LIMITS_D, None, error="denied")], "pam": []}, "not_applicable"),
        ({"init": None, "pam": []}, "not_applicable"),
    ],
)
def test_what_nobody_can_tell_of_logins(node, change, verdict):
    node.seen.update(change)
    assert node.verdict("KM406") == verdict


def test_a_file_that_was_not_read_is_named_and_hides_no_other(node):
    node.seen["limits_files"].append(record("/etc/security/limits.d/10.conf", None, error="denied"))
    facts(node.note("KM406"), "/etc/security/limits.d/10.conf", "not be read")
    assert node.limits_d("* hard nofile 2000000\n").verdict("KM406") == "present"


# KM408


@pytest.mark.parametrize(
    ("text", "hard", "verdict"),
    [
        ("* hard nofile 65536\n", 4096, "present"),
        ("root - nofile 65536\n", 4096, "present"),
        ("* hard nofile unlimited\n", 4096, "present"),
        ("* hard nofile 4096\n", 4096, "clear"),
        ("* hard nofile 65536\n", -1, "clear"),
        ("* soft nofile 65536\n", 4096, "not_applicable"),
        ("bob hard nofile 65536\n", 4096, "not_applicable"),
        ("* hard nofile 65536\n* hard nofile 1024\n", 4096, "clear"),
        ("", 4096, "not_applicable"),
    ],
)
def test_limits_conf_is_for_logins(node, text, hard, verdict):
    node.limits_d(text)
    node.seen["processes"][1]["nofile"] = [1024, hard]
    assert node.verdict("KM408") == verdict


def test_a_kubelet_sets_its_own(node):
    node.limits_d("* hard nofile 1048576\n")
    node.seen["processes"][1]["nofile"] = [-1, -1]
    assert node.verdict("KM408") == "clear"
    node.seen["processes"][0]["nofile"] = [4096, 4096]
    found = node.finding("KM408")
    assert found.severity == "info"
    facts(found.summary, LIMITS_D, "1048576", "kubelet", "kubelet.service", "4096", "logins")
    assert node.said("KM408").splitlines() == [
        f"{LIMITS_D}:1 * hard nofile 1048576",
        "kubelet (kubelet.service): hard limit 4096",
    ]
    assert "maxOpenFiles" in found.remedy
    assert "drop-in with LimitNOFILE=" in found.remedy


def test_limits_conf_that_could_not_be_read(node):
    node.seen["limits_files"] = [record("/etc/security/limits.conf", None, error="denied")]
    assert node.verdict("KM408") == "unknown"


# KM409 and KM410


def test_a_unit_that_cannot_start(node):
    dropin = "/etc/systemd/system/kubelet.service.d/90-limits.conf"
    node.seen["units"][0].update(
        active_state="activating",
        result="exit-code",
        exec_main_status=205,
        sets=[
            {"path": dropin, "line": 2, "text": "LimitNOFILE=9999999"},
            {"path": dropin, "line": 3, "text": "Nice=1"},
        ],
    )
    found = node.finding("KM409")
    facts(found.summary, "kubelet.service", "cannot start", "205/LIMITS")
    assert found.severity == "critical"
    assert node.said("KM409").splitlines() == [
        "activating, exit-code, status=205/LIMITS",
        f"{dropin}:2 LimitNOFILE=9999999",
    ]
    facts(
        found.remedy,
        "LimitNOFILE=",
        "1048576 (fs.nr_open)",
        "systemctl daemon-reload",
        "systemctl restart kubelet.service",
    )
    node.seen["init"]["nofile"] = [1073741816, 1073741816]
    assert node.finding("KM409").remedy.endswith(
        "; or raise fs.nr_open again, which is 1048576: PID 1 may have 1073741816 files since the"
        " boot"
    )
    node.seen["units"][0]["sets"] = []
    assert (
        "in the file where systemctl cat kubelet.service shows it" in node.finding("KM409").remedy
    )
    node.seen["init"] = None
    assert "what PID 1 itself has (/proc/1/limits)" in node.finding("KM409").remedy
    node.seen["units"][1].update(active_state="failed", exec_main_status=205)
    assert node.finding("KM409").summary.startswith(
        "kubelet.service and containerd.service cannot start"
    )
    for one in node.seen["units"]:
        one["active_state"] = "active"
    assert node.verdict("KM409") == "clear"


def test_the_name_of_a_unit_is_one_word_of_the_command(node):
    node.seen["units"][0].update(
        name=r"a\x2db.service", active_state="failed", exec_main_status=205
    )
    assert r"systemctl restart 'a\x2db.service'" in node.finding("KM409").remedy


def test_a_runtime_without_a_limit(node):
    own = "/usr/lib/systemd/system/containerd.service"
    node.seen["units"][1].update(
        limit_nofile=[1024, -1], sets=[{"path": own, "line": 9, "text": "LimitNOFILE=infinity"}]
    )
    found = node.finding("KM410")
    facts(found.summary, "containerd.service", "LimitNOFILE=infinity", "containers")
    assert found.severity == "info"
    assert node.said("KM410") == f"{own}:9 LimitNOFILE=infinity"
    assert found.remedy.startswith("nothing has to be done")
    assert node.verdict("KM410", deep=False) == "not judged"
    node.seen["units"].append(unit("docker.service", limit_nofile=[-1, -1]))
    assert node.finding("KM410").summary.startswith("containerd.service and docker.service")
    assert [proof.object for proof in node.finding("KM410").evidence] == [None, "docker.service"]


@pytest.mark.parametrize(
    ("units", "verdict"),
    [
        ([], "not_applicable"),
        ([unit(limit_nofile=[-1, -1])], "not_applicable"),
        ([unit("crio.service", active_state="failed", limit_nofile=[-1, -1])], "not_applicable"),
        ([unit("crio.service", limit_nofile=None)], "unknown"),
        ([unit("crio.service", limit_nofile=[True, -1])], "unknown"),
        ({}, "unknown"),
    ],
)
def test_runtimes_that_are_none_and_those_nobody_knows_of(node, units, verdict):
    node.seen["units"] = units
    assert node.verdict("KM410") == verdict


# All of them: a node that is well, and who did not answer


def test_a_node_that_is_well(node):
    assert node.present() == []
    assert {code: node.verdict(code) for code in CODES} == {
        **dict.fromkeys(CODES, "clear"),
        "KM408": "not_applicable",
    }


@pytest.mark.parametrize("status", ["error", "denied", "timeout"])
def test_a_collector_that_failed_clears_nothing(node, status):
    node.put("limits", None, status)
    assert {code: node.verdict(code) for code in CODES} == dict.fromkeys(CODES, "unknown")
    assert all(
        {(lack.collector, lack.status) for lack in item.missing} == {("limits", status)}
        for item in node.result().verdicts
    )


@pytest.mark.parametrize("data", [None, [], "x", 7, {}])
def test_an_answer_that_is_none_clears_nothing(node, data):
    node.put("limits", data)
    assert {code: node.verdict(code) for code in CODES} == dict.fromkeys(CODES, "unknown")
    node.put("limits", well())
    node.put("descriptors", data)
    assert (node.verdict("KM401"), node.verdict("KM404"), node.verdict("KM402")) == (
        "unknown",
        "unknown",
        "clear",
    )


def test_a_host_that_did_not_answer_is_unknown(world):
    world.silence("w1")
    found = {
        item.code: (item.verdict, [lack.status for lack in item.missing])
        for item in world.judge(deep=True).verdicts
        if item.host == "w1" and item.code in CODES
    }
    assert found == dict.fromkeys(CODES, ("unknown", ["unreachable"]))


def test_a_host_that_was_left_out_is_not_judged(world):
    for name in world.documents:
        world.silence(name, "not_asked")
    result = world.judge(deep=True)
    assert not [item for item in result.verdicts if item.code in CODES]
    assert {item.reason for item in result.not_judged if item.code in CODES} == {"limit"}
    assert {item.code for item in result.not_judged} >= set(CODES)


def test_older_evidence_has_none_of_it(world):
    for document in world.documents.values():
        for name in ("limits", "descriptors"):
            del document["collectors"][name]
    result = world.judge(deep=True)
    assert not [item for item in result.verdicts if item.code in CODES]
    assert {(item.code, item.reason) for item in result.not_judged if item.code in CODES} == {
        (code, "tier") for code in CODES
    }


def test_a_plain_audit_judges_what_it_can(world):
    node = Node(world).without_walk()
    assert {
        code: node.verdict(code, deep=False) for code in ("KM401", "KM402", "KM404", "KM410")
    } == {"KM401": "not judged", "KM402": "clear", "KM404": "clear", "KM410": "not judged"}


# What nobody foresaw

WRONG = [
    None,
    True,
    -1,
    10**400,
    1.5,
    "x" * 5000,
    [],
    ["x", [None, {}]],
    {"name": 3},
    [{"pid": 1, "path": []}],
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=9,
)


def places(value, path=()):
    """Yield every place that holds something, as a path of keys."""
    found = [path]
    for key in (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    ):
        found += places(value[key], (*path, key))
    return found


def spoiled(whole, path, wrong):
    if not path:
        return wrong
    found = whole
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = copy.deepcopy(wrong)
    return whole


def is_judged(node):
    """Judge every wrong shape: an unforeseen one would cost the host all its verdicts."""
    result = node.result()
    (row,) = result.hosts
    assert row.status == "ok", row.reason
    assert {item.code for item in result.verdicts} | {
        item.code for item in result.not_judged
    } == set(CODES)
    assert all(
        isinstance(text, str) and len(text) < 2000
        for item in result.findings
        for text in (item.summary, item.remedy)
    )


def test_every_sentence_is_made(node):
    assert set(full_of_faults(node).present()) == set(CODES) - {"KM402"}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:20])
def test_one_wrong_value_costs_no_verdict(node, wrong):
    full_of_faults(node)
    seen, walk = node.seen, node.walk
    for path in places(seen):
        node.put("limits", spoiled(copy.deepcopy(seen), path, wrong))
        is_judged(node)
    node.put("limits", seen)
    for path in places(walk):
        node.put("descriptors", spoiled(copy.deepcopy(walk), path, wrong))
        is_judged(node)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_arbitrary_data_costs_no_verdict(data):
    node = full_of_faults(Node(Alone()))
    if data.draw(st.booleans()):
        node.put("limits", data.draw(JSON))
        node.put("descriptors", data.draw(JSON))
    for name, whole in (("limits", node.seen), ("descriptors", node.walk)):
        if node.document["collectors"][name]["data"] is whole:
            node.put(
                name, spoiled(whole, data.draw(st.sampled_from(places(whole))), data.draw(JSON))
            )
    is_judged(node)


def test_a_service_at_its_limit_is_told_with_the_line_that_gives_it(node):
    sets = [
        {
            "path": "/etc/systemd/system/app.service.d/limits.conf",
            "line": 2,
            "text": "LimitNOFILE=2048",
        },
        {"path": "/etc/systemd/system/app.service", "line": 9, "text": "LimitNPROC=7"},
    ]
    node.walk.update(
        nofile=[
            {
                "pid": 50,
                "comm": "app",
                "uid": 0,
                "unit": "app.service",
                "open": 2048,
                "soft": 2048,
                "hard": 2048,
            }
        ],
        units=[{"name": "app.service", "sets": sets}],
    )
    found = node.finding("KM404")
    assert [
        (proof.path, proof.line, proof.text) for proof in found.evidence if proof.kind == "file"
    ] == [("/etc/systemd/system/app.service.d/limits.conf", 2, "LimitNOFILE=2048")]


@pytest.mark.parametrize(
    ("more", "gives"),
    [
        ({"limit_nofile": [4096, 8192]}, "4096"),
        ({"limit_nofile": [2048, 2048], "ours": "655360:infinity"}, "655360"),
        ({"limit_nofile": [-1, -1]}, "any number"),
        ({"limit_nofile": [2048, 2048], "ours": None}, None),
        ({"limit_nofile": None, "ours": "x"}, None),
        ({}, None),
    ],
)
def test_a_service_that_has_more_from_its_next_start_is_told_who_restarts_it(node, more, gives):
    node.walk.update(
        nofile=[
            {
                "pid": 50,
                "comm": "app",
                "uid": 0,
                "unit": "app.service",
                "open": 2048,
                "soft": 2048,
                "hard": 2048,
            }
        ],
        units=[{"name": "app.service", "sets": [], **more}],
    )
    said = node.finding("KM404").remedy
    assert (f"its unit gives {gives} from its next start on" in said) == (gives is not None)
    assert ("managed drop-in" in said) == (gives is None)
    assert ("-e kubemend_allow=service_restart" in said) == (gives is not None)
    assert ("systemctl restart app.service" in said) == (gives is not None)


def test_a_login_at_its_limit_is_told_how_it_has_more(node):
    node.walk["nofile"] = [
        {
            "pid": 50,
            "comm": "bash",
            "uid": 1000,
            "unit": None,
            "session": "session-3.scope",
            "open": 1024,
            "soft": 1024,
            "hard": 2048,
        }
    ]
    assert (
        "ulimit -Sn, up to the hard limit; above that the plan writes a managed line in limits.d"
        in node.finding("KM404").remedy
    )
