# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An sshd on addresses of the loopback network, with a key that may log in."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ADDRESS = "127.0.0.1"
CONFIG = """
Port {port}
{addresses}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
MaxStartups 400
MaxSessions 400
{more}
"""


@dataclass(frozen=True)
class Server:
    """A running sshd.

    Attributes:
        folder: the keys: key may log in, other may not; known names the host, changed another key.
        port: where it listens.
        process: its main process.
        closed_port: where nothing listens, and nobody else may.
    """

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    closed_port: int

    def line(self, *options: str, command: str = "true", key: str = "key") -> list[bytes]:
        """Return the command line of a client; a later option counts only where no earlier one."""
        words = [option for setting in options for option in ("-o", setting)]
        words += ["-o", "BatchMode=yes", "-o", f"Port={self.port}", "-o", "ConnectTimeout=3"]
        words += ["-o", f"User={getpass.getuser()}", "-o", f"IdentityFile={self.folder / key}"]
        words += ["-o", f"UserKnownHostsFile={self.folder / 'known'}"]
        words += ["-o", "GlobalKnownHostsFile=/dev/null"]
        return [os.fsencode(word) for word in ("ssh", "-F", "none", *words, ADDRESS, command)]


def keygen(path: Path, *options: str) -> None:
    """Make a key without a passphrase, or as the options say."""
    kind = ("-t", "ed25519")
    if "-t" in options:
        kind = ()
    passphrase = ("-N", "")
    if "-N" in options:
        passphrase = ()
    words = ["ssh-keygen", "-q", *kind, *passphrase, *options, "-f", str(path)]
    subprocess.run(words, check=True)


def free_port() -> int:
    """Return a port that is free on every address."""
    with socket.socket() as free:
        free.bind(("0.0.0.0", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def running(
    folder: Path, addresses: tuple[str, ...] = (ADDRESS,), more: str = ""
) -> Iterator[Server]:
    """Run an sshd for the block; skip the test where there is none."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
    if program is None:
        pytest.skip("no sshd (package openssh-server)")
    port = free_port()
    for name in ("host_key", "other_host_key", "key", "other"):
        keygen(folder / name)
    public = {name: (folder / f"{name}.pub").read_text() for name in ("host_key", "other_host_key")}
    (folder / "known").write_text(f"[{ADDRESS}]:{port} {public['host_key']}")
    (folder / "changed").write_text(f"[{ADDRESS}]:{port} {public['other_host_key']}")
    (folder / "authorized").write_text((folder / "key.pub").read_text())
    listen = "\n".join(f"ListenAddress {address}" for address in addresses)
    text = CONFIG.format(port=port, addresses=listen, folder=folder, more=more)
    (folder / "sshd_config").write_text(text)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    words = [program, "-D", "-e", "-f", str(folder / "sshd_config")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _wait(port, folder)
        with socket.socket() as closed:
            closed.bind(("0.0.0.0", 0))
            yield Server(folder, port, process, int(closed.getsockname()[1]))
    finally:
        process.terminate()
        process.wait()


def _wait(port: int, folder: Path) -> None:
    end = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError), socket.create_connection((ADDRESS, port), 1):
            return
        assert time.monotonic() < end, (folder / "log").read_text()
        time.sleep(0.05)
