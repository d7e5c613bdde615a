# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""No scheduler is left, on each master for another reason: new pods stay Pending without a word."""

from __future__ import annotations

import re

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import (
    SCHEDULER,
    ended_long_ago,
    manifest,
    wait_nobody_leads,
    wait_settled,
)


class NoScheduler(Incident):
    name = "no-scheduler"
    title = (
        "the schedulers' manifests: one is gone, one is no YAML any more, one asks for an image"
        " that is not there"
    )
    occupies = "cluster"
    target = "m1"

    def break_(self, cluster, target):
        gone, broken, imageless = (master.name for master in cluster.of_role("master"))
        texts = {
            name: self.keep(cluster, target, name, manifest(SCHEDULER)).decode()
            for name in (gone, broken, imageless)
        }
        cluster.exec(gone, ["rm", "-f", manifest(SCHEDULER)])
        cluster.write(
            broken, manifest(SCHEDULER), texts[broken].replace("spec:\n  ", "spec:\n\t", 1)
        )
        image = re.sub(r"(?m)^( +image: \S+):\S+$", r"\1:v0.0.0-lab", texts[imageless])
        cluster.write(
            imageless,
            manifest(SCHEDULER),
            re.sub(r"(?m)^( +imagePullPolicy:) \S+$", r"\1 Never", image),
            mtime=ended_long_ago(),
        )

    def symptom(self, cluster, target):
        wait_nobody_leads(cluster, SCHEDULER)
        wait_settled(cluster, cluster.of_role("master")[2].name)

    def expect(self, cluster, target):
        _gone, broken, imageless = (master.name for master in cluster.of_role("master"))
        return {
            ("KM203", None, SCHEDULER),
            ("KM107", broken, SCHEDULER),
            ("KM114", imageless, SCHEDULER),
        }


INCIDENT = NoScheduler()
