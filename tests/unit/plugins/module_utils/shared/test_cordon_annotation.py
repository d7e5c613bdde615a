# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The annotation by which this tool knows its own cordon."""

import json

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    cordon_annotation,
)
from tests.unit.support.fake_drain import node
from tests.unit.support.fake_file_change import RUN

OURS = {"kubemend.io/cordon": json.dumps({"run": RUN, "reason": "x", "at": "2026-11-21T09:00:00Z"})}


def test_an_annotation_without_a_cordon_is_no_cordon_of_ours() -> None:
    assert (
        cordon_annotation.cordon_of(dict(node("w1"), metadata={"name": "w1", "annotations": OURS}))
        is None
    )
