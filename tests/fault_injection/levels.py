# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log levels raised and put back.

They change by the endpoint of a process that runs, and by a kubelet's restart. A plan has both, so
that none stays raised.
"""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import (
    level_window,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    level_target,
    raised_levels,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    kubelet_restart,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command
from tests.fault_injection.nodes import Outliving, Scene, Step, apart, effect, tree
from tests.unit.support import (
    fake_kubelet_verbosity,
    fake_verbosity,
)

RAISE, LOWER = "raise_levels", "lower_levels"
PROGRAM = base64.b64encode(b"print('put back')\n").decode("ascii")
SECONDS = 600  # until the service itself would put them back


class Service:
    """systemd of a node, whose start of kubemend's service does what that does first.

    The service says that it is there.
    """

    def __init__(self, path: Path, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.units, self.root = path / "system", Path(root)
        self.units.mkdir()
        monkeypatch.setattr(level_window, "UNITS", str(self.units))
        monkeypatch.setattr(level_window, "STARTS", 0)
        monkeypatch.setattr(command, "run", self._run)

    def _run(self, argv: list[str], *_dummy: Any, **_more: Any) -> str:
        effect("systemctl " + argv[1])
        if argv[1] == "start":
            run_id = argv[2][len("kubemend-levels-") : -len(".service")]
            apart((self.root / "levels" / f"{run_id}.armed").touch)
        raise command.Silent("it said nothing")

    def begun(self) -> list[str]:
        """Return the runs whose service systemd has started, or starts at the next boot."""
        names = [path.name for path in (self.units / level_window.WANTS).glob("*")] + [
            f"kubemend-levels-{path.stem}.service"
            for path in (self.root / "levels").glob("*.armed")
        ]
        return sorted(
            {
                name[len("kubemend-levels-") : -len(".service")]
                for name in names
                if (self.units / name).exists()
            }
        )

    def ends(self) -> None:
        """Their time is over: each does what the service does then."""
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(level_window, "remaining", lambda *dummy: (0, True))
            for run_id in self.begun():
                level_window.expire({"run_id": run_id, "root": str(self.root)})

    def left(self) -> Any:
        """Whatever of a service is there once its time is over."""
        self.ends()
        return [
            name
            for name, what in {**tree(self.units), **tree(self.root / "levels")}.items()
            if what != "folder"
        ]


class Endpoint(fake_verbosity.Levels):
    """A scheduler and a kubelet whose levels outlive the process that set them."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(path / "kubemend", monkeypatch)
        self.world = path / "levels.json"
        self.world.write_text(json.dumps({fake_verbosity.SCHEDULER: 2, fake_verbosity.KUBELET: 0}))
        self.service = Service(path, self.root, monkeypatch)

    def ask(
        self, component: str, node: str | None, method: str, body: bytes | None
    ) -> tuple[int, str]:
        if method == "PUT":
            effect("PUT")
            apart(
                lambda: self._put(
                    f"level:{component}/{node}" if node else f"level:{component}", int(body or b"")
                )
            )
            effect("answer")
        return fake_verbosity.WELL

    def _put(self, real: str, value: int) -> None:
        fresh = self.world.with_name("levels.new")
        fresh.write_text(json.dumps({**json.loads(self.world.read_text()), real: value}))
        fresh.rename(self.world)

    def targets(self) -> list[dict[str, Any]]:
        return [
            {"real": fake_verbosity.SCHEDULER, "former": 2, "level": 4},
            {"real": fake_verbosity.KUBELET, "former": 0, "level": 4},
        ]

    def state_of(self) -> Any:
        return [json.loads(self.world.read_text()), self.service.left()]


class Restarted(Outliving, fake_kubelet_verbosity.Node):
    """A kubelet that outlives its restarter, and reads its level from its environment file."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = path / "kubelet.json"
        self.world.write_text("{}")
        super().__init__(path, monkeypatch)
        self.alone(monkeypatch)
        monkeypatch.setattr(kubelet_restart, "SECONDS", 1.5)
        self.service = Service(path, self.root, monkeypatch)

    def as_one(self, word: str) -> None:
        self.commands = [*self.commands, word]
        if word == "restart":
            self.pid += 1
            self.argv = self._words()

    def targets(self) -> list[dict[str, Any]]:
        return [
            {
                "real": fake_verbosity.KUBELET,
                "component": "kubelet",
                "former": 2,
                "level": 4,
                "step": self.step(),
            }
        ]

    def state_of(self) -> Any:
        return [self.env.read_bytes(), self.argv, self.service.left()]


def raised(root: str) -> bool:
    """Return whether evidence has a level that is raised still."""
    return bool(level_target.unsettled(root)) or any(
        raised_levels.restorable_records(run_id, root) for run_id in journal.run_ids(root)
    )


def steps(node: Any) -> list[Step]:
    """Return the steps of a capture, or of the repair of a leftover level (KM903)."""
    left: Step = {
        "id": "00-restore-levels",
        "host": "w1",
        "remedy": step_kinds.RESTORE_LEVELS,
        "code": ["KM903"],
        "change": None,
        "expect": None,
    }
    return (
        [left]
        if raised(node.root)
        else [
            {"id": "01-raise", "host": "w1", "remedy": RAISE, "targets": node.targets()},
            {"id": "02-lower", "host": "w1", "remedy": LOWER},
        ]
    )


def do(params: dict[str, Any]) -> dict[str, Any]:
    """Do a step as a capture does it. The repair of KM903 is a step like others."""
    step = params["step"]
    if step["remedy"] not in (RAISE, LOWER):
        return step_executor.work(params)
    common = {"run_id": params["run_id"], "root": params["root"]}
    if step["remedy"] == RAISE:
        targets = step["targets"]
        answer = level_window.raise_levels(
            {
                **common,
                "state": "raised",
                "targets": targets,
                "seconds": SECONDS,
                "lock": {"seconds": 300},
                "program": PROGRAM,
            }
        )
    else:
        answer = level_window.restore({**common, "state": "restored"})
    good = level_window.RAISED if step["remedy"] == RAISE else level_window.RESTORED
    states = {one["state"] for one in answer["targets"]}
    told = dict.fromkeys(
        [one["reason"] for one in answer["targets"] if one["state"] != good]
        + [answer["error"] or ""]
    )
    state = (
        "done"
        if states <= {good} and not answer["error"]
        else "refused"
        if states == {level_window.REFUSED}
        else "failed"
    )
    return {
        "state": state,
        "reason": "; ".join(one for one in told if one),
        "changed": state != "refused",
    }


def _scene(of: Any, kind: str) -> Scene:
    return Scene(
        lambda path, monkeypatch: contextlib.nullcontext(of(path, monkeypatch)),
        steps,
        of.state_of,
        (kind,),
        do=do,
    )


SCENES = {
    "levels at run time": _scene(Endpoint, step_kinds.RESTORE_LEVELS),
    "level of a kubelet": _scene(Restarted, step_kinds.RAISE_KUBELET),
}
