# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Containers that run systemd, and the networks they are in."""

from __future__ import annotations

import json
from pathlib import Path

from tests.lab.cluster import paths
from tests.lab.cluster.host import note, run

LABEL = "kubemend.lab"

# Not --systemd=always: on hybrid cgroups every node's PID 1 would share the host's hierarchy, and
# stopping one node
# breaks `podman exec` in the others. The limits stay at what a host without CAP_SYS_RESOURCE
# allows.
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
    "--ulimit",
    "nofile=20000:20000",
    "--ulimit",
    "nproc=4096:4096",
    # A new network namespace copies the machine's value, which podman itself sets to 1 when the
    # first container starts: nodes that start together would differ.
    "--sysctl",
    "net.ipv4.ip_forward=1",
)
# overlay on overlay does not work, so what mounts layers or syncs to disk gets a volume.
VOLUMES = ("/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd")


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


def run_node(
    container: str, hostname: str, image: str, network: str, ip: str, cluster: str
) -> None:
    volumes = [part for path in VOLUMES for part in ("-v", path)]
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
        image,
        "/sbin/init",
        timeout=120,
    )


def remove_containers(names: list) -> None:
    if names:
        podman("rm", "-f", "-t", "0", "-i", "-v", *names, timeout=300)


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
    """Remove nodes of a checkout that is gone: no other run would ever remove them."""
    listed = podman("ps", "-a", "--format", "json", f"--filter=label={LABEL}=1", timeout=60).stdout
    gone, networks = [], set()
    for entry in json.loads(listed or b"[]") or []:
        root = entry["Labels"].get(f"{LABEL}.root", "")
        if root and not Path(root).is_dir():
            gone.append(entry["Names"][0])
            networks.update(entry.get("Networks") or [])
    if gone:
        note(f"removing {len(gone)} nodes of a checkout that no longer exists")
        remove_containers(gone)
        for network in networks:
            remove_network(network)
