# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One inventory with the hosts of two clusters: the healthy one must not be judged by the broken one."""
from __future__ import annotations

from .. import inventory, paths
from .two_leaders import TwoLeaders

PREFIX = "other-"


def other_cluster(mine):
    """A cluster of another version that is up; brought up where there is none."""
    from ..cluster import Cluster  # the cluster module need not know its incidents, nor they it at import

    up = [Cluster.find(name, name) for name in Cluster.known() if name != mine.name]
    for cluster in up:
        if cluster.k8s != mine.k8s and cluster.settled(60):
            return cluster
    k8s = next(version for version in paths.pinned() if version != mine.k8s)
    return Cluster(k8s, mine.masters, mine.workers, mine.timers).up()


class TwoClusters(TwoLeaders):
    name = "two-clusters"
    title = "two leaders, in an inventory that holds a healthy cluster too"

    def audit(self, cluster, target):
        other = other_cluster(cluster)
        return {"args": [], "inventory": inventory.merge(cluster.inventory_data(), other.inventory_data(PREFIX))}


INCIDENT = TwoClusters()
