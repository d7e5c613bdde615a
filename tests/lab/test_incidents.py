# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every incident on a real cluster: broken as it was really broken, audited, found exactly, healed.

`make test` shares them out between the versions, and runs of the families in SAMPLED as many as stand there, drawn by the commit
(drawn.py). KUBEMEND_TEST_FULL=1 runs the whole matrix with the components' own timers and goes on where an interrupted run
stopped. KUBEMEND_CASES is a glob over incident names, and nothing that it names is left out.
"""

from __future__ import annotations

import fnmatch
import os
import random

import pytest

from tests.gate import machine
from tests.lab import drawn as draw, host, incident, paths, playbook, results, runner
from tests.lab.cluster import Cluster

NEW, OLD = "v1.36.3", "v1.18.4"
FULL = os.environ.get("KUBEMEND_TEST_FULL") == "1"
# What depends on the version of Kubernetes runs on both even in `make test`.
BOTH = ("healthy", "scheduler-config-file")
# Families of incidents that are made, and read, by the same code, and at last all others: how many of each are drawn.
SAMPLED = {"gpu-": 1, "pinning-": 1, "-master-unreachable": 1, "": 3}
# The rest of `make test`, dealt out so that neither version costs much more than the other.
ON_OLD = ("backup-manifest", "broken-yaml", "wrong-master-unreachable", "two-clusters", "value-does-not-parse",
          "mended-while-kubelet-stopped", "foreign-kcm-pod", "gpu-oversubscribed", "gpu-held", "gpu-plugin-gone", "scheduler-forgets-node")
# Made and diagnosed by tests of their own: test_admission.py, test_reset.py, test_repair.py, test_open_files.py, test_boot.py, test_told.py, test_pending.py,
# test_no_writes.py.
ELSEWHERE = ("gpu-two-leaders", "pinning-policy-changed", "pinning-corrupt-state", "api-down", "inotify-default", "inotify-one-holder", "sysctl-overridden",
             "ip-forward-off", "inotify-watches", "kubelet-certificate-over", "runtime-metadata", "runtime-config-emptied", "firewall-enabled",
             "no-scheduler", "scheduler-out-of-reach", "etcd-no-space", "etcd-no-quorum")
# Of these every version shows the same; which of them gets which is drawn too.
EITHER = "pinning-"


def chosen() -> list[runner.Case]:
    """The cases of this run."""
    wanted = os.environ.get("KUBEMEND_CASES")
    known = incident.discover()
    names = [name for name in sorted(known) if fnmatch.fnmatchcase(name, wanted or "*")]
    seed = results.tree()["commit"]
    if not FULL and not wanted:
        names = drawn(names, seed)
    cases = [(name, version) for version in (NEW, OLD) for name in names
             if FULL or name in BOTH or name not in ELSEWHERE and (version == OLD) == on_old(name, known[name], seed)]
    return [runner.case(name, version) for name, version in cases]


def drawn(names: list[str], seed: str) -> list[str]:
    """Those that both versions get, and of the families in SAMPLED what this seed draws."""
    rest, chosen = [name for name in names if name not in (*BOTH, *ELSEWHERE)], [name for name in names if name in BOTH]
    for part, count in SAMPLED.items():
        chosen += draw.pick([name for name in rest if part in name], count, f"{seed} {part}")
        rest = [name for name in rest if part not in name]
    return sorted(chosen)


def on_old(name: str, one: incident.Incident, seed: str) -> bool:
    """Whether the older version gets it."""
    if not name.startswith(EITHER):
        return name in ON_OLD
    return one.applies(paths.version_tuple(OLD)) and random.Random(f"{seed} {name}").random() < 0.5


def test_a_commit_draws_the_same_every_time_and_another_one_others():
    names = sorted(incident.discover())
    first = drawn(names, "a")
    assert first == drawn(names, "a") and {tuple(drawn(names, str(number))) for number in range(20)} != {tuple(first)}
    assert set(BOTH) <= set(first) and len(first) == len(BOTH) + sum(SAMPLED.values()) and not set(ELSEWHERE) & set(first)
    assert set(names) - set(ELSEWHERE) == {name for number in range(120) for name in drawn(names, str(number))}


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str], dict]:
    """All cases run in packed rounds; each test then looks at its own.

    An idle cluster takes a quarter of a small machine: CI's is taken away when no later test uses it.
    """
    done, entries = runner.Runner(playbook.audit, masters=3, workers=1, timers="default" if FULL else "short", resume=FULL), []
    for version in (OLD, NEW):  # an incident of the old one needs the new one beside it
        entries += done.run([case for case in chosen() if case.k8s == version])
        if version == NEW and machine.in_ci() and not FULL and NEW in Cluster.known():
            Cluster.find(NEW, NEW).down()
    return {(entry["k8s"], entry["case"].split("@")[0]): entry for entry in entries}


@pytest.mark.parametrize(("name", "version"), [(case.incident, case.k8s) for case in chosen()])
def test_incident(outcomes, name, version):
    reason = host.unavailable_reason()
    if reason and not machine.in_ci():
        pytest.skip(reason)
    entry = outcomes.get((version, name))
    if entry is None:
        assert FULL, f"{name} was not run"  # only the whole matrix resumes
        pytest.skip("passed already on these very bytes")
    if entry["outcome"] == "skipped":
        pytest.skip(entry["reason"])
    assert entry["outcome"] == "passed", entry["reason"]
