# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/quickstart.md, word by word, on a machine that has nothing.

Its commands in their order, and what the page shows of their output.

Packages of Debian come from where the gate has them from; ansible-core's wheels are fetched once,
as for every environment of the gate, and the machine gets them as a folder.
"""

from __future__ import annotations

import pytest

from tests.docs import console_examples
from tests.fresh.container import fresh
from tests.gate import machine, tree, venvs

PAGE = machine.ROOT / "docs" / "quickstart.md"
WHERE = "/root/kubemend remediation"
PYTHON = "3.11"  # Debian 12's


@pytest.fixture(scope="module", name="wheels")
def _wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    venvs.download("--python-version", PYTHON, "-r", str(venvs.PINS / "audit.txt"), target=folder)
    return folder


def test_the_page_is_true_word_by_word(wheels):
    steps = console_examples.commands(PAGE)
    assert len(steps) >= 6, "the page shows next to nothing"
    with fresh(
        "quickstart",
        "--network",
        "host",
        "-v",
        f"{wheels}:/wheels:ro",
        "-e",
        "PIP_NO_INDEX=1",
        "-e",
        "PIP_FIND_LINKS=/wheels",
    ) as node:
        assert node.run("command -v make git pip ansible").returncode != 0, (
            "the machine is not fresh"
        )
        node.put({name: machine.ROOT / name for name in tree.files(skip=tree.NO_CODE)}, WHERE)
        for command, lines in steps:
            done = node.run(command, cwd=WHERE)
            missing = console_examples.differs(lines, done.stdout)
            assert not missing, (
                f"$ {command}\nthe page shows\n{missing}\nand what came is\n{done.stdout}"
            )
            # make's own words show that it failed, and the page shows them where it does
            assert done.returncode == (2 if any("Error 2" in line for line in lines) else 0), (
                f"$ {command}\n{done.stdout}"
            )
