# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's client certificate ends while its kubelet runs, which must not renew it.

The API refuses it from then on.
"""

from __future__ import annotations

import shlex

from tests.lab.incidents.kubelet_client_certificate import BOOTSTRAP, MAKE
from tests.lab.incidents.runtime_stopped import ready
from tests.lab.support.incident import Incident
from tests.lab.support.kubelet_down import HEALTHZ
from tests.lab.support.pinning import CONFIG, configure

CURRENT, PEM = (
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "/var/lib/kubelet/pki/kubelet-client-short.pem",
)
# seconds: a kubelet of a slow machine begins within that, or it would end at its start, which is
# another incident
GOOD = 100
REFUSED = "Unauthorized"


class KubeletCertificateOver(Incident):
    name = "kubelet-certificate-over"
    title = "the client certificate of a worker's kubelet ends while it runs"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        former = cluster.exec(target, ["readlink", CURRENT]).stdout.decode().strip()
        self.remember(cluster, target, link=former)
        for path in (CONFIG, BOOTSTRAP, PEM):
            self.keep(cluster, target, target, path)
        end = int(cluster.exec("m1", ["date", "+%s"]).stdout) + GOOD
        self.remember(cluster, target, end=end)
        until = (
            cluster.exec("m1", ["date", "-u", "-d", f"@{end}", "+%Y%m%d%H%M%SZ"])
            .stdout.decode()
            .strip()
        )
        made = cluster.exec(
            "m1", MAKE.replace("20200201000000Z", until).replace("NODE", target)
        ).stdout
        cluster.write(target, PEM, made, mode="600")
        configure(cluster, target, {"rotateCertificates": False})
        cluster.exec(
            target,
            f"rm -f {BOOTSTRAP}; ln -sfn {PEM} {CURRENT}; systemctl stop kubelet; systemctl"
            " reset-failed kubelet; systemctl start kubelet",
        )

    def symptom(self, cluster, target):
        end = self.record(cluster, target)["end"]
        cluster.wait(
            lambda: int(cluster.exec(target, ["date", "+%s"]).stdout) > end,
            GOOD + 30,
            "the end of its certificate",
        )
        # It runs, and what it says of the API comes after that end.
        cluster.wait(
            lambda: (
                REFUSED
                in cluster.exec(
                    target, f"journalctl -q -u kubelet --since @{end} -o cat; true"
                ).stdout.decode(errors="replace")
            ),
            90,
            f"the kubelet of {target} to be refused",
        )
        # One that took longer than that for its start has ended there: this is to be made once
        # more.
        cluster.wait(
            lambda: cluster.exec(target, HEALTHZ, check=False).stdout == b"ok",
            5,
            f"the kubelet of {target} to run all the same",
        )
        cluster.wait(lambda: not ready(cluster, target), 240, f"{target} to be NotReady")

    def undo(self, cluster, target):
        link = self.record(cluster, target).get("link")
        if link:
            cluster.exec(target, f"ln -sfn {shlex.quote(link)} {CURRENT}")
        self.restore(cluster, target)
        cluster.exec(
            target,
            "systemctl stop kubelet; systemctl reset-failed kubelet; systemctl start kubelet",
        )
        cluster.wait(lambda: ready(cluster, target), 240, f"{target} to be Ready again")

    def expect(self, cluster, target):
        """Return the findings: its Node is not ready because of the certificate."""
        return {("KM507", target, "kubelet"), ("KM525", target, "kubelet")}


INCIDENT = KubeletCertificateOver()
