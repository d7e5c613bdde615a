# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubelets of 1.14 to 1.36 refuse of what their managers are told: KM506, and no drain."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    refused_configuration,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    control_plane,
    cpu_manager_reset,
    services,
)
from tests.unit.support.fake_kubelet_configuration import ACCEPTED, REFUSED
from tests.unit.support.fake_kubelet_messages import (
    AGAIN,
    FAILED,
    HARMLESS,
    ended,
    failed,
    fatal,
    klog,
)

PROFILE = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=list(HealthCheck),
)
FILE = "/var/lib/kubelet/config.yaml"
NONE_STATE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
STATIC = "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n"
NEWEST, OLD = "v1.36.3", "v1.18.4"
LOOPS = {
    "name": "kubelet.service",
    **FAILED,
    "unit_file_state": "enabled",
    "n_restarts": 12,
    "exec_main_status": 1,
    "start_words": ["kubelet", "$X"],
    "split_variables": [["X", "--v=2"]],
    "environment_files": [],
    "need_daemon_reload": False,
}
MEMORY = "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n  limits: {memory: %s}\n"


def record(path, text):
    return {
        "path": path,
        "text": text,
        "masked": [],
        "error": None,
        "size": len(text or ""),
        "mtime": 0,
    }


@pytest.fixture
def told(world):
    """Tell w1 this. changed: after its kubelet started; lines: it is down, with this journal."""

    def make(
        config="",
        argv=(),
        release=NEWEST,
        dropins=(),
        changed=True,
        lines=None,
        numa=(0,),
        memory=8 << 30,
        state=NONE_STATE,
        memory_state=None,
    ):
        data = world.data("w1", "kubelet")
        files = [
            record(FILE, config),
            *(record(f"/etc/kubelet.d/{number}.conf", text) for number, text in enumerate(dropins)),
        ]
        for one in files:
            one["mtime"] = 200.0 if changed else 0
        data.update(config=files[0], config_dropins=files[1:], argv=["kubelet", *argv])
        data["process"] = {"pid": 1, "argv": ["kubelet"], "started_at": 100.0}
        if lines is not None:
            data.update(
                process=None, unit=dict(LOOPS), healthz={"status": None, "error": "refused"}
            )
            world.documents["w1"]["collectors"]["kubelet_end"] = {
                "status": "ok",
                "data": {"unit": "kubelet.service", "lines": lines},
            }
        world.documents["w1"]["collectors"]["pinning"] = {
            "status": "ok",
            "data": {
                "root_dir": "/var/lib/kubelet",
                "cpu_state": state and record("/var/lib/kubelet/cpu_manager_state", state),
                "cgroups": [],
                "memory_state": (
                    memory_state and record("/var/lib/kubelet/memory_manager_state", memory_state)
                ),
                "numa": list(numa),
                "memory_total": memory,
                "kubelet_version": release and f"Kubernetes {release}",
                "frozen": [],
                "runc": None,
                "pods": [],
                "containers": [],
                "cpus": {"online": "0-3", "topology": [[cpu, cpu, 0, 0] for cpu in range(4)]},
            },
        }
        return world

    return make


def found(world):
    return refused_configuration.read(
        copy.deepcopy(world.documents["w1"])
    )  # readings are remembered by identity


def judged(world):
    world.documents["w1"] = copy.deepcopy(world.documents["w1"])
    result = world.judge(
        faults=frozenset(
            (
                "KM301",
                "KM304",
                "KM305",
                "KM310",
                "KM502",
                "KM505",
                "KM506",
                "KM507",
                "KM510",
                "KM515",
                "KM516",
                "KM517",
            )
        )
    )
    return (
        {item.code: item.verdict for item in result.verdicts if item.host == "w1"},
        {item.code: item for item in result.findings if item.host == "w1"},
    )


def planned(world, *allow, wishes=None):
    documents = copy.deepcopy(world.documents)
    result, clusters = fault_engine.evaluate_clusters([*documents.values(), world.api])
    asked = (
        list(cpu_manager_reset.wishes(clusters, ["w1"], fault_engine.KEY_DIGITS))
        if wishes is not None
        else []
    )
    consent = plan.Consent(3, frozenset(allow), cpu_manager={"w1": wishes or {}})
    return plan.plan(
        [*result.findings, *asked],
        clusters,
        documents.__getitem__,
        consent,
        {**control_plane.REMEDIES, **cpu_manager_reset.REMEDIES, **services.REMEDIES},
        fault_engine.KEY_DIGITS,
    )


def of(*releases):
    return [f"v{release}.0" for release in releases]


@pytest.mark.parametrize(("config", "argv", "releases"), ACCEPTED)
def test_what_kubelets_take(told, config, argv, releases):
    for release in of(*(releases or "1.22 1.25 1.30 1.36").split()):
        numa = (
            (0, 1)
            if "1:memory" in " ".join(argv) or "--reserved-memory=1:" in " ".join(argv)
            else (0,)
        )
        result = found(told(config, argv, release, numa=numa))
        assert (result.refused, result.unsure) == ((), ()), release


@pytest.mark.parametrize(("config", "argv", "releases", "key", "why"), REFUSED)
def test_what_kubelets_refuse(told, config, argv, releases, key, why):
    for release in of(*releases.split()):
        world = told(config, argv, release)
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
def test_what_is_not_known_is_not_told_and_nothing_is_planned(told, config, release):
    memory = 8190 << 20
    world = told(config, release=release, memory=memory)
    result = found(world)
    if release == "?":  # as well with a release that no kubelet names
        assert result.refused
        return
    assert result.refused == ()
    assert result.unsure
    assert judged(world)[0]["KM506"] == "unknown"
    assert not any(step.allowed for step in planned(world, "force_reset", wishes={}))
    # A kubelet that is well and was started with these very files takes them.
    world = told(config, release=release, memory=memory, changed=False)
    assert found(world).unsure == ()
    assert judged(world)[0]["KM506"] == "clear"


def test_a_machine_that_is_not_known_is_not_told_of(told):
    world = told(MEMORY.replace("numaNode: 0", "numaNode: 1") % "100Mi")
    seen = world.data("w1", "pinning")
    seen.update(numa=None)
    assert found(world).refused == ()
    assert found(world).unsure
    world = told("reservedSystemCPUs: '9'\n")
    world.data("w1", "pinning")["cpus"]["online"] = None
    assert found(world).refused == ()
    assert found(world).unsure


def test_more_numa_nodes_than_a_topology_manager_takes(told):
    config = "topologyManagerPolicy: best-effort\n"
    assert found(told(config, numa=range(9))).of("topologyManagerPolicy")
    assert not found(told(config, numa=range(8))).refused
    assert not found(told("", numa=range(9))).refused
    assert not found(
        told(
            config + "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '9'}\n",
            numa=range(9),
        )
    ).refused


def test_a_drop_in_has_the_last_word_and_replaces_lists(told):
    (one,) = found(told("cpuManagerPolicy: none\n", dropins=["cpuManagerPolicy: Static\n"])).refused
    assert (one.settings[0].path, one.settings[0].line) == ("/etc/kubelet.d/0.conf", 1)
    assert not found(
        told("cpuManagerPolicy: Static\n", dropins=["cpuManagerPolicy: none\n"])
    ).refused
    assert not found(
        told("cpuManagerPolicy: Static\n", dropins=["cpuManagerPolicy: null\n"])
    ).refused
    assert not found(
        told(
            "enforceNodeAllocatable: [pods, kube-reserved]\n",
            dropins=["enforceNodeAllocatable: [pods]\n"],
        )
    ).refused
    assert not found(
        told(
            "enforceNodeAllocatable: [pods, kube-reserved]\n",
            dropins=["enforceNodeAllocatable: []\n"],
        )
    ).refused
    assert found(
        told(
            "enforceNodeAllocatable: [pods]\n",
            dropins=["enforceNodeAllocatable: [kube-reserved]\n"],
        )
    ).of("enforceNodeAllocatable")
    two = MEMORY % "50Mi" + "- numaNode: 1\n  limits: {memory: 50Mi}\n"
    assert not found(told(two, numa=(0, 1))).refused
    assert (
        "comes to 75Mi"
        in found(
            told(
                two,
                dropins=["reservedMemory: [{numaNode: 0, limits: {memory: 75Mi}}]\n"],
                numa=(0, 1),
            )
        ).why
    )


def test_the_finding_names_the_line_or_where_the_flag_stands(told):
    world = told("kind: KubeletConfiguration\n\ncpuManagerPolicy: Static\n")
    finding = judged(world)[1]["KM506"]
    assert (finding.evidence[0].path, finding.evidence[0].line, finding.evidence[0].text) == (
        FILE,
        3,
        "cpuManagerPolicy: Static",
    )
    assert f"{FILE}:3" in finding.summary
    assert f"{FILE}:3" in finding.remedy
    world = told("", ("--cpu-manager-policy=Static",))
    assert judged(world)[1]["KM506"].evidence[0].kind == "process"
    text = '# --cpu-manager-policy=no\nA="--v=2"\nB="--cpu-x= --cpu-manager-policy=Static"\n'
    world.data("w1", "kubelet")["unit"]["environment_files"] = [
        {"path": "/etc/default/kubelet", "text": text}
    ]
    first = judged(world)[1]["KM506"].evidence[0]
    assert (first.kind, first.path, first.line, first.text) == (
        "file",
        "/etc/default/kubelet",
        3,
        "--cpu-manager-policy=Static",
    )


def dead(text, status=1):
    return [*AGAIN, HARMLESS, text, *ended(status)]


UNKNOWN_POLICY = failed(r"failed to run Kubelet: unknown policy: \"%s\"")
OTHERS = ("KM505", "KM507", "KM510", "KM515", "KM516", "KM517")


@pytest.mark.parametrize(
    ("config", "line", "states"),
    [
        ("cpuManagerPolicy: Static\n" + "kubeReserved: {cpu: 1}\n", UNKNOWN_POLICY % "Static", {}),
        (
            "memoryManagerPolicy: static\n",
            UNKNOWN_POLICY % "static",
            {"memory_state": '{"policyName":"None"}'},
        ),
        (
            "memoryManagerPolicy: static\n",
            failed("failed to run Kubelet: something new"),
            {"memory_state": '{"policyName":"None"}'},
        ),
        (
            "cpuManagerPolicy: Static\n",
            failed("failed to run Kubelet: something new"),
            {"state": '{"policyName":"static","defaultCpuSet":"0-3"}'},
        ),
    ],
)
def test_a_refused_policy_is_why_and_its_state_is_not_blamed(told, config, line, states):
    """C02: the node was drained, and the reset rolled back."""
    world = told(config, lines=dead(line), **states)
    verdicts, findings = judged(world)
    assert verdicts["KM506"] == "present"
    assert verdicts["KM502"] == "not_applicable"
    assert {verdicts[code] for code in OTHERS} == {"clear"}
    assert not {"KM301", "KM310"} & set(findings)
    assert findings["KM506"].severity == "critical"
    assert "does not start" in findings["KM506"].summary
    assert [proof.kind for proof in findings["KM506"].evidence] == ["file", "unit", "log"]
    assert planned(world) == ()
    assert not any(
        step.allowed or step.remedy == "drain"
        for step in planned(world, "force_reset", "reset_without_drain", wishes={})
    )


def test_a_sum_that_is_wrong_stands_before_the_state(told):
    line = failed(
        r"failed to run Kubelet: the total amount \"1Gi\" of type \"memory\" is not equal to the "
        r"value \"300Mi\" determined by Node Allocatable feature"
    )
    world = told(
        MEMORY % "1Gi" + "kubeReserved: {memory: 200Mi}\n",
        lines=dead(line),
        memory_state='{"policyName":"None"}',
    )
    verdicts, findings = judged(world)
    assert verdicts["KM506"] == verdicts["KM310"] == "present"
    assert "it must be 300Mi" in findings["KM506"].summary
    assert "KM506" in findings["KM310"].remedy
    assert findings["KM506"].evidence[0].line == 4
    (step,) = planned(world, "reset_without_drain")
    assert step.remedy == "reset_state"
    assert "KM506" in step.blocked_by
    assert not step.allowed


CGROUP = (
    "enforceNodeAllocatable: [pods, kube-reserved]\nkubeReserved: {cpu: 100m}\n"
    "kubeReservedCgroup: /kubelet.slice\n"
)
LIMITS = (
    r'"Failed to start ContainerManager" err="Failed to enforce Kube Reserved Cgroup Limits on '
)


@pytest.mark.parametrize(
    "line",
    [
        klog(
            LIMITS + r"\"/kubelet.slice\": cgroup [\"kubelet\"] has some "
            r'missing paths: /sys/fs/cgroup/memory/kubelet.slice"'
        ),
        klog(LIMITS + r'\"/kubelet.slice\": [\"kubelet\"] cgroup does not exist"'),
        klog(LIMITS + r'\"/kubelet.slice\": Unit kubelet.slice is not loaded."'),
        klog(
            LIMITS
            + r"\"/kubelet.slice\": could not read controllers for cgroup [\"kubelet\"]: open "
            r'/sys/fs/cgroup/kubelet.slice/cgroup.controllers: no such file or directory"'
        ),
    ],
)
def test_a_cgroup_that_is_not_there_is_told_by_the_last_words(told, line):
    """C07."""
    world = told(CGROUP, lines=dead(line))
    verdicts, findings = judged(world)
    assert verdicts["KM506"] == "present"
    assert {verdicts[code] for code in OTHERS} == {"clear"}
    assert verdicts["KM502"] == "not_applicable"
    assert (findings["KM506"].evidence[0].path, findings["KM506"].evidence[0].line) == (FILE, 3)
    assert "kubeReservedCgroup: /kubelet.slice" in findings["KM506"].summary
    assert f"{FILE}:3" in findings["KM506"].summary
    assert "kube-reserved out of enforceNodeAllocatable" in findings["KM506"].remedy
    # By now it was corrected, and nobody has started the kubelet.
    _dummy, findings = judged(told("enforceNodeAllocatable: [pods]\n", lines=dead(line)))
    assert "does not say any more" in findings["KM506"].summary
    assert [proof.kind for proof in findings["KM506"].evidence] == ["unit", "log"]


def test_an_older_kubelets_words_of_a_cgroup(told):
    line = fatal(
        "Failed to start ContainerManager Failed to enforce Kube Reserved Cgroup Limits on "
        '"/kubelet.slice": ["kubelet"] cgroup does not exist'
    )
    world = told(CGROUP, lines=dead(line, 255), release=OLD)
    world.data("w1", "kubelet")["unit"]["exec_main_status"] = 255
    assert judged(world)[0]["KM506"] == "present"


def test_a_cgroup_that_is_not_there_now_forbids_a_drain_and_proves_nothing(told):
    """The kubelet's unit may make it; of one that is down, its own is gone."""
    world = told(CGROUP)
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


def test_a_kubelet_that_ended_of_something_else_is_not_drained_for_its_state(told):
    """Its state is of another policy too: the next obstacle, and no cure for this one."""
    state = failed(
        r"start cpu manager error: could not restore state from checkpoint: configured policy "
        r"\"static\" differs from state checkpoint policy \"none\", please drain this node and "
        r"delete the CPU manager checkpoint file \"/var/lib/kubelet/cpu_manager_state\" before"
    )
    assert [step.remedy for step in planned(told(STATIC, lines=dead(state)))] == [
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
            told(STATIC, lines=dead(failed("failed to run Kubelet: " + line))),
            "reset_without_drain",
        )
        assert step.remedy == "reset_state"
        assert not step.allowed
        assert "last log lines" in step.blocked_by
    (step,) = planned(told(STATIC, lines=[]))
    assert not step.allowed
    assert "last log lines are not known" in step.blocked_by


def test_one_that_was_stopped_after_it_had_died_of_something_else(told):
    world = told(STATIC, lines=dead(failed("failed to run Kubelet: something new")))
    world.data("w1", "kubelet")["unit"].update(
        active_state="inactive", sub_state="dead", result="success"
    )
    assert not any(step.remedy == "drain" for step in planned(world))
    world = told(STATIC, lines=[*AGAIN, HARMLESS])
    world.data("w1", "kubelet")["unit"].update(
        active_state="inactive", sub_state="dead", result="success"
    )
    assert any(step.remedy == "drain" for step in planned(world))


def test_no_start_is_planned_of_one_that_would_refuse_its_configuration(told):
    for config, allowed in (
        ("cpuManagerPolicy: Static\n", False),
        ("cpuManagerPolicy: none\n", True),
    ):
        world = told(config, lines=[*AGAIN, HARMLESS])
        world.data("w1", "kubelet")["unit"].update(
            active_state="inactive", sub_state="dead", result="success"
        )
        (step,) = [one for one in planned(world) if one.code == "KM502"]
        assert step.remedy == "start_kubelet"
        assert step.allowed == allowed
        assert ("KM506" in (step.blocked_by or "")) is not allowed


def test_a_wish_that_corrects_what_is_refused_is_planned_for_a_kubelet_that_runs(told):
    config = "cpuManagerPolicy: Static\nkubeReserved: {cpu: 1}\n"
    steps = planned(told(config), "pending_changes", wishes={"cpuManagerPolicy": "static"})
    assert [step.remedy for step in steps] == ["drain", "reset_state", "uncordon"]
    assert all(step.allowed for step in steps)
    assert not any(
        step.allowed
        for step in planned(told(config), "pending_changes", wishes={"reservedSystemCPUs": "0"})
    )


def test_a_kubelet_of_1_15_takes_an_unknown_policy_as_none(told):
    verdicts, _dummy = judged(told("cpuManagerPolicy: Static\n", release="v1.15.12"))
    assert verdicts["KM506"] == "clear"
    assert verdicts["KM301"] == "clear"


def test_a_configuration_that_cannot_be_read_is_not_judged(told):
    world = told("cpuManagerPolicy: Static\n", dropins=["a: ["])
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
def test_evidence_of_another_type_is_no_traceback(told, key, value, config):
    world = told(config + CGROUP)
    world.data("w1", "pinning")[key] = value
    assert isinstance(found(world), refused_configuration.Judged)


@PROFILE
@given(text=st.text(max_size=60), key=st.sampled_from(sorted(refused_configuration.FLAGS)))
def test_no_value_is_a_traceback(told, text, key):
    assert isinstance(found(told(f"{key}: {text}\n")), refused_configuration.Judged)
    assert isinstance(
        found(told("", (f"--{refused_configuration.FLAGS[key]}={text}",))),
        refused_configuration.Judged,
    )
