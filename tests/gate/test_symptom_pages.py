# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A symptom's page begins with a table from what is seen to the faults to look at."""

from __future__ import annotations

import re
import types

import pytest

from tests.docs import ROOT, chinese, decisions, load, symptoms
from tests.docs.language import ENGLISH

SYMPTOMS = load()[1]
PAGES = [f"docs/symptoms/{name}.md" for name in sorted(SYMPTOMS)]


def table(page: str) -> list[str]:
    """Return the rows that stand directly below the first heading of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    first = text.split("\n## ")[1].split("\n\n")[1]
    lines = first.splitlines()
    assert lines[1] == "|---|---|", page
    return lines[2:]


@pytest.mark.parametrize("page", [*PAGES, *map(chinese.counterpart, PAGES)])
def test_a_page_begins_with_a_row_for_each_thing_seen_with_links_to_faults(page):
    rows = table(page)
    name = page.rpartition("/")[2].removesuffix(".md")
    assert len(rows) == len(decisions.DECISIONS[name]) > 5
    for row, (_seen, codes) in zip(rows, decisions.DECISIONS[name], strict=True):
        links = re.findall(r"\[(KM\d{3})\]\(([^)]+)\)", row)
        assert [code for code, _target in links] == list(codes)
        for _code, target in links:
            assert (ROOT / page).parent.joinpath(target).is_file()


def test_every_symptom_has_decisions_and_names_no_fault_twice_in_a_row():
    assert set(decisions.DECISIONS) == set(SYMPTOMS)
    for rows in decisions.DECISIONS.values():
        assert len({seen for seen, _codes in rows}) == len(rows)
        assert all(codes and len(set(codes)) == len(codes) for _seen, codes in rows)


def test_a_fault_that_is_no_cause_of_the_symptom_is_refused():
    fault = types.SimpleNamespace(title="Title")
    symptom = types.SimpleNamespace(name="duplicate_pods", causes=("KM101",), signs=("KM113",))
    rows = symptoms._decisions(symptom, {"KM101": fault, "KM113": fault}, ENGLISH)
    assert next(rows).endswith("(../faults/KM101.md) title |")
    with pytest.raises(SystemExit, match="KM103"):
        next(rows)


def test_a_playbook_that_is_an_audit_promises_no_step():
    audited = [name for name in SYMPTOMS if symptoms._observes(SYMPTOMS[name])]
    assert "before_reboot" in audited
    assert "api_down" not in audited
    page = (ROOT / "docs/symptoms/before_reboot.md").read_text(encoding="utf-8")
    assert symptoms.OBSERVES in page
    assert symptoms.REPAIRS not in page
    assert "kubemend_run_id" not in page
