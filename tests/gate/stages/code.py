# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stages that look at the code: unit tests, the Python floor, lint, generated docs."""

from __future__ import annotations

import os
import pathlib

from tests.gate import counts, machine, progress, promtool, venvs
from tests.gate.runner import Context
from tests.gate.stages import nox

NODE_CODE = ("plugins/modules", "plugins/module_utils")
# What users and contributors read; .codespellrc says what of it is no word.
SPELLED = ("changelogs", "command", "docs", "examples", "extensions", "playbooks", "plugins")
SPELLED += ("roles", "CONTRIBUTING.md", "README.md", "SECURITY.md")


WORKERS = 2  # processes of a stage that runs its tests in parallel: the machines have two cores


def pytest(
    context: Context, *arguments: str, label: str = "", timeout: float = 900, **extra: str
) -> counts.Counts:
    """Run pytest in the environment of the tests, and count by its own record.

    Tests that passed in an interrupted run on the same bytes count and are not run again.
    """
    home = venvs.ensure("test")
    stage = context.name + label
    record = machine.OUTPUT / f"{stage}.xml"
    record.unlink(missing_ok=True)
    passed, before = progress.tests_file(stage), progress.tests_file(stage + ".before")
    done = progress.tests_passed(passed)
    if passed.parent.is_dir():
        before.write_text("".join(one + "\n" for one in done), encoding="utf-8")
        extra = {"KUBEMEND_GATE_PASSED": str(passed), "KUBEMEND_GATE_BEFORE": str(before), **extra}
    paths = str(venvs.collections())
    env = machine.environment(ANSIBLE_COLLECTIONS_PATH=paths, **extra)
    # The checkout too: each process of xdist loads tests.gate.resume.
    env["PYTHONPATH"] = os.pathsep.join([paths, str(machine.ROOT)])
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    returncode, _text = context.run(
        [
            home / "bin" / "python",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.gate.resume",
            "--junit-xml",
            record,
            *arguments,
        ],
        env=env,
        timeout=timeout,
    )
    return counts.from_junit(record, returncode, len(done))


def unit(context: Context) -> counts.Counts:
    """Run the unit tests in parallel; of those with a playbook, a third, which the commit draws.

    In a full run all of them, and every property test looks further (tests/unit/conftest.py).
    """
    extra = {"KUBEMEND_TEST_FULL": "1"} if context.full else {"KUBEMEND_DRAW": "1"}
    extra[promtool.VARIABLE] = promtool.ensure() or ""
    return pytest(
        context,
        "tests/unit",
        "tests/gate",
        "tests/fault_injection",
        "-n",
        str(WORKERS),
        "--dist",
        "worksteal",
        timeout=6 * 3600 if context.full else 3600,
        **extra,
    )


def secrets(context: Context) -> counts.Counts:
    """Check that no secret which the tests planted on a node is in a file that this run wrote.

    This stage is the last one.
    """
    found = counts.Counts()
    returncode, _text = context.run(
        [
            venvs.ensure("test") / "bin" / "python",
            "-m",
            "tests.unit.support.planted_secrets",
            machine.OUTPUT,
        ]
    )
    found.check("no planted secret in " + machine.OUTPUT.name, returncode == 0)
    return found


def browser(context: Context) -> counts.Counts:
    """Check report.html as a browser shows it; pictures and figures are in tests/output/browser."""
    if machine.need({"chromium": "chromium"}):
        return counts.skipped("chromium is not installed, and cannot be installed here")
    return pytest(context, "tests/browser", timeout=1800)


def floor(context: Context) -> counts.Counts:
    """Check that the code that runs on nodes stays within Python 3.6, without a Python 3.6."""
    found = counts.Counts()
    for folder in NODE_CODE:
        if not any((machine.ROOT / folder).rglob("*.py")):
            found.failed.append(f"{folder}: there is no code")
            continue
        # --eval-annotations: node code has no deferred annotations, so they count.
        returncode, _text = context.run(
            [
                context.tool("test", "vermin"),
                "--target=3.6-",
                "--eval-annotations",
                "--no-tips",
                "--violations",
                "--lint",
                folder,
            ]
        )
        found.check(folder, returncode == 0)
    return found


def lint(context: Context) -> counts.Counts:
    """Run ansible-lint as strict as it goes, codespell, and nox's lint: ruff, yamllint, mypy."""
    found = counts.Counts()
    home = venvs.ensure("test")
    paths = os.pathsep.join([str(venvs.collections()), str(venvs.bundled("containers.podman"))])
    env = machine.environment(
        ANSIBLE_COLLECTIONS_PATH=paths,
        ANSIBLE_HOME=str(machine.VENV / "ansible-home"),
        XDG_CACHE_HOME=str(machine.VENV / "cache"),
    )
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    for name, command in (
        ("ansible-lint", ["ansible-lint", "--offline", "--strict", "--nocolor"]),
        ("antsibull-changelog", ["antsibull-changelog", "lint"]),
        ("codespell", ["codespell", *SPELLED]),
    ):
        returncode, _text = context.run(
            [str(pathlib.Path(home / "bin" / command[0])), *command[1:]], env=env
        )
        found.check(name, returncode == 0)
    nox.sessions(context, found, "lint")
    return found


def docs(context: Context) -> counts.Counts:
    """Pages that are generated from the code are what the code generates.

    Plugin docs name only what exists; all of it makes a site.
    """
    found = counts.Counts()
    home = venvs.ensure("test")
    env = machine.environment(
        ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()), PYTHONPATH=str(venvs.collections())
    )
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    returncode, _text = context.run(
        [home / "bin" / "python", "-m", "tests.docs", "--check"], env=env
    )
    found.check("python -m tests.docs --check", returncode == 0)
    nox.sessions(context, found, "docs-check")
    returncode, _text = context.run([home / "bin" / "python", "-m", "tests.docs.site"], env=env)
    found.check(
        "make docs: the site is built without a warning, and every link in it leads somewhere",
        returncode == 0,
    )
    return found
