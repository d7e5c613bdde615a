# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listings of runs that can be reverted."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import revert

OLD, NEW, UNDO = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f", "20261121T110000Z-aaaaaa"
A, B, C = "a" * 64, "b" * 64, "c" * 64
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"


def file(state: str = "restore", key: str = "state", **more: Any) -> dict[str, Any]:
    return {
        "path": MANIFEST,
        key: state,
        "reason": None,
        "component": "kube-scheduler",
        "steps": ["01-x"],
        "sha256_left": A,
        "sha256_former": B,
        "sha256_present": C,
        **more,
    }


def run(run_id: str, *files: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "first": "2026-11-21T09:00:00Z",
        "last": "2026-11-21T09:00:10Z",
        "reverts": [],
        "paths": list(files),
        "error": None,
        **more,
    }


def listing(
    host: str, *runs: dict[str, Any], status: str = "ok", reason: str = ""
) -> revert.Listing:
    return revert.listing(
        host, status, reason, {"runs": list(runs), "truncated": False, "busy": False, "error": None}
    )
