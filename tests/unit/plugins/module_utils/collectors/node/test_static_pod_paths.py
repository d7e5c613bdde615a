# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies at the paths that manifests of static pods name."""

import json
import socket
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    static_pod_paths,
)

RECORDED = Path(__file__).resolve().parents[5] / "fixtures" / "recorded"


def collect(*texts):
    files = [{"path": f"/m/{number}.yaml", "text": text} for number, text in enumerate(texts)]
    return static_pod_paths.collect(base.Context({}, [], {"manifests": {"files": files}}))


def kinds(*texts):
    return {row["path"]: row["kind"] for row in collect(*texts)["paths"]}


@pytest.mark.parametrize("version", ["v1.18.4", "v1.36.3"])
def test_a_manifest_of_kubeadm(version):
    evidence = json.loads((RECORDED / f"{version}-inotify-watches/evidence/m1.json").read_text())
    files = evidence["collectors"]["manifests"]["data"]["files"]
    (text,) = [row["text"] for row in files if row["name"] == "kube-apiserver.yaml"]
    paths = static_pod_paths.of_manifest(text)
    assert "/etc/kubernetes/pki" in paths
    assert "/etc/kubernetes/pki/ca.crt" in paths
    assert len(paths) < 60


def test_files_folders_and_sockets(tmp_path):
    (tmp_path / "policy.yaml").write_text("x")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "kms.sock"))
        found = kinds(
            f"    - --audit-policy-file={tmp_path}/policy.yaml\n"
            f"    - --config={tmp_path}/gone.yaml\n"
            f"  - hostPath:\n      path: {tmp_path}\n"
            f"  - hostPath:\n      path: '{tmp_path}/kms.sock'\n"
        )
    assert found == {
        str(tmp_path): "directory",
        f"{tmp_path}/kms.sock": "socket",
        f"{tmp_path}/policy.yaml": "file",
        f"{tmp_path}/gone.yaml": "missing",
    }


def test_a_file_of_a_folder_that_is_mounted_elsewhere(tmp_path):
    (tmp_path / "policy.yaml").write_text("x")
    found = kinds(
        "    - --audit-policy-file=/etc/audit/policy.yaml\n    - mountPath: /etc/audit\n"
        f"  - hostPath:\n      path: {tmp_path}\n"
    )
    assert found[f"{tmp_path}/policy.yaml"] == "file"
    (tmp_path / "policy.yaml").unlink()
    gone = tmp_path / "audit"
    gone.mkdir()
    found = kinds(
        "    - --audit-policy-file=/etc/audit/policy.yaml\n    - mountPath: /etc/audit\n"
        f"  - hostPath:\n      path: {gone}\n"
    )
    assert found[f"{gone}/policy.yaml"] == "missing"


def test_a_manifest_in_json():
    text = '{"mountPath":"/etc/a","hostPath":{"path":"/etc/kubernetes"},"x":"--config=/etc/a/b"}'
    assert set(static_pod_paths.of_manifest(text)) == {"/etc/kubernetes", "/etc/a/b"}


def test_no_more_than_a_limit():
    text = "".join(f"    - --flag-{number}=/p/{number}\n" for number in range(500))
    assert len(collect(text)["paths"]) == static_pod_paths.MAX_PATHS


def test_nothing_to_look_at(monkeypatch):
    with pytest.raises(base.Absent):
        collect("kind: Pod\n")
    with pytest.raises(base.Absent):
        static_pod_paths.collect(base.Context({}, [], {}))
    monkeypatch.setattr(static_pod_paths.os, "geteuid", lambda: 1000)
    with pytest.raises(base.Denied):
        static_pod_paths.collect(base.Context({}, [], {}))
