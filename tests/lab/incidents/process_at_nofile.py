# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A service of a worker has as many files open as it may."""

from __future__ import annotations

from tests.lab.support import limits


class ProcessAtNofile(limits.Limits):
    name = "process-at-nofile"
    title = "a service of a worker has as many files open as it may"
    faults = (("KM404", None),)

    def break_(self, cluster, target):
        limits.hold(cluster, target, "files", 2000)  # beyond what select() can wait for

    def symptom(self, cluster, target):
        held = (
            cluster.exec(target, "ls /proc/$(systemctl show -p MainPID --value holder)/fd | wc -l")
            .stdout.decode()
            .strip()
        )
        assert int(held) >= 1900, held

    def undo(self, cluster, target):
        limits.let_go(cluster, target)


INCIDENT = ProcessAtNofile()
