# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker that runs well, with eight faults of its next start; then it starts again.

The playbook before_reboot names each of them and nothing else, and each of them comes true.

The cluster is one of its own, and taken away at the end.
"""

from __future__ import annotations

import pytest

from tests.lab.cluster import podman
from tests.lab.cluster.clusters import Cluster
from tests.lab.support import next_start
from tests.lab.support.next_start import NO_NUMBER, PLANTED, said
from tests.lab.support.repairing import RELEASES, codes, own, possible

NODE = "w1"


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 1, 1, "short", name=f"{request.param}-reboot")) as found:
        yield found


def power_cut(cluster, state: str) -> None:
    """Start the node again, until systemd ends its boot in a state."""
    node = cluster.node(NODE)
    podman.podman("kill", node.container, timeout=60)
    podman.podman("start", node.container, timeout=60)
    cluster.wait(
        lambda: said(cluster, NODE, "systemctl is-system-running") in state.split(),
        180,
        f"{NODE}: {state}",
    )


def runtime_of(cluster) -> str:
    """Return which containerd runs, what its socket is, and what a trial start would leave."""
    return said(
        cluster,
        NODE,
        "pidof containerd; stat -c %i /run/containerd/containerd.sock; ls -A /run/kubemend;"
        " grep -c containerd /proc/mounts; iptables-save 2>/dev/null | grep -vc '^[#:]'",
    )


def tried(play):
    """Return (the result of a run with a trial start, what it says of KM703 on w1)."""
    consent = ("-e", "kubemend_probe=true", "-e", "kubemend_max_risk=1")
    done, report = play(*consent, name="before_reboot")
    (verdict,) = [
        item["verdict"]
        for item in report["verdicts"]
        if (item["code"], item["host"]) == ("KM703", NODE)
    ]
    return done, report, verdict


def test_what_a_reboot_breaks_is_named_before_and_comes_true(cluster, play):
    done, report = play(name="before_reboot")
    assert (done.returncode, codes(report)) == (0, set()), done.stdout[-4000:]

    # The containerd that runs notices nothing of a trial start.
    before = runtime_of(cluster)
    done, report, verdict = tried(play)
    assert (done.returncode, codes(report), verdict) == (0, set(), "clear"), done.stdout[-4000:]
    assert runtime_of(cluster) == before

    next_start.plant(cluster, NODE)
    done, report = play("-e", "kubemend_fail_on=critical", name="before_reboot")
    found = {(item["code"], item["component"]) for item in report["findings"]}
    assert found == PLANTED, done.stdout[-6000:]
    assert {item["host"] for item in report["findings"]} == {NODE}
    assert (done.returncode, report["steps"]) == (2, [])

    done, report, verdict = tried(play)
    assert verdict == "present", done.stdout[-6000:]
    (refusal,) = [item for item in report["findings"] if item["code"] == "KM703"]
    assert any(word in str(refusal["evidence"]) for word in NO_NUMBER), refusal
    assert runtime_of(cluster) == before

    power_cut(cluster, "running degraded")
    next_start.see(cluster, NODE)
