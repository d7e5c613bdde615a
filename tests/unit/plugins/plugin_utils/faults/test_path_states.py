# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that tell what lies at the path that a program could not open."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import path_in_error
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    path_states as answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import path_states
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Detection
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import EvidenceRef
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.pod_manifest import Mount
from tests.unit.support import answers

PATH = "/etc/x/a.conf"
OWNED = {"owner": "root", "group": "bin", "mode": "0640"}


def state(**row):
    data = {"processor": "x86_64", "paths": [{"path": PATH, "kind": "file", **OWNED, **row}]}
    return answers.typed(answer.PathStates, data)


def told(error=path_in_error.DENIED, mounts=None, path=PATH, **row):
    line = EvidenceRef("log", "w1", text=f"open {path}: {error}")
    hit = Detection("it ended", (line,), "see its log", "w1")
    return path_states.with_state(hit, state(**row), mounts).summary


@pytest.mark.parametrize(
    ("error", "row", "words"),
    [
        (path_in_error.DENIED, {}, ("is a file", "owner root:bin", "mode 0640")),
        (
            path_in_error.DENIED,
            {"closed": "/etc/x", "closed_mode": "0700", "closed_owner": "etcd"},
            ("folder /etc/x", "etcd", "0700"),
        ),
        (
            path_in_error.DENIED,
            {"mount": "/etc", "mount_type": "ext4", "mount_options": "rw,noexec"},
            ("/etc (ext4)", "noexec"),
        ),
        (
            path_in_error.FOLDER,
            {"kind": "directory", "entries": 0},
            ("is a folder and empty", "owner root"),
        ),
        (
            path_in_error.FOLDER,
            {"kind": "directory", "entries": 4, "changed": 1.8e9},
            ("with 4 entries", "2027-01-15T08:00"),
        ),
        (path_in_error.NO_ENTRY, {}, ("there now",)),
        (
            path_in_error.NO_ENTRY,
            {"kind": "missing", "mode": None, "above": "/etc/x", "above_kind": "directory"},
            ("is not there", "folder /etc/x is"),
        ),
        (
            path_in_error.NO_ENTRY,
            {"kind": "missing", "mode": None, "above": "/", "above_kind": "directory"},
            ("because the folder /etc is not",),
        ),
        (
            path_in_error.NO_ENTRY,
            {"kind": "missing", "mode": None, "target": "/mnt/c/a", "above": "/mnt"}
            | {"above_kind": "directory"},
            ("a link to /mnt/c/a", "the folder /mnt/c is not"),
        ),
        (
            path_in_error.NO_FOLDER,
            {"kind": "missing", "mode": None, "above": "/etc/x", "above_kind": "file"},
            ("/etc/x is a file and no folder",),
        ),
        (
            path_in_error.READ_ONLY,
            {"mount": "/", "mount_type": "xfs", "mount_options": "ro"},
            ("/ (xfs)", "which is mounted read-only"),
        ),
        (
            path_in_error.READ_ONLY,
            {"mount": "/", "mount_type": "xfs", "mount_options": "rw"},
            ("not mounted read-only now", "ProtectSystem="),
        ),
        (path_in_error.FORBIDDEN, {"immutable": True}, ("chattr -i",)),
        (path_in_error.NO_ENTRY, {"mode": "0755"}, ("there now", "loader")),
        (
            path_in_error.DENIED,
            {"kind": "missing", "mode": None, "above": "/etc/x", "above_kind": "directory"}
            | {"above_owner": "etcd:etcd", "above_mode": "0700", "closed": "/etc/x"},
            ("is not there", "/etc/x has owner etcd:etcd, mode 0700", "lets no user pass but"),
        ),
        (
            path_in_error.READ_ONLY,
            {"kind": "missing", "mode": None, "above": "/etc/x", "above_kind": "directory"}
            | {"above_owner": "a:b", "above_mode": "0755", "mount": "/", "mount_options": "ro"},
            ("mode 0755", "which is mounted read-only"),
        ),
        (path_in_error.FORMAT, {"program": "empty"}, ("empty",)),
        (path_in_error.FORMAT, {"program": "none"}, ("neither a program",)),
        (path_in_error.FORMAT, {"program": "aarch64"}, ("for aarch64", "is x86_64")),
        (path_in_error.FORMAT, {"program": "x86_64"}, ("owner root:bin, mode 0640)",)),
    ],
)
def test_the_state_of_the_path_is_told(error, row, words):
    summary = told(error, **row)
    assert PATH in summary
    assert [word for word in words if word not in summary] == []


def test_nothing_is_told_of_what_was_not_measured():
    assert told(kind="denied") == "it ended"
    assert told(path="/etc/other") == "it ended"
    assert told("timed out") == "it ended"


@pytest.mark.parametrize(
    ("mounts", "is_told"),
    [
        ((Mount("/etc/x", "/etc/x"),), True),
        ((Mount("/etc/x", "/srv/x"),), False),
        ((Mount("/etc/x"),), False),  # a volume of another sort
        ((), False),  # the root of the container
        ((Mount("/etc/xa", "/etc/xa"), Mount("/", "/srv")), False),
    ],
)
def test_a_path_of_a_static_pod_is_that_of_its_volume(mounts, is_told):
    assert (told(mounts=mounts) != "it ended") is is_told
    if is_told:
        assert told(mounts=(Mount("/pki", "/etc/x"),), path="/pki/a.conf") != "it ended"
