# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports of earlier runs, and the trend over them."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import collection
from .wrong_input import WrongInput, nearest, shown

LAST = "last"
TEXT = {"terminal": "report.txt", "json": "report.json"}


def names() -> list[str]:
    """Return the ids of the runs in the user's folder, the newest first."""
    return sorted(collection.module("plugin_utils.run.retention").names(_root()), reverse=True)


def is_run(word: str) -> bool:
    """Tell whether a word is the id of a run, or means the newest one."""
    is_run_id = collection.module("plugin_utils.run.variable_kinds").is_run_id
    return word == LAST or bool(is_run_id(word))


def _root() -> Path:
    return Path(collection.module("plugin_utils.run.retention").RUNS).expanduser()


def report(run: str | None, format_name: str | None) -> str:
    """Return a report of a run, or of the folder of one."""
    files = {**TEXT, **_faces()}
    name = format_name or "terminal"
    if name not in files:
        raise WrongInput(f"no report has the format {shown(name)}; {nearest(name, files)}")
    path = _folder(run or LAST) / files[name]
    try:
        return path.read_text(encoding="utf-8").rstrip("\n")
    except FileNotFoundError:
        raise WrongInput(f"{path.parent} has no {path.name}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise WrongInput(f"{path} cannot be read: {reason}") from None


def _faces() -> dict[str, str]:
    faces = collection.module("plugin_utils.run.report_dir").FACES
    return {name: file for name, (file, _beginning) in faces.items()}


def _folder(run: str) -> Path:
    """Return the folder of a run by its id, by the word last, or by its path."""
    if not is_run(run):
        if Path(run).expanduser().is_dir():
            return Path(run).expanduser()
        raise WrongInput(f"{shown(run)} is no id of a run and no folder of one")
    for name in names():
        if run in (LAST, name) and (_root() / name / TEXT["json"]).is_file():
            return _root() / name
    if run == LAST:
        raise WrongInput(f"no run has left a report in {_root()}")
    raise WrongInput(f"{_root()} has no report of run {run}; {nearest(run, names() or [LAST])}")


def history() -> str:
    """Return the trend over the runs in the user's folder."""
    width = shutil.get_terminal_size().columns
    trend = collection.module("plugin_utils.run.trend").read()
    text: str = collection.module("plugin_utils.reports.trend").render(trend, width)
    return text.rstrip("\n")
