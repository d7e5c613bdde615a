# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker forwards no packet of IPv4, and no file of it says that it should.

The setting belongs to the node's own network, not to the machine.
"""

from __future__ import annotations

from pathlib import Path

from tests.lab.support.incident import Incident

KEY, PLACE = "net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"


def value(cluster, target: str) -> str:
    """Return the value in the node's network."""
    return cluster.exec(target, ["cat", PLACE]).stdout.decode().strip()


class IpForwardOff(Incident):
    name = "ip-forward-off"
    title = "a worker forwards no packets of its pods, as after a boot without its sysctl.d file"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        own, machine = (
            cluster.exec(target, ["readlink", "/proc/1/ns/net"]).stdout.decode().strip(),
            str(Path("/proc/self/ns/net").readlink()),
        )
        assert own != machine, (
            f"{target} shares the machine's network: nothing is switched off in it"
        )
        cluster.exec(target, f"echo 0 > {PLACE}")

    def symptom(self, cluster, target):
        assert value(cluster, target) == "0"

    def undo(self, cluster, target):
        cluster.exec(target, f"echo 1 > {PLACE}")

    def expect(self, cluster, target):
        return {("KM520", target, KEY)}


INCIDENT = IpForwardOff()
