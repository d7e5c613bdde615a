# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fresh node of each distribution has of sysctl.d, limits, swap and the kubelet's unit.

tests/fixtures/distributions: files.txt is the part of the file system that matters, as `head` shows
several files, a link as `-> target`; the others are /proc/swaps and what that systemd's `systemctl
show` prints. They are written down from what installers and packages do, not copied from a machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    limits,
    swap,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    files,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    systemd as unit,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    systemd_unit as unit_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap import (
    sources as swap_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.node import NodeSwap
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.policy import (
    SwapPolicy,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    limits_conf,
    swap_files,
    sysctl_d,
    systemd_unit,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    swap as remedie_swap,
)
from tests.unit.plugins.plugin_utils.models.swap.test_sources import CLEAN
from tests.unit.support import answers, swap_evidence
from tests.unit.support.file_evidence import files as files_answer

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "distributions"
WATCHED = (
    "kernel.pid_max",
    "kernel.sysrq",
    "net.ipv4.conf.all.rp_filter",
    "fs.file-max",
    "fs.inotify.max_user_instances",
    "fs.nr_open",
)
NPROC = "/etc/security/limits.d/20-nproc.conf"


@dataclass(frozen=True)
class Known:
    """What is known of a distribution.

    systemd: systemd's version
    sysctl: what its files set of WATCHED
    line: fstab's swap line
    on: the swap that is on
    unit: the unit of that swap
    limits: the limits that are no comments
    """

    systemd: int
    sysctl: dict[str, str]
    line: tuple[int, str]
    on: tuple[str, str]
    unit: str
    limits: tuple[tuple[str, str, str, int | None], ...] = ()
    restarts: int | None = 0
    extra: tuple[str, ...] = ("--v=2",)


RHEL_SWAP = ("/dev/dm-1", "partition")
UUID = "/dev/disk/by-uuid/0a3407de-014b-458b-b5c1-848e92a327a3"
PID_MAX = {"kernel.pid_max": "4194304"}
KNOWN = {
    "rhel-7": Known(
        219,
        {"kernel.sysrq": "16", "net.ipv4.conf.all.rp_filter": "1"},
        (11, "/dev/mapper/rhel-swap"),
        RHEL_SWAP,
        "dev-mapper-rhel\\x2dswap.swap",
        (("*", "soft", "nproc", 4096), ("root", "soft", "nproc", -1)),
        None,
        (),
    ),
    "rhel-8": Known(
        239,
        {**PID_MAX, "kernel.sysrq": "16", "net.ipv4.conf.all.rp_filter": "1"},
        (11, "/dev/mapper/rhel-swap"),
        RHEL_SWAP,
        "dev-mapper-rhel\\x2dswap.swap",
        extra=(),
    ),
    "rhel-9": Known(
        252,
        {**PID_MAX, "kernel.sysrq": "16"},
        (8, UUID),
        ("/dev/vda3", "partition"),
        swap_files.unit_name(UUID),
        extra=(),
    ),
    "ubuntu-20.04": Known(
        245,
        {**PID_MAX, "kernel.sysrq": "176", "net.ipv4.conf.all.rp_filter": "2"},
        (10, "/swapfile"),
        ("/swapfile", "file"),
        "swapfile.swap",
    ),
    "ubuntu-22.04": Known(
        249,
        {**PID_MAX, "kernel.sysrq": "176", "net.ipv4.conf.all.rp_filter": "2"},
        (12, "/swap.img"),
        ("/swap.img", "file"),
        "swap.img.swap",
    ),
    "ubuntu-24.04": Known(
        255,
        {**PID_MAX, "kernel.sysrq": "176", "net.ipv4.conf.all.rp_filter": "2"},
        (11, "/swap.img"),
        ("/swap.img", "file"),
        "swap.img.swap",
    ),
}


class Machine:
    """The files of a distribution below a folder, read as the collectors read them."""

    def __init__(self, name: str, root: Path) -> None:
        self.known, self.folder, self.root = KNOWN[name], FIXTURES / name, root
        parts = re.split(
            r"^==> (.+) <==\n",
            (self.folder / "files.txt").read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
        # /lib leads there
        for path, text in sorted(
            zip(parts[1::2], parts[2::2], strict=False),
            key=lambda one: not one[0].startswith("/usr/"),
        ):
            where = root / path[1:]
            where.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                where.symlink_to(text[3:].strip())
            else:
                where.write_text(text, encoding="utf-8")

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def blocks(self, name: str) -> dict[str, Any]:
        return {block["Id"][0]: block for block in unit.parse(self.text(name))}

    def read(self, path: str) -> str | None:
        return files.text(str(self.root / path[1:]))

    def record(self, path: str) -> dict[str, Any]:
        return {**files.record(str(self.root / path[1:])), "path": path}

    def conf(self, folders: tuple[str, ...], single: str) -> list[dict[str, Any]]:
        paths, unlisted = limits.conf_files([str(self.root / folder[1:]) for folder in folders])
        assert unlisted == []
        return [
            self.record(path[len(str(self.root)) :])
            for path in (*paths, str(self.root / single[1:]))
        ]

    def swap(self) -> dict[str, Any]:
        links = {"/dev/mapper/rhel-swap": "/dev/dm-1", UUID: "/dev/vda3"}
        return {
            "swaps": self.text("swaps.txt"),
            "fstab": self.record("/etc/fstab"),
            "units": swap.units(self.blocks("systemctl-swap.txt"), str(self.root)),
            "cmdline": "-",
            "links": links,
            "own": [],
            "container": False,
            "systemd": self.known.systemd if self.known.systemd > 230 else None,
            "files": CLEAN,
        }


@pytest.fixture(params=sorted(KNOWN))
def machine(request, tmp_path):
    return Machine(request.param, tmp_path)


def test_every_folder_is_known():
    assert {path.name for path in FIXTURES.iterdir()} == set(KNOWN)


def test_kernel_settings(machine, monkeypatch):
    monkeypatch.setattr(
        limits, "SYSCTL", tuple(str(machine.root / folder[1:]) for folder in limits.SYSCTL)
    )
    folders = tuple(folder[len(str(machine.root)) :] for folder in limits._folders())
    assert "/lib/sysctl.d" not in folders  # a link to /usr/lib
    records = machine.conf(folders, "/etc/sysctl.conf")
    (link,) = [one for one in records if one["kind"] == "symlink"]
    assert (link["path"], link["link"]) == (
        "/etc/sysctl.d/99-sysctl.conf",
        "../sysctl.conf",
    )
    sysctl_files = files_answer(records)
    assert sysctl_d.unreadable(sysctl_files) == []
    for read in (sysctl_d.at_boot, sysctl_d.by_hand):
        assert {
            key: one.value for key, one in read(sysctl_files, WATCHED).items()
        } == machine.known.sysctl


def test_limits_of_logins(machine):
    records = files_answer(machine.conf(("/etc/security/limits.d",), "/etc/security/limits.conf"))
    found = limits_conf.entries(records)
    assert (
        tuple((one.domain, one.kind, one.item, one.number) for one in found) == machine.known.limits
    )
    assert {one.path for one in found} <= {NPROC}
    assert limits_conf.unreadable(records) == []


def test_swap_and_where_it_comes_from(machine):
    known, seen = machine.known, machine.swap()
    number, device = known.line
    swap_seen = swap_evidence.seen(seen)
    lines, odd, problem = swap_files.fstab(swap_seen.answer.fstab)
    assert [(one.line, one.device) for one in lines] == [known.line]
    assert not odd
    assert problem is None
    assert known.unit in swap_seen.by_name
    (running,) = swap_sources.running(swap_seen)
    assert (running.active.path, running.active.kind, running.active.used_kib) == (*known.on, 0)
    assert (running.source.origin, running.source.unit, running.source.place) == (
        "fstab",
        known.unit,
        f"/etc/fstab:{number}",
    )
    later = swap_sources.after_boot(swap_seen)
    (source,) = later.sources
    assert (source.origin, source.device, source.unit, source.on) == (
        "fstab",
        device,
        known.unit,
        True,
    )
    assert later.unknown == ()
    assert [(undo.kind, undo.target) for undo in source.undo] == [
        ("comment", f"/etc/fstab:{number}")
    ]
    found = remedie_swap.sources(
        NodeSwap(swap_seen, [running], later, SwapPolicy(True, False, "NoSwap"), False)
    )
    partition = known.on[1] == "partition"
    assert (found.lines, found.hand) == ({number}, [])
    assert set(found.empty) == ({"/etc/systemd/system/swap.target"} if partition else set())


def test_the_kubelets_unit_while_it_is_down(machine):
    """All of them were disabled and stopped.

    Nothing but systemd and files tells with what such a kubelet would start.
    """
    blocks = machine.blocks("systemctl-kubelet.txt")
    assert set(blocks) == {"kubelet.service", "k3s.service"}
    assert unit.unit(blocks["k3s.service"]) is None
    block = blocks["kubelet.service"]
    found = unit.unit(block)
    assert (
        found["main_pid"],
        found["n_restarts"],
        found["exec_main_status"],
        found["need_daemon_reload"],
    ) == (0, machine.known.restarts, 0, False)
    one = systemd_unit.unit(answers.typed(unit_answer.Unit, found))
    assert (systemd_unit.state(one).kind, systemd_unit.at_boot(one).answer, one.family) == (
        "stopped",
        "no",
        "kubelet",
    )
    for path in (found["fragment_path"], *found["drop_in_paths"], *unit.environment_paths(block)):
        assert Path(machine.root / path[1:]).is_file()
    assert len(found["drop_in_paths"]) == 1
    assert len(unit.environment_paths(block)) == 2
    assert unit.command_line(block, machine.read) == [
        "/usr/bin/kubelet",
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--config=/var/lib/kubelet/config.yaml",
        "--network-plugin=cni",
        "--pod-infra-container-image=k8s.gcr.io/pause:3.2",
        *machine.known.extra,
    ]
