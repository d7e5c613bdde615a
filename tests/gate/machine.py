# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What this machine has: Pythons, root, podman; and Debian packages that can be had."""

from __future__ import annotations

import functools
import os
import pathlib
import shutil
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
OUTPUT = ROOT / "tests" / "output" / "gate"
NEWEST_MINOR = 15
_APT = threading.Lock()

# A test that inherits these would test the caller's shell. Proxies, pip's
# index and certificates stay: without them nothing can be installed.
FOREIGN = (
    "VIRTUAL_ENV",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKEOVERRIDES",
    "ARGS",
    "INVENTORY",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_USER",
    "PIP_REQUIRE_VIRTUALENV",
    "PYTEST_ADDOPTS",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
)
# PYTHON: users keep bytecode, and a run without it compiles half of its time.
FOREIGN_PREFIXES = ("PYTHON", "ANSIBLE_", "MOLECULE_", "KUBEMEND_")
OURS = ("KUBEMEND_LAB_CACHE",)


def environment(**extra: str) -> dict[str, str]:
    """Return the caller's environment without variables that would change what is tested."""
    env = {
        key: value
        for key, value in os.environ.items()
        if key in OURS or (key not in FOREIGN and not key.startswith(FOREIGN_PREFIXES))
    }
    env.setdefault("LC_ALL", "C.UTF-8")
    # 2.16's ansible-test and pyenv's stand-ins do not go together: real
    # interpreters come first, the stand-ins are left out.
    path = [
        entry
        for entry in env.get("PATH", os.defpath).split(os.pathsep)
        if not entry.endswith("/shims")
    ]
    env["PATH"] = os.pathsep.join(path)
    env.update(extra)
    return env


def is_root() -> bool:
    return os.geteuid() == 0


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def python_candidates(version: tuple[int, int]) -> list[str]:
    """Return where a Python of this version may be.

    The places are PATH, then pyenv's folder, then /usr/local and /opt.
    """
    name = "python{}.{}".format(*version)
    found = [shutil.which(name, path=environment()["PATH"]) or ""]
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    for pattern in ("versions/{0}.{1}.*/bin/" + name, "versions/{0}.{1}/bin/" + name):
        found += sorted(str(path) for path in pyenv.glob(pattern.format(*version)))
    found += ["/usr/local/bin/" + name, "/opt/python{}.{}/bin/".format(*version) + name]
    return [path for path in found if path and os.access(path, os.X_OK)]


@functools.cache
def pythons() -> dict[tuple[int, int], str]:
    """Return the Pythons that really start, by version."""
    found: dict[tuple[int, int], str] = {}
    for version in [(2, 7)] + [(3, minor) for minor in range(6, NEWEST_MINOR + 1)]:
        if version == sys.version_info[:2] and sys.prefix == sys.base_prefix:
            found[version] = sys.executable
            continue
        for path in python_candidates(version):
            probe = subprocess.run(
                [path, "-c", "import sys; print(sys.version_info[:2])"],
                capture_output=True,
                text=True,
                check=False,
                env=environment(),
            )
            if probe.stdout.strip() == str(version):
                found[version] = path
                break
    return found


def python_between(oldest: tuple[int, int], newest: tuple[int, int]) -> str | None:
    """Return this very Python where it fits, else the newest that does."""
    if oldest <= sys.version_info[:2] <= newest and sys.version_info[:2] in pythons():
        return pythons()[sys.version_info[:2]]
    fitting = [version for version in pythons() if oldest <= version <= newest]
    return pythons()[max(fitting)] if fitting else None


def need(commands: dict[str, str]) -> list[str]:
    """Install the packages of missing commands where we may.

    Return the commands that are still missing.
    """
    with _APT:
        missing = {command: package for command, package in commands.items() if not _have(command)}
        if missing and is_root() and shutil.which("apt-get"):
            env = environment(DEBIAN_FRONTEND="noninteractive")
            install = [
                "apt-get",
                "install",
                "-y",
                "-q",
                "-o",
                "DPkg::Lock::Timeout=300",
                "--no-install-recommends",
                *sorted(set(missing.values())),
            ]
            if subprocess.run(install, env=env, capture_output=True, check=False).returncode:
                subprocess.run(
                    ["apt-get", "update", "-q"], env=env, capture_output=True, check=False
                )
                subprocess.run(install, env=env, capture_output=True, check=False)
        return [command for command in missing if not _have(command)]


def _have(command: str) -> bool:
    """Return whether a command, or the venv part of Debian's Python (python:<path>), is there."""
    if command.startswith("python:"):
        return (
            subprocess.run(
                [command[7:], "-c", "import ensurepip, venv"],
                env=environment(),
                capture_output=True,
                check=False,
            ).returncode
            == 0
        )
    return shutil.which(command) is not None


def why_no_lab() -> str | None:
    """Return one sentence where real nodes cannot run, else None.

    The lab itself knows what it needs.
    """
    # not before it is asked for: the other stages do without the lab
    from tests.lab.cluster import host

    with _APT:
        reason = host.unavailable_reason()
        try:
            if reason is None:
                host.ensure_host()
        except SystemExit as problem:
            reason = str(problem)
        except (RuntimeError, OSError) as problem:
            reason = f"what the lab needs cannot be installed here: {str(problem).splitlines()[0]}"
    if reason:
        return reason
    probe = subprocess.run(
        ["podman", "--runtime", "runc", "info"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        return "podman does not work here: {}".format(
            (probe.stderr.strip().splitlines() or ["no reason given"])[-1]
        )
    return None
