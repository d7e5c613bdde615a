# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker loses its power in the middle of a repair: its disk is whole, the next run finishes.

The kernel is the machine's own: what it had not written to the disk is lost.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

import pytest

from tests.lab.support import halfway, interrupt, machines
from tests.lab.support.repairing import codes, ended

SYSCTL = "/etc/sysctl.d/99-zz-kubemend.conf"
DOWN = "kubemend_faults=KM501,KM502,KM503,KM902"
SWAP_FILE = "/var/lib/lab.swap"
FORWARD_OFF = (
    "sed -i /ip_forward/d /etc/sysctl.d/90-kubernetes.conf && sysctl -q -w net.ipv4.ip_forward=0"
)
SWAP_LINE = (
    f"fallocate -l 64M {SWAP_FILE} && chmod 600 {SWAP_FILE} && mkswap -q {SWAP_FILE}"
    f" && echo '{SWAP_FILE} none swap sw 0 0' >> /etc/fstab"
)


@dataclass(frozen=True)
class Repair:
    """A kind of step on a worker.

    prepare: what breaks the node; it is on the disk before the repair begins
    remedy: the kind; path: the file that it changes; moment: when the power goes
    arguments: of both runs; is_down: whether the kubelet does not run before
    needs_change: whether the kubelet does not start after a boot without the change
    """

    prepare: str
    remedy: str
    path: str
    moment: str = halfway.CHANGED
    arguments: tuple[str, ...] = ()
    is_down: bool = False
    needs_change: bool = False


KINDS = {
    "a setting is not written yet": Repair(
        FORWARD_OFF, "kernel_setting", SYSCTL, halfway.INTENDED, ("kubemend_faults=KM520,KM902",)
    ),
    "a setting is written": Repair(
        FORWARD_OFF, "kernel_setting", SYSCTL, arguments=("kubemend_faults=KM520,KM902",)
    ),
    "a module is named": Repair(
        "sed -i /br_netfilter/d /etc/modules-load.d/kubernetes.conf",
        "kernel_module",
        "/etc/modules-load.d/zz-kubemend.conf",
        arguments=("kubemend_faults=KM520,KM902",),
    ),
    "a line of fstab is taken out": Repair(
        SWAP_LINE,
        "swap_persistence",
        "/etc/fstab",
        arguments=("kubemend_faults=KM504,KM902",),
        needs_change=True,
    ),
    "a unit is enabled": Repair(
        "systemctl disable -q --now kubelet",
        "enable_kubelet",
        "/etc/systemd/system/multi-user.target.wants/kubelet.service",
        arguments=(DOWN,),
        is_down=True,
    ),
}


def content(cluster, node: str, path: str) -> bytes:
    """Return the target of a link or the digest of a file, nothing where there is none."""
    return cluster.exec(node, f"readlink {path} || sha256sum < {path} || true").stdout


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_run_finishes_what_a_power_cut_interrupted(cluster, play, node, tmp_path, kind):
    repair = KINDS[kind]
    cluster.exec(node, f"{repair.prepare} && sync", timeout=120)
    if repair.is_down:
        machines.wait_not_ready(cluster, node)
    consent = [
        word for value in ("kubemend_max_risk=3", *repair.arguments) for word in ("-e", value)
    ]
    before = content(cluster, node, repair.path)
    with interrupt.Controller(cluster, tmp_path / "lost", *consent) as controller:
        try:
            held = halfway.hold(cluster, node, repair.remedy, repair.moment, repair.path)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            controller.kill()
            raise AssertionError(f"{error}\n{controller.output[-4000:]}") from error
        at_the_cut = content(cluster, node, repair.path)
        cluster.cut_power(node)
        controller.kill()

    is_enabled = machines.unit(cluster, node, "kubelet")[0] == "enabled"
    present = content(cluster, node, repair.path)
    # The kernel may not have written the change to the disk when the power went.
    if is_enabled and not (repair.needs_change and present == before):
        machines.wait_ready(cluster, node)
    assert halfway.broken_records(cluster, node) == []
    assert present in (before, at_the_cut)
    opened = halfway.open_records(cluster, node)
    is_over = held["moment"] == halfway.ENDED
    is_open = any(held["run_id"] in name for name in opened)
    assert is_open or is_over, opened

    done, report = play(*consent)
    assert (done.returncode, set(ended(report)) - {"done"}) == (0, set()), done.stdout[-4000:]
    assert codes(report) == set(), done.stdout[-4000:]
    assert halfway.open_records(cluster, node) == []
    machines.wait_ready(cluster, node)
    if is_over:
        assert halfway.ended_entries(cluster, node, held["run_id"]), "no entry of the journal"
        pytest.skip("all of it holds after a power cut, and the step had ended before it")
