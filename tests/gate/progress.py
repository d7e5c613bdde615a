# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an interrupted run has done already, so that the next run on the same bytes goes on.

One folder holds it: `run.jsonl` has a line that names the run and one for each stage that passed,
`STAGE.passed` has the ids of the tests that passed in a stage that has not ended. A run that ends
by itself removes the folder, whatever its result.
"""

from __future__ import annotations

import json
import pathlib
import shutil
from collections.abc import Sequence

from tests.gate import counts, machine

FOLDER = machine.OUTPUT / "progress"


def key(full: bool, stages: Sequence[str]) -> dict[str, object]:
    """Identify a run: the commit, what is changed in it, and what was asked for."""
    from tests.lab.support import results  # the other stages do without the lab

    return {**results.tree(), "full": full, "stages": list(stages)}


class Progress:
    """The record of one run, written as it happens."""

    def __init__(self, wanted: dict[str, object], folder: pathlib.Path = FOLDER) -> None:
        self.folder = folder
        self.lines: dict[str, counts.Line] = {}
        self.resumed = False
        self._take_up(wanted)

    def _take_up(self, wanted: dict[str, object]) -> None:
        rows = _rows(self.folder / "run.jsonl")
        # Without a commit nobody can say whether these are the same bytes.
        if rows and rows[0] == wanted and wanted["commit"] != "none":
            self.resumed = True
            for row in rows[1:]:
                line = counts.Line(
                    row["name"], counts.Counts(row["passed"], [], row["skipped"]), row["seconds"]
                )
                self.lines[line.name] = line
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._write(wanted)

    def _write(self, row: dict[str, object]) -> None:
        with (self.folder / "run.jsonl").open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(row) + "\n")

    def passed(self, line: counts.Line) -> None:
        """Record a stage that passed."""
        self._write(
            {
                "name": line.name,
                "passed": line.counts.passed,
                "skipped": line.counts.skipped,
                "seconds": line.seconds,
            }
        )

    def end(self) -> None:
        """Forget the run: it ended by itself."""
        shutil.rmtree(self.folder, ignore_errors=True)


def tests_file(stage: str, folder: pathlib.Path = FOLDER) -> pathlib.Path:  # noqa: PT028 - no test
    """Name the file with the ids of the tests that passed in a stage."""
    return folder / f"{stage}.passed"


def tests_passed(path: pathlib.Path) -> list[str]:
    """Read those ids; the half line of a run that was killed is none."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    return [line for line in text.split("\n")[:-1] if line]


def _rows(path: pathlib.Path) -> list[dict]:
    found: list[dict] = []
    if not path.is_file():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break  # the half line of a run that was killed while it wrote
    return found
