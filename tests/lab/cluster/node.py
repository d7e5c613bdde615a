# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One node, and what is done inside it without ssh."""

from __future__ import annotations

import io
import shlex
import subprocess
import tarfile
import time
from dataclasses import asdict, dataclass, field

from tests.lab.cluster import podman, vm

# How often over a wait takes what it names: its time is that of a machine with nothing else to do,
# and costs nothing where it is not needed.
PATIENCE = 2


@dataclass
class Node:
    name: str
    role: str
    ip: str
    container: str
    index: int
    labels: dict = field(default_factory=dict)
    joined: bool = False
    vm: str = ""  # Debian's suite of a node with its own kernel; empty: a container

    def as_dict(self) -> dict:
        return asdict(self)


def execute(
    node: Node, argv, timeout=60, check=True, data: bytes | str | None = None
) -> subprocess.CompletedProcess:
    """Run a program, or a shell line if argv is a string; return bytes of output and error."""
    command = ["sh", "-c", argv] if isinstance(argv, str) else list(argv)
    data = data.encode() if isinstance(data, str) else data
    if node.vm:
        return vm.execute(node, command, timeout, check, data)
    return podman.execute(node.container, command, timeout, check, data)


def read(node: Node, path: str) -> bytes:
    return execute(node, ["cat", path]).stdout


def write(
    node: Node, path: str, data: bytes | str, mode: str | None = None, mtime: str | None = None
) -> None:
    """Write a dotfile, and rename it in the same directory.

    The kubelet reads every other name in its manifest folder.
    """
    target = shlex.quote(path)
    folder, _sep, name = path.rpartition("/")
    temp = shlex.quote(f"{folder}/.{name}.lab")
    keep = (
        f"chmod {mode} {temp}"
        if mode
        else f"if [ -e {target} ]; then chmod --reference={target} {temp}; fi"
    )
    when = f"touch -d @{mtime} {temp}" if mtime else "true"
    execute(
        node,
        f"mkdir -p {shlex.quote(folder or '/')} && cat > {temp} && {keep} && {when} && mv {temp}"
        f" {target}",
        data=data,
    )


def write_many(node: Node, files: dict) -> None:
    """Path -> (bytes, mode), in one round trip."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, (content, mode) in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(path.lstrip("/"))
            info.size, info.mode, info.mtime = len(data), mode, int(time.time())
            tar.addfile(info, io.BytesIO(data))
    execute(
        node,
        ["tar", "-x", "--no-same-owner", "--no-overwrite-dir", "-C", "/"],
        data=buffer.getvalue(),
    )


def wait(predicate, timeout: float, what: str, every: float = 1.0):
    """Call predicate until it returns something true.

    Its last exception or message explains a timeout.
    """
    timeout *= PATIENCE
    deadline, last = time.monotonic() + timeout, "nothing"
    while True:
        try:
            found = predicate()
            if found:
                return found
            last = repr(found)
        except (RuntimeError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            last = str(error)
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:.0f} s for {what}; last seen: {last[-1500:]}")
        time.sleep(every)
