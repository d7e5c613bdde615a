# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what the next boot of a node breaks: KM704 fstab, KM705 kernels, KM706 NVIDIA's driver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.node.next_start import AbsentSource, GpuDriver, Kernel, NextStart
from ...evidence.document import one_line
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, node_check, not_applicable, present
from .next_program_start import COLLECTOR, unread

FSTAB = "/etc/fstab"
_NUMBERS = re.compile(r"[0-9]{1,9}")


@node_check(
    "KM704",
    "A line of fstab stops the next boot",
    severity="critical",
    applies="nodes with a kubelet",
    needs=("kubelet", COLLECTOR),
    tier="deep",
)
def absent_sources(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM704: report mounts that a boot waits for, and whose source is not there."""
    without = unread(host)
    if without is not None:
        yield without
        return
    mounts = contract.answer(document, NextStart).mounts
    if mounts is None or mounts.error:
        status = "error"
        if mounts is not None and mounts.error == "denied":
            status = "denied"
        yield CheckResult((), (Missing(host.host, COLLECTOR, status),), host=host.host)
        return
    note = ""
    if mounts.unknown:
        note = f"of {counted(mounts.unknown, 'line')} it is not known whether their source is there"
    yield CheckResult(tuple(_line(host, row) for row in mounts.rows), host=host.host, note=note)


def _line(host: Host, row: AbsentSource) -> Detection:
    source, point = one_line(row.what, 120), one_line(row.point, 120)
    return Detection(
        f"fstab mounts {source} on {point} at each boot, and no such device is there: the next"
        " boot waits for it, then ends in emergency mode, without network, kubelet and ssh",
        (EvidenceRef("file", host.host, path=FSTAB, line=row.line, text=f"{source} {point}"),),
        "correct the line (blkid, findmnt --verify), comment it, or add the option nofail, with"
        " which a boot goes on without it; then systemctl daemon-reload",
        host=host.host,
        node=host.node,
        component=point,
    )


@node_check(
    "KM705",
    "Kernel of the next boot lacks modules that run now",
    severity="critical",
    applies="nodes with a kubelet that are no containers",
    needs=("kubelet", COLLECTOR),
    tier="deep",
)
def lacking_kernels(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM705: report a newer kernel, or that of the link vmlinuz, without modules in use."""
    without = unread(host)
    if without is not None:
        yield without
        return
    kernels = contract.answer(document, NextStart).kernels
    if kernels is None:
        yield not_applicable("its kernel is that of its machine", host=host.host)
        return
    hits = [
        _kernel(host, kernel, kernels.running)
        for kernel in kernels.kernels
        if kernel.lacks
        and (kernel.is_default or _number(kernel.release) > _number(kernels.running))
    ]
    yield present(*hits, host=host.host)


def _number(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, by which releases of one distribution are in order."""
    return tuple(int(number) for number in _NUMBERS.findall(release[:120])[:8])


def _kernel(host: Host, kernel: Kernel, running: str) -> Detection:
    release, lacks = one_line(kernel.release, 80), [one_line(name, 40) for name in kernel.lacks]
    tree = f"/lib/modules/{release}"
    severity, when = "warning", "may start"
    if kernel.is_default:
        severity, when = "critical", "starts"
    state = "has no file of them"
    if not kernel.tree:
        state = "has no list of modules: its modules are not installed"
    install = f"install linux-modules of {release}, or run depmod {release}"
    if "nvidia" in lacks:
        install += "; dkms status shows whether NVIDIA's driver was built for it (dkms autoinstall)"
    return Detection(
        f"the next boot {when} the kernel {release} instead of {one_line(running, 80)}, and it"
        f" lacks {and_others(lacks)}, which {_are(lacks)} loaded now",
        (EvidenceRef("file", host.host, path=f"{tree}/modules.dep", text=state),),
        f"{install}; or make the boot loader start {one_line(running, 80)} again",
        host=host.host,
        node=host.node,
        component=release,
        severity=severity,
    )


def _are(names: list[str]) -> str:
    if len(names) == 1:
        return "is"
    return "are"


@node_check(
    "KM706",
    "NVIDIA's driver and its library differ",
    severity="warning",
    applies="nodes with NVIDIA's driver",
    needs=("kubelet", COLLECTOR),
    tier="deep",
)
def other_library(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM706: report a driver in the kernel that no library of the node belongs to."""
    without = unread(host)
    if without is not None:
        yield without
        return
    gpu = contract.answer(document, NextStart).gpu
    if gpu is None:
        yield not_applicable("NVIDIA's driver is not loaded", host=host.host)
        return
    versions = {library.version for library in gpu.libraries}
    if not gpu.loaded:
        yield CheckResult((), (Missing(host.host, COLLECTOR, "error"),), host=host.host)
    elif not versions or gpu.loaded in versions:
        yield CheckResult(host=host.host)
    else:
        yield present(_driver(host, gpu), host=host.host)


def _driver(host: Host, gpu: GpuDriver) -> Detection:
    loaded, library = one_line(gpu.loaded, 40), gpu.libraries[0]
    version = one_line(library.version, 40)
    return Detection(
        f"the kernel runs NVIDIA's driver {loaded}, and its library on the disk is {version}: new"
        " containers with a GPU fail (driver/library version mismatch), running ones go on; a"
        f" reboot loads {version}, if it was built for the kernel",
        (
            EvidenceRef("file", host.host, path="/proc/driver/nvidia/version", text=loaded),
            EvidenceRef("file", host.host, path=one_line(library.path, 200), text=version),
        ),
        "drain the node and reboot it; before that see that modinfo -F version nvidia shows"
        f" {version}, for the kernel of the next boot too (modinfo -k RELEASE); apt-mark hold the"
        " packages of the driver, so that none changes below running containers",
        host=host.host,
        node=host.node,
        component="nvidia",
    )
