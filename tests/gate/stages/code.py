# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stages that look at the code: unit tests, the Python floor, lint, generated docs."""

from __future__ import annotations

import os
import pathlib

from tests.gate import counts, machine, venvs
from tests.gate.runner import Context

NODE_CODE = ("plugins/modules", "plugins/module_utils")


def pytest(context: Context, *arguments: str, label: str = "", timeout: float = 900, **extra: str) -> counts.Counts:
    """Pytest in our environment, counted from its own record."""
    home = venvs.ensure("test")
    record = machine.OUTPUT / "{0}{1}.xml".format(context.name, label)
    record.unlink(missing_ok=True)
    env = machine.environment(ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()), PYTHONPATH=str(venvs.collections()), **extra)
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    returncode, _text = context.run(
        [home / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml", record, *arguments],
        env=env, timeout=timeout)
    return counts.from_junit(record, returncode)


def unit(context: Context) -> counts.Counts:
    """Full: every property test looks further, by seeds of its own (tests/unit/conftest.py)."""
    found = counts.Counts()
    extra = {"KUBEMEND_TEST_FULL": "1"} if context.full else {}
    for label, folder in (("", "tests/unit"), ("-gate", "tests/gate"), ("-faults", "tests/faults")):
        found.add(pytest(context, folder, label=label, timeout=4 * 3600 if context.full else 7200, **extra))
    return found


def secrets(context: Context) -> counts.Counts:
    """Last of all: no secret that the tests planted on a node lies in anything that this run wrote."""
    found = counts.Counts()
    returncode, _text = context.run([venvs.ensure("test") / "bin" / "python", "-m", "tests.unit.planted", machine.OUTPUT])
    found.check("no planted secret in " + machine.OUTPUT.name, returncode == 0)
    return found


def browser(context: Context) -> counts.Counts:
    """report.html as a browser shows it; pictures and figures lie in tests/output/browser."""
    if machine.need({"chromium": "chromium"}):
        return counts.skipped("chromium is not installed, and cannot be installed here")
    return pytest(context, "tests/browser", timeout=1800)


def floor(context: Context) -> counts.Counts:
    """What runs on nodes stays within Python 3.6, shown without a Python 3.6."""
    found = counts.Counts()
    for folder in NODE_CODE:
        if not any((machine.ROOT / folder).rglob("*.py")):
            found.failed.append("{0}: there is no code".format(folder))
            continue
        # --eval-annotations: node code has no deferred annotations, so they count.
        returncode, _text = context.run([context.tool("test", "vermin"), "--target=3.6-", "--eval-annotations", "--no-tips",
                                         "--violations", "--lint", folder])
        found.check(folder, returncode == 0)
    return found


def lint(context: Context) -> counts.Counts:
    """ansible-lint as strict as it goes, and yamllint for what it leaves out."""
    found = counts.Counts()
    home = venvs.ensure("test")
    paths = os.pathsep.join([str(venvs.collections()), str(venvs.bundled("containers.podman"))])
    env = machine.environment(ANSIBLE_COLLECTIONS_PATH=paths, ANSIBLE_HOME=str(machine.VENV / "ansible-home"),
                              XDG_CACHE_HOME=str(machine.VENV / "cache"))
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    for name, command in (("ansible-lint", ["ansible-lint", "--offline", "--strict", "--nocolor"]),
                          ("yamllint", ["yamllint", "--strict", "."]),
                          ("antsibull-changelog", ["antsibull-changelog", "lint"])):
        returncode, _text = context.run([str(pathlib.Path(home / "bin" / command[0])), *command[1:]], env=env)
        found.check(name, returncode == 0)
    return found


def docs(context: Context) -> counts.Counts:
    """Pages that are generated from the code are what the code generates; plugin docs name only what exists; all of it makes a site."""
    found = counts.Counts()
    home = venvs.ensure("test")
    env = machine.environment(ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()), PYTHONPATH=str(venvs.collections()))
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    returncode, _text = context.run([home / "bin" / "python", "-m", "tests.docs", "--check"], env=env)
    found.check("python -m tests.docs --check", returncode == 0)
    returncode, _text = context.run([home / "bin" / "antsibull-docs", "lint-collection-docs", "--plugin-docs", "--skip-rstcheck", "."], env=env)
    found.check("antsibull-docs lint-collection-docs", returncode == 0)
    returncode, _text = context.run([home / "bin" / "python", "-m", "tests.docs.site"], env=env)
    found.check("make docs: the site is built without a warning, and every link in it leads somewhere", returncode == 0)
    return found
