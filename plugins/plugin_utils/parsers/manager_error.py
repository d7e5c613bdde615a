# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
r"""Last log lines about the settings of a kubelet's resource managers. Pure.

The texts are from pkg/kubelet/cm and cmd/kubelet/app/server.go, read in 1.14.0 to 1.36.3; `m` marks
those measured with 1.36.3. A text begins where the line does, or behind a colon, a comma or a
bracket; "(?P<q…>\d+)" stands for a quoted part. What it names is KEY: VALUE.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_GONE = (
    r'(?:\["\d+"(?: "\d+")*\] cgroup (?:does not exist|is not config(?:ured)? properly)'
    r'|cgroup \["\d+"(?: "\d+")*\] has some missing (?:paths|controllers)'
    r"|could not read controllers for cgroup [^:]*: open \S+: no such file or directory"
    r"|Unit \S+ is not loaded)"
)
_TEXTS = tuple(
    (re.compile(r"(?:^|[:,] |\[)(?:" + text + ")"), template)
    for text, template in (
        # m; k/k#102073
        (r'unknown policy: "(?P<q1>\d+)"', "policy: {q1}"),
        (r'policy "(?P<q1>\d+)" is not available (?:for platform|on Windows)', "policy: {q1}"),
        (r'unknown scope: "(?P<q1>\d+)"', "policy: {q1}"),
        (r'unknown CPU Manager Policy option: "(?P<q1>\d+)"', "cpuManagerPolicyOptions: {q1}"),
        (
            r"CPU Manager Policy (?:Alpha|Beta)-level Options not enabled, "
            r'but option "(?P<q1>\d+)" provided',
            "cpuManagerPolicyOptions: {q1}",
        ),
        (r"CPU Manager policy options .{1,200} require feature gates ", "cpuManagerPolicyOptions"),
        (r"None policy: received unsupported options=", "cpuManagerPolicyOptions"),
        (
            r"static policy options (?P<w>\S+ and \S+) can not be used at the same time",
            "cpuManagerPolicyOptions: {w}",
        ),
        (
            r"Topolgy manager \S+ policy is incompatible with CPUManager (?P<w>\S+) policy option",
            "cpuManagerPolicyOptions: {w}",
        ),
        (
            r'unknown Topology Manager Policy option: "(?P<q1>\d+)"',
            "topologyManagerPolicyOptions: {q1}",
        ),
        (
            r"topology manager policy (?:alpha|beta)-level options not enabled, "
            r'but option "(?P<q1>\d+)" provided',
            "topologyManagerPolicyOptions: {q1}",
        ),
        (
            r"topology manager policy options .{1,200} require feature gates? ",
            "topologyManagerPolicyOptions",
        ),
        (r"unsupported on machines with more than \d+ NUMA Nodes", "topologyManagerPolicy"),
        (
            r"reserved-cpus: (?P<w>[\d,-]+) is not a subset of online-cpus: ",
            "reservedSystemCPUs: {w}",
        ),
        (r"unable to parse reserved-cpus list: ", "reservedSystemCPUs"),
        (r"\[?cpumanager\] unable to reserve the required amount of CPUs ", "kubeReserved"),
        (r"--(?P<w>kube|system)-reserved value failed to parse: ", "{w}Reserved"),
        # m
        (
            r'the total amount "(?P<q1>\d+)" of type "(?P<q2>\d+)" is not equal to the value '
            r'"(?P<q3>\d+)" determined by Node Allocatable feature',
            "reservedMemory: {q2} {q1}, which must be {q3}",
        ),
        (
            r"the reserved memory configuration references a NUMA node (?P<w>\d+) that does not "
            r"exist",
            "reservedMemory: NUMA node {w}",
        ),
        (r"\[?memorymanager\] you should specify the system reserved memory", "reservedMemory"),
        # m; k/k#96352, k/k#85887, k/k#110288
        (
            r"Failed to enforce (?P<w>Kube|System) Reserved (?:Compressible )?Cgroup Limits on "
            r'"(?P<q1>\d+)": ' + _GONE,
            "{w}ReservedCgroup: {q1}",
        ),
        (
            r'[Ii]nvalid Node Allocatable configuration\. Resource "(?P<q1>\d+)" has '
            r"(?:a reservation|an allocatable) of ",
            "kubeReserved: {q1}",
        ),
    )
)
# The static policy without a reservation, which is a fault of its own (KM309).
_UNRESERVED = (
    "unable to determine reserved CPU resources for static policy",
    "static policy requires systemreserved.cpu + kubereserved.cpu",
)


def meant(text: str, quoted: Sequence[str]) -> str | None:
    """Return what a line refuses, as KEY or KEY: VALUE; None where it is no such line."""
    for pattern, template in _TEXTS:
        match = pattern.search(text)
        if match is not None:
            values = {
                name: _value(name, value or "", quoted) for name, value in match.groupdict().items()
            }
            setting = template.format(**values)
            return setting[:1].lower() + setting[1:]
    return None


def unreserved(line: str) -> bool:
    """Return whether a line says that the static policy has no CPU reserved."""
    return any(words in line for words in _UNRESERVED)


def _value(group: str, text: str, quoted: Sequence[str]) -> str:
    if group.startswith("q"):
        return _part(text, quoted)
    return text


def _part(number: str, quoted: Sequence[str]) -> str:
    """Return the quoted part of this number, or "" without one."""
    if len(number) >= 6 or not number.isdigit():
        return ""
    return next(iter(quoted[int(number) :][:1]), "")
