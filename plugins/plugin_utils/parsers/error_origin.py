# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose an error about a pod is, by what it is made of: path, errno and program. Pure.

A Go error wraps others ("outer: middle: inner"), and the innermost part has the cause. What stands
around it is of the program that quotes it. Where the parts do not show an owner beyond doubt, the
error is the workload's: a false alarm about a node costs more than silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...module_utils.shared.text import BETWEEN
from ..evidence.document import ends
from .known_message import plain

NODE, RUNTIME, NETWORK, STORAGE, REGISTRY, WORKLOAD = (
    "node",
    "runtime",
    "network",
    "storage",
    "registry",
    "workload",
)
NOT_PERMITTED, DENIED = "operation not permitted", "permission denied"
READ_ONLY, ABSENT = "read-only file system", "no such file or directory"
INPUT_OUTPUT, UNCLEAN = "input/output error", "structure needs cleaning"
INVALID, NO_FUNCTION = "invalid argument", "function not implemented"
STALE, UNCONNECTED = "stale file handle", "transport endpoint is not connected"
NO_FORMAT, NO_DEVICE = "exec format error", "no such device"
# What a kernel answers for reasons of the machine, whatever a workload names.
BROKEN = frozenset((INPUT_OUTPUT, UNCLEAN))
GONE = BROKEN | {STALE, UNCONNECTED}
REFUSED = frozenset((NOT_PERMITTED, DENIED))
HARD = BROKEN | REFUSED | {READ_ONLY, NO_FUNCTION, "operation not supported"}
# Of what is used up, which one workload brings about too (errno_message).
_SCARCE = frozenset(
    (
        "no space left on device",
        "disk quota exceeded",
        "too many open files",
        "too many open files in system",
        "cannot allocate memory",
    )
)
_ERRNOS = sorted(
    HARD
    | GONE
    | _SCARCE
    | {
        ABSENT,
        INVALID,
        NO_FORMAT,
        NO_DEVICE,
        "stale nfs file handle",
        "device or resource busy",
        "resource temporarily unavailable",
        "connection refused",
        "not a directory",
        "is a directory",
        "file exists",
        "no such process",
        "no such device or address",
    },
    key=len,
    reverse=True,
)
LONGEST, SHOWN = 2048, 200  # characters of a text that are read, and of a reason that is shown
_ERRNO = re.compile("|".join(map(re.escape, _ERRNOS)), re.IGNORECASE)
_CLAUSE = re.compile(r"(?:: |\bcaused:? \"?)(?=\S)")
_CODE = re.compile(r"rpc error: code = (\w{1,30}) desc = ")
# What runtimes and gRPC add behind the cause.
_TAIL = re.compile(r"(?:: unknown|\\n|[\s\"'.)\]>])+$")
_PATH = re.compile(r"(?<![\w./:-])(?P<path>/(?:[^\s\x00-\x1f\"'`\\,;:()\[\]<>]|,(?=\w)){1,300})")
_OPERATION = re.compile(
    r"\b(openat2?|open|mkdir(?:at)?|mknod|stat|lstat|read|write|chmod|l?chown|unlink(?:at)?|rename"
    r"|link|symlink|mount|umount|unmount|bind|connect|fork/exec|exec|readlink|l?setxattr|create"
    r"|remove|truncate|fsync|chdir)\b",
    re.IGNORECASE,
)
_MOUNTED = re.compile(r'\bmounting "(?P<source>[^"]{1,300})" to rootfs')

# -- places of a machine --------------------------------------------------------------------------

_CGROUP, _KERNEL, _SYSCTL, _DEVICE, _VOLUME, _PLUGIN, _KUBELET, _ROOT, _STORE, _STATE = (
    "cgroup",
    "kernel",
    "sysctl",
    "device",
    "volume",
    "plugin",
    "kubelet",
    "root of a container",
    "store",
    "state",
)
_CNI, _MODULES, _LOGS, _OTHER = "cni", "modules", "logs", "other"
# In order: the first that a path has.
_PLACES = tuple(
    (re.compile(pattern), place)
    for pattern, place in (
        (r"/rootfs(?:/|$)|/overlay2?/[^/]+/merged(?:/|$)", _ROOT),
        (r"/kubelet/pods/", _VOLUME),
        (r"/kubelet/plugins(?:_registry)?/|/globalmount\b", _PLUGIN),
        (r"^/var/lib/kubelet(?:/|$)|/k0s/kubelet/", _KUBELET),
        (r"^/sys/fs/cgroup(?:/|$)", _CGROUP),
        (r"^/proc/sys/|^/proc/(?:self|thread-self|\d+)/attr/", _SYSCTL),
        (r"^/(?:proc|sys)/", _KERNEL),
        (r"^/dev/", _DEVICE),
        (r"^/(?:usr/)?lib/modules(?:/|$)", _MODULES),
        (r"^/etc/cni/|^/opt/cni/|/cni/bin/|^/var/lib/(?:cni|calico)/", _CNI),
        (r"^(?:/var)?/run/(?:flannel|calico|cilium|multus|cni|netns|openvswitch|xtables)", _CNI),
        (
            r"/io\.containerd\.(?!runtime)[\w.-]+/|/containerd/tmpmounts/|/overlay2/"
            r"|/containers/storage/",
            _STORE,
        ),
        (r"^/var/lib/(?:containerd|docker|containers|crio)(?:/|$)|/agent/containerd/", _STORE),
        (r"^(?:/var)?/run/(?:containerd|docker|crio|containers|k3s|k0s|runc|crun|shm)\b", _STATE),
        (r"^/var/log/(?:pods|containers)(?:/|$)", _LOGS),
    )
)
# place: (owner, errnos by which it is the owner's)
_OWNERS = {
    _ROOT: (NODE, BROKEN | {NO_FUNCTION}),
    _VOLUME: (STORAGE, GONE),
    _PLUGIN: (STORAGE, GONE | {READ_ONLY}),
    _KUBELET: (NODE, HARD),
    _CGROUP: (NODE, HARD | {ABSENT, INVALID, NO_DEVICE}),
    _SYSCTL: (WORKLOAD, frozenset()),
    _KERNEL: (NODE, HARD | {INVALID}),
    _DEVICE: (STORAGE, BROKEN),
    _MODULES: (NODE, HARD | {ABSENT, INVALID, NO_FORMAT}),
    _CNI: (NETWORK, HARD | {ABSENT, NO_FORMAT}),
    _STORE: (NODE, HARD),
    _STATE: (NODE, HARD),
    _LOGS: (NODE, HARD),
    _OTHER: (NODE, BROKEN),
}
# What a runtime itself puts into the root of each container.
_OWN_MOUNT = re.compile(r"/sandboxes/|/(?:userdata|containers)/[0-9a-f]{12,64}/")
_EXTRACTS = re.compile(r"extract layer|apply(?:ing)? layer|unpack(?:ing)? image|register layer")

# -- whose it is by its words ---------------------------------------------------------------------

# What a workload names, has in its image, or does itself.
_OF_WORKLOAD = re.compile(
    r"probe failed: (?!(?:OCI runtime|rpc error))|exec: \"[^\"]*\": |(?<!fork/)\bexec /\S{1,300}: "
    r"|executable file (?:`[^`]*` )?not found|container process caused \"?(?:exec|chdir)"
    r"|hostPath type check failed|\" not found|[Cc]ouldn't find key|references non-existent|sysctl"
    r"|[Rr]unAsNonRoot|[Ss]ub[Pp]ath|OOM-?killed|memory limit|no such process"
    r"|exec in a (?:stopped|paused)|container (?:not|is not) (?:running|found|created)"
    r"|context canceled|no matching entries in passwd|unable to find (?:user|group)|applyFSGroup"
    r"|lchown /var/lib/kubelet/pods/|chdir to cwd|no command specified|unsatisfied condition"
    r"|mount a directory onto a file|(?:secret|configmap)s? \S{1,260} not found|unknown device"
    r"|gathering device information|\bCDI\b"
)
_OF_IMAGE = re.compile(r"\b(?:pull|[Ii]mage\b)")
_OF_REGISTRY = re.compile(
    r"failed to resolve (?:reference|image)|failed to do request|unexpected status|manifest"
    r" unknown|pull access denied|toomanyrequests|\bGet \"?https?://|x509: |no such host"
    r"|InvalidImageName"
)
_DEVICE_NAME = r"(?P<path>/dev/[^\s,:\"';)]{1,200})"
_HARMLESS = frozenset(
    ("defaults", "rw", "ro", "bind", "rbind", "remount", "nouuid", "_netdev", "discard")
)
_OPTIONS = re.compile(r"(?:^| )-o (?P<options>[\w=,./:-]{1,300})")


@dataclass(frozen=True)
class _Rule:
    owner: str
    pattern: re.Pattern[str]
    program: str = ""


def _rule(owner: str, pattern: str, program: str = "") -> _Rule:
    return _Rule(owner, re.compile(pattern, re.IGNORECASE), program)


_HARD_WORDS = "|".join(map(re.escape, sorted(HARD | {INVALID, NO_DEVICE}, key=len, reverse=True)))
# In order: the first whose text is found counts. The group `reason` is what the program says.
_PROGRAMS = (
    _rule(
        STORAGE,
        rf"'(?P<program>e?2?fsck(?:\.\w+)?|xfs_repair)' found errors on device {_DEVICE_NAME} but"
        r" could not correct them: (?P<reason>.{1,1200})",
    ),
    _rule(
        STORAGE,
        r"\b(?P<program>e2fsck|fsck(?:\.\w{1,10})?|xfs_repair)\b(?P<reason>.{0,800}?\bexit status"
        r" (?:[2-9]|1\d)\d?)\b",
    ),
    _rule(
        STORAGE,
        rf"\b(?P<program>mount): .{{0,300}}?(?P<reason>wrong fs type, bad option, bad superblock on"
        rf" {_DEVICE_NAME})",
    ),
    _rule(
        STORAGE,
        rf"\b(?P<program>mount): .{{0,300}}?(?P<reason>can'?t read superblock on {_DEVICE_NAME})",
    ),
    _rule(
        STORAGE,
        rf"\b(?P<program>mount): .{{0,300}}?(?P<reason>special device {_DEVICE_NAME} does not"
        r" exist)",
    ),
    _rule(
        STORAGE,
        r"\b(?P<program>mkfs(?:\.\w{1,10})?|mke2fs|resize2fs|xfs_growfs|cryptsetup|blkid|lvcreate"
        r"|vgchange)\b.{0,1200}?(?P<reason>[^:(]{0,80}: input/output error)",
    ),
    _rule(
        NODE,
        r"\b(?P<program>mount): .{0,300}?(?P<reason>unknown filesystem type '(?:ext[234]|xfs|btrfs"
        r"|nfs4?|cifs|ceph|f2fs|vfat)')",
    ),
    _rule(
        NODE,
        r"\b(?P<program>iscsiadm): (?P<reason>can ?not connect to iSCSI daemon.{0,20}|could not"
        r" load transport \w{1,30}|could not scan /sys/class/iscsi_transport|iSCSI driver \w{1,30}"
        r" is not loaded|read error .{0,20}daemon died\?|initiator reported error \((?:12|18)"
        r" - [^)]{1,100}\))",
    ),
    _rule(
        NODE,
        r"\b(?P<program>modprobe): (?P<reason>(?:FATAL|ERROR): (?:Module|could not insert)"
        r" '?[\w-]{1,64}'?[^\n]{0,120})",
    ),
    _rule(
        NODE,
        r"\b(?P<program>nvidia-container-cli)(?:\.real)?: (?P<reason>(?!.{0,200}(?:requirement"
        r" error|unknown device|file exists|unrecognized option))(?:initialization error|driver"
        r" error|ldcache error|detection error|nvml error|load library failed|mount error|container"
        r" error): .{1,400})",
    ),
    _rule(
        RUNTIME,
        r"\b(?P<program>runc|crun|runsc|youki|kata-runtime|conmon|containerd-shim[\w-]{0,30}) did"
        r" not terminate suc+essfully: (?P<reason>(?:exit status|signal)\W{1,3}\w[^\n]{0,400})",
    ),
    _rule(
        NODE,
        r"\b(?P<program>runc|crun|conmon|containerd-shim[\w-]{0,30})\b\S{0,40}: (?P<reason>error"
        r" while loading shared libraries: [^\n]{1,200}|symbol lookup error: [^\n]{1,200}"
        r"|[^\n]{0,60}version `GLIBC[^\n]{1,100})",
    ),
    _rule(
        RUNTIME,
        r"unable to retrieve OCI runtime error \(open /\S{1,300}/log\.json: no such file or"
        r" directory\): (?P<reason>[^\n]{1,400})",
        "the OCI runtime",
    ),
    _rule(
        NETWORK,
        r"\brunning \[(?P<program>\S{0,100}?\b(?:ip6?tables|ebtables|nft|ipset|arptables)"
        r"[\w-]{0,20})\b[^\]]{0,600}\]: (?P<reason>exit status [1-9]\d{0,2}\b[^\n]{0,400})",
    ),
    _rule(
        STORAGE,
        r"(?P<reason>dial unix (?P<path>/(?:var/lib/kubelet/plugins/|csi/)[^\s:]{1,200}):"
        r" (?:connect: )?(?:connection refused|no such file or directory))",
        "the storage driver",
    ),
    _rule(
        NODE,
        rf"(?P<reason>bpf_prog_\w{{1,20}}\(\w{{1,40}}\) failed: (?:{_HARD_WORDS}))",
        "the OCI runtime",
    ),
    _rule(
        NODE,
        rf"(?P<reason>mounting \"(?:proc|sysfs|tmpfs|mqueue|cgroup2?|devpts|shm)\" to rootfs"
        rf" .{{1,600}}?(?:{_HARD_WORDS}))",
        "the OCI runtime",
    ),
    _rule(
        NODE,
        rf"(?P<reason>failed to mount rootfs component[^\n]{{0,600}}?: (?:{_HARD_WORDS}))",
        "the runtime",
    ),
    _rule(
        NODE,
        r"(?P<reason>(?:\b(?:clone|unshare|pivot_root|fork/exec /proc/self/exe|openat2|pidfd_open)"
        rf"\b)[^:\n]{{0,200}}: (?:{_HARD_WORDS}|resource temporarily unavailable))",
        "the OCI runtime",
    ),
    _rule(
        NODE,
        r"(?:OCI runtime|runc|crun|shim) .{0,800}?"
        r"(?P<reason>[^:]{0,120}: function not implemented)",
        "the OCI runtime",
    ),
    _rule(
        STORAGE,
        r"AttachVolume\.Attach failed .{0,400}?rpc error: code = (?:DeadlineExceeded|Unavailable)"
        r" desc = (?P<reason>.{1,400})",
        "the storage driver",
    ),
)
_MARK = re.compile(r"\b(?:ERROR|FATAL|UNEXPECTED INCONSISTENCY): ")
_IN_MESSAGE = re.compile(
    r"plugin type=\"(?P<network>[\w.-]{1,60})\"|\b(?P<oci>runc|crun|runsc|youki|kata)\b"
    r"|(?P<any>OCI runtime|\bshim task\b)"
)
_OF_NETWORK = re.compile(r'plugin type="[\w.-]{1,60}"|networkPlugin cni failed')
_MOUNT = re.compile(r"\b(?:MountVolume|MapVolume|AttachVolume)\.")
_ID = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24,}\b")
# Characters of a path that is shown whole, and folders at its ends of a longer one.
LONGEST_PATH, FIRST_FOLDERS, LAST_NAMES = 90, 3, 2


@dataclass(frozen=True)
class Origin:
    """What an error is made of, and whose it is.

    owner: a constant of this module; WORKLOAD also in doubt
    reason: the innermost part
    errno: words of the kernel, in lower case
    program: what failed, as the message names it
    """

    owner: str = WORKLOAD
    reason: str = ""
    errno: str = ""
    operation: str = ""
    path: str = ""
    program: str = ""

    @property
    def is_of_machine(self) -> bool:
        """Tell whether no workload brings it about, so that one pod that has it is enough."""
        return self.owner in (NODE, RUNTIME, STORAGE)

    @property
    def is_refused(self) -> bool:
        """Tell whether the kernel refuses something to a program that runs as root."""
        return self.owner == NODE and self.errno in REFUSED and bool(self.path)

    @property
    def passes(self) -> bool:
        """Tell whether it may be of a container that just ended."""
        return self.errno in (ABSENT, NO_DEVICE, INVALID, "")


def clauses(text: str) -> tuple[str, ...]:
    """Return the parts of an error from the outermost to the innermost."""
    bare = _TAIL.sub("", _CODE.sub("", plain(text)))
    return tuple(part.strip(" \"'") for part in _CLAUSE.split(bare) if part.strip(" \"'"))


def code(text: str) -> str:
    """Return the innermost code of gRPC in a text, or ""."""
    return next(iter(reversed(_CODE.findall(text[:LONGEST]))), "")


def read(text: str) -> Origin:
    """Return what an error is made of. Never raises."""
    message = plain(text)
    errno, operation, path = _errno(message)
    row = Origin(WORKLOAD, inner(message), errno, operation, path)
    if errno not in BROKEN and _OF_WORKLOAD.search(message):
        return row
    if _OF_IMAGE.search(message) and _OF_REGISTRY.search(message):
        return _with_owner(row, REGISTRY, "")
    by_program = _of_program(message)
    if by_program is not None:
        return by_program
    owner = _of_path(message, row)
    if owner == WORKLOAD and _OF_NETWORK.search(message):
        owner = NETWORK
    return _with_owner(row, owner, _program(message))


def inner(text: str, limit: int = SHOWN) -> str:
    """Return the innermost part of an error that fits, with long paths and ids shortened."""
    parts = [_short(part) for part in clauses(text)]
    shown = ""
    for part in reversed(parts):
        longer = f"{part}: {shown}" if shown else part
        if shown and len(longer) > limit:
            break
        shown = longer
    return ends(shown, limit)


def shortened(text: str, limit: int) -> str:
    """Return an error as one line; of a longer one the beginning, and the innermost part whole."""
    line = ends(text, len(text) + 1)
    parts = clauses(line)
    half = (limit - len(BETWEEN)) // 2
    last = parts[-1] if parts else ""
    if len(parts) > 1 and _ERRNO.fullmatch(last):
        last = f"{parts[-2]}: {last}"
    if len(line) <= limit or len(parts) < 2 or len(last) < half:
        return ends(line, limit)
    end = inner(line, limit * 2 // 3)
    begin = line[: limit - len(end) - len(BETWEEN)]
    return f"{begin}{BETWEEN}{end}"


def short_path(path: str) -> str:
    """Return a path with the folders in its middle left out."""
    if len(path) <= LONGEST_PATH:
        return path
    names = path.split("/")
    begin, end = "/".join(names[: FIRST_FOLDERS + 1]), "/".join(names[-LAST_NAMES:])
    if len(end) > LONGEST_PATH // 2:
        end = names[-1]
    end = ends(_ID.sub(r"\1…", end), LONGEST_PATH // 2)
    return f"{begin}/…/{end}"


def _short(text: str) -> str:
    return _ID.sub(r"\1…", _PATH.sub(lambda match: short_path(match.group("path")), text))


def _errno(message: str) -> tuple[str, str, str]:
    """Return the last errno of a message, with the operation and the path that it is about."""
    match = next(iter(reversed(list(_ERRNO.finditer(message)))), None)
    if match is None:
        return "", "", ""
    errno = match.group().lower().replace("nfs file", "file")
    parts = message[: match.start()].rstrip(": \"'`").split(": ")
    for part in (part[-400:] for part in parts[:-3:-1]):
        paths = list(_PATH.finditer(part))
        if paths:
            before = part[: paths[-1].start()][-40:]
            words = _OPERATION.findall(before)
            return errno, (words[-1] if words else ""), paths[-1].group("path").rstrip(":")
    return errno, "", ""


def _with_owner(row: Origin, owner: str, program: str) -> Origin:
    return Origin(owner, row.reason, row.errno, row.operation, row.path, program)


def _of_program(message: str) -> Origin | None:
    """Return an error of a program that the message names, or None."""
    for rule in _PROGRAMS:
        match = rule.pattern.search(message)
        if match is None or _names_options(message, match):
            continue
        groups = match.groupdict()
        errnos = _ERRNO.findall(match.group())
        program = (groups.get("program") or rule.program).rpartition("/")[2]
        reason = ends(_short(_said(groups["reason"])), SHOWN)
        errno = errnos[-1].lower() if errnos else ""
        return Origin(rule.owner, reason, errno, "", groups.get("path") or "", program)
    return None


def _said(output: str) -> str:
    """Return what a program says, from where it calls something an error."""
    bare = _TAIL.sub("", output).strip(" :\"'")
    marks = list(_MARK.finditer(bare))
    return bare[marks[-1].start() :] if marks else bare


def _names_options(message: str, match: re.Match[str]) -> bool:
    """Tell whether a mount fails that has options of a workload's volume."""
    if "bad option" not in match.group().lower():
        return False
    words = ",".join(_OPTIONS.findall(message)).split(",")
    names = {word for word in words if word and "=" not in word}
    return not names <= _HARMLESS


def _of_path(message: str, row: Origin) -> str:
    """Return whose an error of the kernel about a path is."""
    if not row.path:
        return WORKLOAD
    place = next((place for pattern, place in _PLACES if pattern.search(row.path)), _OTHER)
    owner, errnos = _OWNERS[place]
    if row.errno in errnos:
        return owner
    if place == _ROOT and row.errno in REFUSED:
        return _of_root(message)
    if place == _STORE and row.errno == ABSENT:
        return _of_lost_file(message, row.path)
    return WORKLOAD


def _of_root(message: str) -> str:
    """Return whose a refusal in the root of a container is: what the runtime mounts is its own."""
    mounted = _MOUNTED.search(message)
    is_own = mounted is not None and _OWN_MOUNT.search(mounted.group("source"))
    return NODE if is_own else WORKLOAD


def _of_lost_file(message: str, path: str) -> str:
    """Return whose a missing file of a store is: while a layer is unpacked it is the image's."""
    is_unpacked = "/tmpmounts/" in path or _EXTRACTS.search(message) is not None
    return WORKLOAD if is_unpacked else RUNTIME


def _program(message: str) -> str:
    """Return which program a message is about, by the words of who quotes it."""
    match = next(iter(reversed(list(_IN_MESSAGE.finditer(message)))), None)
    if match is not None:
        return match.group("network") or match.group("oci") or "the OCI runtime"
    return "the kubelet" if _MOUNT.search(message) else ""
