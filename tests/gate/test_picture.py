# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The picture of the README: what it shows of a report, and that it reads on any page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.docs import ROOT, picture

REPORT = """\
PLAY [Replay] ***
\x1b[0;32mok: [localhost]\x1b[0m
kubemend replay of recorded evidence · one · 2 of 2 nodes read · 3 s · nothing was changed
run 20261127T045222Z-900ec3, 2026-11-27 04:52 UTC

  \x1b[1;31m1 critical\x1b[0m   0 warning

\x1b[1;31mCRITICAL\x1b[0m KM101 m2: a <b> & c
  evidence: %s

healthy: m1
note: a note

plan:
  \x1b[1;33m01-m2 \x1b[0medit

\x1b[1;31mCRITICAL\x1b[0m KM101 m2: a <b> & c
explained in /somewhere/<code>.md, and in report.html
kubemend: 2 hosts, 1 critical, 0 warning, 0 unknown; report: /tmp/somewhere
\x1b[0;32mok: [localhost]\x1b[0m
""" % ("x" * 200)
SVG = "{http://www.w3.org/2000/svg}"


def rows(text: str) -> list[str]:
    found = ElementTree.fromstring(text).iter(f"{SVG}text")
    return ["".join(row.itertext()) for row in found]


def test_it_has_the_command_the_findings_and_the_end():
    lines = [picture.CODE.sub("", line) for line in picture.shown(REPORT)]
    assert lines[0] == picture.COMMAND
    assert lines[1] == (
        "kubemend replay of recorded evidence · one · 2 of 2 nodes read · nothing was changed"
    )
    assert [line for line in lines if "KM101" in line] == ["CRITICAL KM101 m2: a <b> & c"] * 2
    assert lines[-1].endswith("report: ~/.kubemend/runs/…")
    text = "\n".join(lines)
    assert not re.search("healthy|note:|plan:|explained|ok:|PLAY|2026|/tmp|\\d s\\b", text)


def test_colours_are_those_of_the_terminal_and_every_part_has_its_column():
    assert list(picture.parts("  \x1b[1;31mA\x1b[0m b")) == [
        ("", "  "),
        (picture.COLOURS["31"], "A"),
        ("", " b"),
    ]
    drawing = ElementTree.fromstring(picture.drawn(["  \x1b[1;31mA\x1b[0m b"]))
    first, second = drawing.iter(f"{SVG}tspan")
    columns = [
        (float(span.attrib["x"]) - picture.MARGIN) / picture.COLUMN for span in (first, second)
    ]
    assert [round(column) for column in columns] == [2, 4]
    assert (first.attrib["fill"], second.get("fill")) == (picture.COLOURS["31"], None)


def test_several_spaces_stay_several():
    (row,) = rows(picture.drawn(["a   b"]))
    assert row.split("a")[1].split("b")[0] in ("\u00a0\u00a0 ", " \u00a0\u00a0")


def test_text_is_escaped_and_cut_to_the_width():
    lines = rows(picture.drawn(picture.shown(REPORT)))
    assert "CRITICALKM101 m2: a <b> & c" in lines
    assert max(map(len, lines)) <= picture.WIDEST
    assert any(line.endswith("x…") for line in lines)


def test_the_picture_asks_for_nothing_and_brings_its_ground():
    text = picture.FILE.read_text(encoding="utf-8")
    drawing = ElementTree.fromstring(text)
    ground = drawing.find(f"{SVG}rect")
    assert ground is not None
    assert ground.attrib["fill"] == picture.GROUND
    addresses = re.findall(r"https?://[^\"]+", text)
    assert addresses == ["http://www.w3.org/2000/svg"]
    for colour in (picture.TEXT, *picture.COLOURS.values()):
        assert contrast(colour, picture.GROUND) >= 4.5


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.playbook
def test_the_checked_in_picture_is_that_of_the_example():
    assert picture.FILE.read_text(encoding="utf-8") == picture.page()


def test_both_readmes_show_it():
    for name in ("README.md", "README.zh-CN.md"):
        assert "](docs/img/report.svg)" in (ROOT / name).read_text(encoding="utf-8")
