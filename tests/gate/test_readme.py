# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report in the README: what is kept of it, and that it fits what a terminal prints."""

from __future__ import annotations

from tests.docs import console_examples, readme, variables

REPORT = (
    """\
kubemend: replay of recorded evidence
run 20261126T181645Z-2554f9, 2026-11-26T18:16:45Z, replay: changes nothing, 3.1 s

CRITICAL KM101 m2 kube-scheduler: leader election is off
  pid 10103: kube-scheduler
"""
    + "  leads to:\n"
    + "".join(f"\nline {number}\n" for number in range(20))
    + """
kubemend: 4 hosts, 2 critical, 1 warning, 0 unknown; report: /tmp/somewhere
"""
)


def test_a_shortened_report_names_nothing_that_changes():
    text = readme.shortened(REPORT)
    assert not any(word in text for word in ("20261126", "2554f9", "18:16", "3.1 s", "/tmp/"))
    assert text.splitlines()[0] == f"$ {readme.COMMAND}"
    assert "CRITICAL KM101" in text
    assert "line 19" not in text
    assert "2 critical, 1 warning" in text


def test_a_shortened_report_is_found_in_what_is_printed():
    shown = readme.shortened(REPORT).splitlines()[1:]
    printed = f"PLAY [Replay]\n{REPORT}ok: [localhost]\n"
    assert not console_examples.differs(shown, printed)
    assert console_examples.differs(shown, printed.replace("KM101", "KM102"))


def test_common_variables_exist():
    rows = variables.common_table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(variables.COMMON)
