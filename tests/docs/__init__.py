# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate pages, and blocks of pages, from the catalogue of faults.

`python -m tests.docs` writes them; `--check` names those that are stale or incomplete.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.gate import venvs

ROOT = Path(__file__).resolve().parents[2]
GENERATED = (
    "<!-- Generated from the fault catalogue: run `python -m tests.docs` after a change of the"
    " literals. -->"
)
RISKS = {
    0: "0 (observe)",
    1: "1 (reversible, nothing restarts)",
    2: "2 (one component restarts)",
    3: "3 (disruption)",
    4: "4 (possible loss: never automatic)",
}


def load():
    """Return the catalogue, the symptoms and the codes that a plan has steps for.

    They are imported under the collection's name, whatever the checkout's path is.
    """
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.plugin_utils import faults
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import symptoms
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
        run_plan,
    )

    return faults.CATALOGUE, symptoms.SYMPTOMS, frozenset(run_plan.REMEDIES)


def between(path: Path, name: str, text: str, whole: str = "") -> str:
    """Return a file (or its text so far in whole) with a text between the marks of a name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    whole = whole or path.read_text(encoding="utf-8")
    if begin not in whole or end not in whole:
        raise SystemExit(
            f"{path.name} lacks the marks {begin} and {end} between which a generated table goes"
        )
    head, rest = whole.split(begin, 1)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}"


def pages(phrases) -> dict[Path, str]:
    """Return every generated file with its text, the Chinese ones by the phrases."""
    from tests.docs import (
        catalogue as catalogue_file,
    )
    from tests.docs import (
        chinese,
        evidence_schema,
        faults,
        guide,
        installers,
        known_messages,
        picture,
        readme,
        rights,
        roles,
        symptoms,
        variables,
        verification,
    )

    catalogue, all_symptoms, repaired = load()
    docs = ROOT / "docs"
    found = {docs / "faults.md": faults.index(catalogue, repaired)}
    for fault in catalogue.values():
        found[docs / "faults" / f"{fault.code}.md"] = faults.page(
            fault, catalogue, all_symptoms, repaired
        )
    for symptom in all_symptoms.values():
        found[docs / "symptoms" / f"{symptom.name}.md"] = symptoms.page(
            symptom, catalogue, repaired
        )
    found[ROOT / "README.md"] = readme.page(ROOT / "README.md", readme.blocks(all_symptoms))
    found[picture.FILE] = picture.page()
    found.update(chinese.pages(catalogue, all_symptoms, repaired, phrases))
    found.update(variables.role_specs())
    found.update(roles.pages())
    found[variables.PAGE] = variables.page()
    found[catalogue_file.PAGE] = catalogue_file.page()
    found[installers.PAGE] = installers.page()
    found.update(known_messages.pages())
    found[docs / "rights.md"] = rights.page()
    found[docs / "verification.md"] = verification.page()
    schema = docs / "schema" / "evidence-1.json"
    found[schema] = evidence_schema.page(schema)
    found[docs / "docsite" / "rst" / "guide.rst"] = guide.page(catalogue, all_symptoms)
    return found


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check name those that are stale; return the exit status."""
    from tests.docs import chinese

    phrases = chinese.read()
    wanted = pages(phrases)
    check = "--check" in arguments
    stale = [(path, text) for path, text in wanted.items() if _present(path) != text]
    for path, text in stale:
        name = path.relative_to(ROOT)
        if check:
            print(f"{name} is stale: run python -m tests.docs")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    found = [*_unknown_pages(wanted), *_problems(wanted), *phrases.problems()]
    for problem in found:
        print(problem)
    return 1 if found or (stale and check) else 0


def _present(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _unknown_pages(wanted: dict[Path, str]) -> list[str]:
    """Return a line for each page of a fault or a symptom that does not exist."""
    docs = ROOT / "docs"
    folders = (docs / "faults", docs / "symptoms", docs / "zh-CN" / "symptoms")
    pages = [page for folder in folders for page in sorted(folder.glob("*.md"))]
    return [
        f"{page.relative_to(ROOT)} is of nothing in the catalogue: remove it"
        for page in pages
        if page not in wanted
    ]


def _problems(wanted: dict[Path, str]) -> list[str]:
    """Return a line for each block or hand-written part that a fault's page lacks."""
    from tests.docs import faults

    catalogue, _symptoms, _repaired = load()
    lines = []
    for fault in catalogue.values():
        path = faults.DIRECTORY / f"{fault.code}.md"
        found = faults.problems(fault, wanted[path])
        lines += [f"{path.relative_to(ROOT)} {problem}" for problem in found]
    return lines
