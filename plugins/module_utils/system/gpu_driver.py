# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's driver in the kernel, and the libraries beside it."""

import os

from . import files

LOADED = "/proc/driver/nvidia/version"
LIBRARY = "libnvidia-ml.so."
FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
)
MAX_ROWS = 10


def versions(root=""):
    """Return {loaded, libraries} where the driver is loaded, else None.

    libraries: [{path, version}] of libnvidia-ml, each real file once.
    """
    text = files.text(root + LOADED, 4096)
    if text is None:
        return None
    libraries = {}
    for folder in FOLDERS:
        for name in files.names(root + folder):
            number = name[len(LIBRARY) :]
            if name.startswith(LIBRARY) and "." in number and not number.strip("0123456789."):
                path = os.path.realpath(f"{root}{folder}/{name}")
                libraries.setdefault(path, {"path": f"{folder}/{name}", "version": number})
    return {"loaded": loaded(text), "libraries": list(libraries.values())[:MAX_ROWS]}


def loaded(text):
    """Return the version of the driver that the kernel has, or an empty text.

    The line is `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug …`, and of the
    open one `… Open Kernel Module for x86_64  535.104.05  Release Build …`.
    """
    line = text.partition("\n")[0]
    for word in line.partition("Kernel Module")[2].split():
        if "." in word and not word.strip("0123456789."):
            return files.one_line(word, 40)
    return ""
