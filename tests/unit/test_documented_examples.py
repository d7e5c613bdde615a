# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of the documentation are run.

Those of modules run against hosts that do not answer, those of filters must give what they say, and
Ansible reads those of roles.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "plugins" / "modules").glob("*.py"))
FILTERS = sorted((ROOT / "plugins" / "filter").glob("*.py"))
RUN = "20261121T090000Z-1a2b3c"
WRONG = re.compile(
    r"Unsupported parameters|missing required|is undefined|must be one of|couldn't resolve|unable"
    r" to convert|Traceback"
)


def examples(path: Path) -> str:
    (text,) = (
        node.value.value
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and getattr(node.targets[0], "id", "") == "EXAMPLES"
    )
    return str(text)


def test_those_of_modules_are_done_as_they_are_written(operator: Any) -> None:
    """No example is refused for an option, a choice or a variable.

    Hosts that do not answer are results, and a run without a plan refuses its step.
    """
    tasks = [
        task
        for path in MODULES
        for task in yaml.safe_load(examples(path).replace("/tmp/", f"{operator.folder}/"))
    ]
    assert {
        next(name for name in task if name.startswith("kubemend.")).rpartition(".")[2]
        for task in tasks
    } == {path.stem for path in MODULES}
    folder = operator.folder / "run"
    (folder / "evidence").mkdir(parents=True)
    (operator.folder / "evidence").mkdir()
    (operator.folder / "capture").mkdir()
    given = {
        "report_dir": str(folder),
        "evidence_dir": str(operator.folder / "evidence"),
        "run_id": RUN,
        "control_plane_hosts": ["m1", "m2"],
    }
    names = {
        "run": given,
        "leading": {"hosts": ["m1"]},
        "judged": {"steps": [{"id": "01-x", "host": "m1"}]},
    }
    # what prepare_run registers takes the place of a variable
    tasks.sort(key=lambda task: "kubemend.remediation.prepare_run" in task)
    operator.write(
        "play.yml",
        yaml.safe_dump(
            [
                {
                    "hosts": "m1:m2:w1",
                    "gather_facts": False,
                    "ignore_errors": True,
                    "vars": names,
                    "tasks": tasks,
                }
            ]
        ),
    )
    done = operator.run(str(operator.folder / "play.yml"), report_dir=None)
    assert done.rc == 0, done.output
    assert not WRONG.search(done.output), done.output
    assert done.stdout.count("\nTASK [") == len(tasks)
    assert (operator.folder / "evidence" / "m1.json").is_file()


@pytest.mark.parametrize("path", FILTERS, ids=lambda path: path.stem)
def test_those_of_filters_say_what_stands_below_them(operator: Any, path: Path) -> None:
    text = examples(path)
    tasks = yaml.safe_load(text)
    operator.write(
        "play.yml", yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}])
    )
    done = operator.run(
        str(operator.folder / "play.yml"),
        inventory=None,
        report_dir=None,
        env={"ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml"},
    )
    said = [line.strip()[2:] for line in text.splitlines() if line.strip().startswith("# ")]
    shown = [
        yaml.safe_load(part.split("\n\n")[0])["msg"] for part in done.stdout.split("=> \n")[1:]
    ]
    assert done.rc == 0, done.output
    assert len(tasks) == len(said), done.output
    assert [yaml.safe_load(one) for one in said] == shown, done.output


def test_those_of_roles_are_plays(operator: Any) -> None:
    found: list[Any] = []
    for page in sorted((ROOT / "roles").glob("*/README.md")):
        plays = [
            play
            for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
            for play in yaml.safe_load(block)
        ]
        assert any(f"kubemend.remediation.{page.parent.name}" in str(play) for play in plays), page
        found += plays
    assert len(found) >= len(list((ROOT / "roles").iterdir()))
    operator.write("play.yml", yaml.safe_dump(found))
    done = operator.run(str(operator.folder / "play.yml"), "--syntax-check", report_dir=None)
    assert done.rc == 0, done.output
    assert not WRONG.search(done.output), done.output
