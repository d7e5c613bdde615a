# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dpkg is to do with packages, as entries of the journal are about it.

dpkg keeps one selection for each package: one that is on hold stays as it is. dpkg's own locks keep
two programs from changing that at once.
"""

import fcntl
import os
import re
import struct

from ..system import automatic_upgrades, files
from . import journal, storage
from .storage import ChangeError

ROOT = ""  # of the node's files
FOLDER = "/var/lib/dpkg"
LOCKS = (FOLDER + "/lock-frontend", FOLDER + "/lock")
UPDATES = FOLDER + "/updates"
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]{1,80}\Z")
KEY = re.compile(r"[a-z0-9][a-z0-9+.-]{1,80}(:[a-z0-9-]{1,30})?\Z")
LOCK = "hhqqi"  # struct flock: type, whence, start, length, pid


def selections(names):
    """Return {name:architecture: selection} of the installed packages with these names.

    ChangeError is raised where dpkg's state is being changed, or cannot be read.
    """
    for name in names:
        if not isinstance(name, str) or not NAME.match(name):
            raise ChangeError(
                f"nothing was changed: {files.one_line(name, 80)} is no name of a package"
            )
    _require_settled()
    return {
        _key(name, architecture): selection
        for name, architecture, selection in _installed()
        if name in names
    }


def _key(name, architecture):
    """Return what apt and dpkg call one package: of all architectures, its name alone."""
    return name if architecture in ("", "all") else f"{name}:{architecture}"


def _installed():
    try:
        return automatic_upgrades.installed(automatic_upgrades.status_of(ROOT))
    except OSError as error:
        raise ChangeError(
            f"nothing was changed: {automatic_upgrades.STATUS} cannot be read"
            f" ({files.one_line(error)})"
        ) from error


def _require_settled():
    """Raise ChangeError where a package manager works, or was interrupted at work."""
    for path in LOCKS:
        holder = _holder(ROOT + path)
        if holder is not None:
            raise ChangeError(
                f"nothing was changed: process {holder} holds {path}, so that packages are being"
                " changed now: let it end, then run again"
            )
    if any(name.isdigit() for name in files.names(ROOT + UPDATES)):
        raise ChangeError(
            f"nothing was changed: dpkg was interrupted ({UPDATES} is not empty): run dpkg"
            " --configure -a, then run again"
        )


def _holder(path):
    """Return the process that holds a lock, or None; the lock is not taken for that."""
    try:
        fd = files.opened(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ChangeError(
            f"nothing was changed: {path} cannot be read ({files.one_line(error)})"
        ) from error
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(LOCK, fcntl.F_WRLCK, 0, 0, 0, 0))
    except OSError as error:
        raise ChangeError(
            f"nothing was changed: {path} cannot be read ({files.one_line(error)})"
        ) from error
    finally:
        os.close(fd)
    kind, _whence, _start, _length, pid = struct.unpack(LOCK, answer)
    return None if kind == fcntl.F_UNLCK else pid


def encoded(rows):
    """Return the bytes that the journal keeps of selections."""
    return "".join(f"{key}\t{rows[key]}\n" for key in sorted(rows)).encode()


def decoded(data):
    """Return {name:architecture: selection} of these bytes; ChangeError where they are others."""
    rows = {}
    for line in data.decode("utf-8", "replace").splitlines():
        key, _tab, selection = line.partition("\t")
        rows[key] = selection
        if not KEY.match(key) or not selection.isalpha():
            raise ChangeError(
                f"nothing was changed: {files.one_line(line, 80)} is no selection of a package"
            )
    return rows


def digest(rows):
    """Return the digest of selections."""
    return storage.digest(encoded(rows))


def real(keys):
    """Return what the journal calls the selections of packages."""
    return journal.PACKAGES + ",".join(sorted(keys))


def path_of(keys):
    """Return what reports call the selections of packages."""
    return f"selections of {' '.join(sorted(keys))}"


def keys_of(intent):
    """Return the packages that an entry is about."""
    return intent["real"][len(journal.PACKAGES) :].split(",")


def of_keys(keys):
    """Return the selections of these packages that are installed; ChangeError."""
    rows = selections({key.partition(":")[0] for key in keys})
    return {key: rows[key] for key in keys if key in rows}


def present(intent):
    """Return the digest of the selections now of an entry's packages; ChangeError."""
    return digest(of_keys(keys_of(intent)))
