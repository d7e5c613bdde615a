# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap switched off: in which steps, from which source, and what stands in the way."""

from __future__ import annotations

import base64

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.evidence import (
    Source,
    Undo,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.node import NodeSwap
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.policy import (
    SwapPolicy,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.sources import (
    Forecast,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    swap as remedie_swap,
)
from tests.unit.plugins.plugin_utils.models.swap.test_sources import (
    FSTAB_UNIT,
    GENERATOR,
    GPT_UNIT,
    LINE,
    OWN_UNIT,
    SDA2,
    ZRAM,
    ZRAM_UNIT,
    node,
    record,
)
from tests.unit.support.facts import facts, facts_of_each
from tests.unit.support.swap_evidence import missing, seen

FILE, USED = "/swapfile file 65532 0 -2\n", "/swapfile file 65532 5 -2\n"
MEMORY = {"swap_total_kib": 1048572, "swap_free_kib": 1048572, "mem_available_kib": 2000000}
SERVICE = {
    "Id": "dphys-swapfile.service",
    "LoadState": "loaded",
    "UnitFileState": "enabled",
    "ActiveState": "active",
}


def steps(world, seen, *allow, config="kind: KubeletConfiguration\n", max_risk=3, flags=()):
    documents, kubelet = world.documents, world.data("w1", "kubelet")
    kubelet.update(
        argv=["kubelet", "--config=/c", *flags],
        config=record("/c", config, masked=[], sha256="c" * 64),
        config_dropins=[],
    )
    seen = {"memory": MEMORY, "own": [], **seen}
    if isinstance(seen.get("fstab"), dict):
        seen["fstab"].setdefault("sha256", "f" * 64)
    documents["w1"]["collectors"]["swap"] = {"status": "ok", "data": seen}
    result, found = fault_engine.evaluate_clusters(
        [*documents.values(), world.api], frozenset({"KM504"})
    )
    return plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        plan.Consent(max_risk, frozenset(allow)),
        remedie_swap.REMEDIES,
        fault_engine.KEY_DIGITS,
    )


def shape(found):
    return [(step.remedy, step.risk, step.target, step.allowed) for step in found]


def blocked(found):
    assert found
    assert not any(step.allowed for step in found)
    return found[0].blocked_by


def test_a_line_of_fstab_first_then_the_swap(world):
    text = "# é\n\n/swapfile none swap sw 0 0\n/dev/sda1 / ext4 defaults 0 1\n"
    keep, off = steps(world, node(fstab=text, swaps=FILE))
    assert shape([keep, off]) == [
        ("swap_persistence", 1, "/etc/fstab", True),
        ("swap_off", 3, "/swapfile", True),
    ]
    ((begin, end, old, new),) = keep.change["splices"]
    data = text.encode()
    assert (end, old) == (begin, "")
    assert keep.change["sha256"] == "f" * 64
    assert (
        data[:begin] + base64.b64decode(new) + data[end:]
        == text.replace("/swapfile", "# kubemend: /swapfile").encode()
    )
    assert "-/swapfile none swap sw 0 0\n+# kubemend: /swapfile none swap sw 0 0\n" in keep.diff
    assert off.change == {
        "kind": "swap_off",
        "path": "/swapfile",
        "config": [{"path": "/c", "sha256": "c" * 64}],
        "seconds": 300,
    }


def test_two_lines_are_one_change(world):
    keep, off = steps(
        world, node(fstab="/swapfile none swap sw 0 0\n/b none swap sw 0 0\n", swaps=FILE)
    )
    assert len(keep.change["splices"]) == 2
    assert off.remedy == "swap_off"


def test_partitions_that_systemd_would_find_by_itself(world):
    found = steps(world, node(FSTAB_UNIT, fstab=LINE, swaps=SDA2))
    assert [step.target for step in found] == [
        "/etc/fstab",
        "/etc/systemd/system/swap.target",
        "/dev/sda2",
    ]
    assert found[1].change == {
        "kind": "swap_persistence",
        "path": "/etc/systemd/system/swap.target",
        "sha256": None,
        "splices": [],
    }
    assert [step.target for step in steps(world, node(GPT_UNIT, swaps=SDA2))] == [
        "/etc/systemd/system/dev-sda2.swap",
        "/etc/systemd/system/swap.target",
        "/dev/sda2",
    ]


def test_only_what_the_consent_covers(world):
    assert shape(
        steps(world, node(fstab="/swapfile none swap sw 0 0\n", swaps=FILE), max_risk=1)
    ) == [("swap_persistence", 1, "/etc/fstab", True), ("swap_off", 3, "/swapfile", False)]


def test_swap_that_is_off_now_and_comes_back(world):
    assert shape(steps(world, node(fstab="/swapfile none swap sw 0 0\n"), max_risk=1)) == [
        ("swap_persistence", 1, "/etc/fstab", True)
    ]


def test_swap_that_somebody_switched_on_by_hand(world):
    assert shape(steps(world, node(swaps=FILE))) == [("swap_off", 3, "/swapfile", True)]


def test_a_unit_of_a_package_is_masked_and_one_of_the_operator_named(world):
    vendor = {**OWN_UNIT, "FragmentPath": "/usr/lib/systemd/system/swapfile.swap"}
    assert [step.target for step in steps(world, node(vendor, swaps=FILE))] == [
        "/etc/systemd/system/swapfile.swap",
        "/swapfile",
    ]
    assert "systemctl disable --no-reload swapfile.swap" in blocked(
        steps(world, node(OWN_UNIT, swaps=FILE))
    )


def test_what_a_person_does_comes_before_anything_is_switched_off(world):
    found = steps(
        world,
        node(SERVICE, swaps="/var/swap file 65532 0 -2\n", fstab="/swapfile none swap sw 0 0\n"),
    )
    assert "systemctl disable --now dphys-swapfile.service" in blocked(found)
    assert {step.remedy for step in found} == {"swap_persistence", "swap_off"}


def zram(*changed):
    seen = node(ZRAM_UNIT, swaps="/dev/zram0 partition 4194300 0 100\n")
    seen["files"] = [*changed, record(ZRAM, "[zram0]\n"), record(GENERATOR, None), *seen["files"]]
    return seen


def test_zram_generator(world):
    ours = {"path": remedie_swap.ZRAM, "error": "missing"}
    assert [step.target for step in steps(world, zram(ours))] == [remedie_swap.ZRAM, "/dev/zram0"]
    assert "zram-generator" in blocked(steps(world, zram()))  # nobody knows whether there is one
    assert "zram-generator" in blocked(steps(world, zram(record(remedie_swap.ZRAM, "[zram0]\n"))))
    dropin = record("/etc/systemd/zram-generator.conf.d/a.conf", "[zram0]\n")
    assert "zram-generator" in blocked(steps(world, zram(ours, dropin)))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            "failSwapOn: true\nmemorySwap:\n  swapBehavior: LimitedSwap\n",
            "whether pods are meant to use swap is not known",
        ),
        ("failSwapOn: false\n", None),
    ],
)
def test_swap_that_is_wanted(world, config, said):
    found = steps(world, node(swaps=FILE), config=config)
    assert (blocked(found) if found else "").startswith(said or "")
    assert bool(found) is bool(said)
    world.documents["w1"]["collectors"]["pinning"] = {
        "status": "ok",
        "data": {"kubelet_version": "Kubernetes v1.36.3"},
    }
    if said:
        assert "pods are meant to use swap here (LimitedSwap)" in blocked(
            steps(world, node(swaps=FILE), config=config)
        )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"swaps": "/swapfile file 2000000 1950000 -2\n"}, "memory has 2000000 KiB left"),
        ({"memory": {}, "swaps": USED}, "is not known"),
        ({"swaps": "/swapfile file x y -2\n"}, "is not known"),
        ({"swaps": "/swapfile\\040(deleted) file 65532 0 -2\n"}, "was deleted"),
        ({"swaps": "/a\\012b file 65532 0 -2\n"}, "no path"),
        ({"swaps": "swapfile file 65532 0 -2\n"}, "no path"),
    ],
)
def test_swap_that_cannot_be_switched_off_now(world, change, said):
    base = node(swaps=FILE)
    base["swaps"] = (
        base["swaps"].replace(FILE, change["swaps"]) if "swaps" in change else base["swaps"]
    )
    assert said in blocked(
        steps(world, base | {key: value for key, value in change.items() if key != "swaps"})
    )


def test_memory_of_another_type_is_unknown_and_plans_nothing(world):
    base = node(swaps=FILE)
    base["swaps"] = base["swaps"].replace(FILE, USED)
    assert not steps(world, base | {"memory": 5})


def test_what_lasts_is_done_though_memory_does_not_suffice_today(world):
    (keep,) = steps(
        world,
        node(fstab="/swapfile none swap sw 0 0\n", swaps="/swapfile file 2000000 1950000 -2\n"),
    )
    assert keep.allowed
    assert keep.remedy == "swap_persistence"
    assert "make room first" in keep.note


def test_a_step_that_is_blocked_by_itself_stays_so_where_memory_does_not_suffice(world):
    seen = node(fstab="/swapfile none swap sw 0 0\n", swaps="/swapfile file 2000000 1950000 -2\n")
    seen["fstab"].update(truncated=True)
    (keep,) = steps(world, seen)
    assert not keep.allowed
    assert "is not wholly known" in keep.blocked_by


def test_a_container_whose_own_file_it_is(world):
    found = steps(
        world,
        node(fstab="/swapfile none swap sw 0 0\n", swaps=FILE, container=True, own=["/swapfile"]),
    )
    assert shape(found) == [
        ("swap_persistence", 1, "/etc/fstab", True),
        ("swap_off", 3, "/swapfile", True),
    ]
    assert shape(steps(world, node(swaps=FILE + SDA2, container=True, own=["/swapfile"]))) == [
        ("swap_off", 3, "/swapfile", True)
    ]
    assert steps(world, node(swaps=FILE + SDA2, container=True)) == ()  # all of it is the machine's


def test_what_a_boot_brings_is_not_known(world):
    assert "what a boot restores is not known" in blocked(
        steps(world, node(swaps=FILE) | {"units": None})
    )


def test_a_node_that_was_taken_out_on_purpose(world):
    world.data("w1", "kubelet")["unit"].update(unit_file_state="masked", load_state="masked")
    assert "kubemend_allow=fenced" in blocked(steps(world, node(swaps=FILE)))
    assert all(step.allowed for step in steps(world, node(swaps=FILE), "fenced"))


def test_no_api_that_could_tell(world):
    world.api = {**world.api, "status": "error", "reason": "refused", "collectors": {}}
    assert "kubemend_allow=api_down" in blocked(steps(world, node(swaps=FILE)))
    assert all(step.allowed for step in steps(world, node(swaps=FILE), "api_down"))


def test_a_file_that_was_cut_is_not_changed(world):
    seen = node(fstab="/swapfile none swap sw 0 0\n", swaps=FILE)
    seen["fstab"].update(truncated=True)
    assert "is not wholly known" in blocked(steps(world, seen))


@pytest.mark.parametrize("name", ["../../x.swap", "a b.swap", "-x.swap;reboot", ".swap/y"])
def test_a_name_of_a_unit_that_is_hostile_is_no_path(world, name):
    vendor = {**OWN_UNIT, "Id": name, "FragmentPath": "/usr/lib/systemd/system/x.swap"}
    found = steps(world, node(vendor, swaps=FILE))
    assert not any(step.remedy == "swap_persistence" and step.allowed for step in found)


def test_a_plan_does_not_rely_on_the_finding(world):
    """What was found is looked at again.

    A kubelet that takes swap after all, or swap that is only the machine's, is left alone.
    """
    found = {}
    for name, changed in (
        ("same", {}),
        ("taken", {"config": "failSwapOn: false\n"}),
        ("the machine's", {"seen": node(swaps=FILE, container=True)}),
    ):
        steps(world, node(swaps=FILE))
        result, clusters = fault_engine.evaluate_clusters(
            [*world.documents.values(), world.api], frozenset({"KM504"})
        )
        steps(
            world,
            changed.get("seen", node(swaps=FILE)),
            config=changed.get("config", "kind: KubeletConfiguration\n"),
        )
        consent = plan.Consent(3, frozenset())
        found[name] = plan.plan(
            result.findings,
            clusters,
            world.documents.__getitem__,
            consent,
            remedie_swap.REMEDIES,
            fault_engine.KEY_DIGITS,
        )
    assert {name: [step.remedy for step in made] for name, made in found.items()} == {
        "same": ["swap_off"],
        "taken": [],
        "the machine's": [],
    }


def test_a_limited_run_leaves_others_alone(world):
    steps(world, node(fstab="/swapfile none swap sw 0 0\n", swaps=FILE))
    result, _found = fault_engine.evaluate_clusters(
        [*world.documents.values(), world.api], frozenset({"KM504"})
    )
    world.documents["w1"] = {**world.documents["w1"], "status": "not_asked"}
    _result, clusters = fault_engine.evaluate_clusters(
        [*world.documents.values(), world.api], frozenset({"KM504"})
    )
    found = plan.plan(
        result.findings,
        clusters,
        world.documents.__getitem__,
        plan.Consent(3, frozenset()),
        remedie_swap.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    facts_of_each((step.blocked_by for step in found), ("w1", "--limit"), ("w1", "--limit"))


def test_what_lasts_is_the_same_change_whether_or_not_the_swap_may_go(world):
    line = "/swapfile none swap sw 0 0\n"
    whole, off = steps(world, node(fstab=line, swaps=FILE))
    (alone,) = steps(world, node(fstab=line, swaps="/swapfile file 2000000 1950000 -2\n"))
    assert (alone.change, alone.diff, alone.target, alone.limit) == (
        whole.change,
        whole.diff,
        "/etc/fstab",
        60,
    )
    assert alone.change["splices"]
    assert off.limit == off.change["seconds"] == 300


def given(*undo, place="/etc/rc.local:3", device="/dev/x"):
    """Tell what keeps off a source that is undone so."""
    later = Forecast((Source("script", place, device, "x.swap", True, "", undo),))
    return remedie_swap.sources(
        NodeSwap(seen(node()), [], later, SwapPolicy(True, False, "NoSwap"), False)
    )


@pytest.mark.parametrize(
    ("undo", "place", "stated"),
    [
        ((), "/etc/rc.local:3", ("/dev/x",)),
        ((Undo("comment", "/etc/other:3"),), "/etc/other:3", ("comment /etc/other:3",)),
        ((Undo("comment", "/etc/fstab:x"),), "/etc/fstab", ("comment /etc/fstab:x",)),
        ((Undo("edit", "/etc/fstab:3"),), "/etc/fstab:3", ("edit /etc/fstab:3",)),
        (
            (Undo("edit", "/etc/waagent.conf:3", "ResourceDisk.EnableSwap=n"),),
            "x",
            ("edit /etc/waagent.conf:3", "ResourceDisk.EnableSwap=n"),
        ),
        ((Undo("disable", "a.service"),), "a.service", ("systemctl disable --now a.service",)),
        ((Undo("disable", "x.swap"),), "x", ("systemctl disable --now x.swap",)),
        (
            (Undo("disable", r"dev-disk-by\x2dlabel-s.swap"),),
            "x",
            (r"systemctl disable --now 'dev-disk-by\x2dlabel-s.swap'",),
        ),
        (
            (Undo("mask", "x.swap"),),
            "/etc/systemd/system/x.swap",
            (
                "systemctl disable --no-reload x.swap",
                "/etc/systemd/system/x.swap",
            ),
        ),
        (
            (Undo("generator", "/etc/systemd/system-generators/zram-generator"),),
            "x",
            (
                "mkdir -p /etc/systemd/system-generators && ln -s /dev/null"
                " /etc/systemd/system-generators/zram-generator",
            ),
        ),
    ],
)
def test_what_only_a_person_does(undo, place, stated):
    found = given(*undo, place=place)
    assert (found.lines, found.empty) == (set(), {})
    facts_of_each(found.hand, stated)


@pytest.mark.parametrize("kind", ["disable", "edit"])
def test_zram_generators_file_is_emptied_for_nothing_else(kind):
    later = Forecast(
        (
            Source(
                "service", "a.service", "/dev/x", "a.service", True, "", (Undo(kind, "a.service"),)
            ),
        )
    )
    evidence = {
        **node(),
        "files": [{"path": remedie_swap.ZRAM, "error": "missing"}, *node()["files"]],
    }
    found = remedie_swap.sources(
        NodeSwap(seen(evidence), [], later, SwapPolicy(True, False, "NoSwap"), False)
    )
    assert found.empty == {}
    assert len(found.hand) == 1


def test_a_source_without_a_device_is_named_by_its_place():
    facts_of_each(given(device="").hand, ("/etc/rc.local:3",))


RUNTIME_MASK = {
    "Id": "b.swap",
    "What": "/b",
    "LoadState": "masked",
    "UnitFileState": "masked-runtime",
    "ActiveState": "inactive",
}


def test_a_unit_of_which_nobody_knows_whether_it_comes_back(world):
    facts(
        blocked(steps(world, node(RUNTIME_MASK, swaps=FILE))),
        "not known",
        "b.swap",
        "masked",
        "next boot",
    )
    vendor = {**OWN_UNIT, "FragmentPath": "/usr/lib/systemd/system/swapfile.swap"}
    # what is known is done
    assert all(step.allowed for step in steps(world, node(RUNTIME_MASK, vendor, swaps=FILE)))


def test_a_file_of_which_nobody_knows_the_true_bytes_is_not_changed(world):
    seen = node(fstab="/swapfile none swap sw 0 0\n", swaps=FILE)
    seen["fstab"].update(sha256=None)
    assert "is not wholly known: comment line 1 by hand" in blocked(steps(world, seen))


def test_zram_generators_own_file_that_nobody_asked_for(world):
    assert "zram-generator" in blocked(steps(world, zram(missing("/etc/default/zramswap"))))


def test_the_swap_goes_only_while_the_kubelets_configuration_is_the_same(world):
    steps(world, node(swaps=FILE))
    result, found = fault_engine.evaluate_clusters(
        [*world.documents.values(), world.api], frozenset({"KM504"})
    )
    for dropins, known in (
        (
            [record("/d/1.conf", "", sha256="d" * 64), record("/d/2.conf", "", sha256=None)],
            ["/c", "/d/1.conf"],
        ),
        (None, ["/c"]),
    ):
        kubelet = {**world.data("w1", "kubelet"), "config_dropins": dropins}
        world.documents["w1"]["collectors"]["kubelet"]["data"] = kubelet
        steps_now = plan.plan(
            result.findings,
            found,
            world.documents.__getitem__,
            plan.Consent(3, frozenset()),
            remedie_swap.REMEDIES,
            fault_engine.KEY_DIGITS,
        )
        assert [one["path"] for one in steps_now[-1].change["config"]] == known
