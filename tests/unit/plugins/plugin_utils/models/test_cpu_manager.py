# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The managers' state files against configuration, machine and containers.

KM301 to KM311, and what none of them is.
"""

from __future__ import annotations

import copy
import json

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    dropin as kubelet_dropin,
)

CLOCK = 1_800_000_000.0  # of the evidence in conftest.py
POD, OTHER = "777870b5-c64f-42f5-9296-688b9dc212ba", "fb15e10a-b6a5-4aaa-8fcd-76c1aa64e6fd"
NONE_STATE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
# Written by a kubelet of 1.36.3 on a machine of two CPUs.
STATIC_STATE = (
    '{"policyName":"static","defaultCpuSet":"0","entries":{"e4f3f5dc-4d6f-44db-aa7e-cf3b2b92bb31'
    '":{"work":"1"}},'
    '"checksum":2597661177}'
)
CODES = frozenset(f"KM3{number:02}" for number in range(1, 12))


def record(name, text, **more):
    return {
        "path": f"/var/lib/kubelet/{name}",
        "text": text,
        "size": len(text or ""),
        "mtime": CLOCK - 600,
        "error": None,
        "masked": [],
        **more,
    }


def state(policy="static", default="0,2-3", entries=None, checksum=0):
    return json.dumps(
        {
            "policyName": policy,
            "defaultCpuSet": default,
            "entries": entries or {},
            "checksum": checksum,
        }
    )


def container(uid, name, cpus, **more):
    return {
        "pod_uid": uid,
        "name": name,
        "container_id": "c" * 64,
        "pid": 7,
        "static": False,
        "cpus": cpus,
        "allowed": cpus,
        **more,
    }


class Node:
    """A worker whose evidence of pinning a test changes before it is judged."""

    healthy = {}  # noqa: RUF012 - never written

    def __init__(
        self, text=None, config="cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n", online="0-3"
    ):
        self.document = copy.deepcopy(self.healthy)
        self.kubelet = self.document["collectors"]["kubelet"]["data"]
        self.kubelet["config"] = {
            "path": "/var/lib/kubelet/config.yaml",
            "text": config,
            "masked": [],
            "error": None,
        }
        self.seen = {
            "root_dir": "/var/lib/kubelet",
            "cpu_state": None if text is None else record("cpu_manager_state", text),
            "memory_state": None,
            "cpus": {"online": online, "topology": [[cpu, cpu % 2, 0, 0] for cpu in range(4)]},
            "pods": [POD, OTHER],
            "containers": [],
            "frozen": [],
            "runc": "runc version 1.1.12",
            "kubelet_version": "Kubernetes v1.30.1",
        }
        for name, data in (("pinning", self.seen), ("kubelet_log", {"lines": []})):
            self.document["collectors"][name] = {"status": "ok", "data": data}

    def verdicts(self):
        found = fault_engine.evaluate([copy.deepcopy(self.document)], CODES, deep=True)
        return {item.code: item.verdict for item in found.verdicts}

    def findings(self):
        return fault_engine.evaluate([copy.deepcopy(self.document)], CODES, deep=True).findings

    def present(self):
        return [item.code for item in self.findings()]


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
        assert hit.summary == "CPUs 1 of w1 are kept for 1 container that is gone"
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


# Written by a kubelet of 1.36.3.
MEMORY = '{"policyName":"None","machineState":{},"checksum":4236770233}'


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


@pytest.mark.parametrize(
    ("containers", "present"),
    [
        (
            [
                container(POD, "app", "1"),
                container(POD, None, "0-3"),
                container(OTHER, "side", "0,2-3"),
            ],
            [],
        ),
        ([container(POD, "app", "0-3")], ["KM308"]),
        ([container(OTHER, "side", "0-3")], ["KM308"]),
        ([container(POD, "init", "0-3"), container(OTHER, "side", None)], []),
    ],
)
def test_drift(containers, present):
    node = Node(state(default="0,2-3", entries={POD: {"app": "1"}}))
    node.seen["containers"] = containers
    assert node.present() == present


@pytest.mark.parametrize(
    ("sets", "present"),
    [
        ([("1", "a", POD), ("0,2-3", "b", OTHER)], []),
        ([("0-3", "a", POD), ("0,2-3", "b", OTHER)], ["KM308"]),
        ([("1", "a", POD), ("0-3", "b", OTHER)], ["KM308"]),
        ([("1", "a", POD), ("0-3", "b", POD)], []),
    ],
)
def test_drift_from_a_state_by_container(sets, present):
    node = Node(state(default="0,2-3", entries={"a" * 64: "1"}))
    node.seen.update(
        containers=[container(pod, "work", cpus, container_id=one * 64) for cpus, one, pod in sets],
        logged=[],
        kubelet_version="Kubernetes v1.16.2",
    )
    assert node.present() == present
    assert not present or "where it stays so, the write fails" in node.findings()[0].remedy


def test_a_set_decided_a_moment_ago_is_on_its_way():
    node = Node(state(default="0,2-3", entries={POD: {"app": "1"}}))
    node.seen["containers"] = [container(POD, "app", "0-3")]
    node.seen["cpu_state"]["mtime"] = CLOCK - 5
    assert node.verdicts()["KM308"] == "unknown"
    node.kubelet["process"] = None
    assert node.present() == ["KM308"]


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("Kubernetes v1.18.4", "where it stays so, the write fails"),
        ("Kubernetes v1.30.1", "does not heal"),
        (None, "does not heal"),
        ("Kubernetes v1.22.17", "is not known here"),
    ],
)
def test_who_heals_drift(version, words):
    node = Node(state(default="0,2-3", entries={POD: {"app": "1"}}))
    node.seen.update(containers=[container(POD, "app", "0-3")], kubelet_version=version)
    assert words in node.findings()[0].remedy


# What runc 1.1.5 (logged by the runtime) and 1.1.12 (returned to the kubelet) say.
LOGGED = (
    'Nov 21 20:01:02 w1 containerd[412]: time="2026-11-21T20:01:02Z" level=warning msg="unable to'
    ' freeze"'
)
RETURNED = (
    "Nov 21 20:01:02 w1 kubelet[500]: E1121 20:01:02.000000     500 cpu_manager.go:440]"
    ' "ReconcileState: failed to update container" err="rpc error: code = Unknown desc = failed to'
    " update resources: runc did not terminate successfully: exit status 1: unable to freeze:"
    ' unknown"'
)


@pytest.mark.parametrize("line", [LOGGED, RETURNED])
def test_a_freezer_that_does_not_freeze_is_no_stale_state(line):
    node = Node(state(default="0-3"))
    node.document["collectors"]["kubelet_log"]["data"]["lines"] = [line]
    node.seen["frozen"] = [
        {
            "pod_uid": POD,
            "container_id": "c" * 64,
            "path": "/sys/fs/cgroup/freezer/x",
            "state": "FREEZING",
            "tasks": [[9, "stuck", "D"]],
        }
    ]
    (finding,) = node.findings()
    assert finding.code == "KM311"
    assert "a reset of it cures nothing" in finding.summary
    assert "move" not in (finding.remedy or "")
    assert any("stuck (pid 9, D)" in (proof.text or "") for proof in finding.evidence)


def stuck(identity, name):
    return {
        "pod_uid": POD,
        "pod": "shop/" + name,
        "name": "app",
        "container_id": identity * 64,
        "tasks": [[9, "nfs-" + name, "D"]],
    }


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (RETURNED.replace("update container", "update container " + "a" * 64), ["nfs-one"]),
        (LOGGED, ["nfs-one", "nfs-two"]),
    ],
)
def test_the_tasks_that_do_not_freeze_are_named_of_the_container_that_the_line_names_or_of_all(
    line, shown
):
    """Runc thaws the cgroup again once it has given up.

    What is left to see is the task in state D.
    """
    node = Node(state(default="0-3"))
    node.seen["stuck"] = [stuck("a", "one"), stuck("b", "two")]
    assert node.present() == []  # a task waits for its disk: no fault
    node.document["collectors"]["kubelet_log"]["data"]["lines"] = [line]
    texts = " ".join(proof.text or "" for proof in node.findings()[0].evidence)
    assert [
        name
        for name in ("nfs-one", "nfs-two")
        if f"{name} (pid 9, D); container app of pod shop/{name[4:]}" in texts
    ] == shown


@pytest.mark.parametrize(
    ("runc", "words"),
    [
        ("runc version 1.1.7", "it only logs that"),
        ("runc version 1.1.5+ds1", "it only logs that"),
        ("runc version 1.1.8", "it returns the error (since"),
        ("runc version 1.3.0-rc.1", "it returns the error (since"),
        ("runc by hand", "(since 1.1.8 it returns the error, before it only logged it)"),
    ],
)
def test_which_runc_returns_the_error(runc, words):
    node = Node(state(default="0-3"))
    node.document["collectors"]["kubelet_log"]["data"]["lines"] = [RETURNED]
    node.seen["runc"] = runc
    assert any(words in (proof.text or "") for proof in node.findings()[0].evidence)


@pytest.mark.parametrize("lost", ["kubelet", "pinning"])
def test_without_evidence_nothing_is_clear(lost):
    node = Node(state())
    node.document["collectors"][lost] = {"status": "timeout", "data": None}
    assert {node.verdicts()[code] for code in ("KM301", "KM302", "KM304")} == {"unknown"}


def test_a_configuration_that_cannot_be_read_leaves_the_policy_unknown():
    node = Node(state(), config="a: [")
    found = node.verdicts()
    assert (found["KM301"], found["KM304"], found["KM302"]) == ("unknown", "unknown", "clear")
    node = Node("", config="a: [")
    assert node.present() == ["KM303"]


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


def test_a_newer_format_is_unknown_where_it_would_count():
    more = json.dumps(
        {
            **json.loads(state(default="0-1", entries={POD: {"app": "2"}})),
            "podEntries": {OTHER: {"cpuSet": "3"}},
        }
    )
    found = Node(more).verdicts()
    assert {found[code] for code in ("KM302", "KM304", "KM305", "KM306", "KM307", "KM308")} == {
        "unknown"
    }
    assert found["KM301"] == "clear"
    assert Node(more, config="cpuManagerPolicy: none\n").present() == ["KM301"]
    assert Node('{"data":"{}","dataChecksum":1}').verdicts()["KM301"] == "unknown"


@pytest.mark.parametrize(
    "argv", [[], ["/usr/local/bin/k3s", "server"], ["/snap/microk8s/7/kubelite"]]
)
def test_a_kubelet_whose_command_line_is_not_seen_is_told_nothing_that_is_known(argv):
    node = Node(state())
    node.kubelet.update(argv=argv, config=None)
    found = node.verdicts()
    assert {found[code] for code in ("KM301", "KM304", "KM305", "KM309")} == {"unknown"}
    assert "present" not in found.values()


def test_a_drop_in_that_cannot_be_read_may_overrule_the_file():
    node = Node(NONE_STATE, config="cpuManagerPolicy: none\nmemoryManagerPolicy: None\n")
    node.seen["memory_state"] = record("memory_manager_state", MEMORY)
    node.kubelet["config_dropins"] = [
        {"path": "/d.conf", "text": None, "masked": [], "error": "denied"}
    ]
    assert {node.verdicts()[code] for code in ("KM301", "KM310")} == {"unknown"}
    node.kubelet["argv"] = ["kubelet", "--cpu-manager-policy=none", "--memory-manager-policy=None"]
    assert {node.verdicts()[code] for code in ("KM301", "KM310")} == {"clear"}
    # The reservation may stand in it too.
    node.seen["cpu_state"] = record("cpu_manager_state", state())
    node.kubelet["argv"] = ["kubelet", "--cpu-manager-policy=static"]
    assert {node.verdicts()[code] for code in ("KM304", "KM305", "KM309")} == {"unknown"}
    assert node.verdicts()["KM306"] == "clear"


AMOUNT = "cpuManagerPolicy: static\nkubeReserved: {cpu: '2'}\n"
UNEVEN = [[0, 0, 0, 0], [1, 1, 0, 0], [2, 1, 0, 0]]
# Two sockets with a NUMA node each that are numbered the other way round.
CROSSED = [[0, 0, 0, 1], [1, 1, 0, 1], [2, 0, 1, 0], [3, 1, 1, 0]]


@pytest.mark.parametrize(
    ("config", "topology"),
    [
        *(
            (AMOUNT + f"cpuManagerPolicyOptions: {{{option}: 'true'}}\n", None)
            for option in (
                "distribute-cpus-across-numa",
                "distribute-cpus-across-cores",
                "prefer-align-cpus-by-uncorecache",
            )
        ),
        (AMOUNT, UNEVEN),
        (AMOUNT, CROSSED),
        (AMOUNT.replace("'2'", "two"), None),
    ],
)
def test_which_cpus_are_reserved_is_not_guessed(config, topology):
    node = Node(state(default="0,2", entries={POD: {"app": "1,3"}}), config)
    node.seen["cpus"]["topology"] = topology or node.seen["cpus"]["topology"]
    assert node.verdicts()["KM304"] == "unknown"
    # All are in the shared set, so these are.
    node = Node(state(default="0-3"), config)
    assert node.verdicts()["KM304"] == "clear"
    node.kubelet["config"]["text"] = (
        AMOUNT
        + "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true', distribute-cpus-across-numa:"
        " 'true'}\n"
    )
    assert {node.verdicts()[code] for code in ("KM304", "KM305")} == {"unknown"}


def test_a_reservation_that_is_no_quantity_and_a_machine_that_is_not_seen():
    assert Node(state(default="0-3"), AMOUNT.replace("'2'", "two")).verdicts()["KM309"] == "unknown"
    assert Node(state(default="0-3"), online=None).verdicts()["KM305"] == "unknown"


def test_a_machine_without_a_kubelet_has_none_of_it():
    node = Node()
    for name in ("kubelet", "pinning"):
        node.document["collectors"][name] = {"status": "absent", "data": None}
    assert {node.verdicts()[code] for code in ("KM301", "KM302", "KM304", "KM309")} == {
        "not_applicable"
    }


@pytest.mark.parametrize(
    "odd",
    [
        {"cpu_state": [], "cpus": None},
        {"pods": "x", "containers": [None, 5, {}]},
        {"cpus": {"online": 5, "topology": [[None]]}},
    ],
)
def test_evidence_of_unforeseen_shapes_costs_no_other_fault(odd):
    node = Node(state())
    node.seen.update(odd)
    assert set(node.verdicts().values()) <= {"clear", "unknown", "not_applicable", "present"}


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
