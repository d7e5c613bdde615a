# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A manifest that does not parse: the kubelet drops it and stops its component."""

from __future__ import annotations

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import SCHEDULER, manifest, processes


class BrokenYaml(Incident):
    name = "broken-yaml"
    title = "a master's scheduler manifest is no YAML any more"

    def break_(self, cluster, target):
        text = self.keep(cluster, target, target, manifest(SCHEDULER)).decode()
        # A tab where spaces belong: what an editor does to a hand-edited file.
        cluster.write(target, manifest(SCHEDULER), text.replace("spec:\n  ", "spec:\n\t", 1))

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: not processes(cluster, target, SCHEDULER),
            120,
            f"the scheduler of {target} to be stopped",
        )

    def expect(self, cluster, target):
        return {("KM107", target, SCHEDULER)}


INCIDENT = BrokenYaml()
