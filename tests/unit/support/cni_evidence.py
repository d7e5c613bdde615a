# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network configuration of a node's pods, in evidence that is written by hand."""

from __future__ import annotations

from typing import Any


def file(name: str, network: str, *plugins: str, **more: Any) -> dict[str, Any]:
    """Return one configuration."""
    return {
        "name": name,
        "size": 300,
        "mtime": 1_799_000_000.0,
        "uid": 0,
        "network": network,
        "plugins": list(plugins),
        "ipam": [],
        "error": None,
        **more,
    }


def cni(world: Any, host: str = "w1", **more: Any) -> dict[str, Any]:
    """Give a host the plugins bridge and portmap with host-local."""
    ipam = {"type": "host-local", "data_dir": "", "subnets": ["10.244.1.0/24"]}
    data = {
        "folder": "/etc/cni/net.d",
        "error": None,
        "files": [file("10-lab.conflist", "lab", "bridge", "portmap", ipam=[ipam])],
        "bin_dirs": ["/opt/cni/bin"],
        "programs": ["bridge", "host-local", "loopback", "portmap"],
        "reservations": [],
        **more,
    }
    world.documents[host]["collectors"]["cni"] = {"status": "ok", "data": data}
    return data


def reserve(data: dict[str, Any], **more: Any) -> None:
    """Add host-local's reservations of the network lab."""
    row = {"network": "lab", "folder": "/var/lib/cni/networks/lab", "addresses": 4, "leaked": 0}
    data["reservations"].append(
        {
            **row,
            "empty": 0,
            "oldest": 1_799_000_000.0,
            "names": ["10.244.1.9"],
            "truncated": False,
            **more,
        }
    )


def of_w1(world: Any, code: str) -> tuple[str, list[Any]]:
    """Return the verdict and the findings of one fault on w1."""
    result = world.judge(faults=frozenset((code,)), deep=True)
    verdicts = [item.verdict for item in result.verdicts if item.host == "w1"]
    return next(iter(verdicts), "not judged"), list(result.findings)
