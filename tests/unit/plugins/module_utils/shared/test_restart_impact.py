# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a restart would load besides the planned change, and how a runtime is found and asked."""

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    restart_impact,
)
from tests.unit.support.facts import facts

PROCESS = {
    "component": "kube-scheduler",
    "started_at": 1000.0,
    "argv": ["kube-scheduler", "--leader-elect=false", "--v", "2"],
    "exe": "/usr/bin/kube-scheduler",
}


def _file(path: str, mtime: Any, replaced: bool = False) -> dict[str, object]:
    return {"path": path, "mtime": mtime, "replaced": replaced}


@pytest.mark.parametrize(
    ("more", "files", "words", "expected"),
    [
        ({}, [_file("/a", 999.0), _file("/b", 1000.5), _file("/c", None)], None, []),
        ({}, [_file("/a", 1002.0)], None, ["/a is newer than the process"]),
        ({}, [_file("/ours", 2000.0)], None, []),
        ({}, [_file("/a", 1.0, True)], None, ["/a was replaced after the process started"]),
        ({"exe": "/x (deleted)"}, [], None, ["its program /x was replaced"]),
        ({}, [], ["kube-scheduler", "--v=2", "--leader_elect=true"], []),
        (
            {},
            [],
            ["kube-scheduler", "--v=4", "--bind-address=::"],
            [
                "--bind-address is '::' in the manifest and not set in the process",
                "--v is '4' in the manifest and '2' in the process",
            ],
        ),
        (
            {},
            [],
            ["kube-scheduler", "--v=2", "--profiling"],
            ["--profiling is set without a value in the manifest and not set in the process"],
        ),
        ({"started_at": None}, [_file("/a", 9e9)], None, []),
    ],
)
def test_pending(
    more: dict[str, object], files: list[dict[str, object]], words: Any, expected: list[str]
) -> None:
    assert (
        restart_impact.changes({**PROCESS, **more}, files, words, ["leader-elect"], ["/ours"])
        == expected
    )


def test_the_sentence() -> None:
    said = restart_impact.sentence("m2", "kube-scheduler", ["/a is newer than the process", "x"])
    facts(
        said,
        "kube-scheduler",
        "m2",
        "/a is newer than the process; x",
        "kubemend_allow: [pending_changes]",
    )
