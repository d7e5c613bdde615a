# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every incident on a real cluster: broken as it was really broken, audited, found exactly, healed.

`make test` runs each incident once, the versions shared out between them; KUBEMEND_TEST_FULL=1 runs the whole matrix with
the components' own timers and goes on where an interrupted run stopped. KUBEMEND_CASES is a glob over incident names.
"""

from __future__ import annotations

import fnmatch
import os

import pytest

from tests.gate import machine
from tests.lab import host, incident, playbook, runner
from tests.lab.cluster import Cluster

NEW, OLD = "v1.36.3", "v1.18.4"
FULL = os.environ.get("KUBEMEND_TEST_FULL") == "1"
# What depends on the version of Kubernetes runs on both even in `make test`.
BOTH = ("healthy", "two-leaders", "scheduler-config-file")
# The rest of `make test`, dealt out so that neither version costs much more than the other.
ON_OLD = ("backup-manifest", "broken-yaml", "wrong-master-unreachable", "two-clusters", "value-does-not-parse",
          "mended-while-kubelet-stopped", "foreign-kcm-pod", "gpu-oversubscribed", "gpu-held", "gpu-plugin-gone")
# Made, diagnosed and repaired by test_admission.py.
ELSEWHERE = ("gpu-two-leaders",)


def chosen() -> list[runner.Case]:
    """The cases of this run."""
    wanted = os.environ.get("KUBEMEND_CASES") or "*"
    names = [name for name in sorted(incident.discover()) if fnmatch.fnmatchcase(name, wanted)]
    cases = [(name, version) for version in (NEW, OLD) for name in names
             if FULL or name in BOTH or name not in ELSEWHERE and (version == OLD) == (name in ON_OLD)]
    return [runner.case(name, version) for name, version in cases]


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
        pytest.skip("passed already on these very bytes")
    if entry["outcome"] == "skipped":
        pytest.skip(entry["reason"])
    assert entry["outcome"] == "passed", entry["reason"]
