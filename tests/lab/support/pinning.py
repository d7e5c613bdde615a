# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker whose kubelet gives CPUs to containers alone, and what becomes of that."""

from __future__ import annotations

import json
import re

import yaml

from tests.lab.cluster import paths
from tests.lab.support import jobs, limits
from tests.lab.support.incident import Incident

CONFIG = "/var/lib/kubelet/config.yaml"
STATE = "/var/lib/kubelet/cpu_manager_state"
MEMORY_STATE = "/var/lib/kubelet/memory_manager_state"
# faults of incidents that end so
KEEP_DOWN = frozenset(
    ("KM301", "KM302", "KM303", "KM304", "KM305", "KM306", "KM307", "KM309", "KM310")
)
STATIC = {"cpuManagerPolicy": "static", "systemReserved": {"cpu": "500m"}}


def stop(cluster, target: str) -> None:
    cluster.exec(target, ["systemctl", "stop", "kubelet"])


def start(cluster, target: str) -> None:
    """Start the kubelet, and wait until it posts its status."""
    cluster.exec(target, "systemctl reset-failed kubelet; systemctl start kubelet")
    cluster.wait(
        lambda: (
            cluster.exec(target, "curl -sf http://127.0.0.1:10248/healthz", check=False).stdout
            == b"ok"
        ),
        180,
        f"the kubelet of {target}",
    )
    cluster.wait_healthy()


def configure(cluster, target: str, changes: dict) -> None:
    """Change settings of the configuration file; None removes one."""
    settings = {**yaml.safe_load(cluster.read(target, CONFIG)), **changes}
    cluster.write(
        target,
        CONFIG,
        yaml.safe_dump({key: value for key, value in settings.items() if value is not None}),
    )


def state(cluster, target: str) -> dict:
    return json.loads(cluster.read(target, STATE))


def static(cluster, target: str, changes: dict | None = None) -> None:
    """Make a worker pin CPUs that has never done it.

    Its kubelet is stopped, the state is removed, the settings are changed, and it is started.
    """
    stop(cluster, target)
    cluster.exec(target, ["rm", "-f", STATE])
    configure(cluster, target, changes or STATIC)
    start(cluster, target)
    cluster.wait(
        lambda: state(cluster, target)["policyName"] == "static", 90, "a state of the policy static"
    )


def edit(cluster, target: str, **changes) -> None:
    """Change its state, as an operator with an editor leaves it."""
    cluster.write(
        target, STATE, json.dumps({**state(cluster, target), **changes}, separators=(",", ":"))
    )


def fail(cluster, target: str, words: str) -> None:
    """Start the kubelet, which exits with these words, and again when systemd starts it again.

    After one exit alone a kubelet that runs may stay up: no audit can tell.
    """
    since = int(cluster.exec(target, ["date", "+%s"]).stdout)
    cluster.exec(target, "systemctl reset-failed kubelet; systemctl start kubelet")
    cluster.wait(
        lambda: len(_processes_with(cluster, target, since, words)) > 1,
        120,
        f"two starts of the kubelet of {target} to say {words!r}",
    )


def _processes_with(cluster, target: str, since: int, words: str) -> set[str]:
    """Return the ids of the kubelet's processes that logged these words."""
    command = f"journalctl -q -u kubelet --since @{since}; true"
    said = cluster.exec(target, command).stdout.decode()
    return set(re.findall(rf"kubelet\[(\d+)\]: .*{re.escape(words)}", said))


def wait_pinned(cluster, target: str) -> None:
    """Wait until a container has exclusive CPUs, by the state and in its cgroup."""
    cluster.wait(
        lambda: (
            state(cluster, target).get("entries")
            and cluster.exec(target, f"cat {_folder(cluster, target)}/cpuset.cpus")
            .stdout.decode()
            .strip()
            in [sets for one in state(cluster, target)["entries"].values() for sets in one.values()]
        ),
        60,
        "a container with CPUs of its own",
    )


def _folder(cluster, target: str) -> str:
    """Return the cpuset cgroup of the container `work` of the first pod with CPUs of its own."""
    uid = next(iter(state(cluster, target)["entries"]))
    said = (
        cluster.exec(
            target,
            "for f in /var/log/containers/*_work-*.log; do id=${f##*-}; id=${id%.log}; find"
            f" /sys/fs/cgroup/cpuset /sys/fs/cgroup -maxdepth 8 -path '*{uid}*' -name \"*$id*\""
            " -type d 2>/dev/null; find /sys/fs/cgroup/cpuset /sys/fs/cgroup -maxdepth 8 -path"
            f" '*{uid.replace('-', '_')}*' -name \"*$id*\" -type d 2>/dev/null; done; true",
        )
        .stdout.decode()
        .split()
    )
    found = [path for path in said if "cpuset" in path or "unified" not in path]
    if not found:  # the kubelet decides before the container is there
        raise ValueError(f"no container of pod {uid} on {target} yet")
    return found[0]


def freeze(cluster, target: str, how: str) -> None:
    """FROZEN or THAWED: the freezer of the container that has CPUs alone, of cgroup v1."""
    if state(cluster, target).get("entries"):
        cluster.exec(
            target,
            f"echo {how} >"
            f" {_folder(cluster, target).replace('/cpuset/', '/freezer/')}/freezer.state",
        )


def widen(cluster, target: str) -> None:
    """Give all CPUs to the container that has some alone."""
    cluster.exec(
        target, f"cat /sys/devices/system/cpu/online > {_folder(cluster, target)}/cpuset.cpus"
    )


def widened(cluster, target: str) -> bool:
    online, mine = cluster.exec(
        target, f"cat /sys/devices/system/cpu/online {_folder(cluster, target)}/cpuset.cpus"
    ).stdout.split()
    return online == mine


def age(cluster, target: str) -> int:
    """Return the seconds since the state was written."""
    return int(cluster.exec(target, f"echo $(( $(date +%s) - $(stat -c %Y {STATE}) ))").stdout)


def pod(cluster, name: str, target: str, cpus: str = "1", init: dict | None = None) -> dict:
    """Return a Guaranteed pod.

    init: resources of its init container, {} for none at all
    """
    spec = jobs.pod_spec(cluster, nodeSelector={"kubernetes.io/hostname": target})
    spec["containers"][0]["resources"] = {"limits": {"cpu": cpus, "memory": "32Mi"}}
    if init is not None:
        spec["initContainers"] = [
            {
                **spec["containers"][0],
                "name": "prepare",
                "command": ["/bin/sleep", "0"],
                "resources": init,
            }
        ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def deployment(cluster, name: str, target: str, cpus: str = "1", init: dict | None = None) -> dict:
    spec = pod(cluster, name, target, cpus, init)["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {**spec, "restartPolicy": "Always"},
            },
        },
    }


class Pinning(Incident):
    """An incident of a worker that pins. `fill` makes what is wrong there.

    Its namespace is its own.
    """

    occupies = "worker"
    target = "w1"
    faults: tuple = ()
    settings: dict | None = STATIC
    # Whether its state says static: then kubeadm's ConfigMap, which says none, would stop this
    # kubelet at the next upgrade.
    says_static = True

    def break_(self, cluster, target):
        namespace = jobs.new_namespace()
        self.remember(cluster, target, namespace=namespace)
        self.keep(cluster, target, target, CONFIG)
        if self.settings:
            static(cluster, target, self.settings)
        jobs.create_namespace(cluster, namespace)
        self.fill(cluster, target, namespace)

    def fill(self, cluster, target, namespace):
        raise NotImplementedError

    def symptom(self, cluster, target):
        """Wait, if the fault keeps the kubelet down, until it has ended more than once.

        One end is no loop: while systemd's next process is up, the audit would see nothing. Other
        faults show at once.
        """
        if KEEP_DOWN & set(self.faults):
            cluster.wait(
                lambda: (
                    int(cluster.exec(target, "systemctl show -p NRestarts --value kubelet").stdout)
                    > 1
                ),
                120,
                f"the kubelet of {target} to end again",
            )

    def undo(self, cluster, target):
        # Not the state that was there: pods ran since.
        stop(cluster, target)
        self.restore(cluster, target)
        cluster.exec(target, ["rm", "-f", STATE, MEMORY_STATE])
        start(cluster, target)
        namespace = self.record(cluster, target).get("namespace")
        if namespace:
            jobs.remove(cluster, namespace)

    def audit(self, cluster, target):
        return {"args": ["-e", "kubemend_deep=true"], "inventory": None}

    def expect(self, cluster, target):
        config = (
            "kubelet-config"
            if paths.version_tuple(cluster.k8s) >= (1, 24)
            else f"kubelet-config-{'.'.join(cluster.k8s[1:].split('.')[:2])}"
        )
        down = {("KM502", target, "kubelet")} if KEEP_DOWN & set(self.faults) else set()
        return (
            limits.unlimited(cluster)
            | down
            | {(code, target, None) for code in self.faults}
            | ({("KM312", None, config)} if self.says_static else set())
        )


class Memory(Pinning):
    """An incident of a worker's memory_manager_state. Its CPUs are everybody's."""

    faults = ("KM310",)
    settings = None
    says_static = False

    def applies(self, version):
        """Return whether the release has the memory manager: 1.21, by default since 1.22."""
        return version >= (1, 22)


def memory_state(cluster, target: str) -> dict:
    return json.loads(cluster.read(target, MEMORY_STATE))
