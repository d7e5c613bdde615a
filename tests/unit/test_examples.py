# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples for scheduled audits.

They run as they are written, fail when nobody answers, and leave what they say.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "automation"


def of_service(name: str) -> str:
    """Return the one line of that setting."""
    (line,) = (
        line
        for line in (FOLDER / "kubemend-audit.service").read_text().splitlines()
        if line.startswith(name + "=")
    )
    return line.partition("=")[2]


def arguments(command: str, **values: str) -> list[str]:
    """Return what follows the playbook's name, with the variables of its user."""
    for name, value in values.items():
        command = command.replace(f"${{{name}}}", value).replace("$" + name, value)
    words = shlex.split(command)
    return words[words.index("kubemend.remediation.audit") + 1 :]


@pytest.mark.parametrize("example", ["service", "pipeline"])
def test_an_audit_that_reaches_nobody_fails(operator: Any, example: str) -> None:
    report = operator.folder / "report"
    if example == "service":
        words = arguments(of_service("ExecStart"))
    else:
        job = yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text())["audit"]
        words = arguments(
            job["script"][0],
            SSH_KEY=str(operator.write("key", "")),
            CI_PROJECT_DIR=str(operator.folder),
        )
    done = operator.run("audit", *words, report_dir="report" if example == "service" else None)
    assert done.rc == 2, done.output
    assert "kubemend_fail_on=warning is reached" in done.words, done.output
    assert done.report()["exit_reason"] == "threshold", done.output
    if example == "pipeline":
        kept = job["artifacts"]
        assert (operator.folder / kept["reports"]["junit"]).is_file()
        assert report == operator.folder / kept["paths"][0].rstrip("/")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_takes_service_and_timer(tmp_path: Path) -> None:
    for name in ("kubemend-audit.service", "kubemend-audit.timer"):
        shutil.copy(FOLDER / name, tmp_path)
    done = subprocess.run(
        [
            "systemd-analyze",
            "verify",
            "--man=no",
            str(tmp_path / "kubemend-audit.service"),
            str(tmp_path / "kubemend-audit.timer"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    assert not [line for line in done.stderr.splitlines() if "kubemend-audit" in line], done.stderr


def test_reports_of_more_than_30_days_go_and_nothing_else(tmp_path: Path) -> None:
    words = shlex.split(of_service("ExecStopPost"))
    runs = tmp_path / ".kubemend" / "runs"
    old, new, theirs = (
        runs / name
        for name in ("20261021T090000Z-1a2b3c", "20261121T090000Z-1a2b3c", "kept-by-hand")
    )
    for path in (old, new, theirs):
        (path / "evidence").mkdir(parents=True)
    for path in (old, theirs):
        os.utime(path, (1, 1))
    for _twice in range(2):
        subprocess.run(
            words, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, check=True, timeout=600
        )
        assert sorted(path.name for path in runs.iterdir()) == [new.name, theirs.name]
