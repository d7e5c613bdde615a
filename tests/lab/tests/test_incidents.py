# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every incident on a real cluster: broken as it was really broken, audited, found exactly, healed.

`make test` runs them on the release that the commit draws, and of the families in SAMPLED as many
as stand there (drawn.py). KUBEMEND_TEST_FULL=1 runs the whole matrix with the components' own
timers. Both continue an interrupted run. KUBEMEND_CASES is a glob over incident names, and nothing
that it names is left out.
"""

from __future__ import annotations

import fnmatch
import os

import pytest

from tests.gate import machine
from tests.lab.cluster import host, paths
from tests.lab.support import incident, playbook, results, runner, sampling
from tests.lab.support.repairing import FULL, RELEASES

# The gate sets it where an interrupted run goes on: what passed on these very bytes is not run
# again.
RESUMED = FULL or os.environ.get("KUBEMEND_RESUMED") == "1"
# What depends on the release most: every draw has it.
ALWAYS = ("healthy", "scheduler-config-file")
# Families of incidents that the same code makes and reads, and at last all others: how many of
# each are drawn.
SAMPLED = {"gpu-": 1, "pinning-": 1, "-master-unreachable": 1, "": 2}
# Tests of their own make and diagnose these: test_admission.py, test_reset.py, test_repair.py,
# test_open_files.py, test_boot.py, test_manual_fixes.py, test_pending.py, test_no_writes.py,
# test_certificates.py.
ELSEWHERE = (
    "gpu-two-leaders",
    "pinning-policy-changed",
    "pinning-corrupt-state",
    "api-down",
    "inotify-default",
    "inotify-one-holder",
    "sysctl-overridden",
    "ip-forward-off",
    "inotify-watches",
    "kubelet-certificate-over",
    "runtime-metadata",
    "runtime-config-emptied",
    "firewall-enabled",
    "no-scheduler",
    "scheduler-out-of-reach",
    "etcd-no-space",
    "etcd-no-quorum",
    "certificates-expired",
    "certificates-expired-everywhere",
)


def chosen() -> list[runner.Case]:
    """List the cases of this run."""
    wanted = os.environ.get("KUBEMEND_CASES")
    known = sorted(incident.discover())
    if FULL or wanted:
        names = [name for name in known if fnmatch.fnmatchcase(name, wanted or "*")]
        return [runner.case(name, version) for version in RELEASES for name in names]
    seed = results.tree()["commit"]
    return [
        runner.case(name, version)
        for version in RELEASES
        for name in drawn(possible_on(version), seed)
    ]


def possible_on(version: str) -> list[str]:
    """Name the incidents that a release can have."""
    found = incident.discover()
    number = paths.version_tuple(version)
    return sorted(name for name, one in found.items() if one.applies(number))


def drawn(names: list[str], seed: str) -> list[str]:
    """Draw as many of each family as SAMPLED says, and add what every draw has."""
    rest = [name for name in names if name not in (*ALWAYS, *ELSEWHERE)]
    drawn_names = [name for name in names if name in ALWAYS]
    for part, count in SAMPLED.items():
        drawn_names += sampling.pick(
            [name for name in rest if part in name], count, f"{seed} {part}"
        )
        rest = [name for name in rest if part not in name]
    return sorted(drawn_names)


@pytest.mark.parametrize("version", paths.pinned())
def test_a_commit_draws_the_same_every_time_and_another_one_others(version):
    names = possible_on(version)
    first = drawn(names, "a")
    assert first == drawn(names, "a")
    assert {tuple(drawn(names, str(number))) for number in range(20)} != {tuple(first)}
    assert set(ALWAYS) <= set(first)
    assert not set(ELSEWHERE) & set(first)
    assert len(first) == len(ALWAYS) + sum(SAMPLED.values())
    assert set(names) - set(ELSEWHERE) == {
        name for number in range(900) for name in drawn(names, str(number))
    }


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str], dict]:
    """Run all cases in packed rounds; each test then looks at its own."""
    entries = runner.Runner(
        playbook.audit, masters=3, workers=1, timers="default" if FULL else "short", resume=RESUMED
    ).run(chosen())
    return {(entry["k8s"], entry["case"].split("@")[0]): entry for entry in entries}


@pytest.mark.parametrize(("name", "version"), [(case.incident, case.k8s) for case in chosen()])
def test_incident(outcomes, name, version):
    reason = host.unavailable_reason()
    if reason and not machine.in_ci():
        pytest.skip(reason)
    entry = outcomes.get((version, name))
    if entry is None:
        assert RESUMED, f"{name} was not run"
        pytest.skip("passed already on these very bytes")
    if entry["outcome"] == "skipped":
        pytest.skip(entry["reason"])
    assert entry["outcome"] == "passed", entry["reason"]
