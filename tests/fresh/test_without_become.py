# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An audit as an ordinary user.

What root reads, what that user reads, and that what is not seen is unknown, never clear.

The node is a stand-in: a plain container with programs of the components' names, and files of the
modes that kubeadm gives them. KUBEMEND_APPROVE=1 writes what was read into without_become.json,
which docs/rights.md tells.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.fresh.container import Container, fresh
from tests.gate import machine, venvs

TOLD = Path(__file__).with_name("without_become.json")
MANIFEST = """apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: kube-system, labels: {component: NAME}}
spec:
  hostNetwork: true
  containers:
  - name: NAME
    image: none
    command:
    - NAME
    - --kubeconfig=/etc/kubernetes/NAME.conf
    - --leader-elect=true
"""
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem}}]
"""
KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/kubernetes/manifests
cpuManagerPolicy: none
"""
NETWORK = '{"name":"k8s-pod-network","plugins":[{"type":"calico"},{"type":"portmap"}]}'
STATE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
NONE = "not tried: the stand-in has none"
ALL = "all of it"
# These find something only where the machine lacks memory or space, or where its disk hangs.
OF_MACHINE = ("hangs", "largest")
# The kernel is the machine's, and a role's scenario beside this one raises its limits for a while.
# Whether it has tables of iptables-legacy, which only root may list, depends on what ran on it.
OF_KERNEL = ("KM407", "KM534")
TABLES = (ALL, "not `tables`", "not `legacy`, `tables`")
# name: (mode, text)
FILES = {
    "/etc/kubernetes/kubelet.conf": ("600", KUBECONFIG),
    "/etc/kubernetes/admin.conf": ("600", KUBECONFIG),
    "/etc/kubernetes/kube-scheduler.conf": ("600", KUBECONFIG),
    "/etc/kubernetes/kube-controller-manager.conf": ("600", KUBECONFIG),
    "/etc/kubernetes/manifests/kube-scheduler.yaml": (
        "600",
        MANIFEST.replace("NAME", "kube-scheduler"),
    ),
    "/etc/kubernetes/manifests/kube-controller-manager.yaml": (
        "600",
        MANIFEST.replace("NAME", "kube-controller-manager"),
    ),
    "/var/lib/kubelet/config.yaml": ("644", KUBELET),
    "/var/lib/kubelet/cpu_manager_state": ("600", STATE),
    "/var/lib/kubelet/pki/kubelet-client-current.pem": ("600", ""),
    "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint": ("600", "{}"),
    "/etc/cni/net.d/10-calico.conflist": ("600", NETWORK),
    "/var/lib/kubemend/lock": ("600", ""),
    "/run/systemd/container": ("644", "podman"),
    # firewalld, ufw and a profile of NetworkManager with the modes of their packages; ufw is off.
    "/usr/lib/systemd/system/firewalld.service": ("644", "[Unit]"),
    "/usr/lib/systemd/system/ufw.service": ("644", "[Unit]"),
    "/etc/systemd/system/multi-user.target.wants/firewalld.service": ("644", "[Unit]"),
    "/etc/firewalld/firewalld.conf": ("644", "DefaultZone=public"),
    "/etc/firewalld/zones/public.xml": ("644", "<zone/>"),
    "/etc/NetworkManager/system-connections/eth0.nmconnection": ("600", "[connection]\nid=eth0"),
    "/etc/ufw/ufw.conf": ("644", "ENABLED=no"),
    "/etc/default/ufw": ("644", 'DEFAULT_INPUT_POLICY="DROP"'),
    **{
        f"/etc/ufw/{name}.rules": ("640", "*filter\nCOMMIT")
        for name in ("before", "before6", "user", "user6", "after", "after6")
    },
}
FOLDERS = {
    "/etc/kubernetes/manifests": "700",
    "/var/lib/kubelet/pki": "700",
    "/var/lib/kubelet/device-plugins": "750",
    "/var/lib/kubelet": "750",
    "/var/lib/kubemend": "700",
    "/etc/firewalld": "750",
}
PROGRAMS = {
    "kubelet": "--config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf",
    "kube-scheduler": "--kubeconfig=/etc/kubernetes/kube-scheduler.conf --leader-elect=true",
    "kube-controller-manager": (
        "--kubeconfig=/etc/kubernetes/kube-controller-manager.conf --leader-elect=true"
    ),
}


def planted(node: Container) -> None:
    """Prepare a control-plane node, as far as its files and its table of processes show."""
    lines = ["set -e", "useradd -m viewer"]
    for path, (mode, text) in FILES.items():
        lines += [f"install -D -m {mode} /dev/null {path}", f"cat > {path} <<'END'\n{text}\nEND"]
    lines += [f"chmod {mode} {path}" for path, mode in FOLDERS.items()]
    # the kubelet has had time to load them
    lines.append("find /etc/kubernetes /var/lib/kubelet -type f -exec touch -d '1 hour ago' {} +")
    for name, arguments in PROGRAMS.items():
        lines += [
            f"cp /usr/bin/python3.11 /usr/local/bin/{name}",
            (
                f"setsid /usr/local/bin/{name} -c 'import time; time.sleep(1e6)' {arguments}"
                " >/dev/null 2>&1 </dev/null &"
            ),
        ]
    done = node.run("\n".join(lines), timeout=60)
    assert done.returncode == 0, done.stdout


def audit(node: Container, folder: Path, user: str) -> dict:
    inventory = folder / f"{user}.ini"
    inventory.write_text(
        f"[kube_control_plane]\nm1 ansible_host={node.name}"
        f" ansible_connection=containers.podman.podman ansible_user={user}"
        " ansible_python_interpreter=/usr/bin/python3\n",
        encoding="utf-8",
    )
    home = venvs.ensure("test")
    env = machine.environment(
        ANSIBLE_COLLECTIONS_PATH=os.pathsep.join(
            [str(venvs.collections()), str(venvs.bundled("containers.podman"))]
        ),
        ANSIBLE_HOME=str(folder / "ansible-home"),
        ANSIBLE_NOCOLOR="1",
    )
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    report = folder / user
    done = subprocess.run(
        [
            home / "bin" / "ansible-playbook",
            "-i",
            inventory,
            "kubemend.remediation.audit",
            "-e",
            "kubemend_become=false",
            "-e",
            "kubemend_deep=true",
            "-e",
            f"kubemend_report_dir={report}",
        ],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        "report": json.loads((report / "report.json").read_text(encoding="utf-8")),
        "stdout": done.stdout,
        "evidence": json.loads((report / "evidence" / "m1.json").read_text(encoding="utf-8")),
    }


@pytest.fixture(scope="module", name="runs")
def _runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("become")
    with fresh("become") as node:
        planted(node)
        yield {user: audit(node, folder, user) for user in ("root", "viewer")}


def refused(data):
    """Paths of files that were there to be read, and could not be."""
    if isinstance(data, dict):
        if data.get("error") == "denied":
            yield str(data.get("path") or data["name"])
        else:
            for value in data.values():
                yield from refused(value)
    elif isinstance(data, list):
        for value in data:
            yield from refused(value)


def lost(whole, part):
    """Yield the names of what root got and this user did not."""
    if isinstance(whole, dict) and isinstance(part, dict) and part.get("error") != "denied":
        for key, value in whole.items():
            if value is not None and part.get(key) is None:
                yield key
            yield from lost(value, part.get(key))
    elif isinstance(whole, list) and isinstance(part, list):
        for one, other in zip(whole, part, strict=False):
            yield from lost(one, other)


def reads(whole: dict, part: dict) -> str:
    """Return what an ordinary user gets of a collector, as docs/rights.md says it."""
    if whole["status"] != "ok":
        return NONE
    if part["status"] != "ok":
        return part["status"]
    if not any(whole["data"].values()):
        return NONE
    missing = [*sorted(set(refused(part["data"]))), *sorted(set(lost(whole["data"], part["data"])))]
    if missing:
        return "not " + ", ".join(f"`{name}`" for name in missing)
    return "not other users' processes" if part["data"].get("denied") else ALL


def verdicts(run: dict) -> dict:
    return {(one["code"], one["component"]): one["verdict"] for one in run["report"]["verdicts"]}


def told(runs: dict) -> dict:
    """Compare the run as an ordinary user with the run as root.

    collectors: by collector, what an ordinary user gets of it
    unknown: the faults that root has a verdict for and that user has none
    """
    root, viewer = verdicts(runs["root"]), verdicts(runs["viewer"])
    both = [runs[user]["evidence"]["collectors"] for user in ("root", "viewer")]
    return {
        "collectors": {name: reads(both[0][name], both[1][name]) for name in sorted(both[0])},
        "unknown": sorted(
            {
                code
                for code, component in root
                if viewer[code, component] == "unknown" != root[code, component]
                and code not in OF_KERNEL
            }
        ),
    }


def test_what_is_not_seen_is_unknown_and_what_is_told_is_what_root_is_told(runs):
    root, viewer = verdicts(runs["root"]), verdicts(runs["viewer"])
    assert set(root) == set(viewer)
    differing = {
        key: (root[key], viewer[key])
        for key in root
        if root[key] != viewer[key] and key[0] not in OF_KERNEL
    }
    assert differing, differing
    assert {verdict for _root, verdict in differing.values()} == {"unknown"}, differing


def test_the_page_tells_what_was_read(runs):
    found = told(runs)
    if os.environ.get("KUBEMEND_APPROVE") == "1":
        TOLD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    expected = json.loads(TOLD.read_text(encoding="utf-8"))
    assert found["unknown"] == expected["unknown"]
    differing = {
        name: (found["collectors"].get(name), expected["collectors"].get(name))
        for name in found["collectors"].keys() | expected["collectors"].keys()
        if found["collectors"].get(name) != expected["collectors"].get(name)
    }
    for name in OF_MACHINE:
        if differing.get(name) == (ALL, NONE):
            del differing[name]
    if set(differing.get("network", ())) <= set(TABLES):
        differing.pop("network", None)
    assert differing == {}
    assert "(denied)" in runs["viewer"]["stdout"]
