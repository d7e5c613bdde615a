# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A learner of etcd was added and never started: no other member can be added meanwhile."""

from __future__ import annotations

from tests.lab.incidents.etcd_unstarted_member import PEER, EtcdUnstartedMember


class EtcdLearner(EtcdUnstartedMember):
    name = "etcd-learner"
    title = "etcd's list has a learner of an address that no host has"

    def break_(self, cluster, target):
        cluster.etcdctl("member", "add", "ghost", "--learner", f"--peer-urls={PEER}", node=target)

    def expect(self, cluster, target):
        return {("KM112", None, None), ("KM148", None, "etcd")}


INCIDENT = EtcdLearner()
