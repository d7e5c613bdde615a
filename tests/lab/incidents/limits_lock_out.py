# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""limits.d asks for more open files than the kernel gives anybody."""

from __future__ import annotations

from tests.lab.support import limits


class LimitsLockOut(limits.Limits):
    name = "limits-lock-out"
    title = "limits.d of a worker asks for more open files than a process can have"
    faults = (("KM406", None), ("KM408", None))

    def break_(self, cluster, target):
        self.keep(cluster, target, target, "/etc/security/limits.d/90-app.conf")
        cluster.write(
            target, "/etc/security/limits.d/90-app.conf", f"* hard nofile {limits.CEILING}\n"
        )

    def symptom(self, cluster, target):
        said = cluster.exec(target, f"ulimit -Hn {limits.CEILING}", check=False)
        assert said.returncode, "a process was given that many"


INCIDENT = LimitsLockOut()
