# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The README: its tables, and parts of the report of the bundled example (report.txt)."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs import ROOT, between, variables
from tests.docs.language import ENGLISH
from tests.gate import machine, venvs

EXAMPLE = "examples/two-leaders"
# `tests.gate.stages.install` compares the lines below this command with what `make audit` prints,
# which judges the same example of a checkout. It runs the playbook of an installed collection too.
INSTALLED = "~/.ansible/collections/ansible_collections/kubemend/remediation"
COMMAND = f"ansible-playbook kubemend.remediation.replay -e kubemend_evidence={INSTALLED}/{EXAMPLE}"
FINDING = re.compile(r"(?:CRITICAL|WARNING|INFO) KM\d{3} ")
# The first finding and its fix end before its consequences, else before an empty line.
ENDS = ("  leads to:", "")
# What differs from run to run.
CHANGING = re.compile(
    r"\d{8}T\d{6}Z-[0-9a-f]{6}|\b[0-9.]+ s\b|20\d\d-\d\d-\d\d[T ][0-9:]+(?:Z| UTC)"
)


def blocks(symptoms, language=ENGLISH) -> dict[str, str]:
    """Return the generated blocks of the README in a language, with the English page's links."""
    return {
        "symptoms": _symptoms(symptoms, language),
        "report": f"```console\n{_report()}\n```",
        "variables": variables.common_table(language),
    }


def page(path: Path, texts: dict[str, str]) -> str:
    """Return a README with its generated blocks."""
    text = ""
    for name, block in texts.items():
        text = between(path, name, block, text)
    return text


def _symptoms(symptoms, language) -> str:
    rows = [
        f"| [{language.say(symptom.title)}](docs/symptoms/{symptom.name}.md) |"
        f" `kubemend.remediation.{symptom.name}` | {len(symptom.causes)} |"
        for symptom in symptoms.values()
    ]
    head = language.say("| you see | playbook | possible causes |")
    return "\n".join([head, "|---|---|---|", *rows])


def _report() -> str:
    """Return the example's report to the end of its first finding, and its last line."""
    return shortened(_replayed()[0])


def printed() -> str:
    """Return what the replay of the example prints on a terminal with colours."""
    return _replayed()[1]


@functools.cache
def _replayed() -> tuple[str, str]:
    """Return the example's report.txt, and what the terminal shows."""
    with tempfile.TemporaryDirectory() as folder:
        terminal = _replay(Path(folder))
        return (Path(folder) / "report.txt").read_text(encoding="utf-8"), terminal


def shortened(text: str) -> str:
    """Return the command and a part of a report, with … for what changes or is left out."""
    lines = [CHANGING.sub("…", line) for line in text.rstrip().splitlines()]
    first = next((at for at, line in enumerate(lines) if FINDING.match(line)), None)
    if first is None or "; report: " not in lines[-1]:
        raise SystemExit("the report of the README's example has no finding, or no last line")
    end = next(at for at in range(first, len(lines)) if lines[at] in ENDS)
    last = re.sub(r"report: .*", "report: …", lines[-1])
    return "\n".join([f"$ {COMMAND}", "…", *lines[:end], "…", last, "…"])


def _replay(folder: Path) -> str:
    """Judge the bundled example into a folder; return what a terminal with colours shows."""
    env = machine.environment(
        ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()),
        ANSIBLE_HOME=str(folder / "home"),
        ANSIBLE_INVENTORY_UNPARSED_WARNING="false",
        ANSIBLE_LOCALHOST_WARNING="false",
        ANSIBLE_FORCE_COLOR="true",
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ansible", "playbook", "kubemend.remediation.replay"),
            *("-e", f"kubemend_evidence={ROOT / EXAMPLE}"),
            *("-e", f"kubemend_report_dir={folder}"),
        ],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    return done.stdout
