# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines of other Debians, and a control plane on one: healthy, broken, repaired.

Each has a cluster of its own, of one control-plane node.
"""

from __future__ import annotations

import pytest

from tests.lab.cluster import paths, vm, vm_image
from tests.lab.cluster.clusters import Cluster
from tests.lab.support import machines
from tests.lab.support.repairing import FULL, RELEASES, codes, ended, own, possible

pytestmark = pytest.mark.skipif(not FULL, reason="clusters of their own")
CONSENT = ("-e", "kubemend_max_risk=1")
FORWARD_OFF = "sed -i /ip_forward/d /etc/sysctl.d/90-kubernetes.conf"


@pytest.fixture(scope="module", params=RELEASES)
def release(request):
    possible(request.param)
    if vm.unavailable_reason():
        pytest.skip(vm.unavailable_reason())
    return request.param


@pytest.fixture
def cluster(release, request):
    suite, is_master = request.param
    if paths.version_tuple(release) < vm_image.CGROUP_V2_SINCE and suite == "trixie":
        pytest.skip("its kernel and systemd are made for cgroup v2")
    lab = Cluster(
        release,
        1,
        1 if is_master else 0,
        "short",
        name=f"{release}-{suite}",
        vms=0 if is_master else 1,
        vm_masters=int(is_master),
        suite=suite,
    )
    with own(lab) as found:
        yield found


@pytest.mark.parametrize(
    "cluster",
    [("bullseye", False), ("trixie", False), ("bookworm", True)],
    ids=["Debian 11", "Debian 13", "a control plane"],
    indirect=True,
)
def test_it_is_healthy_and_a_repair_outlives_a_reboot(cluster, play):
    node = next(one.name for one in cluster.nodes if one.vm)
    done, report = play(name="audit")
    assert (done.returncode, codes(report)) == (0, set()), done.stdout[-4000:]

    cluster.exec(node, f"{FORWARD_OFF} && sync")
    cluster.cut_power(node)
    cluster.wait_healthy()
    done, report = play(*CONSENT, "-e", "kubemend_faults=KM520")
    assert (done.returncode, ended(report), report["findings"]) == (0, ["done"], []), done.stdout[
        -4000:
    ]
    cluster.restart_node(node)
    machines.wait_ready(cluster, node)
    assert cluster.read(node, "/proc/sys/net/ipv4/ip_forward").strip() == b"1"
    done, report = play(name="audit")
    assert (done.returncode, codes(report)) == (0, set()), done.stdout[-4000:]
