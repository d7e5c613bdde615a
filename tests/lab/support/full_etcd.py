# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An etcd that is filled by real writes until it is at its quota."""

from __future__ import annotations

KEY = "/kubemend-lab/filling"  # no API server reads it


def alarms(cluster, name) -> str:
    """Return the alarms of etcd, as the member of this node lists them."""
    return cluster.etcdctl("--command-timeout=5s", "alarm", "list", node=name).stdout.decode()


def put(cluster, name) -> bool:
    """Write a value of 900 kB to one key, and return whether etcd took it."""
    node = cluster.node(name)
    pki = "/etc/kubernetes/pki/etcd"
    line = (
        f"head -c 900000 /dev/zero | tr '\\0' x | etcdctl --endpoints=https://{node.ip}:2379"
        f" --cacert={pki}/ca.crt --cert={pki}/server.crt --key={pki}/server.key put {KEY}"
    )
    done = cluster.exec(name, line, check=False)
    if done.returncode and b"space exceeded" not in done.stderr:
        raise RuntimeError(f"etcd of {name} answered {done.stderr!r}")
    return done.returncode == 0


def fill(cluster, names) -> None:
    """Write until etcd refuses it, each time through another member of these nodes."""
    for number in range(100):
        if not put(cluster, names[number % len(names)]):
            cluster.wait(
                lambda: "NOSPACE" in alarms(cluster, names[0]), 60, "etcd to raise its alarm"
            )
            return
    raise RuntimeError("etcd took 90 MB")
