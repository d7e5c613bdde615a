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
        told = [_by_bus(name, what, seconds) for what in ("Conditions", "Asserts")]
    else:
        told = []
    if told and None not in told:
        rows, source = told[0] + told[1], "busctl"
    else:
        rows, source = _by_files(written), "files"
    return [_check(row, written) for row in rows[:MAX]], source


def _by_bus(name, what, seconds):
    """Return [(type, trigger, negate, parameter, result)]; None where busctl has no answer."""
    argv = [
        "busctl",
        "--system",
        "get-property",
        "org.freedesktop.systemd1",
        OBJECT + label(name),
        "org.freedesktop.systemd1.Unit",
        what,
    ]
    try:
        return rows_of(command.run(argv, seconds))
    except (CommandError, OSError):
        return None


def label(name):
    """Return a unit's name as a part of an object's path."""
    found = ""
    for index, char in enumerate(name.encode("utf-8", "surrogateescape")):
        letter = chr(char)
        plain = char < 128 and (letter.isalpha() or (letter.isdigit() and index > 0))
        if plain:
            found += letter
        else:
            found += f"_{char:02x}"
    return found


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
    found = {"Condition": [], "Assert": []}
    for section, key, value, _dummy_path, _dummy_line in written:
        kind = next((kind for kind in found if section == "[Unit]" and key.startswith(kind)), None)
        if kind and not value:
            found[kind] = []
        elif kind:
            trigger = value.startswith("|")
            if trigger:
                bare = value[1:].strip()
            else:
                bare = value
            negate = bare.startswith("!")
            if negate:
                bare = bare[1:].strip()
            found[kind].append((key, trigger, negate, bare, None))
    return found["Condition"] + found["Assert"]


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
        holds, seen = (None, "")
    else:
        holds, seen = holds_now(bare, parameter)
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
        "seen": files.one_line(seen, LONGEST),
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

    found = next(glob.iglob(pattern), None)
    return found is not None, "" if found else f"nothing matches {pattern}"


def _exists(path):
    os.stat(path)
    return True, f"{path} exists"


def directory(path):
    """Return (whether the path is a directory, what was seen)."""
    found = stat.S_ISDIR(os.stat(path).st_mode)
    return found, "{} is {}a directory".format(path, "" if found else "not ")


def _link(path):
    found = stat.S_ISLNK(os.lstat(path).st_mode)
    return found, "{} is {}a symbolic link".format(path, "" if found else "not ")


def _mount(path):
    real = os.path.realpath(path)
    os.stat(real)
    found = os.path.ismount(real)
    return found, "{} is {}a mount point".format(path, "" if found else "not ")


def _writable(path):
    found = not os.statvfs(path).f_flag & os.ST_RDONLY
    return found, "the file system of {} is {}".format(path, "writable" if found else "read-only")


def _filled(path):
    found = bool(os.listdir(path))
    return found, "{} is {}empty".format(path, "not " if found else "")


def _file_filled(path):
    now = os.stat(path)
    found = stat.S_ISREG(now.st_mode) and now.st_size > 0
    return found, "{} is {}".format(path, "a file with content" if found else "empty or no file")


def executable(path):
    """Return (whether the path is an executable file, what was seen)."""
    now = os.stat(path)
    found = stat.S_ISREG(now.st_mode) and bool(now.st_mode & 0o111)
    return found, "{} is {}".format(path, "executable" if found else "not an executable file")


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
