# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The oldest supported ansible-core, and the newest that this machine's Pythons allow.

Playbooks run on both, and on one of those between them, which the commit draws. ansible-test sanity
takes minutes: `make test` runs it on the oldest or the newest, which the commit draws too, on what
users get, in one Python of controllers and one of nodes. It imports every file of nodes. The import
of a controllers' file takes half a second, because all that it needs is imported anew, and pylint
takes as long: both get a third of the files, and ruff and mypy get all. The whole matrix has all
cores, sanity of both with every Python and file, and the tests too.
"""

from __future__ import annotations

import ast
import getpass
import json
import os
import pathlib
import shutil
import subprocess

from tests.gate import counts, machine, tree, venvs
from tests.gate.runner import Context
from tests.gate.stages.code import NODE_CODE

NEWEST = ("2.21", "2.19")
# Supported, and in make test only by playbooks: ansible-test sanity runs in the workflow.
BETWEEN = ("2.17", "2.18", "2.20")
# Of so many files, the slow tests get one.
FILES = 3
# It ends a test that hangs, not a slow one: beside other work pylint alone took 20 minutes.
HANGS_SECONDS = 3600


def oldest(context: Context) -> counts.Counts:
    return run(context, "2.16")


def newest(context: Context) -> counts.Counts:
    for core in NEWEST:
        try:
            venvs.find_python("sanity-" + core)
        except venvs.Unavailable:
            continue
        return run(context, core)
    return counts.skipped("no Python 3.11 or newer on this machine")


def between(context: Context) -> counts.Counts:
    """Run playbooks on one of the other supported cores, which the commit draws, or on all."""
    found = counts.Counts()
    here = [core for core in BETWEEN if _has_python(core)]
    missing = [core for core in BETWEEN if core not in here]
    if missing:
        found.skipped.append(f"no Python for core {', '.join(missing)} on this machine")
    for core in here if context.full else _drawn_core(here):
        found.add(run(context, core))
    return found


def _has_python(core: str) -> bool:
    try:
        venvs.find_python("sanity-" + core)
    except venvs.Unavailable:
        return False
    return True


def _drawn_core(cores: list[str]) -> list[str]:
    from tests.lab.support import results, sampling

    return sampling.pick(cores, 1, results.tree()["commit"] + " core")


def run(context: Context, core: str) -> counts.Counts:
    name = "sanity-" + core
    try:
        python = venvs.find_python(name)
    except venvs.Unavailable as problem:
        return counts.skipped(f"core {core}: {problem}")
    found = counts.Counts()
    home = venvs.ensure(name)
    with tree.scratch(name) as base:
        where = tree.as_collection(base, tree.NO_CODE if context.full else _test_directories())
        ignored = sorted(
            str(path.relative_to(where)) for path in where.glob("tests/sanity/ignore*.txt")
        )
        found.check("no ignore files" + "".join(" " + path for path in ignored), not ignored)
        context.note(f"ansible-core {core} with {python}")
        playbooks(context, home, where, base, found)
        if core in BETWEEN:
            return found
        if context.full or context.name == drawn():
            found.add(ansible_test(context, home, where, core))
        else:
            found.skipped.append(f"ansible-test sanity: this commit draws {drawn()}")
    return found


def _test_directories() -> tuple[str, ...]:
    """Return the directories of tests, which the artefact does not have."""
    folders = [path for path in (machine.ROOT / "tests").iterdir() if path.is_dir()]
    return tuple(f"tests/{path.name}/" for path in folders if path.name != "sanity")


def drawn() -> str:
    """Give the stage that runs ansible-test sanity for this commit."""
    from tests.lab.support import results, sampling

    return sampling.pick(("sanity-newest", "sanity-2.16"), 1, results.tree()["commit"] + " sanity")[
        0
    ]


def ansible_test(
    context: Context, home: pathlib.Path, where: pathlib.Path, core: str
) -> counts.Counts:
    """Run all of ansible-test sanity, without ignore files."""
    env = environment(home)
    provide_pip(pathlib.Path(env["HOME"]), core)
    found = counts.Counts()
    # Without it ansible-test leaves that test out and says nothing.
    if machine.need({"shellcheck": "shellcheck"}):
        found.skipped.append("shellcheck is not installed")
    for arguments in [[]] if context.full else _drawn(home, where):
        returncode, text = context.run(
            # By the interpreter: the script's first line breaks where the path has a space.
            [
                home / "bin" / "python",
                home / "bin" / "ansible-test",
                "sanity",
                "--local",
                "--color",
                "no",
                *arguments,
            ],
            cwd=where,
            env=env,
            timeout=HANGS_SECONDS,
        )
        found.add(counts.from_sanity(text, returncode))
    return found


def _drawn(home: pathlib.Path, where: pathlib.Path) -> list[list[str]]:
    """Return the arguments of ansible-test for a Python of controllers and for one of nodes."""
    from tests.lab.support import results, sampling

    commit = results.tree()["commit"]
    here = {f"{major}.{minor}" for major, minor in machine.pythons()}
    pythons = {
        kind: sampling.pick([one for one in versions if one in here], 1, f"{commit} {kind}")
        for kind, versions in _supported(home).items()
    }
    files = sorted(str(path.relative_to(where)) for path in where.glob("plugins/**/*.py"))
    imported = _imported(files, commit, bool(pythons["node"]))
    linted = _third(files, f"{commit} pylint")
    runs = []
    for python in pythons["controller"]:
        runs.append(["--python", python, "--skip-test", "import", "--skip-test", "pylint"])
        runs.append(["--python", python, "--test", "import", *imported])
        runs.append(["--python", python, "--test", "pylint", *linted])
    # The other tests do not depend on the Python.
    for python in pythons["node"]:
        runs.append(["--python", python, "--test", "import", "--test", "compile"])
    return runs


def _imported(files: list[str], commit: str, of_nodes_elsewhere: bool) -> list[str]:
    """Return the files to import in the Python of controllers: a third of those of controllers.

    Those of nodes too, where this machine has no Python of nodes.
    """
    of_nodes = [path for path in files if path.startswith(NODE_CODE)]
    of_controllers = [path for path in files if not path.startswith(NODE_CODE)]
    drawn_files = _third(of_controllers, f"{commit} imports")
    if of_nodes_elsewhere:
        return drawn_files
    return drawn_files + of_nodes


def _third(files: list[str], seed: str) -> list[str]:
    from tests.lab.support import sampling

    return sampling.pick(files, -(-len(files) // FILES), seed)


def _supported(home: pathlib.Path) -> dict[str, list[str]]:
    """Return the Pythons that this ansible-test knows: of controllers, and of nodes only."""
    program = (
        "import json; from ansible_test._util.target.common import constants;"
        " print(json.dumps({'controller': constants.CONTROLLER_PYTHON_VERSIONS,"
        " 'node': constants.REMOTE_ONLY_PYTHON_VERSIONS}))"
    )
    done = subprocess.run(
        [str(home / "bin" / "python"), "-c", program], capture_output=True, text=True, check=True
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def playbooks(
    context: Context,
    home: pathlib.Path,
    where: pathlib.Path,
    base: pathlib.Path,
    found: counts.Counts,
) -> None:
    """Tell what meta/runtime.yml promises of this core.

    A replay, and this machine audited by a program on standard input and by the modules themselves.
    """
    env = machine.environment(
        HOME=str(base / "home"),
        ANSIBLE_COLLECTIONS_PATH=str(base),
        ANSIBLE_LOCALHOST_WARNING="0",
        ANSIBLE_INVENTORY_UNPARSED_WARNING="0",
        PYTHONDONTWRITEBYTECODE="1",
    )
    (base / "home").mkdir()
    example = {"kubemend_evidence": str(where / "examples" / "two-leaders")}
    # A connection that becomes by su takes no program: as the same user it is never called.
    here = {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(home / "bin" / "python"),
        "kubemend_fail_on": "never",
    }
    module = {
        **here,
        "kubemend_become": True,
        "ansible_become_method": "su",
        "ansible_become_user": getpass.getuser(),
    }
    for name, playbook, given in (
        ("replay", "replay", example),
        ("audit by a program", "audit", {**here, "kubemend_become": False}),
        ("audit by modules", "audit", module),
    ):
        folder = base / name.replace(" ", "-")
        inventory = [] if playbook == "replay" else ["-i", "localhost,"]
        returncode, _text = context.run(
            [
                home / "bin" / "python",
                "-m",
                "ansible",
                "playbook",
                *inventory,
                "kubemend.remediation." + playbook,
                "-e",
                json.dumps({**given, "kubemend_report_dir": str(folder)}),
            ],
            cwd=base,
            env=env,
        )
        report = folder / "report.json"
        told = (
            json.loads(report.read_text(encoding="utf-8"))
            if report.is_file()
            else {"hosts": [], "findings": []}
        )
        found.check(name + " ends with 0 and a report", returncode == 0 and report.is_file())
        found.check(
            name + " has evidence of every host",
            bool(told["hosts"]) and all(one["status"] == "ok" for one in told["hosts"]),
        )
        if playbook == "replay":
            found.check("replay names KM101", "KM101" in {one["code"] for one in told["findings"]})


def environment(home: pathlib.Path) -> dict[str, str]:
    """Return an environment with every Python of the machine on PATH, and with a home of its own.

    The tool ansible-test keeps its environments in that home.
    """
    private = machine.VENV / "home"
    private.mkdir(parents=True, exist_ok=True)
    pass_on_pip_settings(private)
    env = machine.environment(HOME=str(private))
    folders = [str(pathlib.Path(path).parent) for path in machine.pythons().values()]
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"], *folders])
    return env


def pass_on_pip_settings(home: pathlib.Path) -> None:
    """Write pip's index, certificate and cache to a pip.conf in that home.

    The tool ansible-test drops PIP_* from the environment, and the private home hides the user's
    file.
    """
    python = str(venvs.ensure("test") / "bin" / "python")
    asked = subprocess.run(
        [python, "-m", "pip", "config", "list"],
        env=machine.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    cache = os.environ.get("PIP_CACHE_DIR") or str(pathlib.Path.home() / ".cache" / "pip")
    path = home / ".config" / "pip" / "pip.conf"
    path.parent.mkdir(parents=True, exist_ok=True)
    # An index may be named with a password.
    path.touch(mode=0o600)
    path.write_text(pip_settings(asked.stdout, {"cache-dir": cache}), encoding="utf-8")


def pip_settings(listed: str, more: dict[str, str]) -> str:
    """pip.conf out of what pip config list prints.

    A setting of the environment wins, as it does for pip.
    """
    values: dict[str, str] = {}
    for mark in ("global.", ":env:."):
        for line in listed.splitlines():
            key, equals, value = line.partition("=")
            if key.startswith(mark) and equals:
                values[key[len(mark) :]] = ast.literal_eval(value)
    values.update(more)
    lines = [
        "{} = {}".format(key, "\n    ".join(value.split("\n")))
        for key, value in sorted(values.items())
    ]
    return "\n".join(["[global]", *lines, ""])


def provide_pip(home: pathlib.Path, core: str) -> None:
    """Tell what ansible-test would download, put where it looks first."""
    cache = home / ".ansible" / "test" / "cache"
    with venvs.locked("get-pip"):
        cache.mkdir(parents=True, exist_ok=True)
        for version in pip_versions((venvs.PINS / "get-pip.txt").read_text(encoding="ascii"), core):
            if not list(cache.glob(f"pip-{version}-*.whl")):
                venvs.download("pip==" + version, target=cache)
            script = cache / "get_pip_{}.py".format(version.replace(".", "_"))
            shutil.copyfile(machine.ROOT / "tests" / "gate" / "get_pip.py", script)


def pip_versions(table: str, core: str) -> list[str]:
    """Give the line of this core, without its name."""
    rows = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
    return next(row[1:] for row in rows if row[0] == core)
