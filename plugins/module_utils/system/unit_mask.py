# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mask of a unit, and the files that would apply without it."""

import os
import stat

ETC, RUN = "/etc/systemd/system", "/run/systemd/system"
MASKS = (ETC, RUN)
OWN = ("/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
NOWHERE = "/dev/null"
KINDS = (".wants", ".requires", ".upholds")


def facts(name, root=""):
    """Return {links: [{path, to}], file, wanted} of a unit that is masked.

    to: the target of the link; None for an empty file, which systemd treats like a mask.
    file: the unit's own file behind the mask, or None.
    wanted: whether a link of another unit in /etc starts the unit at boot once it is unmasked.
    """
    places = [os.path.join(folder, name) for folder in MASKS]
    links = []
    for path in places:
        is_mask, target = mask(root + path)
        if is_mask:
            links.append({"path": path, "to": target})
    masks = [link["path"] for link in links]
    behind = [
        os.path.join(folder, name)
        for folder in MASKS + OWN
        if os.path.join(folder, name) not in masks
    ]
    return {
        "links": links,
        "file": next((path for path in behind if os.path.isfile(root + path)), None),
        "wanted": is_wanted(name, root + ETC),
    }


def mask(path):
    """Return (whether a file masks a unit, the target of its link).

    An empty file masks a unit too: (True, None).
    """
    try:
        to = os.readlink(path)
    except OSError:  # no link
        return (os.path.isfile(path) and not os.path.getsize(path)), None
    return os.path.normpath(os.path.join(os.path.dirname(path), to)) == NOWHERE, to


def is_wanted(name, folder):
    """Return whether a link in this folder of units has another unit start this one."""
    try:
        targets = [target for target in os.listdir(folder) if target.endswith(KINDS)]
    except OSError:
        return False
    return any(os.path.lexists(os.path.join(folder, target, name)) for target in targets)


def is_masked(path):
    """Return whether the path is a link to /dev/null or an empty file, the same to systemd."""
    try:
        state = os.lstat(path)
        if stat.S_ISLNK(state.st_mode):
            return os.readlink(path) == NOWHERE
        return stat.S_ISREG(state.st_mode) and state.st_size == 0
    except OSError:
        return False
