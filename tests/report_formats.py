# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every face of one audit: each as its schema or shape says, all of them with the same findings.

What they look like: tests/browser.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from tests import schemas

FORMATS = ("terminal", "json", "html", "junit", "prometheus", "sarif", "github")
LOADS = {"link", "img", "iframe", "object", "embed", "audio", "video", "source", "base"}


class Page(HTMLParser):
    """The findings of a report.html, and whatever in it could ask somebody."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.asks: list[str] = []
        self.findings: list[str] = []
        self.inside = self.head = self.style = False
        self.policy = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.asks += [f"<{tag}>"] * (tag in LOADS)
        self.asks += [
            f"{name} of <{tag}>"
            for name, value in attrs
            if name in ("src", "srcset", "style", "background", "action", "data")
            or (name == "href" and tag != "a")
            or name.startswith("on")
        ]
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"]
        if tag == "article":
            self.inside = "finding" in named.get("class", "").split()
            self.findings += [""] * self.inside
        self.head = self.head or (tag == "h4" and self.inside)
        self.style = tag == "style"

    def handle_endtag(self, tag):
        self.head = self.head and tag != "h4"
        self.style = self.style and tag != "style"

    def handle_data(self, data):
        if self.style and re.search(r"url\(|@import", data):
            self.asks.append("a style")
        if self.head:
            self.findings[-1] += data


def faces(folder: Path, printed: str) -> dict[str, set[tuple[str, str]]]:
    """{format: (code, host or "") of each finding}, every file checked on the way."""
    report = schemas.checked(
        "report", json.loads((folder / "report.json").read_text(encoding="utf-8"))
    )
    junit = (folder / "junit.xml").read_text(encoding="utf-8")
    assert not schemas.junit_complaints(junit)
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    assert not page.asks
    assert page.policy.startswith("default-src 'none'")
    text = (folder / "report.txt").read_text(encoding="utf-8")
    assert text.rstrip("\n") in printed
    told = [(one["code"], one["host"], one["component"]) for one in report["findings"]]
    return {
        "json": {(code, host or "") for code, host, _component in told},
        "junit": _of_junit(junit),
        "prometheus": _of_prometheus((folder / "kubemend.prom").read_text(), report["findings"]),
        "sarif": _of_sarif(json.loads((folder / "report.sarif").read_text()), report["findings"]),
        "github": _headed(re.findall(r"(?m)^::[a-z]+ title=(.*?)::", _unfenced(printed)), told),
        "html": _headed(page.findings, told),
        "terminal": _headed(
            re.findall(r"(?m)^ *(?:WAIVED )?(?:CRITICAL|WARNING|INFO) (KM.*)$", text), told
        ),
    }


def _of_junit(text: str) -> set[tuple[str, str]]:
    """Return the findings of junit.xml; a fault of a cluster fails in its suite too.

    Of one that is some host's, only that host's suite counts.
    """
    found = set()
    for suite in ElementTree.fromstring(text).iter("testsuite"):
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("system-out") is not None:
                found.add((case.get("name", "").split()[0], suite.get("hostname") or ""))
    return {
        (code, host)
        for code, host in found
        if host or not any(one == code and other for one, other in found)
    }


def _of_prometheus(text: str, findings) -> set[tuple[str, str]]:
    """Return the findings that have a sample; each sample has a finding."""
    samples = {
        (labels["code"], labels["host"])
        for line in text.splitlines()
        if line.startswith("kubemend_findings{")
        for labels in [dict(re.findall(r'([a-z]+)="([^"]*)"', line))]
    }
    places = {(one["code"], one["host"] or one["node"] or "") for one in findings}
    assert samples <= places
    return {
        (one["code"], one["host"] or "")
        for one in findings
        if (one["code"], one["host"] or one["node"] or "") in samples
    }


def _of_sarif(document, findings) -> set[tuple[str, str]]:
    """Return the findings whose identity a result has."""
    (run,) = document["runs"]
    identities = {one["partialFingerprints"]["kubemend/v1"] for one in run["results"]}
    assert identities == {one["id"] for one in findings}
    return {(one["code"], one["host"] or "") for one in findings if one["id"] in identities}


def _unfenced(printed: str) -> str:
    """Return the annotations of a workflow, as the runner reads them."""
    text = re.sub(r"(?ms)^::stop-commands::(\w+)$.*?^::\1::$", "", printed)
    return text.replace("%3A", ":").replace("%2C", ",")


def _headed(heads, told) -> set[tuple[str, str]]:
    """Return what headings of findings name, out of the known names.

    A head that names none of it is an error.
    """
    found = set()
    for head in heads:
        words = re.split(r"[\s:,]+", head)
        named = {
            (code, host or "")
            for code, host, _component in told
            if code in words and (host is None or host in words)
        }
        assert named, head
        found |= named
    return found
