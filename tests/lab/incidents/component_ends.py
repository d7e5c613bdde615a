# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A flag that the release does not know, as after an upgrade or by a typing error.

The controller manager of that master ends at each start, and others lead.
"""

from __future__ import annotations

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import (
    MANAGER,
    ended_long_ago,
    manifest,
    processes,
    set_flag,
    wait_settled,
)


class ComponentEnds(Incident):
    name = "component-ends"
    title = "a master's controller manager is given --leader-elect-renew-deadlne"

    def break_(self, cluster, target):
        text = self.keep(cluster, target, target, manifest(MANAGER)).decode()
        cluster.write(
            target,
            manifest(MANAGER),
            set_flag(text, "leader-elect-renew-deadlne", "10s"),
            mtime=ended_long_ago(),
        )

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: (
                not [
                    argv
                    for _pid, argv in processes(cluster, target, MANAGER)
                    if "--leader-elect-renew-deadlne=10s" not in argv
                ]
            ),
            120,
            f"the old controller manager of {target} to end",
        )
        cluster.wait(
            lambda: not processes(cluster, target, MANAGER),
            60,
            f"the controller manager of {target} to end",
        )
        wait_settled(cluster, target)

    def expect(self, cluster, target):
        return {("KM114", target, MANAGER)}


INCIDENT = ComponentEnds()
