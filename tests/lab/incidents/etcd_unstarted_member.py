# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A member of etcd was added and never started: it counts for the quorum, and nothing runs."""

from __future__ import annotations

from tests.lab.support.incident import Incident

PEER = "https://10.9.9.9:2380"


class EtcdUnstartedMember(Incident):
    name = "etcd-unstarted-member"
    title = "etcd's list has a member of an address that no host has"
    occupies = "cluster"
    target = "m1"

    def break_(self, cluster, target):
        cluster.etcdctl("member", "add", "ghost", f"--peer-urls={PEER}", node=target)

    def symptom(self, cluster, target):
        cluster.wait(lambda: self._id(cluster, target), 30, "the member to be in the list")

    def undo(self, cluster, target):
        super().undo(cluster, target)
        added = self._id(cluster, target)
        if added:
            cluster.etcdctl("member", "remove", added, node=target)

    def _id(self, cluster, target) -> str:
        """Return the id of the member, empty where the list does not have it."""
        lines = cluster.etcdctl("member", "list", node=target).stdout.decode().splitlines()
        return next((line.partition(",")[0] for line in lines if PEER in line), "")

    def expect(self, cluster, target):
        return {
            ("KM112", None, None),
            ("KM145", None, "etcd"),
            ("KM147", None, "etcd"),
        }


INCIDENT = EtcdUnstartedMember()
