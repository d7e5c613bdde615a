# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of files, kubeconfigs and ports, read in a folder that stands for a node."""

import base64
import json
import os
import subprocess
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    certificates,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    certificate_flags,
    procfs,
    served_certificates,
)
from tests.unit.support import pki
from tests.unit.support.pki import Pki

MADE = Pki(time.time())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of kubeadm's, with no other folder of an installer."""
    root = tmp_path / "kubernetes"
    (root / "pki" / "etcd").mkdir(parents=True)
    monkeypatch.setattr(certificate_flags, "USUAL_FOLDERS", (str(root / "pki"),))
    rows = tuple(
        (component, str(root / path.rpartition("/")[2]))
        for component, path in certificate_flags.KUBECONFIGS
        if path.startswith("/etc/kubernetes")
    )
    monkeypatch.setattr(certificate_flags, "KUBECONFIGS", rows)
    monkeypatch.setattr(certificates, "KUBELET_FOLDER", str(tmp_path / "kubelet"))
    monkeypatch.setattr(
        served_certificates, "read", lambda places, seconds: [_shown(*place) for place in places]
    )
    return root


def _shown(address, port):
    return {"address": address, "port": port, "pem": None, "error": "refused"}


def fill(folder, names=("ca", "etcd/ca", "front-proxy-ca"), leaves=True):
    pairs = MADE.files("m1", "10.0.0.1")
    for name, pair in pairs.items():
        if name.endswith(".conf"):
            (folder / name).write_text(kubeconfig(pair, pairs["ca"]))
        elif leaves or name in names:
            (folder / "pki" / f"{name}.crt").write_text(pair.pem)
            (folder / "pki" / f"{name}.key").write_text(pair.private)
    token = pki.Authority("sa", time.time())
    (folder / "pki" / "sa.key").write_text(token.pair.private)
    return pairs


def kubeconfig(pair, ca):
    def data(text):
        return base64.b64encode(text.encode()).decode()

    return (
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data:"
        f" {data(ca.pem)}\n    server: https://10.0.0.1:6443\n  name: kubernetes\nusers:\n"
        f"- name: one\n  user:\n    client-certificate-data: {data(pair.pem)}\n"
        f"    client-key-data: {data(pair.private)}\n"
    )


def argv_of(folder, component):
    argv = pki.argvs("m1", "10.0.0.1")[component][1]
    return [word.replace(pki.FOLDER, str(folder / "pki")) for word in argv]


def manifest(folder, component):
    lines = "".join(f"    - {word}\n" for word in argv_of(folder, component))
    return {"text": f"spec:\n  containers:\n  - command:\n{lines}    image: registry/a:v1\n"}


def collect(folder, components=("kube-apiserver", "etcd"), kubelet=None, **data):
    found = {
        "kubelet": kubelet,
        "instances": {"processes": []},
        "manifests": {"files": [manifest(folder, name) for name in components]},
        **data,
    }
    context = base.Context({}, [], found)
    return certificates.collect(context)


def by_flag(answer, component, flag):
    rows = [*answer["uses"], *answer["keys"]]
    return next(row for row in rows if (row["component"], row["flag"]) == (component, flag))


def test_components_that_do_not_run_are_known_by_their_manifests(folder):
    pairs = fill(folder)
    answer = collect(folder)
    use = by_flag(answer, "kube-apiserver", "etcd-certfile")
    assert use["pid"] is None
    assert answer["files"][use["file"]]["pem"] == pairs["apiserver-etcd-client"].pem
    assert by_flag(answer, "etcd", "peer-key-file")["digests"] == [pairs["etcd/peer"].digest]


def test_a_process_that_ends_while_it_is_read_has_the_files_of_the_host(folder):
    """So does an API server that etcd refuses: it ends again and again."""
    pairs = fill(folder)
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    processes = [
        {"component": name, "pid": ended.pid, "argv": argv, "host_network": True}
        for name, argv in (
            ("kube-apiserver", argv_of(folder, "kube-apiserver")),
            ("kube-scheduler", ["kube-scheduler"]),
        )
    ]
    processes[1]["kubeconfig"] = {"path": str(folder / "scheduler.conf")}
    answer = collect(folder, (), instances={"processes": processes})
    use = by_flag(answer, "kube-apiserver", "etcd-certfile")
    row = answer["files"][use["file"]]
    assert (row["pem"], row["error"]) == (pairs["apiserver-etcd-client"].pem, None)
    assert row["mtime"]
    assert row["key_beside"]
    key = by_flag(answer, "kube-apiserver", "etcd-keyfile")
    assert (key["digests"], key["error"]) == ([pairs["apiserver-etcd-client"].digest], None)
    (config,) = [row for row in answer["kubeconfigs"] if row["component"] == "kube-scheduler"]
    assert config["client"] == pairs["scheduler.conf"].pem


def test_an_etcd_that_has_its_files_by_its_environment(folder, monkeypatch):
    """Kubespray runs it so, as a unit of its own."""
    pairs = fill(folder)
    names = {"CERT": "server", "KEY": "server", "PEER_CERT": "peer", "PEER_KEY": "peer"}
    ends = {"CERT": "crt", "KEY": "key"}
    lines = [
        f"ETCD_{name}_FILE={folder}/pki/etcd/{file}.{ends[name.rpartition('_')[2]]}"
        for name, file in names.items()
    ]
    lines += [f"ETCD_PEER_TRUSTED_CA_FILE={folder}/pki/etcd/ca.crt"]
    lines += ["ETCD_LISTEN_PEER_URLS=https://10.0.0.1:2380"]
    monkeypatch.setattr(procfs, "files_of_proc", lambda *_place: "\0".join(lines).encode())
    etcd = {"component": "etcd", "pid": os.getpid(), "argv": ["etcd"], "host_network": True}
    answer = collect(folder, ("kube-apiserver",), instances={"processes": [etcd]})
    for flag, name in (("cert-file", "etcd/server"), ("peer-cert-file", "etcd/peer")):
        use = by_flag(answer, "etcd", flag)
        assert answer["files"][use["file"]]["pem"] == pairs[name].pem
    assert by_flag(answer, "etcd", "peer-key-file")["digests"] == [pairs["etcd/peer"].digest]
    assert by_flag(answer, "etcd", "peer-trusted-ca-file")["path"].endswith("etcd/ca.crt")
    ports = {(row["flag"], row["port"]) for row in answer["served"] if row["component"] == "etcd"}
    assert ports == {("peer-cert-file", 2380)}


@pytest.mark.parametrize("is_replaced", [True, False])
def test_what_the_host_has_where_a_process_has_another_file(folder, tmp_path, is_replaced):
    fill(folder)
    path = folder / "controller-manager.conf"
    root = tmp_path / "root"
    inside = root / str(path).lstrip("/")
    inside.parent.mkdir(parents=True)
    os.link(path, inside)
    if is_replaced:
        other = fill(folder)["controller-manager.conf"]
        path.unlink()
        path.write_text(kubeconfig(other, other))
    row = certificates._kubeconfig("kube-controller-manager", str(path), str(root))
    assert row["host_client"] == (other.pem if is_replaced else None)


def test_a_file_is_read_once_for_all_that_use_it(folder):
    fill(folder)
    answer = collect(folder)
    paths = [record["path"] for record in answer["files"]]
    assert len(paths) == len(set(paths))
    trusted = {
        by_flag(answer, "etcd", flag)["file"]
        for flag in ("trusted-ca-file", "peer-trusted-ca-file")
    }
    assert trusted == {by_flag(answer, "kube-apiserver", "etcd-cafile")["file"]}


def test_no_key_leaves_the_node(folder):
    pairs = fill(folder)
    text = json.dumps(collect(folder))
    assert "PRIVATE" not in text
    for pair in pairs.values():
        assert pair.private.splitlines()[1] not in text
        assert base64.b64encode(pair.private.encode()).decode() not in text


def test_the_key_of_an_authority_is_beside_it_or_not(folder):
    fill(folder)
    (folder / "pki" / "ca.key").unlink()
    answer = collect(folder)
    beside = {record["path"]: record["key_beside"] for record in answer["files"]}
    assert beside[str(folder / "pki" / "ca.crt")] is False
    assert beside[str(folder / "pki" / "etcd" / "ca.crt")] is True


def test_kubeconfigs_of_components_and_administrators(folder):
    pairs = fill(folder)
    components = ("kube-apiserver", "kube-controller-manager")
    answer = collect(folder, components)
    rows = {row["path"].rpartition("/")[2]: row for row in answer["kubeconfigs"]}
    assert set(rows) == {"controller-manager.conf", "admin.conf"}
    row = rows["controller-manager.conf"]
    assert row["component"] == "kube-controller-manager"
    assert row["client"] == pairs["controller-manager.conf"].pem
    assert row["authority"] == pairs["ca"].pem
    assert row["digests"] == [pairs["controller-manager.conf"].digest]
    assert (row["server"], row["users"]) == ("https://10.0.0.1:6443", 1)


def test_a_kubeconfig_that_names_files_has_their_path(folder):
    pairs = fill(folder)
    (folder / "client.crt").write_text(pairs["admin.conf"].pem)
    (folder / "admin.conf").write_text(
        "server: https://m1:6443\nclient-certificate: client.crt\nclient-key: none.key\n"
    )
    rows = collect(folder)["kubeconfigs"]
    row = next(row for row in rows if row["path"].endswith("admin.conf"))
    assert row["client_path"] == str(folder / "client.crt")
    assert row["client"] == pairs["admin.conf"].pem
    assert row["digests"] == []


@pytest.mark.parametrize(
    ("text", "error"), [("", "no certificate in it"), (None, "missing")], ids=["empty", "missing"]
)
def test_a_file_without_a_certificate_says_so(folder, text, error):
    fill(folder)
    path = folder / "pki" / "apiserver.crt"
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    answer = collect(folder)
    use = by_flag(answer, "kube-apiserver", "tls-cert-file")
    record = answer["files"][use["file"]]
    assert (record["pem"], record["error"]) == (None, error)


def test_without_manifests_the_usual_folder_counts(folder):
    fill(folder)
    answer = collect(folder, manifests=None)
    paths = {use["path"] for use in answer["uses"]}
    assert str(folder / "pki" / "apiserver.crt") in paths
    assert str(folder / "pki" / "etcd" / "peer.crt") in paths


def test_a_folder_that_was_left_behind_does_not_count(folder):
    fill(folder)
    for path in folder.glob("*.conf"):
        path.unlink()
    with pytest.raises(base.Absent):
        collect(folder, components=())


@pytest.mark.parametrize("source", ["argv", "configuration", "usual"])
def test_the_serving_certificate_of_a_kubelet(folder, tmp_path, source):
    pair = MADE.ca.issue("w1", ["w1"])
    (tmp_path / "kubelet").mkdir()
    path = tmp_path / "kubelet" / "kubelet-server-current.pem"
    path.write_text(pair.pem + pair.private)
    kubelet = {"argv": ["kubelet"], "config": None, "process": {"pid": 1}}
    if source == "argv":
        kubelet["argv"].append(f"--tls-cert-file={path}")
    if source == "configuration":
        kubelet["config"] = {"text": f"port: 10255\ntlsCertFile: {path}\n"}
    answer = collect(folder, components=(), kubelet=kubelet)
    use = by_flag(answer, "kubelet", "tls-cert-file")
    assert answer["files"][use["file"]]["pem"] == pair.pem
    assert "PRIVATE" not in json.dumps(answer)
    (row,) = answer["served"]
    assert row["port"] == (10255 if source == "configuration" else 10250)


def test_the_folders_of_k3s(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(certificate_flags, "RANCHER_FOLDERS", {"k3s": str(tmp_path)})
    pairs = MADE.files("m1", "10.0.0.1")
    for name, source in (
        ("server/tls/serving-kube-apiserver.crt", "apiserver"),
        ("server/tls/etcd/peer-server-client.crt", "etcd/peer"),
        ("agent/serving-kubelet.crt", "apiserver"),
        ("agent/server-ca.crt", "ca"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(pairs[source].pem)
    kubelet = {
        "argv": ["/usr/local/bin/k3s", "server"],
        "unit": {"name": "k3s.service"},
        "process": {"pid": 7},
    }
    answer = collect(folder, components=(), kubelet=kubelet, manifests=None)
    flags = {(use["component"], use["flag"]) for use in answer["uses"]}
    assert flags == {
        ("kube-apiserver", "tls-cert-file"),
        ("etcd", "peer-cert-file"),
        ("kubelet", "tls-cert-file"),
        ("kubelet", "server-ca"),
    }
    ports = {row["port"] for row in answer["served"]}
    assert ports == {6443, 2379, 10250}


def test_the_ports_of_processes(folder):
    fill(folder)
    processes = [
        {
            "component": component,
            "pid": 2**22 + number,
            "argv": argv,
            "host_network": True,
            "kubeconfig": None,
        }
        for number, (component, argv) in enumerate(
            {
                "etcd": [
                    "etcd",
                    "--listen-client-urls=https://127.0.0.1:2379,https://10.0.0.1:2379",
                    "--listen-peer-urls=https://10.0.0.1:2380",
                ],
                "kube-apiserver": ["kube-apiserver", "--secure-port=7443"],
                "kube-scheduler": ["kube-scheduler", "--bind-address=127.0.0.1"],
                "kube-controller-manager": ["kube-controller-manager", "--secure-port=0"],
            }.items()
        )
    ]
    answer = collect(folder, components=(), instances={"processes": processes})
    shown = {(row["component"], row["flag"]): row["port"] for row in answer["served"]}
    assert shown == {
        ("etcd", "cert-file"): 2379,
        ("etcd", "peer-cert-file"): 2380,
        ("kube-apiserver", "tls-cert-file"): 7443,
        ("kube-scheduler", "tls-cert-file"): 10259,
    }


def test_a_process_in_another_network_is_not_asked(folder):
    fill(folder)
    row = {"component": "etcd", "pid": 1, "argv": ["etcd"], "host_network": False}
    answer = collect(folder, instances={"processes": [row]})
    assert answer["served"] == []


def test_many_files_are_cut(folder):
    fill(folder)
    argv = ["kube-apiserver"] + [f"--service-account-key-file=/k{n}" for n in range(200)]
    row = {"component": "kube-apiserver", "pid": 2**22, "argv": argv, "host_network": True}
    context = base.Context({}, [], {"instances": {"processes": [row]}})
    answer = certificates.collect(context)
    assert len(answer["keys"]) <= certificates.MAX_FILES
    assert context.truncated


def test_the_folder_of_rke2_has_what_no_flag_names(folder, tmp_path, monkeypatch):
    """Its etcd has a configuration file, and no flags."""
    monkeypatch.setattr(certificate_flags, "RANCHER_FOLDERS", {"rke2": str(tmp_path)})
    pairs = fill(folder)
    for name in ("server/tls/etcd/server-client.crt", "server/tls/serving-kube-apiserver.crt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(pairs["etcd/server"].pem)
    kubelet = {"argv": ["kubelet"], "unit": {"name": "rke2-server.service"}, "process": None}
    answer = collect(folder, components=("kube-apiserver",), kubelet=kubelet)
    path = by_flag(answer, "etcd", "cert-file")["path"]
    assert path == str(tmp_path / "server/tls/etcd/server-client.crt")
    path = by_flag(answer, "kube-apiserver", "tls-cert-file")["path"]
    assert path == str(folder / "pki" / "apiserver.crt")
