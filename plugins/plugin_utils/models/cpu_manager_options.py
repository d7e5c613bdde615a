# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CpuManagerPolicyOptions with which no kubelet of a release starts. Pure.

The table is that of pkg/kubelet/cm/cpumanager/policy_options.go, read in 1.22.0 to 1.25.0, 1.30.0
to 1.35.0 and 1.36.3; the gate of all options that of cmd/kubelet/app/server.go. Of a release beyond
NEWEST nothing is told but what has held in every one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..parsers.cpu_manager_state import NONE

Release = tuple[int, int]

STRICT = "strict-cpu-reservation"
FULL, NUMA, SOCKET = "full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket"
CORES, CACHE = "distribute-cpus-across-cores", "prefer-align-cpus-by-uncorecache"
NEWEST = (1, 36)
BEYOND = (1, 37)  # alpha in NEWEST still
# Option -> the releases that knew it first, that had it as beta and that had it as stable.
STAGES: Mapping[str, tuple[Release, Release, Release]] = {
    FULL: ((1, 22), (1, 22), (1, 33)),
    NUMA: ((1, 23), (1, 33), BEYOND),
    SOCKET: ((1, 25), BEYOND, BEYOND),
    CORES: ((1, 31), BEYOND, BEYOND),
    STRICT: ((1, 32), (1, 33), (1, 35)),
    CACHE: ((1, 32), (1, 34), (1, 36)),
}
# that no kubelet takes together
APART = ((FULL, CORES), (NUMA, CORES), (CACHE, CORES), (CACHE, NUMA))
ALL, ALPHA, BETA = (
    "CPUManagerPolicyOptions",
    "CPUManagerPolicyAlphaOptions",
    "CPUManagerPolicyBetaOptions",
)
ALL_BETA, ALL_STABLE = (1, 23), (1, 33)  # of the gate ALL
TRUTHS = frozenset(("1", "t", "T", "TRUE", "true", "True"))  # of strconv.ParseBool
LIES = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def misfits(
    policy: str | None,
    options: Mapping[str, str],
    gates: Mapping[str, str],
    release: Release | None,
    topology: str = "",
) -> str:
    """Why no kubelet starts so, in one clause; empty where nothing of it is known to stop one.

    Gates: featureGates; topology: topologyManagerPolicy.
    """
    told = "cpuManagerPolicyOptions "
    if policy == NONE and options and (release is None or release >= (1, 22)):
        return f"the policy none takes no {told}({', '.join(sorted(options))})"
    name = ".".join(map(str, release or ()))
    unknown = sorted(
        one
        for one in options
        if release is not None
        and (release < STAGES[one][0] if one in STAGES else release <= NEWEST)
    )
    if unknown:
        return f"{told}{', '.join(unknown)} not known to Kubernetes {name}"
    odd = sorted(
        f"{one}: {value}"
        for one, value in options.items()
        if one in STAGES and value not in TRUTHS | LIES
    )
    if odd:
        return f"{told}{', '.join(odd)} neither true nor false"
    gated = _gated(options, gates, release)
    if gated:
        stage, which, gate = gated
        return (
            f"{told}{', '.join(which)} {stage} in Kubernetes {name}, and the feature gate {gate} is"
            " not on"
        )
    given = {one for one, value in options.items() if value in TRUTHS}
    for pair in APART:
        if given.issuperset(pair):
            return f"{told}{' and '.join(pair)} excluding each other"
    if SOCKET in given and topology == "single-numa-node":
        return f"{told}{SOCKET} excluded by the topologyManagerPolicy {topology}"
    return ""


def _gated(
    options: Mapping[str, str], gates: Mapping[str, str], release: Release | None
) -> tuple[str, list[str], str] | None:
    """(stage, options, the gate that they lack), None where each has its own."""
    if release is None or not options:
        return None
    every = _on(gates, ALL, "AllAlpha" if release < ALL_BETA else "AllBeta", release >= ALL_BETA)
    if release < ALL_STABLE and not every:
        return "alpha" if release < ALL_BETA else "beta", sorted(options), ALL
    alpha = sorted(one for one in options if one in STAGES and release < STAGES[one][1])
    if alpha and not _on(gates, ALPHA, "AllAlpha", False):
        return "alpha", alpha, ALPHA
    beta = sorted(
        one for one in options if one in STAGES and STAGES[one][1] <= release < STAGES[one][2]
    )
    if beta and release >= ALL_BETA and not _on(gates, BETA, "AllBeta", True):
        return "beta", beta, BETA
    return None


def _on(gates: Mapping[str, str], gate: str, group: str, usual: bool) -> bool:
    """Tell whether a gate is on: its own setting counts, then that of its stage."""
    for name in (gate, group):
        if name in gates:
            return gates[name] in TRUTHS
    return usual
