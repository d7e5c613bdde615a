# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels that are installed and do not run, and the modules that they lack."""

import os

from . import files

# Modules whose loss is told: pods, or a driver that no kernel brings with it, need them.
NEEDED = (
    "overlay",
    "br_netfilter",
    "nf_conntrack",
    "xt_conntrack",
    "xt_comment",
    "xt_mark",
    "vxlan",
    "nvidia",
    "openvswitch",
)
IMAGES, COPIES = (
    ("vmlinuz-", "vmlinux-"),
    (
        *(".old", ".dpkg-bak", ".dpkg-new", ".dpkg-tmp"),
        *(".gz", ".xz", ".zst", ".bz2"),  # compressed images of SUSE, beside those that boot
    ),
)
MAX_KERNELS = 20


def installed(release=None, root="", proc="/proc"):
    """Return {running, kernels}.

    kernels: [{release, tree, lacks, is_default}] of the others: whether their modules are there,
    which modules that are loaded now they lack, and whether the link vmlinuz leads to them.
    """
    release = release or os.uname()[2]
    default, modules = _default(root), _loaded(proc)
    kernels = [_kernel(name, default, modules, root) for name in _releases(root) if name != release]
    return {
        "running": files.one_line(release, 120),
        "kernels": kernels[:MAX_KERNELS],
    }


def _releases(root):
    """Return the releases of the kernels of /boot."""
    names = [name for name in sorted(files.names(root + "/boot")) if name.startswith(IMAGES)]
    return [name.partition("-")[2] for name in names if not name.endswith(COPIES)]


def _default(root):
    """Return the release that the link of Debian and Ubuntu leads to, or an empty text."""
    for path in ("/boot/vmlinuz", "/vmlinuz"):
        try:
            target = os.readlink(root + path)
        except OSError:
            continue
        return target.rpartition("/")[2].partition("-")[2]
    return ""


def _loaded(proc):
    """Return the names of the modules that are loaded."""
    listed = files.whole(proc + "/modules", default="")
    return {line.partition(" ")[0] for line in listed.split("\n")}


def _kernel(name, default, modules, root):
    tree = f"{root}/lib/modules/{name}"
    dependencies = files.whole(tree + "/modules.dep", default="")
    builtin = files.whole(tree + "/modules.builtin", default="")
    lacks = [
        module
        for module in NEEDED
        if module in modules and not _has(dependencies, module) and not _has(builtin, module)
    ]
    return {
        "release": files.one_line(name, 120),
        "tree": bool(dependencies),
        "lacks": lacks,
        "is_default": name == default,
    }


def _has(listing, module):
    """Return whether modules.dep or modules.builtin has a file of this module."""
    names = {module, module.replace("_", "-")}
    return any(f"/{name}.ko" in listing for name in names)
