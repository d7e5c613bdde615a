# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM504 on a machine that is being made a node."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.plugins.plugin_utils.models.swap.test_sources import (
    FSTAB_UNIT,
    LINE,
    SDA2,
    ZRAM,
    ZRAM_UNIT,
    node,
    record,
)

ZRAM_ON = "/dev/zram0 partition 4194300 0 100\n"
BASHIBLE, PROGRAM = "/var/lib/bashible", "/usr/local/bin/kubelet"


def judge(world: Any, seen: Any, traces: tuple[str, ...], kubelet: str = "absent") -> Any:
    collectors = world.documents["w1"]["collectors"]
    collectors["swap"] = {"status": "ok" if seen else "error", "data": seen}
    if kubelet != "ok":
        collectors["kubelet"] = {"status": kubelet, "data": None}
    data = {"paths": [], "kubelet_exe": None, "traces": list(traces)}
    collectors["installer"] = {"status": "ok", "data": data}
    result = world.judge(faults=frozenset({"KM504"}))
    found = next(item for item in result.verdicts if item.host == "w1")
    return found.verdict, [item for item in result.findings if item.host == "w1"]


def zram() -> Any:
    seen = node(ZRAM_UNIT, swaps=ZRAM_ON)
    generator = record("/usr/lib/systemd/system-generators/zram-generator", None)
    seen["files"] = [record(ZRAM, "[zram0]\n"), generator, *seen["files"]]
    return seen


@pytest.mark.parametrize("trace", [BASHIBLE, PROGRAM, "/opt/bin/kubelet"])
def test_zram_on_a_machine_that_is_being_made_a_node(world, trace):
    verdict, (found,) = judge(world, zram(), ("/etc/kubernetes", trace))
    assert (verdict, found.severity) == ("present", "warning")
    for word in ("/dev/zram0", "no kubelet yet", "zram-generator", "swap.target"):
        assert word in found.summary
    assert "systemctl mask dev-zram0.swap" in found.remedy
    assert found.remedy.index("mask") < found.remedy.index("swapoff /dev/zram0")
    assert [proof.path for proof in found.evidence][:1] == ["/proc/swaps"]


def test_a_line_of_fstab_is_commented_and_its_unit_masked(world):
    seen = node(FSTAB_UNIT, fstab=LINE, swaps=SDA2)
    _verdict, (found,) = judge(world, seen, (BASHIBLE,))
    assert "brings it back at each boot" in found.summary
    assert "comment /etc/fstab:2" in found.remedy


def test_swap_that_someone_switched_on_by_hand_does_not_come_back(world):
    _verdict, (found,) = judge(world, node(swaps="/x file 1 0 -1\n"), (BASHIBLE,))
    assert "swap.target" not in found.summary
    assert "swapoff /x" in found.remedy


@pytest.mark.parametrize(
    "traces",
    [
        (),
        ("/etc/kubernetes",),
        ("/var/lib/etcd", "/etc/etcd"),
        ("/usr/local/bin/k3s", "/etc/rancher"),
        ("/var/lib/k0s", "/usr/local/bin/k0s"),
        ("/var/snap/kubelet", "/snap/kubelet"),
        ("/var/lib/kubelet",),
    ],
)
def test_a_machine_to_which_no_kubelet_comes(world, traces):
    verdict, found = judge(world, zram(), traces)
    assert (verdict, found) == ("not_applicable", [])


def test_without_swap_it_is_clear(world):
    assert judge(world, node(), (BASHIBLE,)) == ("clear", [])
    assert judge(world, node(FSTAB_UNIT, fstab=LINE), (BASHIBLE,)) == ("clear", [])
    assert judge(world, None, (BASHIBLE,)) == ("unknown", [])


def test_a_container_shows_the_swap_of_its_machine(world):
    seen = {**zram(), "container": True}
    assert judge(world, seen, (BASHIBLE,)) == ("clear", [])


def test_a_node_with_a_kubelet_is_judged_by_its_configuration(world):
    _verdict, (found,) = judge(world, zram(), (BASHIBLE, PROGRAM), "ok")
    assert "no kubelet yet" not in found.summary


def test_of_many_swaps_and_causes_the_first_are_shown(world):
    lines = "".join(f"/x{number} file 1 0 -1\n" for number in range(5))
    _verdict, (found,) = judge(world, node(swaps=lines), (BASHIBLE,))
    for text in (found.summary, found.remedy):
        assert "/x2" in text
        assert "/x3" not in text
    assert len([proof for proof in found.evidence if proof.path == "/proc/swaps"]) == 3


def test_swap_of_which_nothing_is_known_to_bring_it_back(world):
    _verdict, (found,) = judge(world, node(swaps="/x file 1 0 -1\n"), (BASHIBLE,))
    assert "keep it off" not in found.remedy
    assert "swapoff /x" in found.remedy


def test_an_installer_that_left_no_traces(world):
    _verdict, found = judge(world, zram(), ())
    world.data("w1", "installer")["traces"] = None
    result = world.judge(faults=frozenset({"KM504"}))
    verdicts = [row.verdict for row in result.verdicts if row.host == "w1"]
    assert (verdicts, found) == (["not_applicable"], [])
