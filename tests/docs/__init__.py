# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages generated from the catalogue's literals.

`python -m tests.docs` writes them, `--check` says which are stale.
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
    """The catalogue, the symptoms and the codes that a plan has steps for, under the
    collection's name whatever the checkout's path is.
    """
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.plugin_utils import faults
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import symptoms
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
        run_plan as planning,
    )

    return faults.CATALOGUE, symptoms.SYMPTOMS, frozenset(planning.REMEDIES)


def between(path: Path, name: str, text: str, whole: str = "") -> str:
    """The file, or the whole of it as it is to be so far, with this text between the marks of
    that name.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    whole = whole or path.read_text(encoding="utf-8")
    if begin not in whole or end not in whole:
        raise SystemExit(
            f"{path.name} lacks the marks {begin} and {end} between which a generated table goes"
        )
    head, rest = whole.split(begin, 1)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}"


def pages() -> dict[Path, str]:
    """Every generated file with its text."""
    from tests.docs import (
        evidence_schema,
        faults,
        guide,
        readme,
        rights,
        roles,
        symptoms,
        verification,
    )

    catalogue, all_symptoms, mended = load()
    docs = ROOT / "docs"
    found = {docs / "faults.md": faults.index(catalogue, mended)}
    for fault in catalogue.values():
        found[docs / "faults" / f"{fault.code}.md"] = faults.page(
            fault, catalogue, all_symptoms, mended
        )
    for symptom in all_symptoms.values():
        found[docs / "symptoms" / f"{symptom.name}.md"] = symptoms.page(symptom, catalogue, mended)
    found[ROOT / "README.md"] = readme.page(catalogue, all_symptoms, mended)
    found.update(roles.pages())
    found[docs / "rights.md"] = rights.page()
    found[docs / "verification.md"] = verification.page()
    schema = docs / "schema" / "evidence-1.json"
    found[schema] = evidence_schema.page(schema)
    found[docs / "docsite" / "rst" / "guide.rst"] = guide.page(catalogue, all_symptoms)
    return found


def main(arguments: list[str]) -> int:
    wanted = pages()
    stale = [
        (path, text)
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        name = path.relative_to(ROOT)
        if "--check" in arguments:
            print(f"{name} is stale: run python -m tests.docs")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    left = sorted(
        path
        for folder in ("faults", "symptoms")
        for path in (ROOT / "docs" / folder).glob("*.md")
        if path not in wanted
    )
    for path in left:
        print(f"{path.relative_to(ROOT)} is of nothing in the catalogue: remove it")
    return 1 if left or (stale and "--check" in arguments) else 0
