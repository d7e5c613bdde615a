# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""No scheduler is left, on each master for another reason: new pods stay Pending without a word."""
from __future__ import annotations

import re

from ..incident import Incident
from ..staticpod import SCHEDULER, manifest, wait_nobody_leads


class NoScheduler(Incident):
    name = "no-scheduler"
    title = "the schedulers' manifests: one is gone, one is no YAML any more, one asks for an image that is not there"
    occupies = "cluster"
    target = "m1"

    def break_(self, cluster, target):
        gone, broken, imageless = (master.name for master in cluster.of_role("master"))
        texts = {name: self.keep(cluster, target, name, manifest(SCHEDULER)).decode() for name in (gone, broken, imageless)}
        cluster.exec(gone, ["rm", "-f", manifest(SCHEDULER)])
        cluster.write(broken, manifest(SCHEDULER), texts[broken].replace("spec:\n  ", "spec:\n\t", 1))
        image = re.sub(r"(?m)^( +image: \S+):\S+$", r"\1:v0.0.0-lab", texts[imageless])
        cluster.write(imageless, manifest(SCHEDULER), re.sub(r"(?m)^( +imagePullPolicy:) \S+$", r"\1 Never", image))

    def symptom(self, cluster, target):
        wait_nobody_leads(cluster, SCHEDULER)

    def expect(self, cluster, target):
        return {("KM203", None, SCHEDULER), ("KM107", cluster.of_role("master")[1].name, SCHEDULER)}


INCIDENT = NoScheduler()
