# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""UnexpectedAdmissionError as its users met it: named, with its cause and who holds the devices.

After the repair and the clean-up ten Jobs in a row succeed.
"""

from __future__ import annotations

import json

from tests.lab.support import gpu, jobs
from tests.lab.support.repairing import CONSENT, broken


def finding(report, code):
    return next(item for item in report["findings"] if item["code"] == code)


def test_two_leaders_and_devices(cluster, play):
    with broken(cluster, "gpu-two-leaders"):
        done, report = play(name="admission_errors")
        assert done.returncode == 0
        assert report["symptom"]["name"] == "admission_errors"
        seen = finding(report, "KM320")
        assert (seen["host"], seen["because"]) == ("w1", ["KM101"])
        assert "KM321" not in {item["code"] for item in report["findings"]}
        texts = [proof["text"] for proof in seen["evidence"]]
        assert any(
            "nvidia.com/gpu. Requested: 2, Available: 0" in text
            and "nodeName set by Job/job-" in text
            for text in texts
        ), texts
        assert any("gpu-0" in text and "held by " in text for text in texts), texts
        assert "nvidia.com/gpu: capacity 2, allocatable 2" in texts, texts
        (told,) = report["timelines"]
        assert told["pod"] in {
            (proof["object"] or "").rpartition(" ")[2] for proof in seen["evidence"]
        }
        assert f"Timeline of {told['pod']}" in done.stdout
        assert {"rejected by the kubelet of w1", "node w1 named by its author"} <= {
            words
            for entry in told["entries"]
            for words in ("rejected by the kubelet of w1", "node w1 named by its author")
            if words in entry["what"]
        }, told

        work = (
            next(text for text in (proof["object"] for proof in seen["evidence"]) if text)
            .split()[1]
            .split("/")[0]
        )
        bare = rejected_without_a_job(cluster, work, "bare")
        # Of a kind that this cluster does not even know, so that nobody collects it as garbage.
        theirs = rejected_without_a_job(
            cluster,
            work,
            "theirs",
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "name": "train",
                "uid": "00000000-0000-4000-8000-000000000001",
                "controller": True,
            },
        )
        of_jobs = names(gpu.rejected(cluster, work)) - {bare, theirs}
        done, report = play(
            *CONSENT, "-e", "kubemend_cleanup_rejected=true", name="admission_errors"
        )
        assert (done.returncode, [step["state"] for step in report["steps"]]) == (
            0,
            ["done", "done"],
        ), done.stdout[-3000:]
        assert [step["remedy"] for step in report["plan"]] == ["edit_manifest", "clean_up"]
        # Its Job still works: without the rejected pod older releases would give it another try.
        left = names(gpu.rejected(cluster, work))
        assert bare not in left, (bare, of_jobs, left, report["steps"])
        assert of_jobs <= left, (bare, of_jobs, left, report["steps"])
        assert "has not ended" in report["steps"][1]["reason"], (
            bare,
            of_jobs,
            left,
            report["steps"],
        )
        assert theirs in left, (left, report["steps"])
        assert (
            "Job/train of batch.volcano.sh is not Kubernetes' own" in report["steps"][1]["reason"]
        ), (left, report["steps"])
        namespace = jobs.new_namespace()
        jobs.create_namespace(cluster, namespace)
        try:
            holders = [
                item
                for item in json.loads(cluster.kubectl("get", "jobs", "-A", "-o", "json").stdout)[
                    "items"
                ]
                if item["metadata"]["name"].startswith("job-")
                and item["spec"]["template"]["spec"].get("nodeName") == "w1"
            ]
            for item in holders:
                cluster.kubectl(
                    "-n", item["metadata"]["namespace"], "delete", "job", item["metadata"]["name"]
                )
            cluster.wait(lambda: not gpu.held(cluster), 180, "the devices to be free")
            for number in range(10):
                one_after_the_other(cluster, namespace, f"after-{number}")
            assert not gpu.rejected(cluster, namespace)
            assert len(gpu.pods(cluster, namespace)) == 10
        finally:
            jobs.remove(cluster, namespace)


def names(pods):
    return {one["metadata"]["name"] for one in pods}


def rejected_without_a_job(cluster, namespace, prefix, *owners):
    """Return the name of a pod without an owner, or with one that is no Job of Kubernetes.

    The pod is one that its kubelet rejected. While two controller managers are at work the devices
    are free for moments. If the pod runs then, another is tried.
    """
    for number in range(10):
        name, pod = f"{prefix}-{number}", gpu.pod(cluster, f"{prefix}-{number}", 2, nodeName="w1")
        pod["metadata"]["ownerReferences"] = list(owners)
        gpu.create(cluster, namespace, pod)
        phase = cluster.wait(
            lambda name=name: {
                one["metadata"]["name"]: one["status"].get("phase")
                for one in gpu.pods(cluster, namespace)
                if one["status"].get("phase") in ("Running", "Failed")
            }.get(name),
            180,
            f"the pod {name} to run or not",
        )
        if phase == "Failed":
            return name
        cluster.kubectl("-n", namespace, "delete", "pod", name, "--grace-period=1")
    raise AssertionError("the devices were free every time")


def one_after_the_other(cluster, namespace, name):
    job = gpu.job(cluster, name, 2, nodeName="w1")
    job["spec"]["template"]["spec"]["containers"][0]["command"] = ["/bin/sleep", "1"]
    gpu.create(cluster, namespace, job)

    def succeeded():
        status = json.loads(
            cluster.kubectl("-n", namespace, "get", "job", name, "-o", "json").stdout
        )["status"]
        assert not status.get("failed"), status
        return status.get("succeeded") == 1

    cluster.wait(succeeded, 180, f"the Job {name} to succeed", every=0.5)
