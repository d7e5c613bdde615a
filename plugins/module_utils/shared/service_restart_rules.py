# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services that are never restarted for a limit, and the sentence about it."""

from .consent import SERVICE_RESTART
from .units import KUBELET_UNITS

SECONDS = 240  # a unit may take 90 to stop and as many to start
DOCKER = "docker.service"
# Without which the machine, its network or its disks, or the cluster loses more than a service:
# their restart is never for the sake of a limit.
NEVER = (
    "systemd-",
    "dbus",
    "etcd",
    "kube-",
    "haproxy",
    "keepalived",
    "NetworkManager",
    "networking",
    "wicked",
    "firewalld",
    "openvswitch",
    "ovs-",
    "flanneld",
    "iscsid",
    "multipathd",
    "ceph-",
    "glusterd",
)


def never_reason(name):
    """Return why a unit of this name is never restarted here, or None."""
    if name in KUBELET_UNITS or name.startswith(NEVER):
        return "more than a service hangs on it, whatever is allowed"
    return None


def refusal(name, host, reason):
    """Return the refusal, which the plan says as the node does."""
    return (
        f"{name} of {host} is not restarted, because {reason}; without {SERVICE_RESTART} in"
        " kubemend_allow its limit is written for its next start"
    )
