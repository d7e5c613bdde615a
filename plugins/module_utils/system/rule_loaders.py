# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that load a ruleset at their start, for the collector boot.

They are nftables, those of iptables-services, and netfilter-persistent. Only files are read, and
none of a service that is not active. Of a file, only the lines are kept that decide what becomes of
the rules of others: what a unit runs, flushes and includes of nft, and the tables that
iptables-restore replaces. The controller interprets them (plugin_utils/models/flushed_rules.py).
"""

import glob
import os
import re

from ..shared import firewall_files
from . import boot_firewall, files, systemd, unit_mask

DROP_INS = ("/etc/systemd/system", "/run/systemd/system", *boot_firewall.UNITS[1:])
NFT_INCLUDES = "/etc"  # where nft looks for a file that is included by its name
UNIT_LINE = re.compile(r"Exec(?:Start|Reload|Stop)[ \t]*=")
NFT_LINE = re.compile(r"\b(?:flush\s+ruleset|include)\b")
INCLUDE = re.compile(r"\binclude\s+[\"']([^\"'\n]{1,200})[\"']")
RESTORE_LINE = re.compile(r"\*[a-z]{1,20}\s*\Z|\s*IP6?TABLES_RESTORE_NOFLUSH=")
MAX_TEXT, MAX_FILES, MAX_LINES, LONGEST = 262144, 20, 60, 200


def collect(root=""):
    """Return {name: {active, since, enabled, enabled_at, masked, lines, unread}} of the installed.

    enabled_at: when the first link was made by which a boot starts it.
    """
    loaders = {}
    for name, paths in firewall_files.LOADERS.items():
        unit = name + ".service"
        if any(os.path.lexists(f"{root}{folder}/{unit}") for folder in boot_firewall.UNITS):
            loaders[name] = _loader(name, unit, paths, root)
    return loaders


def _loader(name, unit, paths, root):
    is_active = boot_firewall.active(unit, root)
    links = boot_firewall.wanting_links(unit, root)
    reader = _Reader(root)
    if is_active:
        reader.read_unit(unit)
        if name == firewall_files.NFTABLES:
            reader.read_nft(paths)
        else:
            reader.read_plainly(paths)
    return {
        "active": is_active,
        "since": boot_firewall.since(unit, root),
        "enabled": bool(links),
        "enabled_at": min((os.lstat(link).st_mtime for link in links), default=None),
        "masked": unit_mask.is_masked(f"{root}{boot_firewall.UNITS[0]}/{unit}"),
        "lines": reader.lines[:MAX_LINES],
        "unread": reader.unread,
    }


class _Reader:
    """What was read of one service: lines, and files that could not be read."""

    def __init__(self, root):
        self.root, self.lines, self.unread = root, [], []

    def read_unit(self, unit):
        """Read the file of the unit, then its drop-ins in the order in which systemd does."""
        folders = [f"{folder}/{unit}" for folder in boot_firewall.UNITS]
        paths = [path for path in folders if os.path.lexists(self.root + path)][:1]
        drop_ins = {}
        for folder in DROP_INS:
            for name in files.names(f"{self.root}{folder}/{unit}.d"):
                if name.endswith(".conf"):
                    drop_ins.setdefault(name, f"{folder}/{unit}.d/{name}")
        paths += [drop_ins[name] for name in sorted(drop_ins)][:MAX_FILES]
        for path in paths:
            for number, line in systemd.joined(self._text(path)):
                if UNIT_LINE.match(line):
                    self._keep(path, number, line)

    def read_nft(self, paths):
        """Read files of nft, and those that they include."""
        pending, done = list(paths), set()
        while pending and len(done) < MAX_FILES:
            path = pending.pop(0)
            if path in done:
                continue
            done.add(path)
            for number, line in enumerate(self._text(path).split("\n"), 1):
                code = line.partition("#")[0]
                if NFT_LINE.search(code):
                    self._keep(path, number, code)
                    pending += self._included(code)

    def read_plainly(self, paths):
        """Read files of iptables-restore and of netfilter-persistent."""
        for path in paths:
            for number, line in enumerate(self._text(path).split("\n"), 1):
                if RESTORE_LINE.match(line):
                    self._keep(path, number, line)

    def _included(self, code):
        patterns = [os.path.join(NFT_INCLUDES, name) for name in INCLUDE.findall(code)]
        paths = [path for name in patterns for path in sorted(glob.glob(self.root + name))]
        return [path[len(self.root) :] for path in paths[:MAX_FILES]]

    def _text(self, path):
        """Return the text of a file, empty where there is none."""
        try:
            return files.read(self.root + path, MAX_TEXT).decode("utf-8", "replace")
        except OSError as error:
            if files.reason(error) != "missing":
                row = {"path": files.one_line(path, 253), "error": files.reason(error)}
                self.unread.append(row)
            return ""

    def _keep(self, path, number, text):
        text = files.one_line(text.strip(), LONGEST)
        self.lines.append({"path": files.one_line(path, 253), "line": number, "text": text})
