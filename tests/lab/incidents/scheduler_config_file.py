# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Election switched off in the file that --config names: no flag in any manifest shows it."""

from __future__ import annotations

import json
import re

from tests.lab.cluster import kubeadm, paths
from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import (
    SCHEDULER,
    lock_holder,
    manifest,
    restart,
    wait_election_off,
    wait_flag,
)

CONFIG = "/etc/kubernetes/scheduler-config.yaml"
# From here on a flag that is given wins over the file.
FLAG_WINS = (1, 23)


def config_text(k8s: str) -> str:
    return (
        f"apiVersion: {kubeadm.scheduler_api_version(k8s)}\n"
        "kind: KubeSchedulerConfiguration\n"
        "clientConnection:\n"
        "  kubeconfig: /etc/kubernetes/scheduler.conf\n"
        "leaderElection:\n"
        "  leaderElect: false\n"
    )


def without_flag(text: str) -> str:
    return re.sub(r"(?m)^\s*- --leader-elect.*\n", "", text)


def use_config(text: str) -> str:
    """Return the manifest as an operator would change it: no flag, the file by hostPath."""
    text = without_flag(text)
    text = re.sub(
        r"(?m)^(\s*)- kube-scheduler$", rf"\1- kube-scheduler\n\1- --config={CONFIG}", text, count=1
    )
    text = re.sub(
        r"(?m)^(\s*)volumeMounts:$",
        rf"\1volumeMounts:\n\1- mountPath: {CONFIG}\n\1  name: config\n\1  readOnly: true",
        text,
        count=1,
    )
    return re.sub(
        r"(?m)^(\s*)volumes:$",
        rf"\1volumes:\n\1- hostPath:\n\1    path: {CONFIG}\n\1    type: File\n\1  name: config",
        text,
        count=1,
    )


def used_config(text: str) -> str | None:
    """Return the configuration file that this scheduler has already, as kubespray's."""
    found = re.search(r"(?m)^\s*- --config=(\S+)$", text)
    return found.group(1) if found else None


def off(text: str) -> str:
    """Return the file as kubespray writes it with leaderElect: false in its extra options.

    The variable is kube_scheduler_leader_elect_extra_opts. Jinja spells the boolean Python's way.
    """
    return re.sub(r"(?m)^leaderElection:$", "leaderElection:\n  leaderElect: False", text, count=1)


class SchedulerConfigFile(Incident):
    name = "scheduler-config-file"
    title = "a master's scheduler has leader election off in its configuration file"

    def break_(self, cluster, target):
        text = cluster.read(target, manifest(SCHEDULER)).decode()
        path = used_config(text)
        if path:
            cluster.write(target, path, off(self.keep(cluster, target, target, path).decode()))
        else:
            self.keep(cluster, target, target, CONFIG)
            cluster.write(target, CONFIG, config_text(cluster.k8s), mode="600")
        changed = (
            use_config(text)
            if not path
            else without_flag(text)
            if self._flag_wins(cluster)
            else text
        )
        if changed == text:
            restart(cluster, target, SCHEDULER)
        else:
            self.keep(cluster, target, target, manifest(SCHEDULER))
            cluster.write(target, manifest(SCHEDULER), changed)

    @staticmethod
    def _flag_wins(cluster) -> bool:
        return paths.version_tuple(cluster.k8s) >= FLAG_WINS

    def undo(self, cluster, target):
        self.restore(cluster, target)
        changed = {saved["path"] for saved in self.record(cluster, target)["files"]}
        if changed and manifest(SCHEDULER) not in changed:
            restart(cluster, target, SCHEDULER)

    def symptom(self, cluster, target):
        path = used_config(cluster.read(target, manifest(SCHEDULER)).decode())
        wait_flag(cluster, target, SCHEDULER, f"--config={path}")
        wait_election_off(cluster, target, SCHEDULER)
        cluster.wait(
            lambda: lock_holder(cluster, SCHEDULER) != target,
            60,
            f"another scheduler than {target} to lead",
        )
        cluster.wait(
            lambda: self._schedules(cluster, target),
            90,
            f"the scheduler of {target} to schedule although another leads",
            every=2,
        )

    @staticmethod
    def _schedules(cluster, target):
        """Create a pod that nothing can take.

        Each active scheduler reports its own failure to place it.
        """
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "lab-unplaceable-"},
            "spec": {
                "nodeSelector": {"lab/nowhere": "true"},
                "containers": [
                    {"name": "work", "image": cluster.state["pause"], "imagePullPolicy": "Never"}
                ],
            },
        }
        made = (
            cluster.kubectl("create", "-f", "-", "-o", "name", input=json.dumps(pod))
            .stdout.decode()
            .strip()
        )
        try:
            return cluster.wait(
                lambda: f"default-scheduler-{target}" in _reporters(cluster, made),
                12,
                f"events about {made} from {target}",
            )
        except TimeoutError as error:
            raise ValueError(str(error)) from None
        finally:
            cluster.kubectl("delete", made, "--wait=false", "--ignore-not-found")

    def expect(self, cluster, target):
        return {("KM104", target, SCHEDULER)}


def _reporters(cluster, pod: str) -> set:
    selector = f"involvedObject.name={pod.split('/')[1]}"
    said = cluster.kubectl("get", "events", "--field-selector", selector, "-o", "json")
    return {event.get("reportingInstance", "") for event in json.loads(said.stdout)["items"]}


INCIDENT = SchedulerConfigFile()
