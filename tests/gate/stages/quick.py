# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a contributor runs before a commit.

Tests that start no playbook, and lint of what is changed.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

from tests.gate import counts, machine, venvs
from tests.gate.runner import Context
from tests.gate.stages.code import NODE_CODE, WORKERS, pytest

# Nothing runs beside these tests, and a fifth of their time is waiting for processes.
QUICK_WORKERS = WORKERS + 1

TYPED = ("action", "filter", "lookup", "module_utils", "modules", "plugin_utils")
_PLUGINS = "ansible_collections.kubemend.remediation.plugins"
PACKAGES = tuple(word for name in TYPED for word in ("-p", f"{_PLUGINS}.{name}"))
PLAYBOOKS = ("playbooks/", "roles/", "extensions/", "meta/")


def unit(context: Context) -> counts.Counts:
    """Run the unit tests that start no playbook (tests/unit/conftest.py marks the others).

    Properties are tried with fewer examples than in `make test`.
    """
    return pytest(
        context,
        "tests/unit",
        "tests/gate",
        "-m",
        "not playbook",
        "-n",
        str(QUICK_WORKERS),
        "--dist",
        "worksteal",
        timeout=1800,
        KUBEMEND_TEST_QUICK="1",
    )


def lint(context: Context) -> counts.Counts:
    """Run the linters over the files that differ from the branch's upstream.

    A branch without an upstream is compared with the last commit.
    """
    found = counts.Counts()
    names = changed()
    if not names:
        return counts.skipped("no file is changed")
    home = venvs.ensure("test")
    paths = os.pathsep.join([str(venvs.collections()), str(venvs.bundled("containers.podman"))])
    env = machine.environment(
        ANSIBLE_COLLECTIONS_PATH=paths,
        ANSIBLE_HOME=str(machine.VENV / "ansible-home"),
        XDG_CACHE_HOME=str(machine.VENV / "cache"),
        MYPYPATH=str(venvs.collections()),
    )
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    for name, command in commands(names).items():
        tool = pathlib.Path(home / "bin" / command[0])
        returncode, _text = context.run([tool, *command[1:]], env=env)
        found.check(name, returncode == 0)
    return found


def commands(names: list[str]) -> dict[str, list[str]]:
    """Give each linter the files that it is for; one without files does not run."""
    python = [name for name in names if name.endswith(".py")]
    yaml = [name for name in names if name.endswith((".yml", ".yaml"))]
    on_nodes = [name for name in python if name.startswith(NODE_CODE)]
    playbooks = [name for name in yaml if name.startswith(PLAYBOOKS)]
    fragments = [name for name in yaml if name.startswith("changelogs/fragments/")]
    found: dict[str, list[str]] = {}
    if python:
        found["ruff check"] = ["ruff", "check", *python]
        found["ruff format"] = ["ruff", "format", "--check", *python]
    if any(name.startswith("plugins/") for name in python):
        # The types of one file depend on others: mypy reads all of them, in seconds.
        found["mypy"] = ["mypy", "--config-file", str(machine.ROOT / "mypy.ini"), *PACKAGES]
    if on_nodes:
        found["vermin"] = [
            "vermin",
            "--target=3.6-",
            "--eval-annotations",
            "--no-tips",
            "--violations",
            "--lint",
            *on_nodes,
        ]
    if yaml:
        found["yamllint"] = ["yamllint", "--strict", *yaml]
    if playbooks:
        found["ansible-lint"] = ["ansible-lint", "--offline", "--strict", "--nocolor", *playbooks]
    if fragments:
        found["antsibull-changelog"] = ["antsibull-changelog", "lint"]
    return found


def changed() -> list[str]:
    """List files that differ from the upstream branch, or without one from the last commit."""
    base = _git("merge-base", "HEAD", "@{upstream}") or ["HEAD"]
    names = _git("diff", "--name-only", base[0])
    names += _git("ls-files", "--others", "--exclude-standard")
    return sorted({name for name in names if (machine.ROOT / name).is_file()})


def _git(*words: str) -> list[str]:
    done = subprocess.run(
        ["git", *words],
        cwd=machine.ROOT,
        env=machine.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines() if done.returncode == 0 else []
