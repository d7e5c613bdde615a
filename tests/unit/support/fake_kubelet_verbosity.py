# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose kubelet's level is raised by a restart.

Systemd and the kubelet are stand-ins, the files are real.
"""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import kubelet_level
from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import devices
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    raised_levels,
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    kubelet_restart,
    preconditions,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    kubelet_process,
)
from tests.unit.support.waiting import Clock

RUN, NEXT = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
FIRST = 5_000_000  # no process of this machine has such a number


class Node:
    """A kubelet that starts with its environment file's level, and the systemctl that starts it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.root, self.env = path, str(path / "kubemend"), path / "kubelet.env"
        self.env.write_text('KUBE_LOG_LEVEL="--v=2"\nOTHER=1\n')
        self.pid, self.argv, self.commands = FIRST, self._words(), []
        self.unit: dict[str, Any] = {
            "name": "kubelet.service",
            "active_state": "active",
            "need_daemon_reload": False,
            "environment_files": [],
        }
        self.config: Any = None
        self.healthy, self.deaf, self.more, self.fails, self.dies = True, False, [], "", 0
        ticks = step_record.ticks
        monkeypatch.setattr(
            step_record,
            "ticks",
            lambda pid: ticks(pid) if pid < FIRST else pid * 10 if pid == self.pid else None,
        )
        monkeypatch.setattr(kubelet_restart, "Kubelet", self._look)
        monkeypatch.setattr(kubelet_process, "here", lambda processes: (self._process(), {}, None))
        monkeypatch.setattr(kubelet_restart, "_systemctl", self._systemctl)
        monkeypatch.setattr(kubelet_restart, "time", Clock())
        monkeypatch.setattr(kubelet_restart, "STABLE", 0.05)
        monkeypatch.setattr(kubelet_restart, "PAUSE", 0.01)
        monkeypatch.setattr(kubelet_restart, "SECONDS", 0.4)
        monkeypatch.setattr(preconditions, "answering", lambda *dummy: None)
        monkeypatch.setattr(devices, "running", set)

    def _words(self) -> list[str]:
        level = re.search(r"--v=\d+", self.env.read_text()) if self.env.exists() else None
        return ["/usr/bin/kubelet", "--config=/c", *([level.group()] if level else [])]

    def _look(self) -> Any:
        if self.dies:
            self.dies -= 1
            self.pid += 1
        evidence = {
            "unit": self.unit,
            "process": {"pid": self.pid, "started_at": 1000.0} if self.pid else None,
            "config": self.config,
            "config_dropins": [],
            "healthz": {"status": 200 if self.healthy else None, "error": "refused"},
        }
        return SimpleNamespace(
            evidence=evidence,
            pid=self.pid or None,
            ticks=self.pid * 10,
            argv=list(self.argv),
            healthy=self.healthy,
            identity=(self.pid, self.pid * 10) if self.pid else None,
        )

    def _process(self) -> Any:
        running = self._look()
        return {"raw": running.argv} if running.identity else None

    def _systemctl(self, *words: str) -> None:
        self.commands.append(words[0])
        if self.fails and words[0] == self.fails:
            raise command.CommandError("systemctl did not end within 60 s")
        if words[0] == "restart" and not self.deaf:
            self.pid += 1
            self.argv = self._words() + self.more

    def step(self) -> dict[str, Any]:
        data = self.env.read_bytes()
        begin = data.index(b"--v=2") + 4
        one = {
            "kind": "splice",
            "path": str(self.env),
            "sha256": storage.digest(data),
            "splices": [[begin, begin + 1, b64("2"), b64("4")]],
        }
        return {
            "id": "raise-kubelet",
            "host": "w1",
            "remedy": "raise_kubelet",
            "target": str(self.env),
            "change": {"kind": "files", "path": str(self.env), "files": [one], "reload": False},
            "expect": {
                "component": "kubelet",
                "restart": "unit",
                "level": 4,
                "pid": self.pid,
                "started_at": 1000.0,
            },
            "guard": {"allow": []},
        }

    def beside(self) -> dict[str, Any]:
        """Use the other way: kubemend's own files, which systemd has to read."""
        step = self.step()
        made = [
            {
                "kind": "create",
                "path": str(self.path / folder / "made"),
                "data": b64("x\n"),
                "mode": mode,
            }
            for folder, mode in (("one", "0600"), ("two", "0644"))
        ]
        step["change"] = {
            "kind": "files",
            "path": made[-1]["path"],
            "files": [*made, *step["change"]["files"]],
            "reload": True,
        }
        return step

    def raise_level(self, step: Any = None) -> tuple[str, str]:
        step = step or self.step()
        state, why = kubelet_level.raise_level(
            journal_entry.StepContext(RUN, step["id"], "level", "asked for", self.root), step, "w1"
        )
        return state, why or ""

    def revert(self, run_id: str = NEXT, **more: Any) -> dict[str, Any]:
        return revert_run.reverted(
            {"run_id": run_id, "reverts": RUN, "root": self.root, "lock": None, **more}
        )

    def record(self, name: str = "raise-kubelet", run_id: str = RUN) -> dict[str, Any]:
        return step_record.read(run_id, name, self.root)

    def forget_proof(self, name: str = "raise-kubelet", run_id: str = RUN) -> None:
        """Leave the journal as if the program had been killed before it wrote the step's end."""
        path = Path(self.root) / "journal" / run_id / f"proof-{name}.json"
        record = json.loads(path.read_text())
        record.update(state="awaited", by={})
        record.pop("seen", None)
        path.write_text(json.dumps(record))

    def left(self) -> list[str]:
        return [one["component"] for one in raised_levels.restorable_records(RUN, self.root)]


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def clean_node(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Yield a node that keeps no dotfile, and an environment file of the same length."""
    node = Node(path, monkeypatch)
    before = node.env.read_bytes()
    yield node
    assert not [entry.name for entry in path.iterdir() if entry.name.startswith(".")]
    assert len(before) == len(node.env.read_bytes())
