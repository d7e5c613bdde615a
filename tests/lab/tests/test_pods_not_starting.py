# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node starts no pods, on a real cluster: each reason is found, alone, and over once undone.

The worker w1 is broken; what a master has stays as it is.
"""

from __future__ import annotations

import contextlib
import json

from tests.lab.support import gpu, jobs
from tests.lab.support.report import findings

FOLDER, CONFIG = "/etc/cni/net.d", "/etc/cni/net.d/10-lab.conflist"
FORMER = f"{FOLDER}/05-former.conflist"
RESERVED, PROGRAM = "/var/lib/cni/networks/lab", "/usr/lib/cni/host-local"
TIMES = 3  # so often the kubelet must have said it


def started(report):
    """Return {code: finding} of the faults of pods that do not start."""
    return {one["code"]: one for one in findings(report) if one["code"].startswith("KM6")}


def told_alone(play, code, *more):
    """Audit, and return the finding of this code, which is the only one of its kind on w1."""
    done, report = play(name="audit")
    found = started(report)
    assert set(found) - set(more) == {code}, done.stdout[-4000:]
    assert (found[code]["host"], found[code]["node"]) == ("w1", "w1")
    return found[code]


def told_nothing(play):
    done, report = play(name="audit")
    assert started(report) == {}, done.stdout[-4000:]


@contextlib.contextmanager
def leaked(cluster):
    """Reserve every address of w1 for sandboxes that do not exist, an hour ago."""
    prefix = f"10.244.{cluster.node('w1').index}"
    fill = f"""set -e
mkdir -p {RESERVED}; cd {RESERVED}
for end in $(seq 2 254); do
  [ -e {prefix}.$end ] && continue
  printf 'lab-gone-%s\\r\\neth0' $end > {prefix}.$end
  touch -d '1 hour ago' {prefix}.$end
done
"""
    try:
        cluster.exec("w1", fill)
        yield
    finally:
        cluster.exec("w1", f"cd {RESERVED} && grep -l '^lab-gone-' 10.* | xargs -r rm -f")


@contextlib.contextmanager
def moved(cluster, path):
    """Take a file of w1 away, to another folder of the same file system."""
    away = path.replace("/", "-").strip("-")
    try:
        cluster.exec("w1", f"mv {path} /usr/lib/{away}.lab")
        yield
    finally:
        cluster.exec("w1", f"mv /usr/lib/{away}.lab {path}")


@contextlib.contextmanager
def second_configuration(cluster):
    """Give w1 the configuration of another network, before its own."""
    text = json.dumps({"cniVersion": "0.4.0", "name": "former", "plugins": [{"type": "ptp"}]})
    try:
        cluster.write("w1", FORMER, text)
        yield
    finally:
        cluster.exec("w1", ["rm", "-f", FORMER])
        cluster.exec("w1", ["touch", CONFIG])


@contextlib.contextmanager
def without_sandbox_image(cluster):
    """Remove the image of the sandbox from w1, which reaches no registry, and want a pod there."""
    namespace = jobs.new_namespace()
    jobs.create_namespace(cluster, namespace)
    remove = "ctr -n k8s.io images ls -q | xargs -r ctr -n k8s.io images rm --sync"
    try:
        cluster.exec("w1", remove)
        gpu.create(
            cluster,
            namespace,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "waits"},
                "spec": jobs.pod_spec(cluster, nodeName="w1"),
            },
        )
        yield namespace
    finally:
        cluster.exec(
            "w1",
            "cd /opt/kubemend-lab && ctr -n k8s.io images import --snapshotter overlayfs pause.tar",
        )
        gpu.wait_running(cluster, namespace, "waits")
        jobs.remove(cluster, namespace)


def refusals(cluster, namespace):
    """Return how often a sandbox could not be made."""
    found = json.loads(cluster.kubectl("-n", namespace, "get", "events", "-o", "json").stdout)
    return sum(
        one.get("count") or 1
        for one in found["items"]
        if one["reason"] == "FailedCreatePodSandBox" and "sandbox image" in one["message"]
    )


def test_addresses_that_no_pod_has(cluster, play):
    with leaked(cluster):
        found = told_alone(play, "KM602")
        assert (found["severity"], found["component"]) == ("critical", "lab")
        assert found["evidence"][0]["path"] == RESERVED
    told_nothing(play)


def test_a_program_that_the_network_needs(cluster, play):
    with moved(cluster, PROGRAM):
        found = told_alone(play, "KM604")
        assert "host-local" in found["summary"]
        assert found["evidence"][0]["path"] == CONFIG
    told_nothing(play)


def test_the_configuration_of_two_networks(cluster, play):
    with second_configuration(cluster):
        found = told_alone(play, "KM603", "KM604")
        assert [proof["path"] for proof in found["evidence"]] == [FORMER, CONFIG]
    told_nothing(play)


def test_an_image_of_the_sandbox_that_is_gone(cluster, play):
    with without_sandbox_image(cluster) as namespace:
        cluster.wait(
            lambda: refusals(cluster, namespace) >= TIMES,
            120,
            "the kubelet to say several times that the image of the sandbox is missing",
        )
        found = told_alone(play, "KM605")
        assert found["severity"] == "critical"
        assert cluster.state["pause"] in found["summary"]
    told_nothing(play)
