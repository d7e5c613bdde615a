# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate docs/faults.md and the generated blocks of docs/faults/CODE.md.

A fault's page is written by hand, apart from the blocks between its marks: severity and scope,
evidence, repair, undo and related faults come from the catalogue, and the example finding from
examples.json. A page has the headings of HEADINGS, in that order. One that lacks a heading with a
generated block gets both.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter

from tests import measures
from tests.docs import GENERATED, RISKS, ROOT, examples, page_commands
from tests.docs.page_sections import BLOCK, DIRECTORY, own, section

GROUPS = {
    "KM1": "Control plane",
    "KM2": "Scheduling",
    "KM3": "CPU, memory and device managers",
    "KM4": "Limits",
    "KM5": "Nodes",
    "KM6": "Pods that do not start",
    "KM7": "The next start, the next release",
    "KM9": "The run itself",
}
SENTENCE_END = re.compile(r"(?<=[.;])\s+|\n\n")
HEADINGS = (
    "What you see",
    "Example",
    "Check by hand",
    "Fix by hand",
    "What kubemend can do",
    "Undo",
    "Related faults",
    "References",
)
# The headings that need text of their own, not only a generated block.
WRITTEN = ("What you see", "Check by hand", "Fix by hand", "References")
# The headings below which a reader finds a command to copy: a block, or one within a sentence.
COMMANDS = ("Check by hand", "Fix by hand")
# The heading below which commands stand in a block, so that a reader can copy them.
IN_BLOCKS = "Fix by hand"
COMMAND_BLOCK = re.compile(r"^ *```\w*\n *\S.*?^ *```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^ *```\w*\n.*?^ *```|`[a-z$][^`\n]* [^`\n]*`", re.DOTALL | re.MULTILINE)
PLACES = (
    "The commands below have the places of kubeadm; [other installers](../installers.md"
    "#where-things-are) have others. `kubectl` needs the rights of an administrator: on a control"
    " plane node, `export KUBECONFIG=/etc/kubernetes/admin.conf`. Commands on a node need root."
)
CAPITALS = "Replace what is in capitals:"
# The heading that each generated block is below; the first one begins the page.
BLOCKS = {
    "summary": None,
    "example": "Example",
    "evidence": "Check by hand",
    "repair": "What kubemend can do",
    "undo": "Undo",
    "related": "Related faults",
}
UNDO = (
    "The playbook `kubemend.remediation.revert` takes a repair back: [what it restores, and what it"
    " leaves](../undo.md)."
)
NO_UNDO = "kubemend changes nothing for this fault, so it has nothing to undo."
LONGEST = 200  # characters of a line of an example


def index(catalogue, repaired) -> str:
    """Return docs/faults.md, the table of all faults by group."""
    parts = [
        "# Fault catalogue",
        "",
        GENERATED,
        "",
        (
            "A fault is a cause that evidence can show. Each one is reported as *present*, *clear*"
            " (every host that it concerns answered), *unknown* (and which evidence is missing) or"
            " *not applicable*. An unknown fault is never repaired. Codes are never reused. Each"
            " fault has a page: what you see, how to check and fix it by hand, what kubemend can do"
            " and at which risk."
        ),
        "",
    ]
    for prefix, title in GROUPS.items():
        rows = [
            f"| [{fault.code}](faults/{fault.code}.md) | {fault.title} | {fault.severity} |"
            f" {repair_cell(fault, repaired)} |"
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


def repair_cell(fault, repaired) -> str:
    """Return the cell of a table that states whether a plan can have a step for a fault."""
    return str(step_risk(fault)) if fault.code in repaired else "none: by hand"


def step_risk(fault) -> int:
    """Return the highest risk of the steps of a fault that a plan can have steps for."""
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
        fault_catalogue,
    )

    return fault_catalogue.max_risk(fault)


def page(fault, catalogue, symptoms, repaired) -> str:
    """Return docs/faults/CODE.md with its generated blocks as they have to be."""
    blocks = _blocks(fault, catalogue, symptoms, repaired)
    path = DIRECTORY / f"{fault.code}.md"
    if not path.exists():
        return _skeleton(blocks)

    def block(match: re.Match) -> str:
        return _marked(match[1], blocks[match[1]]) if match[1] in blocks else match[0]

    return BLOCK.sub(block, _completed(path.read_text(encoding="utf-8"), blocks))


def _completed(text: str, blocks: dict[str, str]) -> str:
    """Return a page with each generated block that it lacks, below its heading."""
    marked = {match[1] for match in BLOCK.finditer(text)}
    for name, title in BLOCKS.items():
        heading = f"\n## {title}\n"
        if title is None or name in marked:
            continue
        block = _marked(name, blocks[name])
        if heading in text:
            text = text.replace(heading, f"{heading}\n{block}\n", 1)
            continue
        later = [f"\n## {other}\n" for other in HEADINGS[HEADINGS.index(title) + 1 :]]
        place = min((text.find(other) for other in later if other in text), default=len(text))
        text = f"{text[:place]}{heading}\n{block}\n{text[place:]}"
    return text


def problems(fault, text: str) -> list[str]:
    """Return what is wrong with the hand-written part of a page, and what it lacks."""
    marked = [match[1] for match in BLOCK.finditer(text)]
    found = [f"lacks the generated block {name}" for name in BLOCKS if name not in marked]
    found += [f"has no use for the block {name}" for name in marked if name not in BLOCKS]
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    found += [f"lacks the heading {title}" for title in HEADINGS if title not in titles]
    if not section(text, "Example").count("```"):
        found.append("lacks an example: run python -m tests.docs.examples, then tests.docs")
    found += [f"has an unknown heading: {title}" for title in titles if title not in HEADINGS]
    if titles != sorted(titles, key=(*HEADINGS, *titles).index):
        found.append(f"has headings in another order than {', '.join(HEADINGS)}")
    found += [f"has no text below {title}" for title in titles if not section(text, title)]
    found += [f"lacks text of its own below {title}" for title in WRITTEN if not own(text, title)]
    found += [f"lacks a command below {title}" for title in COMMANDS if not commands(text, title)]
    if not COMMAND_BLOCK.search(own(text, IN_BLOCKS)):
        found.append(f"lacks commands to copy below {IN_BLOCKS}")
    found += [f"has {measure}" for measure in long_sections(text)]
    found += [f"says a sentence twice: {sentence}" for sentence in repeated(text)]
    return found


def repeated(text: str) -> list[str]:
    """Return the sentences of eight words and more that a page's own text has more than once."""
    prose = re.sub(r"^ *```.*?^ *```$", "\n\n", BLOCK.sub("", text), flags=re.MULTILINE | re.DOTALL)
    sentences = [" ".join(sentence.split()) for sentence in SENTENCE_END.split(prose)]
    counts = Counter(sentence for sentence in sentences if len(sentence.split()) >= 8)
    return [
        sentence for sentence, count in counts.items() if count > 1 and not sentence.endswith(":")
    ]


def long_sections(text: str) -> list[str]:
    """Return the number of words a sentence of each section where it is too high."""
    averages = {title: measures.words_a_sentence(own(text, title)) for title in HEADINGS}
    return [
        f"{average:.1f} words a sentence below {title}, and more than {measures.WORDS_A_SENTENCE}"
        for title, average in averages.items()
        if average > measures.WORDS_A_SENTENCE
    ]


def commands(text: str, title: str) -> list[str]:
    """Return the commands that a page names below a heading, each block as it stands."""
    found = COMMAND.findall(own(text, title))
    return [re.sub(r"^ *```\w*\n?|`", "", command, flags=re.MULTILINE) for command in found]


def written(code: str, title: str) -> str:
    """Return the hand-written text below a heading of a fault's page, "" without a page."""
    path = DIRECTORY / f"{code}.md"
    return own(path.read_text(encoding="utf-8"), title) if path.exists() else ""


def _marked(name: str, text: str) -> str:
    return f"<!-- generated: begin {name} -->\n{text}\n<!-- generated: end -->"


def _skeleton(blocks: dict[str, str]) -> str:
    """Return the page of a new fault, whose hand-written parts are still empty."""
    parts = [_marked("summary", blocks["summary"])]
    of_heading = {BLOCKS[name]: name for name in blocks}
    for title in HEADINGS:
        if title in of_heading:
            name = of_heading[title]
            parts.append(f"## {title}\n\n{_marked(name, blocks[name])}")
        elif title in WRITTEN:
            parts.append(f"## {title}\n")
    return "\n\n".join(parts) + "\n"


def _blocks(fault, catalogue, symptoms, repaired) -> dict[str, str]:
    scope = "host" if fault.scope == "node" else "cluster"
    return {
        "summary": (
            f"# {fault.code} {fault.title}\n\n{fault.severity.capitalize()}. Evaluated per"
            f" {scope}; applies to {fault.applies}."
        ),
        "evidence": "\n".join(_evidence(fault)),
        "repair": _repair(fault, repaired),
        "related": "\n".join(_related(fault, catalogue, symptoms)),
        "example": _example(fault.code),
        "undo": UNDO if fault.code in repaired else NO_UNDO,
    }


def _example(code: str) -> str:
    """Return the example finding of a fault, and where it comes from."""
    example = examples.read().get(code)
    if example is None:
        return "There is no example yet."
    lines = [_cut(line) for line in example["text"]]
    source = "From a unit test, because no recorded cluster has the fault:"
    if "::" not in example["source"]:
        release = example["source"].partition("-")[0]
        source = f"Recorded on a cluster of Kubernetes {release}:"
    return "\n".join([source, "", "```text", *lines, "```"])


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _collectors(fault) -> list[tuple[str, str, str]]:
    """Return the name, the place and the description of each collector that a check reads."""
    from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
        collector_names,
    )

    collectors = [(name, "each host", collector_names.NODE[name]) for name in fault.needs]
    collectors += [(name, "the API", collector_names.CLUSTER[name]) for name in fault.cluster_needs]
    return collectors


def _evidence(fault) -> list[str]:
    collectors = _collectors(fault)
    if not collectors:
        return ["kubemend checks whether the host answered.", *_placeholders(fault.code)]
    parts = [
        "kubemend checks it by what these collectors read:",
        "",
        "| collector | reads from | reads |",
        "|---|---|---|",
        *(f"| `{name}` | {place} | {text} |" for name, place, text in collectors),
        "",
        (
            "A finding names the place: file and line, process and arguments, object of the API or"
            " line of a log."
        ),
    ]
    releases = versions(fault.code)
    if releases:
        parts.append(
            "Recorded from real clusters, and evaluated again by the tests: Kubernetes"
            f" {', '.join(releases)}."
        )
    if fault.tier == "deep":
        parts += [
            "",
            (
                "The evidence is expensive: the playbook of its symptom and `-e"
                " kubemend_deep=true` evaluate it, other runs report *not judged*."
            ),
        ]
    if fault.tier == "upgrade":
        parts += [
            "",
            (
                "It is about a later release: only `before_upgrade`, or a run whose"
                " `kubemend_faults` names it, evaluates it."
            ),
        ]
    if fault.sooner:
        parts.append(
            "Where the limit is used up, a plain audit collects it in the same run, and reports"
            " *present*."
        )
    return [*parts, "", PLACES, *_placeholders(fault.code)]


def _placeholders(code: str) -> list[str]:
    """Return what a reader writes for the words in capitals in the commands of a page."""
    path = DIRECTORY / f"{code}.md"
    used = page_commands.placeholders(path.read_text(encoding="utf-8")) if path.exists() else []
    meanings = page_commands.read_placeholders()
    rows = [f"- `{word}`: {meanings[word]}" for word in used if word in meanings]
    return ["", CAPITALS, "", *rows] if rows else []


def lowered(text: str) -> str:
    """Return a text as it is written within a sentence; SELinux and CPU stay as they are."""
    return text if text[1:2].isupper() else text[0].lower() + text[1:]


@functools.cache
def _recorded() -> dict[str, list[str]]:
    releases: dict[str, set[str]] = {}
    for path in (ROOT / "tests" / "fixtures" / "recorded").glob("*/expected.json"):
        release = path.parent.name.split("-")[0].lstrip("v")
        for row in json.loads(path.read_text(encoding="utf-8")):
            if row[0] == "present":
                releases.setdefault(row[1], set()).add(release)
    return {code: sorted(names, key=_numbers) for code, names in releases.items()}


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def versions(code: str) -> list[str]:
    """Return the releases of Kubernetes whose recorded evidence shows a fault."""
    return _recorded().get(code, [])


def _cause(code: str, component: str | None, catalogue) -> str:
    suffix = f" (of {component})" if component else ""
    return f"- [{code}]({code}.md) {lowered(catalogue[code].title)}{suffix}"


def _related(fault, catalogue, symptoms) -> list[str]:
    parts = []
    if fault.explained_by:
        causes = sorted(fault.explained_by, key=lambda pair: (pair[0], pair[1] or ""))
        parts += [
            "Other faults can cause it; its finding then names them:",
            "",
            *(_cause(code, component, catalogue) for code, component in causes),
            "",
        ]
    with_it = [
        symptom for symptom in symptoms.values() if fault.code in symptom.causes + symptom.signs
    ]
    if with_it:
        return [
            *parts,
            "These playbooks check all causes of the same symptom:",
            "",
            *(
                f"- [{symptom.title}](../symptoms/{symptom.name}.md),"
                f" `kubemend.remediation.{symptom.name}`"
                for symptom in with_it
            ),
        ]
    if fault.code in next(iter(symptoms.values())).codes:
        return [*parts, "Every audit and the playbook of every symptom check it."]
    return [*parts, "Every audit checks it."]


def _repair(fault, repaired) -> str:
    if fault.code not in repaired:
        return "kubemend does not repair this; fix it by hand as described above."
    return (
        "A plan has a step for it, where its evidence allows one. Risk: up to"
        f" {RISKS[step_risk(fault)]}. The step runs only with `-e kubemend_max_risk` of its risk or"
        " more; `--check --diff` shows it before."
    )
