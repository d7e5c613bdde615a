# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that systemd restarts for its limit.

Its process, and what systemd knows of it, outlive the process that asked for the restart.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import devices
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    service_limit,
    service_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    systemd,
)
from tests.fault_injection.effects import OURS
from tests.unit.plugins.module_utils.steps.handlers import test_service_limit

FORMER, WANTED = 20, 50
BEGIN = "ulimit -S -n {}; echo x; exec sleep 600 >/dev/null 2>&1 </dev/null"


class Service(test_service_limit.Node):
    """app.service of test_unit_limit, whose main process is what a file says."""

    def __init__(
        self,
        path: Path,
        monkeypatch: pytest.MonkeyPatch,
        apart: Callable[[Callable[[], None]], None],
    ) -> None:
        self.main, self.apart = path / "main", apart
        self.began = path / "began"  # every process that ever was, for the end
        dropin = path / (test_service_limit.APP + ".d") / "99-zz-kubemend.conf"
        self.gives = lambda: WANTED if dropin.exists() else FORMER
        apart(self.begin)
        super().__init__(path, monkeypatch, self.now())
        self.block.update(
            {
                "Type": ["simple"],
                "KillMode": ["process"],
                "TimeoutStopUSec": ["1min 30s"],
                "SubState": ["running"],
                "Result": ["success"],
            }
        )
        monkeypatch.setattr(
            systemd,
            "show",
            lambda names, *_more: {
                test_service_limit.APP: {**self.block, "MainPID": [str(self.now())]}
            },
        )
        monkeypatch.setattr(command, "complaint", self.systemctl)
        monkeypatch.setattr(devices, "running", lambda *_more: set())
        for name in ("STABLE", "PAUSE"):
            monkeypatch.setattr(service_start, name, 0.05)
        monkeypatch.setattr(service_limit, "SETTLED", 0.2)

    def now(self) -> int:
        return int(self.main.read_text())

    def begin(self) -> None:
        """Begin the process by one that ends at once.

        No process of the test has to wait for it then.
        """
        new = subprocess.Popen(
            ["/bin/sh", "-c", BEGIN.format(self.gives())],
            start_new_session=True,
            stdout=subprocess.PIPE,
        )
        assert new.stdout
        assert new.stdout.readline()
        with self.began.open("a") as file:
            file.write(f"{new.pid}\n")
        self.main.with_name("new").write_text(str(new.pid))
        self.main.with_name("new").rename(self.main)

    def systemctl(self, argv: list[str], _seconds: float) -> str:
        sys.audit(OURS, f"systemctl {argv[1]}")
        if argv[1] == "restart":
            os.kill(self.now(), signal.SIGKILL)
            self.apart(self.begin)
        return ""

    def steps(self) -> list[dict[str, Any]]:
        """Return the steps that a plan has for it now."""
        pid = self.now()
        soft = (service_limit.nofile(pid) or [0])[0]
        if soft >= WANTED:
            return []
        self.pid = pid
        self.group(f"0::{test_service_limit.GROUP}\n")
        step = self.step(None if self.path.exists() else str(WANTED))
        step["guard"] = {"allow": ["service_restart"]}
        step["change"]["restart"] = WANTED
        return [step]

    def state(self) -> list[Any]:
        return [
            self.path.read_bytes() if self.path.exists() else None,
            (service_limit.nofile(self.now()) or [0])[0],
        ]


@contextlib.contextmanager
def service(
    path: Path, monkeypatch: pytest.MonkeyPatch, apart: Callable[[Callable[[], None]], None]
) -> Iterator[Service]:
    node = Service(path, monkeypatch, apart)
    try:
        yield node
    finally:
        for pid in node.began.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
