# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages generated from the catalogue's literals: `python -m tests.docs` writes them, `--check` says which are stale."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.gate import venvs

ROOT = Path(__file__).resolve().parent.parent
GENERATED = "<!-- Generated from the fault catalogue: run `python -m tests.docs` after a change of the literals. -->"
RISKS = {0: "0 (observe)", 1: "1 (reversible, nothing restarts)", 2: "2 (one component restarts)",
         3: "3 (disruption)", 4: "4 (possible loss: never automatic)"}


def _load():
    """The catalogue and the symptoms, imported under the collection's name whatever the checkout's path is."""
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.plugin_utils import faults, symptoms

    return faults.CATALOGUE, symptoms.SYMPTOMS


def fault_page(catalogue) -> str:
    """docs/faults.md: every fault with what it means, what it needs and what mends it."""
    parts = ["# Fault catalogue", "", GENERATED, "",
             "A fault is a cause that evidence can prove. Its verdict is *present*, *clear* (every host that it is about "
             "answered), *unknown* (and then which evidence was missing) or *not applicable*. Codes are never reused.", ""]
    for fault in catalogue.values():
        evidence = ", ".join([f"`{name}`" for name in fault.needs] +
                             [f"`{name}` (cluster API)" for name in fault.cluster_needs])
        parts += [f"## {fault.code} {fault.title}", "",
                  f"{fault.severity.capitalize()}. Judged per {'host' if fault.scope == 'node' else 'cluster'}, "
                  f"applies to {fault.applies}.", "", fault.explanation, "",
                  f"- Remedy: {fault.remedy}", f"- Risk of the remedy: {RISKS[fault.risk]}",
                  f"- Evidence: {evidence or 'whether the host answered'}"]
        parts += [f"- See <{reference}>" for reference in fault.references] + [""]
    return "\n".join(parts)


def symptom_page(symptom, catalogue) -> str:
    """docs/symptoms/<name>.md: what it can be."""
    rows = [f"| [{code}](../faults.md#{anchor(catalogue[code])}) | {catalogue[code].title} | {catalogue[code].severity} |"
            for code in symptom.causes]
    signs = "; ".join(f"{code} {catalogue[code].title.lower()}" for code in symptom.signs)
    return "\n".join([
        f"# {symptom.title}", "", GENERATED, "",
        f"`ansible-playbook -i INVENTORY kubemend.remediation.{symptom.name}` judges every cause below and prints each "
        "with its verdict and its evidence. It observes, prints the plan and changes nothing, unless "
        "`-e kubemend_max_risk=<risk>` consents to the steps of the plan up to that risk.", "",
        *([f"The symptom itself is judged too: {signs}.", ""] if signs else []),
        *(["The report shows one rejected pod from its creation to its end: [how to read it](../timeline.md).", ""]
          if symptom.name == "admission_errors" else []),
        *(["With `-e kubemend_capture=true -e kubemend_max_risk=1` the scheduler that leads dumps its cache, before anything is repaired: "
           "[what that proves](../capture.md#what-a-scheduler-knows-for-a-report-upstream).", ""] if symptom.name == "pods_stay_pending" else []),
        "| fault | cause | severity |", "|---|---|---|", *rows, ""])


def anchor(fault) -> str:
    """The heading's anchor as common Markdown renderers make it."""
    kept = "".join(char for char in f"{fault.code} {fault.title}".lower() if char.isalnum() or char in " -")
    return kept.replace(" ", "-")


def readme_table(catalogue) -> str:
    """The README's table of faults."""
    rows = [f"| [{fault.code}](docs/faults.md#{anchor(fault)}) | {fault.title} | {fault.severity} |"
            for fault in catalogue.values()]
    return "\n".join(["| fault | what it is | severity |", "|---|---|---|", *rows])


def pages() -> dict[Path, str]:
    """Every generated file with its text."""
    catalogue, symptoms = _load()
    found = {ROOT / "docs" / "faults.md": fault_page(catalogue)}
    for symptom in symptoms.values():
        found[ROOT / "docs" / "symptoms" / f"{symptom.name}.md"] = symptom_page(symptom, catalogue)
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    begin, end = "<!-- faults: begin -->", "<!-- faults: end -->"
    if begin not in text or end not in text:
        raise SystemExit(f"README.md lacks the marks {begin} and {end} between which the table of faults goes")
    head, rest = text.split(begin, 1)
    found[readme] = f"{head}{begin}\n{readme_table(catalogue)}\n{end}{rest.split(end, 1)[1]}"
    return found


def main(arguments: list[str]) -> int:
    stale = [(path, text) for path, text in pages().items()
             if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path, text in stale:
        name = path.relative_to(ROOT)
        if "--check" in arguments:
            print(f"{name} is stale: run python -m tests.docs")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
