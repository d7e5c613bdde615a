# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CNI configurations, their programs, and the reservations of host-local."""

import json
import os
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Absent,
    Context,
    Failed,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import cni
from ansible_collections.kubemend.remediation.plugins.module_utils.system import cri as cri_call
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    http_client,
    rancher,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system.protobuf import (
    message,
    string,
)

BRIDGE = {
    "cniVersion": "0.4.0",
    "name": "lab",
    "plugins": [
        {
            "type": "bridge",
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}], "x", [1]]},
        },
        {"type": "portmap", "token": "hunter2"},
    ],
}


@pytest.fixture
def folders(tmp_path):
    for name in ("net.d", "bin", "networks/lab"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bin" / "bridge").touch()
    return tmp_path


def write(folders, name, value):
    text = value if isinstance(value, str) else json.dumps(value)
    (folders / "net.d" / name).write_text(text)


def reserve(folders, name, text, age=3600):
    path = folders / "networks" / "lab" / name
    path.write_text(text)
    os.utime(path, (time.time() - age,) * 2)


def collect(folders, sandboxes=("aa",), **data):
    config = {"conf_dir": str(folders / "net.d"), "bin_dirs": [str(folders / "bin")]}
    known = {
        "kubelet": {"argv": ["kubelet"]},
        "runtime": {"kind": "containerd"},
        "cri": {"config": config, "sandboxes": sandboxes},
        **data,
    }
    evidence = cni.collect(Context({}, {}, known))
    json.dumps(evidence)
    return evidence


def test_configurations_in_their_order_without_their_secrets(folders):
    write(folders, "99-loopback.conf", {"name": "lo", "type": "loopback"})
    write(folders, "10-lab.conflist", BRIDGE)
    write(folders, "20-broken.conf", "{")
    write(folders, "30-list.json", "[]")
    write(folders, "readme.txt", "x")
    write(folders, "40-empty.conflist", "")
    data = collect(folders)
    assert [record["name"] for record in data["files"]] == [
        "10-lab.conflist",
        "20-broken.conf",
        "30-list.json",
        "40-empty.conflist",
        "99-loopback.conf",
    ]
    assert [bool(record["error"]) for record in data["files"]] == [False, True, True, True, False]
    first = data["files"][0]
    assert (first["network"], first["plugins"]) == ("lab", ["bridge", "portmap"])
    assert first["ipam"] == [{"type": "host-local", "data_dir": "", "subnets": ["10.244.1.0/24"]}]
    assert (data["bin_dirs"], data["programs"]) == ([str(folders / "bin")], ["bridge"])
    assert "hunter2" not in json.dumps(data)


def test_files_that_a_plugin_is_told_to_read_and_that_are_not_there(folders):
    there = str(folders / "there")
    (folders / "there").touch()
    calico = {
        "type": "calico",
        "etcd_key_file": "/ucp-volume-mounts/ucp-node-certs/key.pem",
        "etcd_cert_file": there,
        "etcd_ca_cert_file": 7,
        "etcd_key": "/bm9zZWNyZXQ=",
        "log_file": "/not/written/yet",
        "kubernetes": {"kubeconfig": "/gone/kubeconfig"},
        "ipam": {"type": "whereabouts", "kubernetes": {"kubeconfig": "/gone/ipam.kubeconfig"}},
    }
    relative = {"type": "multus", "kubeconfig": "relative", "ipam": []}
    write(folders, "10-calico.conflist", {"name": "k8s", "plugins": [calico, relative]})
    write(folders, "20-zero.conf", {"type": "x", "kubeconfig": "/a\0b"})
    first, second = collect(folders)["files"]
    assert first["missing"] == [
        "/ucp-volume-mounts/ucp-node-certs/key.pem",
        "/gone/kubeconfig",
        "/gone/ipam.kubeconfig",
    ]
    assert second["missing"] == []


@pytest.mark.parametrize(
    ("error", "is_missing"),
    [
        (FileNotFoundError(2, "x"), True),
        (PermissionError(13, "x"), False),
        (OSError(5, "x"), False),
    ],
)
def test_only_a_file_that_is_not_there_is_missing(folders, monkeypatch, error, is_missing):
    def stat(path):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(cni.os, "stat", stat)
        missing = cni._missing({"kubeconfig": "/a"})
    assert missing == ["/a"] * is_missing


def test_reservations_are_compared_with_the_sandboxes(folders):
    reserve(folders, "10.244.1.2", "aa\r\neth0")
    reserve(folders, "10.244.1.3", "bb\r\neth0")
    reserve(folders, "10.244.1.4", "")
    reserve(folders, "10.244.1.5", "cc", age=5)
    reserve(folders, "10.244.1.6", "", age=5)
    reserve(folders, "last_reserved_ip.0", "10.244.1.5")
    reserve(folders, "lock", "")
    records = [{"network": "lab", "ipam": [{"type": "host-local", "data_dir": ""}] * 2}]
    state = str(folders / "networks")
    (row,) = cni.reservations(records, ["aa"], time.time(), state)
    assert (row["addresses"], row["held"], row["leaked"], row["empty"]) == (5, 1, 1, 1)
    assert row["names"] == ["10.244.1.3", "10.244.1.4"]
    (row,) = cni.reservations(records, None, time.time(), state)
    assert (row["held"], row["leaked"], row["empty"]) == (None, None, 1)
    records[0]["network"] = "other"
    assert cni.reservations(records, [], time.time(), state) == []


def test_reservations_are_bounded(folders, monkeypatch):
    monkeypatch.setattr(cni, "MAX_RESERVED", 2)
    for number in range(4):
        reserve(folders, f"10.244.1.{number}", "bb")
    records = [{"network": "lab", "ipam": [{"type": "host-local", "data_dir": ""}]}]
    (row,) = cni.reservations(records, [], time.time(), str(folders / "networks"))
    assert (row["truncated"], row["addresses"]) == (True, 2)


def test_flannel_gives_its_addresses_by_host_local(tmp_path):
    path = tmp_path / "subnet.env"
    path.write_text("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\n")
    assert cni._of_flannel(str(path))["subnets"] == ["10.244.1.1/24"]
    assert cni._of_flannel(str(tmp_path / "none"))["subnets"] == []


def test_where_programs_lie_is_known_of_containerd_and_docker_alone(folders):
    folder = {"argv": ["kubelet", f"--cni-conf-dir={folders}/net.d"]}
    data = collect(folders, kubelet=folder, cri=None)
    assert (data["folder"], data["bin_dirs"], data["programs"]) == (f"{folders}/net.d", None, None)
    data = collect(folders, kubelet=folder, cri=None, runtime={"kind": "docker"})
    assert data["bin_dirs"] == ["/opt/cni/bin"]


def test_programs_that_may_not_be_listed_are_not_known(folders, monkeypatch):
    def listed(path):
        if path == "/locked":
            raise PermissionError(13, "Permission denied")
        return ["bridge"]

    monkeypatch.setattr(os, "listdir", listed)
    assert cni.programs(["/opt/cni/bin"]) == ["bridge"]
    assert cni.programs(["/opt/cni/bin", "/locked"]) is None


def test_what_is_not_there(folders):
    for data in ({"kubelet": None}, {"runtime": {"kind": "embedded"}}):
        with pytest.raises(Absent):
            collect(folders, **data)
    data = collect(folders / "none")
    assert (data["files"], data["error"], data["programs"]) == ([], "missing", [])


def test_more_programs_than_are_kept_are_not_known(folders, monkeypatch):
    monkeypatch.setattr(cni, "MAX_PROGRAMS", 1)
    assert cni.programs([str(folders / "bin")]) == ["bridge"]
    (folders / "bin" / "portmap").touch()
    assert cni.programs([str(folders / "bin")]) is None


@pytest.fixture
def k3s(folders, monkeypatch):
    """Return a runtime within k3s that answers, and the calls that it gets."""
    path, calls = folders / "containerd.sock", []
    config = {
        "containerd": {"defaultRuntimeName": "runc"},
        "cni": {"binDir": str(folders / "bin"), "confDir": str(folders / "net.d")},
    }
    replies = {
        "Status": (0, message(2, string(1, "config") + string(2, json.dumps(config)))),
        "ListPodSandbox": (0, message(1, string(1, "aa"))),
    }

    def call(socket, method, _data, _seconds):
        calls.append((socket, method))
        return replies[method.rpartition("/")[2]]

    path.touch()
    monkeypatch.setattr(cri_call, "call", call)
    monkeypatch.setattr(rancher, "RUNTIME", str(path))
    return replies, calls


IN_K3S = {
    "kubelet": {"argv": ["k3s", "server"], "unit": {"name": "k3s.service"}},
    "runtime": {"kind": "embedded", "path": None},
    "cri": None,
}


def test_the_runtime_of_k3s_tells_its_folders_and_its_sandboxes(folders, k3s):
    write(folders, "10-lab.conflist", bridge_of(folders))
    reserve(folders, "10.244.1.2", "aa\r\neth0")
    reserve(folders, "10.244.1.3", "bb\r\neth0")
    data = collect(folders, **IN_K3S)
    assert (data["folder"], data["programs"]) == (str(folders / "net.d"), ["bridge"])
    assert [record["network"] for record in data["files"]] == ["lab"]
    (row,) = data["reservations"]
    assert (row["addresses"], row["leaked"]) == (2, 1)
    assert {socket for socket, _method in k3s[1]} == {rancher.RUNTIME}


def test_a_runtime_of_k3s_without_an_answer_is_an_error(folders, k3s):
    k3s[0]["Status"] = ("no answer", b"")
    with pytest.raises(Failed):
        collect(folders, **IN_K3S)


def test_a_runtime_of_k3s_without_a_socket_is_not_asked(folders, k3s, monkeypatch):
    monkeypatch.setattr(rancher, "RUNTIME", str(folders / "none"))
    with pytest.raises(Absent):
        collect(folders, **IN_K3S)
    with pytest.raises(Absent):  # of another distribution
        collect(folders, **{**IN_K3S, "kubelet": {"argv": [], "unit": {"name": "snap.x"}}})
    assert k3s[1] == []


def bridge_of(folders):
    """Return the configuration of a bridge whose reservations are in these folders."""
    ipam = {"type": "host-local", "dataDir": str(folders / "networks")}
    return {"name": "lab", "plugins": [{"type": "bridge", "ipam": ipam}]}


DOCKER = {"kind": "docker", "path": "/var/run/docker.sock", "asked": True}


def docker(monkeypatch, status, body):
    class Connection:
        def __init__(self, *address):
            assert address[:2] == (DOCKER["path"], 0)

        def request(self, path):
            assert path == "/containers/json?all=1"
            return status, body

        def close(self):
            pass

    monkeypatch.setattr(http_client, "Connection", Connection)


@pytest.mark.parametrize(
    ("status", "body", "leaked"),
    [
        (200, b'[{"Id": "aa", "Names": ["/hunter2"]}]', 1),
        (200, b"[]", 2),
        (500, b"[]", None),
        (200, b"{}", None),
        (200, b'["x"]', None),
        (200, b"no JSON", None),
    ],
)
def test_docker_tells_its_containers(folders, monkeypatch, status, body, leaked):
    docker(monkeypatch, status, body)
    write(folders, "10-lab.conflist", bridge_of(folders))
    reserve(folders, "10.244.1.2", "aa")
    reserve(folders, "10.244.1.3", "bb")
    known = {"argv": [f"--cni-conf-dir={folders}/net.d"]}
    data = collect(folders, kubelet=known, cri=None, runtime=DOCKER)
    assert data["reservations"][0]["leaked"] == leaked
    assert "hunter2" not in json.dumps(data)


def test_docker_is_not_asked_where_it_does_not_run_or_nothing_is_reserved(folders, monkeypatch):
    docker(monkeypatch, 200, b"no JSON")
    monkeypatch.setattr(cni, "docker_containers", None)
    known = {"argv": [f"--cni-conf-dir={folders}/net.d"]}
    collect(folders, kubelet=known, cri=None, runtime=DOCKER)
    write(folders, "10-lab.conflist", bridge_of(folders))
    collect(folders, kubelet=known, cri=None, runtime={**DOCKER, "asked": False})


@pytest.mark.parametrize(
    ("pods", "found"),
    [
        (["kube-system_kube-multus-ds-bcdfg_1"], True),
        (["kube-system_rke2-multus-bcdfg_1"], True),
        (["openshift-multus_network-metrics-daemon-bcdfg_1"], False),
        (["default_app-1_1"], False),
        ([], False),
    ],
)
def test_what_cilium_put_aside_and_whether_multus_is_there(tmp_path, pods, found):
    for name in ("00-multus.conf.cilium_bak", "05-cilium.conflist", "README"):
        (tmp_path / name).write_text("{}", encoding="ascii")
    logs = tmp_path / "pods"
    for name in pods:
        (logs / name).mkdir(parents=True)
    assert cni.aside(str(tmp_path)) == ["00-multus.conf.cilium_bak"]
    assert cni.has_multus(str(logs)) is found
