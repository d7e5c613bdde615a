# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An etcd at its quota, by real writes: named, freed in one run, and left alone by the next.

The cluster is one of its own, with a low quota, and taken away at the end.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator

import pytest

from tests.lab.cluster.clusters import Cluster
from tests.lab.cluster.kubeadm import ETCD_QUOTA
from tests.lab.support.full_etcd import (
    add_learner,
    alarms,
    be_patient,
    fill,
    pid,
    put,
    remove_member,
)
from tests.lab.support.repairing import CONSENT, RELEASES, ended, own, possible
from tests.lab.support.static_pod import manifest

ETCD, PLAYBOOK = "etcd", "etcd_space"
MASTERS = ("m1", "m2", "m3")
MIB = 1024**2
SMALL = MIB
GHOST = "https://10.9.9.9:2380"
FLAG = "--quota-backend-bytes"
STEPS = ["etcd_snapshot", "etcd_compact", *["etcd_defragment"] * 3, "etcd_alarm"]
# The kubelet of 1.18 starts an etcd with an alarm again and again, so that an API server may not
# list the nodes just then; a step needs this consent without such a list.
ALLOWED = (*CONSENT, "-e", "kubemend_allow=api_down")


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 3, 1, "small-etcd", name=f"{request.param}-space")) as found:
        be_patient(found, MASTERS)
        yield found


def limit(cluster, name, quota):
    """Give the etcd of a master this quota, and wait until it runs with it."""
    text = cluster.read(name, manifest(ETCD)).decode()
    text = re.sub(rf"(?m)^ +- {FLAG}=.*\n", "", text)
    cluster.write(
        name,
        manifest(ETCD),
        re.sub(r"(?m)^( +- )etcd$", rf"\g<0>\n\g<1>{FLAG}={quota}", text, count=1),
    )
    cluster.wait(lambda: runs(cluster, name, quota), 400, f"etcd of {name} to have its quota")
    alarms(cluster, name)  # it answers


def runs(cluster, name, quota) -> bool:
    told = cluster.exec(name, ["pgrep", "-x", "-a", ETCD], check=False).stdout.decode()
    return f"{FLAG}={quota}" in told


def steps_of(report) -> list[tuple[str, bool]]:
    return [(step["remedy"], step["allowed"]) for step in report["plan"] if step["code"] == "KM140"]


def codes_of(report) -> set[str]:
    return {finding["code"] for finding in report["findings"]}


LISTED = "kubectl --kubeconfig=/etc/kubernetes/admin.conf get nodes"


def renewed(cluster) -> dict[str, str]:
    """Return when each Node's lease was renewed, as soon as an API server says so."""
    words = (
        "get",
        "leases",
        "-n",
        "kube-node-lease",
        "-o",
        "jsonpath={range .items[*]}{.metadata.name}={.spec.renewTime} {end}",
    )
    done = cluster.wait(lambda: cluster.kubectl(*words), 330, "an API server to list the leases")
    return dict(pair.split("=") for pair in done.stdout.decode().split())


@contextlib.contextmanager
def stopped(cluster) -> Iterator[None]:
    """Let no etcd run, as between two starts of a kubelet, for as long as the body takes."""
    try:
        for name in MASTERS:
            cluster.exec(name, ["systemctl", "stop", "kubelet"])
            cluster.exec(name, ["pkill", "-x", ETCD])
        cluster.wait(lambda: not any(pid(cluster, name) for name in MASTERS), 60, "etcd to end")
        yield
    finally:
        for name in MASTERS:
            cluster.exec(name, ["systemctl", "start", "kubelet"])
        for name in MASTERS:
            alarms(cluster, name)  # it answers


def test_one_run_frees_an_etcd_at_its_quota(cluster, play):
    fill(cluster, MASTERS)
    before = renewed(cluster)
    done, report = play(name=PLAYBOOK)
    assert "KM140" in codes_of(report), done.stdout[-4000:]
    assert steps_of(report) == [(kind, False) for kind in STEPS], report["plan"]
    assert all("kubemend_max_risk=2" in step["blocked_by"] for step in report["plan"])
    assert "NOSPACE" in alarms(cluster, "m1")

    with stopped(cluster):
        _done, report = play(name=PLAYBOOK)
    (near,) = [finding for finding in report["findings"] if finding["code"] == "KM141"]
    assert near["severity"] == "critical", near
    paths = [proof["path"] for proof in near["evidence"]]
    assert paths == ["/var/lib/etcd/member/snap/db"] * 3, near
    assert steps_of(report) == [], report["plan"]

    # a learner is refused
    add_learner(cluster, "m1", GHOST)
    try:
        _done, report = play(*ALLOWED, name=PLAYBOOK)
        assert steps_of(report) == [(kind, False) for kind in STEPS], report["plan"]
        assert "is a learner" in report["plan"][0]["blocked_by"], report["plan"]
    finally:
        remove_member(cluster, "m1", GHOST)

    _done, report = play("--check", "--diff", *ALLOWED, name=PLAYBOOK)
    assert steps_of(report) == [(kind, True) for kind in STEPS], report["plan"]
    assert "NOSPACE" in alarms(cluster, "m1")
    assert renewed(cluster) == before  # nothing was written meanwhile

    begun = time.monotonic()
    done, report = play(*ALLOWED, name=PLAYBOOK)
    print(f"repaired in {time.monotonic() - begun:.0f} s")
    print("\n".join(f"{step['id']}: {step['reason']}" for step in report["steps"]))
    assert ended(report) == ["done"] * len(report["plan"]), done.stdout[-6000:]
    assert "KM140" not in codes_of(report), done.stdout[-4000:]
    assert alarms(cluster, "m1") == ""
    cluster.wait_healthy()
    after = renewed(cluster)
    assert all(after[name] > before[name] for name in before), (before, after)

    host = next(step["host"] for step in report["plan"] if step["remedy"] == "etcd_snapshot")
    modes = cluster.exec(host, "stat -c '%a %s' /var/lib/kubemend/etcd-snapshots/*").stdout.decode()
    (mode, size) = modes.split()
    assert mode == "600"
    assert int(size) > 16 * MIB

    done, report = play(*ALLOWED, name=PLAYBOOK)
    assert (report["plan"], "KM140" in codes_of(report)) == ([], False), done.stdout[-4000:]


def test_the_alarm_of_one_member_whose_database_stays_full(cluster, play):
    """A quota below what is in use: it is freed as far as it goes, and the alarm stays."""
    limit(cluster, "m3", SMALL)
    cluster.wait(
        lambda: not put(cluster, "m3") and "NOSPACE" in alarms(cluster, "m1"),
        120,
        "etcd to raise its alarm",
    )
    done, report = play(*ALLOWED, name=PLAYBOOK)
    kinds = ["etcd_snapshot", "etcd_compact", "etcd_defragment", "etcd_alarm"]
    assert steps_of(report) == [(kind, True) for kind in kinds], report["plan"]
    assert done.returncode == 2, done.stdout[-4000:]
    assert ended(report)[:3] == ["done"] * 3, done.stdout[-4000:]
    reason = report["steps"][-1]["reason"]
    print(reason)
    assert report["steps"][-1]["state"] == "refused", report["steps"]
    assert FLAG in reason, reason
    assert "most objects" in reason, reason
    assert "NOSPACE" in alarms(cluster, "m1")

    limit(cluster, "m3", ETCD_QUOTA)
    # Without a list of the nodes, a step needs more consent.
    cluster.wait(
        lambda: all(cluster.exec(host, LISTED, check=False).returncode == 0 for host in MASTERS),
        120,
        "the API servers to list the nodes",
    )
    done, report = play(*ALLOWED, name=PLAYBOOK)
    assert steps_of(report) == [("etcd_alarm", True)], [
        step["blocked_by"] for step in report["plan"]
    ]
    assert ended(report) == ["done"], done.stdout[-4000:]
    assert alarms(cluster, "m1") == ""
    cluster.wait_healthy()
