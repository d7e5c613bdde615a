# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths of static pods, as the collector writes them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    static_pod_paths,
)
from tests.unit.support import answers

PATHS = {"paths": [{"path": "/etc/kubernetes/pki", "kind": "directory"}, {"path": "/srv/gone"}]}


def test_what_lies_at_a_path():
    first, second = answers.typed(static_pod_paths.StaticPodPaths, PATHS).paths
    assert (first.path, first.kind) == ("/etc/kubernetes/pki", "directory")
    assert (second.path, second.kind) == ("/srv/gone", "")


def test_a_kind_that_is_no_text_is_malformed():
    decoded = answers.changed(
        static_pod_paths.StaticPodPaths, PATHS, "paths", 0, "kind", value=["file"]
    )
    assert decoded.malformed == ("paths[0].kind",)
