# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An etcd that is filled by real writes until it is at its quota.

Up to Kubernetes 1.20 the kubelet restarts each member whose alarm is raised: what is asked of etcd
meanwhile has to be asked until it answers.
"""

from __future__ import annotations

import re

from tests.lab.support.static_pod import manifest

ETCD = "etcd"
KEY = "/kubemend-lab/filling"  # no API server reads it
PROBES = 60  # each 10 seconds apart
ANSWERS = 330  # seconds: the kubelet waits up to five minutes before it starts a member again


def be_patient(cluster, names) -> None:
    """Let the kubelets of these masters restart a full etcd after ten minutes.

    After 80 seconds, as kubeadm writes it up to 1.20, they restart all members at once on a busy
    machine: none answers then, and no audit sees the alarm. The probes of later releases do not
    fail by it.
    """
    for name in names:
        text = cluster.read(name, manifest(ETCD)).decode()
        probe = re.search(r"(?s)livenessProbe:.*", text)
        if probe is None or not re.search(r"(?m)path: /health$", probe[0]):
            continue
        patient = re.sub(r"failureThreshold: \d+", f"failureThreshold: {PROBES}", probe[0], count=1)
        before = pid(cluster, name)
        cluster.write(name, manifest(ETCD), text[: probe.start()] + patient)
        cluster.wait(
            lambda node=name, old=before: pid(cluster, node) not in ("", old),
            ANSWERS,
            f"etcd of {name} to start again",
        )
        alarms(cluster, name)  # it answers
    cluster.wait_healthy()


def pid(cluster, name) -> str:
    """Return the process of etcd, "" where none runs."""
    return cluster.exec(name, ["pgrep", "-x", ETCD], check=False).stdout.decode().strip()


def alarms(cluster, name) -> str:
    """Return the alarms of etcd, as the member of this node lists them once it answers."""
    (text,) = _answer(cluster, name, "alarm", "list")
    return text


def _answer(cluster, name, *words) -> tuple[str]:
    """Return what etcdctl prints once etcd answers, in a tuple: no text is an answer too."""

    def answer():
        done = cluster.etcdctl("--command-timeout=5s", *words, node=name)
        return (done.stdout.decode(),)

    return cluster.wait(answer, ANSWERS, f"etcd of {name} to answer")


def add_learner(cluster, name, url) -> None:
    """Add a member that never starts to etcd's list, as a learner."""

    def is_listed() -> bool:
        if url in _answer(cluster, name, "member", "list")[0]:
            return True
        words = ("member", "add", "ghost", "--learner", f"--peer-urls={url}")
        cluster.etcdctl(*words, node=name)
        return False

    cluster.wait(is_listed, ANSWERS, f"etcd to list {url}")


def remove_member(cluster, name, url) -> None:
    """Remove the member with this address from etcd's list."""

    def is_gone() -> bool:
        (listed,) = _answer(cluster, name, "member", "list")
        ids = [line.partition(",")[0] for line in listed.splitlines() if url in line]
        for member_id in ids:
            cluster.etcdctl("member", "remove", member_id, node=name)
        return not ids

    cluster.wait(is_gone, ANSWERS, f"etcd not to list {url}")


def put(cluster, name) -> bool:
    """Write a value of 900 kB to one key, and return whether etcd took it."""
    node = cluster.node(name)
    pki = "/etc/kubernetes/pki/etcd"
    line = (
        f"head -c 900000 /dev/zero | tr '\\0' x | etcdctl --endpoints=https://{node.ip}:2379"
        f" --cacert={pki}/ca.crt --cert={pki}/server.crt --key={pki}/server.key put {KEY}"
    )
    done = cluster.exec(name, line, check=False)
    if done.returncode and b"space exceeded" not in done.stderr:
        raise RuntimeError(f"etcd of {name} answered {done.stderr!r}")
    return done.returncode == 0


def fill(cluster, names) -> None:
    """Write until etcd refuses it, each time through another member of these nodes."""
    for number in range(100):
        if not put(cluster, names[number % len(names)]):
            cluster.wait(
                lambda: "NOSPACE" in alarms(cluster, names[0]), 60, "etcd to raise its alarm"
            )
            return
    raise RuntimeError("etcd took 90 MB")
