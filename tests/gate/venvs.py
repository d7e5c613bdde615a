# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Virtual environments below .venv/, each made from one file of exact versions.

python3 -m tests.gate.venvs <name> <module> [argument ...] runs a module in one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator

from tests.gate import machine

PINS = machine.ROOT / "tests" / "pins"
# name: oldest and newest Python that the pinned versions run on
PYTHONS = {
    "audit": ((3, 11), (3, 14)),
    "command": ((3, 11), (3, 14)),
    "test": ((3, 11), (3, 13)),
    "rulebook": ((3, 11), (3, 13)),
    "bench": ((3, 11), (3, 13)),
    "nox": ((3, 11), (3, 13)),
    "sanity-2.16": ((3, 10), (3, 12)),
    "sanity-2.17": ((3, 10), (3, 12)),
    "sanity-2.18": ((3, 11), (3, 13)),
    "sanity-2.19": ((3, 11), (3, 13)),
    "sanity-2.20": ((3, 12), (3, 14)),
    "sanity-2.21": ((3, 12), (3, 14)),
}
# What ansible needs to see of the checkout to find it as kubemend.remediation.
ENTRIES = (
    "galaxy.yml",
    "meta",
    "plugins",
    "playbooks",
    "roles",
    "extensions",
    "examples",
    "docs",
    "README.md",
    "SECURITY.md",
)
# What a person asks of the tests that way; the gate says it itself.
SWITCHES = ("KUBEMEND_TEST_FULL", "KUBEMEND_TEST_QUICK", "KUBEMEND_CASES", "KUBEMEND_APPROVE")


class Unavailable(Exception):
    """This environment cannot be had here; the message is one sentence for the user."""


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process at a time work: make audit and make test, or two stages of the gate."""
    machine.VENV.mkdir(exist_ok=True)
    with (machine.VENV / (name + ".lock")).open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def find_python(name: str) -> str:
    oldest, newest = PYTHONS[name]
    python = machine.python_between(oldest, newest)
    if python is None:
        raise Unavailable(
            "no Python {}.{} to {}.{} was found on this machine".format(*oldest, *newest)
        )
    return python


def ensure(name: str) -> pathlib.Path:
    """Return the directory of an environment that is as its pins say.

    A fresh one costs a look at its stamp.
    """
    pins = PINS / (name + ".txt")
    home = machine.VENV / name
    stamp = home / "kubemend.stamp"
    # The folder is part of the key: the scripts of a virtual environment break when it is moved.
    want = hashlib.sha256(pins.read_bytes() + str(home).encode()).hexdigest()
    if _fresh(stamp, want, home):
        return home
    python = find_python(name)
    with locked(name):
        if _fresh(stamp, want, home):
            return home
        if machine.need({"python:" + python: "python3-venv"}):
            raise Unavailable(
                f"{python} cannot make virtual environments: install the package python3-venv"
            )
        shutil.rmtree(home, ignore_errors=True)
        _run([python, "-m", "venv", str(home)])
        _run(
            [
                str(home / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-input",
                "--disable-pip-version-check",
                "--no-deps",
                "-r",
                str(pins),
            ]
        )
        stamp.write_text(want + "\n", encoding="ascii")
    return home


def _fresh(stamp: pathlib.Path, want: str, home: pathlib.Path) -> bool:
    with contextlib.suppress(OSError):
        # The interpreter that it was made with may have been removed since.
        return stamp.read_text(encoding="ascii").strip() == want and os.access(
            home / "bin" / "python", os.X_OK
        )
    return False


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command,
        env=machine.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise Unavailable(
            "{} failed:\n{}".format(" ".join(command[1:4]), done.stdout.strip()[-3000:])
        )


def collections() -> pathlib.Path:
    """Return a collections path that shows this checkout as kubemend.remediation.

    It has links to the checkout's parts, not to the checkout: that holds .venv, and a walk over a
    link to the whole would never end.
    """
    base = machine.VENV / "collections"
    ours = base / "ansible_collections" / "kubemend" / "remediation"
    with locked("collections"):
        ours.mkdir(parents=True, exist_ok=True)
        for entry in ENTRIES:
            link, target = ours / entry, machine.ROOT / entry
            if link.is_symlink() and (link.readlink() != target or not target.exists()):
                link.unlink()
            if target.exists() and not link.is_symlink():
                link.symlink_to(target)
    return base


def bundled(collection: str) -> pathlib.Path:
    """Return a collections path with one collection out of PyPI's ansible bundle.

    Galaxy is not reachable everywhere.
    """
    base = machine.VENV / "bundle"
    stamp = base / "kubemend.stamp"
    pins = PINS / "collections.txt"
    want = hashlib.sha256(pins.read_bytes() + collection.encode()).hexdigest()
    with locked("bundle"):
        if _fresh_file(stamp, want):
            return base
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir(parents=True)
        download("-r", str(pins), target=base)
        wheel = next(base.glob("ansible-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            prefix = "ansible_collections/{}/".format(collection.replace(".", "/"))
            archive.extractall(
                base, [member for member in archive.namelist() if member.startswith(prefix)]
            )
        wheel.unlink()
        stamp.write_text(want + "\n", encoding="ascii")
    return base


def download(*what: str, target: pathlib.Path) -> None:
    """Wheels as they are, without what they depend on."""
    _run(
        [
            str(ensure("test") / "bin" / "python"),
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-input",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--disable-pip-version-check",
            "-d",
            str(target),
            *what,
        ]
    )


def _fresh_file(stamp: pathlib.Path, want: str) -> bool:
    return stamp.exists() and stamp.read_text(encoding="ascii").strip() == want


def main(arguments: list[str]) -> int:
    name, module, *rest = arguments
    try:
        home = ensure(name)
    except Unavailable as problem:
        print(problem, file=sys.stderr)
        return 2
    asked = {key: value for key, value in os.environ.items() if key in SWITCHES}
    env = machine.environment(ANSIBLE_COLLECTIONS_PATH=str(collections()), **asked)
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    return subprocess.run(
        [str(home / "bin" / "python"), "-m", module, *rest], env=env, cwd=machine.ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
