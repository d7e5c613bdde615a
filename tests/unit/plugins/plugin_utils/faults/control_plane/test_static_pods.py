# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM114: a component whose manifest is there and whose process is not, or never for long."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import (
    container_runtime,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import component_log
from tests.unit.support import known_rows
from tests.unit.support.facts import facts

SCHEDULER, MANAGER = "kube-scheduler", "kube-controller-manager"
CLOCK = 1_800_000_000.0
LOG = (
    "/var/log/pods/kube-system_kube-scheduler-m2_0123456789abcdef0123456789abcdef"
    "/kube-scheduler/7.log"
)
# v1.36.3 prints its usage, then this; 1.18.4 the same words behind "Error: ", and once more by klog
UNKNOWN = "Error: unknown shorthand flag: 'l' in -leader-elect=false"
# v1.18.4 and v1.36.3, of an image that is not there
KUBELET = (
    '2026-11-24T07:00:00+0000 m2 kubelet[7]: E1124 07:00:00.000000 7 pod_workers.go:1324] "Error'
    ' syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"kube-scheduler\\" with'
    ' ErrImageNeverPull" pod="kube-system/kube-scheduler-m2"'
)


def stop(world: Any, component: str = SCHEDULER) -> None:
    running = world.data("m2", "instances")["processes"]
    running[:] = [one for one in running if one["component"] != component]


def ended(world: Any, status: str = "ok", **more: Any) -> None:
    row = {
        "component": SCHEDULER,
        "running": False,
        "restart": 7,
        "path": LOG,
        "first": CLOCK - 30,
        "last": CLOCK - 29.5,
        "lines": [UNKNOWN],
        "kubelet": None,
    }
    data = {"components": [{**row, **more}]} if status == "ok" else None
    world.documents["m2"]["collectors"]["component_end"] = {"status": status, "data": data}


def found(world: Any) -> list[Any]:
    return [one for one in world.judge().findings if one.code == "KM114"]


def verdict(world: Any, host: str = "m2") -> str:
    said = [
        one.verdict for one in world.judge().verdicts if one.code == "KM114" and one.host == host
    ]
    return said[0] if said else "not judged"


def test_one_that_ends_at_each_start_is_told_with_its_last_word_while_others_lead(world):
    stop(world)
    ended(world)
    (one,) = found(world)
    assert (one.host, one.node, one.component, one.severity, one.because) == (
        "m2",
        "m2",
        SCHEDULER,
        "critical",
        (),
    )
    facts(one.summary, "manifest", "7 starts", UNKNOWN)
    assert [(proof.kind, proof.path) for proof in one.evidence] == [
        ("file", "/etc/kubernetes/manifests/kube-scheduler.yaml"),
        ("log", LOG),
    ]
    assert "/etc/kubernetes/manifests/kube-scheduler.yaml" in one.remedy
    assert "five minutes" in one.remedy


def test_the_argument_that_its_last_word_names_is_shown(world):
    stop(world)
    world.manifest("m2", SCHEDULER, "--leader-elect=true", "--lock-nmae=x", "--v=2")
    ended(world, lines=["Error: unknown flag: --lock-nmae"])
    assert found(world)[0].evidence[0].text == "- --lock-nmae=x"
    ended(world, lines=["panic: boom"])
    assert (
        found(world)[0].evidence[0].text
        == "asks for kube-scheduler --leader-elect=true --lock-nmae=x --v=2"
    )


@pytest.mark.parametrize(("second", "is_refused"), [("29", False), ("40", True)])
def test_a_container_that_the_kubelet_cannot_make_since_the_last_one_ended(
    world, second, is_refused
):
    stop(world)
    # CLOCK is 08:00:00 UTC of that day, so that the log ends at 07:59:30.
    line = KUBELET.replace("2026-11-24T07:00:00", f"2027-01-15T07:59:{second}")
    line = line.replace("ErrImageNeverPull", 'CreateContainerError: \\"no such runtime\\"')
    ended(world, kubelet=line)
    (one,) = found(world)
    assert ("no such runtime" in one.summary) is is_refused
    assert (UNKNOWN in one.summary) is not is_refused
    assert ("kubelet" in {proof.object for proof in one.evidence}) is is_refused


TWO_FLAGS = "--policy-configmap=sched --policy-configmap-namespace=kube-system"


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ('configmaps "sched --policy-configmap-namespace=kube-system" not found', True),
        ("Error: unknown flag: --lock-nmae", False),
    ],
)
def test_two_flags_in_one_argument_are_told_where_its_last_word_quotes_them(world, line, is_told):
    stop(world)
    world.manifest("m2", SCHEDULER, "--leader-elect=true", TWO_FLAGS)
    ended(world, lines=[line])
    (one,) = found(world)
    assert (TWO_FLAGS in one.summary) is is_told
    assert ("- --flag=value" in one.remedy) is is_told


@pytest.mark.parametrize(
    ("lines", "words", "line"),
    [
        (
            ["Error: unknown flag: --lock-nmae"],
            "kube-scheduler-arg in /etc/rancher/rke2/config.yaml:7",
            7,
        ),
        (["panic: boom"], "kube-scheduler-arg in /etc/rancher/rke2/config.yaml", None),
    ],
)
def test_with_rke2_the_key_is_named_that_has_the_flag(world, lines, words, line):
    stop(world)
    kubelet, path = world.data("m2", "kubelet"), "/etc/rancher/rke2/config.yaml"
    kubelet["unit"]["name"] = "rke2-server.service"
    rows = [
        {"line": 5, "key": "token", "value": None},
        {"line": 6, "key": "kube-apiserver-arg", "value": "lock-nmae=x"},
        {"line": 7, "key": "kube-scheduler-arg", "value": "lock-nmae=x"},
    ]
    files = [{"path": path, "error": None, "settings": rows}]
    kubelet["distribution"] = {"program": "rke2", "files": files}
    ended(world, lines=lines)
    (one,) = found(world)
    assert words in one.remedy
    assert "systemctl restart rke2-server.service" in one.remedy
    assert "five minutes" not in one.remedy
    assert [proof.line for proof in one.evidence if proof.path == path] == [line] * bool(line)


@pytest.mark.parametrize(
    ("rows", "folder"),
    [
        ([], "/var/lib/rancher/rke2/server/db/etcd"),
        ([{"line": 2, "key": "data-dir", "value": "/data/r"}], "/data/r/server/db/etcd"),
    ],
)
def test_a_removed_member_of_rke2_is_told_with_its_own_folder(world, rows, folder):
    stop(world, "etcd")
    world.manifest("m2", "etcd", "--name=m2")
    kubelet = world.data("m2", "kubelet")
    kubelet["unit"]["name"] = "rke2-server.service"
    files = [{"path": "/etc/rancher/rke2/config.yaml", "error": None, "settings": rows}]
    kubelet["distribution"] = {"program": "rke2", "files": files}
    lines = ["the member has been permanently removed from the cluster", "x: request cancelled"]
    ended(world, component="etcd", lines=lines)
    one = next(one for one in found(world) if one.component == "etcd")
    facts(one.summary, "7 starts", lines[0])
    assert f"move {folder} away, systemctl start rke2-server.service" in one.remedy


def test_one_that_never_began_is_told_with_the_kubelets_words(world):
    stop(world)
    ended(world, restart=None, path=None, first=None, last=None, lines=[], kubelet=KUBELET)
    (one,) = found(world)
    assert "but it does not start: " in one.summary
    assert "ErrImageNeverPull" in one.summary
    assert one.evidence[-1].object == "kubelet"
    assert "its image" in one.remedy


REFUSED = (
    'E1115 19:43:11.350411 2100 remote_runtime.go:116] "RunPodSandbox from runtime service failed"'
    ' err="rpc error: code = Unknown desc = failed to set /proc/self/attr/keycreate on procfs:'
    ' write /proc/self/attr/keycreate: invalid argument: unknown"'
)


@pytest.mark.parametrize(("own", "is_told"), [(None, True), (KUBELET, False)])
def test_why_no_pod_is_made_is_told_of_one_without_a_log(world, own, is_told):
    stop(world)
    ended(world, restart=None, path=None, first=None, last=None, lines=[], kubelet=own)
    file = {"path": "/var/lib/rancher/rke2/agent/logs/kubelet.log", "lines": [REFUSED]}
    record = {"status": "ok", "data": {"unit": None, "lines": [], "file": file}}
    world.documents["m2"]["collectors"]["kubelet_end"] = record
    (one,) = found(world)
    assert ("Known cause: SELinux refuses" in one.summary) is is_told
    assert (one.evidence[-1].text or "").endswith('unknown"') is is_told


@pytest.mark.parametrize("status", ["absent", "error", "timeout", "denied", "not_asked"])
def test_without_its_log_it_is_down_all_the_same(world, status):
    stop(world)
    ended(world, status)
    (one,) = found(world)
    assert one.summary.endswith("but it does not start")
    assert "journalctl -u kubelet" in one.remedy


def test_a_flag_that_does_not_parse_is_why(world):
    stop(world)
    world.manifest("m2", SCHEDULER, "--leader-elect=maybe")
    assert [one.because for one in found(world)] == [("KM105",)]


@pytest.mark.parametrize(
    ("age", "lived", "restart", "severity"),
    [
        (5, 0.5, 2, "critical"),
        (119, 9, 9, "critical"),
        (5, 0.5, 1, None),
        (5, 11, 9, "warning"),
        (121, 0.5, 9, "warning"),
        (5, None, 9, "warning"),
        (5, 0.5, None, None),
    ],
)
def test_one_that_is_alive_by_chance(world, age, lived, restart, severity):
    """Younger than two minutes, behind two others of which the last ended at once.

    Else it may still end again and again.
    """
    world.run("m2", SCHEDULER, "--leader-elect=true", elect=True, started_at=CLOCK - age)
    ended(
        world,
        running=True,
        restart=restart,
        first=CLOCK - 400,
        last=None if lived is None else CLOCK - 400 + lived,
    )
    assert [one.severity for one in found(world)] == ([severity] if severity else [])
    if severity:
        what = "ends again and again" if severity == "critical" else "restarts again and again"
        assert f"{what} ({restart} starts before)" in found(world)[0].summary
    else:
        assert verdict(world) == "clear"


LOST = [
    (
        'E1125 08:00:00.000000       1 leaderelection.go:441] "Failed to update lease" err="context'
        ' deadline exceeded"'
    ),
    (
        "I1125 08:00:05.000000       1 leaderelection.go:287] failed to renew lease"
        " kube-system/kube-scheduler: context deadline exceeded"
    ),
    "F1125 08:00:05.100000       1 server.go:264] leaderelection lost",
]


@pytest.mark.parametrize(
    ("age", "first", "restart", "lines", "uptime", "present"),
    [
        (30, 95, 241, LOST, None, True),
        (30, 95, 2, LOST, None, True),
        (30, 95, 2, LOST[:2], None, True),
        (30, 95, 1, LOST, None, False),  # at the second end it may be an accident
        (30, 2500, 241, LOST, None, False),  # once of late, however often in its life
        (2500, 2600, 241, LOST, None, False),  # not of late
        (30, 95, 241, ["I1125 quiet"], None, True),
        (30, 95, 5, ["I1125 quiet"], None, False),
        (30, 95, 241, LOST, 500.0, False),
        (30, 95, 241, LOST, 9000.0, True),  # behind a boot
    ],
)
def test_one_that_lives_on_for_a_while_each_time(
    world, age, first, restart, lines, uptime, present
):
    """It runs whenever somebody looks (C04).

    What counts is how often it began of late, not how long it lives.
    """
    world.run("m2", SCHEDULER, "--leader-elect=true", elect=True, started_at=CLOCK - age)
    if uptime is not None:
        world.data("m2", "system")["uptime_s"] = uptime
    ended(
        world,
        running=True,
        restart=restart,
        begun=CLOCK - 900000,
        first=CLOCK - first,
        last=CLOCK - age - 1,
        lines=lines,
    )
    assert [(one.severity, one.component) for one in found(world)] == [
        ("warning", SCHEDULER)
    ] * present
    assert verdict(world) == ("present" if present else "clear")
    for one in found(world):
        assert "starts before, the first at 20" in one.summary
        assert ("etcd" in one.remedy) is (lines != ["I1125 quiet"])


@pytest.mark.parametrize(
    ("changes"),
    [
        {"first": "soon"},
        {"restart": "many"},
        {"lines": "long"},
        {"lines": [7]},
        {"begun": ["x"]},
    ],
)
def test_a_log_with_a_value_of_another_type_is_unknown(world, changes):
    world.run("m2", SCHEDULER, "--leader-elect=true", elect=True, started_at=CLOCK - 30)
    sound = {"restart": 241, "begun": CLOCK - 900000, "first": CLOCK - 95, "lines": LOST}
    ended(world, running=True, last=CLOCK - 31, **{**sound, **changes})
    assert not found(world)
    assert verdict(world) == "unknown"


@pytest.mark.parametrize(
    "word",
    [
        "I1124 09:49:11.236742       1 shared_informer.go:1] Caches are synced for tokens",
        "attempting to acquire leader lease kube-system/kube-controller-manager...",
    ],
)
def test_one_that_somebody_ended_a_few_times_does_not_end_by_itself(world, word):
    """As after restarts in a row.

    It said nothing of its end (seen in a lab whose incidents restart components).
    """
    world.run("m2", SCHEDULER, "--leader-elect=true", elect=True, started_at=CLOCK - 5)
    ended(world, running=True, restart=2, first=CLOCK - 7, last=CLOCK - 6, lines=[word])
    assert not found(world)
    assert verdict(world) == "clear"


@pytest.mark.parametrize(
    ("status", "said"), [("error", "unknown"), ("absent", "clear"), ("not_asked", "not judged")]
)
def test_one_that_is_young_is_clear_only_where_somebody_looked(world, status, said):
    world.run("m2", SCHEDULER, "--leader-elect=true", elect=True, started_at=CLOCK - 5)
    ended(world, status)
    assert verdict(world) == said


@pytest.mark.parametrize(
    ("mtime", "kubelet", "said"),
    [
        (CLOCK - 59, CLOCK - 9000, "unknown"),
        (CLOCK - 61, CLOCK - 9000, "present"),
        (CLOCK - 9000, CLOCK - 179, "unknown"),
        (CLOCK - 9000, CLOCK - 181, "present"),
    ],
)
def test_what_has_still_to_start_is_unknown(world, mtime, kubelet, said):
    stop(world)
    world.manifest("m2", SCHEDULER, "--leader-elect=true", mtime=mtime)
    world.data("m2", "kubelet")["process"]["started_at"] = kubelet
    assert verdict(world) == said
    (note,) = [
        one.note or "" for one in world.judge().verdicts if one.code == "KM114" and one.host == "m2"
    ]
    assert (SCHEDULER in note) is (said == "unknown")


def test_a_manifest_that_was_moved_in_has_still_to_start(world):
    stop(world)
    old = CLOCK - 9000
    world.manifest("m2", SCHEDULER, "--leader-elect=true", mtime=old, ctime=CLOCK - 59)
    assert verdict(world) == "unknown"
    world.manifest("m2", SCHEDULER, "--leader-elect=true", mtime=old, ctime=CLOCK - 61)
    assert verdict(world) == "present"


def test_a_kubelet_that_is_down_is_the_fault_and_this_is_none(world):
    stop(world)
    world.data("m2", "kubelet").update(process=None, unit={"active_state": "inactive"})
    assert verdict(world) == "not_applicable"
    assert not found(world)


def test_a_kubelet_whose_healthz_is_switched_off_is_not_ill(world):
    """healthzPort: 0 is a wish."""
    stop(world)
    ended(world)
    world.data("m2", "kubelet")["healthz"] = {
        "url": None,
        "status": None,
        "body": None,
        "error": "switched off",
    }
    (one,) = found(world)
    assert one.summary.startswith(
        "its manifest is there and the kubelet runs, but it does not stay up"
    )


@pytest.mark.parametrize("collector", ["manifests", "instances"])
def test_what_was_not_read_is_unknown(world, collector):
    stop(world)
    world.documents["m2"]["collectors"][collector].update(status="denied", data=None)
    assert verdict(world) == "unknown"
    assert not found(world)


def test_a_manifest_that_was_not_read_is_unknown(world):
    record, *_rest = world.data("m2", "manifests")["files"]
    record.update(text=None, error="denied")
    assert verdict(world) == "unknown"
    stop(world, MANAGER)
    assert verdict(world) == "present", (
        "one that is proven to be down is so whatever else was not read"
    )


def test_a_component_whose_program_may_have_another_name_is_unknown_until_it_is_seen(world):
    record = next(
        one
        for one in world.data("m2", "manifests")["files"]
        if one["name"] == "kube-scheduler.yaml"
    )
    record["text"] = record["text"].replace("    - kube-scheduler\n", "    - /vendor/placer\n")
    assert verdict(world) == "clear"
    stop(world)
    assert verdict(world) == "unknown"


def test_an_instance_that_is_no_static_pod_does_not_stand_for_one(world):
    world.run("m2", SCHEDULER, "--leader-elect=true", elect=True, static=False)
    assert verdict(world) == "present"


def test_workers_have_none_and_silent_masters_are_unknown(world):
    world.silence("m2")
    assert (verdict(world, "w1"), verdict(world, "m2"), verdict(world, "m1")) == (
        "not_applicable",
        "unknown",
        "clear",
    )


@pytest.mark.parametrize(
    "row",
    [
        None,
        7,
        {
            "component": SCHEDULER,
            "restart": True,
            "first": "x",
            "last": [],
            "lines": [None, {}],
            "kubelet": 5,
            "path": 9,
        },
    ],
)
def test_a_row_of_another_shape_costs_its_words_only(world, row):
    stop(world)
    world.documents["m2"]["collectors"]["component_end"] = {
        "status": "ok",
        "data": {"components": [row]},
    }
    assert len(found(world)) == 1


@pytest.mark.parametrize(("component", "code"), [(SCHEDULER, "KM203"), (MANAGER, "KM511")])
def test_where_nobody_leads_it_is_why(world, component, code):
    for name in ("m1", "m2", "m3"):
        running = world.data(name, "instances")["processes"]
        running[:] = [one for one in running if one["component"] != component]
    for server in world.data("api", "locks")["servers"]:
        next(one for one in server["objects"] if one["name"] == component)["renew_time"] = (
            "2027-01-15T07:50:00.000000Z"
        )
    assert [one.because for one in world.judge().findings if one.code == code] == [("KM114",)]


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ([UNKNOWN, "Usage:", "      --vmodule moduleSpec  comma-separated"], UNKNOWN),
        (["I1124 x", UNKNOWN], UNKNOWN),
        ([UNKNOWN, "See usage"], UNKNOWN),
        (["one", "two"], "two"),
        ([], ""),
        (
            [
                'E1124 07:00:00.000000 1 run.go:72] "command failed" err="x"',
                "I1124 07:00:00.000000 1 a.go:1] bye",
            ],
            'E1124 07:00:00.000000 1 run.go:72] "command failed" err="x"',
        ),
        (
            ['{"level":"fatal","ts":"x","msg":"discovery failed"}', '{"level":"info"}'],
            '{"level":"fatal","ts":"x","msg":"discovery failed"}',
        ),
        (["F1124 07:00:00.000000 1 server.go:1] boom", "panic: x"], "panic: x"),
    ],
)
def test_the_last_word(lines, word):
    assert component_log.last_word(lines) == word


@pytest.mark.parametrize(("host", "because"), [("m2", ("KM114",)), ("m1", ())])
def test_one_that_is_down_with_the_api_server_of_its_node_is_a_consequence(world, host, because):
    """A scheduler exits when it loses its lock; the API server of another node is no reason."""
    stop(world)
    ended(world)
    server = "kube-apiserver"
    world.manifest(host, server, "--secure-port=6443")
    running = world.data(host, "instances")["processes"]
    running[:] = [one for one in running if one["component"] != server]
    told = {(one.host, one.component): one.because for one in found(world)}
    assert told == {(host, server): (), ("m2", SCHEDULER): because}


# apache/cloudstack#9418, tests/cases/002: the line with the cause is not the last one.
EXPIRED = (
    "W0719 09:12:44.118219       1 logging.go:59] [core] [Channel #1 SubChannel #2] grpc:"
    ' addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2379", ServerName:'
    ' "127.0.0.1", }. Err: connection error: desc = "transport: authentication handshake failed:'
    " tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current"
    ' time 2024-07-19T09:12:44Z is after 2024-05-26T08:19:00Z"'
)
LEASES = (
    "F0719 09:12:48.021774       1 instance.go:290] Error creating leases: error creating storage"
    " factory: context deadline exceeded"
)


def test_the_line_with_the_cause_is_told_and_the_last_one_too(world):
    server = "kube-apiserver"
    world.manifest("m2", server, "--secure-port=6443")
    stop(world, server)
    ended(world, component=server, lines=[EXPIRED, LEASES])
    (one,) = [item for item in found(world) if item.component == server]
    for words in ("certificate has expired", "its last line: Error creating leases"):
        assert words in one.summary
    assert [proof.text for proof in one.evidence if proof.kind == "log"] == [
        " ".join(EXPIRED.split())[:600],
        " ".join(LEASES.split()),
    ]
    assert "kubeadm certs check-expiration" in one.remedy


@pytest.mark.parametrize(
    ("line", "words", "remedy"),
    [
        (UNKNOWN, "refuses its configuration", "kube-scheduler.yaml"),
        (
            'E1124 07:00:00.000000 1 run.go:72] "command failed" err="failed to create listener:'
            " failed to listen on 0.0.0.0:10259: listen tcp 0.0.0.0:10259: bind: address already in"
            ' use"',
            "cannot listen",
            "ss -ltnp",
        ),
        (
            'E1124 07:00:00.000000 1 run.go:72] "command failed" err="stat'
            ' /etc/kubernetes/scheduler.conf: something new"',
            "something new",
            "kube-scheduler.yaml",
        ),
    ],
)
def test_the_class_of_the_last_line_is_told(world, line, words, remedy):
    stop(world)
    ended(world, lines=[line])
    (one,) = found(world)
    assert words in one.summary
    assert remedy in one.remedy


SOCKET = "F1124 1 main.go:85] listen unix /run/a.sock: bind: address already in use"


def test_a_panic_is_told_with_its_functions(world):
    stop(world)
    stack = ["panic: boom", "", "goroutine 1 [running]:", "k8s.io/x/queue.(*Queue).Add(0x1, 0x2)"]
    ended(world, lines=[*stack, "k8s.io/x/scheduler.Run(...)"])
    (hit,) = found(world)
    assert "panic: boom, in queue.(*Queue).Add, called by scheduler.Run" in hit.summary


def test_the_cause_of_a_known_message_is_told(world):
    stop(world)
    ended(world, lines=[SOCKET])
    (one,) = found(world)
    assert "Known cause: A file is at the place of its socket /run/a.sock" in one.summary
    assert one.remedy.startswith("ss -lxp on the node")


@pytest.mark.parametrize(
    ("changes", "release", "is_told"),
    [
        ({"lines": [SOCKET]}, "v1.30.1", False),
        ({"kubelet": SOCKET}, "v1.30.1", False),
        ({"kubelet": SOCKET}, None, True),
        ({"lines": [SOCKET, *["step"] * 3, "bye"]}, "v1.30.1", False),
    ],
)
def test_a_message_of_another_release_has_no_known_cause(
    world, monkeypatch, changes, release, is_told
):
    stop(world)
    ended(world, **changes)
    known_rows.of_a_later_release(monkeypatch)
    known_rows.give_kubelet(world.documents["m2"], release)
    (one,) = found(world)
    # a rule of any program may tell what the line means
    assert ("Known cause: A file is at the place" in one.summary) is is_told


@pytest.mark.parametrize(("is_broken", "because"), [(True, ("KM508",)), (False, ())])
def test_a_runtime_that_does_not_run_is_why(world, monkeypatch, is_broken, because):
    monkeypatch.setattr(container_runtime, "broken", lambda host, _document: is_broken)
    stop(world)
    ended(world, lines=[])
    (one,) = found(world)
    assert one.because == because


def test_a_runtime_is_not_why_one_ends_that_was_just_started(world, monkeypatch):
    monkeypatch.setattr(container_runtime, "broken", lambda host, _document: True)
    running = world.data("m2", "instances")["processes"]
    (process,) = [one for one in running if one["component"] == SCHEDULER]
    process["started_at"] = CLOCK - 5
    ended(world, restart=2, first=CLOCK - 5.5, last=CLOCK - 5)
    assert [one.because for one in found(world)] == [()]


DENIED = 'E1124 07:00:00.000000 1 run.go:74] "command failed" err="open /etc/x.conf: {}"'


@pytest.mark.parametrize(
    ("enforce", "error", "user", "is_told"),
    [
        ("1", "permission denied", "", True),
        ("1", "permission denied", "    securityContext:\n      runAsUser: 65532\n", False),
        ("1", "no such file or directory", "", False),
        ("0", "permission denied", "", False),
    ],
)
def test_a_file_that_selinux_denies_to_root(world, enforce, error, user, is_told):
    stop(world)
    ended(world, lines=[DENIED.format(error)])
    world.data("m2", "boot").update(selinux={"enforce": enforce, "config": "enforcing"})
    for record in world.data("m2", "manifests")["files"]:
        if record["name"] == f"{SCHEDULER}.yaml":
            record["text"] += user
    (one,) = found(world)
    assert ("SELinux enforces" in one.summary) is is_told
    assert ("container-selinux" in one.remedy) is is_told


def test_the_networks_that_contradict_each_other_are_shown(world):
    flags = ("--cluster-cidr=10.244.0.0/25", "--node-cidr-mask-size=24")
    stop(world, MANAGER)
    world.manifest("m2", MANAGER, "--leader-elect=true", *flags)
    line = "Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than"
    ended(world, component=MANAGER, lines=[f"F1015 1 x.go:1] {line} --node-cidr-mask-size"])
    (one,) = found(world)
    shown = one.summary.partition("Known cause")[2].partition("Its manifest has ")[2]
    assert shown == " ".join(flags)


PORT = "listen tcp 127.0.0.1:10259: bind: address already in use"
BESIDE = "next to an older one"


def run_since(world: Any, ago: float) -> int:
    """Let the scheduler of m2 run since so many seconds, and return its process."""
    running = world.data("m2", "instances")["processes"]
    (row,) = [one for one in running if one["component"] == SCHEDULER]
    row["started_at"] = CLOCK - ago
    return int(row["pid"])


def test_new_containers_that_end_beside_an_older_one_are_told_with_its_process(world):
    pid = run_since(world, 86400)
    ended(world, running=True, lines=[f"E1124 07:00:00.000000 1 run.go:74] {PORT}", PORT])
    assert found(world) == []  # that last line does not tell an exit
    last = f'E1124 07:00:00.000000 1 run.go:74] "command failed" err="{PORT}"'
    ended(world, running=True, lines=[last])
    (one,) = found(world)
    assert (one.component, one.severity) == (SCHEDULER, "critical")
    words = (BESIDE, PORT, f"process {pid} ", "2027-01-14T08:00:00Z", "has that port")
    assert [word for word in words if word not in one.summary] == []
    assert "crictl stop" in one.remedy


@pytest.mark.parametrize(
    ("ago", "more"),
    [
        (10, {}),  # the container that runs is the newest one
        (86400, {"restart": 1}),
        (86400, {"first": CLOCK - 90000, "last": CLOCK - 89999}),
        (86400, {"first": CLOCK - 9000, "last": CLOCK - 8999}),  # that was a while ago
        (86400, {"lines": ["I1124 07:00:00.000000 1 server.go:1] well"]}),  # its log was rotated
        (86400, {"first": None, "last": None}),
    ],
)
def test_a_component_that_runs_is_not_taken_for_an_older_one(world, ago, more):
    run_since(world, ago)
    last = f'E1124 07:00:00.000000 1 run.go:74] "command failed" err="{PORT}"'
    ended(world, running=True, **{"lines": [last], **more})
    assert [one for one in found(world) if BESIDE in one.summary] == []
