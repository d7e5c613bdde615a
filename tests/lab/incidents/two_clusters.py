# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One inventory with the hosts of two clusters.

The healthy one must not be judged by the broken one.
"""

from __future__ import annotations

from tests.lab.cluster import inventory
from tests.lab.incidents.two_leaders import TwoLeaders

PREFIX = "other-"


def other_cluster(mine):
    """Return a small cluster of the same release: the lab has only that one built."""
    # The cluster module need not know its incidents, nor they it at import.
    from tests.lab.cluster.clusters import Cluster

    return Cluster(mine.k8s, 1, 0, mine.timers, name=f"{mine.name}-other")


class TwoClusters(TwoLeaders):
    name = "two-clusters"
    title = "two leaders, in an inventory that holds a healthy cluster too"

    def audit(self, cluster, target):
        other = other_cluster(cluster).up()
        return {
            "args": [],
            "inventory": inventory.merge(cluster.inventory_data(), other.inventory_data(PREFIX)),
        }

    def undo(self, cluster, target):
        other_cluster(cluster).down()
        super().undo(cluster, target)


INCIDENT = TwoClusters()
