# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker whose kubelet or runtime systemd does not start, because of one drop-in of its unit."""

from __future__ import annotations

from tests.lab.support.incident import Incident
from tests.lab.support.kubelet_down import HEALTHZ


class UnitRefused(Incident):
    """section and line: what the drop-in of unit says; words: what systemd must have said of it.

    Fault: what the audit must find.
    """

    occupies = "worker"
    target = "w1"
    unit, fault = "kubelet", "KM502"
    section, line = "", ""
    words = ""

    @property
    def folder(self):
        return f"/etc/systemd/system/{self.unit}.service.d"

    def more(self, cluster, target):
        """Prepare what it needs in addition to the drop-in."""

    def break_(self, cluster, target):
        self.remember(cluster, target, since=int(cluster.exec(target, ["date", "+%s"]).stdout))
        self.more(cluster, target)
        drop_in = f"{self.folder}/99-lab.conf"
        self.keep(cluster, target, target, drop_in)
        cluster.exec(target, ["mkdir", "-p", self.folder])
        cluster.write(target, drop_in, f"[{self.section}]\n{self.line}\n")
        cluster.exec(
            target,
            f"systemctl daemon-reload; systemctl stop {self.unit}; systemctl reset-failed"
            f" {self.unit}; systemctl start --no-block {self.unit}; true",
        )

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: self.words in self.said(cluster, target),
            120,
            f"systemd of {target} to refuse {self.unit}",
        )
        assert (
            cluster.exec(target, ["systemctl", "is-active", self.unit], check=False).stdout.strip()
            != b"active"
        )

    def said(self, cluster, target):
        """Return the unit's journal, of PID 1 and its child, since the incident was made."""
        since = self.record(cluster, target)["since"]
        return cluster.exec(
            target, f"journalctl -q --since @{since} -o cat -u {self.unit}; true"
        ).stdout.decode(errors="replace")

    def undo(self, cluster, target):
        self.restore(cluster, target)
        cluster.exec(
            target,
            f"rmdir {self.folder} 2>/dev/null; systemctl daemon-reload; systemctl stop {self.unit};"
            f" systemctl reset-failed {self.unit}; systemctl start {self.unit}",
        )
        cluster.wait(
            lambda: cluster.exec(target, HEALTHZ, check=False).stdout == b"ok",
            180,
            f"the kubelet of {target}",
        )

    def expect(self, cluster, target):
        return {(self.fault, target, self.unit)}
