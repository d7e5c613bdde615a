# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap, and what a kubelet makes of it: KM504."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node.swap import undone
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.evidence import (
    Source,
    Undo,
)
from tests.unit.plugins.plugin_utils.models.swap.test_sources import (
    FSTAB_UNIT,
    GPT_UNIT,
    LINE,
    MASKED,
    OWN_UNIT,
    SDA2,
    TARGET,
    ZRAM,
    ZRAM_UNIT,
    node,
    record,
)
from tests.unit.support.swap_evidence import FILE, REFUSED, judge_swap

CODES = frozenset({"KM504"})


def test_no_swap_is_clear_whatever_the_kubelet_says(world):
    for config in (
        REFUSED,
        "failSwapOn: false\n",
        None,
        record("/x", None, error="missing"),
        "a: [\n",
    ):
        assert judge_swap(world, node(), config)[:2] == ("clear", [])


@pytest.mark.parametrize(
    ("answers", "severity", "said"),
    [
        (False, "critical", "it does not run, and will not start"),
        (True, "warning", "it runs, because it started before, and will not start again"),
    ],
)
def test_swap_that_is_on_and_refused(world, answers, severity, said):
    verdict, (found,), _dummy = judge_swap(
        world, node(FSTAB_UNIT, fstab=LINE, swaps=SDA2), answers=answers
    )
    assert (verdict, found.severity, found.component, found.risk) == (
        "present",
        severity,
        "kubelet",
        3,
    )
    assert "/dev/sda2" in found.summary
    assert said in found.summary
    assert "/etc/fstab:2" in found.summary
    assert [(proof.path, proof.line) for proof in found.evidence] == [
        ("/proc/swaps", 2),
        ("/etc/fstab", 2),
    ]
    assert found.remedy.startswith("comment /etc/fstab:2")
    assert "swapoff" in found.remedy


def test_a_bare_flag_is_shown_as_it_stands(world):
    _verdict, (found,), _note = judge_swap(
        world, node(FSTAB_UNIT, fstab=LINE, swaps=SDA2), flags=("--fail-swap-on", "--v=2")
    )
    assert "--fail-swap-on" in [proof.text for proof in found.evidence]


@pytest.mark.parametrize(
    ("units", "more", "place", "command"),
    [
        ([FSTAB_UNIT], {"fstab": LINE}, "/etc/fstab:2", "comment /etc/fstab:2"),
        (
            [OWN_UNIT],
            {},
            "/etc/systemd/system/swapfile.swap",
            "systemctl disable --now swapfile.swap",
        ),
        (
            [GPT_UNIT],
            {},
            "dev-sda2.swap",
            "systemctl mask dev-sda2.swap, systemctl mask swap.target",
        ),
        (
            [
                {
                    "Id": "dphys-swapfile.service",
                    "LoadState": "loaded",
                    "UnitFileState": "enabled",
                    "ActiveState": "active",
                }
            ],
            {},
            "dphys-swapfile.service",
            "systemctl disable --now dphys-swapfile.service",
        ),
    ],
)
def test_swap_that_comes_back_at_the_next_boot(world, units, more, place, command):
    verdict, (found,), _dummy = judge_swap(world, node(*units, **more))
    assert (verdict, found.severity, found.risk) == (
        "present",
        "warning",
        1,
    )
    assert "comes back with the next boot" in found.summary
    assert place in found.summary
    assert found.remedy == command
    assert found.evidence[0].path in (place, place.rpartition(":")[0], None)
    assert place.split(":")[0] in (found.evidence[0].path, found.evidence[0].object)


def test_zram(world):
    seen = node(ZRAM_UNIT, swaps="/dev/zram0 partition 4194300 0 100\n")
    seen["files"] = [
        record(ZRAM, "[zram0]\n"),
        record("/usr/lib/systemd/system-generators/zram-generator", None),
        *seen["files"],
    ]
    verdict, (found,), _dummy = judge_swap(world, seen, answers=False)
    assert verdict == "present"
    assert "zram-generator" in found.summary
    assert ZRAM in [proof.path for proof in found.evidence]


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        ("failSwapOn: false\n", ()),
        (REFUSED, ("--fail-swap-on=false",)),
        (None, ("--fail-swap-on=false",)),
        ("failSwapOn: false\nmemorySwap:\n  swapBehavior: LimitedSwap\n", ()),
        (record("/x", None, error="denied"), ("--fail-swap-on=false",)),
    ],
)
def test_a_kubelet_that_tolerates_swap(world, config, flags):
    verdict, found, note = judge_swap(
        world, node(FSTAB_UNIT, fstab=LINE, swaps=SDA2), config, flags
    )
    assert (verdict, found) == ("clear", [])
    assert "tolerates" in note


@pytest.mark.parametrize(
    "config",
    ["failSwapOn: null\n", "failSwapOn: ~\n", "failSwapOn: true\n", "failSwapOn: yes\n", None],
)
def test_what_is_not_said_is_refused(world, config):
    """The default of every version."""
    assert judge_swap(world, node(swaps=SDA2), config)[0] == "present"


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        (record("/var/lib/kubelet/config.yaml", None, error="missing"), ()),
        (record("/var/lib/kubelet/config.yaml", None, error="denied"), ()),
        ("a: [\n", ()),
        ("failSwapOn: perhaps\n", ()),
        (REFUSED, ("--fail-swap-on=perhaps",)),
        (REFUSED, ("--dynamic-config-dir=/x",)),
    ],
)
def test_a_kubelet_whose_configuration_is_not_known(world, config, flags):
    for seen in (node(FSTAB_UNIT, fstab=LINE, swaps=SDA2), node(fstab=LINE)):
        verdict, found, note = judge_swap(world, seen, config, flags)
        assert (verdict, found) == ("unknown", [])
        assert note


def test_a_kubelet_inside_another_program_is_not_judged_by_that_ones_flags(world):
    world.data("w1", "kubelet")["argv"] = ["/usr/local/bin/k3s", "agent"]
    kubelet = world.data("w1", "kubelet")
    world.documents["w1"]["collectors"]["swap"] = {"status": "ok", "data": node(swaps=SDA2)}
    assert kubelet["argv"][0].endswith("k3s")
    assert (
        next(item for item in world.judge(faults=CODES).verdicts if item.host == "w1").verdict
        == "unknown"
    )


def test_swap_that_pods_are_meant_to_use_is_not_what_is_wrong(world):
    world.documents["w1"]["collectors"]["pinning"] = {
        "status": "ok",
        "data": {"kubelet_version": "Kubernetes v1.36.3"},
    }
    _verdict, (found,), _note = judge_swap(
        world, node(swaps=SDA2), "memorySwap:\n  swapBehavior: LimitedSwap\n", answers=False
    )
    assert "meant for pods" in found.summary
    assert found.remedy.startswith("set failSwapOn: false")
    assert found.severity == "critical"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"swaps": None}, "unknown"),
        ({"fstab": None}, "unknown"),
        ({"units": None}, "unknown"),
        ({"cmdline": None}, "unknown"),
        ({"files": None}, "unknown"),
        ({"units": [MASKED]}, "clear"),
        ({"units": [TARGET]}, "clear"),
        ({"links": None}, "clear"),
    ],
)
def test_what_is_missing_is_not_clear(world, change, verdict):
    assert judge_swap(world, node() | change)[0] == verdict


@pytest.mark.parametrize("status", ["error", "timeout", "denied", "absent"])
def test_a_collector_that_did_not_answer(world, status):
    assert judge_swap(world, None, status=status)[0] == "unknown"


def test_a_host_without_a_kubelet(world):
    world.documents["w1"]["collectors"]["kubelet"] = {"status": "absent", "data": None}
    world.documents["w1"]["collectors"]["swap"] = {"status": "ok", "data": node(swaps=SDA2)}
    assert (
        next(item for item in world.judge(faults=CODES).verdicts if item.host == "w1").verdict
        == "not_applicable"
    )


def test_what_a_node_says_is_printed_on_one_line(world):
    seen = node(
        swaps="/x\\012\x1b[31mCRITICAL file 1 0 -1\n", fstab="/y\x1b[31m none swap sw 0 0\n"
    )
    _verdict, (found,), _note = judge_swap(world, seen)
    texts = [
        found.summary,
        found.remedy,
        *(str(proof.text) + str(proof.path) for proof in found.evidence),
    ]
    assert not any("\x1b" in text or "\n" in text for text in texts)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["path", "text", "error", "Id", "What", "LoadState", "kind"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_evidence_raises(data):
    from tests.unit.plugins.plugin_utils.conftest import World

    world, seen = (
        World(1),
        node(
            FSTAB_UNIT,
            OWN_UNIT,
            fstab=LINE,
            swaps=SDA2 + FILE,
            own=[],
            container=data.draw(st.booleans()),
        ),
    )
    for key in data.draw(st.lists(st.sampled_from(sorted(seen)), max_size=3)):
        seen[key] = data.draw(JSON)
    judge_swap(world, copy.deepcopy(seen), data.draw(st.sampled_from([REFUSED, None, "x"])))


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("/etc/systemd/system/x.swap", "systemctl disable --now x.swap"),
        ("/usr/lib/systemd/system/x.swap", "systemctl mask x.swap"),
    ],
)
def test_a_unit_whose_file_lies_where_a_mask_would_is_disabled(place, command):
    """Systemctl refuses to mask it: the file exists already."""
    source = Source("unit", place, "/x", "x.swap", undo=(Undo("mask", "x.swap"),))
    assert undone(source) == command


def test_the_folder_of_a_masked_generator_is_made():
    """No distribution brings it."""
    undo = Undo("generator", "/etc/systemd/system-generators/zram-generator")
    assert undone(Source("zram-generator", "x:1", "/dev/zram0", undo=(undo,))) == (
        "mkdir -p /etc/systemd/system-generators && ln -s /dev/null"
        " /etc/systemd/system-generators/zram-generator"
    )
