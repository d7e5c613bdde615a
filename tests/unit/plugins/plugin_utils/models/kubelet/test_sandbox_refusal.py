# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a kubelet makes no sandbox, by what it logs itself."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    sandbox_refusal,
)

FAILED = '"RunPodSandbox from runtime service failed" err="rpc error: code = Unknown desc = {}"'
LABEL = FAILED.format("write /proc/self/attr/keycreate: invalid argument: unknown")
OTHER = FAILED.format("something that no table has")
NO_SANDBOX = "write /proc/self/attr/keycreate: invalid argument"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"file": {"path": "/x", "lines": [LABEL, OTHER]}}, LABEL),
        ({"file": {"path": "/x", "lines": [OTHER]}, "lines": [LABEL]}, LABEL),
        ({"runtime_file": {"path": "/x", "lines": [LABEL]}}, LABEL),
        ({"lines": [OTHER, NO_SANDBOX]}, ""),
        ({"lines": []}, ""),
    ],
)
def test_the_newest_line_of_a_known_cause(data: dict[str, Any], line: str) -> None:
    document = {"collectors": {"kubelet_end": {"status": "ok", "data": data}}}
    assert sandbox_refusal.last(document) == line


def test_without_an_answer_there_is_none() -> None:
    assert sandbox_refusal.last({"collectors": {}}) == ""
