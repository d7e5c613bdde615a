# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that are done through the API of a real cluster.

The kubeadm-config is corrected and reverted, and Jobs prove the cure.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program
from tests.lab.support import playbook
from tests.lab.support.repairing import broken, codes, state, untouched

RISK_1 = ("-e", "kubemend_max_risk=1")
PLANTED = "# kept: a comment behind it all\r\n# password: planted-secret-0815\n"
RUN = "20261121T090000Z-1a2b3c"
SHIP = (
    "plugins.module_utils.collectors.node",
    "plugins.module_utils.steps.handlers",
    "plugins.module_utils.capture",
)


def config_map(cluster):
    return json.loads(
        cluster.kubectl(
            "-n", "kube-system", "get", "configmap", "kubeadm-config", "-o", "json"
        ).stdout
    )


def patch(cluster, **data):
    cluster.kubectl(
        "-n",
        "kube-system",
        "patch",
        "configmap",
        "kubeadm-config",
        "--type=merge",
        "-p",
        json.dumps({"data": data}),
    )


def kept(item):
    """Return all of an object that must not change. The API server itself notes who wrote last."""
    meta = {
        name: value
        for name, value in item["metadata"].items()
        if name not in ("resourceVersion", "managedFields")
    }
    return {
        **item,
        "metadata": meta,
        "data": {
            name: text for name, text in item["data"].items() if name != "ClusterConfiguration"
        },
    }


def on_node(cluster, step, **more):
    """Run the step's program on m1, as the action sends it, without the controller's own checks."""
    mark = node_program.mark()
    params = {
        "run_id": RUN,
        "step": step,
        "lock": None,
        "check": False,
        "kubeconfig": None,
        "kubectl": None,
        **more,
    }
    said = cluster.exec(
        "m1",
        "python3 -I -S -",
        input=node_program.build("plugins.module_utils.steps.executor:run", SHIP, params, mark),
        timeout=200,
    )
    return json.loads(said.stdout.decode().split(mark + " ")[1].splitlines()[0])


def test_kubeadm_config(cluster, play, tmp_path):
    """Shown, then written as shown.

    The rest of the text and of the object stays, and revert brings the text back.
    """
    with broken(cluster, "kubeadm-config"):
        patch(
            cluster,
            ClusterConfiguration=PLANTED
            + config_map(cluster)["data"]["ClusterConfiguration"]
            + PLANTED,
            Other="kept: \ttoo\n",
        )
        try:
            before, files = config_map(cluster), state(cluster)
            done, planned = play("--check", "--diff", *RISK_1)
            assert done.returncode == 0, done.stdout[-3000:]
            assert [
                (step["remedy"], step["risk"], step["allowed"]) for step in planned["plan"]
            ] == [("kubeadm_config", 1, True)], done.stdout[-3000:]
            assert '"true"' in planned["plan"][0]["diff"]
            assert config_map(cluster) == before
            untouched(cluster, files)

            done, report = play(*RISK_1)
            assert (done.returncode, report["exit_reason"], codes(report)) == (
                0,
                "ok",
                set(),
            ), done.stdout[-3000:]
            assert report["plan"] == planned["plan"]
            assert [step["state"] for step in report["steps"]] == ["done"]
            assert "planted-secret" not in done.stdout + json.dumps(report)
            after, text = config_map(cluster), before["data"]["ClusterConfiguration"]
            assert text.count('"false"') == 1
            assert after["data"]["ClusterConfiguration"] == text.replace('"false"', '"true"')
            assert kept(after) == kept(before)

            done, again = play(*RISK_1)
            assert (done.returncode, again["steps"]) == (0, [])
            assert config_map(cluster) == after

            undone = playbook.run(
                "revert",
                cluster.inventory,
                "-e",
                f"kubemend_run_id={report['run_id']}",
                report=str(tmp_path / "reverted"),
            )
            assert undone.returncode == 0, undone.stdout[-3000:]
            assert config_map(cluster)["data"] == before["data"]
            assert kept(config_map(cluster)) == kept(before)
        finally:
            cluster.kubectl(
                "-n",
                "kube-system",
                "patch",
                "configmap",
                "kubeadm-config",
                "--type=json",
                "-p",
                json.dumps([{"op": "remove", "path": "/data/Other"}]),
            )


def test_kubeadm_config_that_somebody_else_changed(cluster):
    """What is not what evidence said is left alone, and so is the journal."""
    item = config_map(cluster)
    text = item["data"]["ClusterConfiguration"].encode()
    at = text.index(b"kind: ClusterConfiguration")
    step = {
        "id": "01-m1-kubeadm-config",
        "host": "m1",
        "code": ["KM110"],
        "remedy": "kubeadm_config",
        "target": "kubeadm-config",
        "change": {
            "kind": "kubeadm_config",
            "path": "ConfigMap kube-system/kubeadm-config",
            "real": "configmap:kube-system/kubeadm-config#ClusterConfiguration",
            "sha256": hashlib.sha256(text + b"older").hexdigest(),
            "splices": [[at, at, "", base64.b64encode(b"# new\n").decode()]],
        },
    }
    answer = on_node(cluster, step)
    assert (answer["state"], answer["changed"]) == (
        "refused",
        False,
    )
    assert "no longer what evidence said" in answer["reason"]
    step["change"].update(sha256=hashlib.sha256(text).hexdigest(), cluster_uid="another")
    answer = on_node(cluster, dict(step, id="02"))
    assert answer["state"] == "refused"
    assert "another cluster" in answer["reason"]
    assert config_map(cluster) == item
    cluster.exec("m1", f"rm -rf /var/lib/kubemend/journal/{RUN}")


def probe_step(cluster, number):
    uid = json.loads(cluster.kubectl("get", "namespace", "kube-system", "-o", "json").stdout)[
        "metadata"
    ]["uid"]
    return {
        "id": f"{number:02}-m1-probe",
        "host": "m1",
        "code": ["KM113"],
        "remedy": "probe",
        "target": "Job",
        "change": {"kind": "probe", "cluster_uid": uid},
    }


def left_by_probes(cluster):
    return json.loads(
        cluster.kubectl(
            "-n",
            "kube-system",
            "get",
            "jobs,pods",
            "-l",
            "app.kubernetes.io/managed-by=kubemend",
            "-o",
            "json",
        ).stdout
    )["items"]


def test_probe(cluster, play):
    """After a repair a Job gets one pod.

    With two controller managers at work it gets two, sooner or later.
    """
    with broken(cluster, "two-leaders-kcm-only"):
        said = []
        for number in range(1, 11):
            said.append(on_node(cluster, probe_step(cluster, number)))
            assert left_by_probes(cluster) == []
            if said[-1]["state"] != "done":
                break
        assert said[-1]["state"] == "failed", said
        assert re.search(r"got ([2-9]|\d\d+) pods instead of one", said[-1]["reason"]), said
        cluster.exec("m1", f"rm -rf /var/lib/kubemend/journal/{RUN}")

        done, planned = play(
            "--check", "--diff", "-e", "kubemend_probe=true", "-e", "kubemend_max_risk=2"
        )
        assert [(step["remedy"], step["allowed"]) for step in planned["plan"]] == [
            ("edit_manifest", True),
            ("probe", True),
        ], done.stdout[-3000:]
        done, report = play("-e", "kubemend_probe=true", "-e", "kubemend_max_risk=2")
        assert (done.returncode, report["exit_reason"], codes(report)) == (
            0,
            "ok",
            set(),
        ), done.stdout[-3000:]
        assert report["plan"] == planned["plan"]
        assert [step["state"] for step in report["steps"]] == ["done", "done"]
        assert left_by_probes(cluster) == []
        done, again = play("-e", "kubemend_probe=true", "-e", "kubemend_max_risk=2")
        assert (done.returncode, again["steps"]) == (0, [])
