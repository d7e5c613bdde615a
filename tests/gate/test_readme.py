# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The README: the part of a report that it shows, its command, and its tables."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.docs import ROOT, console_examples, load, readme, variables

BEGIN = """\
kubemend replay of recorded evidence · kubernetes (a4c67687) · Kubernetes
  v1.18.4 · 4 of 4 nodes read · 3.1 s · nothing was changed
run 20261126T181645Z-2554f9, 2026-11-26 18:16 UTC, once 2026-11-26T18:16:45Z

  2 critical   1 warning   0 info   0 unknown

"""
FIRST = """\
CRITICAL KM101 m2 kube-scheduler: Leader election disabled
  leader election is off
  fix (automatic, risk 2): set a line
"""
CONSEQUENCES = "  leads to:\n    WARNING KM113: Jobs got surplus pods\n"
SECOND = """
CRITICAL KM101 m3 kube-scheduler: Leader election disabled
  leads to:
    another
"""
LAST = "\nkubemend: 4 hosts, 2 critical, 1 warning, 0 unknown; report: /tmp/somewhere\n"
REPORT = BEGIN + FIRST + CONSEQUENCES + SECOND + LAST


def test_a_shortened_report_names_nothing_that_changes():
    text = readme.shortened(REPORT)
    changing = ("20261126", "2554f9", "2026-11-26", "18:16", "3.1 s", "UTC", "/tmp/")
    assert [word for word in changing if word in text] == []
    lines = text.splitlines()
    assert lines[:2] == [f"$ {readme.COMMAND}", "…"]
    assert lines[3] == "  v1.18.4 · 4 of 4 nodes read · … · nothing was changed"
    assert lines[4] == "run …, …, once …"


@pytest.mark.parametrize("rest", [CONSEQUENCES + SECOND, SECOND, ""])
def test_a_shortened_report_ends_with_its_first_finding_and_the_last_line(rest):
    lines = readme.shortened(BEGIN + FIRST + rest + LAST).splitlines()
    last = "kubemend: 4 hosts, 2 critical, 1 warning, 0 unknown; report: …"
    assert lines[-6:] == [*FIRST.splitlines(), "…", last, "…"]
    assert sum("KM" in line for line in lines) == 1


@pytest.mark.parametrize("text", [BEGIN + LAST, BEGIN + FIRST])
def test_a_report_without_a_finding_or_a_last_line_is_refused(text):
    with pytest.raises(SystemExit):
        readme.shortened(text)


def test_a_shortened_report_is_found_in_what_is_printed():
    shown = readme.shortened(REPORT).splitlines()[1:]
    printed = f"PLAY [Replay]\n{REPORT}ok: [localhost]\n"
    assert not console_examples.differs(shown, printed)
    for word in ("KM101 m2", "v1.18.4", "leader election is off", "4 hosts, 2 critical"):
        assert console_examples.differs(shown, printed.replace(word, "another"))


def test_the_command_names_what_an_installed_collection_has():
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    name = f"{galaxy['namespace']}.{galaxy['name']}"
    playbook, evidence = re.fullmatch(
        r"ansible-playbook (\S+) -e kubemend_evidence=(\S+)", readme.COMMAND
    ).groups()
    folder = f"~/.ansible/collections/ansible_collections/{name.replace('.', '/')}/"
    assert evidence.startswith(folder)
    example = evidence[len(folder) :]
    assert (ROOT / example).is_dir()
    assert example.partition("/")[0] not in galaxy["build_ignore"]
    assert playbook.startswith(f"{name}.")
    assert (ROOT / "playbooks" / f"{playbook[len(name) + 1 :]}.yml").is_file()


def test_the_report_of_the_readme_shows_one_finding():
    (found,) = console_examples.commands(ROOT / "README.md")
    command, shown = found
    assert command == readme.COMMAND
    assert sum(bool(readme.FINDING.match(line)) for line in shown) == 1
    assert (shown[0], shown[-1]) == ("…", "…")


def test_the_table_of_symptoms_has_the_numbers_of_their_pages():
    _catalogue, symptoms, _repaired = load()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, symptom in symptoms.items():
        page = (ROOT / "docs" / "symptoms" / f"{name}.md").read_text(encoding="utf-8")
        causes = len(re.findall(r"^\| \[KM\d+\]", page, re.MULTILINE))
        row = f"| [{symptom.title}](docs/symptoms/{name}.md) | `kubemend.remediation.{name}` |"
        assert f"{row} {causes} |" in text
        assert (ROOT / "playbooks" / f"{name}.yml").is_file()


def test_the_table_of_variables_agrees_with_the_page_of_all():
    page = variables.PAGE.read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in page.splitlines()
        if line.startswith("| `kubemend_")
    ]
    documented = {row[0].strip("`"): (row[1], row[-1]) for row in rows}
    common = variables.common_table().splitlines()[2:]
    assert common
    for line in common:
        name, default, meaning = (cell.strip() for cell in line.split("|")[1:-1])
        page_default, page_meaning = documented[name.strip("`")]
        assert default == page_default
        assert page_meaning.startswith(meaning)
        assert meaning.endswith(".")
