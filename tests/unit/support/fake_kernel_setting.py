# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node for the tests of kernel settings."""

from pathlib import Path

from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    kernel_setting,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    running_limits,
)
from tests.unit.support.unrecorded_step import NEXT, RUN, recover_unrecorded

KEY, OTHER = "fs.inotify.max_user_instances", "fs.file-max"


class Node:
    """A kernel with two settings, and the managed file."""

    def __init__(self, path, monkeypatch):
        self.kernel, self.path, self.root = (
            path / "sys",
            path / "sysctl.d" / "99-zz-kubemend.conf",
            str(path / "kubemend"),
        )
        for key, value in ((KEY, 128), (OTHER, 800000)):
            place = self.place(key)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{value:d}\n")
        monkeypatch.setattr(kernel_setting.SetKernelSetting, "kernel", str(self.kernel))
        monkeypatch.setattr(running_limits.rows, "__defaults__", ((), False, str(self.kernel)))

    def place(self, key):
        return Path(kernel_setting.place(key, str(self.kernel)))

    def value(self, key=KEY):
        return int(self.place(key).read_text())

    def step(self, settings=None):
        return {
            "id": "01-raise",
            "host": "w1",
            "remedy": "kernel_setting",
            "code": ["KM402"],
            "target": str(self.path),
            "guard": {"allow": []},
            "change": {
                "kind": "kernel_setting",
                "path": str(self.path),
                "settings": settings or {KEY: 8192},
            },
        }

    def do(self, settings=None, run_id=RUN, check=False):
        return step_executor.work(
            {
                "run_id": run_id,
                "root": self.root,
                "lock": None,
                "check": check,
                "step": self.step(settings),
            }
        )

    def forget(self):
        return recover_unrecorded(self.root, "01-raise")


def back(node, allow=(), by=NEXT):
    """Give the run taken back: what became of the file, and of what is none; why of the latter."""
    done = revert_run.reverted(
        {"run_id": by, "reverts": RUN, "root": node.root, "lock": None, "allow": list(allow)}
    )
    assert done["error"] is None
    return [one["result"] for one in done["paths"]], " ".join(
        one["reason"] or "" for one in done["paths"][1:]
    )
