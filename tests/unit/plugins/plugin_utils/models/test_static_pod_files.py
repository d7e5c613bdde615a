# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which volume shows a path of a static pod."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import static_pod_files
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.control_plane import (
    ControlPlane,
    FileUse,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.pod_manifest import Mount

FLAG = "--audit-policy-file=/etc/audit/policy.yaml"


def plane(*mounts: Mount) -> ControlPlane:
    use = FileUse(
        "/m/a.yaml",
        "kube-system/a",
        "kube-apiserver",
        ("kube-apiserver", FLAG),
        None,
        None,
        0.0,
        None,
        True,
        mounts=mounts,
    )
    return ControlPlane((use,))


def document(**kinds: str) -> dict[str, object]:
    rows = [{"path": path, "kind": kind} for path, kind in kinds.items()]
    return {"collectors": {"static_pod_paths": {"status": "ok", "data": {"paths": rows}}}}


@pytest.mark.parametrize(
    ("mounts", "reasons"),
    [
        ((), [static_pod_files.NOT_MOUNTED]),
        ((Mount("/etc/auditor", "/etc/auditor"),), [static_pod_files.NOT_MOUNTED]),
        ((Mount("/etc/audit", "/srv"),), [static_pod_files.MISSING]),
        # the deepest volume counts
        ((Mount("/etc", "/etc"), Mount("/etc/audit", "/srv")), [static_pod_files.MISSING]),
        # a volume of another sort
        ((Mount("/etc/audit"),), []),
        ((Mount("/", "/host"),), []),
    ],
)
def test_the_volume_of_a_flag(mounts, reasons):
    kinds = {"/srv/policy.yaml": "missing", "/etc/audit/policy.yaml": "file"}
    problems = static_pod_files.problems(document(**kinds), plane(*mounts))
    assert [problem.reason for problem in problems] == reasons
