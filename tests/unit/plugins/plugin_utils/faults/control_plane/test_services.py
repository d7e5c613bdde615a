# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM116: a unit of the control plane that does not run, stay up, get ready or start at boot."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import CATALOGUE
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.control_plane import (
    services,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import message_class
from tests.unit.support import firewall_records

CLOCK = 1_800_000_000.0
STOPPED = "inactive dead"
# kubespray#11560, of etcd 3.5
REFUSED = (
    'etcd[77]: {"level":"fatal","ts":"2027-01-15T07:59:00.000Z","caller":"etcdmain/etcd.go:204",'
    '"msg":"discovery failed","error":"--initial-cluster has etcd1=https://192.0.2.200:2380 but'
    ' missing from --initial-advertise-peer-urls=https://198.51.100.100:2380 (a != b)"}'
)
# k3s#2853
SLOW = (
    'k3s[77]: {"level":"warn","ts":"2021-01-25T06:42:36.000+0100","caller":"wal/wal.go:806",'
    '"msg":"slow fdatasync","took":"7.454439372s","expected-duration":"1s"}'
)
LOST = "k3s[77]: F0125 06:42:41.911205      77 controllermanager.go:294] leaderelection lost"
EXITED = "systemd[1]: etcd.service: Main process exited, code=exited, status=1/FAILURE"
AGAIN = "systemd[1]: etcd.service: Scheduled restart job, restart counter is at 3."


def line(age: float, text: str) -> str:
    when = datetime.fromtimestamp(CLOCK - age, tz=timezone.utc)
    return f"{when:%Y-%m-%dT%H:%M:%S}+0000 m1 {text}"


def row(component: str = "etcd", state: str = "active running", **more: Any) -> dict[str, Any]:
    active, sub = state.split()
    name = f"{component}.service"
    return {
        "name": name,
        "component": component,
        "load_state": "loaded",
        "active_state": active,
        "sub_state": sub,
        "unit_file_state": "enabled",
        "result": "success",
        "n_restarts": 0,
        "fragment_path": f"/etc/systemd/system/{name}",
        "argv": [f"/usr/local/bin/{component}", "--v=2"],
        "environment_files": ["/etc/etcd.env"],
        "started_at": CLOCK - 90000,
        "begun_at": CLOCK - 90000,
        **more,
    }


def looping(component: str = "etcd", **more: Any) -> dict[str, Any]:
    text = [line(15, REFUSED), line(14, EXITED)]
    known = {"result": "exit-code", "exec_main_status": 1, "n_restarts": 6}
    return row(component, "activating auto-restart", **{**known, "lines": text, **more})


def give(world: Any, *rows: dict[str, Any], status: str = "ok", uptime: float = 90000.0) -> None:
    """Let the rows be the units of m1, and their components no static pods there."""
    components = {item["component"] for item in rows}
    processes = world.data("m1", "instances")["processes"]
    processes[:] = [item for item in processes if item["component"] not in components]
    files = world.data("m1", "manifests")["files"]
    files[:] = [item for item in files if item["name"].partition(".")[0] not in components]
    world.data("m1", "system")["uptime_s"] = uptime
    data = {"units": list(rows)} if status == "ok" else None
    world.documents["m1"]["collectors"]["component_units"] = {"status": status, "data": data}


def found(world: Any) -> list[Any]:
    return [item for item in world.judge(faults={"KM116"}).findings if item.code == "KM116"]


def verdicts(world: Any) -> list[str]:
    result = world.judge(faults={"KM116"})
    return [item.verdict for item in result.verdicts if item.host == "m1"]


def test_one_that_ends_at_each_start_is_told_with_its_line_and_the_class(world):
    give(world, looping())
    (finding,) = found(world)
    assert (finding.host, finding.component, finding.severity) == ("m1", "etcd", "critical")
    for words in ("etcd.service", "6 restarts", "discovery failed: --initial-cluster has"):
        assert words in finding.summary
    assert message_class.CLASSES["configuration"].clause in finding.summary
    assert "/etc/etcd.env" in finding.remedy
    assert [item.kind for item in finding.evidence] == ["unit", "log", "file"]
    assert finding.risk == 0


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({}, "critical"),
        ({"active_state": "failed", "sub_state": "failed"}, "critical"),
        ({"active_state": "failed", "sub_state": "failed", "lines": []}, "critical"),
        ({"active_state": "failed", "result": "start-limit-hit"}, "critical"),
        # it ended once, and systemd starts it again: an out of memory kill, or an upgrade
        ({"n_restarts": 0}, "warning"),
        ({"n_restarts": None, "said": [line(40, AGAIN), line(20, AGAIN)]}, "critical"),
    ],
)
def test_how_bad_it_is(world, changes, severity):
    give(world, looping(**changes))
    assert [item.severity for item in found(world)] == [severity]


# etcd 3.5, whose address comes up after it
NO_ADDRESS = (
    'etcd[77]: {"level":"fatal","ts":"2027-01-15T07:59:00.000Z","caller":"etcdmain/etcd.go:204",'
    '"msg":"discovery failed","error":"listen tcp 10.0.0.1:2380: bind: cannot assign requested'
    ' address"}'
)


@pytest.mark.parametrize(
    ("state", "uptime", "is_early"),
    [
        ("failed failed", 60.0, True),
        ("failed failed", 90000.0, False),  # it ended long after the boot
        ("activating auto-restart", 590.0, False),  # systemd starts it again
    ],
)
def test_one_that_was_started_before_its_address(world, state, uptime, is_early):
    text = [line(15, NO_ADDRESS), line(14, EXITED)]
    more = {"result": "exit-code", "exec_main_status": 1, "ended_at": CLOCK - 14}
    give(world, row(state=state, lines=text, **more), uptime=uptime)
    (finding,) = found(world)
    assert ("started at boot" in finding.summary) is is_early
    assert ("network-online.target" in finding.remedy) is is_early


def test_a_start_limit_has_to_be_reset(world):
    give(world, looping(active_state="failed", sub_state="failed", result="start-limit-hit"))
    assert "reset-failed etcd.service" in found(world)[0].remedy


def test_what_systemd_refuses_is_told(world):
    give(world, row(state="failed failed", result="exit-code", exec_main_status=203))
    path = {"setting": "ExecStart", "name": "/usr/local/bin/etcd", "state": "missing", "line": 4}
    path["path"] = "/etc/systemd/system/etcd.service"
    unit = {"name": "etcd.service", "load_state": "loaded", "active_state": "failed"}
    unit |= {"sub_state": "failed", "result": "exit-code", "exec_main_status": 203, "paths": [path]}
    world.documents["m1"]["collectors"]["unit_start"] = {"status": "ok", "data": {"units": [unit]}}
    (finding,) = found(world)
    assert "/usr/local/bin/etcd is missing" in finding.summary
    assert ("/etc/systemd/system/etcd.service", 4) in {
        (item.path, item.line) for item in finding.evidence
    }


@pytest.mark.parametrize(
    ("ages", "state", "severity"),
    [
        ((30000, 20000, 500), "active running", "warning"),
        ((500, 300, 100), "active running", "critical"),
        ((500, 300, 100), "activating start", "critical"),
        ((550, 400, 250), "active running", "warning"),  # it lives longer now
        ((30000, 20000, 3000), "active running", None),  # not of late
        ((300, 100), "active running", None),  # twice
        ((90000, 88000, 100), "active running", None),  # yesterday
    ],
)
def test_one_that_runs_and_ends_again_and_again(world, ages, state, severity):
    said = [line(age, AGAIN) for age in ages]
    give(world, row(state=state, n_restarts=9, started_at=CLOCK - 50, said=said), uptime=900000.0)
    assert [item.severity for item in found(world)] == ([severity] if severity else [])


def test_restarts_behind_a_boot_are_no_fault(world):
    said = [line(age, AGAIN) for age in (500, 300, 100)]
    give(world, row(n_restarts=3, started_at=CLOCK - 50, said=said), uptime=550.0)
    assert verdicts(world) == ["clear"]


def test_a_disk_that_is_too_slow_for_etcd_is_named(world):
    ended = EXITED.replace("etcd", "k3s").replace("status=1/FAILURE", "status=255/EXCEPTION")
    lines = [line(94, SLOW), line(92, LOST), line(91, ended)]
    said = [line(age, AGAIN) for age in (50000, 30000, 92)]
    unit = row("k3s", n_restarts=6, started_at=CLOCK - 90, said=said, lines=lines)
    world.data("m1", "kubelet")["unit"]["name"] = "k3s.service"
    give(world, unit, uptime=900000.0)
    (finding,) = found(world)
    for words in ("3 restarts", "leaderelection lost", "slow fdatasync", "7.454439372s"):
        assert words in finding.summary
    assert "faster" in finding.remedy


@pytest.mark.parametrize(
    ("age", "present"), [(60.0, False), (899.0, False), (901.0, True), (None, False)]
)
def test_one_that_does_not_become_ready(world, age, present):
    begun = None if age is None else CLOCK - age
    lines = [line(100, 'rke2[7]: time="x" level=error msg="Kubelet exited: exit status 1"')]
    unit = row("rke2", "activating start", name="rke2-server.service", begun_at=begun, lines=lines)
    world.data("m1", "kubelet")["unit"]["name"] = "rke2-server.service"
    give(world, unit)
    assert [item.severity for item in found(world)] == (["critical"] if present else [])
    assert all("Kubelet exited" in item.summary for item in found(world))
    assert all("/agent/logs/kubelet.log" in item.remedy for item in found(world))
    assert verdicts(world) == (["present"] if present else ["unknown"])


def test_a_flag_that_is_refused_before_the_usage_is_printed(world):
    """Of etcd 3.6, whose last line is one of its usage."""
    texts = ("flag provided but not defined: -data-dirr", "Usage:", "", "  etcd gateway", "    L7.")
    lines = [line(15, f"etcd[77]: {text}") for text in texts]
    give(world, looping(lines=[*lines, line(14, EXITED)], exec_main_status=2))
    (finding,) = found(world)
    assert "flag provided but not defined: -data-dirr" in finding.summary
    assert message_class.CLASSES["configuration"].clause in finding.summary


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"ended_at": CLOCK - 100}, "critical"),  # enabled, and stopped
        ({"begun_at": None, "started_at": None}, "critical"),  # enabled, and never started
        ({"unit_file_state": "disabled", "ended_at": CLOCK - 100}, "warning"),
        ({"unit_file_state": "disabled", "begun_at": None}, None),  # a leftover
        ({"unit_file_state": "masked", "load_state": "masked", "begun_at": None}, None),
        (
            {"unit_file_state": "masked", "load_state": "masked", "ended_at": CLOCK - 5},
            "warning",
        ),
    ],
)
def test_one_that_is_inactive(world, changes, severity):
    world.data("m1", "etcd")["api_server"] = None
    give(world, row(state=STOPPED, **changes))
    assert [item.severity for item in found(world)] == ([severity] if severity else [])
    if severity is None:
        assert verdicts(world) == ["not_applicable"]


def test_what_a_program_said_when_it_was_stopped_is_no_cause(world):
    """Of kube-scheduler 1.36.3, which logs this at each SIGTERM."""
    said = 'etcd[77]: I0115 07:59:10.980846 77 server.go:324] "Requested to terminate, exiting"'
    give(world, row(state=STOPPED, ended_at=CLOCK - 9, lines=[line(9, said)]))
    (finding,) = found(world)
    assert "Requested" not in finding.summary
    assert [item.kind for item in finding.evidence] == ["unit", "file"]
    assert "systemctl start etcd.service" in finding.remedy


def test_a_disabled_etcd_that_the_api_server_of_its_host_uses(world):
    give(world, row(state=STOPPED, unit_file_state="disabled", begun_at=None))
    assert [item.severity for item in found(world)] == ["warning"]


def test_an_etcd_that_only_a_unit_of_the_api_server_names(world):
    world.data("m1", "etcd")["api_server"] = None
    server = row("kube-apiserver", argv=["kube-apiserver", "--etcd-servers=https://10.0.0.1:2379"])
    give(world, row(state=STOPPED, unit_file_state="disabled", begun_at=None), server)
    assert [item.component for item in found(world)] == ["etcd"]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"unit_file_state": "disabled"}, 1),
        ({"unit_file_state": "disabled", "wanted_by": ["kubelet.service"]}, 0),
        ({"unit_file_state": "static"}, 0),
        ({"unit_file_state": "disabled", "name": "snap.microk8s.daemon-kubelite.service"}, 0),
    ],
)
def test_one_that_runs_and_does_not_start_at_boot(world, changes, count):
    give(world, row(**changes))
    hits = found(world)
    assert [item.severity for item in hits] == ["warning"] * count
    assert all("systemctl enable --no-reload etcd.service" in item.remedy for item in hits)


def test_a_leftover_beside_a_static_pod_is_no_fault(world):
    give(world, looping("kube-scheduler"))
    world.manifest("m1", "kube-scheduler", "--leader-elect=true")
    assert verdicts(world) == ["not_applicable"]


def test_a_leftover_beside_another_process_is_no_fault(world):
    give(world, looping())
    world.data("m1", "instances")["processes"].append(
        {"component": "etcd", "pid": 5, "argv": ["etcd"], "static": False, "container_id": "c"}
    )
    assert verdicts(world) == ["not_applicable"]


@pytest.mark.parametrize("component", ["k3s", "rke2", "k0s"])
def test_a_distribution_that_the_host_has_left_is_no_fault(world, component):
    """The host was installed again with kubeadm: its kubelet is kubelet.service."""
    give(world, row(component, STOPPED, begun_at=None))
    assert verdicts(world) == ["not_applicable"]


def test_the_unit_of_a_kubelet_that_does_not_run_is_left_to_km502(world):
    kubelet = world.data("m1", "kubelet")
    kubelet["unit"].update(
        name="k3s.service", active_state="failed", sub_state="failed", result="exit-code"
    )
    kubelet.update(process=None, argv_source="unit")
    give(world, row("k3s", "failed failed", result="exit-code", exec_main_status=1))
    assert verdicts(world) == ["not_applicable"]


@pytest.mark.parametrize("state", ["activating auto-restart", STOPPED])
def test_behind_a_boot_it_may_still_come(world, state):
    give(world, looping(active_state=state.split()[0], sub_state=state.split()[1]), uptime=100.0)
    assert verdicts(world) == ["unknown"]


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ("absent", ["not_applicable"]),
        ("error", ["unknown"]),
        ("timeout", ["unknown"]),
        ("denied", ["unknown"]),
        ("not_asked", []),
    ],
)
def test_without_its_evidence(world, status, verdict):
    give(world, status=status)
    assert verdicts(world) == verdict


def test_without_the_processes_it_is_unknown_whether_it_runs_otherwise(world):
    give(world, looping())
    world.documents["m1"]["collectors"]["instances"] = {"status": "denied", "data": None}
    assert verdicts(world) == ["unknown"]


def test_an_api_server_without_its_etcd_names_it(world):
    server = looping("kube-apiserver", lines=[line(9, "kube-apiserver[9]: Error: etcd is away")])
    give(world, looping(), server)
    because = {item.component: item.because for item in found(world)}
    assert because == {"etcd": (), "kube-apiserver": ("KM116",)}


def test_it_may_explain_a_cluster_without_writes():
    assert ("KM116", "etcd") in CATALOGUE["KM115"].explained_by
    assert ("KM115", None) not in CATALOGUE["KM116"].explained_by  # else neither names the other


def test_a_start_by_hand_ends_what_was_before(world):
    said = [line(age, AGAIN) for age in (300, 200, 100)]
    give(world, row(n_restarts=0, started_at=CLOCK - 50, said=said), uptime=900000.0)
    assert verdicts(world) == ["clear"]


EXPIRED = "systemd[1]: etcd.service: Service RestartSec=5s expired, scheduling restart."
HOLD_OFF = "systemd[1]: etcd.service holdoff time over, scheduling restart."


@pytest.mark.parametrize(
    ("texts", "ages", "restarts", "severity"),
    [
        ((EXPIRED, AGAIN), (300, 100), 2, None),  # systemd 235 to 242 logs both of one restart
        ((EXPIRED, AGAIN), (300, 100), 9, None),
        ((EXPIRED, AGAIN), (1500, 800, 700), 3, "warning"),
        ((HOLD_OFF,), (300, 100), None, None),
        ((HOLD_OFF,), (1500, 800, 700), None, "warning"),  # systemd 219
    ],
)
def test_a_restart_of_which_systemd_logs_two_lines_is_one(world, texts, ages, restarts, severity):
    said = [line(age, text) for age in ages for text in texts]
    give(world, row(n_restarts=restarts, started_at=CLOCK - 90, said=said), uptime=900000.0)
    assert [item.severity for item in found(world)] == ([severity] if severity else [])


@pytest.mark.parametrize(("restarts", "severity"), [(1, None), (2, None), (3, "warning")])
def test_what_was_before_a_start_by_hand_does_not_count(world, restarts, severity):
    said = [line(age, AGAIN) for age in (2000, 1500, 800, 700)]
    give(world, row(n_restarts=restarts, started_at=CLOCK - 90, said=said), uptime=900000.0)
    assert [item.severity for item in found(world)] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("component", "words", "clause"),
    [
        (
            "k3s",
            'k3s[77]: time="2022-09-05T23:36:37Z" level=fatal msg="starting kubernetes: preparing'
            ' server: bootstrap data already found and encrypted with different token"',
            "it refuses its configuration",
        ),
        # of the API server that runs in it
        (
            "kubelite",
            'kubelite[77]: E0905 23:36:37.000001      77 run.go:74] "command failed" err="loading'
            ' audit policy file: failed to read file path \\"/etc/audit.yaml\\": open'
            ' /etc/audit.yaml: permission denied"',
            "it cannot read or write a file or a folder",
        ),
    ],
)
def test_the_last_words_of_a_program_of_several_components(world, component, words, clause):
    ended = EXITED.replace("etcd", component)
    lines = [line(92, words), line(91, ended)]
    said = [line(age, AGAIN.replace("etcd", component)) for age in (50000, 30000, 92)]
    unit = row(component, n_restarts=6, started_at=CLOCK - 90, said=said, lines=lines)
    world.data("m1", "kubelet")["unit"]["name"] = f"{component}.service"
    give(world, unit, uptime=900000.0)
    (finding,) = found(world)
    assert clause in finding.summary


@pytest.mark.parametrize("port", ["2380", "10250"])
def test_a_firewall_that_keeps_etcd_from_its_peers_is_the_cause(world, port):
    text = (
        "etcd[7]: "
        '{"level":"warn","msg":"prober detected unhealthy status","remote-peer-id":"9d7ef3ca",'
        '"rtt":"0s","error":"dial tcp 10.0.0.2:2380: connect: no route to host"}'
    )
    give(world, looping(lines=[line(5, text)]))
    opened = f'<port port="{port}" protocol="tcp"/>'
    world.data("m1", "boot")["firewall"] = firewall_records.red_hat(opened)
    (finding,) = found(world)
    assert finding.because == (() if port == "2380" else ("KM527",))


def test_a_component_that_k0s_starts_again_and_again_is_named_with_its_line(world):
    error = r"E1031 08:00:02.1 77 run.go:72] \"command failed\" err=\"unknown flag: --no-such\""
    text = f'time="x1" level=info msg="{error}" component=kube-apiserver stream=stderr'
    lines = [line(9, f"k0s[7]: {text}"), line(8, 'k0s[7]: time="x1" level=info msg="respawning"')]
    starting = {"begun_at": CLOCK - 2000, "lines": lines}
    world.documents["m1"]["collectors"]["kubelet"] = {"status": "absent", "data": None}
    give(world, row("k0s", "activating start", **starting))
    (finding,) = found(world)
    assert "command failed: unknown flag: --no-such" in finding.summary
    assert message_class.CLASSES["configuration"].clause in finding.summary


def test_a_key_of_k3s_that_it_refuses_is_named_with_its_line(world):
    error = r"apiserver exited: unknown flag: --no-such"
    lines = [
        line(95, f'k3s[77]: time="2027-01-15T07:58:25Z" level=fatal msg="{error}"'),
        line(94, EXITED.replace("etcd", "k3s")),
    ]
    said = [line(age, AGAIN.replace("etcd", "k3s")) for age in (900, 500, 93)]
    unit = row("k3s", n_restarts=6, started_at=CLOCK - 92, said=said, lines=lines)
    kubelet, path = world.data("m1", "kubelet"), "/etc/rancher/k3s/config.yaml"
    kubelet["unit"]["name"] = "k3s.service"
    settings = [{"line": 3, "key": "kube-apiserver-arg", "value": "no-such=1"}]
    files = [{"path": path, "error": None, "settings": settings}]
    kubelet["distribution"] = {"program": "k3s", "files": files}
    give(world, unit)
    (finding,) = found(world)
    assert finding.remedy.startswith(f"correct kube-apiserver-arg in {path}:3")


def test_the_cause_of_a_known_message_is_told(world):
    text = "etcd[7]: listen unix /run/a.sock: bind: address already in use"
    give(world, looping(lines=[line(15, text), line(14, EXITED)]))
    (finding,) = found(world)
    assert "Known cause: A file is at the place of its socket /run/a.sock" in finding.summary
    assert finding.remedy.startswith("ss -lxp on the node")


def test_a_line_before_the_last_may_have_the_known_cause(world):
    text = "etcd[7]: listen unix /run/a.sock: bind: address already in use"
    begun = [line(20 - number, f"etcd[7]: step {number}") for number in range(services.BEGUN)]
    lines = [*begun, line(16, text), line(15, "etcd[7]: bye"), line(14, EXITED)]
    give(world, looping(lines=lines))
    (finding,) = found(world)
    assert "Known cause: A file is at the place of its socket /run/a.sock" in finding.summary


def test_an_api_server_without_a_certificate_for_etcd(world):
    refused = (
        "kube-apiserver[7]: W0101 a.go:1] handshake failed: remote error: tls: bad certificate"
    )
    argv = ["/usr/bin/kube-apiserver", "--etcd-servers=https://192.0.2.1:2379"]
    give(world, looping("kube-apiserver", argv=argv, lines=[line(15, refused), line(14, EXITED)]))
    (finding,) = world.judge(faults={"KM116"}).findings
    assert "without --etcd-certfile and --etcd-keyfile" in finding.summary
    assert "give kube-apiserver --etcd-certfile" in finding.remedy


def test_quotes_that_are_a_part_of_a_value(world):
    argv = ["/usr/local/bin/etcd", "--name='etcd1'"]
    give(world, looping(argv=argv))
    (finding,) = found(world)
    assert argv[1] in finding.summary
    assert "take the quotes out of these values" in finding.remedy
    # of a unit that was stopped in order it is no reason
    give(world, row(state=STOPPED, ended_at=CLOCK - 4000, argv=argv))
    assert not any(argv[1] in item.summary for item in found(world))


K3S_PANIC = (
    "fatal error: fault",
    "[signal SIGSEGV: segmentation violation code=0x2 addr=0x2326d30 pc=0x1ce981c]",
    "github.com/modern-go/reflect2.(*UnsafeMapType).UnsafeIterate(0x1d4b46b471c0, 0x22eb909?)",
    "github.com/json-iterator/go.(*sortKeysMapEncoder).IsEmpty(0x23318c9?, 0x1d4b46c95f38?)",
)


@pytest.mark.parametrize(
    ("frame", "is_of_database"),
    [(K3S_PANIC[2], False), ("go.etcd.io/bbolt.(*Cursor).search(0xc000316680, 0x1a310c0)", True)],
)
def test_a_program_of_go_that_ends_is_told_with_its_function(world, frame, is_of_database):
    world.data("m1", "kubelet")["unit"]["name"] = "k3s.service"
    words = [*K3S_PANIC[:2], frame, K3S_PANIC[3]]
    give(world, looping("k3s", lines=[*(line(15, f"k3s[7]: {text}") for text in words)]))
    (finding,) = found(world)
    function = frame.partition("(0x")[0].rpartition("/")[2]
    assert f"fatal error: fault, in {function}" in finding.summary
    assert ("Known cause" in finding.summary) is is_of_database


def test_what_a_command_before_the_program_wrote_is_no_cause(world):
    """ExecStartPre=-/sbin/modprobe overlay of k3s, whose failure systemd ignores."""
    world.data("m1", "kubelet")["unit"]["name"] = "k3s.service"
    missing = "modprobe[7]: modprobe: FATAL: Module overlay not found in directory /lib/modules/6.1"
    ended = EXITED.replace("etcd", "k3s")
    words = 'k3s[8]: time="2027-01-15T07:58:25Z" level=fatal msg="something that nobody knows"'
    give(world, looping("k3s", lines=[line(16, missing), line(15, words), line(14, ended)]))
    (finding,) = found(world)
    assert "Known cause" not in finding.summary
    assert "something that nobody knows" in finding.summary
    # Where it is all that was written, it tells.
    give(world, looping("k3s", lines=[line(16, missing), line(14, ended)]))
    assert "Module overlay" in found(world)[0].summary


TERMINATED = 'etcd[77]: {"level":"error","msg":"received signal; shutting down"}'


@pytest.mark.parametrize("is_asked", [True, False])
def test_one_that_failed_while_it_was_stopped_has_no_cause(world, is_asked):
    """A program may end with a status of its own at SIGTERM: systemd calls that a failure."""
    words = [line(15, TERMINATED), line(14, EXITED)]
    if is_asked:
        words.insert(0, line(16, "systemd[1]: Stopping etcd.service - etcd..."))
    state = {"active_state": "failed", "sub_state": "failed", "lines": words}
    give(world, looping(**state))
    (finding,) = found(world)
    assert ("shutting down" not in finding.summary) is is_asked
