# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firewalls and SELinux, for the collector boot.

The module reads whether firewalld and ufw run and start at boot, what they permit, and what SELinux
denied. Only files are read, and none of a firewall that is not installed. The controller interprets
them (plugin_utils/parsers/firewall.py). Runtime changes of firewalld without --permanent are in no
file.
"""

import glob
import os
import re
import time

from ..shared.firewall_files import (
    FIREWALLD,
    KUBERNETES,
    LOADERS,
    OURS,
    RULES,
    SCRIPTS,
    UFW,
    VENDOR,
)
from . import files, unit_mask

UNITS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
TARGETS = (
    "multi-user.target",
    "default.target",
    "basic.target",
    "sysinit.target",
    "network-pre.target",
    "graphical.target",
)
INVOCATIONS = "/run/systemd/units"  # since systemd 235: a link for each unit that is active
GROUPS = ("/sys/fs/cgroup/systemd/system.slice", "/sys/fs/cgroup/system.slice")
BOUND = (
    ("/etc/sysconfig/network-scripts", "ifcfg-", "ZONE"),
    ("/etc/NetworkManager/system-connections", "", "zone"),
    ("/run/NetworkManager/system-connections", "", "zone"),
    ("/usr/lib/NetworkManager/system-connections", "", "zone"),
)
# Where the Python of a distribution has firewalld's own release.
RELEASES = (
    "/usr/lib/python3*/site-packages/firewall/config/__init__.py",
    "/usr/lib/python3/dist-packages/firewall/config/__init__.py",
    "/usr/lib/python2.7/site-packages/firewall/config/__init__.py",
)
RELEASE = re.compile(r"""^VERSION = ['"]([0-9][0-9.]{1,20})""", re.MULTILINE)
WITHOUT_PROCESS = tuple(f"{name}.service" for name in (UFW, *LOADERS))
AUDIT = "/var/log/audit/audit.log"
MAX_TEXT, MAX_FILES, MAX_BOUND, MAX_UNREAD, MAX_TAIL, MAX_LINES = 65536, 80, 500, 20, 256 * 1024, 20


def collect(root=""):
    """Return {name: {active, since, enabled, ...}} of the installed firewalls.

    active: whether its unit is active; None where this is not known.
    since: when systemd started it last.
    version: the release of firewalld, None where it is not active or its file is not known.
    zones: the zones that files of NetworkManager or of the network scripts give to interfaces.
    unread: files and folders that could not be read and may give a zone to an interface.
    """
    firewalls = {}
    for name in (FIREWALLD, UFW):
        unit = name + ".service"
        if any(os.path.lexists(f"{root}{folder}/{unit}") for folder in UNITS):
            unread, zones, release = [], [], None
            is_active = active(unit, root)
            if name == FIREWALLD:
                records = _records(root, _firewalld(root, unread))
                zones = bound(root, unread)
                if is_active:
                    release = version(root)
            else:
                records = _records(root, RULES) + [_script(root, path) for path in SCRIPTS]
            firewalls[name] = {
                "active": is_active,
                "since": since(unit, root),
                "enabled": enabled(unit, root),
                "masked": unit_mask.is_masked(f"{root}{UNITS[0]}/{unit}"),
                "version": release,
                "files": records,
                "zones": zones,
                "unread": unread[:MAX_UNREAD],
            }
    return firewalls


def version(root=""):
    """Return the release of firewalld on the disk, None where it is not known."""
    for pattern in RELEASES:
        for path in sorted(glob.glob(root + pattern)):
            match = RELEASE.search(files.text(path, MAX_TEXT) or "")
            if match:
                return match.group(1)
    return None


def since(unit, root=""):
    """Return when systemd started the unit: it makes a link for each start."""
    try:
        return os.lstat(f"{root}{INVOCATIONS}/invocation:{unit}").st_mtime
    except OSError:
        return None


def active(unit, root=""):
    """Return whether the unit is active, as systemd's runtime files show it; None where unknown.

    Older releases of systemd have no such files. There a service counts as active while its control
    group has a process.
    """
    if os.path.isdir(root + INVOCATIONS):
        return os.path.lexists(f"{root}{INVOCATIONS}/invocation:{unit}")
    groups = [root + folder for folder in GROUPS if os.path.isdir(root + folder)]
    if not groups or unit in WITHOUT_PROCESS:
        return None
    return any(
        (files.text(f"{folder}/{unit}/cgroup.procs", 4096) or "").strip() for folder in groups
    )


def enabled(unit, root=""):
    """Return whether a target that a boot reaches wants it."""
    return bool(wanting_links(unit, root))


def wanting_links(unit, root=""):
    """Return the links by which targets that a boot reaches want the unit."""
    folders = [f"{target}.{kind}" for target in TARGETS for kind in ("wants", "requires")]
    links = (f"{root}{folder}/{link}/{unit}" for folder in UNITS for link in folders)
    return [link for link in links if os.path.lexists(link)]


def _firewalld(root, unread):
    """Return firewalld's own files, and of the package the zones and what concerns Kubernetes."""
    paths = [OURS + "/firewalld.conf", OURS + "/direct.xml"]
    for folder, names in (
        (OURS + "/zones", ""),
        (OURS + "/services", ""),
        (OURS + "/policies", ""),
        (VENDOR + "/zones", ""),
        (VENDOR + "/services", KUBERNETES),
    ):
        paths += [
            f"{folder}/{name}"
            for name in _listed(root, folder, unread)
            if name.endswith(".xml") and name.startswith(names)
        ]
    return paths


def _records(root, paths):
    """Return a record for each path.

    Where there are too many paths, the first record has an error instead of a text: a file that is
    not read may permit traffic, and everything depends on the first file.
    """
    records = [_record(root, path) for path in paths[:MAX_FILES]]
    if len(paths) > MAX_FILES:
        records[0] = {
            "path": paths[0],
            "text": None,
            "error": f"one of more than {MAX_FILES} files",
            "truncated": True,
        }
    return records


def _record(root, path):
    """Return {path, text, error, truncated} of a file."""
    record = files.record(root + path, limit=MAX_TEXT)
    return {
        "path": path,
        "text": record["text"],
        "error": record["error"],
        "truncated": record["truncated"],
    }


def _script(root, path):
    """Return the record of a script, and whether ufw runs it."""
    record = files.record(root + path, limit=MAX_TEXT)
    return {
        "path": path,
        "text": record["text"],
        "error": record["error"],
        "truncated": record["truncated"],
        "executable": None if record["mode"] is None else bool(int(record["mode"], 8) & 0o111),
    }


def bound(root, unread):
    """Return the zones that files of NetworkManager and of the network scripts give to interfaces.

    Other settings of these files are not read. Only root can read a profile of NetworkManager. A
    file that cannot be read is added to `unread`, because it may name a zone.
    """
    zones = set()
    for folder, begin, key in BOUND:
        names = [name for name in _listed(root, folder, unread) if name.startswith(begin)]
        if len(names) > MAX_BOUND:
            unread.append({"path": folder, "error": f"more than {MAX_BOUND} files"})
        for name in names[:MAX_BOUND]:
            for line in _profile(root, f"{folder}/{name}", unread).split("\n"):
                word, equals, value = line.strip().partition("=")
                if equals and word.strip() == key and value.strip("\"' "):
                    zones.add(files.one_line(value.strip("\"' "), 80))
    return sorted(zones)


def _profile(root, path, unread):
    """Return the text of a file, empty where there is none."""
    try:
        data = files.read(root + path, MAX_TEXT + 1)
    except OSError as error:
        if files.reason(error) != "missing" and not os.path.isdir(root + path):
            unread.append({"path": path, "error": files.reason(error)})
        return ""
    if len(data) > MAX_TEXT:
        unread.append({"path": path, "error": f"more than {MAX_TEXT} bytes"})
    return data.decode("utf-8", "replace")


def _listed(root, folder, unread):
    try:
        return sorted(os.listdir(root + folder))
    except OSError as error:
        if files.reason(error) != "missing":
            unread.append({"path": folder, "error": files.reason(error)})
        return []


def denials(proc="/proc", path=AUDIT, now=time.time):
    """Return {count, lines, cut, since, path, error} of SELinux denials since the boot.

    The end of the audit log is read, and the end of the rotated log if that is needed to reach the
    boot.

    lines: the last denials.
    cut: the part that was read does not reach back to the boot.
    since: whether anything was written after the boot.
    path: the file that the error is about.
    """
    answer = {"count": 0, "lines": [], "cut": False, "since": False, "path": path, "error": None}
    try:
        booted = now() - float(files.text(proc + "/uptime", 64, "").split()[0])
        lines = _reaching(path, booted, answer)
    except (OSError, ValueError, IndexError) as error:
        if isinstance(error, OSError):
            answer["error"] = files.reason(error)
        else:
            answer["error"] = files.one_line(error)
        return answer
    answer.update(count=len(lines), lines=lines[-MAX_LINES:], path=path)
    return answer


def _reaching(path, booted, answer):
    """Return the denials since the boot.

    The rotated log is read too where the audit log begins after the boot.
    """
    denial_lines = []
    for log in (path, path + ".1"):
        answer["path"] = log
        try:
            data, cut = _end(log)
        except OSError as error:
            if log != path and files.reason(error) == "missing":
                return denial_lines  # the log is whole
            raise
        first, lines, is_since = _denied(data, booted)
        answer["since"] = answer["since"] or is_since
        denial_lines = lines + denial_lines
        if first is not None and first <= booted:
            return denial_lines
        if cut:
            break
    answer["cut"] = cut or os.path.lexists(path + ".2")
    return denial_lines


def _denied(data, booted):
    """Return (time of the first line, denials since the boot, whether any line is since then)."""
    times, lines = [], []
    for line in data.decode("utf-8", "replace").split("\n"):
        when = _when(line)
        if when is None:
            continue
        times.append(when)
        if when >= booted and _is_denial(line):
            lines.append(files.one_line(line, 400))
    if not times:
        return None, lines, False
    return times[0], lines, max(times) >= booted


def _is_denial(line):
    return "avc:" in line and " denied " in line and "permissive=1" not in line


def _end(path):
    """Return (its last bytes, whether there are others before)."""
    descriptor = files.opened(path)
    try:
        size = os.fstat(descriptor).st_size
        os.lseek(descriptor, max(0, size - MAX_TAIL), os.SEEK_SET)
        return files.content(descriptor, MAX_TAIL), size > MAX_TAIL
    finally:
        os.close(descriptor)


def _when(line):
    """Return the seconds of msg=audit(SECONDS:NUMBER)."""
    word = line.partition("msg=audit(")[2].partition(":")[0]
    try:
        if word:
            return float(word)
        return None
    except ValueError:
        return None
