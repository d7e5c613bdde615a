# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/faults.md and a page for each fault. What the literals do not say is not said here."""

from __future__ import annotations

import functools
import json

from tests.docs import GENERATED, RISKS, ROOT

GROUPS = {
    "KM1": "Control plane",
    "KM2": "Scheduling",
    "KM3": "CPU, memory and device managers",
    "KM4": "Limits",
    "KM5": "Nodes",
    "KM9": "The run itself",
}
REVERT = "[What can be taken back of it, and how](../../README.md#undoing-a-repair)."


def index(catalogue, mended) -> str:
    """docs/faults.md: what there is, by group."""
    parts = [
        "# Fault catalogue",
        "",
        GENERATED,
        "",
        (
            "A fault is a cause that evidence can prove. Its verdict is *present*, *clear* (every"
            " host that it is about answered), *unknown* (and then which evidence was missing) or"
            " *not applicable*. Codes are never reused. Each has a page: what it means, what proves"
            " it, what else it can be, what mends it at which risk."
        ),
        "",
    ]
    for prefix, title in GROUPS.items():
        rows = [
            f"| [{fault.code}](faults/{fault.code}.md) | {fault.title} | {fault.severity} |"
            f" {mend(fault, mended)} |"
            for fault in catalogue.values()
            if fault.code.startswith(prefix)
        ]
        parts += [
            f"## {title}",
            "",
            "| fault | what it is | severity | a plan's step, risk |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    strange = [code for code in catalogue if code[:3] not in GROUPS]
    if strange:
        raise SystemExit(f"no group of docs/faults.md has a place for {', '.join(strange)}")
    return "\n".join(parts)


def mend(fault, mended) -> str:
    """Whether a plan can have a step for it, in a cell of a table."""
    return str(step_risk(fault)) if fault.code in mended else "none: by hand"


def step_risk(fault) -> int:
    """The highest risk of its steps.

    What changes anything has one of 1 or more, also where the fault as such asks for nothing
    (KM320).
    """
    return max(fault.risk, 1)


def page(fault, catalogue, symptoms, mended) -> str:
    """docs/faults/<code>.md."""
    judged = "host" if fault.scope == "node" else "cluster"
    return "\n".join(
        [
            f"# {fault.code} {fault.title}",
            "",
            GENERATED,
            "",
            f"{fault.severity.capitalize()}. Judged per {judged}; applies to {fault.applies}.",
            "",
            "## What it means",
            "",
            fault.explanation.strip(),
            "",
            "## What proves it",
            "",
            *_evidence(fault),
            "",
            "## What it is not",
            "",
            *_others(fault, catalogue, symptoms),
            "",
            "## What mends it",
            "",
            fault.remedy,
            "",
            *_step(fault, mended),
            "",
            *(
                ["## See also", "", *(f"- <{reference}>" for reference in fault.references), ""]
                if fault.references
                else []
            ),
        ]
    )


def _evidence(fault) -> list[str]:
    from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
        collector_names,
    )

    reads = [(name, "each host", collector_names.NODE[name]) for name in fault.needs]
    reads += [(name, "the API", collector_names.CLUSTER[name]) for name in fault.cluster_needs]
    if not reads:
        return ["Whether the host answered."]
    table = [
        "| collector | asks | reads |",
        "|---|---|---|",
        *(f"| `{name}` | {asks} | {text} |" for name, asks, text in reads),
    ]
    deep = (
        [
            "",
            (
                "Expensive evidence: judged by its symptom's playbook and with `-e"
                " kubemend_deep=true`, else *not judged*."
            ),
        ]
        if fault.tier == "deep"
        else []
    )
    if fault.sooner:
        deep.append(
            "Where the limit is used up, a plain audit collects it in the same run, and says"
            " *present*."
        )
    told = [
        "",
        (
            "A finding names the place: file and line, process and arguments, object of the API or"
            " line of a log."
        ),
    ]
    seen = versions(fault.code)
    if seen:
        told.append(
            "Recorded from real clusters, where it is judged again by the tests: Kubernetes"
            f" {', '.join(seen)}."
        )
    return [*table, *told, *deep]


def lowered(text: str) -> str:
    """As it stands within a sentence; SELinux and CPU stay as they are."""
    return text if text[1:2].isupper() else text[0].lower() + text[1:]


@functools.cache
def _recorded() -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests" / "fixtures" / "recorded").glob("*/expected.json"):
        version = path.parent.name.split("-")[0].lstrip("v")
        for row in json.loads(path.read_text(encoding="utf-8")):
            if row[0] == "present":
                found.setdefault(row[1], set()).add(version)
    return {
        code: sorted(versions, key=lambda one: [int(part) for part in one.split(".")])
        for code, versions in found.items()
    }


def versions(code: str) -> list[str]:
    """Releases of Kubernetes that recorded evidence shows the fault of."""
    return _recorded().get(code, [])


def _others(fault, catalogue, symptoms) -> list[str]:
    verdict = (
        "*Clear* needs an answer of every member that it is about; where one is missing it is"
        " *unknown*, which repairs nothing, and the report names who."
    )
    parts = [verdict] if fault.needs or fault.cluster_needs else []
    if fault.explained_by:
        deeper = [
            f"[{code}]({code}.md) {lowered(catalogue[code].title)}"
            + (f" (of {component})" if component else "")
            for code, component in sorted(
                fault.explained_by, key=lambda pair: (pair[0], pair[1] or "")
            )
        ]
        parts += [
            "",
            "It can be the consequence of another fault, which its finding then names:",
            "",
            *(f"- {line}" for line in deeper),
        ]
    theirs = [
        symptom for symptom in symptoms.values() if fault.code in symptom.causes + symptom.signs
    ]
    if theirs:
        parts += [
            "",
            "What looks alike has other causes too; each of these playbooks judges all of them:",
            "",
            *(
                f"- [{symptom.title}](../symptoms/{symptom.name}.md),"
                f" `kubemend.remediation.{symptom.name}`"
                for symptom in theirs
            ),
        ]
    else:
        everywhere = (
            "Every audit and every symptom's playbook judges"
            if fault.code in next(iter(symptoms.values())).codes
            else "Every audit judges"
        )
        parts += ["", f"{everywhere} it."]
    return parts if parts[0] else parts[1:]


def _step(fault, mended) -> list[str]:
    if fault.code not in mended:
        return [
            (
                "No step of a plan does this: it is for a person to decide."
                if fault.risk
                else "Nothing is changed for it: it is for a person to decide."
            )
        ]
    return [
        (
            "A plan has a step for it, where its evidence allows one. Risk: up to"
            f" {RISKS[step_risk(fault)]}; it is done only with `-e kubemend_max_risk` of the step's"
            " risk or more, and `--check --diff` shows it before."
        ),
        "",
        REVERT,
    ]
