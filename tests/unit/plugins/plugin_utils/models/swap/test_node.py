# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The swap of one node."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap import (
    node as swap_node,
)
from tests.unit.plugins.plugin_utils.models.swap.test_sources import (
    LINE,
    SDA2,
    node,
    record,
)

CODES = frozenset({"KM504"})
FILE = "/swapfile file 65532 0 -2\n"
REFUSED, SILENT = "kind: KubeletConfiguration\n", {"status": None, "body": None, "error": "refused"}


def judged(world, seen, config=REFUSED, flags=(), answers=True, status="ok"):
    """(verdict, findings, note) of the worker."""
    kubelet = world.data("w1", "kubelet")
    kubelet.update(argv=["kubelet", "--config=/var/lib/kubelet/config.yaml", *flags])
    kubelet["config"] = (
        record("/var/lib/kubelet/config.yaml", config, masked=[])
        if isinstance(config, str)
        else config
    )
    if not answers:
        kubelet.update(process=None, healthz=SILENT)
    world.documents["w1"]["collectors"]["swap"] = {"status": status, "data": seen}
    result = world.judge(faults=CODES)
    found = next(item for item in result.verdicts if item.host == "w1")
    return found.verdict, [item for item in result.findings if item.host == "w1"], found.note


def test_a_container_shows_the_swap_of_its_machine(world):
    """Systemd takes up none there; a file of its own that fstab names comes back with swapon -a."""
    verdict, (found,), _dummy = judged(
        world,
        node(
            swaps=FILE + SDA2,
            fstab="/swapfile none swap sw 0 0\n",
            container=True,
            own=["/swapfile"],
        ),
        answers=False,
    )
    assert verdict == "present"
    assert "swapon -a" in found.summary
    assert "a container shows the swap of its host" in found.summary
    # that of the machine, and the line of fstab; not the file's a second time
    assert found.summary.count("source:") == 2
    assert judged(world, node(fstab=LINE, container=True))[0] == "clear"
    assert swap_node.read(world.documents["w1"]).coming() == []
