# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One inventory with the hosts of two clusters: the healthy one must not be judged by the broken one."""
from __future__ import annotations

from .. import inventory, paths
from .two_leaders import TwoLeaders

PREFIX = "other-"


def other_cluster(mine):
    """A cluster of another version: brought up, or as it is where it is healthy and nothing in it is broken on purpose."""
    from ..cluster import Cluster  # the cluster module need not know its incidents, nor they it at import

    k8s = next(version for version in paths.pinned() if version != mine.k8s)
    return Cluster(k8s, mine.masters, mine.workers, mine.timers).up()


class TwoClusters(TwoLeaders):
    name = "two-clusters"
    title = "two leaders, in an inventory that holds a healthy cluster too"

    def audit(self, cluster, target):
        other = other_cluster(cluster)
        return {"args": [], "inventory": inventory.merge(cluster.inventory_data(), other.inventory_data(PREFIX))}


INCIDENT = TwoClusters()
