# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A process of a worker has every inotify watch that root may have.

Every other process that asks for one gets the error that no space is left on the device.
"""

from __future__ import annotations

from tests.lab.support import limits


class InotifyWatches(limits.Limits):
    name = "inotify-watches"
    title = "the inotify watches that the kernel gives root are used up"
    occupies = "kernel"
    faults = (("KM403", limits.WATCHES),)
    elsewhere = faults  # the lab's nodes share their kernel, and its count

    def break_(self, cluster, target):
        limit = limits.watches() + 500
        limits.may_watch(limit)
        limits.hold(cluster, target, "watches", limit)  # more than it gets: others hold the rest

    def symptom(self, cluster, target):
        said = limits.tried(cluster, target, limits.TRY_WATCH)
        assert said == "No space left on device", said

    def undo(self, cluster, target):
        limits.restored_watches()
        for node in cluster.nodes:
            cluster.exec(node, ["rm", "-f", limits.FILE])
        limits.let_go(cluster, target)


INCIDENT = InotifyWatches()
