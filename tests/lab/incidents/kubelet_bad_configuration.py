# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Somebody wrote a word where a number belongs into the configuration of a worker's kubelet.

It ends at each start.
"""

from __future__ import annotations

import yaml

from tests.lab.support.kubelet_down import KubeletDown

CONFIG = "/var/lib/kubelet/config.yaml"


class KubeletBadConfiguration(KubeletDown):
    name = "kubelet-bad-configuration"
    title = "a worker's kubelet does not take its configuration file"
    fault = "KM506"
    words = "maxPods"

    def spoil(self, cluster, target):
        settings = yaml.safe_load(self.keep(cluster, target, target, CONFIG))
        cluster.write(target, CONFIG, yaml.safe_dump({**settings, "maxPods": "many"}))


INCIDENT = KubeletBadConfiguration()
