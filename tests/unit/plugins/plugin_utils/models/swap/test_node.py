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
)
from tests.unit.support.swap_evidence import FILE, judge_swap


def test_a_container_shows_the_swap_of_its_machine(world):
    """Systemd takes up none there; a file of its own that fstab names comes back with swapon -a."""
    verdict, (found,), _dummy = judge_swap(
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
    assert judge_swap(world, node(fstab=LINE, container=True))[0] == "clear"
    assert swap_node.read(world.documents["w1"]).coming() == []
