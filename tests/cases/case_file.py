# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of cases and batches: where they are, and what is wrong with their form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import CATALOGUE

FOLDER = Path(__file__).resolve().parent
BATCHES = FOLDER / "batches"
NAME = re.compile(r"\d{3}-[a-z0-9-]+")
RELEASE = re.compile(r"v1\.\d{1,2}\.\d{1,2}")
ADDRESS = re.compile(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")
# Those of the recordings, podman's default, of the machine itself, and of RFC 5737.
OPEN_ADDRESSES = re.compile(
    r"(10\.88\.|10\.89\.|10\.96\.|10\.244\.|10\.43\.|127\.|0\.0\.0\.0|192\.0\.2\.|198\.51\.100\."
    r"|203\.0\.113\.)"
)
GRADES = ("right", "partly", "wrong", "silent", "harmful")
TEXTS = ("title", "release", "layout", "system", "what", "cause", "base")
REQUIRED = {*TEXTS, "batch", "links", "evidence", "expected"}
OPTIONAL = {"unread", "not_in_thread", "solved", "first_try"}
EXPECTED = {"codes", "wanted", "not_planned"}
EXPECTED_TOO = {"cause_in_text", "consequences"}
SENTENCES = (2, 5)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the second is ten times slower


def names() -> list[str]:
    """List the cases."""
    return sorted(path.stem for path in FOLDER.glob("*.yml") if NAME.fullmatch(path.stem))


def path_of(name: str) -> Path:
    """Return the file of a case."""
    return FOLDER / f"{name}.yml"


def read(name: str) -> dict[str, Any]:
    """Return a case."""
    return _loaded(path_of(name))


def _loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
    return found


def of_batch(number: int) -> list[str]:
    """List the cases of a batch."""
    return [name for name in names() if read(name).get("batch") == number]


def batches() -> Iterator[dict[str, Any]]:
    """Yield the batches."""
    for path in sorted(BATCHES.glob("*.yml")):
        yield _loaded(path)


def taken() -> dict[str, str]:
    """Return {link: case} of every thread that a batch took."""
    return {
        thread["link"]: thread["taken"]
        for batch in batches()
        for thread in batch.get("threads", ())
        if "taken" in thread
    }


def problems(case: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the form of a case."""
    keys = set(case)
    found = [f"{key} is missing" for key in sorted(REQUIRED - keys)]
    found += [f"{key} is no key of a case" for key in sorted(keys - REQUIRED - OPTIONAL)]
    if found:
        return found
    found += [f"{key} is no text" for key in TEXTS if not _is_text(case[key])]
    if found:
        return found
    return [*_form(case), *_expected(case["expected"]), *_first_try(case.get("first_try"))]


def _form(case: Mapping[str, Any]) -> Iterator[str]:
    if not RELEASE.fullmatch(case["release"]):
        yield f"release {case['release']} is none such as v1.30.4"
    if not case["links"] or not all(str(link).startswith("https://") for link in case["links"]):
        yield "links are addresses that begin with https://"
    if not SENTENCES[0] <= len(re.findall(r"[.!?](?:\s|$)", case["what"])) <= SENTENCES[1]:
        yield "what has two to five sentences"
    for address in sorted(set(ADDRESS.findall(str(case["evidence"])))):
        if not OPEN_ADDRESSES.match(address):
            yield f"{address} is an address of others"
    for key in ("unread", "not_in_thread"):
        if not all(_is_text(text) for text in case.get(key, ())):
            yield f"{key} is a list of texts"


def _expected(expected: Mapping[str, Any]) -> Iterator[str]:
    keys = set(expected)
    yield from (f"expected.{key} is missing" for key in sorted(EXPECTED - keys))
    unknown = sorted(keys - EXPECTED - EXPECTED_TOO)
    yield from (f"expected.{key} is no key of a case" for key in unknown)
    if EXPECTED - keys:
        return
    codes = [*expected["codes"], *expected.get("consequences", ())]
    yield from (f"there is no fault {code}" for code in codes if code not in CATALOGUE)
    kinds = step_kinds.in_plans()
    yield from (f"no step is {kind}" for kind in expected["not_planned"] if kind not in kinds)
    if not expected["codes"] and not expected.get("cause_in_text"):
        yield "without a code, cause_in_text has the words that name the cause"


def _first_try(found: Mapping[str, Any] | None) -> Iterator[str]:
    if found is None:
        return
    if set(found) - {"found", "planned", "grade", "reason"} or "found" not in found:
        yield "first_try is written by the tool"
    if found.get("grade", GRADES[0]) not in GRADES:
        yield f"first_try.grade is one of {', '.join(GRADES)}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def doubles(links: Iterable[str]) -> list[str]:
    """Return the links that are there twice."""
    seen: set[str] = set()
    return [link for link in links if link in seen or seen.add(link)]
