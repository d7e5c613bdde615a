# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of systemd that entries of the journal are about: their enablement, and their masks."""

import os

from ..shared.units import KUBELET_UNITS, RUNTIMES
from ..system import command, files, systemd, unit_mask
from . import journal, storage
from .storage import ChangeError

ASKING = 60


def state(name):
    """Return {load, active, sub, result, pid, enabled} of a unit.

    ChangeError is raised where systemd does not answer.
    """
    if name not in KUBELET_UNITS + RUNTIMES:
        raise ChangeError(
            f"nothing was changed: {files.one_line(name, 80)} is no unit of a kubelet or a runtime"
            " that is known here"
        )
    try:
        block = systemd.show([name]).get(name)
        enabled = is_enabled(name)
    except command.CommandError as error:
        raise ChangeError(
            f"nothing was changed: systemd does not say what {name} is doing"
            f" ({files.one_line(error)})"
        ) from error
    facts = systemd.unit(block) if block else None
    if facts is None:
        raise ChangeError(f"nothing was changed: there is no unit {name}")
    return {
        "load": facts["load_state"],
        "active": facts["active_state"],
        "sub": facts["sub_state"],
        "result": facts["result"],
        "pid": facts["main_pid"] or None,
        "enabled": enabled,
    }


def is_enabled(name):
    """Return what is-enabled says of a unit; CommandError."""
    return systemd.enabled(name, ASKING)


def digest(word):
    """Return the digest of a state of is-enabled."""
    return storage.digest(encoded(word))


def encoded(word):
    """Return the bytes that the journal keeps of a state of is-enabled."""
    return (f"{word}\n").encode()


def mask_of(path):
    """Return the target of the mask's link, None where there is no such file.

    ChangeError is raised where a file of another kind is at the path.
    """
    is_mask, link = unit_mask.mask(path)
    if is_mask and link is not None:
        return link
    if os.path.lexists(path):
        raise ChangeError(
            f"{path} was not changed: it is no link to {unit_mask.NOWHERE}; see what it is"
            " (systemctl cat)"
        )
    return None


def mask_digest(link):
    """Return the digest of where a mask links to, None of no mask."""
    if link is None:
        return None
    return storage.digest(link.encode("utf-8", "surrogateescape"))


def name_of(intent):
    """Return the unit, or the path of the mask, that an entry is about."""
    return intent["real"][len(journal.UNIT) :]


def present(intent):
    """Return the digest of the enablement of an entry's unit now, or of its mask; ChangeError."""
    name = name_of(intent)
    if name.startswith("/"):
        return mask_digest(mask_of(name))
    return digest(state(name)["enabled"])
