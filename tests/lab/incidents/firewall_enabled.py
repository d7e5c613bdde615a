# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's firewalld was stopped when the node was made, and not disabled.

The next boot shuts the kubelet's port.

The files are those of Debian 12's package, as tests/fixtures/firewall has them; the program is not
there, and its unit is never started.
"""

from __future__ import annotations

import json

from tests.lab.cluster import paths
from tests.lab.support.incident import Incident

TAKEN = paths.ROOT / "tests" / "fixtures" / "firewall" / "debian-12-firewalld.json"
UNIT, WANTED = (
    "/etc/systemd/system/firewalld.service",
    "/etc/systemd/system/multi-user.target.wants/firewalld.service",
)
TEXT = (
    "[Unit]\nDescription=firewalld - dynamic firewall"
    " daemon\n\n[Service]\nExecStart=/usr/sbin/firewalld"
    " --nofork\n\n[Install]\nWantedBy=multi-user.target\n"
)


class FirewallEnabled(Incident):
    name = "firewall-enabled"
    title = (
        "firewalld comes with a worker's next boot, and lets no connection in at the kubelet's port"
    )
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        for path, text in files():
            self.keep(cluster, target, target, path)
            cluster.write(target, path, text)
        cluster.exec(target, ["systemctl", "enable", "--no-reload", "firewalld"])

    def symptom(self, cluster, target):
        assert (
            cluster.exec(target, ["systemctl", "is-enabled", "firewalld"]).stdout.strip()
            == b"enabled"
        )

    def undo(self, cluster, target):
        cluster.exec(target, ["rm", "-f", WANTED])
        self.restore(cluster, target)
        cluster.exec(target, ["systemctl", "daemon-reload"])

    def expect(self, cluster, target):
        return {("KM527", target, "firewalld")}


def files() -> list[tuple[str, str]]:
    """(path, text) of all that is put there."""
    taken = json.loads(TAKEN.read_text(encoding="utf-8"))["firewalld"]["files"]
    return [(UNIT, TEXT), *((one["path"], one["text"]) for one in taken if one["text"] is not None)]


INCIDENT = FirewallEnabled()
