# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker has a swap file in fstab, and its kubelet, which refuses swap, does not start again.

Swap is the kernel's: all nodes and the machine itself show it until this is undone, 64 MiB of it.
On a machine that has swap of its own the lab's kubelets tolerate it. There only this worker's
kubelet is configured not to.
"""

from __future__ import annotations

import yaml

from tests.lab.support import pinning
from tests.lab.support.incident import Incident

# on the machine's disk: an overlay takes no swap file
FILE = "/var/lib/containerd/kubemend-lab.swap"
SAYS = "running with swap on is not supported"  # of 1.15 and older with a capital R


class KubeletSwap(Incident):
    name = "kubelet-swap"
    title = "a worker's kubelet refuses the swap that fstab brought"
    occupies = "kernel"
    target = "w1"

    def break_(self, cluster, target):
        self.keep(cluster, target, target, pinning.CONFIG)
        self.remember(cluster, target, since=int(cluster.exec(target, ["date", "+%s"]).stdout))
        pinning.configure(cluster, target, {"failSwapOn": True})
        fstab = self.keep(cluster, target, target, "/etc/fstab") or b""
        cluster.write(target, "/etc/fstab", fstab + f"{FILE} none swap sw 0 0\n".encode())
        cluster.exec(
            target,
            f"fallocate -l 64M {FILE} && chmod 600 {FILE} && mkswap -q {FILE} && swapon {FILE}",
        )
        cluster.exec(target, "systemctl reset-failed kubelet; systemctl restart --no-block kubelet")

    def symptom(self, cluster, target):
        said = (
            f"journalctl -q -u kubelet --since @{self.record(cluster, target)['since']} -o cat;"
            " true"
        )
        cluster.wait(
            lambda: SAYS in cluster.exec(target, said).stdout.decode(errors="replace").lower(),
            120,
            f"the kubelet of {target} to say {SAYS!r}",
        )

    def undo(self, cluster, target):
        cluster.exec(
            target, f"grep -q kubemend-lab.swap /proc/swaps && swapoff {FILE}; rm -f {FILE}"
        )
        self.restore(cluster, target)
        pinning.start(cluster, target)

    def expect(self, cluster, target):
        """Expect that the other kubelets run, and would not start again."""
        return {("KM502", target, "kubelet")} | {
            ("KM504", node.name, "kubelet")
            for node in cluster.nodes
            if node.joined and not tolerant(cluster, node.name)
        }


def tolerant(cluster, node: str) -> bool:
    """Return whether the kubelet starts with swap on."""
    return yaml.safe_load(cluster.read(node, pinning.CONFIG)).get("failSwapOn") is False


INCIDENT = KubeletSwap()
