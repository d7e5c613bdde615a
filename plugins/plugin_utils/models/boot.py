# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reboot undid on a node, or the next one will: kernel settings, modules, file systems.

Not every node needs every one of them. Every node whose pods have IPv4 needs net.ipv4.ip_forward. A
node needs br_netfilter if its pods hang on a bridge and its services are rules of iptables. The
evidence does not show that: br_netfilter counts as missing only where a file of this node asks for
it, or where the node's network plugin ends for want of it. The kernel loads overlay by itself with
the first mount of that type.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.shared import kernel_modules, sysctl
from ..evidence import contract, memoize
from ..evidence.answers.file_record import FileRecord
from ..evidence.answers.node.boot import Boot
from ..evidence.answers.node.boot import Mount as Mounted
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.swap import Swap
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import modules_load_fstab, swap_files, sysctl_d
from ..parsers.modules_load_fstab import Mount, Named
from ..parsers.sysctl_d import Setting
from . import control_plane, installer, system_pods
from . import limits as model_limits
from .limits import Limits
from .persistent_sysctl import FILE as SYSCTL_FILE
from .persistent_sysctl import VENDOR, accepted_number, place

FILE = "/etc/modules-load.d/zz-kubemend.conf"
IP_FORWARD, *BRIDGE = sysctl.RUNNING
FORWARDING = "net.ipv4.conf.all.forwarding"  # the same setting by its other name
IPV6 = "net.ipv6.conf.all.forwarding"
NETFILTER = kernel_modules.MODULES[0]
WITHOUT_NETFILTER = "flannel-without-br-netfilter"  # a row of known messages
SETS_AGAIN = "unless something sets it again (docker, the network plugin, kube-proxy in mode ipvs)"
LOADS_AGAIN = "unless something loads it again (docker, kube-proxy, a rule of iptables)"
# How options begin with which a boot goes on without a file system, or which name the unit that
# needs it.
OPTIONAL = ("nofail", "_netdev", "x-systemd.wanted-by=", "x-systemd.required-by=")
AUTOMATIC = ("x-systemd.automount", "comment=systemd.automount")

Place = tuple[str, int, str]


@dataclass(frozen=True)
class Problem:
    """A setting or module that is not there, or will not be.

    now: whether it is missing already
    wanted: the value that a setting should have
    places: the lines that say so
    loads: whether the machine has the module to load
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
    """A file system that is not as the node needs it.

    folders: the node's folders that are there
    """

    point: str
    why: str
    folders: tuple[str, ...]
    line: Mount | None = None
    mounted: str = ""


@dataclass(frozen=True)
class NodeBoot:
    """The evidence of one node about its boot.

    answer: the answer of the collector boot
    limits: the answer with the files of sysctl.d, None where there is none
    foreign: an installer that sees to all this itself
    ends: what pods of the network plugin say that end without br_netfilter, each with its log
    """

    answer: Boot
    limits: Limits | None
    fstab: FileRecord | None
    addresses: Sequence[str]
    foreign: str | None
    answers: bool
    ends: tuple[Place, ...] = ()

    @property
    def container(self) -> bool:
        """Is the node a container? Its modules and file systems are those of its machine."""
        return self.answer.container is True

    @property
    def ipv4(self) -> bool | None:
        """Has the machine an address of IPv4? None where its addresses are not known."""
        if self.addresses:
            return any("." in address and ":" not in address for address in self.addresses)
        return None

    def number(self, key: str) -> int | None:
        """Return a kernel setting that runs as a number, or None."""
        return sysctl_d.number((self.answer.running or {}).get(key))

    def module(self, name: str) -> str | None:
        """Return loaded, builtin or absent; None where that is not known."""
        state = (self.answer.modules or {}).get(name)
        if state in (kernel_modules.LOADED, kernel_modules.BUILTIN, kernel_modules.ABSENT):
            return state
        return None

    @property
    def docker(self) -> bool:
        """Does dockerd run, which sets and loads what it needs at its start?"""
        if self.limits is None:
            return False
        return any(
            unit.name == "docker.service" and unit.active_state == "active"
            for unit in self.limits.answer.units or ()
        )

    @property
    def is_set_again(self) -> bool:
        """Does dockerd or an installer set and load what it needs at each start?"""
        return self.docker or bool(self.foreign)

    def booted(self, keys: tuple[str, ...]) -> Mapping[str, Setting]:
        """Return what a boot sets of these keys, as far as that is known."""
        if self.limits is None:
            return {}
        return self.limits.booted(keys)

    def by_hand(self, keys: Sequence[str]) -> Mapping[str, Setting]:
        """Return what `sysctl --system` sets of these keys, as far as that is known."""
        if self.limits is None:
            return {}
        return sysctl_d.by_hand(self.limits.records, keys)

    def named(self) -> list[Named]:
        """Return what modules-load.d and the kernel's command line name for the next boot."""
        listed = [
            value.split(",")
            for key, value in self.answer.cmdline or ()
            if key in ("modules_load", "rd.modules_load")
        ]
        names = [name.replace("-", "_") for name in itertools.chain(*listed)]
        rows = modules_load_fstab.modules(self.answer.modules_files or ())
        return rows + [Named(name, "/proc/cmdline", 1) for name in names]

    def unread(self) -> list[str]:
        """Return the files that decide what a boot sets and that could not be read."""
        unread = modules_load_fstab.unread(self.answer.modules_files or ())
        if self.limits:
            unread = unread + self.limits.unread_sysctl()
        return unread

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
        contract.answer(document, Boot),
        limits,
        contract.answer(document, Swap).fstab,
        contract.answer(document, System).addresses or (),
        installer.owner_of(document),
        healthz is not None and healthz.status == 200,
        _ends(document),
    )


def _ends(document: Mapping[str, Any]) -> tuple[Place, ...]:
    """Return the last lines of pods that end without br_netfilter, with the paths of their logs."""
    return tuple(
        (pod.path, 0, pod.line)
        for pod in system_pods.extract(document)
        if pod.current and pod.known is not None and pod.known.id == WITHOUT_NETFILTER
    )


def problems(node: NodeBoot) -> Iterator[Problem]:
    """KM520: yield what is missing, and what the next boot takes away.

    While a file is not known, the next boot is left out.
    """
    boot_is_known = node.limits is not None and not node.unread()
    boots = node.booted((*sysctl.RUNNING, FORWARDING, IPV6))
    if not _asks_for_ipv6_alone(boots):
        yield from _forwarding(node, boots, boot_is_known and not _contradict(boots))
    bridge = [boots[key] for key in BRIDGE if key in boots]
    requests = [setting for setting in bridge if _asks(setting)]
    for setting in requests:
        if node.number(setting.key) == 0:
            yield Problem(
                setting.key,
                f"{place(setting)} says {setting.value}, and the kernel has 0: it was never loaded,"
                " or something lowered it since",
                True,
                1,
                (_line(setting),),
            )
    yield from _overridden(node, bridge)
    if not node.container:
        yield from _modules(node, requests, boot_is_known)


def _asks_for_ipv6_alone(boots: Mapping[str, Setting]) -> bool:
    """Tell whether pods may have IPv6 only: the machine's own IPv4 then proves nothing."""
    if IP_FORWARD in boots or FORWARDING in boots:
        return False
    return IPV6 in boots and accepted_number(IPV6, boots[IPV6].value) != 0


def _contradict(boots: Mapping[str, Setting]) -> bool:
    """Tell whether the two names of the setting differ; the one that is written last counts."""
    settings = [boots[key] for key in (IP_FORWARD, FORWARDING) if key in boots]
    return len({accepted_number(setting.key, setting.value) for setting in settings}) > 1


def is_repairable(problem: Problem) -> bool:
    """Return whether the plan has a step for it. A kernel without its modules has none to load."""
    return problem.wanted is not None or problem.loads


def cure(problem: Problem) -> str:
    """Return what to do about it, in a sentence."""
    if problem.wanted is None:
        by_hand = (
            f"modprobe {problem.name}, and " if problem.now else ""
        ) + f"a line {problem.name} in a file of /etc/modules-load.d"
        if problem.loads:
            does = f"the plan does, in {FILE}"
        else:
            does = (
                "install the modules of the kernel that runs, or reboot into the one that was"
                " installed, first"
            )
        return f"{by_hand}: {does}"
    if problem.now:
        by_hand = f" (by hand, until the next boot: sysctl -w {problem.name}={problem.wanted})"
    else:
        by_hand = ""
    return (
        f"write {problem.name} = {problem.wanted} where no other file overrides it: the plan does,"
        f" in {SYSCTL_FILE}, and sets it in the running kernel{by_hand}"
    )


def _forwarding(
    node: NodeBoot, boots: Mapping[str, Setting], boot_is_known: bool
) -> Iterator[Problem]:
    """Pods' packets are forwarded, or the node drops them all."""
    running = node.number(IP_FORWARD)
    if not node.ipv4 or running is None:
        return
    setting = boots.get(IP_FORWARD) or boots.get(FORWARDING)
    if running == 0:
        yield _not_forwarding(setting, boot_is_known)
    elif not boot_is_known:
        return
    elif setting is None:
        # A container has it from what makes it; k3s and the like, and dockerd, set it at each
        # start.
        if not node.container and not node.is_set_again:
            yield _forwarding_until_boot(node, running)
    elif accepted_number(IP_FORWARD, setting.value) == 0:
        yield Problem(
            IP_FORWARD,
            f"the kernel has {running}, and {place(setting)} brings it back to 0 at the next boot,"
            f" {SETS_AGAIN}",
            False,
            1,
            (_line(setting),),
        )


def _not_forwarding(setting: Setting | None, boot_is_known: bool) -> Problem:
    """Describe a kernel that drops pods' packets now, whatever a file asks for."""
    if setting is not None:
        reason = f"{place(setting)} says {setting.value}"
        if accepted_number(IP_FORWARD, setting.value):
            reason += ": it was never loaded, or something lowered it since"
        else:
            reason += ", and so it is after each boot"
    elif boot_is_known:
        reason = "no file of sysctl.d sets it"
    else:
        reason = "what a boot makes of it is not known"
    places = (_line(setting),) if setting else ()
    return Problem(IP_FORWARD, f"the kernel has 0; {reason}", True, 1, places, severe=True)


def _forwarding_until_boot(node: NodeBoot, running: int) -> Problem:
    """Describe a kernel that forwards while no file makes the next boot do so."""
    hands = node.by_hand((*sysctl.RUNNING, FORWARDING))
    hand = hands.get(IP_FORWARD) or hands.get(FORWARDING)
    reason = (
        f"the kernel has {running}, and no file of sysctl.d says so: the next boot brings 0,"
        f" {SETS_AGAIN}"
    )
    if hand is None:
        return Problem(IP_FORWARD, reason, False, 1)
    reason += f"; {place(hand)} says {hand.value}, which nothing reads at boot"
    return Problem(IP_FORWARD, reason, False, 1, (_line(hand),))


def _asks(setting: Setting) -> bool:
    """Tell whether the operator set it, not a distribution."""
    return accepted_number(setting.key, setting.value) not in (
        None,
        0,
    ) and not setting.path.startswith(VENDOR)


def _overridden(node: NodeBoot, settings: Sequence[Setting]) -> Iterator[Problem]:
    """Tell whether one file asks for filtering on a bridge and a later one switches it off.

    Only switching it off may be on purpose.
    """
    for setting in settings:
        requests = [
            override
            for override in setting.overrides
            if accepted_number(setting.key, override[2]) not in (None, 0)
            and not override[0].startswith(VENDOR)
        ]
        if (
            accepted_number(setting.key, setting.value) == 0
            and requests
            and node.number(setting.key) is not None
        ):
            path, line, value = requests[-1]
            yield Problem(
                setting.key,
                f"{path}:{line} says {value}, and {place(setting)}, which wins, says 0; the kernel"
                f" has {node.number(setting.key)} now",
                node.number(setting.key) == 0,
                1,
                ((path, line, f"{setting.key} = {value}"), _line(setting)),
            )


def _modules(node: NodeBoot, requests: Sequence[Setting], boot_is_known: bool) -> Iterator[Problem]:
    """Modules that a file of this node names and the kernel does not have.

    Br_netfilter that is there and that nothing names.
    """
    named, settings_of = node.named(), {NETFILTER: requests}
    is_undone = boot_is_known and not node.is_set_again
    for name in kernel_modules.MODULES:
        names = [entry for entry in named if entry.name == name]
        settings = settings_of.get(name, ())
        state = node.module(name)
        wishes = (*names, *settings, *_ends_for_want_of(node, name))
        if state == kernel_modules.ABSENT and wishes:
            yield _not_loaded(node, name, names, settings)
        if state == kernel_modules.LOADED and _is_unnamed(settings, names) and is_undone:
            yield _loaded_until_boot(name, settings)


def _is_unnamed(settings: Sequence[Setting], names: Sequence[Named]) -> bool:
    """Tell whether settings need a module that no file names."""
    return bool(settings) and not names


def _ends_for_want_of(node: NodeBoot, name: str) -> tuple[Place, ...]:
    """Return what pods of the network plugin say that end without this module."""
    return node.ends if name == NETFILTER else ()


def _not_loaded(
    node: NodeBoot, name: str, names: Sequence[Named], settings: Sequence[Setting]
) -> Problem:
    """Describe an absent module that files of this node name, or that settings need."""
    if names:
        wishes = " and ".join(entry.place for entry in names) + " names it"
    elif _ends_for_want_of(node, name):
        wishes = "flannel ends without it"
    else:
        lines = ", ".join(f"{setting.path}:{setting.line}" for setting in settings)
        wishes = f"{lines} sets what only it brings"
    lacks = ""
    loads = node.answer.tree is True
    if not loads:
        lacks = (
            "; the modules of the kernel that runs are not installed: it was updated, or"
            " they lie in a package"
        )
    places = [(entry.path, entry.line, entry.name) for entry in names]
    places += [_line(setting) for setting in settings]
    ends = _ends_for_want_of(node, name)
    places += ends
    reason = f"it is not loaded, and {wishes}{lacks}"
    return Problem(name, reason, True, None, tuple(places), bool(ends), loads)


def _loaded_until_boot(name: str, settings: Sequence[Setting]) -> Problem:
    """Describe a module that a setting needs and that nothing makes the next boot load."""
    first = settings[0]
    return Problem(
        name,
        "it is loaded, and no file of modules-load.d names it: the next boot comes without"
        f" it, {LOADS_AGAIN}, and {first.path}:{first.line} then sets nothing",
        False,
        None,
        tuple(_line(setting) for setting in settings),
        loads=True,
    )


def _line(setting: Setting) -> Place:
    return setting.path, setting.line, f"{setting.key} = {setting.value}"


def lost(node: NodeBoot) -> Iterator[Lost]:
    """Return KM521: missing file systems of fstab, and read-only ones of the node."""
    mounts = mounted(node)
    if mounts is None:
        return
    folders = node.answer.folders or {}
    if not node.container:
        yield from _not_mounted(modules_load_fstab.mounts(node.fstab), folders, mounts)
    yield from _read_only(folders, mounts)


def _not_mounted(
    lines: Iterable[Mount], folders: Mapping[str, str | None], mounts: Mapping[str, Mounted]
) -> Iterator[Lost]:
    """Yield the lines of fstab that a boot mounts above the node's directories, and are not."""
    places = modules_load_fstab.above([*folders, *filter(None, folders.values())]) - {"/"}
    for line in lines:
        point = folders.get(line.point) or line.point
        is_there = point in mounts or line.point in mounts
        if point in places and not is_there and _is_mounted_at_boot(line):
            yield Lost(
                line.point,
                "is not mounted, although fstab mounts it at boot",
                _below(folders, point),
                line,
            )


def stopping(node: NodeBoot) -> Iterator[Mount]:
    """Return KM521: lines of fstab whose device is not there, without which no boot ends."""
    devices = node.answer.devices or {}
    return (line for line in _needed(node) if devices.get(line.what) is False)


def _needed(node: NodeBoot) -> Iterator[Mount]:
    """Yield the lines of fstab that a boot waits for; that of / is the kernel's own matter."""
    if node.container or _fstab_is_off(node):
        return
    for line in modules_load_fstab.mounts(node.fstab):
        if line.point != "/" and _is_mounted_at_boot(line) and not _is_optional(line):
            yield line


def _fstab_is_off(node: NodeBoot) -> bool:
    """Tell whether the kernel's command line has systemd leave fstab alone."""
    values = [value.lower() for key, value in node.answer.cmdline or () if key == "fstab"]
    return values[-1:] != [] and values[-1] in ("0", "no", "off", "false", "n", "f")


def _is_optional(line: Mount) -> bool:
    """Tell whether a boot goes on without it."""
    return any(option.startswith(OPTIONAL) for option in line.options)


def _is_mounted_at_boot(line: Mount) -> bool:
    """Tell whether a boot mounts it without waiting for its first use."""
    return not line.noauto and not any(option in AUTOMATIC for option in line.options)


def _read_only(folders: Mapping[str, str | None], mounts: Mapping[str, Mounted]) -> Iterator[Lost]:
    """Yield the read-only file systems that hold a directory of the node."""
    holders: dict[str, list[str]] = {}
    for path, real in folders.items():
        if real:
            holders.setdefault(_mount_point(real, mounts), []).append(path)
    for point, paths in sorted(holders.items()):
        mount = mounts.get(point)
        refusal = _refusal(mount) if mount else ""
        if mount and refusal:
            text = one_line(f"{mount.source} {point} {mount.type} {mount.options}", 300)
            if mount.error_count:
                text += f" (errors_count {mount.error_count}, errors={mount.on_error})"
            yield Lost(point, refusal, tuple(sorted(paths)), None, text)


def _refusal(mount: Mounted) -> str:
    """Return why a file system takes no writes, or ""."""
    if "ro" in mount.options.split(","):
        return "is read-only"
    has_failed = bool(mount.error_count and mount.error_since_boot)
    if has_failed and mount.on_error == "remount-ro":
        return "refuses writes after an error of its disk, although it is mounted rw"
    return ""


def _mount_point(path: str, mounts: Mapping[str, Mounted]) -> str:
    """Return the mount point that a path is below; empty where none is known."""
    points = sorted(modules_load_fstab.above([path]), key=len, reverse=True)
    return next((point for point in points if point in mounts), "")


def fstab_known(node: NodeBoot) -> bool:
    """Was all of fstab read? A machine without the file is known to have no line."""
    return swap_files.fstab(node.fstab)[2] is None


def mounted(node: NodeBoot) -> dict[str, Mounted] | None:
    """Return what is mounted, by its mount point; None where that is not known."""
    if node.answer.mounts is None:
        return None
    return {mount.point: mount for mount in node.answer.mounts}


def _below(folders: Mapping[str, str | None], point: str) -> tuple[str, ...]:
    """Return the directories that are to be below a mount point.

    A directory that does not exist is returned only if it is the mount point itself.
    """
    return tuple(
        sorted(
            path
            for path, real in folders.items()
            if path == point or (real and point in modules_load_fstab.above([real]))
        )
    )
