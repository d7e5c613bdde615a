# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evidence of a node with swap, by its sources."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    swap as swap_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap import (
    generators,
    sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.evidence import (
    Seen,
    Source,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.sources import (
    Forecast,
    Running,
)
from tests.unit.support import file_evidence

HEAD = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
ZRAM = "/usr/lib/systemd/zram-generator.conf"
TARGET = {
    "Id": "swap.target",
    "LoadState": "loaded",
    "UnitFileState": "static",
    "ActiveState": "active",
}


def record(path: str, text: str | None, **more: Any) -> dict[str, Any]:
    return file_evidence.record(path, text, **{"size": 5, "mode": "0644", **more})


def missing(path: str) -> dict[str, Any]:
    return record(path, None, error="missing")


CLEAN = [
    *(missing(service.file) for service in generators.SERVICES),
    *(missing(path) for path in generators.SCRIPTS),
    missing(ZRAM),
    *(missing(f"{folder}/zram-generator") for folder in generators.GENERATORS),
]


def files(*changed: dict[str, Any]) -> list[dict[str, Any]]:
    return [*changed, *CLEAN]


def node(*units: dict[str, Any], fstab: str = "", swaps: str = "", **more: Any) -> dict[str, Any]:
    """Return a machine of which everything is known, and that has no swap unless it is given."""
    return {
        "swaps": HEAD + swaps,
        "fstab": record("/etc/fstab", fstab),
        "units": [*units, TARGET],
        "cmdline": "BOOT_IMAGE=/vmlinuz quiet",
        "files": CLEAN,
        "links": {"/dev/disk/by-uuid/F9FE": "/dev/sda2"},
        "container": False,
        "systemd": 252,
        **more,
    }


LINE = "# swap\nUUID=f9fe none swap sw 0 0\n"


def seen(evidence: Any) -> Seen:
    """Return the swap that a collector's data show, as the decoder reads them."""
    return Seen(decode(swap_answer.Swap, evidence).answer)


def running(evidence: Any) -> list[Running] | None:
    return sources.running(seen(evidence))


def after_boot(evidence: Any) -> Forecast:
    return sources.after_boot(seen(evidence))


def one(evidence: dict[str, Any]) -> Source:
    found = after_boot(evidence).sources
    assert len(found) == 1, found
    return found[0]


def source(evidence: dict[str, Any]) -> Source:
    found = running(evidence)
    assert len(found) == 1
    return found[0].source


def service(name: str, **more: str) -> dict[str, str]:
    return {
        "Id": name,
        "LoadState": "loaded",
        "UnitFileState": "enabled",
        "ActiveState": "active",
        "FragmentPath": f"/lib/systemd/system/{name}",
        **more,
    }


DPHYS = record("/etc/dphys-swapfile", "#CONF_SWAPSIZE=0\nCONF_SWAPSIZE=100\n")
FILE = "/swapfile file 65532 0 -2\n"
REFUSED, SILENT = "kind: KubeletConfiguration\n", {"status": None, "body": None, "error": "refused"}


def judge_swap(world, seen, config=REFUSED, flags=(), answers=True, status="ok"):
    """Return (verdict, findings, note) of the worker."""
    kubelet = world.data("w1", "kubelet")
    kubelet.update(argv=["kubelet", "--config=/var/lib/kubelet/config.yaml", *flags])
    kubelet["config"] = (
        record("/var/lib/kubelet/config.yaml", config, masked=[])
        if isinstance(config, str)
        else config
    )
    if not answers:
        kubelet.update(process=None, healthz=SILENT)
    world.documents["w1"]["collectors"]["swap"] = {"status": status, "data": seen}
    result = world.judge(faults=frozenset({"KM504"}))
    found = next(item for item in result.verdicts if item.host == "w1")
    return found.verdict, [item for item in result.findings if item.host == "w1"], found.note
