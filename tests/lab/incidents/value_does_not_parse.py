# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A value that no boolean flag takes: the component exits at each start."""

from __future__ import annotations

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import (
    SCHEDULER,
    ended_long_ago,
    manifest,
    processes,
    set_flag,
    wait_settled,
)


class ValueDoesNotParse(Incident):
    name = "value-does-not-parse"
    title = "a master's scheduler is told --leader-elect=off"

    def break_(self, cluster, target):
        text = self.keep(cluster, target, target, manifest(SCHEDULER)).decode()
        cluster.write(
            target,
            manifest(SCHEDULER),
            set_flag(text, "leader-elect", "off"),
            mtime=ended_long_ago(),
        )

    def symptom(self, cluster, target):
        # Not one look: for a moment at each start of the crash loop the process is there.
        cluster.wait(
            lambda: (
                not [
                    argv
                    for _pid, argv in processes(cluster, target, SCHEDULER)
                    if "--leader-elect=true" in argv
                ]
            ),
            60,
            f"the old scheduler of {target} to end",
        )
        cluster.wait(
            lambda: not processes(cluster, target, SCHEDULER),
            60,
            f"the scheduler of {target} to crash",
        )
        wait_settled(cluster, target)

    def expect(self, cluster, target):
        return {("KM105", target, SCHEDULER), ("KM114", target, SCHEDULER)}


INCIDENT = ValueDoesNotParse()
