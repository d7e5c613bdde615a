# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parses the output of systemctl and journalctl, without side effects."""

KEPT = 8  # lines of a unit's journal


def parse(text):
    """Return the blocks of `systemctl show` as {property: [values]}.

    systemd 219 (RHEL 7) differs: it calls EnvironmentFiles EnvironmentFile, may print an empty line
    after it that ends no block, and escapes the backslashes of a unit's name.
    """
    blocks, name = [{}], ""
    for line in text.splitlines():
        previous, (name, equal, value) = name, line.partition("=")
        if equal:
            blocks[-1].setdefault(_property(name), []).append(_value(name, value))
        elif not line and previous != "EnvironmentFile":
            blocks.append({})
    return [block for block in blocks if block]


def _property(name):
    if name == "EnvironmentFile":
        return "EnvironmentFiles"
    return name


def _value(name, value):
    if name == "Environment":
        return value
    return value.replace("\\x5cx", "\\x")


def words(text):
    """Split the text as systemd and a shell do: white space, quotes, backslashes."""
    result, word, quote, is_escaped = [], None, "", False
    last = len(text) - 1
    for position, char in enumerate(text):
        if is_escaped:
            word = _extended(word, char)
            is_escaped = False
        elif position < last and _escapes(char, quote):
            is_escaped = True
        elif quote:
            word, quote = _quoted(word, quote, char)
        elif char in "\"'":
            quote, word = char, _extended(word, "")
        elif char not in " \t\n":
            word = _extended(word, char)
        elif word is not None:
            result.append(word)
            word = None
    if word is not None:
        result.append(word)
    return result


def _escapes(char, quote):
    return char == "\\" and quote != "'"


def _extended(word, text):
    """Return the word with the text behind it; None is no word yet."""
    return (word or "") + text


def _quoted(word, quote, char):
    """Return (the word, the quote that is still open) after a letter within quotes."""
    if char == quote:
        return word, ""
    return word + char, quote


def of_systemd(line):
    """Return whether PID 1, or its child before it executes the program, wrote this line.

    The format of the line is that of `-o short-iso`. systemd 219 calls that child systemd, later
    releases "(kubelet)".
    """
    fields = line.split(" ", 3)
    return len(fields) > 3 and fields[2].startswith(("systemd[", "("))
