# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet refuses swap, tolerates it or wants it, version by version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet,
    pinning,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.policy import (
    SwapPolicy,
    swap_policy,
)

ARGV = ["/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml"]
VERSIONS = [f"v1.{minor}.3" for minor in range(14, 37)]


def memory(behavior):
    return {"memorySwap": {"swapBehavior": behavior}}


def answered(version, config, argv, gates):
    """Return the policy of a kubelet whose version and command line a node answered so."""
    answers = {"pinning": {"kubelet_version": version}, "kubelet": {"argv": argv}}
    collectors = {name: {"status": "ok", "data": data} for name, data in answers.items()}
    document = contract.checked({"host": "w1", "collectors": collectors})
    reported = contract.answer(document, pinning.Pinning).kubelet_version
    words = contract.answer(document, kubelet.Kubelet).argv
    return swap_policy(reported, config, words or None, gates)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_versions_refuse_swap_by_default(version):
    """The gate of 1.30 changes nothing of it."""
    assert swap_policy(version, {}, ARGV, {}) == SwapPolicy(True, False, "NoSwap")


@pytest.mark.parametrize(
    ("config", "more", "refuses"),
    [
        ({"failSwapOn": False}, [], False),
        ({"failSwapOn": "false"}, [], False),
        ({"failSwapOn": True}, [], True),
        ({"failSwapOn": "no"}, [], False),
        ({"failSwapOn": None}, [], True),
        ({}, ["--fail-swap-on=false"], False),
        ({"failSwapOn": False}, ["--fail-swap-on"], True),
        ({"failSwapOn": True}, ["--fail-swap-on=F"], False),
        ({}, ["--fail_swap_on=0"], False),
        ({}, ["--fail-swap-on=false", "--fail-swap-on=true"], True),
        ({"failSwapOn": "yes"}, [], True),
        ({"failSwapOn": "on"}, [], True),
        ({"failSwapOn": "Off "}, [], False),
        ({"failSwapOn": "maybe"}, [], None),
        ({"failSwapOn": 0}, [], None),
    ],
)
def test_fail_swap_on(config, more, refuses):
    found = swap_policy("v1.36.3", config, ARGV + more, {})
    assert found.refuses is refuses
    assert found.fatal == ()
    assert found.wants is False
    assert bool(found.unknown) is (refuses is None)


@pytest.mark.parametrize("word", [["--fail-swap-on=no"], ["--fail-swap-on", "false"]])
def test_a_flag_that_ends_the_kubelet(word):
    found = swap_policy("v1.30.0", {}, ARGV + word, {})
    assert found.refuses is None
    assert len(found.fatal) == 1


OFF, ON = {"NodeSwap": False}, {"NodeSwap": True}


@pytest.mark.parametrize(
    ("version", "behavior", "gates", "effective", "fatal"),
    [
        ("v1.21.0", "LimitedSwap", {}, "NoSwap", ""),
        ("v1.21.0", None, ON, "NoSwap", "does not know"),
        ("v1.21.0", None, OFF, "NoSwap", "does not know"),
        ("v1.22.0", "LimitedSwap", {}, "NoSwap", "gate NodeSwap is off"),
        ("v1.22.0", "LimitedSwap", ON, "LimitedSwap", ""),
        ("v1.22.0", "LimitedSwap", {"AllAlpha": True}, "LimitedSwap", ""),
        ("v1.22.0", None, {"AllBeta": True}, "NoSwap", ""),
        ("v1.28.1", None, {"AllBeta": True}, "LimitedSwap", ""),
        ("v1.28.1", None, {"AllAlpha": True}, "NoSwap", ""),
        ("v1.29.1", "UnlimitedSwap", ON, "UnlimitedSwap", ""),
        ("v1.29.1", "NoSwap", ON, None, "must be LimitedSwap or UnlimitedSwap"),
        ("v1.29.1", None, {"AllBeta": True, **OFF}, "NoSwap", ""),
        ("v1.30.0", "UnlimitedSwap", {}, None, "must be NoSwap or LimitedSwap"),
        ("v1.30.0", "LimitedSwap", {}, "LimitedSwap", ""),
        ("v1.30.0", "", OFF, "NoSwap", ""),
        ("v1.30.0", "LimitedSwap", OFF, "NoSwap", "is off"),
        ("v1.33.0", "LimitedSwap", {"AllBeta": "false"}, "NoSwap", "is off"),
        ("v1.34.0", "LimitedSwap", {"AllBeta": False}, "LimitedSwap", ""),
        ("v1.34.0", "LimitedSwap", OFF, "LimitedSwap", "locked"),
        ("v1.36.3", None, ON, "NoSwap", ""),
        ("v1.36.3", "limitedswap", {}, None, "must be"),
        ("v1.30.0", "LimitedSwap", {"NodeSwap": "maybe"}, None, "no boolean"),
    ],
)
def test_behavior(version, behavior, gates, effective, fatal):
    found = swap_policy(version, memory(behavior) if behavior is not None else {}, ARGV, gates)
    assert found.behavior == effective
    assert found.wants is (None if effective is None else effective != "NoSwap")
    assert len(found.fatal) == bool(fatal)
    assert fatal in "".join(found.fatal)


def test_a_gate_of_the_command_line_wins_by_itself():
    """The files' other gates stay: unlike other maps, this one is merged."""
    argv = [*ARGV, "--feature-gates=Other=true,NodeSwap=false"]
    assert swap_policy("v1.29.0", memory("LimitedSwap"), argv, ON).fatal != ()
    assert swap_policy(
        "v1.29.0", memory("LimitedSwap"), [*ARGV, "--feature-gates=Other=true"], ON
    ) == SwapPolicy(True, True, "LimitedSwap")
    assert (
        "no boolean"
        in swap_policy("v1.29.0", {}, [*ARGV, "--feature-gates=NodeSwap=yes"], {}).fatal[0]
    )


def test_who_forgot_fail_swap_on_wants_swap():
    found = swap_policy("v1.34.0", memory("LimitedSwap"), ARGV, {})
    assert (found.refuses, found.wants) == (True, True)


def test_a_gate_that_may_be_gone():
    assert swap_policy("v1.37.0", {}, ARGV, ON).unknown != ()
    assert swap_policy("v1.37.0", {}, ARGV, {}).unknown == ()


@pytest.mark.parametrize(
    ("args", "refuses", "wants"),
    [
        ((None, {}, ARGV, {}), True, False),
        ((None, {}, ARGV, ON), True, None),
        ((None, {}, ARGV, OFF), True, False),
        ((None, memory("LimitedSwap"), ARGV, {}), True, None),
        (("v1.30.0", None, ARGV, {}), None, None),
        (("v1.30.0", {}, None, {}), None, None),
        (("v1.30.0", None, ["kubelet", "--fail-swap-on=false"], None), False, None),
        (("v1.20.0", None, None, None), None, False),
        (("v1.29.0", {}, None, ON), None, None),
        (("v1.34.0", {}, None, {}), None, False),
        (("v1.30.0", {"memorySwap": "LimitedSwap"}, ARGV, {}), True, None),
        ((None, {}, None, {}), None, None),
        ((None, None, ARGV, {}), None, None),
        ((None, {"memorySwap": {}}, ARGV, {}), True, False),
        ((None, memory(""), ARGV, {}), True, None),
        ((None, {}, ARGV, "NodeSwap"), True, None),
        ((None, {}, ARGV, {"AllAlpha": True}), True, None),
        ((None, {}, ARGV, {"AllBeta": True}), True, None),
        ((None, {}, ARGV, {"AllAlpha": False, "AllBeta": "no"}), True, False),
        (("v1.30.0", {}, "--fail-swap-on=false", {}), None, None),
        (("v1.30.0", memory("NoSwap"), None, {}), None, None),
        (("v1.30.0", memory(5), ARGV, {}), True, None),
        (("v1.30.0", {}, ARGV, "NodeSwap"), True, None),
    ],
)
def test_what_is_missing_is_unknown(args, refuses, wants):
    found = answered(*args)
    assert (found.refuses, found.wants) == (refuses, wants)
    assert found.unknown or None not in (refuses, wants)


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(("NodeSwap", "LimitedSwap", "v1.30.1")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("failSwapOn", "memorySwap", "swapBehavior", "NodeSwap")), inner
        )
    ),
    max_leaves=8,
)


CONFIG = st.dictionaries(
    st.sampled_from(("failSwapOn", "memorySwap", "swapBehavior", "NodeSwap")), ANY
)


@settings(max_examples=200, deadline=None)
@given(ANY, st.none() | CONFIG, ANY, ANY)
def test_hostile_settings_do_not_raise(version, config, argv, gates):
    found = answered(version, config, argv, gates)
    assert not (found.refuses is True and found.wants is False) or isinstance(config, dict)
