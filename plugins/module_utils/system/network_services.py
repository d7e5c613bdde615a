# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd-networkd and NetworkManager are told of the interfaces and routes of others."""

import os
import re

from ..shared import networkd_settings
from . import boot_firewall, files, systemd

NETWORKD, MANAGER = "systemd-networkd.service", "NetworkManager.service"
NETWORKD_MAIN = tuple(
    folder + "/systemd/networkd.conf" for folder in ("/etc", "/run", "/usr/local/lib", "/usr/lib")
)
# A file replaces one of the same name in a later folder.
NETWORKD_FOLDERS = tuple(path + ".d" for path in NETWORKD_MAIN)
# A package of systemd has its release in the name of this library.
LIBRARY = re.compile(r"libsystemd-shared-([0-9]{3})[^0-9]")
LIBRARY_FOLDERS = ("/usr/lib/systemd", "/lib/systemd", "/usr/lib64/systemd")
MULTIARCH = "/usr/lib"  # where Debian has a folder for each architecture
MANAGER_MAIN = "/etc/NetworkManager/NetworkManager.conf"
MANAGER_FOLDERS = tuple(
    folder + "/NetworkManager/conf.d" for folder in ("/etc", "/run", "/usr/lib")
)
MANAGER_KEYS = ("unmanaged-devices", "match-device", "managed")
MAX_TEXT, MAX_FILES, MAX_ROWS, LONGEST = 65536, 50, 50, 500


def networkd(root=""):
    """Return {active, since, rows, unread, systemd}; None where networkd is not installed.

    systemd: its release, None where that is not known.
    """
    if not _installed(NETWORKD, root):
        return None
    main = [path for path in NETWORKD_MAIN if os.path.lexists(root + path)][:1]
    rows, unread = _settings(
        [*main, *_drop_ins(root, NETWORKD_FOLDERS)], networkd_settings.KEYS, root
    )
    return {
        "active": boot_firewall.active(NETWORKD, root),
        "since": boot_firewall.since(NETWORKD, root),
        "rows": rows,
        "unread": unread,
        "systemd": systemd_version(root),
    }


def systemd_version(root=""):
    """Return the release of systemd on the disk, None where it is not known."""
    names = [name for name in files.names(root + MULTIARCH) if "-linux-" in name]
    for folder in [*LIBRARY_FOLDERS, *(f"{MULTIARCH}/{name}/systemd" for name in names)]:
        matches = [LIBRARY.match(name) for name in files.names(root + folder)]
        releases = [int(match.group(1)) for match in matches if match]
        if releases:
            return max(releases)
    return None


def counting(rows):
    """Return {key: the row that counts}: the last one of networkd's section."""
    return {row["key"]: row for row in rows if row["section"] == networkd_settings.SECTION}


def network_manager(root=""):
    """Return {active, since, rows, unread} of NetworkManager, None where it is not installed."""
    if not _installed(MANAGER, root):
        return None
    paths = [MANAGER_MAIN, *_drop_ins(root, MANAGER_FOLDERS)]
    rows, unread = _settings(paths, MANAGER_KEYS, root)
    return {
        "active": boot_firewall.active(MANAGER, root),
        "since": boot_firewall.since(MANAGER, root),
        "rows": rows,
        "unread": unread,
    }


def _installed(unit, root):
    return any(os.path.lexists(f"{root}{folder}/{unit}") for folder in boot_firewall.UNITS)


def _drop_ins(root, folders):
    """Return the files of these folders by their names, of one name that of the first folder."""
    paths = {}
    for folder in folders:
        for name in files.names(root + folder):
            if name.endswith(".conf"):
                paths.setdefault(name, f"{folder}/{name}")
    return [paths[name] for name in sorted(paths)][:MAX_FILES]


def _settings(paths, keys, root):
    """Return ([{path, line, section, key, value}] of these keys, [{path, error}])."""
    rows, unread = [], []
    for path in paths:
        try:
            text = files.read(root + path, MAX_TEXT).decode("utf-8", "replace")
        except OSError as error:
            if files.reason(error) != "missing":
                unread.append({"path": files.one_line(path, 253), "error": files.reason(error)})
            continue
        rows += rows_of(path, text, keys)
    return rows[:MAX_ROWS], unread


def rows_of(path, text, keys):
    """Return the lines of a file that set these keys, with their sections."""
    rows, section = [], ""
    for number, line in systemd.joined(text):
        key, equals, value = line.partition("=")
        if line.startswith("["):
            section = line.strip()
        elif equals and key.strip().rstrip("+") in keys:
            rows.append(
                {
                    "path": files.one_line(path, 253),
                    "line": number,
                    "section": files.one_line(section, 80),
                    "key": key.strip(),
                    "value": files.one_line(value.strip(), LONGEST),
                }
            )
    return rows
