# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The managers' state files against configuration, machine and containers: KM301 to KM310."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    dropin as kubelet_dropin,
)
from tests.unit.support.facts import facts
from tests.unit.support.managed_node import (
    MEMORY,
    NONE_STATE,
    OTHER,
    POD,
    STATIC_STATE,
    Node,
    container,
    record,
    state,
)


@pytest.fixture(autouse=True)
def a_healthy_worker(world):
    Node.healthy = world.documents["w1"]


@pytest.mark.parametrize(
    ("text", "config", "online"),
    [
        (None, "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n", "0-3"),
        (NONE_STATE, "kind: KubeletConfiguration\n", "0-3"),
        (STATIC_STATE, "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n", "0-1"),
        (state(), "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n", "0,2-3"),
        (
            state(default="0,2", entries={POD: {"app": "1,3"}}),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            "0-3",
        ),
    ],
)
def test_what_is_right_is_clear(text, config, online):
    node = Node(text, config, online)
    node.seen["pods"] = [POD, "e4f3f5dc-4d6f-44db-aa7e-cf3b2b92bb31"]
    assert node.present() == []
    assert set(node.verdicts().values()) <= {"clear", "not_applicable"}


@pytest.mark.parametrize(
    ("text", "config", "online", "code"),
    [
        (NONE_STATE, "cpuManagerPolicy: static\nsystemReserved: {cpu: '1'}\n", "0-3", "KM301"),
        (state(), "cpuManagerPolicy: none\n", "0-3", "KM301"),
        (state(), "{}\n", "0,2-3", "KM301"),
        (
            state(default="0-3", checksum=5),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            "0-3",
            "KM302",
        ),
        (
            state(default="0", checksum=5),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            "0-3",
            "KM302",
        ),
        (NONE_STATE.replace("1353318690", "1353318691"), "{}\n", "0-3", "KM302"),
        ("", "{}\n", "0-3", "KM303"),
        (STATIC_STATE[:60], "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n", "0-1", "KM303"),
        (
            state(default="0-"),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            "0-3",
            "KM303",
        ),
        (
            state(default="0,2-3", entries={POD: {"app": "1"}}),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0-1'\n",
            "0-3",
            "KM304",
        ),
        (
            state(default="1-3", entries={POD: {"app": "0"}}),
            "cpuManagerPolicy: static\nsystemReserved: {cpu: 200m}\n",
            "0-3",
            "KM304",
        ),
        # Two threads of core 0: the lowest core is 0 and 2 here.
        (
            state(default="0-1,3", entries={POD: {"app": "2"}}),
            "cpuManagerPolicy: static\nsystemReserved: {cpu: '1'}\nkubeReserved: {cpu: 1m}\n",
            "0-3",
            "KM304",
        ),
        (
            state(default="0-3"),
            (
                "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\ncpuManagerPolicyOptions:"
                " {strict-cpu-reservation: 'true'}\n"
            ),
            "0-3",
            "KM304",
        ),
        (
            state(default="0-3"),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            "0-7",
            "KM305",
        ),
        (
            state(default="0-3"),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            "0-2",
            "KM305",
        ),
        (
            state(default="0-3", entries={POD: {"app": "1"}}),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            "0-3",
            "KM306",
        ),
        (
            state(default="0", entries={POD: {"app": "1-2"}, OTHER: {"app": "2-3"}}),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            "0-3",
            "KM306",
        ),
        (
            state(default="0,2-3", entries={"0" * 36: {"app": "1"}}),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            "0-3",
            "KM307",
        ),
        (state(default="0-3"), "cpuManagerPolicy: static\n", "0-3", "KM309"),
        (None, "cpuManagerPolicy: static\nsystemReserved: {memory: 1Gi}\n", "0-3", "KM309"),
    ],
)
def test_each_fault_alone(text, config, online, code):
    assert Node(text, config, online).present() == [code]


@pytest.mark.parametrize(
    ("version", "entries", "logged", "present"),
    [
        ("v1.17.3", {POD: {"app": "1"}}, [], True),
        ("v1.18.4", {POD: {"app": "1"}}, [], False),
        (None, {POD: {"app": "1"}}, [], False),
        ("v1.18.4", {"a" * 64: "1"}, [], True),
        ("v1.18.4", {"a" * 64: "1"}, ["a" * 64], False),
        ("v1.18.4", {"b" * 64: "1"}, [], False),
        ("v1.36.3", {"a" * 64: "1"}, [], True),
        ("v1.36.3", {"a" * 64: "1"}, None, False),
        ("v1.36.3", {}, [], False),
    ],
)
def test_a_state_of_another_version(version, entries, logged, present):
    """Over an upgrade from 1.17, or back to it.

    What its kubelet does not take up is no place to look for sets.
    """
    node = Node(state(default="0,2-3" if entries else "0-3", entries=entries))
    node.seen.update(
        containers=[container(POD, "work", "1", container_id="b" * 64)],
        logged=logged,
        kubelet_version=version and f"Kubernetes {version}",
    )
    assert (node.verdicts()["KM303"] == "present") == present
    if present:
        (hit,) = node.findings()
        assert hit.code == "KM303"
        assert "cannot be read by its kubelet, its entries are of the format" in hit.summary


@pytest.mark.parametrize(
    ("running", "logged", "verdict"),
    [
        ([("work", "a" * 64)], [], "clear"),
        ([("work", "b" * 64)], ["a" * 64], "clear"),
        ([("work", "b" * 64)], [], "present"),
        ([(None, "b" * 64)], [], "unknown"),
        ([("work", "b" * 64)], None, "unknown"),
        (None, [], "unknown"),
    ],
)
def test_entries_by_container_are_judged_by_what_runs_and_by_the_kubelets_links(
    running, logged, verdict
):
    """The state of a kubelet up to 1.17.

    A container that has ended keeps its CPUs, as its log, until the kubelet removes it.
    """
    node = Node(state(default="0,2-3", entries={"a" * 64: "1"}))
    node.seen["kubelet_version"] = "Kubernetes v1.17.3"
    node.seen["containers"] = running and [
        container(POD, name, "1" if "a" in identity else "0,2-3", container_id=identity)
        for name, identity in running
    ]
    node.seen["logged"] = logged
    assert node.verdicts()["KM307"] == verdict
    if verdict == "present":
        (hit,) = node.findings()
        facts(hit.summary, "CPUs 1", "1 container")
        assert "an older one does not" in hit.remedy
        assert (
            f"container {'a' * 64} has 1: no process of it, and no link to its log"
            in hit.evidence[0].text
        )


@pytest.mark.parametrize(
    ("running", "present"),
    [([("app", "1")], []), ([("app", "1"), ("side", "1")], ["KM306"]), (None, [])],
)
def test_containers_of_one_pod_share_cpus_only_one_after_another(running, present):
    node = Node(
        state(default="0,2-3", entries={POD: {"prepare": "1", "app": "1", "side": "1"}}),
        "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
    )
    node.seen["containers"] = (
        None if running is None else [container(POD, name, cpus) for name, cpus in running]
    )
    assert node.present() == present


def test_strict_reservation_keeps_the_reserved_out_of_the_shared_set():
    config = (
        "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\ncpuManagerPolicyOptions:"
        " {strict-cpu-reservation: 'true'}\n"
    )
    assert Node(state(default="1-3"), config).present() == []


def test_a_kubelet_that_runs_still_and_one_that_does_not():
    node = Node(NONE_STATE)
    assert "runs, and will not start again" in node.findings()[0].summary
    node.kubelet["process"] = None
    assert "does not start" in node.findings()[0].summary
    assert [proof.line for proof in node.findings()[0].evidence] == [1, None]


def test_one_that_runs_on_loan_is_told_so():
    node = Node(NONE_STATE)
    node.kubelet["unit"] = {
        "environment_files": [
            {"path": kubelet_dropin.ENVIRONMENT, "text": "# adds: --cpu-manager-policy=none\n"}
        ]
    }
    assert (
        "runs by what a reset lent it (--cpu-manager-policy=none), until the next reset"
        in node.findings()[0].summary
    )
    node.kubelet["process"] = None
    assert "does not start" in node.findings()[0].summary


@pytest.mark.parametrize(
    ("text", "running", "said"),
    [
        ("", False, "cannot be drained"),
        ("", True, "drain w1, stop its kubelet"),
        (state(default="0", checksum=5), False, "reset_without_drain"),
    ],
)
def test_the_way_out_of_a_state_over_which_no_kubelet_starts(text, running, said):
    node = Node(text)
    if not running:
        node.kubelet["process"] = None
    assert said in node.findings()[0].remedy


@pytest.mark.parametrize(
    ("text", "wanted", "present"),
    [
        (MEMORY, "", []),
        (MEMORY, "memoryManagerPolicy: Static\n", ["KM310"]),
        (MEMORY.replace("770233", "770234"), "", ["KM310"]),
        (MEMORY.replace("{}", '{"0":null}'), "", ["KM310"]),
        ('{"policyName":"Static"}', "", ["KM310"]),
        ("", "", ["KM310"]),
        ("[]", "", ["KM310"]),
        ('{"policyName":5}', "", ["KM310"]),
    ],
)
def test_the_memory_manager(text, wanted, present):
    node = Node(config="kind: KubeletConfiguration\n" + wanted)
    node.seen["memory_state"] = record("memory_manager_state", text)
    assert node.present() == present


@pytest.mark.parametrize(
    "text", ['{"policyName":"None","machineState":{}}', MEMORY[:-1] + ',"podEntries":{"a":{}}}']
)
def test_a_memory_state_whose_checksum_tells_nothing_is_unknown_and_not_clear(text):
    node = Node(config="kind: KubeletConfiguration\n")
    node.seen["memory_state"] = record("memory_manager_state", text)
    assert node.verdicts()["KM310"] == "unknown"
    node.seen["memory_state"] = record("memory_manager_state", MEMORY)
    assert node.verdicts()["KM310"] == "clear"


# What a kubelet of 1.36.3 writes when its static memory manager finds another machine, and what
# systemd says of it.
OTHER_MACHINE = "[memorymanager] the expected machine state is different from the real one"
NO_RESERVATION = "[memorymanager] failed to get reserved memory for NUMA node"


@pytest.mark.parametrize(("words", "present"), [(OTHER_MACHINE, ["KM310"]), (NO_RESERVATION, [])])
def test_a_memory_state_of_another_machine_is_known_by_what_its_kubelet_died_of(words, present):
    node = Node(config="kind: KubeletConfiguration\n")
    node.seen["memory_state"] = record("memory_manager_state", MEMORY)
    assert node.present() == []
    node.kubelet.update(
        process=None,
        unit={
            "name": "kubelet.service",
            "load_state": "loaded",
            "active_state": "activating",
            "sub_state": "auto-restart",
            "unit_file_state": "enabled",
            "result": "exit-code",
            "main_pid": 0,
            "n_restarts": 7,
            "exec_main_status": 1,
            "exec_main_code": 1,
        },
    )
    node.document["collectors"]["kubelet_end"] = {
        "status": "ok",
        "data": {
            "unit": "kubelet.service",
            "lines": [
                "2026-11-23T10:00:00+0000 w1 systemd[1]: Started kubelet.service - kubelet.",
                (
                    "2026-11-23T10:00:01+0000 w1 kubelet[900]: E1123 10:00:01.000000     900"
                    ' kubelet.go:1700] "Failed to start ContainerManager" err="start memory'
                    f' manager error: {words}"'
                ),
                (
                    "2026-11-23T10:00:01+0000 w1 systemd[1]: kubelet.service: Main process exited,"
                    " code=exited, status=1/FAILURE"
                ),
                (
                    "2026-11-23T10:00:01+0000 w1 systemd[1]: kubelet.service: Failed with result"
                    " 'exit-code'."
                ),
            ],
        },
    }
    assert node.present() == present
    assert not present or any(
        words in (proof.text or "") for proof in node.findings()[0].evidence if proof.kind == "log"
    )


def test_a_memory_state_of_zeros_is_no_state_and_an_unread_one_is_unknown():
    node = Node(config="a: [")
    node.seen["memory_state"] = record("memory_manager_state", None, binary=True)
    assert node.present() == ["KM310"]
    node.seen["memory_state"] = record("memory_manager_state", None, error="denied")
    assert node.verdicts()["KM310"] == "unknown"
    node.seen["memory_state"] = record("memory_manager_state", '{"policyName":"None"}')
    assert node.verdicts()["KM310"] == "unknown"  # nobody knows what it is told


@pytest.mark.parametrize("lost", [{"error": "denied"}, {"truncated": True}])
def test_a_state_that_cannot_be_read_is_unknown(lost):
    node = Node(state())
    node.seen["cpu_state"].update(text=None, **lost)
    assert {
        node.verdicts()[code]
        for code in ("KM301", "KM302", "KM303", "KM304", "KM305", "KM306", "KM307", "KM308")
    } == {"unknown"}


def test_a_state_of_zeros_is_no_state():
    node = Node(state())
    node.seen["cpu_state"].update(text=None, binary=True)
    assert node.present() == ["KM303"]
    assert "it is no text" in node.findings()[0].summary


@pytest.mark.parametrize("text", ["{}", '{"policyName":"dynamic","defaultCpuSet":""}'])
def test_a_state_that_names_another_policy_or_none(text):
    assert Node(text, config="{}\n").present() == ["KM301"]


def test_the_last_words_of_a_kubelet_that_does_not_start():
    node = Node(NONE_STATE)
    lines = [
        "w1 kubelet[5]: old",
        (
            'w1 kubelet[5]: E1122 kubelet.go:1821] "Failed to start ContainerManager" err="start'
            ' cpu manager error"'
        ),
        "w1 kubelet[5]: Static policy",
    ]
    node.document["collectors"]["kubelet_log"]["data"]["lines"] = lines
    assert not [proof for proof in node.findings()[0].evidence if proof.kind == "log"]
    node.kubelet["process"] = None
    assert [proof.text for proof in node.findings()[0].evidence if proof.kind == "log"] == [
        lines[1]
    ]


CORRUPT = (
    "2026-11-24T13:04:56+0000 w1 kubelet[5]: F1105 08:11:16.571249 5 kubelet.go:1380] Failed to"
    " start ContainerManager start cpu manager error: could not restore state from checkpoint:"
    " checkpoint is corrupted, please drain this node and delete the CPU manager checkpoint file"
    ' "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet'
)
LOGGED = 1795525496.0  # 2026-11-24T13:04:56+0000


@pytest.mark.parametrize(
    ("line", "written", "codes"),
    [
        (CORRUPT, LOGGED - 900, ["KM302"]),
        (CORRUPT, None, ["KM302"]),
        # somebody wrote another one since
        (CORRUPT, LOGGED + 60, ["KM301"]),
        (
            CORRUPT.replace(
                "checkpoint is corrupted",
                'configured policy "static" differs from state checkpoint policy "none"',
            ),
            LOGGED - 900,
            ["KM301"],
        ),
        (CORRUPT.replace("CPU manager", "memory manager"), LOGGED - 900, ["KM301"]),
    ],
)
def test_the_reason_that_the_kubelet_tells_comes_before_that_of_its_file(line, written, codes):
    node = Node(NONE_STATE)
    node.seen["cpu_state"]["mtime"] = written
    node.kubelet["process"] = None
    node.kubelet["unit"].update(
        active_state="failed",
        sub_state="failed",
        result="exit-code",
        exec_main_status=255,
        main_pid=0,
    )
    ended = {"unit": "kubelet.service", "lines": [line]}
    node.document["collectors"]["kubelet_end"] = {"status": "ok", "data": ended}
    assert [code for code in node.present() if code in ("KM301", "KM302")] == codes


K3S_ARGV = ["kubelet", "--cpu-manager-policy=static", "--kube-reserved=cpu=200m"]


@pytest.mark.parametrize(
    ("name", "state_of_unit", "is_running"),
    [
        ("k3s-agent.service", ("active", "running"), True),
        ("k3s.service", ("activating", "auto-restart"), False),
    ],
)
def test_a_kubelet_within_k3s_is_judged_by_the_command_line_that_k3s_logs(
    name, state_of_unit, is_running
):
    node = Node(NONE_STATE)
    kubelet = node.kubelet
    kubelet["unit"].update(name=name, active_state=state_of_unit[0], sub_state=state_of_unit[1])
    kubelet.update(process=None, config=None, argv=["/usr/local/bin/k3s"])
    assert node.present() == []
    kubelet["distribution"] = {"program": "k3s", "files": [], "argv": K3S_ARGV}
    assert "KM301" in node.present()
    finding = next(item for item in node.findings() if item.code == "KM301")
    assert f"systemctl stop {name.removesuffix('.service')}" in finding.remedy
    assert finding.remedy.startswith("kubectl drain") is is_running
    assert ("one server at a time" in finding.remedy) is (name == "k3s.service")
    assert finding.risk == 0
