# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers of the lab's plain Debian 12: no Kubernetes, no make, no pip."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.gate import machine

SUITE = "bookworm"
# As the lab's nodes: more is not allowed to a host without CAP_SYS_RESOURCE.
LIMITS = ("--ulimit", "nofile=20000:20000", "--ulimit", "nproc=4096:4096")


class Container:
    """One of them, and what is done in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(
        self, line: str, cwd: str = "/root", user: str = "root", timeout: float = 600
    ) -> subprocess.CompletedProcess:
        """Run a line of the shell, and return what it printed on both outputs."""
        return podman(
            "exec", "--user", user, "--workdir", cwd, self.name, "bash", "-c", line, timeout=timeout
        )

    def put(self, files: dict[str, Path], folder: str) -> None:
        """Put files below this folder, by their names there."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, path in files.items():
                archive.add(path, name, recursive=False)
        done = subprocess.run(
            [
                "podman",
                "--runtime",
                "runc",
                "exec",
                "-i",
                self.name,
                "sh",
                "-c",
                f"mkdir -p '{folder}' && tar -x --no-same-owner -C '{folder}'",
            ],
            input=packed.getvalue(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()


def podman(*arguments: str, timeout: float = 120) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["podman", "--runtime", "runc", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        timeout=timeout,
        env=machine.environment(),
    )


@contextlib.contextmanager
def fresh(label: str, *options: str) -> Iterator[Container]:
    """Start a machine, and remove it with all that is in it afterwards."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.lab", "image", "--suite", SUITE],
        cwd=machine.ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    image = next(
        (
            line.strip()
            for line in reversed(made.stdout.splitlines())
            if line.startswith("localhost/")
        ),
        "",
    )
    assert made.returncode == 0, made.stderr[-2000:]
    assert image, made.stderr[-2000:]
    name = f"kubemend-{label}-{os.getpid()}"
    done = podman(
        "run",
        "-d",
        "--replace",
        "--pull=never",
        "--name",
        name,
        *LIMITS,
        *options,
        image,
        "sleep",
        "infinity",
    )
    assert done.returncode == 0, done.stdout
    try:
        yield Container(name)
    finally:
        podman("rm", "-f", "-t", "0", "-i", "-v", name)
