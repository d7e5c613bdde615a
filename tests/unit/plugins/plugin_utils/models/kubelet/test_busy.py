# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that runs and does not answer its own health check."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import busy

PROCESS = {"pid": 1, "argv": ["kubelet"], "started_at": 1.0}


def document(
    process: dict[str, Any] | None, error: str | None, cgroups: Any, version: str | None
) -> dict[str, Any]:
    answers: dict[str, Any] = {
        "kubelet": {"process": process, "healthz": {"error": error}},
        "pressure": {"cgroups": cgroups},
        "system": {"cgroup": version},
    }
    collectors = {name: {"status": "ok", "data": answer} for name, answer in answers.items()}
    return {"host": "w1", "collectors": collectors}


@pytest.mark.parametrize(
    ("process", "error", "cgroups", "version", "proofs"),
    [
        (PROCESS, "timed out", {"memory": busy.MANY_CGROUPS}, "v1", ["http", "file"]),
        (PROCESS, "timed out", {"memory": busy.MANY_CGROUPS - 1}, "v1", ["http"]),
        (PROCESS, "timed out", {"memory": 9000}, None, ["http"]),
        (PROCESS, "timed out", None, "hybrid", ["http"]),
        (PROCESS, "connection refused", {"memory": 9000}, "v1", []),
        (None, "timed out", {"memory": 9000}, "v1", []),
    ],
)
def test_what_keeps_a_kubelet_from_an_answer(
    process: Any, error: str, cgroups: Any, version: str | None, proofs: list[str]
) -> None:
    found = busy.extract(document(process, error, cgroups, version))
    assert [proof.kind for proof in found.proofs] == proofs
    assert bool(found.clause) is bool(found.advice) is bool(proofs)
