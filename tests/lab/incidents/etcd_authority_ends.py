# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The authority of etcd's certificates ends within a year, on all masters."""

from __future__ import annotations

from tests.lab.support.certificates import DAY, PKI, signed
from tests.lab.support.incident import Incident

AUTHORITY = f"{PKI}/etcd/ca"


class EtcdAuthorityEnds(Incident):
    name = "etcd-authority-ends"
    title = "the authority of etcd ends in 100 days"
    occupies = "cluster"
    target = "m1"

    def break_(self, cluster, target):
        masters = cluster.of_role("master")
        for master in masters:
            self.keep(cluster, target, master.name, f"{AUTHORITY}.crt")
        short = signed(
            cluster, target, f"{AUTHORITY}.crt", 100 * DAY, authority=AUTHORITY, life=3650 * DAY
        )
        for master in masters:
            cluster.write(master, f"{AUTHORITY}.crt", short)

    def symptom(self, cluster, target):
        """Nothing shows."""

    def expect(self, cluster, target):
        return {("KM123", None, "certificates")}


INCIDENT = EtcdAuthorityEnds()
