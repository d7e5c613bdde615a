# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs a container of no RuntimeClass, and what it does not give a plugin of devices."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import default_runtime
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.known_message import (
    Known,
)


@pytest.mark.parametrize(
    ("runtime", "known_id", "is_told"),
    [
        ("runc", "nvml-library-missing", True),
        ("nvidia", "nvml-library-missing", False),
        ("NVIDIA-cdi", "nvml-library-missing", False),
        ("", "nvml-library-missing", False),
        ("runc", "other", False),
        ("runc", None, False),
    ],
)
def test_a_default_runtime_that_gives_no_driver(runtime, known_id, is_told):
    known = None if known_id is None else Known(known_id, "", "")
    assert ("neither GPU nor driver" in default_runtime.clause(runtime, known)) is is_told


def test_what_the_evidence_tells():
    answer = {"status": "ok", "data": {"config": {"default_runtime": "crun"}}}
    assert default_runtime.extract({"collectors": {"cri": answer}}) == "crun"
    assert default_runtime.extract({"collectors": {}}) == ""
