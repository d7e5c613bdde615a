# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cluster: its record on disk, its nodes, and bringing it up and down."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import secrets
import shutil
import subprocess
import time
from pathlib import Path

from tests.lab.cluster import (
    bringup,
    health,
    images,
    inventory,
    kernel,
    paths,
    podman,
    vm,
)
from tests.lab.cluster import (
    node as cluster_node,
)
from tests.lab.cluster.host import ensure_host, note, run, version_unavailable_reason
from tests.lab.cluster.node import Node
from tests.lab.cluster.store import is_held, locked
from tests.lab.cluster.vm import Machine
from tests.lab.support.change import Changes


def usual_name(k8s: str, layout: str) -> str:
    """Clusters of one version and different layouts stand side by side.

    The name makes their networks and nodes differ.
    """
    return k8s if layout == "kubeadm" else f"{k8s}-{layout}"


class Cluster(Changes):
    """Masters m1.. and workers w1.. of one Kubernetes version.

    `name` allows two clusters of one version.
    """

    def __init__(
        self,
        k8s: str,
        masters: int = 3,
        workers: int = 1,
        timers: str = "short",
        name: str | None = None,
        prefix: str = "",
        layout: str = "kubeadm",
        labels: dict | None = None,
        vms: int = 0,
    ):
        if layout not in bringup.LAYOUTS:
            raise SystemExit(f"lab: no layout {layout!r}; there are: {', '.join(bringup.LAYOUTS)}")
        self.k8s, self.masters, self.workers, self.timers = k8s, masters, workers, timers
        self.name, self.prefix, self.layout = name or usual_name(k8s, layout), prefix, layout
        self.folder = paths.STATE / self.name
        self.labels = labels or {}  # of all its first nodes
        self.vms = vms  # workers with a kernel of their own
        self.temporary = False  # of one test, which removes it
        self.nodes, self.state, self._locks = [], {}, 0
        self._load()

    @classmethod
    def find(cls, k8s: str | None, name: str | None = None, layout: str = "kubeadm") -> Cluster:
        """Return the cluster as it was last brought up; fail if there is none."""
        name = name or usual_name(k8s, layout)
        record = paths.STATE / name / "state.json"
        if not record.is_file():
            raise SystemExit(f"lab: no cluster {name}; up: {', '.join(cls.known()) or 'none'}")
        state = json.loads(record.read_text())
        return cls(
            state["k8s"],
            state["masters"],
            state["workers"],
            state["timers"],
            state["name"],
            state["prefix"],
            state["layout"],
            vms=state.get("vms", 0),
        )

    @staticmethod
    def known() -> list:
        return sorted(record.parent.name for record in paths.STATE.glob("*/state.json"))

    # -- its record
    # ---------------------------------------------------------------------------------------------
    @property
    def network(self) -> str:
        return f"kubemend-{paths.CHECKOUT}-{self.name}"

    @property
    def key(self) -> Path:
        return self.folder / "id_ed25519"

    @property
    def lock(self) -> Path:
        return paths.STATE / f"{self.name}.lock"

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory.yml"

    @property
    def endpoint(self) -> str:
        return f"{self.state['endpoint']}:6443"

    def inventory_data(
        self, prefix: str = "", leave_out=(), extra_vars: dict | None = None
    ) -> dict:
        return inventory.inventory(
            [n for n in self.nodes if n.joined], self.key, prefix, leave_out, extra_vars
        )

    def _load(self) -> None:
        record = self.folder / "state.json"
        if record.is_file():
            self.state = json.loads(record.read_text())
            self.nodes = [Node(**node) for node in self.state["nodes"]]

    def save(self) -> None:
        self.state["nodes"] = [node.as_dict() for node in self.nodes]
        temp = self.folder / ".state.json.tmp"
        temp.write_text(json.dumps(self.state, indent=1) + "\n")
        temp.rename(self.folder / "state.json")
        inventory.write(self.inventory, self.inventory_data())

    @contextlib.contextmanager
    def locked(self):
        """Let one run at a time work on one cluster.

        The lock is re-entrant, and ends with the process.
        """
        if self._locks:
            yield
            return
        with locked(self.lock, f"another run on the cluster {self.name}"):
            self._locks += 1
            try:
                yield
            finally:
                self._locks -= 1

    # -- what tests use
    # -----------------------------------------------------------------------------------------
    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise SystemExit(
            f"lab: {self.name} has no node {name}; it has {', '.join(n.name for n in self.nodes)}"
        )

    def _node(self, node) -> Node:
        return node if isinstance(node, Node) else self.node(node)

    def of_role(self, role: str) -> list:
        return [node for node in self.nodes if node.role == role]

    # `input` is the name that subprocess uses too.
    def exec(self, node, argv, timeout=120, check=True, input=None):  # noqa: A002
        return cluster_node.execute(self._node(node), argv, timeout, check, input)

    def read(self, node, path: str) -> bytes:
        return cluster_node.read(self._node(node), path)

    def write(
        self, node, path: str, data, mode: str | None = None, mtime: str | None = None
    ) -> None:
        cluster_node.write(self._node(node), path, data, mode, mtime)

    def kubectl(self, *args, input=None, check=True, node=None, timeout=120):  # noqa: A002
        """Run kubectl with admin.conf, but against that master's own API server.

        The file itself names the first master's.
        """
        master = (
            self._node(node)
            if node
            else next((n for n in self.of_role("master") if n.joined), None)
        )
        if master is None:
            raise RuntimeError(f"no master of {self.name} has joined: its bring-up was interrupted")
        return self.exec(
            master,
            [
                "kubectl",
                "--kubeconfig=/etc/kubernetes/admin.conf",
                f"--server=https://{master.ip}:6443",
                *args,
            ],
            timeout,
            check,
            input,
        )

    @staticmethod
    def wait(predicate, timeout: float, what: str, every: float = 1.0):
        return cluster_node.wait(predicate, timeout, what, every)

    def problems(self) -> list:
        return health.problems(self)

    def wait_healthy(self, timeout: float = 480) -> None:
        def healthy():
            found = self.problems()
            if found:
                raise ValueError("; ".join(found))
            return True

        self.wait(healthy, timeout, f"a healthy cluster {self.name}", every=2)

    def container_states(self) -> dict:
        present = podman.containers(self.name)
        present.update(
            (node.container, "running")
            for node in self.nodes
            if node.vm and self.machine(node).pid is not None
        )
        return {node.name: present.get(node.container, "absent") for node in self.nodes}

    def machine(self, node) -> Machine:
        """Return the virtual machine of a node."""
        return Machine(self._node(node), self.folder / "vms" / self._node(node).name)

    def status(self) -> dict:
        found = self.problems() if self.nodes else ["never brought up"]
        return {
            "name": self.name,
            "k8s": self.k8s,
            "layout": self.layout,
            "timers": self.state.get("timers"),
            "healthy": not found,
            "problems": found,
            "open_incidents": sorted(p.stem for p in self.folder.glob("open/*.json")),
            "inventory": str(self.inventory),
            "nodes": self.container_states(),
        }

    # -- up and down
    # --------------------------------------------------------------------------------------------
    def up(self) -> Cluster:
        ensure_host()
        reason = version_unavailable_reason(self.k8s)
        if reason:
            raise SystemExit(f"lab: {reason}")
        remove_leftovers()
        image = images.node_image(self.k8s)
        with self.locked():
            kernel.raise_limits()
            self._load()
            if not self._reuse(image):
                self._build_once_more(image)
            self.scale_vms(self.vms)
            self.state["vms"] = self.vms
            self.state["temporary"] = self.temporary
            self.save()
        return self

    def _reuse(self, image: str) -> bool:
        wanted = {
            "k8s": self.k8s,
            "image": image,
            "masters": self.masters,
            "timers": self.timers,
            "prefix": self.prefix,
            "layout": self.layout,
        }
        if not self.state or any(self.state.get(key) != value for key, value in wanted.items()):
            return False
        if [node.joined for node in self.of_role("master")] != [True] * self.masters:
            # how far it came is not worth finding out
            note(f"{self.name} is rebuilt: its bring-up was interrupted")
            return False
        if any(self.folder.glob("open/*.json")):
            # What an interrupted run broke may be anything: a new cluster is quicker than finding
            # out.
            return False
        if not self.settled():
            return False
        self.scale_workers(self.workers)
        self.state["workers"] = self.workers
        self.save()
        note(f"{self.name} is up and healthy")
        return True

    def settled(self, timeout: float = 60) -> bool:
        """Healthy, or within a moment so: a heartbeat may be late on a busy machine."""
        if "absent" in self.container_states().values():
            return False
        try:
            self.wait_healthy(timeout)
        except TimeoutError as error:
            note(f"{self.name} is rebuilt: {error}")
            return False
        return True

    def _build_once_more(self, image: str) -> None:
        """Build the cluster, and a second time if its programs did not get up in their time."""
        try:
            self._build(image)
        except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
            note(f"{self.name} is built once more: {error}")
            self._build(image)

    def _build(self, image: str) -> None:
        started = time.monotonic()
        self.down()
        kernel.raise_limits()
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o700)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", self.key])
        subnet = podman.create_network(self.network, self.name)
        self.state = {
            "k8s": self.k8s,
            "name": self.name,
            "prefix": self.prefix,
            "layout": self.layout,
            "image": image,
            "masters": self.masters,
            "workers": self.workers,
            "timers": self.timers,
            "temporary": self.temporary,
            "subnet": subnet,
            "pause": images.pause_image(self.k8s),
            "endpoint": str(ipaddress.ip_network(subnet)[11]),
            "token": f"{secrets.token_hex(3)}.{secrets.token_hex(8)}",
            "certificate_key": secrets.token_hex(32),
        }
        self.nodes = []
        for role, count in (("master", self.masters), ("worker", self.workers)):
            for _each in range(count):
                self.new_node(role, self.labels)
        self.save()
        note(f"booting {len(self.nodes)} nodes of {self.name} in {subnet}")
        bringup.parallel(lambda node: bringup.boot(self, node), self.nodes)
        bringup.form(self)
        self.save()
        self.wait_healthy()
        note(f"{self.name} is up after {time.monotonic() - started:.0f} s: {self.inventory}")

    def down(self) -> None:
        """Remove everything of that name, whatever an interrupted run left of it."""
        with self.locked():
            self._load()
            for node in self.nodes:
                if node.vm:
                    self.machine(node).remove()
            podman.remove_containers(sorted(podman.containers(self.name)))
            podman.remove_network(self.network)
            shutil.rmtree(self.folder, ignore_errors=True)
            self.state, self.nodes = {}, []
            kernel.restore_if_last()


def remove_leftovers() -> None:
    """Remove what killed runs left here: nodes, volumes, and the clusters of single tests."""
    podman.remove_orphans()
    vm.remove_orphans()
    for name in Cluster.known():
        cluster = Cluster.find(name, name)
        if cluster.state.get("temporary") and not is_held(cluster.lock):
            note(f"removing {name}, which a killed run left")
            cluster.down()
