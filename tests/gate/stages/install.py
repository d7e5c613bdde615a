# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stages that use the collection as its users do.

They use it from a checkout, and installed from its artefact.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import tarfile

from tests.docs import console_examples
from tests.gate import counts, machine, tree, venvs
from tests.gate.runner import Context
from tests.gate.stages import command, nox

# All that an operator needs, and nothing else.
SHIPPED = {
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "FILES.json",
    "LICENSE",
    "MAINTAINERS.md",
    "MANIFEST.json",
    "README.md",
    "README.zh-CN.md",
    "SECURITY.md",
    "changelogs",
    "docs",
    "examples",
    "extensions",
    "meta",
    "playbooks",
    "plugins",
    "roles",
    "tests",
}
SCHEMAS = {
    "docs/schema/report-1.json",
    "docs/schema/evidence-1.json",
    "docs/schema/catalogue-1.json",
    "docs/schema/junit.xsd",
}
NEEDED = {"LICENSE", "README.md", "examples", "meta", "playbooks", "plugins"}
FINDING = "KM101"
# of the evidence that make audit judges without an inventory
REPLAY = "ansible-playbook kubemend.remediation.replay"


def clone(context: Context) -> counts.Counts:
    """Run make audit in a fresh checkout with a space in its path and a hostile environment."""
    found = counts.Counts()
    with tree.scratch("clone") as base:
        where = tree.copy(base / "a fresh checkout")
        hostile = machine.environment(
            HOME=str(base),
            ANSIBLE_COLLECTIONS_PATH="/nonexistent",
            ANSIBLE_STDOUT_CALLBACK="no.such.callback",
            ANSIBLE_STRATEGY="free",
            PYTHONPATH="/nonexistent",
            ANSIBLE_LIBRARY="/nonexistent",
            PIP_CACHE_DIR=os.environ.get("PIP_CACHE_DIR")
            or str(pathlib.Path("~/.cache/pip").expanduser()),
        )
        returncode, text = context.run(["make", "audit"], cwd=where, env=hostile)
        found.check("make audit ends with 0", returncode == 0)
        found.check("make audit names " + FINDING, FINDING in text)
        consoles = list(console_examples.commands(machine.ROOT / "README.md"))
        found.check(
            "the README shows a replay once",
            [command.split(" -e")[0] for command, _lines in consoles] == [REPLAY],
        )
        for command, lines in consoles:
            missing = console_examples.differs(lines, text)
            found.check(
                "the README shows what make audit prints: " + (missing or "all of it"),
                command.startswith(REPLAY) and not missing,
            )
        returncode, text = context.run(
            ["make", "audit", "ARGS=-e kubemend_fail_on=critical"], cwd=where, env=hostile
        )
        found.check(
            "make audit with kubemend_fail_on=critical ends with 2",
            _make_code(returncode, text) == 2,
        )
        found.check("the second make audit makes nothing", "making .venv" not in text)
        returncode, text = context.run(
            ["make", "audit", "INVENTORY=no such file"], cwd=where, env=hostile
        )
        found.check(
            "a missing inventory is one sentence and 2",
            _make_code(returncode, text) == 2
            and "no such file" in text
            and "Traceback" not in text,
        )
    return found


def _make_code(returncode: int, text: str) -> int | None:
    """Make itself ends with 2 for every failure; what it says is what its command ended with."""
    return 2 if returncode == 2 and "Error 2" in text else None


def package(context: Context) -> counts.Counts:
    """Check the artefact: its files, the importer's verdict, and its use without a checkout."""
    found = counts.Counts()
    with tree.scratch("package") as base:
        where = tree.copy(base / "source")
        home = venvs.ensure("test")
        env = machine.environment(HOME=str(base), ANSIBLE_HOME=str(base / "ansible"))
        env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
        returncode, _text = context.run(
            [home / "bin" / "ansible-galaxy", "collection", "build", "--output-path", base],
            cwd=where,
            env=env,
        )
        artefacts = list(base.glob("kubemend-remediation-*.tar.gz"))
        if not found.check(
            "ansible-galaxy collection build", returncode == 0 and len(artefacts) == 1
        ):
            return found
        contents(context, artefacts[0], found)
        installed(context, artefacts[0], base, env, found)
        with_command(context, artefacts[0], base, where, found)
        imported(context, found)
        automation(context, where / "examples" / "automation", base, env, found)
    return found


def with_command(
    context: Context,
    artefact: pathlib.Path,
    base: pathlib.Path,
    source: pathlib.Path,
    found: counts.Counts,
) -> None:
    """Check the wheel of the command, which carries the artefact."""
    wheel = command.wheel(context, artefact, source / "command", base / "wheel")
    if not found.check("pip wheel command", wheel is not None) or wheel is None:
        return
    with tarfile.open(artefact) as archive:
        names = {member.name for member in archive.getmembers() if member.isfile()}
    command.contents(names, wheel, found)
    command.installed(context, wheel, base, found)


def contents(context: Context, artefact: pathlib.Path, found: counts.Counts) -> None:
    with tarfile.open(artefact) as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
        size = artefact.stat().st_size
    context.note(f"{len(names)} files, {size} bytes packed")
    tops = {name.split("/")[0] for name in names}
    found.check(
        "the artefact lacks " + ", ".join(sorted(NEEDED - tops) or ["nothing"]), not NEEDED - tops
    )
    found.check(
        "the artefact holds " + ", ".join(sorted(tops - SHIPPED) or ["nothing strange"]),
        not tops - SHIPPED,
    )
    lacking = sorted(SCHEMAS.difference(names))
    found.check("the artefact lacks schemas: " + ", ".join(lacking), not lacking)
    cases = {
        name.split("/")[1]
        for name in names
        if name.startswith("examples/") and "/evidence/" in name
    }
    found.check(
        "the artefact holds recorded cases beside the example: " + ", ".join(sorted(cases)),
        cases == {"two-leaders"},
    )
    tests = [name for name in names if name.startswith("tests/") and name != "tests/config.yml"]
    found.check("the artefact holds tests: " + ", ".join(tests[:3]), not tests)
    waste = [
        name
        for name in names
        if name.endswith((".pyc", ".retry", ".tar.gz", ".log")) or "__pycache__" in name
    ]
    found.check("the artefact holds leftovers: " + ", ".join(waste[:3]), not waste)


def installed(
    context: Context,
    artefact: pathlib.Path,
    base: pathlib.Path,
    env: dict[str, str],
    found: counts.Counts,
) -> None:
    """Into an empty path, run by name from somewhere else."""
    home = venvs.ensure("test")
    target, elsewhere = base / "installed", base / "elsewhere"
    elsewhere.mkdir()
    returncode, _text = context.run(
        [
            home / "bin" / "ansible-galaxy",
            "collection",
            "install",
            "--offline",
            "-p",
            target,
            artefact,
        ],
        cwd=elsewhere,
        env=env,
    )
    if not found.check("ansible-galaxy collection install", returncode == 0):
        return
    env = {**env, "ANSIBLE_COLLECTIONS_PATH": str(target)}
    example = (
        target / "ansible_collections" / "kubemend" / "remediation" / "examples" / "two-leaders"
    )
    returncode, text = context.run(
        [
            home / "bin" / "ansible-playbook",
            "kubemend.remediation.replay",
            "-e",
            f"kubemend_evidence={example}",
        ],
        cwd=elsewhere,
        env=env,
    )
    found.check("the installed replay ends with 0", returncode == 0)
    found.check("the installed replay names " + FINDING, FINDING in text)
    found.check(
        "the installed replay writes report.html",
        any((base / ".kubemend" / "runs").glob("*/report.html")),
    )
    returncode, text = context.run(
        [
            home / "bin" / "ansible-doc",
            "--metadata-dump",
            "--no-fail-on-errors",
            "kubemend.remediation",
        ],
        cwd=elsewhere,
        env=env,
    )
    found.check("ansible-doc reads every plugin", returncode == 0 and '"error"' not in text)


def imported(context: Context, found: counts.Counts) -> None:
    """Run what a Galaxy server does with an upload; a warning of the importer counts."""
    text = nox.sessions(context, found, "build-import-check")
    complaints = [line for line in text.splitlines() if line.startswith(("ERROR", "WARNING"))]
    found.check("galaxy-importer has nothing to say: " + "; ".join(complaints[:3]), not complaints)


def automation(
    context: Context,
    examples: pathlib.Path,
    base: pathlib.Path,
    env: dict[str, str],
    found: counts.Counts,
) -> None:
    """Read the examples for other programs with these programs."""
    home = venvs.ensure("test")
    returncode, _text = context.run(
        [
            home / "bin" / "ansible-builder",
            "create",
            "-f",
            examples / "execution-environment.yml",
            "-c",
            base / "image",
        ],
        cwd=base,
        env=env,
    )
    found.check(
        "ansible-builder create", returncode == 0 and (base / "image" / "Containerfile").is_file()
    )
    units = sorted(examples.glob("*.service")) + sorted(examples.glob("*.timer"))
    if shutil.which("systemd-analyze"):
        # It ends with 0 for a setting that it does not know, and says so.
        returncode, text = context.run(["systemd-analyze", "verify", *units], cwd=base, env=env)
        about_ours = [line for line in text.splitlines() if "kubemend-audit" in line]
        found.check(
            "systemd-analyze verify: " + "; ".join(about_ours[:3]),
            returncode == 0 and not about_ours,
        )
    else:
        found.skipped.append(
            "the systemd units of examples/automation: this machine has no systemd-analyze"
        )
