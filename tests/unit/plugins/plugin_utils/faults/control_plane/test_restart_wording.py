# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each reason of an end has words, and those of an end that a person caused need no advice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.control_plane import (
    restart_wording,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import component_restart
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.component_restart import (
    End,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.control_plane import (
    FileUse,
)

KINDS = sorted(component_restart.LASTING | component_restart.INTENDED | {"runtime", "unknown"})
USE = FileUse(
    "/etc/kubernetes/manifests/etcd.yaml",
    "kube-system/etcd",
    "etcd",
    ("etcd",),
    None,
    None,
    0.0,
    None,
    True,
    None,
    (("livenessProbe", "http://127.0.0.1:2381/health"),),
    "64Mi",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_reason_has_words(kind):
    end = End("etcd", 1_800_000_000.0, kind)
    assert "2027-01-15T08:00:00Z" in restart_wording.clause(end, USE)
    assert "2027-01-15T08:00:00Z" in restart_wording.short(end)
    told = bool(restart_wording.advice(end, USE, "m1"))
    by_log = kind in ("exit", "lock")
    assert told is not (kind in component_restart.INTENDED or by_log)


def test_what_a_probe_asks_and_the_limit_of_the_manifest():
    probe = End("etcd", 1_800_000_000.0, "probe", probe="liveness", output="statuscode: 503")
    for word in ("http://127.0.0.1:2381/health", "liveness probe failed", "statuscode: 503"):
        assert word in restart_wording.clause(probe, USE)
    assert "64Mi" in restart_wording.clause(End("etcd", 1.0, "oom"), USE)
    assert "64Mi" not in restart_wording.clause(End("etcd", 1.0, "oom", of_group=False), USE)


@pytest.mark.parametrize(
    ("limit", "written", "words"),
    [
        (1024**3, "", "1 GiB"),
        (1536 * 1024**2, "", "1.5 GiB"),
        (500 * 1024, "", "500 KiB"),
        (None, "536870912", "512 MiB"),
        (None, "1e9", "953.7 MiB"),
        (None, "1.5Gi", "1.5Gi"),
        (None, "0", ""),
    ],
)
def test_a_memory_limit_as_people_read_it(limit, written, words):
    use = replace(USE, memory_limit=written)
    clause = restart_wording.clause(End("etcd", 1.0, "oom", of_group=True, limit=limit), use)
    assert clause.endswith(f"it reached its memory limit of {words}" if words else "memory limit")


def test_a_limit_that_the_kernel_does_not_name_is_no_reason():
    clause = restart_wording.clause(End("etcd", 1.0, "oom"), USE)
    assert "reached" not in clause
    assert "its memory limit: 64Mi" in clause


def test_a_probe_that_the_manifest_does_not_have_is_not_named():
    end = End("etcd", 1.0, "probe")
    assert "startup" not in restart_wording.clause(end, USE)
    probes = (*USE.probes, ("startupProbe", "http://127.0.0.1:2381/health"))
    for use in (replace(USE, probes=probes), replace(USE, probes=())):
        assert "a liveness or startup probe" in restart_wording.clause(end, use)
