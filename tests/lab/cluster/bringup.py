# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""From an empty container to a node of the cluster."""

from __future__ import annotations

import concurrent.futures
import socket
from pathlib import Path

from tests.lab.cluster import images, kubeadm, kubespray, podman, vm_image
from tests.lab.cluster import node as cluster_node
from tests.lab.cluster.host import note

# By layout. Not in /etc/kubernetes where the installer would not: what is there is what an audit
# reads.
CONFIG = {"kubeadm": "/root/kubeadm.json", "kubespray": kubespray.KUBEADM_CONFIG}
LAYOUTS = tuple(CONFIG)
ENDPOINT_PORT = 6443
SSH_PORT = 22


def parallel(function, items) -> list:
    """Run the function on every item, even when one fails.

    Otherwise a half-finished item would be left running.
    """
    items = list(items)
    if not items:
        return []
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(items)) as pool:
        futures = [pool.submit(function, item) for item in items]
    return [future.result() for future in futures]


def boot(cluster, node) -> None:
    """Boot a systemd node with everything that kubeadm needs, not yet part of a cluster."""
    if node.vm:
        machine = cluster.machine(node)
        machine.create(vm_image.image(cluster.k8s, node.vm))
        power_on(cluster, node)
    else:
        podman.run_node(
            node.container,
            node.name,
            cluster.state["image"],
            cluster.network,
            node.ip,
            cluster.name,
        )
    prepare(cluster, node)


def power_on(cluster, node, memory_mib: int | None = None, state: str | None = None) -> None:
    """Switch a virtual machine on; `wait_booted` waits until it is up.

    memory_mib: what it has in place of the usual
    state: the kept state that it goes on from, in place of a boot
    """
    bridge, gateway = podman.bridge(cluster.network)
    arguments = vm_image.arguments(cluster.k8s)
    cluster.machine(node).power_on(bridge, gateway, arguments, memory_mib, state)


def wait_booted(node) -> None:
    def running():
        state = (
            cluster_node.execute(node, ["systemctl", "is-system-running"], check=False)
            .stdout.decode()
            .strip()
        )
        if state not in ("running", "degraded"):
            raise ValueError(f"systemd says {state!r}")
        return True

    cluster_node.wait(running, 240, f"systemd of {node.name}", every=0.5)


def start_again(node) -> None:
    """Kill the container and start it, as after a power cut, until systemd is up and ssh answers.

    Its cluster may need longer.
    """
    podman.podman("kill", node.container, timeout=60)
    podman.podman("start", node.container, timeout=60)
    wait_booted(node)
    cluster_node.wait(lambda: ssh_answers(node), 120, f"ssh of {node.name}", every=0.5)


def ssh_answers(node) -> bool:
    try:
        with socket.create_connection((node.ip, SSH_PORT), 5) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError as error:
        raise ValueError(str(error)) from error


def cut_power(cluster, node) -> None:
    """Kill a virtual machine and boot it again, until systemd is up."""
    cluster.machine(node).cut_power()
    power_on(cluster, node)
    wait_booted(node)


def reboot(node) -> None:
    """Reboot a virtual machine in order, until systemd is up again."""
    former = boot_id(node)
    cluster_node.execute(node, ["systemctl", "reboot"], check=False)

    def booted():
        if boot_id(node) == former:
            raise ValueError("it has not gone down yet")
        return True

    cluster_node.wait(booted, 240, f"the reboot of {node.name}", every=1)
    wait_booted(node)


def boot_id(node) -> bytes:
    return cluster_node.read(node, "/proc/sys/kernel/random/boot_id")


def prepare(cluster, node) -> None:
    wait_booted(node)
    own = images.own_containerd(cluster.k8s)
    public_key = Path(f"{cluster.key}.pub").read_text()
    spray = (
        kubespray.files(cluster.k8s, node, cluster.state["pause"], cluster.timers, _swap_on())
        if cluster.layout == "kubespray"
        else {}
    )
    if spray:
        cluster_node.execute(node, kubespray.SCRIPT)
    cluster_node.write_many(
        node,
        {
            **spray,
            "/etc/containerd/config.toml": (
                kubeadm.containerd_config(own, cluster.state["pause"]),
                0o644,
            ),
            "/etc/cni/net.d/10-lab.conflist": (kubeadm.cni_config(node.index), 0o644),
            "/root/.ssh/authorized_keys": (public_key, 0o600),
        },
    )
    tars = "pause.tar control.tar" if node.role == "master" else "pause.tar"
    cluster_node.execute(
        node,
        f"""set -e
chmod 700 /root/.ssh
systemctl enable --now ssh >/dev/null 2>&1
systemctl restart containerd
i=0; until ctr version >/dev/null 2>&1; do i=$((i+1)); [ $i -lt 240 ]; sleep 0.5; done
cd /opt/kubemend-lab
for tar in {tars}; do ctr -n k8s.io images import --snapshotter overlayfs $tar >/dev/null; done
systemctl daemon-reload
systemctl enable kubelet >/dev/null 2>&1
""",
        timeout=480,
    )


def _swap_on() -> bool:
    return len(Path("/proc/swaps").read_text().splitlines()) > 1


def _kubeadm(cluster, node, config: str, *argv) -> None:
    path = CONFIG[cluster.layout]
    if cluster.layout == "kubespray":
        config = kubespray.adjusted(cluster.k8s, config)
    cluster_node.write(node, path, config, mode="600")
    verbose = cluster_node.execute(
        node, ["kubeadm", *argv, "--config", path], timeout=600, check=False
    )
    if verbose.returncode:
        units = (
            "journalctl -u kubelet -u containerd --no-pager -n 40 2>/dev/null; ls /var/log/pods"
            " 2>/dev/null"
        )
        tail = cluster_node.execute(node, units, check=False).stdout.decode("utf-8", "replace")
        said = (verbose.stdout + verbose.stderr).decode("utf-8", "replace")
        raise RuntimeError(
            f"kubeadm {argv[0]} on {node.name}: exit {verbose.returncode}:"
            f" {_reason(said)}\n{said[-3000:]}\n{tail[-3000:]}"
        )
    node.joined = True


def _reason(said: str) -> str:
    """Return the line in which kubeadm tells why it ended, for the first line of an error."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error") or "[ERROR" in line]
    return next(reversed(errors or lines), "it printed nothing")[:300]


def init(cluster, node) -> None:
    config = kubeadm.init_config(
        cluster.k8s,
        node,
        token=cluster.state["token"],
        certificate_key=cluster.state["certificate_key"],
        timers=cluster.timers,
        swap_on=_swap_on(),
        labels=node.labels,
    )
    _kubeadm(cluster, node, config, "init", "--skip-phases=preflight,addon", "--upload-certs")


def join(cluster, node) -> None:
    first = next(
        one for one in cluster.nodes if one.role == "master" and one.joined and one is not node
    )
    if node.role == "master":
        _refresh_certificates(cluster, first)
    config = kubeadm.join_config(
        cluster.k8s,
        node,
        cluster.endpoint,
        token=cluster.state["token"],
        certificate_key=cluster.state["certificate_key"],
        labels=node.labels,
    )
    _kubeadm(cluster, node, config, "join", "--skip-phases=preflight")


def _refresh_certificates(cluster, first) -> None:
    """Upload the certificates again, which vanish after two hours.

    A staged master may join later than that.
    """
    secret = cluster.kubectl(
        "-n", "kube-system", "get", "secret", "kubeadm-certs", check=False, node=first
    )
    if secret.returncode:
        cluster_node.execute(
            first,
            [
                "kubeadm",
                "init",
                "phase",
                "upload-certs",
                "--upload-certs",
                "--config",
                CONFIG[cluster.layout],
            ],
            timeout=120,
        )


def form(cluster) -> None:
    """Make one cluster of all booted nodes.

    Masters join in turn (etcd takes one learner at a time).
    """
    masters = [node for node in cluster.nodes if node.role == "master"]
    workers = [node for node in cluster.nodes if node.role == "worker"]
    note(f"kubeadm init on {masters[0].name}")
    init(cluster, masters[0])
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as beside:
        joining = beside.submit(parallel, lambda node: join(cluster, node), workers)
        for master in masters[1:]:
            note(f"kubeadm join on {master.name}")
            join(cluster, master)
        joining.result()
