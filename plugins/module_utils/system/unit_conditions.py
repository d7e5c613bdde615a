# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions and asserts of a unit, and whether they hold now.

`systemctl show` does not print them (in releases up to 257 at least). busctl does; without busctl
the unit's files are read.
"""

import os
import stat

from . import command, files, systemd
from .command import CommandError

OBJECT = "/org/freedesktop/systemd1/unit/"
MASKED = "*" * 12
MAX, LONGEST = 40, 300


def checks(name, written, seconds, on_bus=True):
    """Return (conditions and asserts of a unit, their source): busctl, else the unit's files."""
    if on_bus:
        answers = [
            _by_bus(name, property_name, seconds) for property_name in ("Conditions", "Asserts")
        ]
    else:
        answers = []
    if answers and None not in answers:
        rows, source = answers[0] + answers[1], "busctl"
    else:
        rows, source = _by_files(written), "files"
    return [_check(row, written) for row in rows[:MAX]], source


def _by_bus(name, property_name, seconds):
    """Return [(type, trigger, negate, parameter, result)]; None where busctl has no answer."""
    argv = [
        "busctl",
        "--system",
        "get-property",
        "org.freedesktop.systemd1",
        OBJECT + label(name),
        "org.freedesktop.systemd1.Unit",
        property_name,
    ]
    try:
        return rows_of(command.run(argv, seconds))
    except (CommandError, OSError):
        return None


def label(name):
    """Return a unit's name as a part of an object's path."""
    part = ""
    for index, char in enumerate(name.encode("utf-8", "surrogateescape")):
        letter = chr(char)
        plain = char < 128 and (letter.isalpha() or (letter.isdigit() and index > 0))
        if plain:
            part += letter
        else:
            part += f"_{char:02x}"
    return part


def rows_of(text):
    """Return the rows of `a(sbbsi) N "Type" trigger negate "parameter" result`.

    The result is None for other text.
    """
    words = systemd.words(text)
    if len(words) < 2 or words[0] != "a(sbbsi)" or not words[1].isdecimal():
        return None
    rows, rest = [], words[2:]
    while len(rest) >= 5:
        kind, trigger, negate, parameter, result = rest[:5]
        last = {"1": True, "-1": False}.get(result)  # 0: not tested; else an error
        rows.append((kind, trigger == "true", negate == "true", parameter, last))
        rest = rest[5:]
    if len(rows) == int(words[1]):
        return rows
    return None


def _by_files(written):
    """Return the rows of _by_bus() from the lines of [Unit].

    An empty value removes the earlier ones of its kind.
    """
    rows_by_kind = {"Condition": [], "Assert": []}
    for section, key, value, _dummy_path, _dummy_line in written:
        kind = next(
            (kind for kind in rows_by_kind if section == "[Unit]" and key.startswith(kind)), None
        )
        if kind and not value:
            rows_by_kind[kind] = []
        elif kind:
            trigger = value.startswith("|")
            if trigger:
                bare = value[1:].strip()
            else:
                bare = value
            negate = bare.startswith("!")
            if negate:
                bare = bare[1:].strip()
            rows_by_kind[kind].append((key, trigger, negate, bare, None))
    return rows_by_kind["Condition"] + rows_by_kind["Assert"]


def _check(row, written):
    """Return {text, assert, trigger, met, last, seen, path, line} of one condition or assert.

    met: whether it holds now, None where this is not known.
    last: systemd's own result of the last start.
    """
    kind, trigger, negate, parameter, last = row
    marks = ""
    if trigger:
        marks += "|"
    if negate:
        marks += "!"
    if kind.startswith("Assert"):
        bare = kind[len("Assert") :]
    else:
        bare = kind[len("Condition") :]
    # What a file says may hold a specifier (%), which systemd has replaced.
    if "%" in parameter:
        holds, clause = (None, "")
    else:
        holds, clause = holds_now(bare, parameter)
    place = _place(written, kind, marks + parameter)
    if bare == "Environment":  # NAME=VALUE, and a value may be a secret
        name, equal, _dummy = parameter.partition("=")
        parameter = name
        if equal:
            parameter = f"{name}={MASKED}"
    return {
        "text": files.one_line(f"{kind}={marks}{parameter}", LONGEST),
        "assert": kind.startswith("Assert"),
        "trigger": trigger,
        "met": None if holds is None else holds != negate,
        "last": last,
        "seen": files.one_line(clause, LONGEST),
        "path": place[0],
        "line": place[1],
    }


def holds_now(kind, parameter):
    """Return (whether a check of a path holds now, a clause about the path); None where unknown."""
    if kind == "PathExistsGlob":
        return matches(parameter)
    test = TESTS.get(kind)
    if test is None or not parameter.startswith("/"):
        return None, ""
    try:
        return test(parameter)
    except OSError as error:
        gone = files.reason(error) == "missing"
        if gone:
            return False, f"{parameter} is missing"
        return None, f"{parameter} cannot be read ({files.reason(error)})"


def matches(pattern):
    """Return (whether a path matches the pattern, what was seen)."""
    import glob  # brings re

    match = next(glob.iglob(pattern), None)
    return match is not None, "" if match else f"nothing matches {pattern}"


def _exists(path):
    os.stat(path)
    return True, f"{path} exists"


def directory(path):
    """Return (whether the path is a directory, what was seen)."""
    is_directory = stat.S_ISDIR(os.stat(path).st_mode)
    return is_directory, "{} is {}a directory".format(path, "" if is_directory else "not ")


def _link(path):
    is_link = stat.S_ISLNK(os.lstat(path).st_mode)
    return is_link, "{} is {}a symbolic link".format(path, "" if is_link else "not ")


def _mount(path):
    real = os.path.realpath(path)
    os.stat(real)
    is_mount = os.path.ismount(real)
    return is_mount, "{} is {}a mount point".format(path, "" if is_mount else "not ")


def _writable(path):
    is_writable = not os.statvfs(path).f_flag & os.ST_RDONLY
    return is_writable, "the file system of {} is {}".format(
        path, "writable" if is_writable else "read-only"
    )


def _filled(path):
    is_filled = bool(os.listdir(path))
    return is_filled, "{} is {}empty".format(path, "not " if is_filled else "")


def _file_filled(path):
    now = os.stat(path)
    is_filled = stat.S_ISREG(now.st_mode) and now.st_size > 0
    return is_filled, "{} is {}".format(
        path, "a file with content" if is_filled else "empty or no file"
    )


def executable(path):
    """Return (whether the path is an executable file, what was seen)."""
    now = os.stat(path)
    is_executable = stat.S_ISREG(now.st_mode) and bool(now.st_mode & 0o111)
    return is_executable, "{} is {}".format(
        path, "executable" if is_executable else "not an executable file"
    )


TESTS = {
    "PathExists": _exists,
    "PathIsDirectory": directory,
    "PathIsSymbolicLink": _link,
    "PathIsMountPoint": _mount,
    "PathIsReadWrite": _writable,
    "DirectoryNotEmpty": _filled,
    "FileNotEmpty": _file_filled,
    "FileIsExecutable": executable,
}


def _place(written, key, value):
    """Return (path, line) of the last line that sets this; (None, None) without such a line."""
    for _dummy, other, text, path, line in reversed(written):
        if other == key and value in (text, text.strip('"'), text.replace(" ", "")):
            return path, line
    return None, None
