# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who sets kernel settings at a boot once systemd-sysctl has: ufw, systemd-networkd, tuned.

Files alone.

Each is None where nothing starts it at a boot. What their lines mean is for the controller
(plugin_utils/parsers/sysctl_overrides.py).
"""

import os

from . import files, systemd, unit_mask

STARTS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
UFW, UFW_DEFAULT = "/etc/ufw/ufw.conf", "/etc/default/ufw"
NETWORKD = "/etc/systemd/networkd.conf"
NETWORKD_DROPINS = (
    "/usr/lib/systemd/networkd.conf.d",
    "/run/systemd/networkd.conf.d",
    "/etc/systemd/networkd.conf.d",
)
# a vendor's are for containers of systemd-nspawn
NETWORKS = ("/etc/systemd/network", "/run/systemd/network")
FORWARDS = ("IPForward", "IPv4Forwarding", "IPMasquerade")
TUNED, TUNED_MAIN = "/etc/tuned/active_profile", "/etc/tuned/tuned-main.conf"
# Of the section [sysctl] of a profile of tuned: no settings of the kernel.
PLUGIN_OPTIONS = ("type", "replace", "enabled", "priority", "devices")
PROFILES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
MAX_TEXT, MAX_FILES, MAX_ROWS, MAX_PROFILES, LONGEST = 65536, 100, 200, 20, 200


def facts(root=""):
    """Return {ufw: {sysctl: the record of its file, None without one}, networkd: [rows], tuned.

    {reapply, rows, unknown: [profiles that are not to be found]}}.

    A row is {path, line, key, value}, in the order in which they count.
    """
    readers = {
        "ufw": ("ufw.service", _ufw),
        "networkd": ("systemd-networkd.service", _networkd),
        "tuned": ("tuned.service", _tuned),
    }
    overrides = dict.fromkeys(readers)
    for name, (service, read) in readers.items():
        if _starts(service, root):
            overrides[name] = read(root)
    return overrides


def _starts(name, root):
    return not unit_mask.mask(os.path.join(root + STARTS[0], name))[0] and any(
        unit_mask.wanted(name, root + folder) for folder in STARTS
    )


def _text(path):
    return files.text(path, MAX_TEXT, "")


def _ufw(root):
    """None where it is switched off.

    Its two files are read by a shell, the second after the first.
    """
    told = dict(
        systemd.environment_file(_text(root + UFW_DEFAULT)),
        **systemd.environment_file(_text(root + UFW)),
    )
    if told.get("ENABLED") not in ("yes", "YES"):
        return None
    path = told.get("IPT_SYSCTL") or ""
    if not path.startswith("/etc/") or ".." in path:
        return {"sysctl": None}
    return {"sysctl": dict(files.record(root + path, limit=MAX_TEXT), path=path)}


def _networkd(root):
    """Return what says that packets of IPv4 are forwarded.

    Of the machine first and then of its networks.
    """
    if os.path.lexists(root + NETWORKD):
        paths = [NETWORKD]
    else:
        paths = []
    paths += [path for folder in NETWORKD_DROPINS for path in _listed(root, folder, ".conf")]
    for folder in NETWORKS:
        paths += _listed(root, folder, ".network")
        paths += [
            path
            for one in _listed(root, folder, ".network.d")
            for path in _listed(root, one, ".conf")
        ]
    rows = [
        row
        for path in paths[:MAX_FILES]
        for row in _rows(path, _text(root + path), lambda section: section == "[Network]")
    ]
    return [row for row in rows if row["key"] in FORWARDS][:MAX_ROWS]


def _listed(root, folder, suffix):
    try:
        return [
            os.path.join(folder, name)
            for name in sorted(os.listdir(root + folder))
            if name.endswith(suffix)
        ]
    except OSError:
        return []


def _rows(path, text, counts):
    """Return the assignments of the sections that count."""
    found, section = [], ""
    for number, line in systemd.joined(text):
        key, equal, value = line.partition("=")
        if line.startswith("["):
            section = line
        elif equal and counts(section):
            found.append(
                {
                    "path": path,
                    "line": number,
                    "key": files.one_line(key.strip(), LONGEST),
                    "value": files.one_line(value.strip(), LONGEST),
                }
            )
    return found


def _tuned(root):
    main = {
        row["key"]: row["value"]
        for row in _rows("", _text(root + TUNED_MAIN), lambda section: True)
    }
    rows, unknown = [], []
    for name in _text(root + TUNED).split()[:MAX_PROFILES]:
        rows += _profile(name, root, unknown, [])
    return {"reapply": main.get("reapply_sysctl"), "rows": rows[:MAX_ROWS], "unknown": unknown}


def _profile(name, root, unknown, above):
    """Return the rows of a profile: those that it includes come first."""
    path = _path_of_profile(name, root)
    is_nested = name in above or len(above) >= MAX_PROFILES
    if path is None or "/" in name or is_nested:
        unknown.append(files.one_line(name, 80))
        return []
    text = _text(root + path)
    own = _rows(path, text, lambda section: section == "[sysctl]")
    included = _included(_rows(path, text, lambda section: section == "[main]"))
    found = []
    for other in included:
        found += _profile(other, root, unknown, [*above, name])
    if any(map(_replaces, own)):
        found = []
    return found + [row for row in own if row["key"] not in PLUGIN_OPTIONS]


def _path_of_profile(name, root):
    for folder in PROFILES:
        path = os.path.join(folder, name, "tuned.conf")
        if os.path.isfile(root + path):
            return path
    return None


def _included(rows):
    names = []
    for row in rows:
        if row["key"] == "include":
            names += row["value"].replace(",", " ").replace(";", " ").split()
    return names


def _replaces(row):
    return row["key"] == "replace" and row["value"].lower() in ("1", "true", "yes")
