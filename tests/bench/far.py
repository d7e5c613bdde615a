# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An sshd of the benchmark's own, whose nodes have processors of their own: the far bed.

The node's Python is a stub that answers with recorded evidence after the time that a node takes.
It costs this machine nearly nothing, so that what is measured is the controller.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gate import machine

PROGRAM_SECONDS, MODULE_SECONDS = 0.18, 0.06  # of a node's Python, for kubemend and for a module
SAID = ("collected_at", "duration_ms", "python", "euid", "collectors")
RECORDED = machine.ROOT / "tests" / "fixtures" / "recorded"
TICKS = os.sysconf("SC_CLK_TCK")
CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile {folder}/sshd.pid
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
MaxStartups 400
MaxSessions 400
"""
# The second line of kubemend's program begins with the mark of its answer.
STUB = """#!/bin/sh
IFS= read -r first
IFS= read -r second
cat >/dev/null
case $second in
  _mark*collectors.runner:collect*) ;;
  _mark*)
    second=${{second#*\\'}}
    printf '\\n%s {{"failed": "no API"}}\\n' "${{second%%\\'*}}"
    exit ;;
  *) sleep {module}; echo '{{"ping": "pong", "changed": false}}'; exit ;;
esac
sleep {program}
second=${{second#*\\'}}
printf '\\n%s ' "${{second%%\\'*}}"
cat {folder}/answer.json
"""


@dataclass(frozen=True)
class Bed:
    """Where the hosts of a benchmark are.

    Attributes:
        variables: the variables of each host.
        process: the sshd.
    """

    variables: dict[str, Any]
    process: subprocess.Popen[bytes]

    def seconds(self) -> float:
        """Return the processor seconds of sshd and of what it has waited for."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:15]) / TICKS


def sshd() -> str | None:
    """Return the path of sshd, if there is one."""
    return os.environ.get("KUBEMEND_BENCH_SSHD") or shutil.which("sshd", path="/usr/sbin:/sbin")


@contextlib.contextmanager
def opened(program: str) -> Iterator[Bed]:
    """Run an sshd for the block."""
    with tempfile.TemporaryDirectory(prefix="kubemend-far-", dir="/tmp") as name:
        folder = Path(name)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for key in ("host_key", "key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True
            )
        (folder / "sshd_config").write_text(CONFIG.format(port=port, folder=folder))
        (folder / "answer.json").write_text(_answer() + "\n")
        stub = folder / "python3"
        stub.write_text(STUB.format(folder=folder, program=PROGRAM_SECONDS, module=MODULE_SECONDS))
        stub.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)
        process = subprocess.Popen(
            [program, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.DEVNULL
        )
        try:
            _wait(port)
            yield Bed(
                {
                    "ansible_host": "127.0.0.1",
                    "ansible_port": port,
                    "ansible_user": getpass.getuser(),
                    "ansible_ssh_private_key_file": str(folder / "key"),
                    "ansible_python_interpreter": str(stub),
                    "ansible_become": False,
                },
                process,
            )
        finally:
            process.terminate()
            process.wait()


def _answer() -> str:
    """Return the evidence of a recorded node, as a node's program prints it."""
    document = json.loads(
        next(iter(sorted(RECORDED.glob("v1.3*/evidence/w1.json")))).read_text(encoding="utf-8")
    )
    return json.dumps({name: document[name] for name in SAID if name in document})


def _wait(port: int) -> None:
    end = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if time.monotonic() > end:
            raise SystemExit("the sshd of the far bed does not listen")
        time.sleep(0.05)
