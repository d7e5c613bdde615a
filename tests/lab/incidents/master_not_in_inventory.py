# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A master that the operator's inventory does not know.

Its election cannot be judged, and that is said.
"""

from __future__ import annotations

from tests.lab.incidents.two_leaders import TwoLeaders

FORGOTTEN = "m3"


class MasterNotInInventory(TwoLeaders):
    name = "master-not-in-inventory"
    title = "two leaders, and an inventory without one of the masters"

    def audit(self, cluster, target):
        return {"args": [], "inventory": cluster.inventory_data(leave_out=(FORGOTTEN,))}

    def expect(self, cluster, target):
        return super().expect(cluster, target) | {("KM112", None, None)}


INCIDENT = MasterNotInInventory()
