# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker whose kubelet systemd itself does not start, because of one drop-in of its unit."""
from __future__ import annotations

from .incident import Incident
from .kubeletdown import HEALTHZ

FOLDER = "/etc/systemd/system/kubelet.service.d"
DROP_IN = f"{FOLDER}/99-lab.conf"


class UnitRefused(Incident):
    """section and line: what the drop-in says; words: what systemd must have said of it."""

    occupies = "worker"
    target = "w1"
    section, line = "", ""
    words = ""

    def more(self, cluster, target):
        """What it needs besides the drop-in."""

    def break_(self, cluster, target):
        self.remember(cluster, target, since=int(cluster.exec(target, ["date", "+%s"]).stdout))
        self.more(cluster, target)
        self.keep(cluster, target, target, DROP_IN)
        cluster.exec(target, ["mkdir", "-p", FOLDER])
        cluster.write(target, DROP_IN, f"[{self.section}]\n{self.line}\n")
        cluster.exec(target, "systemctl daemon-reload; systemctl stop kubelet; systemctl reset-failed kubelet; "
                             "systemctl start --no-block kubelet; true")

    def symptom(self, cluster, target):
        cluster.wait(lambda: self.words in self.said(cluster, target), 120, f"systemd of {target} to refuse the kubelet")
        assert cluster.exec(target, HEALTHZ, check=False).stdout != b"ok"

    def said(self, cluster, target):
        """Of PID 1 and its child, since it was broken."""
        since = self.record(cluster, target)["since"]
        return cluster.exec(target, f"journalctl -q --since @{since} -o cat -u kubelet; true").stdout.decode(errors="replace")

    def undo(self, cluster, target):
        self.restore(cluster, target)
        cluster.exec(target, f"rmdir {FOLDER} 2>/dev/null; systemctl daemon-reload; systemctl stop kubelet; systemctl reset-failed kubelet; "
                             "systemctl start kubelet")
        cluster.wait(lambda: cluster.exec(target, HEALTHZ, check=False).stdout == b"ok", 180, f"the kubelet of {target}")

    def expect(self, cluster, target):
        return {("KM502", target, "kubelet")}
