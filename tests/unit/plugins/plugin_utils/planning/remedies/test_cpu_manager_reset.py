# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reset of a node's CPU and memory manager state as a plan.

What is lent, what is drained, what is refused and why.
"""

from __future__ import annotations

import base64
import copy
import json

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet as kubelet_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    config as kubelet_config,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    dropin as kubelet_dropin,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    control_plane,
    cpu_manager_reset,
    maintenance,
)
from tests.unit.support import answers

NONE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
POD = "777870b5-c64f-42f5-9296-688b9dc212ba"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"
MEMORY = "reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]\n"
FOLDER = "/var/lib/kubelet"
ALL = ["start_former", "drain", "reset_state", "uncordon"]


def state(policy="static", default="0,2-3", entries=None):
    return json.dumps(
        {
            "policyName": policy,
            "defaultCpuSet": default,
            "entries": entries if entries is not None else {POD: {"app": "1"}},
        }
    )


def record(name, text):
    return {
        "path": f"{FOLDER}/{name}",
        "text": text,
        "size": len(text),
        "mtime": 0,
        "error": None,
        "masked": [],
    }


@pytest.fixture
def node(world):
    """w1, whose kubelet is down, with a state of its own and a configuration."""

    def make(text, config=STATIC, memory=None, healthy=False, running=False):
        kubelet = world.data("w1", "kubelet")
        kubelet.update(
            config={"path": f"{FOLDER}/config.yaml", "text": config, "masked": [], "error": None},
            healthz={"status": 200 if healthy else None},
            unit={
                "name": "kubelet.service",
                "active_state": "active",
                "start_words": ["kubelet", "$KUBELET_EXTRA_ARGS"],
                "split_variables": [["KUBELET_EXTRA_ARGS", "--v=2"]],
                "environment_files": [],
                "need_daemon_reload": False,
            },
        )
        if not (healthy or running):
            kubelet["process"] = None
        world.documents["w1"]["collectors"]["pinning"] = {
            "status": "ok",
            "data": {
                "root_dir": FOLDER,
                "cpu_state": None if text is None else record("cpu_manager_state", text),
                "memory_state": memory and record("memory_manager_state", memory),
                "kubelet_version": "Kubernetes v1.34.1",
                "numa": [0],
                "frozen": None,
                "runc": None,
                "pods": [POD],
                "cpus": {"online": "0-3", "topology": [[cpu, cpu % 2, 0, 0] for cpu in range(4)]},
                "containers": (
                    None
                    if text is None
                    else [
                        {
                            "pod_uid": POD,
                            "pod": "shop/db-0",
                            "name": "app",
                            "container_id": "c" * 64,
                            "pid": 7,
                            "static": False,
                            "cpus": "1",
                            "allowed": "1",
                        }
                    ]
                ),
            },
        }
        return world

    return make


def planned(world, *allow, max_risk=3, **more):
    documents = world.documents
    result, found = fault_engine.evaluate_clusters([*documents.values(), world.api])
    return plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        plan.Consent(max_risk, frozenset(allow), frozenset(), **more),
        cpu_manager_reset.REMEDIES,
        fault_engine.KEY_DIGITS,
    )


def lent(steps):
    return steps[0].expect["words"]


@pytest.mark.parametrize(
    ("text", "config", "memory", "words"),
    [
        (NONE, STATIC, None, ["--cpu-manager-policy=none"]),
        # Nobody reserves anything under the policy none:
        # what the state had reserved was in the shared
        # set.
        (
            state(),
            "kind: KubeletConfiguration\n",
            None,
            ["--cpu-manager-policy=static", "--reserved-cpus=0"],
        ),
        (state(), "kubeReserved: {cpu: 500m}\n", None, ["--cpu-manager-policy=static"]),
        (
            state(),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '1'\n",
            None,
            ["--reserved-cpus=0"],
        ),
        (
            state(default="0-3", entries={}),
            STATIC + "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n",
            None,
            ["--cpu-manager-policy-options=strict-cpu-reservation=false", "--reserved-cpus=0"],
        ),
        # Written with strict-cpu-reservation, which is off now: the reserved CPUs are in no set.
        (
            state(default="2-3"),
            STATIC,
            None,
            ["--cpu-manager-policy-options=strict-cpu-reservation=true", "--reserved-cpus=0"],
        ),
        (NONE, MEMORY, '{"policyName":"Static"}', ["--memory-manager-policy=Static"]),
        (
            NONE,
            STATIC + "memoryManagerPolicy: Static\n" + MEMORY,
            '{"policyName":"None"}',
            ["--cpu-manager-policy=none", "--memory-manager-policy=None"],
        ),
    ],
)
def test_what_a_kubelet_is_lent_for_the_drain(node, text, config, memory, words):
    steps = planned(node(text, config, memory))
    assert [step.remedy for step in steps] == ALL
    assert all(step.allowed and step.risk == 3 for step in steps)
    assert lent(steps) == words
    assert [step.host for step in steps] == ["w1", "m1", "w1", "m1"]
    made = {one["path"]: base64.b64decode(one["data"]).decode() for one in steps[0].change["files"]}
    assert f'KUBELET_EXTRA_ARGS="--v=2 {" ".join(words)}"' in made[kubelet_dropin.ENVIRONMENT]


@pytest.mark.parametrize(
    ("version", "gates", "lends"),
    [
        ("v1.31.9", "", False),
        ("v1.32.1", "", False),
        ("v1.32.1", "featureGates: {AllAlpha: true}\n", True),
        ("v1.33.0", "", True),
    ],
)
def test_cpus_that_came_are_spared_only_by_a_release_that_can(node, version, gates, lends):
    """Before strict-cpu-reservation no kubelet starts over a state without all CPUs."""
    world = node(state(default="2-3"), STATIC + gates)
    world.documents["w1"]["collectors"]["pinning"]["data"]["kubelet_version"] = (
        f"Kubernetes {version}"
    )
    steps = planned(world)
    assert [step.remedy for step in steps] == (ALL if lends else ALL[2:3]), steps
    assert (
        lends
        or "CPUs 0 came since its state was written, and no kubelet of its release and gates starts"
        in steps[0].blocked_by
    )


def test_nothing_is_lent_over_a_state_of_another_version(node):
    world = node(state(entries={POD: {"app": "1"}}), STATIC)
    world.documents["w1"]["collectors"]["pinning"]["data"]["kubelet_version"] = "Kubernetes v1.17.3"
    (step,) = planned(world)
    assert step.remedy == "reset_state"
    assert (
        "cannot be read by its kubelet (its entries are of the format of 1.18 and newer"
        in step.blocked_by
    )


def test_the_steps_of_a_reset(node):
    steps = planned(
        node(NONE, memory='{"policyName":"None"}'),
        "drain_bare_pods",
        drain_timeout=60,
        max_unavailable=2,
    )
    start, drain, reset, uncordon = steps
    assert [step.id for step in steps] == [
        "01-w1-kubelet-start-former",
        "02-m1-drain-w1",
        "03-w1-kubelet-reset-state",
        "04-m1-uncordon-w1",
    ]
    assert (drain.change["timeout"], drain.change["max_unavailable"], drain.change["allow"]) == (
        60,
        None,
        ["drain_bare_pods"],
    )
    # Who stays and has devices is asked before anybody leaves.
    assert drain.change["restarts"]
    assert planned(node(NONE), "kubelet_restart")[1].change["allow"] == ["kubelet_restart"]
    assert reset.change["states"] == [
        f"{FOLDER}/cpu_manager_state",
        f"{FOLDER}/memory_manager_state",
    ]
    assert reset.expect["policies"] == {
        f"{FOLDER}/cpu_manager_state": "static",
        f"{FOLDER}/memory_manager_state": "None",
    }
    assert [one["path"] for one in reset.change["files"]] == [
        one["path"] for one in reversed(start.change["files"])
    ]
    assert uncordon.change["node"] == drain.change["node"] == "w1"
    # A cordon of a repair is never one that an operator ends.
    assert not any("held" in step.change for step in (drain, uncordon))
    assert "keep_cordon" not in planned(node(NONE), "keep_cordon")[1].change["allow"]


def test_without_consent_all_of_it_is_withheld(node):
    steps = planned(node(NONE), max_risk=2)
    assert [step.remedy for step in steps] == ALL
    assert all(plan.only_risk(step) for step in steps)


def test_a_kubelet_that_runs_still_is_drained_as_it_is(node):
    steps = planned(node(NONE, healthy=True), max_unavailable=2)
    # it takes one out that is there
    assert [step.remedy for step in steps] == ALL[1:]
    assert steps[0].change["max_unavailable"] == 2


def test_several_faults_of_one_node_are_one_reset(node):
    world = node(
        state(default="0-3"),
        "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
        '{"policyName":"Static"}',
        healthy=True,
    )
    result, _clusters = fault_engine.evaluate_clusters([*world.documents.values(), world.api])
    assert {item.code for item in result.findings} >= {"KM306", "KM310"}
    assert [step.remedy for step in planned(world)] == ALL[1:]


@pytest.mark.parametrize(
    ("text", "memory", "why"),
    [
        ("", None, "it is empty"),
        (state().replace("}}", '}},"checksum":5'), None, "checksum"),
        (state(default="0-3"), None, "does not fit the machine's CPUs"),
        (state(default=""), None, "does not fit the machine's CPUs"),
        ('{"policyName":"dynamic"}', None, "no kubelet has the policy 'dynamic'"),
        (
            NONE,
            '{"policyName":"Static"}',
            "would refuse its configuration (reservedMemory comes to 0 of memory",
        ),
        (NONE, "", "memory manager's state cannot be read"),
        (NONE[:-1] + ',"podEntries":{}}', None, "newer format (podEntries)"),
    ],
)
def test_where_nothing_could_be_lent_nothing_is_drained(node, text, memory, why):
    world = node(text, memory=memory)
    if memory == "":
        world.documents["w1"]["collectors"]["pinning"]["data"]["memory_state"] = record(
            "memory_manager_state", ""
        )
    (step,) = planned(world)
    assert step.remedy == "reset_state"
    assert not step.allowed
    assert why in step.blocked_by
    assert "shop/db-0" in step.blocked_by
    assert "kubemend_allow=reset_without_drain" in step.blocked_by
    (step,) = planned(world, "reset_without_drain")
    assert step.allowed
    assert "shop/db-0" in step.note


def several(world, count, release):
    """Pods of w1, each with a sandbox and an app; the ids are those of its containers."""
    seen = world.documents["w1"]["collectors"]["pinning"]["data"]
    seen["kubelet_version"] = f"Kubernetes {release}"
    seen["containers"] = [
        {
            "pod_uid": f"u{number:02}",
            "pod": name and f"shop/p{number:02}",
            "name": name,
            "container_id": f"{name}{number:02}",
            "pid": 7,
            "static": False,
            "cpus": "1",
            "allowed": "1",
        }
        for number in range(count)
        for name in (None, "app")
    ]


@pytest.mark.parametrize(
    ("release", "what"),
    [
        ("v1.30.1", "get other CPUs while they run"),
        ("v1.17.9", "lose the CPUs that they have alone"),
    ],
)
def test_every_pod_that_is_not_drained_is_named(node, release, what):
    world = node("")
    several(world, 14, release)
    (step,) = planned(world, "reset_without_drain")
    assert f"not drained, these pods {what}:\n  shop/p00\n" in step.diff
    assert step.diff.count("\n  shop/p") == 14
    assert "shop/p09 and 4 more" in step.note
    assert "not drained" not in planned(node(NONE))[2].diff


def test_a_kubelet_up_to_1_17_touches_only_who_has_cpus_alone(node):
    world = node(
        json.dumps(
            {
                "policyName": "static",
                "defaultCpuSet": "0",
                "entries": {"app03": "1", "app05": "2-3"},
            }
        ),
        "cpuManagerPolicy: none\n",
    )
    several(world, 8, "v1.17.9")
    (step,) = planned(world, "reset_without_drain")
    assert "these pods lose the CPUs that they have alone: shop/p03, shop/p05" in step.note
    assert step.diff.count("\n  shop/p") == 2


def test_up_to_1_17_pods_without_cpus_alone_are_not_touched_and_not_denied(node):
    world = node(
        json.dumps({"policyName": "static", "defaultCpuSet": "0-2", "entries": {"gone": "3"}}),
        "cpuManagerPolicy: none\n",
    )
    several(world, 2, "v1.17.9")
    assert "no pod that runs on it has CPUs alone" in planned(world, "reset_without_drain")[0].note


def test_where_nobody_may_stop_a_kubelet(node):
    for config, why in (
        ("cpuManagerPolicy: static\n", "KM309"),
        (STATIC.replace("'0'", "'0,9'"), "KM506"),
        ("a: [", ""),
    ):
        steps = planned(node(NONE, config))
        assert not any(step.allowed for step in steps)
        assert all(why in step.blocked_by for step in steps)
    world = node(NONE)
    world.data("w1", "kubelet")["unit"]["name"] = "k3s.service"
    assert "is started by k3s, which kubemend does not stop" in planned(world)[0].blocked_by
    world = node(NONE)
    world.data("w1", "kubelet")["unit"]["load_state"] = "masked"
    assert all("is masked, which was done on purpose" in step.blocked_by for step in planned(world))
    world = node(NONE)
    world.data("w1", "kubelet")["unit"]["split_variables"] = []
    (step,) = planned(world)
    assert "no variable for more arguments" in step.blocked_by
    assert "kubemend_allow=reset_without_drain" in step.blocked_by
    assert planned(world, "reset_without_drain")[0].allowed


def test_without_an_api_server_only_what_keeps_a_kubelet_down_is_reset(node):
    world = node(NONE)
    world.api = {**world.api, "status": "unreachable", "reason": "refused", "collectors": {}}
    assert all(
        "no API server answers" in step.blocked_by
        and "kubemend_allow=api_down,reset_without_drain" in step.blocked_by
        for step in planned(world)
    )
    (step,) = planned(world, "api_down")
    assert "kubemend_allow=reset_without_drain" in step.blocked_by
    (step,) = planned(world, "api_down", "reset_without_drain")
    assert (step.remedy, step.allowed) == ("reset_state", True)
    world = node(NONE, healthy=True)
    assert not any(step.allowed for step in planned(world, "api_down", "reset_without_drain"))


def test_a_control_plane_node_waits_for_the_others(node):
    world = node(NONE, healthy=True)
    for name in ("kubelet", "pinning"):
        world.documents["m1"]["collectors"][name], world.documents["w1"]["collectors"][name] = (
            world.documents["w1"]["collectors"][name],
            world.documents["m1"]["collectors"].get(name, {"status": "absent", "data": None}),
        )
    assert all(step.allowed for step in planned(world))
    world.silence("m3")
    steps = planned(world)
    assert steps
    assert all("only while the others are whole" in step.blocked_by for step in steps)


def test_what_was_lent_is_not_the_kubelets_own(node):
    world = node(NONE, healthy=True)
    kubelet = world.data("w1", "kubelet")
    kubelet["argv"] = ["kubelet", "--v=2", "--cpu-manager-policy=none"]
    kubelet["unit"]["environment_files"] = [
        {
            "path": kubelet_dropin.ENVIRONMENT,
            "text": '# adds: --cpu-manager-policy=none\nX="--cpu-manager-policy=none"\n',
        }
    ]
    answer = answers.typed(kubelet_answer.Kubelet, kubelet)
    assert kubelet_config.read(answer).argv == ("kubelet", "--v=2")
    steps = planned(world)
    assert [step.remedy for step in steps] == ALL[1:]  # still to be reset, and drained as it runs
    assert steps[0].change["max_unavailable"] is None
    kubelet["unit"]["environment_files"] = []
    assert planned(world) == ()


def wished(world, settings, *allow):
    documents = world.documents
    result, found = fault_engine.evaluate_clusters([*documents.values(), world.api])
    consent = plan.Consent(3, frozenset(allow), cpu_manager={"w1": settings})
    return plan.plan(
        [*result.findings, *cpu_manager_reset.wishes(found, ["w1"], fault_engine.KEY_DIGITS)],
        found,
        documents.__getitem__,
        consent,
        {**control_plane.REMEDIES, **maintenance.REMEDIES, **cpu_manager_reset.REMEDIES},
        fault_engine.KEY_DIGITS,
    )


def test_another_policy_for_a_node_that_is_well(node):
    world = node(NONE, "kind: KubeletConfiguration\n", healthy=True)
    drain, reset, uncordon = steps = wished(
        world, {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
    )
    assert [step.remedy for step in steps] == ALL[1:]
    assert all(step.allowed and step.code == "asked" for step in steps)
    (edit,) = reset.change["edits"]
    assert (edit["kind"], edit["path"]) == ("splice", f"{FOLDER}/config.yaml")
    assert reset.expect["policies"] == {f"{FOLDER}/cpu_manager_state": "static"}
    assert "+cpuManagerPolicy: static" in reset.diff
    assert drain.node == uncordon.node == "w1"


def test_a_node_that_is_as_it_should_be_is_left_alone_unless_it_is_forced(node):
    world = node(state(default="0-3", entries={}), STATIC, healthy=True)
    assert (
        wished(world, {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"})
        == wished(world, {})
        == ()
    )
    assert [step.remedy for step in wished(world, {}, "force_reset")] == ALL[1:]


def test_who_asked_for_a_reset_that_nothing_calls_for_is_told_how_to_have_it(node):
    def told(world, *allow):
        _result, found = fault_engine.evaluate_clusters([*world.documents.values(), world.api])
        return cpu_manager_reset.uncalled(found, ["w1"], wished(world, {}, *allow))

    world = node(state(default="0-3", entries={}), STATIC, healthy=True)
    (sentence,) = told(world)
    assert sentence.startswith("No state is reset on w1: ")
    assert "-e kubemend_allow=force_reset" in sentence
    assert told(world, "force_reset") == ()
    assert told(node(NONE)) == ()
    _result, found = fault_engine.evaluate_clusters([*world.documents.values(), world.api])
    assert (
        cpu_manager_reset.uncalled(found, [], ())
        == cpu_manager_reset.uncalled(found, ["elsewhere"], ())
        == ()
    )


def test_a_node_that_needs_no_reservation_any_more(node):
    drain, reset, _uncordon = wished(
        node(state(default="0-3"), STATIC, healthy=True),
        {"cpuManagerPolicy": "none", "reservedSystemCPUs": ""},
    )
    assert drain.allowed
    assert reset.note.startswith(
        "cpuManagerPolicy: none (was static), reservedSystemCPUs: none (was 0); "
    )
    assert (
        wished(
            node(NONE, "{}\n", healthy=True), {"cpuManagerPolicy": "none", "reservedSystemCPUs": ""}
        )
        == ()
    )


def test_a_fault_and_a_wish_are_one_reset_and_the_wish_is_in_it(node):
    steps = wished(node(NONE), {"reservedSystemCPUs": "1"})
    assert [step.remedy for step in steps] == ALL
    assert len(steps[2].change["edits"]) == 1
    # What is lent is for the configuration as it is until then.
    assert lent(steps) == ["--cpu-manager-policy=none"]


@pytest.mark.parametrize(
    ("config", "settings", "why"),
    [
        ("{}\n", {"cpuManagerPolicy": "static"}, "no CPU reserved"),
        (STATIC, {"reservedSystemCPUs": ""}, "no CPU reserved"),
        (
            "{}\n",
            {"cpuManagerPolicy": "static", "reservedSystemCPUs": "9"},
            "KM506): reservedSystemCPUs: 9; this machine has the CPUs 0-3 online, and not 9",
        ),
        (
            "{}\n",
            {"reservedSystemCPUs": "0-3"},
            "4 CPUs are reserved on w1, which has 4: no pod would get any",
        ),
        (
            STATIC + "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n",
            {"cpuManagerPolicy": "none"},
            "the policy none takes no cpuManagerPolicyOptions",
        ),
    ],
)
def test_a_wish_that_no_kubelet_could_start_with_is_refused_before_the_drain(
    node, config, settings, why
):
    steps = wished(node(NONE, config, healthy=True), settings)
    assert steps
    assert all(not step.allowed and why in step.blocked_by for step in steps)


@pytest.mark.parametrize(
    ("version", "allowed"), [("v1.31.9", False), ("v1.33.0", True), (None, True)]
)
def test_an_option_that_its_release_does_not_know(node, version, allowed):
    world = node(
        NONE,
        STATIC
        + "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true', full-pcpus-only: 'true'}\n",
        healthy=True,
    )
    world.documents["w1"]["collectors"]["pinning"]["data"]["kubelet_version"] = version
    steps = planned(world)
    assert {step.allowed for step in steps} == {allowed}
    assert (
        allowed
        or "KM506): cpuManagerPolicyOptions strict-cpu-reservation not known to Kubernetes 1.31"
        in steps[0].blocked_by
    )


@pytest.mark.parametrize(
    ("version", "options", "gates", "why"),
    [
        (
            "v1.32.4",
            "strict-cpu-reservation: 'true'",
            "",
            (
                "strict-cpu-reservation alpha in Kubernetes 1.32, and the feature gate"
                " CPUManagerPolicyAlphaOptions"
            ),
        ),
        (
            "v1.32.4",
            "strict-cpu-reservation: 'true'",
            "featureGates: {CPUManagerPolicyAlphaOptions: false}\n",
            "alpha in Kubernetes 1.32",
        ),
        (
            "v1.32.4",
            "strict-cpu-reservation: 'true'",
            "featureGates: {CPUManagerPolicyAlphaOptions: true}\n",
            "",
        ),
        ("v1.32.4", "strict-cpu-reservation: 'true'", "featureGates: {AllAlpha: true}\n", ""),
        ("v1.30.1", "distribute-cpus-across-numa: 'true'", "", "alpha in Kubernetes 1.30"),
        ("v1.33.0", "distribute-cpus-across-numa: 'true'", "", ""),
        ("v1.36.0", "align-by-socket: 'true'", "", "alpha in Kubernetes 1.36"),
        ("v1.37.0", "align-by-socket: 'true'", "", ""),
        (
            "v1.32.0",
            "strict-cpu-reservation: 'true'",
            "featureGates: {CPUManagerPolicyAlphaOptions: false, AllAlpha: true}\n",
            "alpha in Kubernetes 1.32",
        ),
        (
            "v1.36.3",
            "align-by-socket: 'true'",
            "topologyManagerPolicy: single-numa-node\nfeatureGates: {AllAlpha: true}\n",
            "align-by-socket excluded by the topologyManagerPolicy single-numa-node",
        ),
        ("v1.30.1", "full-pcpu-only: 'true'", "", "full-pcpu-only not known to Kubernetes 1.30"),
        ("v1.37.0", "newer: 'true'", "", ""),
        ("v1.30.1", "full-pcpus-only: 'yes'", "", "full-pcpus-only: yes neither true nor false"),
        ("v1.30.1", "full-pcpus-only: 'T'", "", ""),
        (None, "align-by-socket: 'true'", "", ""),
    ],
)
def test_options_with_which_no_kubelet_of_its_release_starts_are_told_before_the_drain(
    node, version, options, gates, why
):
    world = node(NONE, STATIC + gates + f"cpuManagerPolicyOptions: {{{options}}}\n", healthy=True)
    world.documents["w1"]["collectors"]["pinning"]["data"]["kubelet_version"] = (
        version and f"Kubernetes {version}"
    )
    steps = planned(world)
    assert steps
    assert all(step.allowed == (not why) and why in (step.blocked_by or "") for step in steps)


@pytest.mark.parametrize(
    ("config", "argv", "why"),
    [
        (
            "systemReservedCgroup: /system.slice\n",
            (),
            "reservedSystemCPUs: 0; it excludes systemReservedCgroup: /system.slice",
        ),
        (
            "{}\n",
            ("--kube-reserved-cgroup=/kube",),
            "reservedSystemCPUs: 0; it excludes --kube-reserved-cgroup=/kube",
        ),
        ("systemReservedCgroup: ''\n", (), ""),
    ],
)
def test_cpus_are_not_reserved_by_a_list_beside_a_cgroup_and_that_is_told_before_the_drain(
    node, config, argv, why
):
    """A kubelet of every release refuses both of them together, in any file or flag."""
    world = node(NONE, config, healthy=True)
    world.data("w1", "kubelet")["argv"] = ["kubelet", *argv]
    steps = wished(world, {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"})
    assert steps, steps
    assert all(step.allowed == (not why) and why in (step.blocked_by or "") for step in steps), (
        steps
    )


def test_a_setting_of_the_command_line_is_somebody_elses(node):
    world = node(NONE, "{}\n", healthy=True)
    world.data("w1", "kubelet")["argv"] = ["kubelet", "--cpu-manager-policy=none"]
    (step,) = wished(world, {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"})
    assert not step.allowed
    assert "change it where the unit is made" in step.blocked_by


@pytest.mark.parametrize(("text", "present"), [(NONE, True), (state(), False)])
def test_what_was_lent_and_nothing_calls_for_any_more(node, text, present):
    """The operator has set the configuration right.

    No run needs the drop-in then, which is there until a reboot.
    """
    world = node(text, "cpuManagerPolicy: none\n", healthy=True)
    world.documents["w1"]["collectors"]["journal"] = {"status": "ok", "data": {"levels": []}}
    kubelet = world.data("w1", "kubelet")
    kubelet["unit"]["environment_files"] = [
        {"path": kubelet_dropin.ENVIRONMENT, "text": "# adds: --cpu-manager-policy=none\n"}
    ]
    documents = world.documents
    result, found = fault_engine.evaluate_clusters([*documents.values(), world.api])
    assert [item.host for item in result.findings if item.code == "KM903"] == (
        ["w1"] if present else []
    )
    steps = plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        plan.Consent(1),
        {**control_plane.REMEDIES, **maintenance.REMEDIES, **cpu_manager_reset.REMEDIES},
        fault_engine.KEY_DIGITS,
    )
    assert [(step.remedy, step.risk, step.allowed) for step in steps] == (
        [("unlend", 1, True)] if present else [(one, 3, False) for one in ALL[1:]]
    )


def test_options_that_the_policy_none_does_not_take_cannot_be_lent(node):
    (step,) = planned(node(NONE, STATIC + "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n"))
    assert "no kubelet takes up with cpuManagerPolicyOptions" in step.blocked_by
    assert step.expect["down"]


def test_a_kubelet_that_could_be_lent_something_and_is_not_to_be(node):
    """Where the lending fails on the node, for whatever reason, the operator has a way on."""
    (step,) = planned(node(NONE), "reset_without_drain")
    assert step.remedy == "reset_state"
    assert step.allowed
    assert step.expect["down"]
    assert "nothing is drained" in step.note


def test_what_else_a_start_would_load_is_told_before_the_drain(node):
    world = node(NONE, healthy=True)
    world.data("w1", "kubelet")["process"] = {
        "pid": 5,
        "started_at": 100.0,
        "exe": "/usr/bin/kubelet",
        "exe_deleted": True,
    }
    assert all(
        "its program /usr/bin/kubelet was replaced" in step.blocked_by for step in planned(world)
    )
    assert all(step.allowed for step in planned(world, "pending_changes"))


def test_every_kubelet_that_is_down_is_started_before_one_is_drained(node):
    world = node(NONE)
    for name in ("kubelet", "pinning"):
        world.documents["m2"]["collectors"][name] = copy.deepcopy(
            world.documents["w1"]["collectors"][name]
        )
    steps = planned(world, "single_control_plane")
    assert [(step.host, step.remedy) for step in steps] == [
        ("m2", "start_former"),
        ("w1", "start_former"),
        ("m1", "drain"),
        ("m2", "reset_state"),
        ("m1", "uncordon"),
        ("m1", "drain"),
        ("w1", "reset_state"),
        ("m1", "uncordon"),
    ]
    assert [step.node for step in steps[2:]] == ["m2"] * 3 + ["w1"] * 3


def test_masters_that_limit_leaves_out_are_asked_to_drain(node):
    """As a role for this one host: nothing of m1 changes but its journal."""
    world = node(NONE, healthy=True)
    world.silence("m1", "not_asked")
    steps = planned(world)
    assert [(step.host, step.remedy, step.allowed) for step in steps] == [
        ("m1", "drain", True),
        ("w1", "reset_state", True),
        ("m1", "uncordon", True),
    ]


def test_no_kubelet_of_a_master_is_stopped_beside_one_that_was_not_looked_at(node):
    world = node(NONE, healthy=True)
    for name in ("kubelet", "pinning"):
        world.documents["m2"]["collectors"][name] = copy.deepcopy(
            world.documents["w1"]["collectors"][name]
        )
    world.documents["w1"]["collectors"]["pinning"] = {"status": "absent", "data": None}
    assert all(step.allowed for step in planned(world))
    world.silence("m1", "not_asked")
    assert all(
        "m1 was not looked at" in step.blocked_by and "single_control_plane" in step.blocked_by
        for step in planned(world)
    )
    assert all(step.allowed for step in planned(world, "single_control_plane"))
    world.documents.pop("m1")  # nor beside one that is in no inventory
    assert all("was not looked at" in step.blocked_by for step in planned(world))


def test_an_interrupted_reset_may_be_ended_although_the_kubelet_is_down(node):
    """On a node with static pods nothing else is done without a kubelet."""
    world = node(NONE)
    world.documents["m2"]["collectors"]["kubelet"] = copy.deepcopy(
        world.documents["w1"]["collectors"]["kubelet"]
    )
    for component, allowed in (("kubelet", True), ("kube-scheduler", False)):
        world.documents["m2"]["collectors"]["journal"] = {
            "status": "ok",
            "data": {
                "levels": [],
                "unproven": [
                    {
                        "run_id": "r",
                        "step": "s",
                        "component": component,
                        "path": "/x",
                        "running": False,
                    }
                ],
            },
        }
        result, found = fault_engine.evaluate_clusters([*world.documents.values(), world.api])
        steps = plan.plan(
            result.findings,
            found,
            world.documents.__getitem__,
            plan.Consent(2),
            {**control_plane.REMEDIES, **maintenance.REMEDIES},
            fault_engine.KEY_DIGITS,
        )
        assert [step.allowed for step in steps if step.remedy == "recover"] == [allowed]


@pytest.mark.parametrize(
    ("age", "config", "remedies_"), [(3, STATIC, ALL), (60, STATIC, ALL[1:]), (3, "{}\n", ALL[1:])]
)
def test_a_kubelet_that_its_state_ends_answers_for_a_moment(node, age, config, remedies_):
    """One that was just started over a state that fits it is as well as any other."""
    world = node(NONE, config, healthy=True)
    world.data("w1", "kubelet")["process"] = {"pid": 7, "started_at": 1000.0}
    world.data("w1", "system")["clock"] = 1000.0 + age
    assert [step.remedy for step in wished(world, {"reservedSystemCPUs": "1"})] == remedies_


def test_a_reset_that_was_interrupted_goes_on_once_its_kubelet_is_back(node):
    """Its state is moved out already: nothing could be lent, and nothing has to be."""
    world = node(None)
    world.documents["w1"]["collectors"]["pinning"]["data"]["cpu_state"] = None
    world.documents["w1"]["collectors"]["journal"] = {
        "status": "ok",
        "data": {
            "levels": [],
            "unproven": [
                {
                    "run_id": "20261121T090000Z-1a2b3c",
                    "step": "03-w1-kubelet-reset-state",
                    "component": "kubelet",
                    "path": "",
                    "running": False,
                }
            ],
        },
    }
    steps = wished(world, {"reservedSystemCPUs": "1"})
    assert [(step.remedy, step.allowed) for step in steps] == [
        (one, True) for one in ["recover", *ALL[1:]]
    ]
    assert not steps[2].expect["down"]
    # By then its kubelet has written a state again.
    assert steps[2].change["states"] == [
        f"{FOLDER}/cpu_manager_state",
        f"{FOLDER}/memory_manager_state",
    ]
    assert steps[2].expect["policies"] == {f"{FOLDER}/cpu_manager_state": "static"}


def test_the_plan_says_what_is_asked_for(node):
    steps = wished(
        node(NONE, "{}\n", healthy=True), {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
    )
    assert steps[1].note.startswith(
        "cpuManagerPolicy: static (was not set), reservedSystemCPUs: 0 (was not set); "
    )


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"{FOLDER}/config.yaml", "kubeletconfiguration patch"),
        (cpu_manager_reset.KUBESPRAY_FILE, "this host's variables"),
        ("/etc/own/kubelet.yaml", ""),
    ],
)
def test_who_would_write_a_changed_setting_anew_is_named_and_never_the_configmap_as_its_place(
    node, path, words
):
    world = node(NONE, "{}\n", healthy=True)
    world.data("w1", "kubelet")["config"]["path"] = path
    _drain, reset, _uncordon = wished(
        world, {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
    )
    assert words in reset.note
    assert ("writes it again" in reset.note) == bool(words)
    # nothing is changed there
    assert "writes it again" not in planned(node(NONE, healthy=True))[1].note


def test_a_pod_that_gets_other_cpus_is_named_once(node):
    world = node("")
    found = {
        "pod_uid": POD,
        "container_id": "d" * 64,
        "pid": 8,
        "static": False,
        "cpus": "0-3",
        "allowed": "0-3",
    }
    world.documents["w1"]["collectors"]["pinning"]["data"]["containers"] = [
        {**found, "pod": None, "name": None},
        {**found, "pod": "shop/db-0", "name": "app"},
    ]
    assert planned(world)[0].blocked_by.count("shop/db-0") == 1
    assert POD not in planned(world)[0].blocked_by


@pytest.mark.parametrize("healthy", [True, False])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"unschedulable": True}, "another client cordoned w1"),
        (
            {"unschedulable": True, "cordon": {"run": "r", "held": True}},
            "another client cordoned w1",
        ),
        (
            {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]},
            "carries the taint node.kubernetes.io/out-of-service",
        ),
        ({"name": "w1-gone"}, "the Node object of w1 is gone"),
    ],
)
def test_a_node_that_somebody_took_out_is_left_alone_before_anything_is_begun(
    node, healthy, change, why
):
    """The drain would be refused too.

    By then, however, a kubelet that is down would already be running for it.
    """
    world = node(NONE, healthy=healthy)
    next(
        one for one in world.api["collectors"]["nodes"]["data"]["items"] if one["name"] == "w1"
    ).update(change)
    for allow in ((), ("reset_without_drain",)):
        steps = planned(world, *allow)
        assert steps
        assert all(
            not step.allowed
            and why in step.blocked_by
            and "kubemend_allow=fenced" in step.blocked_by
            for step in steps
        )
    steps = planned(world, "fenced")
    assert all(step.allowed for step in steps)
    stays = "the cordon of w1 is another client's and stays\n"
    assert steps[-1].diff == (stays if "unschedulable" in change else "w1 takes pods again\n")


def test_a_cordon_of_a_run_of_ours_is_no_fence(node):
    world = node(NONE)
    next(
        one for one in world.api["collectors"]["nodes"]["data"]["items"] if one["name"] == "w1"
    ).update(unschedulable=True, cordon={"run": "r", "held": False})
    steps = planned(world)
    assert all(step.allowed for step in steps)
    assert steps[-1].diff == "w1 takes pods again\n"


@pytest.mark.parametrize(
    ("config", "allowed"), [(STATIC, False), (STATIC + "failSwapOn: false\n", True)]
)
@pytest.mark.parametrize("healthy", [True, False])
def test_swap_for_which_the_kubelet_would_not_start_again_is_told_before_the_drain(
    node, config, allowed, healthy
):
    world = node(NONE, config, healthy=healthy)
    world.documents["w1"]["collectors"]["swap"] = {
        "status": "ok",
        "data": {
            "swaps": "Filename Type Size Used Priority\n/swapfile file 65532 0 -2\n",
            "units": [],
            "container": False,
            "own": ["/swapfile"],
        },
    }
    steps = planned(world)
    assert steps
    assert {step.allowed for step in steps} == {allowed}
    assert allowed or all("swap is on at w1 (/swapfile)" in step.blocked_by for step in steps)
