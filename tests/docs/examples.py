# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example finding of each fault's page, in examples.json with the evidence that it comes from.

`python -m tests.docs.examples` writes the file: by a recording that has the fault, else by the
first unit test that makes a finding of it. The unit tests compare the file with both.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "docs" / "examples.json"
RECORDED = ROOT / "tests" / "fixtures" / "recorded"
# Tests of one fault each; the others try evidence that no cluster has.
UNIT = ROOT / "tests" / "unit" / "plugins" / "plugin_utils" / "faults"
AREAS = (
    *("control_plane", "limits", "node", "pods", "resource_managers", "scheduling", "upgrade"),
    *("test_kubemend_runs.py", "test_engine.py"),
)
WIDTH = 79  # what Ansible prints where it sees no terminal; a page of the site has that room
# Where the plugin of pytest below writes what it saw.
SEEN = "KUBEMEND_EXAMPLES"


@functools.cache
def read() -> dict[str, dict[str, Any]]:
    """Return {code: {"source": recording or test, "text": lines}}; empty before the first run."""
    if not FILE.exists():
        return {}
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


# Serial numbers and digests of certificates that a test makes anew each time.
CHANCE = re.compile(r"(?<![0-9a-z])[0-9a-f]{32,}(?![0-9a-z])")


def lines(finding: Any) -> list[str]:
    """Return a finding as the terminal shows it, without its fix: that has its own headings."""
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import CATALOGUE
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
        groups,
        run_info,
        text_findings,
        text_page,
    )

    titles = {code: fault.title for code, fault in CATALOGUE.items()}
    run = run_info.Run("", "", "", "replay", "", "", titles=titles)
    page = text_page.Page(WIDTH, text_page.plain)
    group = groups.group([replace(finding, remedy=None, command=None)])[0]
    text_findings.write(page, [groups.Entry(group, 0, (), ())], run)
    return [CHANCE.sub("…", line) for line in page.text().splitlines()]


@functools.cache
def recorded(name: str) -> dict[str, list[str]]:
    """Return {code: lines of its first finding} of a recording."""
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import sources
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import engine

    evidence = sources.stream([str(RECORDED / name / "evidence")])
    return first(engine.evaluate(evidence, deep=True).findings)


def first(findings: Iterable[Any]) -> dict[str, list[str]]:
    """Return {code: lines of its first finding}."""
    found: dict[str, Any] = {}
    for finding in findings:
        found.setdefault(finding.code, finding)
    return {code: lines(finding) for code, finding in found.items()}


def recordings() -> dict[str, str]:
    """Return {code: the recording with the fewest other faults, the newest of several}."""
    ranked: dict[str, list[tuple[int, list[int], str]]] = {}
    for path in sorted(RECORDED.glob("*/expected.json")):
        rows = json.loads(path.read_text(encoding="utf-8"))
        codes = {row[1] for row in rows if row[0] == "finding"}
        version = path.parent.name.partition("-")[0].lstrip("v")
        newest = [-int(part) for part in version.split(".")]
        for code in codes:
            ranked.setdefault(code, []).append((len(codes), newest, path.parent.name))
    return {code: min(cases)[2] for code, cases in ranked.items()}


def of_recordings() -> dict[str, dict[str, Any]]:
    """Return the examples that recordings have."""
    by_case: dict[str, list[str]] = {}
    for code, case in recordings().items():
        by_case.setdefault(case, []).append(code)
    return {
        code: {"source": case, "text": recorded(case)[code]}
        for case, codes in sorted(by_case.items())
        for code in codes
    }


class Watch:
    """Note the findings of all evaluations while it is installed."""

    def __init__(self) -> None:
        from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import engine

        self.engine = engine
        self.evaluate = engine.evaluate_clusters
        self.findings: list[Any] = []

    def __enter__(self) -> Watch:
        self.engine.evaluate_clusters = self._evaluated
        return self

    def __exit__(self, *error: object) -> None:
        self.engine.evaluate_clusters = self.evaluate

    def _evaluated(self, *arguments: Any, **options: Any) -> Any:
        answer = self.evaluate(*arguments, **options)
        self.findings += answer[0].findings
        return answer


def source(path: Path, name: str) -> str:
    """Return a test as examples.json names it."""
    return f"{path.resolve().relative_to(UNIT).as_posix()}::{name}"


def of_tests(codes: set[str]) -> dict[str, dict[str, Any]]:
    """Return the examples that unit tests make of these faults."""
    seen = ROOT / "tests" / "output" / "examples.jsonl"
    seen.parent.mkdir(parents=True, exist_ok=True)
    seen.write_text("", encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        + [str(UNIT / area) for area in AREAS],
        cwd=ROOT,
        env={**os.environ, SEEN: str(seen)},
        check=True,
    )
    found: dict[str, dict[str, Any]] = {}
    for line in seen.read_text(encoding="utf-8").splitlines():
        code, source, text = json.loads(line)
        if code in codes:
            found.setdefault(code, {"source": source, "text": text})
    return found


def main() -> int:
    """Write examples.json; return the exit status."""
    from tests.docs import load

    catalogue, _symptoms, _repaired = load()
    found = of_recordings()
    found.update(of_tests(set(catalogue) - set(found)))
    text = json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")
    missing = sorted(set(catalogue) - set(found))
    for code in missing:
        print(f"{code} has no example: no recording and no unit test has a finding of it")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
