# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpuManagerPolicyOptions by release: the stages as the kubelets' own sources have them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    cpu_manager_options,
)

FULL, NUMA, SOCKET = (
    cpu_manager_options.FULL,
    cpu_manager_options.NUMA,
    cpu_manager_options.SOCKET,
)
CORES, STRICT, CACHE = (
    cpu_manager_options.CORES,
    cpu_manager_options.STRICT,
    cpu_manager_options.CACHE,
)
# Release -> (alpha, beta, stable), copied by hand from policy_options.go of that release; 1.22 knew
# no stages, only the gate of all options.
SOURCES = {
    (1, 23): ({NUMA}, {FULL}, set()),
    (1, 24): ({NUMA}, {FULL}, set()),
    (1, 25): ({NUMA, SOCKET}, {FULL}, set()),
    (1, 30): ({NUMA, SOCKET}, {FULL}, set()),
    (1, 31): ({NUMA, SOCKET, CORES}, {FULL}, set()),
    (1, 32): ({NUMA, SOCKET, CORES, STRICT, CACHE}, {FULL}, set()),
    (1, 33): ({SOCKET, CORES, CACHE}, {STRICT, NUMA}, {FULL}),
    (1, 34): ({SOCKET, CORES}, {STRICT, NUMA, CACHE}, {FULL}),
    (1, 35): ({SOCKET, CORES}, {NUMA, CACHE}, {FULL, STRICT}),
    (1, 36): ({SOCKET, CORES}, {NUMA}, {FULL, STRICT, CACHE}),
}
OFF = {"CPUManagerPolicyAlphaOptions": "false", "CPUManagerPolicyBetaOptions": "false"}
ALPHA_ON = {"CPUManagerPolicyAlphaOptions": "true", "CPUManagerPolicyBetaOptions": "false"}


def misfits(options, gates=None, release=(1, 36), policy="static", topology=""):
    return cpu_manager_options.misfits(
        policy, dict.fromkeys(options, "true"), gates or {}, release, topology
    )


@pytest.mark.parametrize("release", SOURCES)
def test_stages(release):
    alpha, beta, stable = SOURCES[release]
    for option in cpu_manager_options.STAGES:
        told = [bool(misfits([option], gates, release)) for gates in ({}, OFF, ALPHA_ON)]
        wanted = (
            [False] * 3
            if option in stable
            else (
                [False, True, True]
                if option in beta
                else [True, True, False]
                if option in alpha
                else [True] * 3
            )
        )
        assert told == wanted, (release, option)
        assert ("not known" in misfits([option], {}, release)) == (
            option not in alpha | beta | stable
        )


@pytest.mark.parametrize(
    ("release", "gates", "why"),
    [
        ((1, 21), {}, "full-pcpus-only not known to Kubernetes 1.21"),
        ((1, 22), {}, "alpha in Kubernetes 1.22, and the feature gate CPUManagerPolicyOptions"),
        ((1, 22), {"CPUManagerPolicyOptions": "true"}, ""),
        ((1, 22), {"AllAlpha": "true"}, ""),
        ((1, 23), {}, ""),
        (
            (1, 23),
            {"CPUManagerPolicyOptions": "false"},
            "feature gate CPUManagerPolicyOptions is not on",
        ),
        ((1, 32), {"AllBeta": "false"}, "feature gate CPUManagerPolicyOptions is not on"),
        ((1, 33), {"AllBeta": "false"}, ""),
        ((1, 40), {}, ""),
    ],
)
def test_the_gate_of_all_options(release, gates, why):
    assert why in misfits([FULL], gates, release)
    assert bool(why) == bool(misfits([FULL], gates, release))


@pytest.mark.parametrize(
    ("pair", "excluded"),
    [
        ((FULL, CORES), True),
        ((NUMA, CORES), True),
        ((CACHE, CORES), True),
        ((CACHE, NUMA), True),
        ((FULL, NUMA), False),
        ((FULL, STRICT, CACHE), False),
        ((FULL, SOCKET), False),
    ],
)
def test_options_that_exclude_each_other(pair, excluded):
    assert (
        " and ".join(pair) + " excluding each other"
        in misfits(pair, ALPHA_ON | {"CPUManagerPolicyBetaOptions": "true"})
    ) == excluded
    assert not cpu_manager_options.misfits(
        "static", {pair[0]: "true", pair[1]: "F"}, {"AllAlpha": "true"}, (1, 36)
    )


def test_a_release_that_is_not_known_is_given_the_benefit_of_the_doubt():
    assert not any(misfits([option], OFF, None) for option in cpu_manager_options.STAGES)
    assert not misfits(["any"], {}, None)
    assert "takes no cpuManagerPolicyOptions (full-pcpus-only)" in misfits(
        [FULL], {}, None, policy="none"
    )
    assert not misfits([], OFF, (1, 22), "none")
