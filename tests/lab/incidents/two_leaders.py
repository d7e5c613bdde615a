# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Incident A: one of three masters runs scheduler and controller manager without election."""

from __future__ import annotations

from tests.lab.support import jobs
from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import (
    MANAGER,
    SCHEDULER,
    lock_holder,
    manifest,
    set_flag,
    wait_election_off,
    wait_flag,
)

OFF = "--leader-elect=false"


class TwoLeaders(Incident):
    name = "two-leaders"
    title = "a master's scheduler and controller manager run with --leader-elect=false"
    components = (SCHEDULER, MANAGER)

    def break_(self, cluster, target):
        for component in self.components:
            text = self.keep(cluster, target, target, manifest(component)).decode()
            cluster.write(target, manifest(component), set_flag(text, "leader-elect", "false"))

    def symptom(self, cluster, target):
        for component in self.components:
            wait_flag(cluster, target, component, OFF)
            wait_election_off(cluster, target, component)
            # Two leaders need a second one: where the broken master held the lock, another takes it
            # first.
            cluster.wait(
                lambda name=component: lock_holder(cluster, name) != target,
                60,
                f"another master than {target} to hold the lock of {component}",
            )
        if MANAGER in self.components:
            namespace = jobs.new_namespace()
            self.remember(cluster, target, namespace=namespace)
            jobs.wait_for_surplus(cluster, namespace)

    def undo(self, cluster, target):
        self.restore(cluster, target)
        namespace = self.record(cluster, target).get("namespace")
        if namespace:
            jobs.remove(cluster, namespace)

    def expect(self, cluster, target):
        return {("KM101", target, component) for component in self.components} | {
            ("KM113", None, None)
        }


INCIDENT = TwoLeaders()
