# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every certificate of all masters has ended, and all of them were rebooted: no API, no quorum."""

from __future__ import annotations

from tests.lab.incidents.certificates_expired import CertificatesExpired


class CertificatesExpiredEverywhere(CertificatesExpired):
    name = "certificates-expired-everywhere"
    title = "every leaf certificate of all masters has expired"
    occupies = "cluster"

    def masters(self, cluster, target):
        return cluster.of_role("master")

    def consequences(self, cluster, target):
        # No etcd runs then.
        return super().consequences(cluster, target) | {("KM115", None, None)}


INCIDENT = CertificatesExpiredEverywhere()
