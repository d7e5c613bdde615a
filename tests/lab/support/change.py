# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Nodes that come, go, restart, or stop answering ssh."""

from __future__ import annotations

import ipaddress

from tests.lab.cluster import bringup, paths, podman, vm_image
from tests.lab.cluster import node as cluster_node
from tests.lab.cluster.node import Node

# Ports of ssh connections that are blocked; "drop" is a firewall, "refuse" a dead sshd.
_DROP = ("-p", "tcp", "--dport", "22", "-j", "DROP")


class Changes:
    """Changes of a cluster, mixed into Cluster and kept apart from bringing it up."""

    def new_node(self, role: str, labels: dict, vm: str = "") -> Node:
        """Return a record only: the next free name, and an address that follows from it."""
        letter, first = ("m", 10) if role == "master" else ("w", 100)
        taken = {node.index for node in self.nodes}
        number = next(n for n in range(1, 100) if first + n not in taken)
        name = f"{self.prefix}{letter}{number}"
        ip = str(ipaddress.ip_network(self.state["subnet"])[first + number])
        node = Node(
            name,
            role,
            ip,
            f"kubemend-{paths.CHECKOUT}-{self.name}-{name}",
            first + number,
            dict(labels),
            vm=vm,
        )
        self.nodes.append(node)
        return node

    def stage_join(self, role: str = "worker", labels: dict | None = None, vm: str = "") -> Node:
        """Boot and prepare a node; `join` it later."""
        with self.locked():
            node = self.new_node(role, labels or {}, vm)
            self.save()
            bringup.boot(self, node)
            return node

    def join(self, node) -> Node:
        with self.locked():
            node = self._node(node)
            bringup.join(self, node)
            self.save()
            self.wait(lambda: self._ready(node), 300, f"{node.name} to become Ready")
            return node

    def add_node(
        self, role: str = "worker", labels: dict | None = None, join: bool = True, vm: str = ""
    ) -> Node:
        node = self.stage_join(role, labels, vm)
        return self.join(node) if join else node

    def _ready(self, node) -> bool:
        said = self.kubectl(
            "get",
            "node",
            node.name,
            "-o",
            'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
        ).stdout
        return said == b"True"

    def remove_node(self, node) -> None:
        """Remove a node as an operator does.

        The etcd member goes first, then the Node, then the machine.
        """
        with self.locked():
            node = self._node(node)
            if node.joined:
                if node.role == "master":
                    self._remove_etcd_member(node)
                keeper = next(n for n in self.of_role("master") if n.joined and n is not node)
                self.kubectl("delete", "node", node.name, "--ignore-not-found", node=keeper)
            if node.vm:
                self.machine(node).remove()
            else:
                podman.remove_containers([node.container])
            self.nodes.remove(node)
            self.save()

    def _remove_etcd_member(self, node) -> None:
        keeper = next(n for n in self.of_role("master") if n.joined and n is not node)
        for line in self.etcdctl("member", "list", node=keeper).stdout.decode().splitlines():
            if f" {node.name}," in line:
                self.etcdctl("member", "remove", line.split(",")[0], node=keeper)

    def etcdctl(self, *argv, node=None):
        node = self._node(node) if node else self.of_role("master")[0]
        return self.exec(node, [*self.etcdctl_words(node), *argv])

    def etcdctl_words(self, node) -> list:
        """Return the words before a command of etcdctl for the member of a node."""
        pki = "/etc/kubernetes/pki/etcd"
        return [
            "etcdctl",
            f"--endpoints=https://{self._node(node).ip}:2379",
            f"--cacert={pki}/ca.crt",
            f"--cert={pki}/server.crt",
            f"--key={pki}/server.key",
        ]

    def scale_workers(self, count: int) -> None:
        workers = [node for node in self.of_role("worker") if node.joined and not node.vm]
        for node in [node for node in self.nodes if not node.joined] + workers[count:]:
            self.remove_node(node)
        bringup.parallel(self.join, [self.new_and_boot() for _each in range(count - len(workers))])

    def new_and_boot(self) -> Node:
        return self.stage_join("worker")

    def scale_vms(self, count: int) -> None:
        """Have that many workers that are virtual machines."""
        machines = [node for node in self.of_role("worker") if node.vm]
        for node in machines[count:]:
            self.remove_node(node)
        for _each in range(count - len(machines)):
            self.add_node(vm=vm_image.suites()[0])

    def restart_node(self, node, timeout: float = 180, healthy: bool = True) -> None:
        """Reboot a node: every process ends, /run is empty, the disk stays.

        healthy: wait until the cluster is healthy again
        """
        with self.locked():
            node = self._node(node)
            if node.vm:
                bringup.reboot(node)
            else:
                podman.podman("stop", "-t", "5", node.container, check=False, timeout=60)
                podman.podman("start", node.container, timeout=60)
                bringup.wait_booted(node)
            if node.joined and healthy:
                self.wait_healthy(timeout)

    def power_on(self, node, memory_mib: int | None = None) -> None:
        """Boot a virtual machine.

        memory_mib: what it has in place of the usual
        """
        bringup.power_on(self, self._node(node), memory_mib)
        bringup.wait_booted(self._node(node))

    def cut_power(self, node) -> None:
        """Kill a virtual machine and boot it again; its kubelet may need longer."""
        bringup.cut_power(self, self._node(node))

    def block_ssh(self, node, how: str = "refuse") -> None:
        """Ssh alone stops answering; connections that a controller keeps open end too."""
        node = self._node(node)
        if how == "drop":
            self.exec(node, ["iptables", "-I", "INPUT", *_DROP])
            return
        # The unit leaves its sessions running, and ControlPersist would go on through them.
        self.exec(
            node,
            "systemctl stop ssh.socket ssh.service 2>/dev/null; systemctl mask --runtime --now"
            " ssh.service 2>/dev/null; pkill -x sshd; true",
        )
        self.wait(
            lambda: self.exec(node, ["pgrep", "-x", "sshd"], check=False).returncode == 1,
            20,
            f"sshd of {node.name} to end",
        )

    def unblock_ssh(self, node) -> None:
        node = self._node(node)
        self.exec(node, ["iptables", "-D", "INPUT", *_DROP], check=False)
        self.exec(
            node, "systemctl unmask --runtime ssh.service 2>/dev/null; systemctl start ssh.service"
        )
        cluster_node.wait(
            lambda: self.exec(node, ["pgrep", "-x", "sshd"], check=False).returncode == 0,
            20,
            f"sshd of {node.name}",
        )
