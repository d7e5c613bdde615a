# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of a pod: two pods of one Job told apart, order within a second, every source.

Data of any shape must not break it.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import timeline
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import Cluster
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Result
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.timeline import (
    Entry,
    Timeline,
    describe,
    of_clusters,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    json_report,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    text as report_text,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from tests.unit.support.facts import facts, facts_of_each

A, B, J = (
    "11111111-0000-0000-0000-00000000000a",
    "11111111-0000-0000-0000-00000000000b",
    "11111111-0000-0000-0000-00000000000c",
)
AT = "2026-11-21T20:01:%sZ"
SECOND = 1795291262.0  # 20:01:02
TEXT = (
    "Pod was rejected: Allocate failed due to requested number of devices unavailable for"
    " nvidia.com/gpu. Requested: 2, Available: 0, which is unexpected"
)
KLOG = "I1121 20:01:02.113402   14090 x.go:21] "


def pod(name, uid, **more):
    return {
        "namespace": "default",
        "name": name,
        "uid": uid,
        "created": AT % "02",
        "phase": "Running",
        "reason": None,
        "message": "",
        "node": "w1",
        "scheduler": "default-scheduler",
        "placed": True,
        "started": AT % "02",
        "finished_at": None,
        "deletion_requested": None,
        "finalizers": [],
        "requests": {"nvidia.com/gpu": 2},
        "asks": {"cpu": "100m", "nvidia.com/gpu": "2"},
        "conditions": [],
        "containers": [],
        "managers": [
            {
                "manager": "Go-http-client",
                "operation": "Update",
                "time": AT % "02",
                "subresource": None,
                "spec": False,
                "node": False,
            },
            {
                "manager": "kube-controller-manager",
                "operation": "Update",
                "time": AT % "02",
                "subresource": None,
                "spec": True,
                "node": True,
            },
        ],
        **more,
    }


def event(name, reason, message, kind="Pod", uid=A, at="02", **more):
    return {
        "kind": kind,
        "name": name,
        "uid": uid,
        "reason": reason,
        "message": message,
        "first": AT % at,
        "last": AT % at,
        "count": 1,
        "pod": None,
        "component": "kubelet",
        "host": "w1",
        "type": "Normal",
        **more,
    }


def case():
    running = {
        "name": "main",
        "init": False,
        "restarts": 0,
        "state": "running",
        "now": {"started": AT % "04"},
        "before": None,
    }
    conditions = [
        {"type": "PodScheduled", "status": "True", "time": AT % "02"},
        {"type": "Ready", "status": "True", "time": AT % "04"},
    ]
    return {
        "asked": "rejected",
        "namespace": "default",
        "name": "job-a-x7f2p",
        "uid": A,
        "siblings_total": 1,
        "pod": pod(
            "job-a-x7f2p",
            A,
            phase="Failed",
            reason="UnexpectedAdmissionError",
            message=TEXT,
            finished_at=AT % "02",
        ),
        "siblings": [pod("job-a-b9k1z", B, containers=[running], conditions=conditions)],
        "owner": {
            "kind": "Job",
            "namespace": "default",
            "name": "job-a",
            "uid": J,
            "state": "ok",
            "created": AT % "01",
            "deleted": None,
            "managers": [{"manager": "kubectl-create", "time": AT % "01", "spec": True}],
            "conditions": [
                {
                    "type": "Failed",
                    "status": "True",
                    "reason": "BackoffLimitExceeded",
                    "message": "Job has reached the specified backoff limit",
                    "time": AT % "05",
                }
            ],
        },
        "events": [
            event(
                "job-a",
                "SuccessfulCreate",
                "Created pod: job-a-b9k1z",
                "Job",
                J,
                pod="job-a-b9k1z",
                component="job-controller",
                host=None,
            ),
            event(
                "job-a",
                "SuccessfulCreate",
                "Created pod: job-a-x7f2p",
                "Job",
                J,
                pod="job-a-x7f2p",
                component="job-controller",
                host=None,
            ),
            event(
                "job-a-b9k1z",
                "Pulled",
                "Container image is already present",
                uid=B,
                at="03",
                count=3,
                last=AT % "04",
            ),
            event("job-a-x7f2p", "UnexpectedAdmissionError", TEXT),
        ],
    }


def captured(host, component, rest, fraction):
    return {
        "time": SECOND + fraction,
        "host": host,
        "component": component,
        "source": "s",
        "text": KLOG + rest,
    }


LINES = [
    captured("w1", "kubelet", f'SyncLoop (ADD, "api"): "job-a-x7f2p_default({A})"', 0.3),
    captured("m1", "kube-controller-manager", "Controller job-a created pod job-a-b9k1z", 0.1),
    captured("m2", "kube-controller-manager", "Controller job-a created pod job-a-x7f2p", 0.113402),
    captured("w1", "kubelet", f'SyncLoop (ADD, "api"): "job-a-b9k1z_default({B})"', 0.2),
]


def shown(found):
    return [(entry.where, entry.pod, entry.what) for entry in found]


def test_a_rejection_has_its_own_time():
    """A pod that was admitted again ran since long before."""
    data = case()
    data["pod"].update(started=AT % "00", rejected_at=AT % "09")
    told = {
        entry.what[:8]: entry.time
        for entry in timeline.timeline(data)
        if entry.where == "api" and entry.pod == "job-a-x7f2p"
    }
    assert told["rejected"] == SECOND + 7


def test_the_incident_at_a_glance():
    """Two controller managers, two pods of one Job.

    Who made which, which got the device, which was rejected.
    """
    found = timeline.timeline(case(), LINES)
    x, b = "job-a-x7f2p", "job-a-b9k1z"
    assert [(entry.where, entry.pod) for entry in found] == [
        ("api", ""),
        ("api", x),
        ("api", b),
        ("job-controller", b),
        ("job-controller", x),
        ("api", b),
        ("api", x),
        ("w1 kubelet", x),
        ("m1 kube-controller-manager", b),
        ("m2 kube-controller-manager", x),
        ("w1 kubelet", b),
        ("w1 kubelet", x),
        ("w1 kubelet", b),
        ("api", b),
        ("api", b),
        ("api", ""),
    ]
    asks = ("Job default/job-a", "nvidia.com/gpu 2", "w1")
    facts_of_each(
        (entry.what for entry in found),
        ("Job default/job-a", "created", "kubectl-create"),
        ("created", "kube-controller-manager", "m2", *asks),
        ("created", "kube-controller-manager", "m1", *asks),
        ("SuccessfulCreate", "Created pod: job-a-b9k1z"),
        ("SuccessfulCreate", "Created pod: job-a-x7f2p"),
        ("kubelet", "w1", "took it up"),
        ("rejected", "kubelet", "w1", "UnexpectedAdmissionError", TEXT),
        ("UnexpectedAdmissionError", TEXT),
        ("created", "job-a"),
        ("created", "job-a"),
        ("ADD",),
        ("ADD",),
        ("Pulled", "Container image is already present", "3 times", AT % "04"),
        ("container main", "started"),
        ("ready",),
        (
            "Job default/job-a",
            "Failed",
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
        ),
    )
    assert [found[place].what for place in (10, 11, 14)] == ["ADD", "ADD", "ready"]
    assert {entry.source for entry in found} == {"api", "event", "log"}
    assert found[1].detail == "asks for cpu 100m, nvidia.com/gpu 2"
    assert found[1].time == SECOND


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {
                "placed": False,
                "conditions": [{"type": "PodScheduled", "status": "True", "time": AT % "02"}],
            },
            "scheduled to w1 by default-scheduler",
        ),
        (
            {"placed": None},
            "node w1 (who named it is not recorded; schedulerName default-scheduler)",
        ),
        (
            {
                "node": None,
                "placed": False,
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/4 nodes",
                        "time": AT % "02",
                    }
                ],
            },
            "not scheduled: Unschedulable: 0/4 nodes",
        ),
        (
            {
                "deletion_requested": AT % "09",
                "grace": 30,
                "finalizers": ["batch.kubernetes.io/job-tracking"],
            },
            "deletion asked for, 30 s given to end; held by batch.kubernetes.io/job-tracking",
        ),
        ({"phase": "Succeeded", "finished_at": AT % "09"}, "succeeded"),
        (
            {
                "phase": "Failed",
                "reason": "Evicted",
                "message": "The node was low on memory",
                "finished_at": AT % "09",
            },
            "failed: Evicted: The node was low on memory",
        ),
        (
            {
                "containers": [
                    {
                        "name": "c",
                        "init": True,
                        "now": {
                            "started": AT % "03",
                            "finished": AT % "04",
                            "exit_code": 3,
                            "reason": "Error",
                        },
                        "before": None,
                    }
                ]
            },
            "init container c ended: exit code 3: Error",
        ),
        (
            {
                "containers": [
                    {
                        "name": "c",
                        "now": None,
                        "before": {"finished": AT % "04", "exit_code": 137, "reason": "OOMKilled"},
                    }
                ]
            },
            "container c ended (a former run): exit code 137: OOMKilled",
        ),
        (
            {
                "conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "EvictionByEvictionAPI",
                        "time": AT % "07",
                    }
                ]
            },
            "to be disrupted: EvictionByEvictionAPI",
        ),
        ({"managers": []}, "created for Job default/job-a; asks"),
    ],
)
def test_what_a_pod_tells_of_itself(change, text):
    data = {**case(), "pod": pod("job-a-x7f2p", A, **change), "events": []}
    assert any(
        text in entry.what and entry.pod == "job-a-x7f2p" for entry in timeline.timeline(data)
    )


def test_a_pod_that_is_no_more_is_told_by_events():
    data = {
        **case(),
        "pod": None,
        "siblings": [],
        "events": [
            event(
                "job-a-x7f2p",
                "Scheduled",
                "assigned",
                first="2026-11-21T20:01:02.113402Z",
                host="m1",
                component="default-scheduler",
            ),
            event("job-a-x7f2p", "Killing", "an older one", uid=B),
        ],
    }
    told = describe(data)
    facts(told.about, "Job default/job-a", "no more")
    assert told.pod == "default/job-a-x7f2p"
    assert shown(told.entries)[1:3] == [
        ("w1 kubelet", f"job-a-x7f2p (uid {B})", "event Killing: an older one"),
        ("m1 default-scheduler", "job-a-x7f2p", "event Scheduled: assigned"),
    ]
    assert (told.entries[2].time, told.entries[2].precision) == (SECOND + 0.113402, "us")


def test_siblings_that_are_no_more_are_recognised_in_the_logs():
    data = {
        **case(),
        "siblings": [],
        "events": [
            event(
                "job-a", "SuccessfulDelete", "Deleted pod: job-a-gone1", "Job", J, pod="job-a-gone1"
            )
        ],
    }
    assert ("w1 kubelet", "job-a-gone1", "DELETE") in shown(
        timeline.timeline(
            data,
            [
                captured(
                    "w1",
                    "kubelet",
                    '"SyncLoop DELETE" source="api" pods=["default/job-a-gone1"]',
                    0.5,
                )
            ],
        )
    )


def test_what_has_no_time_and_what_was_left_out_come_last():
    lines = [
        {**captured("w1", "kubelet", f"job-a-x7f2p {number}", 0.0), "time": None}
        for number in range(300)
    ]
    found = timeline.timeline(case(), lines)
    assert [entry.time for entry in found[-201:]] == [None] * 201
    assert found[-201].time is None
    assert found[-202].time is not None
    facts(found[-1].what, "100 more lines", "left out")


@pytest.mark.parametrize(
    ("stamp", "time", "precision"),
    [
        ("2026-11-21T20:01:02Z", SECOND, "s"),
        ("2026-11-21T21:01:02+01:00", SECOND, "s"),
        ("2026-11-21t20:01:02.5z", SECOND + 0.5, "us"),
        ("2026-11-21T20:01:02.123456789Z", SECOND + 0.123456789, "us"),
        ("2026-13-21T20:01:02Z", None, "s"),
        ("0001-01-01T00:00:00Z", None, "s"),
        ("9999-12-31T23:59:59.999999999-14:00", None, "s"),
        ("0001-01-01T00:00:00+14:00", None, "s"),
        ("", None, "s"),
        (7, None, "s"),
        (None, None, "s"),
    ],
)
def test_times_of_the_api(stamp, time, precision):
    entry = timeline.timeline({"events": [event("a", "r", "m", first=stamp)]})[0]
    assert (entry.time, entry.precision) == (time, precision)


def cluster(status="ok", data=None, **more):
    return Cluster("k", [], {"pod": {"status": status, "data": data, **more}}, api_status="ok")


def test_of_clusters():
    nobody = {"error": "the API knows no pod a/b; name it otherwise"}
    found, lacking = of_clusters(
        [cluster(data=case()), cluster("absent", **nobody), Cluster("other", [])], LINES
    )
    assert ([one.pod for one in found], lacking, len(found[0].entries)) == (
        ["default/job-a-x7f2p"],
        (),
        16,
    )
    made, notices = of_clusters([cluster("absent", **nobody)] * 2)
    assert made == ()
    facts_of_each(notices, ("no pod a/b",))
    assert of_clusters([cluster(data={"asked": "rejected", "name": None})]) == ((), ())
    facts_of_each(
        of_clusters([cluster(data=case(), truncated=True)])[1],
        ("default/job-a-x7f2p", "not complete"),
    )
    made, notices = of_clusters([cluster("timeout")])
    assert made == ()
    facts_of_each(notices, ("timeout",))


def run(*timelines):
    return Run("r", "s", "f", "observe", "/r", "0.1.0", timelines=timelines)


def test_the_report_for_programs():
    report = json_report.render(
        Result(),
        run(
            Timeline(
                "n/x",
                "x",
                "u",
                "about",
                (
                    Entry(SECOND + 0.113402, "us", "w1 kubelet", "x", "ADD", "log", "all of it"),
                    Entry(None, "s", "", "", "more", "log"),
                ),
            )
        ),
    )
    assert report["timelines"] == [
        {
            "pod": "n/x",
            "uid": "u",
            "entries": [
                {
                    "time": "2026-11-21T20:01:02.113402Z",
                    "where": "w1 kubelet",
                    "pod": "x",
                    "what": "ADD",
                    "source": "log",
                    "detail": "all of it",
                },
                {
                    "time": None,
                    "where": "",
                    "pod": "",
                    "what": "more",
                    "source": "log",
                    "detail": "",
                },
            ],
        }
    ]
    assert json_report.render(Result(), run())["timelines"] == []


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([AT % "02", "Pod", "True", "job-a-x7f2p", "n/a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted(
    {
        *case(),
        *case()["pod"],
        *case()["owner"],
        *event("a", "r", "m"),
        "type",
        "status",
        "time",
        "now",
        "before",
        "finished",
        "exit_code",
        "grace",
    }
)
SHAPE = st.recursive(
    JUNK,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=12,
)


@settings(deadline=None, database=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(KEYS), SHAPE), st.lists(JUNK, max_size=3))
def test_no_shape_of_evidence_makes_it_crash(data, lines):
    told = describe(data, lines)
    report_text.render(Result(), run(told))
    json.dumps(json_report.render(Result(), run(told)))
    of_clusters(
        [
            Cluster("k", [], {"pod": {"status": "ok", "data": data}}),
            Cluster("k", [], {"pod": data}),
        ],
        lines,
    )


@pytest.mark.parametrize("part", ["pod", "owner"])
@settings(deadline=None, database=None, derandomize=True)
@given(st.data())
def test_nor_does_one_wrong_value(part, data):
    wrong = case()
    where = wrong[part]
    where[data.draw(st.sampled_from(sorted(where)))] = data.draw(SHAPE)
    told = describe(wrong, LINES)
    report_text.render(Result(), run(told))
