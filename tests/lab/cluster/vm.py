# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Nodes with their own kernel: virtual machines in QEMU, on the bridge of the lab's network.

A machine without usable KVM emulates them: one boots in a minute and is ten times slower than a
container. Each has a copy-on-write disk over one image of its release, and ssh is the way in.
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
from pathlib import Path

from tests.lab.cluster.host import note, run
from tests.lab.cluster.store import artefact

PROOF = {
    "qemu-system-x86": "qemu-system-x86_64",
    "qemu-utils": "qemu-img",
    "e2fsprogs": "mke2fs",
}
MEMORY_MIB = {"worker": 1024, "master": 1536}
DISK = "8G"
NICE = 0
SSH = [
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "LogLevel=ERROR",
    "-o",
    "ConnectTimeout=5",
    "-o",
    "IdentitiesOnly=yes",
    "-o",
    "ServerAliveInterval=10",
]
# Of a machine: a path of a socket has 107 bytes at most, so it is not in the cluster's folder.
RUN = Path("/run/kubemend-lab")


class Machine:
    """A virtual machine of one node: its files, its process, and its power switch."""

    def __init__(self, node, folder: Path):
        self.node = node
        self.folder = folder
        digest = hashlib.sha256(node.container.encode()).hexdigest()
        self.tap = f"kmv{digest[:10]}"
        self.mac = ":".join(["52", "54", "00", digest[0:2], digest[2:4], digest[4:6]])
        self.machine_id = digest[:32]
        self.control = RUN / f"{digest[:16]}.qmp"

    # -- files

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"

    @property
    def console(self) -> Path:
        return self.folder / "console.log"

    @property
    def _pid_file(self) -> Path:
        return self.folder / "pid"

    def create(self, image: Path) -> None:
        """Make the machine's own disk, which keeps what differs from the image."""
        self.folder.mkdir(parents=True)
        run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", image / "disk.raw",
             self.disk])  # fmt: skip
        self._store(image)

    def _store(self, image: Path) -> None:
        (self.folder / "image").write_text(str(image))

    @property
    def image(self) -> Path:
        return Path((self.folder / "image").read_text())

    def remove(self) -> None:
        self.cut_power()
        run(["ip", "link", "del", self.tap], check=False)
        self.control.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- power

    @property
    def pid(self) -> int | None:
        """Return the pid of its QEMU; None where it is off."""
        try:
            pid = int(self._pid_file.read_text())
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self.tap) in b" ".join(argv) else None

    def power_on(self, bridge: str, gateway: str, arguments: str = "") -> None:
        """Start QEMU; the machine boots on its own."""
        RUN.mkdir(mode=0o700, exist_ok=True)
        self._plug_in(bridge)
        with self.console.open("ab") as console:
            console.write(b"\n--- power on\n")
        run(self._command(gateway, arguments), timeout=60)

    def _plug_in(self, bridge: str) -> None:
        if run(["ip", "link", "show", self.tap], check=False).returncode:
            run(["ip", "tuntap", "add", "dev", self.tap, "mode", "tap"])
        run(["ip", "link", "set", self.tap, "master", bridge, "up"])

    def _command(self, gateway: str, arguments: str) -> list:
        node, image = self.node, self.image
        # name of the interface: eth0; systemd-network-generator configures it from `ip=`
        address = f"ip={node.ip}::{gateway}:255.255.255.0:{node.name}:eth0:none"
        kernel = (
            f"root=/dev/vda rw console=ttyS0 net.ifnames=0 panic=5 {address}"
            f" systemd.hostname={node.name} systemd.machine_id={self.machine_id}"
            f" systemd.show_status=false {arguments}"
        )
        accelerator = ["-accel", "tcg,thread=multi", "-cpu", "max"]
        return [
            "qemu-system-x86_64", "-name", f"{node.container},process={self.tap}",
            *accelerator, "-smp", "1", "-m", str(MEMORY_MIB[node.role]),
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-rtc", "base=utc,clock=host",
            "-kernel", image / "vmlinuz", "-initrd", image / "initrd.img", "-append", kernel,
            "-drive", f"file={self.disk},if=virtio,format=qcow2,cache=writeback,discard=unmap",
            "-netdev", f"tap,id=net0,ifname={self.tap},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=net0,mac={self.mac}",
            "-device", "virtio-rng-pci",
            "-chardev", f"file,id=serial,path={self.console},append=on",
            "-serial", "chardev:serial",
            "-qmp", f"unix:{self.control},server=on,wait=off",
            "-pidfile", self._pid_file, "-daemonize",
        ]  # fmt: skip

    def cut_power(self) -> None:
        """Kill the machine: what its kernel has not written is lost."""
        pid = self.pid
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.wait_off(30)

    def wait_off(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        while self.pid is not None:
            if time.monotonic() > end:
                raise TimeoutError(f"the machine of {self.node.name} does not end")
            time.sleep(0.1)

    # -- its state, kept and restored

    def ask(self, command: str, **arguments) -> object:
        """Send one command to QEMU's monitor and return its answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(120)
            connection.connect(str(self.control))
            lines = connection.makefile("rw", encoding="utf-8")
            lines.readline()
            for request in ({"execute": "qmp_capabilities"},
                            {"execute": command, "arguments": arguments}):  # fmt: skip
                lines.write(json.dumps(request) + "\n")
                lines.flush()
                answer = json.loads(lines.readline())
                while "event" in answer:
                    answer = json.loads(lines.readline())
        if "error" in answer:
            raise RuntimeError(f"QEMU of {self.node.name}: {command}: {answer['error']}")
        return answer["return"]

    def _monitor(self, line: str) -> None:
        said = self.ask("human-monitor-command", **{"command-line": line})
        if said:
            raise RuntimeError(f"QEMU of {self.node.name}: {line}: {said}")

    def keep(self, name: str) -> None:
        """Keep the machine as it is, its memory too."""
        self._monitor(f"savevm {name}")

    def restore(self, name: str) -> None:
        """Bring back what `keep` kept; the machine's clock is set to the present."""
        self._monitor(f"loadvm {name}")
        execute(self.node, ["date", "-u", "-s", f"@{time.time():.0f}"], timeout=60)


def missing_packages() -> list:
    return [package for package, program in PROOF.items() if shutil.which(program) is None]


def ensure_host() -> None:
    """Install QEMU where it is missing."""
    missing = missing_packages()
    if missing:
        note(f"installing {' '.join(missing)}")
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing]
        run(install, env=env, timeout=900)


def key() -> Path:
    """Return the private key that every image trusts."""

    def make(folder: Path) -> None:
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", folder / "id"])

    return artefact("vm-key", ["1"], make) / "id"


def execute(
    node, argv, timeout=60, check=True, data: bytes | None = None
) -> subprocess.CompletedProcess:
    """Run a program on the machine by ssh, or a shell line if argv is a string."""
    line = argv if isinstance(argv, str) else shlex.join(map(str, argv))
    RUN.mkdir(mode=0o700, exist_ok=True)
    shared = f"-o ControlMaster=auto -o ControlPersist=60 -o ControlPath={RUN}/%C"
    # a shell without a login has no sbin in its PATH
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return run(
        ["ssh", *SSH, *shared.split(), "-i", key(), f"root@{node.ip}",
         f"export {path}; {line}"],
        timeout=timeout,
        check=check,
        input=data,
    )  # fmt: skip
