# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of a kubelet's managers that it refuses, as a finding: places, last log lines, advice."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import known_message
from tests.unit.support.configured_kubelet import (
    FILE,
    MEMORY,
    OLD,
    configure,
    judged,
    planned,
)
from tests.unit.support.fake_kubelet_messages import (
    AGAIN,
    HARMLESS,
    ended,
    failed,
    fatal,
    klog,
)


@pytest.fixture
def configured(world):
    return configure(world)


def test_the_finding_names_the_line_or_where_the_flag_stands(configured):
    world = configured("kind: KubeletConfiguration\n\ncpuManagerPolicy: Static\n")
    finding = judged(world)[1]["KM506"]
    assert (finding.evidence[0].path, finding.evidence[0].line, finding.evidence[0].text) == (
        FILE,
        3,
        "cpuManagerPolicy: Static",
    )
    assert f"{FILE}:3" in finding.summary
    assert f"{FILE}:3" in finding.remedy
    world = configured("", ("--cpu-manager-policy=Static",))
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
def test_a_refused_policy_is_why_and_its_state_is_not_blamed(configured, config, line, states):
    """C02: the node was drained, and the reset rolled back."""
    world = configured(config, lines=dead(line), **states)
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


NO_SLICE = failed(
    r"Failed to enforce Kube Reserved Cgroup Limits on \"/system.slice/kubelet.service\": Unit"
    " kubelet.service.slice is not loaded"
)
TOO_MUCH = "kubeReservedCgroup: /system.slice/kubelet.service\nkubeReserved: {cpu: 90}\n"


def test_what_a_kubelet_refused_stands_before_what_it_would_refuse_then(configured):
    """Its last line is about one key, and another key has a value that it never came to."""
    world = configured("kind: KubeletConfiguration\n" + TOO_MUCH, lines=dead(NO_SLICE))
    found = judged(world)[1]["KM506"]
    cause, _then, rest = found.summary.partition("it would refuse then: ")
    assert ("kubeReservedCgroup" in cause, "kubeReserved.cpu" in cause) == (True, False)
    assert "kubeReserved.cpu: 90" in rest
    assert [proof.text.partition(":")[0] for proof in found.evidence if proof.kind == "file"] == [
        "kubeReservedCgroup",
        "kubeReserved.cpu",
    ]
    assert found.remedy.index("have that cgroup made") < found.remedy.index("correct kubeReserved ")


def test_a_sum_that_is_wrong_stands_before_the_state(configured):
    line = failed(
        r"failed to run Kubelet: the total amount \"1Gi\" of type \"memory\" is not equal to the "
        r"value \"300Mi\" determined by Node Allocatable feature"
    )
    world = configured(
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
def test_a_cgroup_that_is_not_there_is_told_by_the_last_words(configured, line):
    """C07."""
    world = configured(CGROUP, lines=dead(line))
    verdicts, findings = judged(world)
    assert verdicts["KM506"] == "present"
    assert {verdicts[code] for code in OTHERS} == {"clear"}
    assert verdicts["KM502"] == "not_applicable"
    assert (findings["KM506"].evidence[0].path, findings["KM506"].evidence[0].line) == (FILE, 3)
    assert "kubeReservedCgroup: /kubelet.slice" in findings["KM506"].summary
    assert f"{FILE}:3" in findings["KM506"].summary
    assert "kube-reserved out of enforceNodeAllocatable" in findings["KM506"].remedy
    # By now it was corrected, and nobody has started the kubelet.
    _dummy, findings = judged(configured("enforceNodeAllocatable: [pods]\n", lines=dead(line)))
    assert "does not say any more" in findings["KM506"].summary
    assert [proof.kind for proof in findings["KM506"].evidence] == ["unit", "log"]


@pytest.mark.parametrize(
    ("lack", "row"),
    [
        (
            "missing paths: /sys/fs/cgroup/cpuset/kubelet.slice",
            "reserved-cgroup-without-controllers",
        ),
        ("missing controllers: cpuset, hugetlb", "reserved-cgroup-not-handed-controllers"),
    ],
)
def test_a_cgroup_without_controllers_keeps_its_known_cause(configured, lack, row):
    """The place of the key is added to what is known of the message, and takes nothing away."""
    line = klog(LIMITS + r"\"/kubelet.slice\": cgroup [\"kubelet\"] has some " + lack + '"')
    known = known_message.find(("kubelet",), line)
    found = judged(configured(CGROUP, lines=dead(line)))[1]["KM506"]
    assert known.id == row
    assert known.cause in found.summary
    assert found.remedy.startswith(known.advice)
    assert f"{FILE}:3" in found.summary
    assert "there is no such cgroup;" not in found.summary


def test_an_older_kubelets_words_of_a_cgroup(configured):
    line = fatal(
        "Failed to start ContainerManager Failed to enforce Kube Reserved Cgroup Limits on "
        '"/kubelet.slice": ["kubelet"] cgroup does not exist'
    )
    world = configured(CGROUP, lines=dead(line, 255), release=OLD)
    world.data("w1", "kubelet")["unit"]["exec_main_status"] = 255
    assert judged(world)[0]["KM506"] == "present"


@pytest.mark.parametrize(
    ("config", "argv", "error", "line", "words"),
    [
        # A scalar, a value among several, a key below another one.
        (
            "kind: KubeletConfiguration\nmaxPods: -1\n",
            (),
            "failed to validate kubelet configuration, error: invalid configuration: maxPods"
            " (--max-pods) -1 must not be a negative number, path: x",
            2,
            "maxPods: -1",
        ),
        (
            "evictionHard: {memory.available: 120%}\n",
            (),
            "failed to run Kubelet: eviction percentage threshold 1.2 must be <= 100%: 120%",
            1,
            "120%",
        ),
        (
            "topologyManagerScope: Pod\ntopologyManagerPolicy: restricted\n",
            (),
            "failed to run Kubelet: invalid configuration: topologyManagerScope"
            r" (--topology-manager-scope) \"Pod\" must be one of: \"container\", or \"pod\"",
            1,
            "accepted values are container and pod",
        ),
        (
            "",
            ("--node-labels=a/b=c",),
            "failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified"
            " with --node-labels: [a/b] --node-labels in the 'kubernetes.io' namespace must begin"
            " with an allowed prefix (kubelet.kubernetes.io) or be in the specifically allowed set"
            " (kubernetes.io/arch)",
            None,
            "--node-labels=a/b=c",
        ),
    ],
)
def test_the_key_of_a_message_is_shown_where_it_stands(
    configured, config, argv, error, line, words
):
    world = configured(config, argv, lines=dead(failed(error)))
    verdicts, findings = judged(world)
    assert verdicts["KM506"] == "present"
    assert verdicts["KM502"] == "not_applicable"
    assert {verdicts[code] for code in OTHERS} == {"clear"}
    finding = findings["KM506"]
    assert words in finding.summary + finding.remedy
    assert finding.evidence[0].line == line
    assert planned(world) == ()
