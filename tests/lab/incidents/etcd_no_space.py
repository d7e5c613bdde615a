# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""etcd at its quota: the next write raises the alarm NOSPACE for the whole cluster.

One member's quota is below the size of its database.

Nothing is written from then on, leases among it: everything stands still, and looks as it was.
"""

from __future__ import annotations

import re

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import MANAGER, SCHEDULER, manifest, wait_lock_stands_still

ETCD, QUOTA = "etcd", "1000000"


class EtcdNoSpace(Incident):
    name = "etcd-no-space"
    title = f"a member's --quota-backend-bytes is {QUOTA}"
    occupies = "cluster"
    # not the first, whose API server the other nodes' kubelets use: it is away while its etcd
    # starts again
    target = "m2"

    def break_(self, cluster, target):
        text = self.keep(cluster, target, target, manifest(ETCD)).decode()
        cluster.write(
            target,
            manifest(ETCD),
            re.sub(
                r"(?m)^( +- )etcd$", rf"\g<0>\n\g<1>--quota-backend-bytes={QUOTA}", text, count=1
            ),
        )

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: b"NOSPACE" in self._alarms(cluster, target), 180, "etcd to raise its alarm"
        )
        wait_lock_stands_still(cluster, MANAGER)
        wait_lock_stands_still(cluster, SCHEDULER)

    def undo(self, cluster, target):
        super().undo(cluster, target)
        cluster.wait(
            lambda: not self._limited(cluster, target),
            300,
            f"etcd of {target} to run without that quota",
        )
        cluster.wait(lambda: self._disarmed(cluster, target), 120, "the alarm to be taken back")

    def _alarms(self, cluster, target) -> bytes:
        return cluster.etcdctl("--command-timeout=5s", "alarm", "list", node=target).stdout

    def _disarmed(self, cluster, target) -> bool:
        cluster.etcdctl("--command-timeout=5s", "alarm", "disarm", node=target)
        return b"NOSPACE" not in self._alarms(cluster, target)

    def _limited(self, cluster, target) -> bool:
        """Return whether no etcd runs, or one with that quota."""
        said = cluster.exec(target, ["pgrep", "-x", "-a", ETCD], check=False).stdout.decode()
        return not said or f"--quota-backend-bytes={QUOTA}" in said

    def expect(self, cluster, target):
        return {
            ("KM115", None, None),
            ("KM140", None, ETCD),
            ("KM203", None, SCHEDULER),
            ("KM511", None, MANAGER),
        }


INCIDENT = EtcdNoSpace()
