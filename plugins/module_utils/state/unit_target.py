# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of systemd that entries of the journal are about: their enablement, and their masks."""

import os

from ..shared.units import KUBELET_UNITS, RUNTIMES
from ..system import command, files, unit_mask
from ..system import systemd as unit
from . import journal
from . import storage as durable
from .storage import ChangeError

ASKING = 60


def state(name):
    """{load, active, sub, result, pid, enabled} of a unit.

    ChangeError where systemd does not say.
    """
    if name not in KUBELET_UNITS + RUNTIMES:
        raise ChangeError(
            f"nothing was changed: {files.one_line(name, 80)} is no unit of a kubelet or a runtime"
            " that is known here"
        )
    try:
        block = unit.show([name]).get(name)
        enabled = is_enabled(name)
    except command.CommandError as error:
        raise ChangeError(
            f"nothing was changed: systemd does not say what {name} is doing"
            f" ({files.one_line(error)})"
        )
    found = unit.unit(block) if block else None
    if found is None:
        raise ChangeError(f"nothing was changed: there is no unit {name}")
    return {
        "load": found["load_state"],
        "active": found["active_state"],
        "sub": found["sub_state"],
        "result": found["result"],
        "pid": found["main_pid"] or None,
        "enabled": enabled,
    }


def is_enabled(name):
    """Systemd's own word; CommandError."""
    return unit.enabled(name, ASKING)


def digest(word):
    return durable.digest(encoded(word))


def encoded(word):
    """Return the bytes that the journal keeps of a state of is-enabled."""
    return (f"{word}\n").encode()


def mask_of(path):
    """What the mask says, None where there is no such file.

    ChangeError where something else lies there.
    """
    there, to = unit_mask.mask(path)
    if there and to is not None:
        return to
    if os.path.lexists(path):
        raise ChangeError(
            f"{path} was not changed: it is no link to {unit_mask.NOWHERE}; see what it is"
            " (systemctl cat)"
        )
    return None


def mask_digest(to):
    return None if to is None else durable.digest(to.encode("utf-8", "surrogateescape"))


def name_of(intent):
    return intent["real"][len(journal.UNIT) :]


def present(intent):
    """Return the digest of what is-enabled says of an entry's unit now, or of its mask; ChangeError."""
    name = name_of(intent)
    if name.startswith("/"):
        return mask_digest(mask_of(name))
    return digest(state(name)["enabled"])
