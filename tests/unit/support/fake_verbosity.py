# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node from which levels are raised.

Components that have one, what they answer, and what was asked of them.
"""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import (
    klog_level,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    level_target,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    component_process,
)

RUN, NEXT = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
SCHEDULER, KUBELET = "level:kube-scheduler", "level:kubelet/w1"
WELL = (200, "successfully set klog.logging.verbosity to 4")


class Killed(BaseException):
    """The program ended at this very moment."""


class Levels:
    """Endpoints of components whose log level the tests raise.

    answers: by real target, or for all: (code, text), or an exception to raise; WELL without an
    entry
    killed: whether the process ends once the level is set
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = str(root)
        self.levels: dict[str, int] = {SCHEDULER: 2, KUBELET: 0, "level:kube-controller-manager": 0}
        self.asked: list[tuple[str, str, int | None]] = []
        self.answers: dict[str, Any] = {}
        self.killed = False
        self.argv: list[str] | None = ["kube-scheduler", "--v=2"]
        self.at_put = lambda real: None
        monkeypatch.setattr(klog_level.Levels, "_ask", lambda dummy, *what: self.ask(*what))
        monkeypatch.setattr(
            component_process,
            "instances",
            lambda component: (
                [SimpleNamespace(argv=self.argv, pid=1, started_at=None)] if self.argv else []
            ),
        )

    def ask(
        self, component: str, node: "str | None", method: str, body: "bytes | None"
    ) -> tuple[int, str]:
        real = f"level:{component}/{node}" if node else f"level:{component}"
        self.asked.append((method, real, None if body is None else int(body)))
        answer = self.answers.get(
            real, WELL if method == "PUT" else (406, "unrecognized http method")
        )
        if isinstance(answer, BaseException):
            raise answer
        if method == "PUT" and answer[0] == 200:
            self.at_put(real)
            self.levels[real] = int(body or b"")
            if self.killed:
                raise Killed
        return answer

    def step(
        self, run_id: str = RUN, name: str = "raise", **more: Any
    ) -> journal_entry.StepContext:
        return journal_entry.StepContext(
            run_id, name, "log levels for a capture", "asked for", self.root, **more
        )

    def up(
        self,
        real: str = SCHEDULER,
        former: int = 2,
        to: int = 4,
        run_id: str = RUN,
        seconds: int = 60,
    ) -> str:
        step = self.step(run_id)
        with step.exclusive() as root_fd, klog_level.Levels() as levels:
            return klog_level.change(
                levels, step, {"real": real, "former": former, "level": to}, root_fd, seconds, {}
            )

    def down(self, run_id: str = RUN) -> str:
        step = self.step(run_id, "restore")
        (item,) = level_target.raised(self.root)
        with step.exclusive() as root_fd, klog_level.Levels() as levels:
            return klog_level.put_back(levels, item, step, root_fd)

    def results(self, run_id: str = RUN) -> list["str | None"]:
        return [
            item["end"]["result"] if item["end"] else None
            for item in journal.read_run(run_id, self.root)
        ]

    def raised(self) -> list[str]:
        return [item["intent"]["real"] for item in level_target.raised(self.root)]

    def puts(self) -> Iterator[tuple[str, "int | None"]]:
        return ((real, value) for method, real, value in self.asked if method == "PUT")


def digest(value: int) -> str:
    return storage.digest(str(value).encode("ascii"))
