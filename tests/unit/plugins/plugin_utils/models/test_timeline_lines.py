# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What captured lines of 1.18 to 1.36 tell of a pod.

Lines of other programs, odd shapes and floods must do no harm.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import timeline_lines
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.timeline_lines import (
    Names,
    read,
)
from tests.unit.support.facts import facts

A, B = "11111111-0000-0000-0000-00000000000a", "11111111-0000-0000-0000-00000000000b"
NAMES = Names(
    "n", ["job-a-x7f2p", "job-a-b9k1z"], {A: "job-a-x7f2p", B: "job-a-b9k1z", "": "nobody"}, "job-a"
)
KLOG = "I1121 20:01:02.113402   14090 x.go:21] "
KUBELET, SCHEDULER, MANAGER = "kubelet", "kube-scheduler", "kube-controller-manager"
TEXT = (
    "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested:"
    " 2, Available: 0, which is unexpected"
)
REFERENCE = (
    'v1.ObjectReference{Kind:"%s", Namespace:"n", Name:"%s", UID:"%s", APIVersion:"v1",'
    ' ResourceVersion:"1", FieldPath:""}'
)


def line(component, rest, time=1.5, host="w1"):
    return {
        "time": time,
        "host": host,
        "component": component,
        "source": "journal",
        "text": rest if rest.startswith("{") else KLOG + rest,
    }


def told(*lines):
    return [(entry.pod, entry.what) for entry in read(lines, NAMES).entries]


X = "job-a-x7f2p"


LINES_OF_PODS = [
    (KUBELET, f'SyncLoop (ADD, "api"): "{X}_n({A})"', "ADD"),
    (KUBELET, f'SyncLoop (ADD, "api"): "other_n(u), {X}_n({A})"', "ADD"),
    (
        KUBELET,
        f'SyncLoop (UPDATE, "api"): "{X}_n({A}):DeletionTimestamp=2026-11-21T20:01:32Z"',
        "UPDATE",
    ),
    (KUBELET, f'SyncLoop (DELETE, "api"): "{X}_n({A})"', "DELETE"),
    (KUBELET, f'SyncLoop (REMOVE, "api"): "{X}_n({A})"', "REMOVE"),
    (KUBELET, f'SyncLoop (RECONCILE, "api"): "{X}_n({A})"', "RECONCILE"),
    (KUBELET, f'SyncLoop (ADD, "file"): "{X}_n({A})"', "ADD from file"),
    (KUBELET, f'"SyncLoop ADD" source="api" pods=[n/{X}]', "ADD"),
    (KUBELET, f'"SyncLoop ADD" source="api" pods="[{X}_n({A})]"', "ADD"),
    (KUBELET, f'"SyncLoop DELETE" source="api" pods=["n/other","n/{X}"]', "DELETE"),
    (
        KUBELET,
        '{"ts":1500.5,"caller":"x.go:1","msg":"SyncLoop'
        f' REMOVE","v":2,"source":"api","pods":[{{"name":"{X}","namespace":"n"}}]}}',
        "REMOVE",
    ),
    (
        KUBELET,
        (
            f'SyncLoop (PLEG): "{X}_n({A})", event: &pleg.PodLifecycleEvent{{ID:"{A}",'
            ' Type:"ContainerStarted", Data:"c"}'
        ),
        "PLEG: ContainerStarted",
    ),
    (
        KUBELET,
        (
            f'"SyncLoop (PLEG): event for pod" pod="n/{X}" event=&{{ID:{A} Type:ContainerDied'
            " Data:c}"
        ),
        "PLEG: ContainerDied",
    ),
    (
        KUBELET,
        (
            f'"SyncLoop (PLEG): event for pod" pod="n/{X}"'
            f' event={{"ID":"{A}","Type":"ContainerDied","Data":"c"}}'
        ),
        "PLEG: ContainerDied",
    ),
    (
        KUBELET,
        f'Needs to allocate 2 "nvidia.com/gpu" for pod "{A}" container "main"',
        "needs 2 nvidia.com/gpu for container main",
    ),
    (
        KUBELET,
        (
            '"Need devices to allocate for pod" deviceNumber=2 resourceName="nvidia.com/gpu"'
            f' podUID="{A}" containerName="main"'
        ),
        "needs 2 nvidia.com/gpu for container main",
    ),
    (
        KUBELET,
        (
            'Found pre-allocated devices for resource nvidia.com/gpu container "main" in Pod'
            f' "{A}": [gpu-0 gpu-1]'
        ),
        "has nvidia.com/gpu already: [gpu-0 gpu-1]",
    ),
    (
        KUBELET,
        (
            '"Found pre-allocated devices for resource on pod" resourceName="nvidia.com/gpu"'
            f' containerName="main" podUID="{A}" devices=["gpu-0"]'
        ),
        'has nvidia.com/gpu already: ["gpu-0"]',
    ),
    (
        KUBELET,
        (
            '"Making allocation request for device plugin" devices=["gpu-0"]'
            f' resourceName="nvidia.com/gpu" pod="n/{X}" containerName="main"'
        ),
        'gets nvidia.com/gpu: ["gpu-0"]',
    ),
    (
        KUBELET,
        f"Failed to admit pod {X}_n({A}) - Update plugin resources failed due to x",
        "rejected: Update plugin resources failed due to x",
    ),
    (
        KUBELET,
        (f"Predicate failed on Pod: {X}_n({A}), for reason: Node didn't have enough resource: cpu"),
        "rejected: Node didn't have enough resource: cpu",
    ),
    (
        KUBELET,
        (
            f'"Pod admission denied" podUID="{A}" pod="n/{X}" reason="UnexpectedAdmissionError"'
            f' message="{TEXT}"'
        ),
        f"rejected: UnexpectedAdmissionError: {TEXT}",
    ),
    (
        KUBELET,
        (
            f"Event({REFERENCE % ('Pod', X, A)}): type: 'Warning' reason:"
            f" 'UnexpectedAdmissionError' {TEXT}"
        ),
        f"event UnexpectedAdmissionError: {TEXT}",
    ),
    (SCHEDULER, f"Attempting to schedule pod: n/{X}", "tries to schedule it"),
    (SCHEDULER, f'"Attempting to schedule pod" pod="n/{X}"', "tries to schedule it"),
    (SCHEDULER, f"About to try and schedule pod n/{X}", "takes it from the queue"),
    (SCHEDULER, f'"About to try and schedule pod" pod="n/{X}"', "takes it from the queue"),
    (
        SCHEDULER,
        (
            f'pod n/{X} is bound successfully on node "w1", 4 nodes evaluated, 1 nodes were'
            " found feasible."
        ),
        "bound to w1",
    ),
    (
        SCHEDULER,
        (
            f'"Successfully bound pod to node" pod="n/{X}" node="w1" evaluatedNodes=4'
            " feasibleNodes=1"
        ),
        "bound to w1",
    ),
    (
        SCHEDULER,
        f"Unable to schedule n/{X}: no fit: 0/4 nodes are available; waiting",
        "cannot be scheduled: no fit: 0/4 nodes are available; waiting",
    ),
    (
        SCHEDULER,
        f'"Unable to schedule pod; no fit; waiting" pod="n/{X}" err="0/4 nodes are available"',
        "cannot be scheduled: 0/4 nodes are available",
    ),
    (
        SCHEDULER,
        (f'"Unable to schedule pod; no nodes are registered to the cluster; waiting" pod="n/{X}"'),
        "cannot be scheduled: no nodes are registered to the cluster; waiting",
    ),
    (
        SCHEDULER,
        f"add event for scheduled pod n/{X}",
        "hears of it (add) as scheduled, as every standby does",
    ),
    (
        SCHEDULER,
        f'"Add event for unscheduled pod" pod="n/{X}"',
        "hears of it (add) as unscheduled, as every standby does",
    ),
    (MANAGER, f"Controller job-a created pod {X}", "created for job-a"),
    (
        MANAGER,
        f'"Controller created pod" controller="job-a" pod="n/{X}" logger="job-controller"',
        "created for job-a",
    ),
    (MANAGER, f"Controller job-a deleting pod n/{X}", "deletes it for job-a"),
    (
        MANAGER,
        f'"Deleting pod" logger="job-controller" controller="job-a" pod="n/{X}"',
        "deletes it for job-a",
    ),
    (
        MANAGER,
        (
            f"Event({REFERENCE % ('Job', 'job-a', 'u')}): type: 'Normal' reason:"
            f" 'SuccessfulCreate' Created pod: {X}"
        ),
        f"event SuccessfulCreate: Created pod: {X}",
    ),
    (
        MANAGER,
        (
            '"Event occurred" object="n/job-a" fieldPath="" kind="Job" apiVersion="batch/v1"'
            f' type="Normal" reason="SuccessfulDelete" message="Deleted pod: {X}"'
        ),
        f"event SuccessfulDelete: Deleted pod: {X}",
    ),
    (
        "kube-apiserver",
        (
            f'"HTTP" verb="DELETE" URI="/api/v1/namespaces/n/pods/{X}" latency="9ms"'
            ' userAgent="kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/1'
            ' job-controller" audit-ID="i" srcIP="10.0.0.2:41234" resp=200'
        ),
        (
            "DELETE by kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/1"
            " job-controller from 10.0.0.2:41234: 200"
        ),
    ),
    (
        KUBELET,
        f'"Killing container with a grace period" pod="n/{X}" podUID="{A}"',
        f'"Killing container with a grace period" pod="n/{X}" podUID="{A}"',
    ),
    (
        KUBELET,
        f"Generating status for /var/lib/kubelet/pods/{A}/etc-hosts",
        f"Generating status for /var/lib/kubelet/pods/{A}/etc-hosts",
    ),
]


@pytest.mark.parametrize(("component", "rest", "what"), LINES_OF_PODS)
def test_lines_of_every_generation(component, rest, what):
    assert told(line(component, rest)) == [(X, what)]


@pytest.mark.parametrize(
    ("rest", "stated"),
    [
        (
            'Too few pods running job "n/job-a", need 1, creating 1',
            ("too few", "1 needed", "creates 1"),
        ),
        (
            'Too many pods running job "n/job-a", need 1, deleting 1',
            ("too many", "1 needed", "deletes 1"),
        ),
        (
            '"Too few pods running" key="n/job-a" need=1 creating=1',
            ("too few", "1 needed", "creates 1"),
        ),
        (
            '"Too many pods running for job" job="n/job-a" deleted=1 target=1',
            ("too many", "1 needed", "deletes 1"),
        ),
        (
            (
                '"Event occurred" object="n/job-a" kind="Job" reason="Completed" message="Job'
                ' completed"'
            ),
            ("Completed", "Job completed"),
        ),
    ],
)
def test_lines_about_the_owner_are_nobodys(rest, stated):
    ((pod, what),) = told(line(MANAGER, rest))
    assert pod == ""
    facts(what, *stated)


@pytest.mark.parametrize(
    "rest",
    [
        f'"SyncLoop ADD" source="api" pods=["other/{X}"]',
        f'SyncLoop (ADD, "api"): "{X}_other(u)"',
        f'"SyncLoop ADD" source="api" pods=["n/{X}y"]',
        f'"SyncLoop ADD" source="api" pods=["n/a{X}","n/{X}-1","n/{X}.x"]',
        '"Finished syncing job" key="n/job-a"',
        '"Too few pods running" key="n/job-a-2"',
        'Needs to allocate 2 "nvidia.com/gpu" for pod "22222222" container "main"',
    ],
)
def test_other_pods_lines_are_not_kept(rest):
    assert told(line(KUBELET, rest)) == []


def test_devices_go_to_the_pod_that_needed_them_last_on_that_host():
    def needs(uid, time, host="w1", resource="nvidia.com/gpu"):
        return line(
            KUBELET,
            f'Needs to allocate 1 "{resource}" for pod "{uid}" container "main"',
            time,
            host,
        )

    def gets(devices, time, host="w1", resource="nvidia.com/gpu"):
        return line(
            KUBELET,
            f"Making allocation request for devices [{devices}] for device plugin {resource}",
            time,
            host,
        )

    assert told(
        gets("gpu-0", 2.0),
        needs(A, 1.0),
        needs("stranger", 3.0),
        gets("gpu-1", 4.0),
        needs(B, 5.0),
        gets("gpu-2", 6.0, "w2"),
        gets("x", 7.0, resource="x.example/d"),
        gets("gpu-3", 8.0),
        gets("gpu-4", 9.0),
    ) == [
        (X, "needs 1 nvidia.com/gpu for container main"),
        (X, "gets nvidia.com/gpu: [gpu-0]"),
        ("job-a-b9k1z", "needs 1 nvidia.com/gpu for container main"),
        ("job-a-b9k1z", "gets nvidia.com/gpu: [gpu-3]"),
    ]


def test_who_created_which_is_told_by_host():
    found = read(
        [
            line(MANAGER, f"Controller job-a created pod {X}", 1.0, "m1"),
            line(MANAGER, f"Controller job-a created pod {X}", 2.0, "m1"),
            line(
                MANAGER,
                '"Event occurred" object="n/job-a" kind="Job" reason="SuccessfulCreate"'
                ' message="Created pod: job-a-b9k1z"',
                2.0,
                "m2",
            ),
            line("kubelet", f"Controller job-a created pod {X}", 1.0, "w1"),
        ],
        NAMES,
    )
    assert found.creators == {X: ["m1"], "job-a-b9k1z": ["m2"]}
    assert [entry.where for entry in found.entries] == [
        "m1 kube-controller-manager",
        "w1 kubelet",
        "m1 kube-controller-manager",
        "m2 kube-controller-manager",
    ]


def test_a_flood_is_bounded_and_said():
    found = read(
        [line(KUBELET, f"{X} {number}") for number in range(500)]
        + [line(KUBELET, f'SyncLoop (ADD, "api"): "{X}_n({A})"', 9.0)],
        NAMES,
    )
    assert (len(found.entries), found.left_out) == (
        timeline_lines.MAX_OTHER + 1,
        300,
    )
    assert found.entries[-1].what == "ADD"
    found = read(
        [line(KUBELET, f'"SyncLoop UPDATE" source="api" pods=["n/{X}"]') for dummy in range(2000)],
        NAMES,
    )
    assert (len(found.entries), found.left_out) == (timeline_lines.MAX_KNOWN, 1000)


@pytest.mark.parametrize(
    ("time", "found", "precision"),
    [
        (1.25, 1.25, "us"),
        (7, 7.0, "s"),
        (None, None, "us"),
        ("1", None, "us"),
        (True, None, "s"),
        (float("nan"), None, "us"),
        (float("inf"), None, "us"),
        (-1.0, None, "us"),
        (10**400, None, "s"),
        (1e300, None, "us"),
    ],
)
def test_only_times_that_a_clock_can_show_count(time, found, precision):
    (entry,) = read(
        [line(KUBELET, f'"SyncLoop ADD" source="api" pods=["n/{X}"]', time)], NAMES
    ).entries
    assert (entry.time, entry.precision) == (found, precision)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([X, A, f'{KLOG}SyncLoop (ADD, "api"): "{X}"']),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(deadline=None, database=None, derandomize=True)
@given(
    st.lists(
        JUNK | st.fixed_dictionaries(dict.fromkeys(("time", "host", "component", "text"), JUNK))
    ),
    st.lists(st.text()),
    st.text(),
    st.text(),
)
def test_no_shape_makes_it_crash(lines, pods, namespace, owner):
    read(lines, NAMES)
    read(lines, Names(namespace, pods, dict.fromkeys(pods, "p"), owner))


@st.composite
def cut_lines(draw):
    """Return a known line without its last words, as a shortened log has it."""
    component, rest, _what = draw(st.sampled_from(LINES_OF_PODS))
    words = rest.split(" ")
    return line(component, " ".join(words[: draw(st.integers(0, len(words)))]))


@settings(deadline=None, database=None, derandomize=True)
@given(st.lists(cut_lines()))
def test_no_line_that_is_cut_short_makes_it_crash(lines):
    read(lines, NAMES)
