# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One process of a worker holds most of root's inotify instances, and there are no more: on any node, since the lab's share their kernel."""
from __future__ import annotations

from .. import limits


class InotifyOneHolder(limits.Limits):
    name = "inotify-one-holder"
    title = "a process of a worker leaks inotify instances until there are none left"
    occupies = "kernel"
    faults = (("KM401", limits.INSTANCES), ("KM407", limits.INSTANCES))
    # They are at the same limit, and the process is not theirs to be seen.
    elsewhere = (("KM402", limits.INSTANCES), ("KM407", limits.INSTANCES))

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
