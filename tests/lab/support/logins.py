# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Logins by ssh to a worker, of a user of their own, that stay open.

Pam_limits gives root what it gives others only where a file names it.
"""

from __future__ import annotations

import contextlib
import subprocess

USER = "lablogin"
HERE = (
    "timeout",
    "1800",
    "ssh",
    "-T",
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "LogLevel=ERROR",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "IdentitiesOnly=yes",
    "-i",
)
# What logind asks systemd for; these nodes lack pam_systemd, which asks logind.
SCOPE = (
    "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1"
    " org.freedesktop.systemd1.Manager StartTransientUnit 'ssa(sv)a(sa(sv))' session-77.scope fail"
    " 2 PIDs au 1 {pid} Slice s user-{uid}.slice 0"
)


class Login:
    """A shell that answers line by line."""

    def __init__(self, cluster, target):
        words = [*HERE, str(cluster.key), f"{USER}@{cluster.node(target).ip}", "bash"]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, words: str) -> str:
        """Return the answer in one line; nothing if the session has ended."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"echo $({words})\n")
            self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def begin(self, words: str) -> None:
        """Start a program in the session that runs on."""
        self.process.stdin.write(f"{words} </dev/null >/dev/null 2>&1 &\n")
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(30)


@contextlib.contextmanager
def login(cluster, target="w1"):
    opened = Login(cluster, target)
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def person(cluster, target="w1"):
    """Yield the user, with the key that the lab's inventory has too."""
    cluster.exec(
        target,
        f"useradd -m -s /bin/bash {USER} && install -d -m 700 -o {USER} /home/{USER}/.ssh && "
        f"install -m 600 -o {USER} /root/.ssh/authorized_keys /home/{USER}/.ssh/",
    )
    try:
        yield
    finally:
        cluster.exec(
            target,
            f"pkill -KILL -u {USER}; systemctl stop session-77.scope 2>/dev/null; sleep 0.5;"
            f" userdel -r {USER} 2>/dev/null; true",
        )


def session(cluster, opened: Login, target="w1") -> int:
    """Return the login in a scope of its own, as logind has it: the process of its shell."""
    pid, uid = int(opened("echo $$")), int(opened("id -u"))
    cluster.exec(target, SCOPE.format(pid=pid, uid=uid))
    return pid
