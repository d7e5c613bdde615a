# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles of examples/rbac are enough for an audit; without one of them its part is unknown."""

from __future__ import annotations

import base64
import contextlib
import json

from tests.gate import machine
from tests.lab.support.report import OF_THE_MOMENT

ROLES, NAME, PATH = (
    machine.ROOT / "examples" / "rbac" / "audit.yml",
    "kubemend-audit",
    "/root/kubemend-audit.conf",
)
# That show a lack of rights in each of them; one is enough where the machine is not busy.
AUDITS = 3


@contextlib.contextmanager
def limited(cluster):
    """Yield a kubeconfig of the ServiceAccount on m1, the first host that is read."""
    cluster.kubectl("apply", "-f", "-", input=ROLES.read_bytes())
    try:
        data = {
            "server": f"https://{cluster.node('m1').ip}:6443",
            "certificate-authority-data": (
                base64.b64encode(
                    cluster.exec("m1", ["cat", "/etc/kubernetes/pki/ca.crt"]).stdout
                ).decode()
            ),
        }
        cluster.write(
            "m1",
            PATH,
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": NAME,
                    "clusters": [{"name": NAME, "cluster": data}],
                    "users": [{"name": NAME, "user": {"token": token(cluster)}}],
                    "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
                }
            ).encode(),
            mode="600",
        )
        yield
    finally:
        cluster.exec("m1", ["rm", "-f", PATH])
        cluster.kubectl("delete", "--ignore-not-found", "-f", "-", input=ROLES.read_bytes())


def token(cluster) -> str:
    """Return a token as the release gives one.

    It is given on request, or as a Secret that its controller makes.
    """
    if int(cluster.k8s.split(".")[1]) >= 24:
        return cluster.kubectl("-n", "kube-system", "create", "token", NAME).stdout.decode().strip()

    def made():
        account = json.loads(
            cluster.kubectl("-n", "kube-system", "get", "serviceaccount", NAME, "-o", "json").stdout
        )
        return account.get("secrets")

    cluster.wait(made, 30, "the token of the ServiceAccount")
    secret = json.loads(
        cluster.kubectl(
            "-n", "kube-system", "get", "secret", made()[0]["name"], "-o", "json"
        ).stdout
    )
    return base64.b64decode(secret["data"]["token"]).decode()


def verdicts(report: dict) -> dict:
    """Return the verdict of each row; what is only of this moment counts as known."""
    rows = {}
    for one in report["verdicts"]:
        verdict = one["verdict"]
        if one["code"] in OF_THE_MOMENT and verdict != "unknown":
            verdict = "known"
        rows[one["code"], one["host"], one["component"]] = verdict
    return rows


def differences(report: dict, *others: dict) -> list[tuple]:
    """List the rows with a verdict that no other report has for the same row."""
    rows, expected = verdicts(report), [verdicts(other) for other in others]
    keys = set(rows).union(*expected)
    return sorted(
        (*map(str, key), rows.get(key))
        for key in keys
        if rows.get(key) not in [other.get(key) for other in expected]
    )


def statuses(tmp_path) -> dict:
    document = json.loads(
        (tmp_path / "report" / "evidence" / "m1.cluster.json").read_text(encoding="utf-8")
    )
    assert document["status"] == "ok", document["reason"]
    return {name: one["status"] for name, one in document["collectors"].items()}


def test_the_roles_are_enough_and_what_they_lack_is_unknown(cluster, play, tmp_path):
    deep = ("-e", "kubemend_deep=true")
    own = (*deep, "-e", f"kubemend_kubeconfig={PATH}")
    _done, before = play(*deep, name="audit")
    as_administrator = statuses(tmp_path)
    with limited(cluster):
        lacking = None
        # What the role lacks is unknown each time. A component may recover from an earlier test,
        # or answer late, while one of the audits runs.
        for _again in range(AUDITS):
            done, report = play(*own, name="audit")
            assert done.returncode == 0, done.stdout[-3000:]
            assert statuses(tmp_path) == as_administrator
            _done, after = play(*deep, name="audit")
            found = differences(report, before, after)
            lacking = set(found) if lacking is None else lacking & set(found)
            if not lacking:
                break
        assert not lacking
        cluster.kubectl("-n", "kube-system", "delete", "rolebinding", NAME)
        done, report = play(*own, name="audit")
        assert done.returncode == 0, done.stdout[-3000:]
        lost = {
            name for name, status in statuses(tmp_path).items() if status != as_administrator[name]
        }
        assert lost
        assert lost <= {"kubeadm_config", "kubelet_configs", "locks"}
        changed = differences(report, before, after)
        assert {verdict for *_row, verdict in changed} == {"unknown"}, changed
        assert "KM110" in {code for code, *_row in changed}
        assert "(denied)" in done.stdout
