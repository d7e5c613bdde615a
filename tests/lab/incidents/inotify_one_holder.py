# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One process of a worker holds most of root's inotify instances, and no more are left.

The other nodes of the lab have the same fault, because they share the kernel.
"""

from __future__ import annotations

from tests.lab.support import limits


class InotifyOneHolder(limits.Limits):
    name = "inotify-one-holder"
    title = "a process of a worker leaks inotify instances until there are none left"
    occupies = "kernel"
    faults = (("KM401", limits.INSTANCES), ("KM407", limits.INSTANCES))
    elsewhere = faults  # they share the kernel, and with it the limit

    def audit(self, cluster, target):
        return {"args": [], "inventory": None}  # the holder is found without the deep tier

    def expect(self, cluster, target):
        return super().expect(cluster, target) - limits.unlimited(cluster)

    def break_(self, cluster, target):
        # More than half of these are nobody's yet: it takes them, and whatever others give back.
        limit = 2 * limits.instances() + 60
        limits.may(limit)
        limits.hold(cluster, target, "inotify", limit)

    def symptom(self, cluster, target):
        said = limits.tried(cluster, target)
        assert said == "Too many open files", said

    def undo(self, cluster, target):
        limits.restored()
        limits.let_go(cluster, target)


INCIDENT = InotifyOneHolder()
