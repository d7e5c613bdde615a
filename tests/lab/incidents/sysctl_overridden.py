# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file 99-kubernetes.conf, and /etc/sysctl.conf, read later through 99-sysctl.conf, says less."""

from __future__ import annotations

from tests.lab.cluster import kernel
from tests.lab.support import limits


class SysctlOverridden(limits.Limits):
    name = "sysctl-overridden"
    title = "a worker's sysctl.d file is overridden by /etc/sysctl.conf"
    faults = (("KM407", limits.INSTANCES),)

    def break_(self, cluster, target):
        wanted = kernel.WANTED[kernel.INOTIFY]
        for path, value in (
            ("/etc/sysctl.d/99-kubernetes.conf", wanted),
            ("/etc/sysctl.conf", 512),
        ):
            before = self.keep(cluster, target, target, path) or b""
            cluster.write(target, path, before + f"\n{limits.INSTANCES}={value}\n".encode())

    def symptom(self, cluster, target):
        read = (
            cluster.exec(target, ["readlink", "-f", "/etc/sysctl.d/99-sysctl.conf"])
            .stdout.decode()
            .strip()
        )
        assert read == "/etc/sysctl.conf", read


INCIDENT = SysctlOverridden()
