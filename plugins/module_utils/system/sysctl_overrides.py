# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sets kernel settings at boot after systemd-sysctl: ufw, systemd-networkd and tuned.

Only files are read. The value of a service that does not start at boot is None. The controller
interprets the lines (plugin_utils/parsers/sysctl_overrides.py).
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
    """Return {ufw, networkd, tuned}: what each sets at boot, None where its service does not start.

    ufw: {sysctl: the record of its sysctl file, None without one}; None also where ufw is disabled.
    networkd: [rows].
    tuned: {reapply, rows, unknown: [profiles that do not exist]}.

    A row is {path, line, key, value}. The rows are in the order in which systemd-networkd and tuned
    apply them.
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
        unit_mask.is_wanted(name, root + folder) for folder in STARTS
    )


def _text(path):
    return files.text(path, MAX_TEXT, "")


def _ufw(root):
    """Return {sysctl: the record of ufw's sysctl file}, None where ufw is disabled.

    A shell reads both files of ufw, and the second one overrides the first.
    """
    settings = dict(
        systemd.environment_file(_text(root + UFW_DEFAULT)),
        **systemd.environment_file(_text(root + UFW)),
    )
    if settings.get("ENABLED") not in ("yes", "YES"):
        return None
    path = settings.get("IPT_SYSCTL") or ""
    if not path.startswith("/etc/") or ".." in path:
        return {"sysctl": None}
    return {"sysctl": dict(files.record(root + path, limit=MAX_TEXT), path=path)}


def _networkd(root):
    """Return the settings that enable IPv4 forwarding.

    The global settings come first, then those of each network.
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
            for dropin_folder in _listed(root, folder, ".network.d")
            for path in _listed(root, dropin_folder, ".conf")
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
    rows, section = [], ""
    for number, line in systemd.joined(text):
        key, equal, value = line.partition("=")
        if line.startswith("["):
            section = line
        elif equal and counts(section):
            rows.append(
                {
                    "path": path,
                    "line": number,
                    "key": files.one_line(key.strip(), LONGEST),
                    "value": files.one_line(value.strip(), LONGEST),
                }
            )
    return rows


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
    profile_rows = _rows(path, text, lambda section: section == "[sysctl]")
    included = _included(_rows(path, text, lambda section: section == "[main]"))
    included_rows = []
    for other in included:
        included_rows += _profile(other, root, unknown, [*above, name])
    if any(map(_replaces, profile_rows)):
        included_rows = []
    return included_rows + [row for row in profile_rows if row["key"] not in PLUGIN_OPTIONS]


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
