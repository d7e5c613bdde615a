# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of fault pages that come from unit tests: noted on request, else compared."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import examples

SOURCES = {example["source"]: (code, example["text"]) for code, example in examples.read().items()}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a source that is no test any more: nothing would compare its example."""
    if config.option.keyword or any("::" in argument for argument in config.args):
        return
    if os.environ.get(examples.SEEN):
        return
    # A file is resolved once: of 30,000 tests one by one that takes ten seconds of each process.
    files_of_items = {item.path for item in items}
    prefixes = {
        path: examples.source(path, "")
        for path in files_of_items
        if path.resolve().is_relative_to(examples.UNIT)
    }
    names = {prefixes[item.path] + item.name for item in items if item.path in prefixes}
    files = {name.partition("::")[0] for name in names}
    gone = [name for name in SOURCES if name.partition("::")[0] in files and name not in names]
    if gone:
        raise pytest.UsageError(f"run python -m tests.docs.examples: no test is {gone}")


@pytest.fixture(autouse=True)
def _example(request: pytest.FixtureRequest) -> Iterator[None]:
    name = examples.source(request.node.path, request.node.name)
    notes = os.environ.get(examples.SEEN)
    if not notes and name not in SOURCES:
        yield
        return
    with examples.Watch() as watch:
        yield
    found = examples.first(watch.findings)
    if notes:
        with Path(notes).open("a", encoding="utf-8") as file:
            for code, text in found.items():
                file.write(json.dumps([code, name, text]) + "\n")
        return
    code, text = SOURCES[name]
    assert found.get(code) == text, "run python -m tests.docs.examples"
