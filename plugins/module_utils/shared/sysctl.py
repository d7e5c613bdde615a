# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings: the ones that pods need, the directories of sysctl.d, and its lines."""

RUNNING = (
    "net.ipv4.ip_forward",
    "net.bridge.bridge-nf-call-iptables",
    "net.bridge.bridge-nf-call-ip6tables",
)
SYSCTL = (
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
)
BLANKS = " \t\r\n\v\f"
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.-")


def line_with(text, number):
    """Return a line of sysctl.d with another value; the blanks around the value stay."""
    head, equal, value = text.partition("=")
    before = ""
    if value.strip(BLANKS):
        before = value[: len(value) - len(value.lstrip(BLANKS))]
    after = value[len(value.rstrip(BLANKS)) :]
    return f"{head}{equal}{before}{number:d}{after}"


def key_of(text):
    """Return the setting that a line of sysctl.d names, spelled with dots.

    The result is None for a pattern, or for a line that sets nothing.
    """
    name, equal, _value = text.partition("=")
    name = name.strip(BLANKS)
    if name.startswith("-"):
        name = name[1:]
    name = name.strip(BLANKS).replace("/", ".")
    if equal and name and LETTERS.issuperset(name):
        return name
    return None
