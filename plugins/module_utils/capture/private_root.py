# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts one program on the files of this node, in namespaces of its own.

The program has mounts, processes, a network, a host name and IPC of its own. Its root is an overlay
whose lower layer is the root file system of the node, which the kernel does not write to. What the
program writes goes to a tmpfs that only its namespace has: it ends with the program, however that
ends. Other file systems of the node are there only where they are named, and read-only. /run and
/tmp are empty, so that no socket of the node is in reach, and /dev has no disks.

A kill of this process ends the program too. What is left then is one empty folder.
"""

import contextlib
import ctypes
import os
import select
import signal
import time

FOLDER = "/run/kubemend"
MOUNT_POINT = FOLDER + "/trial"
SIZE = b"mode=0755,size=128m,nr_inodes=50k"
EMPTY = ("/run", "/tmp", "/var/tmp")
DEVICES = ("null", "zero", "full", "random", "urandom")
SYSTEM = ("/proc", "/sys", "/dev", *EMPTY)
MOST_MOUNTS = 60
LONGEST_LOG = 1 << 20
START_SECONDS, END_SECONDS = 10, 5
# linux/mount.h, linux/sched.h, linux/prctl.h, linux/capability.h
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
NEW_MOUNTS, NEW_UTS, NEW_IPC, NEW_PIDS, NEW_NETWORK = (
    0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000,
)  # fmt: skip
DETACH, PDEATHSIG, DROP_CAPABILITY, CAPABILITIES = 2, 1, 24, 64
# chown, dac_override, dac_read_search, fowner, fsetid, kill, setgid, setuid, setpcap, sys_chroot,
# sys_admin, which mounts need
KEPT_CAPABILITIES = frozenset((0, 1, 2, 3, 4, 5, 6, 7, 8, 18, 21))
FIRST_VICTIM, NICE = "1000", 10
CPU_SECONDS, FILE_BYTES = 30, 64 << 20
# Per network namespace: the program may listen at each address of the node, which it has not.
ANY_ADDRESS = ("/proc/sys/net/ipv4/ip_nonlocal_bind", "/proc/sys/net/ipv6/ip_nonlocal_bind")
LAYERS = "/proc/filesystems"


class RootError(Exception):
    """The program could not be started; the text is the reason."""


class Folder:
    """The mount point of a private root: one at a time, and removed at the end.

    Its lock ends with the process, so that a folder of a run that was killed is taken over.
    """

    def __init__(self, path):
        self.path = path
        self._lock = -1

    def __enter__(self):
        import fcntl

        try:
            os.makedirs(self.path, 0o700, exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise RootError(f"{self.path}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise RootError("another trial start is at work on this node") from error
        if os.fstat(self._lock).st_uid != os.geteuid():
            os.close(self._lock)
            raise RootError(f"{self.path} belongs to another user")
        return self

    def __exit__(self, *_error):
        for path in (self.path, os.path.dirname(self.path)):
            try:
                os.rmdir(path)
            except OSError:
                break
        os.close(self._lock)


class Plan:
    """What is started, and what it sees.

    argv, environment: of the program; required: files without which nothing can be learned; paths:
    whose file systems it sees too; hidden: folders that are empty for it.
    """

    def __init__(self, argv, environment, required=(), paths=(), hidden=()):
        self.argv = argv
        self.environment = environment
        self.required = [os.path.realpath(path) for path in (argv[0], *required)]
        self.paths = [os.path.realpath(path) for path in (*self.required, *paths)]
        self.hidden = [os.path.realpath(path) for path in (*EMPTY, *hidden)]
        self.place = MOUNT_POINT


class Program:
    """A program in a private root, and what it prints."""

    def __init__(self, plan):
        with open(LAYERS, encoding="ascii") as text:
            if "overlay" not in text.read().split():
                raise RootError("this kernel has no overlay loaded, which the trial start needs")
        unseen = [path for path in plan.required if _is_below(path, plan.hidden)]
        if unseen:
            raise RootError(f"{unseen[0]} lies in a folder that a trial start does not see")
        self._mounts = wanted_mounts(plan)
        self.text = b""
        self.has_ended = False
        self._out, out = os.pipe()
        refusal, refuse = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._out)
            os.close(refusal)
            _supervise(plan, self._mounts, out, refuse)
        os.close(out)
        os.close(refuse)
        self._require(refusal)

    def _require(self, refusal):
        """Wait until the program runs; raises RootError with what refused it."""
        reason = b""
        try:
            if not select.select([refusal], [], [], START_SECONDS)[0]:
                reason = b"its mounts were not made in time"
            else:
                reason = os.read(refusal, 300)
        finally:
            os.close(refusal)
        if reason:
            self.end()
            raise RootError(reason.decode("utf-8", "replace"))

    def read(self, seconds, until=None):
        """Read what it prints, until it ends, or prints these bytes, or the time is over.

        Return whether it printed them.
        """
        end = time.monotonic() + seconds
        while not self.has_ended and (until is None or until not in self.text):
            rest = max(0, end - time.monotonic())
            if not select.select([self._out], [], [], rest)[0]:
                break
            part = os.read(self._out, 65536)
            self.has_ended = not part
            if len(self.text) < LONGEST_LOG:
                self.text += part
        return until is not None and until in self.text

    def end(self):
        """End all of its processes, and wait for the last one."""
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGTERM)
        # the pipe has no writer once the kernel has ended every process of its namespace
        self.read(END_SECONDS)
        with contextlib.suppress(OSError):
            if not self.has_ended:
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._out)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.end()


def wanted_mounts(plan, table="/proc/self/mountinfo"):
    """Return the mount points below the root that the program sees, in their order."""
    points = []
    with open(table, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            point = _unescaped(line.split(" ")[4])
            if _is_wanted(point, plan):
                points.append(point)
    return list(dict.fromkeys(points))[:MOST_MOUNTS]


def _unescaped(point):
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, char)
    return point


def _is_wanted(point, plan):
    """Return whether a path of the plan lies on this mount, and it is to be seen."""
    if point == "/" or _is_below(point, (*SYSTEM, *plan.hidden)):
        return False
    return any(_holds(point, path) for path in plan.paths)


def _is_below(path, folders):
    return any(_holds(folder, path) for folder in folders)


def _holds(folder, path):
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _supervise(plan, mounts, out, refuse):
    """Make the namespaces, and end with the program. This process never returns."""
    code = 1
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        os.setsid()
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write(FIRST_VICTIM)
        libc.prctl(PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        spaces = NEW_MOUNTS | NEW_UTS | NEW_IPC | NEW_PIDS | NEW_NETWORK
        _done(libc.unshare(spaces), "namespaces of its own")
        pid = os.fork()
        if pid == 0:
            libc.prctl(PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            _enter(libc, plan, mounts)
            _become(libc, plan, out)
        signal.signal(signal.SIGTERM, lambda *_dummy: os.kill(pid, signal.SIGKILL))
        os.close(out)
        os.close(refuse)
        code = os.waitpid(pid, 0)[1] and 1
    except Exception as error:  # pylint: disable=broad-except
        # its only way to tell why
        os.write(refuse, str(error).encode("utf-8", "replace")[:300])
    finally:
        os._exit(code)


def _done(code, thing):
    if code:
        raise RootError(f"{thing}: {os.strerror(ctypes.get_errno())}")


class _Mounter:
    """Mounts below one root."""

    def __init__(self, libc, root):
        self._libc = libc
        self.root = root

    def mount(self, source, target, kind, flags, data=None):
        """Mount, or raise RootError that names the target."""
        code = self._libc.mount(
            os.fsencode(source), os.fsencode(target), kind, ctypes.c_ulong(flags), data
        )
        _done(code, f"mount {target}")

    def show(self, path):
        """Show a folder or a device of the node at its own place, read-only."""
        target = self.root + path
        self.mount(path, target, None, BIND)
        self.mount("none", target, None, REMOUNT | BIND | RDONLY | NOSUID)


def _enter(libc, plan, mounts):
    """Make the private root, and change to it."""
    place = plan.place
    root = place + "/root"
    on = _Mounter(libc, root)
    on.mount("none", "/", None, REC | PRIVATE)
    on.mount("tmpfs", place, b"tmpfs", NOSUID | NODEV, SIZE)
    for name in ("upper", "work", "root", "empty"):
        os.mkdir(f"{place}/{name}", 0o755)
    layers = f"lowerdir=/,upperdir={place}/upper,workdir={place}/work"
    on.mount("overlay", root, b"overlay", NODEV, os.fsencode(layers))
    for point in mounts:
        if os.path.isdir(point):
            on.show(point)
    for number, path in enumerate(plan.hidden):
        empty = f"{place}/empty/{number}"
        os.mkdir(empty, 0o755)
        with contextlib.suppress(OSError):  # on a file system that is read-only here
            os.makedirs(root + path, exist_ok=True)
        if os.path.isdir(root + path):
            on.mount(empty, root + path, None, BIND)
    _show_system(on)
    os.chdir(root)
    _done(libc.pivot_root(b".", b"."), "change of the root")
    _done(libc.umount2(b".", DETACH), "end of the former root")
    os.chdir("/")


def _show_system(on):
    """Make /proc, /sys and /dev of the private root."""
    for path in ANY_ADDRESS:
        try:
            with open(path, "w", encoding="ascii") as setting:
                setting.write("1")
        except OSError:
            pass  # a container, or no IPv6
    on.mount("proc", on.root + "/proc", b"proc", RDONLY | NOSUID | NODEV | NOEXEC)
    on.show("/sys")
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        points = [_unescaped(line.split(" ")[4]) for line in lines]
    for point in points:
        if _holds("/sys/fs/cgroup", point):
            on.show(point)
    on.mount("tmpfs", on.root + "/dev", b"tmpfs", NOSUID | NOEXEC, b"mode=0755,size=64k")
    for name in DEVICES:
        os.close(os.open(f"{on.root}/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        on.mount(f"/dev/{name}", f"{on.root}/dev/{name}", None, BIND)
    os.mkdir(on.root + "/dev/shm", 0o1777)
    os.symlink("/proc/self/fd", on.root + "/dev/fd")


def _become(libc, plan, out):
    """Become the program, within limits."""
    import resource

    null = os.open("/dev/null", os.O_RDWR)
    for source, number in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, number)
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    for number in range(CAPABILITIES):
        if number not in KEPT_CAPABILITIES:
            libc.prctl(DROP_CAPABILITY, number, 0, 0, 0)
    os.execve(plan.argv[0], plan.argv, plan.environment)
