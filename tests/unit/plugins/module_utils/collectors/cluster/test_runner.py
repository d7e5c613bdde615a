# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster's evidence, from the answers that real API servers of both versions gave.

Through a stand-in for kubectl.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    runner as cluster_runner,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import session
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import journal
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    client as kubeapi_client,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    kubeconfig as kubeapi_kubeconfig,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    proxy as kubeapi_proxy,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import collector_names
from ansible_collections.kubemend.remediation.plugins.module_utils.shared.cluster_key import (
    cluster_key,
)
from tests.unit.support.waiting import until

TESTS = Path(__file__).parents[5]
RECORDED = TESTS / "fixtures" / "api"
VERSIONS = ["v1.18.4", "v1.36.3"]
PEM = "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"
CA = PEM % base64.b64encode(b"one").decode()
URL = "https://10.0.0.9:6443"
CODES = [(403, "denied"), (404, "absent"), (500, "error")]


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Return a stand-in for kubectl is an interpreter that has to start."""
    monkeypatch.setattr(kubeapi_proxy, "PROBE_SECONDS", 60)


@pytest.fixture(autouse=True)
def silent(monkeypatch):
    """Return the addresses that say nothing, and those without etcd; no test leaves the machine."""
    addresses, without_etcd = set(), set()

    def handshakes(places, _seconds):
        return [
            {"error": "timed out" if address in addresses else None} for address, _port in places
        ]

    def get(address, _port, path, _seconds, _context):
        assert path == "/readyz/etcd"
        if address in without_etcd:
            return {"status": 500, "body": "", "error": None}
        error = "timed out" if address in addresses else None
        return {"status": None if error else 200, "body": "ok", "error": error}

    monkeypatch.setattr(session.served_certificates, "read", handshakes)
    monkeypatch.setattr(cluster_runner.http_client, "get", get)
    return addresses, without_etcd


class Recorded(kubeapi_client.Client):
    """A door whose proxy is a file of recorded answers: the same requests, no process."""

    def __init__(
        self, _where, _name, _kubectl, kubeconfig, deadline, server=None, tls_server_name=None
    ):
        super().__init__("/nonexistent", deadline)
        facts = json.loads(Path(kubeconfig).read_text())
        self.server, self.facts, self.named = server or facts["server"], facts, tls_server_name
        self.answers = json.loads(Path(facts["answers"]).read_text())

    def _exchange(self, method, path, accept, deadline):
        deadline.remaining()
        broken = None if self.named else self.facts.get("broken", {}).get(self.server)
        if broken:
            return 500, {}, broken.encode()
        parts = urllib.parse.urlsplit(path)
        query = [pair for pair in urllib.parse.parse_qsl(parts.query) if pair[0] != "limit"]
        found = self.answers.get(
            parts.path + ("?" + "&".join("=".join(pair) for pair in query) if query else "")
        )
        found = found or self.answers.get(parts.path + "?" + urllib.parse.urlencode(query))
        code = self.facts.get("codes", {}).get(parts.path, 200 if found or query else 404)
        body = json.dumps(
            found or {"kind": "List", "items": []}
            if code == 200
            else {"kind": "Status", "message": "refused"}
        )
        return (
            code,
            {},
            body.replace(
                '"m1_', '"{}_'.format(self.facts.get("differ", {}).get(self.server, "m1"))
            ).encode(),
        )

    def close(self):
        self.deadline = None


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Give ask: of a version, facts and parameters, the document.

    The stand-in's kubectl runs where `process` is true.
    """

    def run(version="v1.36.3", facts=None, process=False, **params):
        config = tmp_path / "admin.conf"
        stand_in(config, version, tmp_path, **(facts or {}))
        if not process:
            monkeypatch.setattr(session, "ApiProxy", Recorded)
            monkeypatch.setattr(
                kubeapi_kubeconfig, "view", lambda _kubectl, path, _deadline: (URL, CA)
            )
        return cluster_runner.collect(
            {"kubectl": kubectl_of(tmp_path), "kubeconfig": str(config), "timeout": 60, **params}
        )

    base = "/run" if os.access("/run", os.W_OK) else "/tmp"
    before = {entry.name for entry in Path(base).iterdir()}
    monkeypatch.setattr(cluster_runner, "REREAD_SECONDS", 0.01)
    yield run
    assert not [
        name
        for name in {entry.name for entry in Path(base).iterdir()} - before
        if name.startswith(f"{kubeapi_proxy.FOLDER}{os.getpid()}-")
    ]
    pids = tmp_path / "pids"
    for pid in pids.read_text().split() if pids.exists() else []:
        assert not Path("/proc/" + pid).exists(), "a proxy was left behind"


def kubectl_of(folder):
    """Return the stand-in as a program, run by the Python of the tests."""
    program = folder / "kubectl"
    fake = TESTS / "unit" / "support" / "fake_kubectl.py"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{fake}" "$@"\n')
    program.chmod(0o755)
    return str(program)


def stand_in(config, version, folder, **facts):
    config.write_text(
        json.dumps(
            {
                "server": URL,
                "ca": CA,
                "answers": str(RECORDED / (version + ".json")),
                "pids": str(folder / "pids"),
                **facts,
            }
        )
    )


def statuses(document):
    return {name: record["status"] for name, record in document["collectors"].items()}


def addresses(version):
    subsets = json.loads((RECORDED / (version + ".json")).read_text())[
        "/api/v1/namespaces/default/endpoints/kubernetes"
    ]["subsets"]
    return sorted(address["ip"] + ":6443" for address in subsets[0]["addresses"])


@pytest.mark.parametrize("process", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_collector_answers(ask, version, process):
    document = ask(version, process=process)
    assert document["status"] == "ok"
    assert set(statuses(document).values()) == {"ok"}
    data = {name: record["data"] for name, record in document["collectors"].items()}
    assert data["server"]["git_version"] == version
    assert data["server"]["url"] == URL
    assert [
        (node["name"], node["control_plane"], node["ready"]) for node in data["nodes"]["items"]
    ] == [("m1", True, "True"), ("m2", True, "True"), ("m3", True, "True"), ("w1", False, "True")]
    assert data["endpoints"]["addresses"] == addresses(version)
    assert "kind: ClusterConfiguration" in data["kubeadm_config"]["text"]
    (config,) = data["kubelet_configs"]["items"]
    assert config["name"] == ("kubelet-config-1.18" if version == "v1.18.4" else "kubelet-config")
    assert "kind: KubeletConfiguration" in config["text"]
    info = data["cluster_info"]
    assert info["server"] == "https://10.89.0.11:6443"
    assert info["pem"].startswith("-----BEGIN CERTIFICATE-----")
    assert len(info["key"]) == 64
    assert document["ca"] == {"pem": CA}
    json.dumps(document)


def test_it_says_who_holds_the_host_that_answers(ask, tmp_path, monkeypatch):
    """An audit of workers alone reads no journal of a control-plane node.

    It must not take a cordon for one that an interrupted run left.
    """
    root, run = str(tmp_path / "kubemend"), "20261121T090000Z-1a2b3c"
    monkeypatch.setattr(journal, "ROOT", root)
    data = ask()["collectors"]["work"]["data"]
    assert data["lock"] is None
    assert data["unproven"] == []
    node_lock.acquire(run, {"host": "here"}, 900, root=root)
    assert ask()["collectors"]["work"]["data"]["lock"]["run_id"] == run


@pytest.mark.parametrize(
    ("asked", "status", "name"),
    [
        (None, None, None),
        ("rejected", "ok", None),
        ("n/nobody", "absent", None),
        ("nonsense", "error", None),
    ],
)
@pytest.mark.parametrize("collectors", [None, ["pod"]])
def test_one_pod_is_looked_at_when_it_is_asked_for(ask, asked, status, name, collectors):
    found = ask(pod=asked, collectors=collectors)["collectors"]
    assert (found.get("pod") or {}).get("status") == status
    assert (asked is None) is ("pod" not in found)
    if status == "ok":
        assert found["pod"]["data"]["name"] is name


@pytest.mark.parametrize(
    ("version", "kinds"), [("v1.18.4", {"Lease", "Endpoints"}), ("v1.36.3", {"Lease"})]
)
def test_locks_are_read_through_every_api_server(ask, version, kinds):
    servers = ask(version)["collectors"]["locks"]["data"]["servers"]
    assert [server["address"] for server in servers] == addresses(version)
    for server in servers:
        assert {lock["kind"] for lock in server["objects"]} == kinds
        assert {lock["name"] for lock in server["objects"]} == {
            "kube-scheduler",
            "kube-controller-manager",
        }
        assert all(
            lock["holder"].startswith("m1_") and lock["renew_time"] for lock in server["objects"]
        )
        assert server["kube_system_uid"]
        assert server["error"] is None


def test_one_dead_api_server_costs_only_itself(ask):
    dead = addresses("v1.36.3")[1]
    document = ask(
        facts={"broken": {"https://" + dead: "dial tcp: connect: connection refused"}}, process=True
    )
    errors = {
        server["address"]: server["error"]
        for server in document["collectors"]["locks"]["data"]["servers"]
    }
    assert errors.pop(dead) == "dial tcp: connect: connection refused"
    assert set(errors.values()) == {None}
    assert document["status"] == "ok"


def test_different_holders_stay_visible(ask):
    other = addresses("v1.36.3")[2]
    servers = ask(facts={"differ": {"https://" + other: "m9"}})["collectors"]["locks"]["data"][
        "servers"
    ]
    assert [server["objects"][0]["holder"].split("_")[0] for server in servers] == [
        "m1",
        "m1",
        "m9",
    ]


@pytest.mark.parametrize(("code", "status"), CODES)
@pytest.mark.parametrize(
    ("path", "collectors"),
    [
        ("/api/v1/nodes", ["nodes"]),
        ("/api/v1/namespaces/kube-system/configmaps/kubeadm-config", ["kubeadm_config"]),
        ("/apis/batch/v1/jobs", ["jobs"]),
        ("/api/v1/pods", ["jobs", "rejected", "pending", "pod_start"]),
        ("/api/v1/events", ["jobs", "unmade", "object_events", "pod_start"]),
        ("/apis/apps/v1/daemonsets", ["unmade"]),
    ],
)
def test_what_is_refused_costs_only_the_collectors_that_need_it(
    ask, path, collectors, code, status
):
    document = ask(facts={"codes": {path: code}})
    bad = {name: value for name, value in statuses(document).items() if value != "ok"}
    assert bad == dict.fromkeys(collectors, status)
    assert document["status"] == "ok"
    assert all(str(code) in document["collectors"][name]["error"] for name in collectors)


def test_without_the_right_to_read_them_uid_and_endpoints_cost_only_themselves(ask):
    nothing = {
        "/api/v1/namespaces/kube-system": 403,
        "/api/v1/namespaces/default/endpoints/kubernetes": 403,
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices": 403,
    }
    document = ask(facts={"codes": nothing})
    assert {name for name, status in statuses(document).items() if status != "ok"} == {"endpoints"}
    assert document["collectors"]["server"]["data"]["kube_system_uid"] is None
    (server,) = document["collectors"]["locks"]["data"]["servers"]
    assert server["address"] == "10.0.0.9:6443"
    assert len(server["objects"]) == 2
    assert "HTTP 403" in server["error"]


def test_endpoint_slices_where_endpoints_are_gone(ask):
    document = ask(facts={"codes": {"/api/v1/namespaces/default/endpoints/kubernetes": 404}})
    assert document["collectors"]["endpoints"]["data"]["addresses"] == addresses("v1.36.3")


@pytest.mark.parametrize(("state", "words"), [(0, session.SILENT), (1, "its check etcd fails")])
def test_an_api_server_that_cannot_read_locks_is_not_asked_for_them(ask, silent, state, words):
    first = addresses("v1.36.3")[0]
    silent[state].add(first.rpartition(":")[0])
    servers = ask()["collectors"]["locks"]["data"]["servers"]
    assert [server["address"] for server in servers] == addresses("v1.36.3")
    assert servers[0]["error"] == words
    assert servers[0]["objects"] == []
    assert all(server["objects"] and server["error"] is None for server in servers[1:])


def test_locks_that_may_not_be_read_are_said_and_the_others_kept(ask):
    document = ask("v1.18.4", {"codes": {"/api/v1/namespaces/kube-system/configmaps": 403}})
    server = document["collectors"]["locks"]["data"]["servers"][0]
    assert "HTTP 403" in server["error"]
    assert {lock["kind"] for lock in server["objects"]} == {
        "Endpoints",
        "Lease",
    }


def test_by_which_clocks_ages_are_told(ask):
    """Each reading has the host's own time before and after, and the Date of the answer.

    The evidence also has when an API server renewed its own lease, and for how long.
    """
    data = {
        name: ask(process=True)["collectors"][name]["data"] for name in ("server", "nodes", "locks")
    }
    server, *_others = data["locks"]["servers"]
    for clock in (data["server"]["clock"], data["nodes"]["clock"], server["clock"]):
        assert set(clock) == {"asked_at", "read_at", "date"}
        assert clock["date"].endswith("GMT")
        assert clock["asked_at"] <= clock["read_at"]
        assert abs(clock["read_at"] - time.time()) < 60
    beats = [
        item["spec"]["renewTime"]
        for path, answer in json.loads((RECORDED / "v1.36.3.json").read_text()).items()
        if path.endswith("namespaces/kube-system/leases")
        for item in answer["items"]
        if "apiserver" in item["metadata"]["name"]
    ]
    assert server["beat"] == max(beats)
    assert all("apiserver" not in one["name"] for one in server["objects"])


def test_an_error_of_the_proxy_tells_no_clock(ask):
    document = ask(facts={"codes": {"/api/v1/nodes": 500}}, process=True)
    assert document["collectors"]["nodes"]["status"] == "error"
    assert document["collectors"]["server"]["data"]["clock"]["date"]
    assert kubeapi_client.Client("/nonexistent", kubeapi_client.Deadline(1)).clock is None


def test_no_lease_api_before_its_time(ask):
    document = ask("v1.18.4", {"codes": {"/apis/coordination.k8s.io": 404}})
    server = document["collectors"]["locks"]["data"]["servers"][0]
    assert server["error"] is None
    assert {lock["kind"] for lock in server["objects"]} == {"Endpoints"}


def test_every_pod_is_only_read_where_a_fault_needs_it(ask, tmp_path):
    recorded = json.loads((RECORDED / "v1.36.3.json").read_text())
    resources = {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}
    recorded["/apis/apps/v1/deployments"] = {
        "items": [
            {
                "metadata": {"namespace": "n", "name": "d", "uid": "u"},
                "spec": {
                    "template": {
                        "metadata": {"labels": {"pin": "yes"}},
                        "spec": {
                            "containers": [dict(resources, name="app")],
                            "initContainers": [{"name": "init"}],
                        },
                    }
                },
            }
        ]
    }
    recorded.update(
        {
            path: {"items": []}
            for path in (
                "/apis/apps/v1/statefulsets",
                "/apis/apps/v1/daemonsets",
                "/apis/batch/v1/cronjobs",
            )
        }
    )
    (tmp_path / "answers.json").write_text(json.dumps(recorded))
    facts = {"answers": str(tmp_path / "answers.json")}
    assert "pinnable" not in ask(facts=facts, expect_pinning="pin")["collectors"]
    for params in ({"deep": True}, {"collectors": ["pinnable"], "expect_pinning": "pin=yes"}):
        record = ask(facts=facts, **params)["collectors"]["pinnable"]
        (item,) = record["data"]["items"]
        assert record["status"] == "ok"
        assert (item["name"], item["expected"]) == (
            "d",
            "expect_pinning" in params,
        )


def test_an_api_that_is_down_leaves_a_document_that_says_why(ask):
    document = ask(facts={"broken": {URL: "dial tcp 10.0.0.9:6443: connect: connection refused"}})
    assert document["status"] == "error"
    assert "connection refused" in document["reason"]
    assert set(statuses(document)) == set(collector_names.CLUSTER) - {
        *collector_names.DEEP_CLUSTER,
        "pod",
    }
    assert set(statuses(document).values()) == {"error"}
    assert document["ca"] == {"pem": CA}


def test_the_local_api_server_answers_where_the_load_balancer_does_not(ask, monkeypatch):
    monkeypatch.setattr(kubeapi_kubeconfig, "local_server", lambda: "https://10.0.0.1:6443")
    document = ask(facts={"broken": {URL: "dial tcp: i/o timeout"}})
    assert document["status"] == "ok"
    assert document["collectors"]["server"]["data"]["url"] == "https://10.0.0.1:6443"


def test_the_next_kubeconfig_where_the_first_has_expired(tmp_path, monkeypatch):
    paths = [tmp_path / name for name in ("admin.conf", "missing.conf", "kubelet.conf")]
    stand_in(paths[0], "v1.36.3", tmp_path, codes={"/version": 401})
    stand_in(paths[2], "v1.36.3", tmp_path, codes={"/api/v1/nodes": 403})
    monkeypatch.setattr(kubeapi_kubeconfig, "KUBECONFIGS", [str(path) for path in paths])
    document = cluster_runner.collect({"kubectl": kubectl_of(tmp_path), "timeout": 60})
    assert document["collectors"]["server"]["data"]["kubeconfig"] == str(paths[2])
    assert statuses(document)["nodes"] == "denied"


def test_a_cluster_that_was_answered_is_skipped(ask):
    document = ask(skip_clusters=["other", cluster_key(CA)])
    assert document["status"] == "skipped"
    assert document["collectors"] == {}


def test_only_the_collectors_that_were_asked_for(ask):
    assert set(statuses(ask(collectors=["server", "locks"]))) == {"server", "locks"}


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"kubectl": "/nonexistent/kubectl"}, "/nonexistent/kubectl cannot be executed"),
        ({"kubectl": "/bin/false"}, "admin.conf"),
        ({"kubeconfig": "/nonexistent.conf"}, "/nonexistent.conf cannot be read"),
    ],
)
def test_what_is_missing_is_named(ask, params, reason):
    document = ask(process=True, **params)
    assert document["status"] == "error"
    assert reason in document["reason"]


def test_a_slow_api_ends_at_the_time_limit(ask):
    begun = time.monotonic()
    document = ask(facts={"slow": 3}, timeout=8, process=True)
    assert time.monotonic() - begun < 25  # of more than 30, were every answer waited for
    assert document["status"] == "error" or statuses(document)["jobs"] == "timeout"


def test_a_certificate_without_the_address_is_asked_by_the_service_name(ask):
    bad = "https://" + addresses("v1.36.3")[0]
    document = ask(
        facts={"broken": {bad: "x509: certificate is valid for 10.96.0.1, not 10.1.1.1"}}
    )
    assert {server["error"] for server in document["collectors"]["locks"]["data"]["servers"]} == {
        None
    }


PROGRAM = """
import sys, time
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    client as api, proxy as api_proxy
)
api_proxy.PROBE_SECONDS = 120
with api_proxy.folder() as where:
    door = api_proxy.ApiProxy(where, "0", sys.argv[1], sys.argv[2], api.Deadline(120))
    try:
        door.get("/version")
        print(where, door.process.pid, flush=True)
        time.sleep(3000)
    finally:
        door.close()
"""


def lives(pid):
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_proxy_outlives_its_door(tmp_path, number):
    config = tmp_path / "admin.conf"
    stand_in(config, "v1.36.3", tmp_path)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, kubectl_of(tmp_path), str(config)],
        stdout=subprocess.PIPE,
        env=environment,
    )
    where, proxy = program.stdout.readline().decode().split()
    assert Path(where).stat().st_mode & 0o777 == 0o700
    program.send_signal(number)
    program.wait(120)
    assert until(lambda: not lives(proxy)), "the proxy is still there"
    if number == signal.SIGKILL:  # nobody could remove the folder; the next run does
        assert Path(where).exists()
        with kubeapi_proxy.folder():
            pass
    assert not Path(where).exists()


def test_a_proxy_that_cannot_start_says_why(tmp_path):
    config = tmp_path / "admin.conf"
    stand_in(config, "v1.36.3", tmp_path, fail="unknown flag: --nonsense")
    refused = pytest.raises(kubeapi_client.ApiError, match="unknown flag: --nonsense")
    deadline = kubeapi_client.Deadline(120)
    with kubeapi_proxy.folder() as where:
        proxy = kubeapi_proxy.ApiProxy(where, "0", kubectl_of(tmp_path), str(config), deadline)
        with refused, proxy as door:
            door.get("/version")


def test_secrets_in_kubeadm_config_stay_on_the_node(tmp_path, ask):
    recorded = json.loads((RECORDED / "v1.36.3.json").read_text())
    recorded["/api/v1/namespaces/kube-system/configmaps/kubeadm-config"]["data"][
        "ClusterConfiguration"
    ] += "  token: abcdef.secret\n"
    (tmp_path / "answers.json").write_text(json.dumps(recorded))
    text = ask(facts={"answers": str(tmp_path / "answers.json")})["collectors"]["kubeadm_config"][
        "data"
    ]["text"]
    assert "secret" not in text
    assert "  token: *************\n" in text
    assert "leader-elect" in text
