# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a runtime stands on, and which cause of a message that makes likely."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import runtime_place
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.runtime_place import (
    RuntimePlace,
)

PLACE = RuntimePlace("crio", "/var/lib/containers", "ext4", "4.15.0-147-generic", "runc")
MERGED = "/var/lib/containers/storage/overlay/f9/merged"
CRIO = f"error creating overlay mount to {MERGED}: invalid argument"
CONTAINERD = "failed to create task: failed to mount rootfs component: invalid argument: unknown"


@pytest.mark.parametrize(
    ("changed", "text", "named"),
    [
        ({}, CRIO, "metacopy=on"),
        ({"type": "zfs"}, CRIO, "type zfs"),
        ({"type": "overlay", "kind": "containerd"}, CONTAINERD, "type overlay"),
        ({"kind": "containerd"}, CONTAINERD, ""),
        ({"kernel": "5.15.0-1-generic"}, CRIO, ""),
        ({"kernel": "4.18.0-553.el8_10.x86_64"}, CRIO, ""),
        ({"kernel": ""}, CRIO, ""),
        ({"type": "zfs"}, "context deadline exceeded", ""),
    ],
)
def test_why_an_overlay_is_refused_there(changed, text, named):
    clause = replace(PLACE, **changed).overlay_clause(text)
    assert bool(clause) is bool(named)
    assert named in clause


@pytest.mark.parametrize(
    ("runtime", "known_id", "is_told"),
    [
        ("runc", "nvml-library-missing", True),
        ("nvidia", "nvml-library-missing", False),
        ("nvidia-cdi", "nvml-library-missing", False),
        ("", "nvml-library-missing", False),
        ("runc", "other", False),
    ],
)
def test_a_default_runtime_that_gives_no_driver(runtime, known_id, is_told):
    clause = replace(PLACE, default_runtime=runtime).driver_clause(known_id)
    assert bool(clause) is is_told


def test_what_the_evidence_tells():
    answers = {
        "pressure": {"filesystems": [{"name": "imagefs", "path": "/var/lib/x", "type": "zfs"}]},
        "runtime": {"kind": "crio"},
        "system": {"kernel": "6.1.0"},
        "cri": {"config": {"default_runtime": "crun"}},
    }
    document = {
        "collectors": {name: {"status": "ok", "data": data} for name, data in answers.items()}
    }
    expected = RuntimePlace("crio", "/var/lib/x", "zfs", "6.1.0", "crun")
    assert runtime_place.extract(document) == expected
    assert runtime_place.extract({"collectors": {}}) == RuntimePlace()
