# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker whose kubelet ends at each start, with words of its own."""

from __future__ import annotations

from tests.lab.support.incident import Incident

HEALTHZ = "curl -sf http://127.0.0.1:10248/healthz"


class KubeletDown(Incident):
    """A kubelet that ends at each start. `spoil` breaks it.

    fault: what the audit must find
    words: what the kubelet must have logged
    """

    occupies = "worker"
    target = "w1"
    fault = ""
    words = ""

    def spoil(self, cluster, target):
        raise NotImplementedError

    def break_(self, cluster, target):
        self.remember(cluster, target, since=int(cluster.exec(target, ["date", "+%s"]).stdout))
        self.spoil(cluster, target)
        cluster.exec(
            target,
            "systemctl stop kubelet; systemctl reset-failed kubelet; systemctl start kubelet",
        )

    def symptom(self, cluster, target):
        """Wait until the kubelet has ended twice.

        An audit that looks while it runs for a moment then has two ends to compare.
        """
        cluster.wait(
            lambda: self.said(cluster, target).count("Main process exited") >= 2,
            180,
            f"the kubelet of {target} to end twice",
        )
        said = self.said(cluster, target)
        assert self.words in said, f"{self.words!r} not in {said[-3000:]}"

    def said(self, cluster, target):
        """Return the kubelet's journal since the incident was made.

        A kubelet of 1.18 shows bytes of a file that it does not take.
        """
        since = self.record(cluster, target)["since"]
        return cluster.exec(
            target, f"journalctl -q -u kubelet --since @{since} -o cat; true"
        ).stdout.decode(errors="replace")

    def undo(self, cluster, target):
        self.restore(cluster, target)
        cluster.exec(
            target,
            "systemctl stop kubelet; systemctl reset-failed kubelet; systemctl start kubelet",
        )
        cluster.wait(
            lambda: cluster.exec(target, HEALTHZ, check=False).stdout == b"ok",
            180,
            f"the kubelet of {target}",
        )

    def expect(self, cluster, target):
        return {(self.fault, target, "kubelet")}
