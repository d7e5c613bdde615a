# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that name empty files of flags."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Detection
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import (
    empty_arguments,
)

HIT = Detection("it does not run", (), "read its log", host="m1")
PATHS = ("/var/snap/microk8s/current/args/kubelet", "/var/snap/microk8s/current/args/kubelite")


@pytest.mark.parametrize(
    ("unit", "found"),
    [("snap.microk8s.daemon-kubelite.service", PATHS), ("kubelet.service", ())],
)
def test_only_kubelite_reads_these_files(unit, found):
    data = {"empty_arguments": list(PATHS)}
    document = {"host": "m1", "collectors": {"installer": {"status": "ok", "data": data}}}
    assert empty_arguments.paths(document, unit) == found
    assert empty_arguments.paths({"host": "m1", "collectors": {}}, unit) == ()


def test_the_files_are_named_and_written_again():
    found = empty_arguments.with_files(HIT, PATHS)
    assert all(path in found.summary for path in PATHS)
    assert found.remedy.startswith("write kubelet, kubelite again")
    assert found.remedy.endswith("read its log")
    assert [(proof.host, proof.path) for proof in found.evidence] == [("m1", p) for p in PATHS]
    assert empty_arguments.with_files(found, PATHS) is found
    assert empty_arguments.with_files(HIT, ()) is HIT
