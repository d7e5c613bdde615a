# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Containers that run systemd, and the networks they are in."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
import secrets
import shlex
import subprocess
import time
from pathlib import Path

from tests.lab.cluster import paths
from tests.lab.cluster.host import note, run

LABEL = "kubemend.lab"

# What a host without CAP_SYS_RESOURCE allows.
ULIMITS = ("nofile=20000:20000", "nproc=4096:4096")
# Not --systemd=always: on hybrid cgroups every node's PID 1 would share the host's hierarchy, and
# stopping one node breaks `podman exec` in the others.
SYSTEMD_FLAGS = (
    "--systemd=false",
    "--tmpfs",
    "/run:rw,exec,mode=755",
    "--tmpfs",
    "/run/lock",
    "--tmpfs",
    "/tmp:exec,mode=1777",
    "-e",
    "container=podman",
    "--stop-signal",
    "SIGRTMIN+3",
    "--privileged",
    "--cgroupns=private",
    *(word for limit in ULIMITS for word in ("--ulimit", limit)),
    # A new network namespace copies the machine's value, which podman itself sets to 1 when the
    # first container starts: nodes that start together would differ.
    "--sysctl",
    "net.ipv4.ip_forward=1",
)
# overlay on overlay does not work, so what mounts layers or syncs to disk gets a volume.
VOLUMES = ("/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd")
# The name of such a volume behind that of its container. podman gives no label to a volume that it
# makes, and without a name of the lab's own nothing tells whose it was.
VOLUME = r"-[0-9a-f]{6}-(?:containerd|kubelet|etcd)"
OF_LAB = re.compile(r"kubemend-[0-9a-f]{6}-.{1,200}" + VOLUME)
# A volume is there for a moment before the container that uses it.
YOUNG_SECONDS = 600
CGROUPS = Path("/sys/fs/cgroup")
# What `podman exec` says of a container that does not run.
NOT_RUNNING = 125
# The name of a container's first process until it runs the container's program.
STARTING = "runc:["
STARTING_SECONDS = 20


def podman(*argv, **kwargs):
    # crun refuses hybrid cgroups.
    return run(["podman", "--runtime", "runc", *argv], **kwargs)


def labels(cluster: str) -> list:
    return [
        f"--label={LABEL}=1",
        f"--label={LABEL}.root={paths.ROOT}",
        f"--label={LABEL}.cluster={cluster}",
    ]


def create_network(name: str, cluster: str) -> str:
    """Create the network and return its subnet, as podman chose it among the free ones here."""
    podman("network", "create", "--disable-dns", *labels(cluster), name, timeout=60)
    described = json.loads(podman("network", "inspect", name, timeout=60).stdout)[0]
    return described["subnets"][0]["subnet"]


def bridge(name: str) -> tuple[str, str]:
    """Return the network's bridge on this machine, and the gateway of its subnet."""
    described = json.loads(podman("network", "inspect", name, timeout=60).stdout)[0]
    return described["network_interface"], described["subnets"][0]["gateway"]


def hardware_address(ip: str) -> str:
    """Return the MAC address of a node.

    podman would choose another one at each start. A machine keeps its own, and where it changes
    the others do not reach the node until their ARP entries end.
    """
    number = int(ipaddress.IPv4Address(ip))
    return ":".join(["02", "6b", *(f"{number >> shift & 255:02x}" for shift in (24, 16, 8, 0))])


def run_node(
    container: str, hostname: str, image: str, network: str, ip: str, cluster: str
) -> None:
    # Never the name of a former volume: a node begins empty.
    start = f"{container}-{secrets.token_hex(3)}"
    volumes = [part for path in VOLUMES for part in ("-v", f"{start}-{Path(path).name}:{path}")]
    podman(
        "run",
        "-d",
        "--replace",
        "--pull=never",
        "--name",
        container,
        "--hostname",
        hostname,
        *SYSTEMD_FLAGS,
        *labels(cluster),
        *volumes,
        "--network",
        network,
        "--ip",
        ip,
        "--mac-address",
        hardware_address(ip),
        image,
        "/sbin/init",
        timeout=120,
    )


@dataclasses.dataclass(frozen=True)
class Inside:
    """How a program gets into a container: its first process, and the path of its control group."""

    pid: int
    started: str
    group: str

    @property
    def running(self) -> bool:
        return bool(self.started) and _started(self.pid) == self.started

    def command(self, words: list[str]) -> list[str]:
        # systemd moves itself while it starts, so the groups are those of this moment.
        own = Path("/proc", str(self.pid), "cgroup").read_text(encoding="utf-8").split()
        groups = control_groups(own, self.group)
        join = " && ".join(f"echo $$ > {shlex.quote(group)}/cgroup.procs" for group in groups)
        return [
            "sh",
            "-c",
            f'{join or "true"} && exec "$@"',
            "sh",
            "prlimit",
            *(f"--{limit}" for limit in ULIMITS),
            "nsenter",
            f"--target={self.pid}",
            *("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"),
            *words,
        ]

    def environment(self) -> dict[str, str]:
        text = Path("/proc", str(self.pid), "environ").read_text(encoding="utf-8")
        return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)


INSIDE: dict[str, Inside] = {}


def execute(
    container: str, words: list[str], timeout: float, check: bool, data: bytes | None
) -> subprocess.CompletedProcess:
    """Run a program in a container as `podman exec` does, at a small part of its CPU.

    The lab asks its nodes thousands of times.
    """
    inside = INSIDE.get(container)
    if inside is None or not inside.running:
        inside = _inside(container)
    try:
        if inside is None:
            raise ProcessLookupError
        command, environment = inside.command(words), inside.environment()
    except OSError:  # its first process ended meanwhile
        INSIDE.pop(container, None)
        said = f"container {container} does not run"
        if check:
            raise RuntimeError(said) from None
        return subprocess.CompletedProcess(words, NOT_RUNNING, b"", said.encode())
    INSIDE[container] = inside
    return run(command, timeout=timeout, check=check, input=data, env=environment)


def _inside(container: str) -> Inside | None:
    """Find a container's first process; None if it does not run."""
    form = "{{.State.Pid}} {{.State.CgroupPath}}"
    found = podman("inspect", "-f", form, container, check=False, timeout=60).stdout.split()
    if len(found) != 2 or found[0] == b"0":
        return None
    pid, group = int(found[0]), found[1].decode()
    started = _started(pid)
    deadline = time.monotonic() + STARTING_SECONDS
    while _name(pid).startswith(STARTING) and time.monotonic() < deadline:
        time.sleep(0.05)
    return Inside(pid, started, group)


def _name(pid: int) -> str:
    """Return the name of a process; empty if it is gone."""
    try:
        return Path("/proc", str(pid), "comm").read_text(encoding="utf-8")
    except OSError:
        return ""


def control_groups(own: list[str], group: str) -> tuple[str, ...]:
    """Return the folders of a container's control groups.

    own: the lines of its first process. In version 2 a group with controllers holds no process, so
    there it is the group of the first process.
    """
    found = []
    for line in own:
        _number, names, path = line.split(":", 2)
        if names:
            folder = CGROUPS / names.removeprefix("name=") / group.lstrip("/")
        elif (CGROUPS / "cgroup.controllers").exists():
            folder = CGROUPS / path.lstrip("/")
        else:
            folder = CGROUPS / "unified" / path.lstrip("/")
        if (folder / "cgroup.procs").exists():
            found.append(str(folder))
    return tuple(found)


def _started(pid: int) -> str:
    """Return when a process was started, in the kernel's ticks; empty if it is gone."""
    try:
        text = Path("/proc", str(pid), "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]


def remove_containers(names: list) -> None:
    """Remove nodes and their volumes, with names and without."""
    if not names:
        return
    podman("rm", "-f", "-t", "0", "-i", "-v", *names, timeout=300)
    own = re.compile("(?:" + "|".join(map(re.escape, names)) + ")" + VOLUME)
    _remove_volumes([name for name in volumes() if own.fullmatch(name)])


def volumes(*filters: str) -> dict[str, int]:
    """Name -> when it was made, of the volumes here."""
    form = "{{.CreatedAt.Unix}} {{.Name}}"
    listed = podman("volume", "ls", *filters, "--format", form, timeout=60).stdout.decode()
    rows = (line.split(" ", 1) for line in listed.splitlines() if " " in line)
    return {name: int(made) for made, name in rows}


def _remove_volumes(names: list) -> None:
    if names:
        podman("volume", "rm", *names, check=False, timeout=600)


def remove_network(name: str) -> None:
    podman("network", "rm", "-f", name, check=False, timeout=120)


def containers(cluster: str | None = None, root: Path | None = paths.ROOT) -> dict:
    """Name -> state of the lab's containers; of every checkout if root is None."""
    filters = [f"--filter=label={LABEL}=1"]
    if root is not None:
        filters.append(f"--filter=label={LABEL}.root={root}")
    if cluster is not None:
        filters.append(f"--filter=label={LABEL}.cluster={cluster}")
    listed = podman("ps", "-a", "--format", "json", *filters, timeout=60).stdout
    return {entry["Names"][0]: entry["State"] for entry in json.loads(listed or b"[]") or []}


def remove_orphans() -> None:
    """Remove nodes of clusters without a record, and volumes without a node.

    No other run would ever remove them: that of their checkout was killed.
    """
    listed = podman("ps", "-a", "--format", "json", f"--filter=label={LABEL}=1", timeout=60).stdout
    gone, networks = [], set()
    for entry in json.loads(listed or b"[]") or []:
        if not _is_recorded(entry["Labels"]):
            gone.append(entry["Names"][0])
            networks.update(entry.get("Networks") or [])
    if gone:
        note(f"removing {len(gone)} nodes of clusters that no longer exist")
        remove_containers(gone)
        for network in networks:
            remove_network(network)
    oldest = time.time() - YOUNG_SECONDS
    unused = volumes("--filter", "dangling=true")
    _remove_volumes(
        [name for name, made in unused.items() if OF_LAB.fullmatch(name) and made < oldest]
    )


def _is_recorded(labels_of_node: dict) -> bool:
    """Tell whether the checkout of a node still has the record of its cluster.

    A cluster's record is there before its first node, and goes after the last one.
    """
    root = labels_of_node.get(f"{LABEL}.root", "")
    cluster = labels_of_node.get(f"{LABEL}.cluster", "")
    return not root or (Path(root) / paths.STATE.name / cluster / "state.json").is_file()
