# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Nodes with their own kernel: virtual machines in QEMU, on the bridge of the lab's network.

A machine without usable KVM emulates the processor: a boot takes a minute, and every program is ten
times slower than in a container. Each has a copy-on-write disk over one image of its release.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.lab.cluster.host import note, run
from tests.lab.cluster.store import artefact

PROGRAMS = {
    "qemu-system-x86": "qemu-system-x86_64",
    "qemu-utils": "qemu-img",
    "e2fsprogs": "mke2fs",
}
TAP = Path("/dev/net/tun")
MEMORY_MIB = {"worker": 1024, "master": 1536}
DISK_SIZE = "8G"
SPARE_SIZE = "1G"
POWER_OFF_SECONDS = 30
MONITOR_SECONDS = 120
ANSWER_SECONDS = 120
# A shell that is no login shell has no sbin in its PATH.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SSH_OPTIONS = (
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "LogLevel=ERROR",
    "ConnectTimeout=5",
    "IdentitiesOnly=yes",
    "ServerAliveInterval=5",
    "ControlMaster=auto",
    "ControlPersist=60",
)
# Not in the cluster's directory: the path of a socket has 107 bytes at most.
SOCKETS = Path("/run/kubemend-lab")


class Machine:
    """A virtual machine of one node: its files, its process and its power switch."""

    def __init__(self, node, folder: Path) -> None:
        self.node = node
        self.folder = folder
        digest = hashlib.sha256(node.container.encode()).hexdigest()
        self.interface = f"kmv{digest[:10]}"
        self.mac = ":".join(["52", "54", "00", digest[0:2], digest[2:4], digest[4:6]])
        self.machine_id = digest[:32]
        self.monitor = SOCKETS / f"{digest[:16]}.qmp"

    # -- files

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"

    @property
    def spare(self) -> Path:
        """Return the second disk, which is empty, for what tests do to disks."""
        return self.folder / "spare.qcow2"

    @property
    def console(self) -> Path:
        return self.folder / "console.log"

    @property
    def pid_file(self) -> Path:
        return self.folder / "qemu.pid"

    @property
    def image(self) -> Path:
        return Path((self.folder / "image").read_text())

    def create(self, image: Path) -> None:
        """Make the machine's own disk, which keeps what differs from the image."""
        self.folder.mkdir(parents=True)
        backing = ["-b", image / "disk.raw", "-F", "raw"]
        run(["qemu-img", "create", "-q", "-f", "qcow2", *backing, self.disk])
        run(["qemu-img", "create", "-q", "-f", "qcow2", self.spare, SPARE_SIZE])
        (self.folder / "image").write_text(str(image))

    def remove(self) -> None:
        self.cut_power()
        self.monitor.unlink(missing_ok=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)

    # -- power

    @property
    def pid(self) -> int | None:
        """Return the process of the machine; None where it is off."""
        return next((pid for pid, path in processes() if path == self.pid_file), None)

    def power_on(
        self,
        bridge: str,
        gateway: str,
        arguments: str = "",
        memory_mib: int | None = None,
        state: str | None = None,
    ) -> None:
        """Start QEMU; the machine then boots on its own, or goes on from a state that was kept.

        arguments: more of the kernel's command line
        memory_mib: what it has in place of what its role has
        """
        SOCKETS.mkdir(mode=0o700, exist_ok=True)
        with self.console.open("a") as console:
            console.write("\n--- power on\n")
        memory = memory_mib or MEMORY_MIB[self.node.role]
        command = self._command(gateway, arguments, memory)
        run([*command, *(("-loadvm", state) if state else ())], timeout=120)
        # QEMU makes the interface, and it goes with the process.
        run(["ip", "link", "set", self.interface, "master", bridge, "up"])

    def _command(self, gateway: str, arguments: str, memory_mib: int) -> list:
        # systemd-network-generator configures the interface from `ip=`.
        address = f"ip={self.node.ip}::{gateway}:255.255.255.0:{self.node.name}:eth0:none"
        kernel = (
            f"root=/dev/vda rw console=ttyS0 net.ifnames=0 panic=5 {address}"
            f" systemd.hostname={self.node.name} systemd.machine_id={self.machine_id}"
            f" systemd.show_status=false {arguments}"
        )
        return [
            "qemu-system-x86_64",
            *("-name", self.node.container),
            *("-accel", "tcg,thread=multi", "-cpu", "max"),
            *("-smp", "1", "-m", str(memory_mib)),
            *("-nodefaults", "-no-user-config", "-display", "none"),
            *("-rtc", "base=utc,clock=host"),
            *("-kernel", self.image / "vmlinuz", "-initrd", self.image / "initrd.img"),
            *("-append", kernel),
            *("-drive", f"file={self.disk},if=virtio,format=qcow2,discard=unmap"),
            *("-drive", f"file={self.spare},if=virtio,format=qcow2,discard=unmap"),
            *("-netdev", f"tap,id=net0,ifname={self.interface},script=no,downscript=no"),
            *("-device", f"virtio-net-pci,netdev=net0,mac={self.mac},romfile="),
            *("-device", "virtio-rng-pci"),
            *("-chardev", f"file,id=serial,path={self.console},append=on"),
            *("-serial", "chardev:serial"),
            *("-qmp", f"unix:{self.monitor},server=on,wait=off"),
            *("-pidfile", self.pid_file, "-daemonize"),
        ]

    def cut_power(self) -> None:
        """Kill the machine: what its kernel has not written is lost."""
        disconnect(self.node)
        pid = self.pid
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + POWER_OFF_SECONDS
        # A process that is ending has no arguments any more, and still holds its pid file.
        while Path(f"/proc/{pid}").exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the virtual machine {self.node.name} does not end")
            time.sleep(0.1)

    # -- snapshots

    def query(self, command: str, **arguments) -> object:
        """Send one command to QEMU's monitor and return its answer."""
        requests = (
            {"execute": "qmp_capabilities"},
            {"execute": command, "arguments": arguments},
        )
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(MONITOR_SECONDS)
            connection.connect(str(self.monitor))
            stream = connection.makefile("rw", encoding="utf-8")
            stream.readline()
            for request in requests:
                stream.write(json.dumps(request) + "\n")
                stream.flush()
                answer = _answer(stream)
        if "error" in answer:
            raise RuntimeError(f"QEMU of {self.node.name}: {command}: {answer['error']}")
        return answer["return"]

    def _snapshot(self, command: str) -> None:
        disconnect(self.node)
        message = self.query("human-monitor-command", **{"command-line": command})
        if message:
            raise RuntimeError(f"QEMU of {self.node.name}: {command}: {message}")

    def keep(self, name: str) -> None:
        """Keep the state of the machine, its memory too."""
        self._snapshot(f"savevm {name}")

    def go_on(self) -> None:
        """Give a machine that goes on from a kept state the present time.

        Connections of that time are closed: their other ends are gone or have gone on.
        """
        self._wait_answer()
        now = f"date -u -s @{time.time():.0f}"
        execute(self.node, f"{now} && ss -K state established '( not sport = :22 )'", timeout=60)

    def _wait_answer(self) -> None:
        """Wait for ssh: under load a machine answers some seconds after its state is restored."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while execute(self.node, ["true"], check=False).returncode:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the virtual machine {self.node.name} does not answer by ssh")
            time.sleep(1)


def _answer(stream) -> dict:
    """Return the next answer of QEMU's monitor; events come between."""
    while True:
        answer = json.loads(stream.readline())
        if "event" not in answer:
            return answer


def processes() -> Iterator[tuple[int, Path]]:
    """Yield the pid and the pid file of each virtual machine on this machine."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            argv = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            if Path(argv[0]).name == PROGRAMS["qemu-system-x86"] and "-pidfile" in argv:
                yield int(entry.name), Path(argv[argv.index("-pidfile") + 1])


def remove_orphans() -> None:
    """End machines whose directory is gone: no other run would ever end them."""
    for pid, pid_file in list(processes()):
        if not pid_file.parent.is_dir():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def missing_packages() -> list[str]:
    return [package for package, program in PROGRAMS.items() if shutil.which(program) is None]


def unavailable_reason() -> str | None:
    """Return why this machine can run no virtual machine of the lab, None when it can."""
    if not TAP.exists():
        return f"virtual machines need {TAP} for their network"
    missing = missing_packages()
    if missing and shutil.which("apt-get") is None:
        return f"virtual machines need {', '.join(missing)}, and no apt-get is here to install them"
    return None


def ensure_host() -> None:
    """Install QEMU where it is missing."""
    missing = missing_packages()
    if missing:
        note(f"installing {' '.join(missing)}")
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        run(["apt-get", "update", "-q"], env=env, timeout=300)
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
        run(install, env=env, timeout=900)


def private_key() -> Path:
    """Return the private key that every image trusts."""

    def make(folder: Path) -> None:
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", folder / "id"])

    return artefact("vm-key", ["1"], make) / "id"


def _ssh(node) -> list:
    options = [part for option in SSH_OPTIONS for part in ("-o", option)]
    return ["ssh", *options, "-o", f"ControlPath={SOCKETS}/%C", "-i", private_key(),
            f"root@{node.ip}"]  # fmt: skip


def disconnect(node) -> None:
    """Close the connection that the commands share."""
    run([*_ssh(node), "-O", "exit"], check=False, timeout=10)


def execute(
    node, argv, timeout=60, check=True, data: bytes | None = None
) -> subprocess.CompletedProcess:
    """Run a program by ssh, or a shell line if argv is a string."""
    line = argv if isinstance(argv, str) else shlex.join(map(str, argv))
    SOCKETS.mkdir(mode=0o700, exist_ok=True)
    script = f"export PATH={PATH}; {line}"
    return run([*_ssh(node), script], timeout=timeout, check=check, input=data)
