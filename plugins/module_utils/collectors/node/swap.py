# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector swap: which swap is on, and everything that may switch it on at a boot.

The controller judges what it means (plugin_utils/models/swap), and knows these units, files and
folders.
"""

import os
import stat

from ...system import command, files, procfs, systemd, unit_mask

SERVICES = (
    "zramswap.service",
    "zram-config.service",
    "armbian-zram-config.service",
    "dphys-swapfile.service",
    "swapspace.service",
    "walinuxagent.service",
    "waagent.service",
)
FILES = (
    "/etc/default/zramswap",
    "/usr/bin/init-zram-swapping",
    "/etc/default/armbian-zram-config",
    "/etc/dphys-swapfile",
    "/etc/swapspace.conf",
    "/etc/waagent.conf",
    "/etc/rc.local",
    "/etc/rc.d/rc.local",
)
GENERATORS = (
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
    "/lib/systemd/system-generators",
)
ZRAM = (
    "/etc/systemd/zram-generator.conf",
    "/usr/local/lib/systemd/zram-generator.conf",
    "/usr/lib/systemd/zram-generator.conf",
    "/lib/systemd/zram-generator.conf",
)
WORDS = (
    "fstab",
    "systemd.swap",
    "systemd.zram",
    "systemd.gpt_auto",
    "systemd.mask",
    "systemd.swap_extra",
)
UNITS = "/etc/systemd/system"
PROPERTIES = (
    "Id",
    "What",
    "LoadState",
    "UnitFileState",
    "ActiveState",
    "FragmentPath",
    "SourcePath",
    "Following",
    "WantedBy",
    "RequiredBy",
)
MEMORY = (
    ("SwapTotal", "swap_total_kib"),
    ("SwapFree", "swap_free_kib"),
    ("MemAvailable", "mem_available_kib"),
)
LINKS = ("by-uuid", "by-label", "by-partuuid", "by-partlabel", "by-id", "by-path")
LIBRARY = "libsystemd-shared-"
MAX_TEXT, MAX_UNITS, MAX_FILES, MAX_LINKS, MAX_FOLDERS, LONGEST = 65536, 500, 64, 5000, 256, 4096


def collect(context):
    """Return the swap that is on and what may switch it on.

    units: None where systemd does not answer; links: those of devices that are swapped on.
    """
    context.source = "/proc/swaps, /proc/meminfo, /etc/fstab, systemctl"
    swaps = files.whole("/proc/swaps")
    here = paths(swaps or "")
    zram, unlisted = zram_files()
    context.truncated = len(zram) > MAX_FILES
    evidence = {
        "swaps": swaps,
        "memory": memory(files.text("/proc/meminfo", 16384, "")),
        "fstab": files.record("/etc/fstab", limit=MAX_TEXT),
        "units": None,
        "cmdline": cmdline(files.whole("/proc/cmdline")),
        "links": links(here),
        "own": own_files(here),
        "container": container(),
        "systemd": version(files.whole("/proc/1/maps") or ""),
        "files": (
            [record(path) for path in FILES + tuple(zram[:MAX_FILES])] + unlisted + generators()
        ),
    }
    if os.path.isdir("/run/systemd/system"):
        try:
            names, properties, _dummy = question()
            evidence["units"] = units(systemd.show(names, properties, context.seconds(5)))
        except (command.CommandError, OSError) as error:
            context.source = f"/proc/swaps, /etc/fstab ({files.one_line(error)})"
    return evidence


def question():
    """Return the question to systemd: (names, properties, whether it asks is-enabled too)."""
    return ("*.swap", "swap.target", *SERVICES), PROPERTIES, False


def record(path):
    """Return the record of a file, a short one for a missing file: few nodes have any of them."""
    entry = files.record(path, limit=MAX_TEXT)
    if entry["error"] == "missing" and not entry["link"]:
        return {"path": path, "error": "missing"}
    return entry


def units(blocks, folder=UNITS):
    """Return [{property: value}] of systemd's blocks, bounded.

    The last value counts of a property that occurs twice.

    A unit that was masked since systemd loaded its files counts as masked: it is so at the next
    boot.
    """
    rows = []
    for name in sorted(blocks)[:MAX_UNITS]:
        row = {
            key: values[-1][:LONGEST]
            for key, values in blocks[name].items()
            if values[-1] or key in ("WantedBy", "RequiredBy")
        }
        if (
            name.endswith((".swap", "swap.target"))
            and "/" not in name
            and unit_mask.is_masked(os.path.join(folder, name))
        ):
            row.update(UnitFileState="masked", FragmentPath=os.path.join(folder, name))
        rows.append(row)
    return rows


def paths(text):
    """Return the paths of /proc/swaps, unescaped."""
    swap_paths = [line.split()[0] for line in text.split("\n")[1:] if line.strip()]
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        swap_paths = [path.replace(code, char) for path in swap_paths]
    return swap_paths


def cmdline(text):
    """Return systemd's words of the kernel's command line; None where it is not known.

    A dash comes first, in place of all other words, because they are not needed.
    """
    if text is None:
        return None
    kept, word, quoted = ["-"], "", False
    for char in text.strip() + " ":
        quoted = quoted != (char == '"')
        if char.isspace() and not quoted:
            if (
                word.startswith(("systemd.", '"systemd.', "fstab="))
                and word.partition("=")[0].replace("-", "_").strip('"') in WORDS
            ):
                kept.append(word)
            word = ""
        else:
            word += char
    return " ".join(kept)


def memory(text):
    """Return the numbers of /proc/meminfo, in KiB, that show whether memory can take the swap.

    A number that is not there is None.
    """
    texts = dict(line.partition(":")[::2] for line in text.split("\n"))
    words = {name: texts.get(key, "").split() for key, name in MEMORY}
    return {
        name: procfs.number(parts[0]) if len(parts) == 2 and parts[1] == "kB" else None
        for name, parts in words.items()
    }


def version(maps):
    """Return the version of systemd by the library that PID 1 has loaded; None if unknown.

    systemd before 231 has no such library.
    """
    digits = maps.partition(LIBRARY)[2][:8]
    while digits and not digits.isdecimal():
        digits = digits[:-1]
    if digits:
        return int(digits)
    return None


def container(proc="/proc", run="/run"):
    """Return whether the init of this node runs in a container.

    systemd switches on no swap there, and /proc/swaps is that of the whole machine.
    """
    variables = (files.text(proc + "/1/environ", MAX_TEXT) or "").split("\0")
    values = [line[len("container=") :] for line in variables if line.startswith("container=")]
    return bool(
        any(values)
        or files.text(run + "/systemd/container", 64)
        or files.text(run + "/host/container-manager", 64)
    )


def own_files(here):
    """Return those of the paths that are files of this node.

    In a container a path may be a file of the machine that the node does not have.
    """
    own_paths = []
    for path in here:
        try:
            if stat.S_ISREG(os.lstat(path).st_mode):
                own_paths.append(path)
        except OSError:
            continue
    return own_paths


def links(swaps, dev="/dev"):
    """Return {link: device} of the links that lead to a device that is swapped on.

    It leaves out the links to other devices.
    """
    devices = {os.path.realpath(path) for path in swaps if path.startswith(dev + "/")}
    if not devices:
        return {}
    targets, count = {}, 0
    for folder in _link_folders(dev):
        for name in _listed(folder):
            path, count = os.path.join(folder, name), count + 1
            if count > MAX_LINKS:
                return targets
            if os.path.islink(path) and os.path.realpath(path) in devices:
                targets[path] = os.path.realpath(path)
    return targets


def _link_folders(dev):
    """Return the folders of /dev whose links name block devices: udev's and those of LVM."""
    folders = [os.path.join(dev, "disk", name) for name in LINKS] + [os.path.join(dev, "mapper")]
    paths = [os.path.join(dev, name) for name in _listed(dev)]
    groups = [path for path in paths if os.path.isdir(path) and not os.path.islink(path)]
    return folders + groups[:MAX_FOLDERS]


def zram_files():
    """Return (paths of zram-generator's configuration, records of folders that cannot be listed).

    The main files are in it even where they are missing.
    """
    config_paths, unlisted = list(ZRAM), []
    for main in ZRAM:
        try:
            config_paths += [
                os.path.join(main + ".d", name)
                for name in sorted(os.listdir(main + ".d"))
                if name.endswith(".conf")
            ]
        except OSError as error:
            if files.reason(error) != "missing":
                unlisted.append(
                    dict(
                        files.record(main + ".d"),
                        path=main + ".d/*.conf",
                        kind="file",
                        error=files.reason(error),
                    )
                )
    return config_paths, unlisted


def generators(folders=GENERATORS):
    """Return the records of zram-generator in the folders of generators.

    A link to /dev/null and an empty file mask it, and have the size 0. A record has no content,
    because that is a program.
    """
    entries = []
    for folder in folders:
        path = folder + "/zram-generator"
        entry = {"path": path, "kind": "other", "link": None, "size": None, "error": None}
        try:
            state = os.lstat(path)
            (
                entry.update(kind="symlink", link=os.readlink(path))
                if stat.S_ISLNK(state.st_mode)
                else entry.update(kind="file")
            )
            if entry["link"] != "/dev/null":
                entry["size"] = os.stat(path).st_size
            else:
                entry["size"] = 0
        except OSError as error:
            entry["error"] = files.reason(error)
        entries.append(entry)
    return entries


def _listed(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
