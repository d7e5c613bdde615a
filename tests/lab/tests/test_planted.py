# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets planted on the nodes of a real cluster, and in it.

An audit and a repair with everything on show hand out none of them.
"""

from __future__ import annotations

import contextlib
import json

from tests.lab.support import jobs, playbook
from tests.lab.support.repairing import CONSENT, broken
from tests.lab.support.static_pod import MANAGER, manifest, set_flag, wait_election_off, wait_flag
from tests.unit.support.planted_secrets import found_in, secret

LOUD = (
    "-vvv",
    "--diff",
    "-e",
    '{"kubemend_report_formats": ["terminal", "json", "html", "junit", "prometheus", "sarif"]}',
    "-e",
    "kubemend_deep=true",
)
ANNOTATION = f"  annotations:\n    example.org/api-token: {secret('manifest-annotation-token')}\n"
INSIDE = f"""    env:
    - name: DB_PASSWORD
      value: "{secret("manifest-env")}"
    - {{name: API_TOKEN, value: {secret("static-env")}}}
    - name: ENDPOINT
      value: https://admin:{secret("manifest-url")}@planted.example.org:6443
"""
FILES = {
    "/etc/default/kubelet": f"API_SECRET={secret('kubelet-file')}\nPUBLIC=planted.example.org\n",
    "/etc/fstab": (
        f"//planted.example.org/x /mnt cifs noauto,username=u,password={secret('fstab')} 0 0\n"
    ),
    "/etc/docker/daemon.json": (
        f'{{"http-proxy": "http://u:{secret("docker")}@planted.example.org:3128"}}\n'
    ),
    "/etc/kubernetes/bootstrap-kubelet.conf": (
        "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user:\n    token:"
        f" {secret('bootstrap')}\n"
    ),
    "/etc/systemd/system/kubelet.service.d/90-planted.conf": (
        f"[Service]\nEnvironment=REGISTRY_TOKEN={secret('kubelet-environment')}\n"
        "Environment=SHOWN=planted.example.org\n"
    ),
}


@contextlib.contextmanager
def files(cluster, node):
    """Put these files on a node, and restore the former ones afterwards, with their time.

    A file that is newer than the kubelet forbids its restart in later tests.
    """
    before = {
        path: (
            (cluster.read(node, path), _changed_at(cluster, node, path))
            if cluster.exec(node, ["test", "-e", path], check=False).returncode == 0
            else None
        )
        for path in FILES
    }
    try:
        for path, text in FILES.items():
            cluster.exec(node, ["mkdir", "-p", path.rpartition("/")[0]])
            cluster.write(node, path, text)
        cluster.exec(node, ["systemctl", "daemon-reload"])
        yield
    finally:
        for path, former in before.items():
            if former is None:
                cluster.exec(node, ["rm", "-f", path])
            else:
                cluster.write(node, path, former[0], mtime=former[1])
        cluster.exec(node, ["systemctl", "daemon-reload"])


def _changed_at(cluster, node, path) -> str:
    return cluster.exec(node, ["stat", "-c", "%.9Y", path]).stdout.decode().strip()


def unlucky(cluster, namespace):
    """Create a Job whose pod has secrets in all that the API tells of it."""
    spec = jobs.pod_spec(cluster)
    spec["containers"][0].update(
        args=[f"--password={secret('flag-token')}"],
        env=[{"name": "TOKEN", "value": secret("bearer")}],
    )
    template = {
        "metadata": {"annotations": {"example.org/password": secret("scheduler-flag")}},
        "spec": spec,
    }
    cluster.kubectl(
        "create",
        "--validate=false",
        "-f",
        "-",
        input=json.dumps(
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": [
                    {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "metadata": {"name": "planted", "namespace": namespace},
                        "spec": {"template": template},
                    },
                    {
                        "apiVersion": "v1",
                        "kind": "Secret",
                        "metadata": {"name": "planted", "namespace": namespace},
                        "stringData": {"key": secret("key-file")},
                    },
                ],
            }
        ),
    )


def test_nothing_that_a_run_writes_or_prints_holds_a_secret(cluster, tmp_path):
    """Two leaders, in a manifest with secrets next to the changed line of the diff."""
    path, namespace, told = manifest(MANAGER), jobs.new_namespace(), ""
    with broken(cluster, "two-leaders-kcm-only"), files(cluster, "w1"):
        text = (
            cluster.read("m2", path).decode().replace("metadata:\n", "metadata:\n" + ANNOTATION, 1)
        )
        text = text.replace("    image:", INSIDE + "    image:", 1)
        cluster.write(
            "m2",
            path,
            text.replace(
                "    - --leader-elect",
                f"    # - --token={secret('manifest-flag')}\n    - --leader-elect",
                1,
            ),
        )
        wait_election_off(cluster, "m2", MANAGER)
        wait_flag(cluster, "m2", MANAGER, "--leader-elect=false")
        jobs.create_namespace(cluster, namespace)
        try:
            unlucky(cluster, namespace)
            for name, more in (
                ("audit", ("-e", f"kubemend_bundle={tmp_path}/case.tar.gz")),
                ("duplicate_pods", ("--check", *CONSENT)),
                ("duplicate_pods", CONSENT),
                ("revert", ()),
            ):
                done = playbook.run(
                    name,
                    cluster.inventory,
                    *LOUD,
                    *more,
                    report=str(tmp_path / f"{name}{len(told)}"),
                )
                assert done.returncode == 0, done.stdout[-3000:]
                told += done.stdout
        finally:
            jobs.remove(cluster, namespace)
        mended = cluster.read("m2", path).decode()
    # the node's own file keeps its own
    assert mended == set_flag(mended, "leader-elect", "true")
    assert secret("manifest-env") in mended
    (tmp_path / "told").write_text(told, encoding="utf-8")
    read = "".join(one.read_text(encoding="utf-8") for one in tmp_path.rglob("evidence/*.json"))
    for public in (
        "planted.example.org",
        "90-planted.conf",
        "example.org/api-token",
        "DB_PASSWORD",
        "/mnt cifs noauto",
        "*" * 12,
    ):
        assert public in read, public
    assert "# - --token=" in told
    assert (tmp_path / "case.tar.gz").is_file()
    assert found_in(tmp_path) == []
