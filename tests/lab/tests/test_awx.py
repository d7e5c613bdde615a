# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job templates of examples/awx, started by ansible-runner as AWX starts them.

Answers of a survey are extra variables, a template of the type check runs in check mode, and what
a user of AWX sees is the output of the events.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.gate import machine, venvs
from tests.lab.support.repairing import UNDRAWN, broken

pytestmark = UNDRAWN
EXAMPLE = machine.ROOT / "examples" / "awx"
TEMPLATES = {
    template["name"].removeprefix("kubemend: "): template
    for template in yaml.safe_load((EXAMPLE / "templates.yml").read_text(encoding="utf-8"))
}


class Controller:
    """A project of AWX with an inventory, whose templates can be started."""

    def __init__(self, cluster, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(EXAMPLE, folder / "project")
        (folder / "inventory").mkdir()
        shutil.copy(cluster.inventory, folder / "inventory" / "hosts.yml")
        (folder / "env").mkdir()
        self.jobs = 0

    def launch(self, name: str, **answers: str) -> tuple[int, str]:
        """Return the exit code of a template's job, and its output."""
        template = TEMPLATES[name]
        defaults = {}
        if "survey" in template:
            survey = EXAMPLE / "surveys" / f"{template['survey']}.json"
            spec = json.loads(survey.read_text(encoding="utf-8"))["spec"]
            defaults = {question["variable"]: question["default"] for question in spec}
        (self.folder / "env" / "extravars").write_text(
            json.dumps({**defaults, **answers}), encoding="utf-8"
        )
        # ansible-runner keeps the options of one job there, and gives them to the next one too.
        (self.folder / "env" / "cmdline").unlink(missing_ok=True)
        self.jobs += 1
        job = str(self.jobs)
        words = ["--cmdline", "--check --diff"] if template.get("job_type") == "check" else []
        env = machine.environment(
            ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()), HOME=str(self.folder / "home")
        )
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
        done = subprocess.run(
            [
                str(venvs.ensure("rulebook") / "bin" / "ansible-runner"),
                "run",
                str(self.folder),
                "-p",
                template["playbook"],
                "--ident",
                job,
                *words,
            ],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        events = sorted(
            (self.folder / "artifacts" / job / "job_events").glob("[0-9]*.json"),
            key=lambda path: int(path.name.partition("-")[0]),
        )
        texts = [json.loads(path.read_text(encoding="utf-8"))["stdout"] for path in events]
        return done.returncode, "\n".join(texts)


@pytest.fixture(name="controller")
def _controller(cluster, tmp_path):
    (tmp_path / "home").mkdir()
    return Controller(cluster, tmp_path)


def test_the_templates_find_a_fault_repair_it_and_undo_that(cluster, controller):
    file = "/etc/kubernetes/manifests/kube-controller-manager.yaml"
    disabled = "--leader-elect=false"
    with broken(cluster, "two-leaders-kcm-only", target="m2"):
        returncode, text = controller.launch("audit")
        assert returncode == 2, text[-3000:]
        assert "KM101" in text
        assert "kubemend_fail_on=warning is reached" in text

        returncode, text = controller.launch("diagnose a symptom", symptom="duplicate_pods")
        assert returncode == 0, text[-3000:]
        assert "KM101" in text

        returncode, text = controller.launch("show the plan", kubemend_max_risk="2")
        assert returncode == 0, text[-3000:]
        assert "+    - --leader-elect=true" in text
        assert disabled in cluster.read("m2", file).decode()

        answers = {"kubemend_max_risk": "2", "kubemend_faults": "KM101"}
        returncode, text = controller.launch("repair", **answers)
        assert returncode == 0, text[-3000:]
        assert disabled not in cluster.read("m2", file).decode(), text[-6000:]

        returncode, text = controller.launch("list what can be undone")
        assert returncode == 0, text[-3000:]
        assert "runs can be undone" in text

        returncode, text = controller.launch("undo a run")
        assert returncode == 0, text[-3000:]
        assert disabled in cluster.read("m2", file).decode()
