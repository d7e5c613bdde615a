# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a kubelet's managers: policies, reservations, and what stays unknown."""

from __future__ import annotations

import json

import pytest

from tests.unit.support.managed_node import (
    MEMORY,
    NONE_STATE,
    OTHER,
    POD,
    Node,
    record,
    state,
)


@pytest.fixture(autouse=True)
def a_healthy_worker(world):
    Node.healthy = world.documents["w1"]


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
