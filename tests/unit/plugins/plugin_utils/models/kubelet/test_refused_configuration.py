# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubelets of 1.14 to 1.36 refuse of their managers' values: KM506, and no drain."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    refused_configuration,
)
from tests.unit.support.configured_kubelet import (
    MEMORY,
    NEWEST,
    STATIC,
    configure,
    found,
    judged,
    planned,
)
from tests.unit.support.fake_kubelet_configuration import ACCEPTED, REFUSED
from tests.unit.support.fake_kubelet_messages import (
    AGAIN,
    HARMLESS,
    ended,
    failed,
)

PROFILE = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def configured(world):
    return configure(world)


def of(*releases):
    return [f"v{release}.0" for release in releases]


@pytest.mark.parametrize(("config", "argv", "releases"), ACCEPTED)
def test_what_kubelets_take(configured, config, argv, releases):
    for release in of(*(releases or "1.22 1.25 1.30 1.36").split()):
        numa = (
            (0, 1)
            if "1:memory" in " ".join(argv) or "--reserved-memory=1:" in " ".join(argv)
            else (0,)
        )
        result = found(configured(config, argv, release, numa=numa))
        assert (result.refused, result.unsure) == ((), ()), release


@pytest.mark.parametrize(("config", "argv", "releases", "key", "why"), REFUSED)
def test_what_kubelets_refuse(configured, config, argv, releases, key, why):
    for release in of(*releases.split()):
        world = configured(config, argv, release)
        (one,) = found(world).refused
        assert one.key == key, release
        assert why in one.why, release
        finding = judged(world)[1]["KM506"]
        assert (finding.severity, finding.component, finding.risk) == (
            "warning",
            "kubelet",
            0,
        )
        assert one.why[:300] in finding.summary
        assert not any(
            step.remedy in ("start_former", "drain", "uncordon") or step.allowed
            for step in planned(world, wishes={})
            if step.host != "m1"
        )


@pytest.mark.parametrize(
    ("config", "release"),
    [
        # A release decides, and it is not known.
        ("cpuManagerPolicy: Static\n", None),
        ("memoryManagerPolicy: static\n", None),
        ("topologyManagerPolicy: Restricted\n", "?"),
        (MEMORY % "1Gi", None),
        # A newer release may know it.
        ("cpuManagerPolicy: dynamic\n", "v1.37.0"),
        ("memoryManagerPolicy: BestEffort\n", "v1.37.0"),
        ("enforceNodeAllocatable: [io]\n", "v1.40.1"),
        (STATIC + "cpuManagerPolicyOptions: {newer: 'true'}\n", "v1.37.0"),
        ("topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {n: '1'}\n", "v1.37.0"),
        # What the sum depends on is not known.
        (MEMORY % "800Mi" + "evictionHard: {}\n", NEWEST),
        ("reservedMemory: [nonsense]\n", NEWEST),
        (MEMORY % "819Mi" + "evictionHard: {memory.available: 10%}\n", NEWEST),
    ],
)
def test_what_is_not_known_is_not_told_and_nothing_is_planned(configured, config, release):
    memory = 8190 << 20
    world = configured(config, release=release, memory=memory)
    result = found(world)
    if release == "?":  # as well with a release that no kubelet names
        assert result.refused
        return
    assert result.refused == ()
    assert result.unsure
    assert judged(world)[0]["KM506"] == "unknown"
    assert not any(step.allowed for step in planned(world, "force_reset", wishes={}))
    # A kubelet that is well and was started with these very files takes them.
    world = configured(config, release=release, memory=memory, changed=False)
    assert found(world).unsure == ()
    assert judged(world)[0]["KM506"] == "clear"


def test_a_machine_that_is_not_known_is_not_told_of(configured):
    world = configured(MEMORY.replace("numaNode: 0", "numaNode: 1") % "100Mi")
    seen = world.data("w1", "pinning")
    seen.update(numa=None)
    assert found(world).refused == ()
    assert found(world).unsure
    world = configured("reservedSystemCPUs: '9'\n")
    world.data("w1", "pinning")["cpus"]["online"] = None
    assert found(world).refused == ()
    assert found(world).unsure


def test_more_numa_nodes_than_a_topology_manager_takes(configured):
    config = "topologyManagerPolicy: best-effort\n"
    assert found(configured(config, numa=range(9))).refuses("topologyManagerPolicy")
    assert not found(configured(config, numa=range(8))).refused
    assert not found(configured("", numa=range(9))).refused
    assert not found(
        configured(
            config + "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '9'}\n",
            numa=range(9),
        )
    ).refused


def test_a_drop_in_has_the_last_word_and_replaces_lists(configured):
    (one,) = found(
        configured("cpuManagerPolicy: none\n", dropins=["cpuManagerPolicy: Static\n"])
    ).refused
    assert (one.settings[0].path, one.settings[0].line) == ("/etc/kubelet.d/0.conf", 1)
    assert not found(
        configured("cpuManagerPolicy: Static\n", dropins=["cpuManagerPolicy: none\n"])
    ).refused
    assert not found(
        configured("cpuManagerPolicy: Static\n", dropins=["cpuManagerPolicy: null\n"])
    ).refused
    assert not found(
        configured(
            "enforceNodeAllocatable: [pods, kube-reserved]\n",
            dropins=["enforceNodeAllocatable: [pods]\n"],
        )
    ).refused
    assert not found(
        configured(
            "enforceNodeAllocatable: [pods, kube-reserved]\n",
            dropins=["enforceNodeAllocatable: []\n"],
        )
    ).refused
    assert found(
        configured(
            "enforceNodeAllocatable: [pods]\n",
            dropins=["enforceNodeAllocatable: [kube-reserved]\n"],
        )
    ).refuses("enforceNodeAllocatable")
    two = MEMORY % "50Mi" + "- numaNode: 1\n  limits: {memory: 50Mi}\n"
    assert not found(configured(two, numa=(0, 1))).refused
    assert (
        "comes to 75Mi"
        in found(
            configured(
                two,
                dropins=["reservedMemory: [{numaNode: 0, limits: {memory: 75Mi}}]\n"],
                numa=(0, 1),
            )
        ).reason
    )


def dead(text, status=1):
    return [*AGAIN, HARMLESS, text, *ended(status)]


CGROUP = (
    "enforceNodeAllocatable: [pods, kube-reserved]\nkubeReserved: {cpu: 100m}\n"
    "kubeReservedCgroup: /kubelet.slice\n"
)


def test_a_cgroup_that_is_not_there_now_forbids_a_drain_and_proves_nothing(configured):
    """The kubelet's unit may make it; of one that is down, its own is gone."""
    world = configured(CGROUP)
    world.data("w1", "pinning")["cgroups"] = [
        {
            "name": "/kubelet.slice",
            "driver": one,
            "path": "/kubelet.slice",
            "missing": ["/sys/fs/cgroup/cpu/kubelet.slice"],
        }
        for one in ("cgroupfs", "systemd")
    ]
    assert found(world).refused == ()
    assert judged(world)[0]["KM506"] == "unknown"
    assert not any(step.allowed for step in planned(world, "force_reset", wishes={}))
    world.data("w1", "pinning")["cgroups"][0]["missing"] = []
    assert found(world) == refused_configuration.Judged()


def test_a_kubelet_that_ended_of_something_else_is_not_drained_for_its_state(configured):
    """Its state is of another policy too: the next obstacle, and no cure for this one."""
    state = failed(
        r"start cpu manager error: could not restore state from checkpoint: configured policy "
        r"\"static\" differs from state checkpoint policy \"none\", please drain this node and "
        r"delete the CPU manager checkpoint file \"/var/lib/kubelet/cpu_manager_state\" before"
    )
    assert [step.remedy for step in planned(configured(STATIC, lines=dead(state)))] == [
        "start_former",
        "drain",
        "reset_state",
        "uncordon",
    ]
    for line in (
        "running with swap on is not supported",
        "unknown flag: --x",
        "something new",
        r"unknown policy: \"Static\"",
        "[cpumanager] unable to determine reserved CPU resources for static policy",
    ):
        (step,) = planned(
            configured(STATIC, lines=dead(failed("failed to run Kubelet: " + line))),
            "reset_without_drain",
        )
        assert step.remedy == "reset_state"
        assert not step.allowed
        assert "last log lines" in step.blocked_by
    (step,) = planned(configured(STATIC, lines=[]))
    assert not step.allowed
    assert "last log lines are not known" in step.blocked_by


def test_one_that_was_stopped_after_it_had_died_of_something_else(configured):
    world = configured(STATIC, lines=dead(failed("failed to run Kubelet: something new")))
    world.data("w1", "kubelet")["unit"].update(
        active_state="inactive", sub_state="dead", result="success"
    )
    assert not any(step.remedy == "drain" for step in planned(world))
    world = configured(STATIC, lines=[*AGAIN, HARMLESS])
    world.data("w1", "kubelet")["unit"].update(
        active_state="inactive", sub_state="dead", result="success"
    )
    assert any(step.remedy == "drain" for step in planned(world))


def test_no_start_is_planned_of_one_that_would_refuse_its_configuration(configured):
    for config, allowed in (
        ("cpuManagerPolicy: Static\n", False),
        ("cpuManagerPolicy: none\n", True),
    ):
        world = configured(config, lines=[*AGAIN, HARMLESS])
        world.data("w1", "kubelet")["unit"].update(
            active_state="inactive", sub_state="dead", result="success"
        )
        (step,) = [one for one in planned(world) if one.code == "KM502"]
        assert step.remedy == "start_kubelet"
        assert step.allowed == allowed
        assert ("KM506" in (step.blocked_by or "")) is not allowed


def test_a_wish_that_corrects_what_is_refused_is_planned_for_a_kubelet_that_runs(configured):
    config = "cpuManagerPolicy: Static\nkubeReserved: {cpu: 1}\n"
    steps = planned(configured(config), "pending_changes", wishes={"cpuManagerPolicy": "static"})
    assert [step.remedy for step in steps] == ["drain", "reset_state", "uncordon"]
    assert all(step.allowed for step in steps)
    assert not any(
        step.allowed
        for step in planned(
            configured(config), "pending_changes", wishes={"reservedSystemCPUs": "0"}
        )
    )


def test_a_kubelet_of_1_15_takes_an_unknown_policy_as_none(configured):
    verdicts, _dummy = judged(configured("cpuManagerPolicy: Static\n", release="v1.15.12"))
    assert verdicts["KM506"] == "clear"
    assert verdicts["KM301"] == "clear"


def test_a_configuration_that_cannot_be_read_is_not_judged(configured):
    world = configured("cpuManagerPolicy: Static\n", dropins=["a: ["])
    assert found(world).refused == ()
    assert judged(world)[0]["KM506"] == "clear"
    assert judged(world)[0]["KM301"] == "unknown"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "missing", "online", "topology", "text", "path", "memory"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@PROFILE
@given(
    key=st.sampled_from(["numa", "memory_total", "cgroups", "kubelet_version"]),
    value=JUNK,
    config=st.sampled_from([one[0] for one in REFUSED]),
)
def test_evidence_of_another_type_is_no_traceback(configured, key, value, config):
    world = configured(config + CGROUP)
    world.data("w1", "pinning")[key] = value
    assert isinstance(found(world), refused_configuration.Judged)


@PROFILE
@given(text=st.text(max_size=60), key=st.sampled_from(sorted(refused_configuration.FLAGS)))
def test_no_value_is_a_traceback(configured, text, key):
    assert isinstance(found(configured(f"{key}: {text}\n")), refused_configuration.Judged)
    assert isinstance(
        found(configured("", (f"--{refused_configuration.FLAGS[key]}={text}",))),
        refused_configuration.Judged,
    )
