# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker that runs well, with eight faults of its next start; then it starts again.

The playbook before_reboot names each of them and nothing else, and each of them comes true.

The cluster is one of its own, and taken away at the end.
"""

from __future__ import annotations

import pytest
import yaml

from tests.lab.cluster import podman
from tests.lab.cluster.clusters import Cluster
from tests.lab.support.repairing import RELEASES, codes, own, possible

KUBELET_CONFIG, CONTAINERD_CONFIG = "/var/lib/kubelet/config.yaml", "/etc/containerd/config.toml"
DROP_IN = "/etc/systemd/system/containerd.service.d/90-proxy.conf"
SYSCTL = "/etc/sysctl.d/99-zz-hardening.conf"
MARK = "KUBEMEND_LAB_PROXY=1"
# What containerd 1.6 and 2.2 say of a group that is no number.
NO_NUMBER = ("many", "config.GRPCConfig.GID of type int")
# (code, component): the next start of w1 breaks by them.
PLANTED = {
    ("KM301", None),
    ("KM501", "kubelet"),
    ("KM520", "net.ipv4.ip_forward"),
    ("KM700", "containerd"),
    ("KM700", "kubelet"),
    ("KM701", "kubelet"),
    ("KM703", "containerd"),
    ("KM508", "containerd"),
    ("KM707", "kubelet"),
}


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 1, 1, "short", name=f"{request.param}-reboot")) as found:
        yield found


def said(cluster, command: str) -> str:
    return cluster.exec("w1", command, check=False).stdout.decode(errors="replace").strip()


def plant(cluster) -> None:
    """Change what only the next start of w1 reads; nothing that runs is touched."""
    settings = yaml.safe_load(cluster.read("w1", KUBELET_CONFIG))
    settings.update(maxPods="many", cpuManagerPolicy="static", systemReserved={"cpu": "500m"})
    cluster.write("w1", KUBELET_CONFIG, yaml.safe_dump(settings))
    former = cluster.read("w1", CONTAINERD_CONFIG).decode()
    cluster.write("w1", CONTAINERD_CONFIG, former + '[grpc]\n  gid = "many"\n')
    cluster.exec("w1", ["mkdir", "-p", DROP_IN.rpartition("/")[0]])
    cluster.write("w1", DROP_IN, f"[Service]\nEnvironment={MARK}\n")
    cluster.write("w1", SYSCTL, "net.ipv4.ip_forward = 0\n")
    # The same release as another file, as an upgrade leaves it.
    cluster.exec(
        "w1",
        "path=$(readlink /proc/$(pidof kubelet)/exe) && cp $path $path.new && printf x >> $path.new"
        " && mv $path.new $path",
    )
    cluster.exec("w1", ["systemctl", "disable", "--no-reload", "kubelet", "containerd"])


def power_cut(cluster, state: str) -> None:
    """Start the node again, until systemd ends its boot in a state."""
    node = cluster.node("w1")
    podman.podman("kill", node.container, timeout=60)
    podman.podman("start", node.container, timeout=60)
    cluster.wait(
        lambda: said(cluster, "systemctl is-system-running") in state.split(), 180, f"w1: {state}"
    )


def runtime_of(cluster) -> str:
    """Return which containerd runs, what its socket is, and what a trial start would leave."""
    return said(
        cluster,
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
        if (item["code"], item["host"]) == ("KM703", "w1")
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

    plant(cluster)
    done, report = play("-e", "kubemend_fail_on=critical", name="before_reboot")
    found = {(item["code"], item["component"]) for item in report["findings"]}
    assert found == PLANTED, done.stdout[-6000:]
    assert {item["host"] for item in report["findings"]} == {"w1"}
    assert (done.returncode, report["steps"]) == (2, [])

    done, report, verdict = tried(play)
    assert verdict == "present", done.stdout[-6000:]
    (refusal,) = [item for item in report["findings"] if item["code"] == "KM703"]
    assert any(word in str(refusal["evidence"]) for word in NO_NUMBER), refusal
    assert runtime_of(cluster) == before

    power_cut(cluster, "running degraded")
    assert said(cluster, "systemctl is-active kubelet") == "inactive"  # KM501
    assert said(cluster, "systemctl is-active containerd") == "inactive"  # KM508
    cluster.exec("w1", ["systemctl", "start", "containerd"], check=False)
    assert said(cluster, "cat /proc/sys/net/ipv4/ip_forward") == "0"  # KM520
    assert MARK in said(cluster, "systemctl show -p Environment containerd")  # KM700
    # KM703
    cluster.wait(
        lambda: said(cluster, "systemctl show -p Result containerd") != "Result=success",
        60,
        "containerd to fail",
    )
    _wait_for_words(cluster, *NO_NUMBER, unit="containerd")

    cluster.exec("w1", ["systemctl", "start", "kubelet"], check=False)
    _wait_for_words(cluster, "maxPods")  # KM707
    settings = yaml.safe_load(cluster.read("w1", KUBELET_CONFIG))
    settings.pop("maxPods")
    cluster.write("w1", KUBELET_CONFIG, yaml.safe_dump(settings))
    cluster.exec(
        "w1",
        f"sed -i '/^\\[grpc\\]/,$d' {CONTAINERD_CONFIG} && sysctl -w net.ipv4.ip_forward=1 &&"
        " systemctl reset-failed; systemctl restart containerd",
    )
    _wait_for_words(cluster, "configured policy")  # KM301
    cluster.exec("w1", "rm -f /var/lib/kubelet/cpu_manager_state; systemctl restart kubelet")
    cluster.wait(
        lambda: said(cluster, "curl -s http://127.0.0.1:10248/healthz") == "ok", 120, "the kubelet"
    )
    # KM701: what runs now is the file that was put there.
    assert said(cluster, "tail -c 1 /proc/$(pidof kubelet)/exe") == "x"


def _wait_for_words(cluster, *words: str, unit: str = "kubelet") -> None:
    """Wait until the journal of a unit has one of these."""

    def is_said() -> bool:
        # The journal of a container has the lines of all its boots under one id.
        lines = said(cluster, f"journalctl -a -u {unit} --no-pager | tail -n 200")
        return any(part in lines for part in words)

    cluster.wait(is_said, 120, f"{unit} to say {' or '.join(words)}")
