# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM170 to KM173 and KM175: what an API server answers, and why it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support import taken_ports

CLOCK = 1_800_000_000.0
SERVER = "kube-apiserver"
ENDPOINT = "https://127.0.0.1:2379"
MANIFEST = (
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {0}\n  namespace: kube-system\nspec:\n"
    "  containers:\n  - command:\n    - {0}\n    - --etcd-servers=https://127.0.0.1:2379\n"
    "    image: registry/{0}:v1.30.1\n    name: {0}\n"
)
# kube-apiserver 1.30, without an etcd that listens
REFUSED = (
    "W1127 04:00:00.000000       1 logging.go:59] [core] [Channel #1 SubChannel #3]grpc:"
    ' addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2379", ServerName:'
    ' "127.0.0.1:2379", }. Err: connection error: desc = "transport: Error while dialing: dial tcp'
    ' 127.0.0.1:2379: connect: connection refused"'
)
EXPIRED = REFUSED.rpartition(' desc = "')[0] + (
    ' desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509:'
    ' certificate has expired or is not yet valid"'
)
DEADLINE = (
    'E1127 04:00:20.000000       1 run.go:72] "command failed" err="problem initializing API group'
    ' \\"\\" : context deadline exceeded"'
)
IN_USE = (
    'E1127 04:00:20.000000       1 run.go:72] "command failed" err="failed to create listener:'
    ' failed to listen on 0.0.0.0:6443: listen tcp 0.0.0.0:6443: bind: address already in use"'
)


def health(status: int | None = 200, *failed: str, **more: Any) -> dict[str, Any]:
    return {"status": status, "checks": 50, "failed": list(failed), "seconds": 0.01, **more}


def give(world: Any, host: str = "m1", **more: Any) -> dict[str, Any]:
    """Let a collector tell of the API server of a host, which runs with its etcd's address."""
    world.manifest(host, SERVER)
    file = world.data(host, "manifests")["files"][-1]
    file["text"] = MANIFEST.format(SERVER)
    server = {"pid": 90, "address": "127.0.0.1", "port": 6443}
    server |= {"livez": health(), "readyz": health(), "version": health(), **more}
    data: dict[str, Any] = {"servers": [server], "ports": [], "unseen": False, "used_up": []}
    world.documents[host]["collectors"]["api_server"] = {"status": "ok", "data": data}
    return data


def down(world: Any, *lines: str, host: str = "m1", component: str = SERVER) -> dict[str, Any]:
    """Let a component of a host have no process, and its log end with these lines."""
    data = give(world, host)
    data["servers"] = []
    processes = world.data(host, "instances")["processes"]
    processes[:] = [row for row in processes if row["component"] != component]
    row = {"component": component, "running": False, "restart": 3, "lines": list(lines)}
    row |= {"first": CLOCK - 80, "last": CLOCK - 60}
    world.documents[host]["collectors"]["component_end"] = {
        "status": "ok",
        "data": {"components": [row]},
    }
    return data


def etcd_fails(world: Any, error: str, host: str = "m1") -> None:
    world.documents[host]["collectors"]["etcd"] = {
        "status": "error",
        "data": {"error": error},
        "error": error,
    }


def found(world: Any, code: str, **options: Any) -> list[Any]:
    result = world.judge(faults={code}, **options)
    return [item for item in result.findings if item.code == code]


def verdict(world: Any, code: str, host: str = "m1", **options: Any) -> str:
    rows = world.judge(faults={code}, **options).verdicts
    return next(row.verdict for row in rows if row.code == code and row.host == host)


def test_a_server_that_is_well_has_none_of_them(world):
    for host in ("m1", "m2", "m3"):
        give(world, host)
    for code in ("KM170", "KM173", "KM175"):
        assert found(world, code) == []
        assert verdict(world, code) == "clear"
    assert verdict(world, "KM170", "w1") == "not_applicable"


@pytest.mark.parametrize("check", ["etcd", "etcd-readiness"])
def test_its_own_check_of_etcd_fails(world, check):
    give(world, readyz=health(500, "ping", check))
    etcd_fails(world, f"{ENDPOINT}: Connection refused")
    (one,) = found(world, "KM170")
    assert (one.host, one.component, one.severity) == ("m1", SERVER, "critical")
    assert check in one.summary
    assert ENDPOINT in one.summary
    assert "Connection refused" in one.summary
    assert "no etcd listens" in one.remedy


def test_a_check_that_fails_without_a_known_reason(world):
    give(world, readyz=health(500, "etcd"))
    (one,) = found(world, "KM170")
    assert "etcd" in one.summary
    assert "leader" in one.remedy


@pytest.mark.parametrize(
    ("line", "words", "cure"),
    [
        (REFUSED, "connection refused", "no etcd listens"),
        (EXPIRED, "x509: certificate has expired", "openssl x509"),
    ],
)
def test_its_last_lines_name_the_endpoint(world, line, words, cure):
    down(world, line, DEADLINE)
    (one,) = found(world, "KM170")
    assert ENDPOINT in one.summary
    assert words in one.summary
    assert cure in one.remedy


def test_only_the_deadline_is_told(world):
    down(
        world, DEADLINE.replace("problem initializing API group", "error creating storage factory")
    )
    (one,) = found(world, "KM170")
    assert "no answer from etcd" in one.summary
    assert "nc -vz" in one.remedy


def test_another_connection_that_fails_is_no_etcd(world):
    down(world, REFUSED.replace("2379", "8131"))  # konnectivity
    assert found(world, "KM170") == []
    assert verdict(world, "KM170") == "clear"


@pytest.mark.parametrize(
    "error",
    [
        "transport: Error while dialing: dial tcp 127.0.0.1:2379: operation was canceled",
        "transport: authentication handshake failed: context canceled",
    ],
)
def test_what_its_own_end_breaks_off_tells_nothing_of_etcd(world, error):
    """As kube-apiserver 1.36 logs it while it ends over a flag, or is killed."""
    down(world, REFUSED.rpartition(' desc = "')[0] + f' desc = "{error}"')
    assert not found(world, "KM170")


def test_a_server_that_is_silent_while_etcd_does_not_answer(world):
    none = health(None, error="timed out")
    give(world, livez=none, readyz=none, version=none)
    etcd_fails(world, f"{ENDPOINT}: timed out")
    (one,) = found(world, "KM170")
    assert "answers nothing" in one.summary
    give(world, livez=none, readyz=none, version=none)
    world.documents["m1"]["collectors"]["etcd"] = {"status": "absent", "data": None}
    assert found(world, "KM170") == []
    assert verdict(world, "KM170") == "unknown"


def test_a_young_server_is_not_judged_yet(world):
    give(world, readyz=health(500, "etcd", "informer-sync"))
    for row in world.data("m1", "instances")["processes"]:
        if row["component"] == SERVER:
            row["started_at"] = CLOCK - 20
    for code in ("KM170", "KM175"):
        assert found(world, code) == []
        assert verdict(world, code) == "unknown"
    (row,) = [row for row in world.judge(faults={"KM175"}).verdicts if row.host == "m1"]
    assert [(lack.collector, lack.status) for lack in row.missing] == [("api_server", "starting")]


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_refuses_everybody_is_unknown(world, status):
    give(world, livez=health(status), readyz=health(status), version=health(status))
    for code in ("KM170", "KM175"):
        assert verdict(world, code) == "unknown"


def test_without_the_collector_it_is_not_judged(world):
    for host in ("m1", "m2", "m3"):
        del world.documents[host]["collectors"]["api_server"]
    assert found(world, "KM175") == []
    rows = world.judge(faults={"KM175"}).verdicts
    assert [row for row in rows if row.verdict == "clear"] == []


@pytest.mark.parametrize(
    ("check", "word"),
    [
        ("poststarthook/rbac/bootstrap-roles", "cannot write the roles"),
        ("poststarthook/crd-informer-synced", "list of custom resources"),
        ("poststarthook/some-new-hook", "follows its start"),
        ("kms-providers", "encrypts Secrets"),
        ("ping", "one of its own checks"),
    ],
)
def test_what_a_failed_check_means(world, check, word):
    give(world, readyz=health(500, check))
    (one,) = found(world, "KM175")
    assert one.severity == "warning"
    assert check in one.summary
    assert word in one.summary


def test_a_failed_check_of_livez_is_critical(world):
    give(world, livez=health(500, "ping"), readyz=health(500, "ping"))
    (one,) = found(world, "KM175")
    assert one.severity == "critical"


@pytest.mark.parametrize("line", ["", IN_USE])
def test_the_process_that_has_the_port(world, line):
    data = down(world, *filter(None, [line]))
    data["ports"] = [
        {
            "component": SERVER,
            "port": 6443,
            "pid": 812,
            "comm": "haproxy",
            "unit": "haproxy.service",
        }
    ]
    (one,) = found(world, "KM173")
    assert (one.host, one.component) == ("m1", SERVER)
    for word in ("6443", "haproxy", "812", "haproxy.service"):
        assert word in one.summary
    assert "ss -ltnp" in one.remedy


def test_only_the_log_tells_that_the_port_is_taken(world):
    down(world, IN_USE)
    (one,) = found(world, "KM173")
    assert one.component == SERVER
    explained = world.judge(faults={"KM173", "KM114"}).findings
    assert [item.because for item in explained if item.code == "KM114"] == [("KM173",)]


def test_the_log_names_the_address_and_the_machine_who_has_it(world):
    down(world, IN_USE)
    taken_ports.hold(world, "m1", taken_ports.row(6443, pid=812, comm="haproxy"))
    (one,) = found(world, "KM173")
    assert one.summary.count("pid 812") == 1
    itself = {"pid": 812, "comm": SERVER[:15], "static": True}
    taken_ports.hold(world, "m1", taken_ports.row(6443, **itself))
    (one,) = found(world, "KM173")
    assert "cannot listen on port" not in one.summary


def test_the_component_that_came_back_has_its_own_port(world):
    data = down(world)
    data["ports"] = [
        {"component": SERVER, "port": 6443, "pid": 99, "comm": SERVER[:15], "static": True}
    ]
    assert found(world, "KM173") == []
    assert verdict(world, "KM173") == "clear"


def test_holders_that_may_have_been_missed_make_it_unknown(world):
    down(world)["unseen"] = True
    assert verdict(world, "KM173") == "unknown"


def test_a_log_of_a_component_that_runs_again_is_past(world):
    down(world, IN_USE)
    world.data("m1", "instances")["processes"].append(
        {"component": SERVER, "pid": 91, "argv": [SERVER], "started_at": CLOCK - 500}
        | {"static": True, "host_network": True}
    )
    assert found(world, "KM173") == []


def load(world: Any, **more: Any) -> None:
    row = {"pid": 90, "seconds": 2.0, "levels": [], "clients": [], "terminated": 0, **more}
    world.documents["m1"]["collectors"]["api_load"] = {"status": "ok", "data": {"servers": [row]}}


def test_whose_requests_wait(world):
    give(world, version=health(429))["used_up"] = ["requests"]
    level = {"name": "workload-low", "running": 5, "waiting": 40, "limit": 5, "rejected": 12}
    client = {"user": "system:serviceaccount:kube:agent", "level": "workload-low"}
    client |= {"verb": "list", "resource": "pods", "requests": 31}
    load(world, levels=[level | {"reasons": ["queue-full"]}], clients=[client])
    (one,) = found(world, "KM171", deep=True)
    for word in ("429", "workload-low", "12 refused", "queue-full", client["user"], "list pods"):
        assert word in one.summary
    assert client["user"] in one.remedy


def test_a_server_that_is_slow_without_a_load_is_not_overloaded(world):
    give(world, version=health(200, seconds=1.4))["used_up"] = ["requests"]
    load(world, levels=[{"name": "global-default", "running": 1, "waiting": 0}])
    assert found(world, "KM171", deep=True) == []
    assert verdict(world, "KM171", deep=True) == "clear"


def test_a_slow_server_whose_load_is_not_known_is_unknown(world):
    give(world, version=health(200, seconds=1.4))["used_up"] = ["requests"]
    world.documents["m1"]["collectors"]["api_load"] = {"status": "error", "data": None}
    assert verdict(world, "KM171", deep=True) == "unknown"


def killed(world: Any, kernel: str, ends: int = 1, **more: Any) -> None:
    """Let the kernel have killed the API server of m1 within the hour."""
    give(world)
    world.data("m1", "system")["uptime_s"] = 90000.0
    containers, lines = [], []
    for attempt in range(ends + 1):
        finished = CLOCK - 1000 + 300 * attempt
        row = {
            "component": SERVER,
            "id": f"{attempt:064x}",
            "sandbox": "a" * 64,
            "attempt": attempt,
        }
        row |= {"pod_uid": "0" * 31 + "a", "created": finished - 200, "state": "exited"}
        row |= {"finished": finished, "exit_code": 137, "reason": "OOMKilled", **more}
        if attempt == ends:
            row |= {"state": "running", "finished": None, "exit_code": None, "reason": None}
        else:
            lines.append(f"{finished:.3f} m1 kernel: " + kernel.format(id=row["id"]))
        containers.append(row)
    for process in world.data("m1", "instances")["processes"]:
        if process["component"] == SERVER:
            process["started_at"] = containers[-1]["created"]
    empty: dict[str, Any] = {"lines": [], "oldest": None, "error": None}
    world.documents["m1"]["collectors"]["component_restart"] = {
        "status": "ok",
        "data": {"containers": containers, "runtime": empty, "kubelet": empty}
        | {"kernel": {**empty, "lines": lines}},
    }


MACHINE = (
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task_memcg=/kubepods/{id},"
    "task=kube-apiserver,pid=7,uid=0"
)
LIMIT = MACHINE.replace("CONSTRAINT_NONE", "CONSTRAINT_MEMCG")
VICTIM = "Memory cgroup out of memory: Killed process 7 (kube-apiserver)"


def memory(world: Any, total: int) -> None:
    world.documents["m1"]["collectors"]["pressure"] = {
        "status": "ok",
        "data": {"memory": {"total": total, "available": 1}},
    }


@pytest.mark.parametrize(
    ("total", "word"), [(2 * 1024**3, "too little"), (16 * 1024**3, "16.0 GiB")]
)
def test_the_machine_has_no_memory_left(world, total, word):
    killed(world, "Out of memory: Killed process 7 (kube-apiserver)")
    memory(world, total)
    (one,) = found(world, "KM172")
    assert (one.host, one.component, one.severity) == ("m1", SERVER, "warning")
    assert "out of memory" in one.summary
    assert word in one.summary
    assert "limits.memory" not in one.remedy


@pytest.mark.parametrize("reason", ["context deadline exceeded", ""])
def test_an_audit_webhook_takes_memory_too(world, reason):
    flag = "--audit-webhook-config-file=/etc/kubernetes/audit.yaml"
    killed(world, "Out of memory: Killed process 7 (kube-apiserver)")
    for process in world.data("m1", "instances")["processes"]:
        if process["component"] == SERVER:
            process["argv"] = [*process["argv"], flag]
    line = f"Error in audit plugin 'webhook' affecting 400 audit events: {reason}"
    row = {"component": SERVER, "running": True, "restart": 1, "lines": [line] if reason else []}
    world.documents["m1"]["collectors"]["component_end"] = {
        "status": "ok",
        "data": {"components": [row]},
    }
    (one,) = found(world, "KM172")
    assert "--audit-webhook-config-file, mode batch" in one.summary
    assert ("does not keep up" in one.summary) is bool(reason)
    assert one.remedy.startswith("give the audit webhook") is bool(reason)
    assert flag in [proof.text for proof in one.evidence]


def test_it_is_critical_where_it_comes_again(world):
    killed(world, "Out of memory: Killed process 7 (kube-apiserver)", ends=2)
    (one,) = found(world, "KM172")
    assert one.severity == "critical"
    assert "2 times" in one.summary


def test_the_limit_of_the_container(world):
    killed(
        world, "Memory cgroup out of memory: Killed process 7 (kube-apiserver)", memory_limit=2**30
    )
    (one,) = found(world, "KM172")
    assert "limit of 1.0 GiB" in one.summary
    assert "limits.memory" in one.remedy


def test_an_end_of_another_reason_is_no_lack_of_memory(world):
    killed(world, "eth0: link becomes ready", reason="Error", exit_code=1)
    assert found(world, "KM172") == []
    assert verdict(world, "KM172") == "clear"
