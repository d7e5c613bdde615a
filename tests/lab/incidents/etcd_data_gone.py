# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The data of a member of etcd was deleted: it cannot be the member that the others know."""

from __future__ import annotations

import json
import time

from tests.lab.support.api_server import wait_grown_up
from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import API_SERVER, MANAGER, SCHEDULER, manifest

ETCD = "etcd"
DATA, ASIDE = "/var/lib/etcd/member", "/var/lib/etcd/lab-member"


class EtcdDataGone(Incident):
    name = "etcd-data-gone"
    title = "the data of one member of etcd is deleted, and etcd starts again"
    occupies = "cluster"
    target = "m3"

    def break_(self, cluster, target):
        wait_grown_up(cluster, target)
        self._give_lead_away(cluster, target)
        cluster.exec(target, f"mv {DATA} {ASIDE}; pkill -KILL -x {ETCD}")

    def _give_lead_away(self, cluster, target):
        """Let another member lead: a new leader would send the empty member all data."""
        said = cluster.etcdctl("endpoint", "status", "-w", "json", node=target).stdout
        status = json.loads(said)[0]["Status"]
        own = status["header"]["member_id"]
        if status["leader"] != own:
            return
        members = json.loads(cluster.etcdctl("member", "list", "-w", "json", node=target).stdout)
        other = next(one["ID"] for one in members["members"] if one["ID"] != own)
        cluster.etcdctl("move-leader", f"{other:x}", node=target)

    def _has_new_data(self, cluster, target) -> bool:
        """Tell whether a leader sent the empty member all data: it must not get the old data back.

        It has acknowledged entries that the old data lacks.
        """
        command = ["ps", "-o", "etimes=", "-C", ETCD]
        ages = cluster.exec(target, command, check=False).stdout.split()
        if not ages:
            return False
        time.sleep(6)
        ages = cluster.exec(target, command, check=False).stdout.split()
        return any(int(age) > 5 for age in ages)

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: (
                cluster.exec(
                    target,
                    "grep -qs 'is out of range' /var/log/pods/*etcd*/etcd/*.log",
                    check=False,
                ).returncode
                == 0
                and cluster.exec(target, ["pgrep", "-x", ETCD], check=False).returncode == 1
            ),
            120,
            f"etcd of {target} to end by itself",
        )

    def undo(self, cluster, target):
        super().undo(cluster, target)
        if self._has_new_data(cluster, target):
            cluster.exec(target, ["rm", "-rf", ASIDE])
        away = "/root/lab-etcd.yaml"
        cluster.exec(
            target,
            f"if [ -e {ASIDE} ]; then mv {manifest(ETCD)} {away}; sleep 3; pkill -KILL -x {ETCD};"
            f" rm -rf {DATA}; mv {ASIDE} {DATA}; fi;"
            f" if [ -e {away} ]; then mv {away} {manifest(ETCD)}; fi; systemctl restart kubelet",
        )
        for component in (ETCD, API_SERVER):
            cluster.wait(
                lambda name=component: (
                    cluster.exec(target, ["pgrep", "-x", name[:15]], check=False).returncode == 0
                ),
                300,
                f"{component} of {target}",
            )

    def expect(self, cluster, target):
        return {
            ("KM145", None, ETCD),
            ("KM150", target, ETCD),
            ("KM170", target, API_SERVER),
        }

    def consequences(self, cluster, target):
        return {
            ("KM114", target, ETCD),
            ("KM525", target, "kubelet"),
            ("KM529", target, "kubelet"),
            *(
                (code, target, name)
                for code in ("KM118", "KM114")
                for name in (MANAGER, SCHEDULER, API_SERVER)
            ),
        }


INCIDENT = EtcdDataGone()
