# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's runtime is given systemd's cgroup driver, its kubelet keeps cgroupfs.

The node is Ready, and no new pod starts on it.
"""

from __future__ import annotations

import json

from tests.lab.support import jobs, limits
from tests.lab.support.incident import Incident

CONFIG = "/etc/containerd/config.toml"
RUNC = {
    2: '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]',
    3: '[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]',
}
ABOVE = {
    version: name.replace(
        ".options]", f']\n  runtime_type = "io.containerd.runc.v2"\n{name}\n  SystemdCgroup = true'
    )
    for version, name in RUNC.items()
}
# KM516 counts from then on: a test before this one may have restarted the kubelet.
KUBELET_SECONDS = 25
WORDS = "expected cgroupsPath to be of format"


class CgroupDriver(Incident):
    name = "cgroup-driver"
    title = "a worker's runtime has another cgroup driver than its kubelet"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        text = self.keep(cluster, target, target, CONFIG).decode()
        cluster.write(
            target,
            CONFIG,
            text.rstrip() + "\n" + ABOVE[3 if text.startswith("version = 3") else 2] + "\n",
        )
        cluster.exec(target, ["systemctl", "restart", "containerd"])
        namespace = jobs.new_namespace()
        self.remember(cluster, target, namespace=namespace)
        jobs.create_namespace(cluster, namespace)
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "late"},
            "spec": jobs.pod_spec(cluster, nodeName=target),
        }
        cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(pod))

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: (
                WORDS
                in cluster.exec(
                    target, "journalctl -q -u kubelet --since -5min -o cat; true"
                ).stdout.decode()
            ),
            120,
            f"the runtime of {target} to refuse a pod",
        )
        age = "ps -o etimes= -p $(pgrep -x kubelet)"
        cluster.wait(
            lambda: int(cluster.exec(target, age).stdout) > KUBELET_SECONDS,
            60,
            f"the kubelet of {target} to have run for a while",
        )

    def undo(self, cluster, target):
        self.restore(cluster, target)
        # A kubelet that was not started since still counts as one that is refused, for ten minutes.
        cluster.exec(target, ["systemctl", "restart", "containerd", "kubelet"])
        namespace = self.record(cluster, target).get("namespace")
        if namespace:
            jobs.remove(cluster, namespace)

    def audit(self, cluster, target):
        return {"args": ["-e", "kubemend_deep=true"], "inventory": None}

    def expect(self, cluster, target):
        drivers = {(code, target, "kubelet") for code in ("KM516", "KM524")}
        return drivers | limits.unlimited(cluster)


INCIDENT = CgroupDriver()
