# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reboot undid on a node, or the next one will: kernel settings, modules, file systems.

Not every node needs every one of them. net.ipv4.ip_forward is needed by all whose pods have IPv4;
br_netfilter by those whose pods hang on a bridge and whose services are rules of iptables, which
the evidence does not show: it is missed only where a file of this node asks for it. overlay comes
by itself with the first mount of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.shared import kernel_modules, sysctl
from ..evidence import contract, memoize
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import modules_load_fstab, swap_files, sysctl_d
from ..parsers.modules_load_fstab import Mount, Named
from ..parsers.sysctl_d import Setting
from . import control_plane, installer
from . import limits as model_limits
from .limits import Limits
from .persistent_sysctl import FILE as SYSCTL_FILE
from .persistent_sysctl import VENDOR, place, taken

FILE = "/etc/modules-load.d/zz-kubemend.conf"
IP_FORWARD, *BRIDGE = sysctl.RUNNING
FORWARDING = "net.ipv4.conf.all.forwarding"  # the same setting by its other name
IPV6 = "net.ipv6.conf.all.forwarding"
NETFILTER = kernel_modules.MODULES[0]
SETS_AGAIN = "unless something sets it again (docker, the network plugin, kube-proxy in mode ipvs)"
LOADS_AGAIN = "unless something loads it again (docker, kube-proxy, a rule of iptables)"
AUTOMATIC = ("x-systemd.automount", "comment=systemd.automount")

Place = tuple[str, int, str]


@dataclass(frozen=True)
class Problem:
    """A setting or module that is not there, or will not be. now: it is missing already.

    wanted: of a setting, what it should be; places: what says so.

    loads: of a module, whether the machine has it to load.
    """

    name: str
    why: str
    now: bool
    wanted: int | None = None
    places: tuple[Place, ...] = ()
    severe: bool = False
    loads: bool = False


@dataclass(frozen=True)
class Lost:
    """A file system that is not as the node needs it. folders: of the node, that lie there."""

    point: str
    why: str
    folders: tuple[str, ...]
    line: Mount | None = None
    mounted: str = ""


@dataclass(frozen=True)
class NodeBoot:
    """seen: of collector boot; limits: with the files of sysctl.d, None where that did not answer.

    Foreign: an installer that sees to all this itself.
    """

    seen: Mapping[str, Any]
    limits: Limits | None
    fstab: Any
    addresses: Sequence[Any]
    foreign: str | None
    answers: bool

    @property
    def container(self) -> bool:
        """Is the node a container? Its modules and file systems are those of its machine."""
        return self.seen.get("container") is True

    @property
    def ipv4(self) -> bool | None:
        """Has the machine an address of IPv4? None where its addresses are not known."""
        if self.addresses:
            return any(
                isinstance(one, str) and "." in one and ":" not in one for one in self.addresses
            )
        return None

    @property
    def running(self) -> Mapping[str, Any]:
        """Return the kernel settings that run, by key."""
        return _mapping(self.seen.get("running"))

    def number(self, key: str) -> int | None:
        """Return a kernel setting as a number, or None."""
        return sysctl_d.number(self.running.get(key))

    def module(self, name: str) -> str | None:
        """Return loaded, builtin or absent; None where that is not known."""
        state: str | None = _mapping(self.seen.get("modules")).get(name)
        if state in (kernel_modules.LOADED, kernel_modules.BUILTIN, kernel_modules.ABSENT):
            return state
        return None

    @property
    def docker(self) -> bool:
        """Does dockerd run, which sets and loads what it needs at its start?"""
        if self.limits:
            units = model_limits.items(self.limits.seen.get("units"))
        else:
            units = []
        return any(
            one.get("name") == "docker.service" and one.get("active_state") == "active"
            for one in units
        )

    def named(self) -> list[Named]:
        """Return what modules-load.d and the kernel's command line name for the next boot."""
        words = self.seen.get("cmdline")
        if isinstance(words, (list, tuple)):
            pairs = [pair for pair in words if isinstance(pair, (list, tuple)) and len(pair) == 2]
        else:
            pairs = []
        told = [
            Named(name.replace("-", "_"), "/proc/cmdline", 1)
            for key, value in pairs
            if key in ("modules_load", "rd.modules_load")
            for name in str(value).split(",")
        ]
        return modules_load_fstab.modules(self.seen.get("modules_files")) + told

    def unread(self) -> list[str]:
        """Return the files that decide what a boot sets and that could not be read."""
        return modules_load_fstab.unread(self.seen.get("modules_files")) + (
            self.limits.unread_sysctl() if self.limits else []
        )

    def unknown(self) -> str:
        """Return what is not known of the running system; empty where all is known."""
        if self.ipv4 and self.number(IP_FORWARD) is None:
            return f"{IP_FORWARD} could not be read"
        if self.container or self.module(NETFILTER):
            return ""
        return "whether br_netfilter is loaded is not known"


@memoize.last
def read(document: Mapping[str, Any]) -> NodeBoot:
    """Return the evidence of a host; never raises."""
    healthz = contract.answer(document, Kubelet).healthz
    limits = None
    if control_plane.status(document, "limits") == "ok":
        limits = model_limits.read(document)
    return NodeBoot(
        control_plane.data(document, "boot"),
        limits,
        control_plane.data(document, "swap").get("fstab"),
        contract.answer(document, System).addresses,
        installer.owner_of(document),
        healthz is not None and healthz.status == 200,
    )


def problems(node: NodeBoot) -> Iterator[Problem]:
    """KM520: what is missing, and what the next boot takes away.

    Of the next boot nothing is said while a file is not known.
    """
    known = node.limits is not None and not node.unread()
    if node.limits:
        boots = node.limits.booted((*sysctl.RUNNING, FORWARDING, IPV6))
    else:
        boots = {}
    if node.limits:
        hands = sysctl_d.by_hand(node.limits.records, (*sysctl.RUNNING, FORWARDING))
    else:
        hands = {}
    both = boots.get(IP_FORWARD), boots.get(FORWARDING)
    # Where both names are set and differ, the one that is written last counts: nothing is said of
    # the next boot.
    differ = None not in both and len({taken(one.key, one.value) for one in both if one}) > 1
    six = boots.get(IPV6)
    # Where a file asks for IPv6 alone, pods may have no other: the machine's own IPv4 proves
    # nothing.
    if any(both) or six is None or taken(IPV6, six.value) == 0:
        yield from _forwarding(
            node,
            both[0] or both[1],
            hands.get(IP_FORWARD) or hands.get(FORWARDING),
            known and not differ,
        )
    asked = [found for key in BRIDGE for found in [boots.get(key)] if found and _asks(found)]
    for found in asked:
        if node.number(found.key) == 0:
            yield Problem(
                found.key,
                f"{place(found)} says {found.value}, and the kernel has 0: it was never loaded, or"
                " something lowered it since",
                True,
                1,
                (_line(found),),
            )
    yield from _overridden(node, [boots[key] for key in BRIDGE if key in boots])
    if not node.container:
        yield from _modules(node, asked, known)


def is_repairable(one: Problem) -> bool:
    """Whether the plan has a step for it. A kernel without its modules has none to load."""
    return one.wanted is not None or one.loads


def cure(one: Problem) -> str:
    """Return what to do about it, in a sentence."""
    if one.wanted is None:
        by_hand = (
            f"modprobe {one.name}, and " if one.now else ""
        ) + f"a line {one.name} in a file of /etc/modules-load.d"
        if one.loads:
            does = f"the plan does, in {FILE}"
        else:
            does = (
                "install the modules of the kernel that runs, or reboot into the one that was"
                " installed, first"
            )
        return f"{by_hand}: {does}"
    if one.now:
        by_hand = f" (by hand, until the next boot: sysctl -w {one.name}={one.wanted})"
    else:
        by_hand = ""
    return (
        f"write {one.name} = {one.wanted} where nothing overrides it: the plan does, in"
        f" {SYSCTL_FILE}, and tells the kernel{by_hand}"
    )


def _forwarding(  # noqa: PLR0912 - one branch for each file that may decide
    node: NodeBoot, found: Setting | None, hand: Setting | None, known: bool
) -> Iterator[Problem]:
    """Pods' packets are forwarded, or the node drops them all."""
    running = node.number(IP_FORWARD)
    if not node.ipv4 or running is None:
        return
    if found:
        value = taken(IP_FORWARD, found.value)
    else:
        value = None
    if running == 0:
        if found is None:
            if known:
                why = "no file of sysctl.d sets it"
            else:
                why = "what a boot makes of it is not known"
        else:
            why = f"{place(found)} says {found.value}" + (
                ": it was never loaded, or something lowered it since"
                if value
                else ", and so it is after each boot"
            )
        yield Problem(
            IP_FORWARD,
            f"the kernel has 0; {why}",
            True,
            1,
            (_line(found),) if found else (),
            severe=True,
        )
    elif found and value == 0 and known:
        yield Problem(
            IP_FORWARD,
            f"the kernel has {running}, and {place(found)} brings it back to 0 at the next boot,"
            f" {SETS_AGAIN}",
            False,
            1,
            (_line(found),),
        )
    elif found is None and known and not (node.container or node.docker or node.foreign):
        # A container has it from what makes it; k3s and the like, and dockerd, set it at each
        # start.
        if hand:
            told = f"; {place(hand)} says {hand.value}, which nothing reads at boot"
        else:
            told = ""
        yield Problem(
            IP_FORWARD,
            f"the kernel has {running}, and no file of sysctl.d says so: the next boot brings 0,"
            f" {SETS_AGAIN}{told}",
            False,
            1,
            (_line(hand),) if hand else (),
        )


def _asks(found: Setting) -> bool:
    """Tell whether the operator set it, not a distribution."""
    return taken(found.key, found.value) not in (None, 0) and not found.path.startswith(VENDOR)


def _overridden(node: NodeBoot, settings: Sequence[Setting]) -> Iterator[Problem]:
    """Tell whether one file asks for filtering on a bridge and a later one switches it off.

    Only switching it off may be on purpose.
    """
    for found in settings:
        asked = [
            one
            for one in found.overrides
            if taken(found.key, one[2]) not in (None, 0) and not one[0].startswith(VENDOR)
        ]
        if taken(found.key, found.value) == 0 and asked and node.number(found.key) is not None:
            path, line, value = asked[-1]
            yield Problem(
                found.key,
                f"{path}:{line} says {value}, and {place(found)}, which wins, says 0; the kernel"
                f" has {node.number(found.key)} now",
                node.number(found.key) == 0,
                1,
                ((path, line, f"{found.key} = {value}"), _line(found)),
            )


def _modules(node: NodeBoot, asked: Sequence[Setting], known: bool) -> Iterator[Problem]:
    """Modules that a file of this node names and the kernel does not have.

    Br_netfilter that is there and that nothing names.
    """
    named: dict[str, list[Named]] = {}
    for one in node.named():
        named.setdefault(one.name, []).append(one)
    for name in kernel_modules.MODULES:
        places = [(one.path, one.line, one.name) for one in named.get(name, ())]
        if name == NETFILTER:
            keys = [_line(found) for found in asked]
        else:
            keys = []
        if node.module(name) == kernel_modules.ABSENT and (places or keys):
            if places:
                wishes = " and ".join(one.place for one in named[name]) + " names it"
            else:
                wishes = (
                    ", ".join(f"{path}:{line}" for path, line, dummy in keys)
                    + " sets what only it brings"
                )
            if node.seen.get("tree") is True:
                lacks = ""
            else:
                lacks = (
                    "; the modules of the kernel that runs are not installed: it was updated, or"
                    " they lie in a package"
                )
            yield Problem(
                name,
                f"it is not loaded, and {wishes}{lacks}",
                True,
                None,
                (*places, *keys),
                loads=not lacks,
            )
        elif (
            keys
            and not places
            and node.module(name) == kernel_modules.LOADED
            and known
            and not (node.docker or node.foreign)
        ):
            yield Problem(
                name,
                "it is loaded, and no file of modules-load.d names it: the next boot comes without"
                f" it, {LOADS_AGAIN}, and {keys[0][0]}:{keys[0][1]} then sets nothing",
                False,
                None,
                tuple(keys),
                loads=True,
            )


def _line(found: Setting) -> Place:
    return found.path, found.line, f"{found.key} = {found.value}"


def lost(node: NodeBoot) -> Iterator[Lost]:
    """Return KM521: missing file systems of fstab, and read-only ones of the node."""
    mounts = mounted(node)
    folders = {
        path: real
        for path, real in _mapping(node.seen.get("folders")).items()
        if isinstance(path, str) and (real is None or isinstance(real, str))
    }
    if mounts is None:
        return
    places = modules_load_fstab.above([*folders, *(real for real in folders.values() if real)]) - {
        "/"
    }
    for line in () if node.container else modules_load_fstab.mounts(node.fstab):
        point = folders.get(line.point) or line.point
        if (
            point in places
            and not {point, line.point} & mounts.keys()
            and not line.noauto
            and not any(option in AUTOMATIC for option in line.options)
        ):
            yield Lost(
                line.point,
                "fstab mounts it at boot, and it is not mounted",
                _below(folders, point),
                line,
            )
    holders: dict[str, list[str]] = {}
    for path, real in folders.items():
        if real:
            holders.setdefault(
                next(
                    (
                        up
                        for up in sorted(modules_load_fstab.above([real]), key=len, reverse=True)
                        if up in mounts
                    ),
                    "",
                ),
                [],
            ).append(path)
    for point, held in sorted(holders.items()):
        one = mounts.get(point)
        if one and "ro" in str(one.get("options")).split(","):
            told = one_line(
                f"{one.get('source')} {point} {one.get('type')} {one.get('options')}", 300
            )
            yield Lost(point, "it is read-only", tuple(sorted(held)), None, told)


def fstab_known(node: NodeBoot) -> bool:
    """Was all of fstab read? A machine without the file is known to have no line."""
    return isinstance(node.fstab, Mapping) and swap_files.fstab(node.fstab)[2] is None


def mounted(node: NodeBoot) -> dict[str, Mapping[str, Any]] | None:
    """Return what is mounted, by its mount point; None where that is not known."""
    rows = node.seen.get("mounts")
    if not isinstance(rows, (list, tuple)):
        return None
    return {
        one["point"]: one for one in model_limits.items(rows) if isinstance(one.get("point"), str)
    }


def _below(folders: Mapping[str, str | None], point: str) -> tuple[str, ...]:
    """Return the directories that are to be below a mount point.

    Of those that do not exist, only the one that is the point itself.
    """
    return tuple(
        sorted(
            path
            for path, real in folders.items()
            if path == point or (real and point in modules_load_fstab.above([real]))
        )
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    return {}
