# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the gate reads out of its tools, and what it says at the end."""

from __future__ import annotations

import pathlib

from tests.gate import counts

SANITY = """\
Running sanity test "action-plugin-docs"
Running sanity test "compile" on Python 3.11
WARNING: Skipping sanity test "compile" on Python 3.12 because it could not be found.
WARNING: Skipping sanity test "import" on Python 3.12 because it could not be found.
WARNING: Skipping sanity test "pslint" because a program is missing.
Running sanity test "compile" on Python 3.13
Running sanity test "yamllint"
"""
BROKEN = (
    SANITY
    + """\
ERROR: Found 1 yamllint issue(s) which need to be resolved:
ERROR: galaxy.yml:3:1: error: too many blank lines
FATAL: The 2 sanity test(s) listed below (out of 4) failed. See error output above for details.
compile --python 3.13
yamllint
"""
)


def junit(tmp_path, body):
    path = tmp_path / "record.xml"
    path.write_text(f"<testsuites><testsuite>{body}</testsuite></testsuites>", encoding="utf-8")
    return path


def test_sanity_counts_each_python_and_names_what_was_left_out():
    found = counts.from_sanity(SANITY, 0)
    assert (found.passed, found.failed) == (4, [])
    assert found.skipped == [
        'sanity test "pslint" because a program is missing',
        "no Python 3.12 on this machine (compile, import)",
    ]


def test_sanity_names_what_failed():
    found = counts.from_sanity("\x1b[31m" + BROKEN, 1)
    assert (found.passed, found.failed) == (2, ["compile --python 3.13", "yamllint"])


def test_sanity_that_broke_or_ran_nothing_has_failed():
    assert counts.from_sanity(SANITY, 1).failed == ["ansible-test ended with exit code 1"]
    assert counts.from_sanity(SANITY, 1).passed == 0
    assert counts.from_sanity("", 0).failed == ["ansible-test ran no sanity test"]


def test_junit(tmp_path):
    path = junit(
        tmp_path,
        '<testcase classname="a" name="one"/>'
        '<testcase classname="a" name="two"><failure message="no&#10;more"/></testcase>'
        '<testcase classname="a" name="three"><skipped message="no podman"/></testcase>'
        '<testcase classname="a" name="four"><error message="fixture"/></testcase>'
        '<testcase classname="a" name="five"><failure message="AssertionError: &#10;PLAY'
        '&#10;[+9 more lines]">self = 1&#10;'
        "E       fatal: [m1]: no&#10;E       assert 1 == 2&#10;E         +1</failure></testcase>",
    )
    found = counts.from_junit(path, 1)
    assert (found.passed, found.skipped) == (1, ["three: no podman"])
    assert found.failed == [
        "a::two: no",
        "a::four: fixture",
        "a::five: AssertionError: fatal: [m1]: no assert 1 == 2",
    ]


def test_junit_never_passes_in_silence(tmp_path):
    assert counts.from_junit(tmp_path / "none.xml", 0).failed
    assert counts.from_junit(junit(tmp_path, ""), 5).failed == ["no test was found"]
    one = junit(tmp_path, '<testcase classname="a" name="one"/>')
    assert counts.from_junit(one, 0).failed == []
    assert counts.from_junit(one, 3).failed == ["exit code 3 although no test failed"]


def test_junit_counts_what_passed_before_an_interruption(tmp_path):
    one = junit(tmp_path, '<testcase classname="a" name="one"/>')
    assert counts.from_junit(one, 0, 4).passed == 5
    none = counts.from_junit(junit(tmp_path, ""), counts.NO_TESTS, 4)
    assert (none.passed, none.failed) == (4, [])
    assert counts.from_junit(junit(tmp_path, ""), 3, 4).failed


def test_summary_ends_with_the_counts_and_names_every_skip_and_failure():
    lines = [
        counts.Line("unit", counts.Counts(passed=7), 1.24),
        counts.Line(
            "lab", counts.Counts(passed=1, failed=["a\nb"], skipped=["no Debian 13", "x" * 900]), 60
        ),
    ]
    spent = counts.Spent(61, 0.25, [(12.34, "a::slow")], pathlib.Path("/logs"))
    text = counts.summary(lines, spent).splitlines()
    assert text[-1] == "8 passed, 1 failed, 2 skipped"
    assert "12.3  a::slow" in [line.strip() for line in text]
    assert [line for line in text if "/logs/STAGE.log" in line and "failed: lab" in line]
    assert [line for line in text if "61 seconds" in line and "25 %" in line]
    assert "skipped lab: no Debian 13" in text
    assert "FAILED lab: a b" in text
    assert max(map(len, text)) < 820
