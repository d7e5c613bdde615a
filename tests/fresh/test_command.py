# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/command.md, word by word: the command on a machine that has nothing, by Debian's pipx.

Packages of Debian come from where the gate has them from; pip gets the wheel of this checkout, and
those of tests/pins/command.txt, as a folder.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.docs import console_examples
from tests.fresh.container import fresh
from tests.gate import machine, tree, venvs

PAGE = machine.ROOT / "docs" / "command.md"
PYTHON = "3.11"  # Debian 12's


@pytest.fixture(scope="module", name="wheels")
def _wheels(tmp_path_factory):
    """Return a folder with the wheels of the command and of what it needs."""
    folder = tmp_path_factory.mktemp("wheels")
    source = tree.copy(tmp_path_factory.mktemp("source"), skip=("tests/",))
    programs = venvs.ensure("test") / "bin"
    env = machine.environment(ANSIBLE_HOME=str(source / "ansible"))
    build = [programs / "ansible-galaxy", "collection", "build", "--output-path", folder]
    subprocess.run(build, cwd=source, env=env, check=True, capture_output=True)
    artefact = next(folder.glob("*.tar.gz"))
    build = [
        *[programs / "python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"],
        *["--config-settings", f"artefact={artefact}", "--wheel-dir", folder, source / "command"],
    ]
    subprocess.run(build, cwd=source, env=env, check=True, capture_output=True)
    venvs.download("--python-version", PYTHON, "-r", str(venvs.PINS / "command.txt"), target=folder)
    return folder


def test_the_page_is_true_word_by_word(wheels):
    steps = console_examples.commands(PAGE)
    assert [command.split()[0] for command, _lines in steps].count("kubemend") >= 2
    with fresh(
        "command",
        *["--network", "host", "-v", f"{wheels}:/wheels:ro"],
        *["-e", "PIP_NO_INDEX=1", "-e", "PIP_FIND_LINKS=/wheels"],
    ) as node:
        assert node.run("command -v pip pipx ansible").returncode != 0, "the machine is not fresh"
        for command, lines in steps:
            # pipx tells its user to have this folder on the path.
            folder = "/wheels" if ".whl" in command else "/root"
            done = node.run(f"PATH=$PATH:/root/.local/bin; {command}", cwd=folder)
            missing = console_examples.differs(lines, done.stdout)
            assert not missing, (
                f"$ {command}\nthe page shows\n{missing}\nand what came is\n{done.stdout}"
            )
            assert done.returncode == 0, f"$ {command}\n{done.stdout}"
        # Nothing else of the package is on the path, and a wrong word is one sentence there too.
        assert node.run("ls /root/.local/bin").stdout == "kubemend\n"
        done = node.run("/root/.local/bin/kubemend audti")
        assert (done.returncode, done.stdout.count("\n")) == (2, 1)
        assert "the nearest one is audit" in done.stdout
        done = node.run("/root/.local/bin/kubemend audit localhost -c local")
        assert done.returncode == 0, done.stdout
        assert "kubemend: 1 host, " in done.stdout
