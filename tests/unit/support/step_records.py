# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that a test begins on a node, and their records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import step_claim
from ansible_collections.kubemend.remediation.plugins.module_utils.state import step_record
from tests.unit.support.fake_file_change import RUN, Node

FACTS = {"component": "kube-scheduler", "host": "m1"}


def root(node: Node) -> str:
    return str(node.root)


def claim(node: Node, run_id: str = RUN, name: str = "01-x", **facts: Any) -> Any:
    return step_claim.claim(node.step(run_id).also(step=name), {**FACTS, **facts})


def path(node: Node, run_id: str = RUN, name: str = "01-x") -> Path:
    return node.root / "journal" / run_id / step_record.name_of(name)


def state(node: Node, run_id: str = RUN, name: str = "01-x") -> Any:
    return step_record.read(run_id, name, root(node))["state"]
