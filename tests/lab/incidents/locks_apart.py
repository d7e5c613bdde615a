# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every scheduler elects, but one on a lock of its own: two lead, and each lock looks healthy."""

from __future__ import annotations

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import SCHEDULER, manifest, set_flag, wait_flag

NAME = "lab-other-lock"
USER = "--user=system:kube-scheduler"


class LocksApart(Incident):
    name = "locks-apart"
    title = "a master's scheduler elects on a lock object of another name"

    def break_(self, cluster, target):
        # The scheduler's own role names its lock, and it may use no other one.
        locks = ("--resource=leases.coordination.k8s.io,endpoints", "--verb=get,update")
        for kind, words in (("role", locks), ("rolebinding", (f"--role={NAME}", USER))):
            cluster.kubectl("-n", "kube-system", "create", kind, NAME, *words)
        text = self.keep(cluster, target, target, manifest(SCHEDULER)).decode()
        cluster.write(
            target, manifest(SCHEDULER), set_flag(text, "leader-elect-resource-name", NAME)
        )

    def symptom(self, cluster, target):
        wait_flag(cluster, target, SCHEDULER, f"--leader-elect-resource-name={NAME}")
        cluster.wait(
            lambda: (
                cluster.kubectl(
                    "-n",
                    "kube-system",
                    "get",
                    "lease",
                    NAME,
                    "-o",
                    "jsonpath={.spec.holderIdentity}",
                    check=False,
                )
                .stdout.decode()
                .startswith(target)
            ),
            60,
            f"the scheduler of {target} to hold {NAME}",
        )

    def undo(self, cluster, target):
        super().undo(cluster, target)
        for kind in ("lease", "endpoints", "rolebinding", "role"):
            cluster.kubectl("-n", "kube-system", "delete", kind, NAME, "--ignore-not-found")

    def expect(self, cluster, target):
        return {("KM106", target, SCHEDULER)}


INCIDENT = LocksApart()
