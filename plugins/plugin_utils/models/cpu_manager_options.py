# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CpuManagerPolicyOptions with which no kubelet of a release starts. Pure.

The table is that of pkg/kubelet/cm/cpumanager/policy_options.go, read in 1.22.0 to 1.25.0, 1.30.0
to 1.35.0 and 1.36.3. The gate of all options is in cmd/kubelet/app/server.go. For a release beyond
NEWEST only those rules apply that hold in every release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..parsers.cpu_manager_state import NONE

Release = tuple[int, int]

OPTIONS = "cpuManagerPolicyOptions"
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
GROUPS = {"alpha": "AllAlpha", "beta": "AllBeta"}  # the gate of each stage
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
    """Return why no kubelet starts so, in one clause; empty where nothing is known to stop one.

    gates: featureGates
    topology: topologyManagerPolicy
    """
    clauses = (
        _without_policy(policy, options, release),
        _unknown(options, release),
        _neither(options),
        _off(options, gates, release),
        _apart(options, topology),
    )
    return next(filter(None, clauses), "")


def _without_policy(policy: str | None, options: Mapping[str, str], release: Release | None) -> str:
    """Return the options that the policy none refuses."""
    if policy == NONE and options and (release is None or release >= (1, 22)):
        return f"the policy none takes no {OPTIONS} ({', '.join(sorted(options))})"
    return ""


def _unknown(options: Mapping[str, str], release: Release | None) -> str:
    """Return the options that a release does not know."""
    if release is None:
        return ""
    unknown = sorted(option for option in options if not _is_known(option, release))
    if unknown:
        return f"{OPTIONS} {', '.join(unknown)} not known to Kubernetes {_name(release)}"
    return ""


def _is_known(option: str, release: Release) -> bool:
    """Tell whether a release knows an option, or may know it because it is beyond NEWEST."""
    if option in STAGES:
        return release >= STAGES[option][0]
    return release > NEWEST


def _neither(options: Mapping[str, str]) -> str:
    """Return the known options whose values are no truth values."""
    odd = sorted(
        f"{option}: {value}"
        for option, value in options.items()
        if option in STAGES and value not in TRUTHS | LIES
    )
    if odd:
        return f"{OPTIONS} {', '.join(odd)} neither true nor false"
    return ""


def _off(options: Mapping[str, str], gates: Mapping[str, str], release: Release | None) -> str:
    """Return the options whose feature gate is not on."""
    if release is None or not options:
        return ""
    gated = _gated(options, gates, release)
    if gated is None:
        return ""
    stage, names, gate = gated
    return (
        f"{OPTIONS} {', '.join(names)} {stage} in Kubernetes {_name(release)}, and the feature gate"
        f" {gate} is not on"
    )


def _apart(options: Mapping[str, str], topology: str) -> str:
    """Return the options that exclude each other, or that the topology manager excludes."""
    choices = {option for option, value in options.items() if value in TRUTHS}
    for pair in APART:
        if choices.issuperset(pair):
            return f"{OPTIONS} {' and '.join(pair)} excluding each other"
    if SOCKET in choices and topology == "single-numa-node":
        return f"{OPTIONS} {SOCKET} excluded by the topologyManagerPolicy {topology}"
    return ""


def _name(release: Release) -> str:
    return ".".join(map(str, release))


def _gated(
    options: Mapping[str, str], gates: Mapping[str, str], release: Release
) -> tuple[str, list[str], str] | None:
    """(stage, options, the gate that they lack), None where each has its own."""
    stage = _stage(release, ALL_BETA, ALL_STABLE)
    if stage and not _on(gates, ALL, stage):
        return stage, sorted(options), ALL
    alpha = _of_stage("alpha", options, release)
    if alpha and not _on(gates, ALPHA, "alpha"):
        return "alpha", alpha, ALPHA
    beta = _of_stage("beta", options, release)
    if beta and release >= ALL_BETA and not _on(gates, BETA, "beta"):
        return "beta", beta, BETA
    return None


def _stage(release: Release, beta: Release, stable: Release) -> str:
    """Return what something is in a release that was beta and stable first in those two."""
    if release < beta:
        return "alpha"
    if release < stable:
        return "beta"
    return ""


def _of_stage(stage: str, options: Iterable[str], release: Release) -> list[str]:
    """Return the known options that have this stage in a release."""
    known_options = sorted(option for option in options if option in STAGES)
    return [option for option in known_options if _stage(release, *STAGES[option][1:]) == stage]


def _on(gates: Mapping[str, str], gate: str, stage: str) -> bool:
    """Tell whether a gate is on: its own setting counts, then that of its stage."""
    for name in (gate, GROUPS[stage]):
        if name in gates:
            return gates[name] in TRUTHS
    return stage == "beta"
