# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command: its wheel, made of the artefact, in an environment that has nothing else."""

from __future__ import annotations

import pathlib
import zipfile

from tests.gate import counts, machine, venvs
from tests.gate.runner import Context

PINS = venvs.PINS / "command.txt"
FINDING = "KM101"


def wheel(
    context: Context, artefact: pathlib.Path, source: pathlib.Path, target: pathlib.Path
) -> pathlib.Path | None:
    """Build the wheel with pip, as a user of a checkout does; return its path, if there is one."""
    target.mkdir()
    context.run(
        [
            *[venvs.ensure("test") / "bin" / "python", "-m", "pip", "wheel", "--quiet"],
            *["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", target],
            *["--config-settings", f"artefact={artefact}", source],
        ]
    )
    wheels = list(target.glob("kubemend-*.whl"))
    return wheels[0] if len(wheels) == 1 else None


def contents(artefact_files: set[str], path: pathlib.Path, found: counts.Counts) -> None:
    """Compare the wheel's files with those of the artefact and of the checkout."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        damaged = archive.testzip()
    prefix = "kubemend/collections/ansible_collections/kubemend/remediation/"
    carried = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    found.check("the wheel can be read", damaged is None)
    found.check("the wheel carries the files of the artefact", carried == artefact_files)
    strange = [name for name in names if name.startswith("/") or ".." in name or " " in name]
    found.check("the wheel has strange names: " + ", ".join(strange[:3]), not strange)


def installed(
    context: Context, path: pathlib.Path, base: pathlib.Path, found: counts.Counts
) -> None:
    """Install the wheel into a new environment, and use what its user sees."""
    home, elsewhere = base / "venv of the command", base / "anywhere"
    elsewhere.mkdir()
    python = venvs.find_python("command")
    context.run([python, "-m", "venv", "--without-pip", home])
    returncode, _text = context.run(
        [
            *[venvs.ensure("test") / "bin" / "python", "-m", "pip", "--python", home],
            # Only what runs is compiled: that of all files takes longer than the rest.
            *["install", "--quiet", "--no-input", "--no-compile"],
            *["--disable-pip-version-check", "--constraint", PINS, path],
        ]
    )
    if not found.check("pip install kubemend-*.whl", returncode == 0):
        return
    program = home / "bin" / "kubemend"
    env = machine.environment(HOME=str(base))

    def use(*words: str) -> tuple[int, str]:
        # by the interpreter: the path of a script with a space fits into no first line
        return context.run([home / "bin" / "python", program, *words], cwd=elsewhere, env=env)

    version = path.name.split("-")[1]
    found.check("kubemend --version", use("--version") == (0, f"kubemend {version}\n"))
    returncode, text = use("replay", "two-leaders", "--nagios")
    found.check(
        "kubemend --nagios is one line and 2",
        returncode == 2 and text.startswith("KUBEMEND CRITICAL - ") and text.count("\n") == 1,
    )
    # Port 1 refuses at once: the host is in the report, and nothing of this machine is read.
    silent = (
        "node,",
        "-e",
        "ansible_host=127.0.0.1 ansible_port=1",
        "-e",
        "kubemend_fail_on=warning",
    )
    returncode, text = use("audit", "-i", *silent)
    found.check("kubemend audit -i names the host", returncode == 2 and "KM901 node" in text)
    hint = "explained by kubemend explain KM901" in text and "ansible-playbook" not in text
    found.check("the report names this command", hint)
    returncode, text = use("explain", FINDING.lower())
    found.check("kubemend explain", returncode == 0 and text.startswith(f"# {FINDING} "))
    returncode, text = use("history")
    found.check("kubemend history", returncode == 0 and "hosts of no proven cluster: 1 run" in text)
    returncode, text = use("report", "last", "--format", "json")
    found.check("kubemend report", returncode == 0 and '"schema": "kubemend.report/1"' in text)
    returncode, text = use("expalin", FINDING)
    found.check(
        "a wrong sub-command is one sentence and 2",
        returncode == 2 and "the nearest one is explain" in text and text.count("\n") == 1,
    )
    completion(context, home, elsewhere, found)


def completion(
    context: Context, home: pathlib.Path, cwd: pathlib.Path, found: counts.Counts
) -> None:
    """Let bash complete a sub-command and a code, as its user does with the tab key."""
    line = (
        'eval "$(kubemend completion bash)"; complete -p kubemend;'
        ' COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9 COMP_WORDBREAKS=" " _ARGCOMPLETE=1'
        " _ARGCOMPLETE_SUPPRESS_SPACE=0 kubemend 8>&1 9>/dev/null >/dev/null 2>&1"
    )
    env = machine.environment()
    # A link, because a shell starts the script by its first line.
    (cwd / "bin").mkdir()
    script = cwd / "bin" / "kubemend"
    script.write_text(
        f'#!/bin/sh\nexec "{home}/bin/python" "{home}/bin/kubemend" "$@"\n', encoding="utf-8"
    )
    script.chmod(0o755)
    env["PATH"] = f"{script.parent}:{env['PATH']}"
    for words, wanted in (("kubemend hist", "history"), ("kubemend explain KM10", FINDING)):
        returncode, text = context.run(["bash", "-c", line, "bash", words], cwd=cwd, env=env)
        found.check(
            f"bash completes {words!r}",
            returncode == 0 and "complete -o" in text and wanted in text.replace("\v", " "),
        )
