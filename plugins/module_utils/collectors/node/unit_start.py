# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector unit_start: what systemd checks before it starts a unit.

systemd remembers the result of its last attempt. Most checks are of paths, so that this collector
examines them as they are now.
"""

import os
import stat
import time

from ...shared.systemd_output import KEPT, of_systemd, words
from ...system import command, files, systemd, unit_conditions, unit_mask
from ...system.command import CommandError
from ..base import Absent, Failed

HOW = ("Requires", "Requisite", "BindsTo")
PROPERTIES = (
    "Id",
    "LoadState",
    "LoadError",
    "ActiveState",
    "SubState",
    "Result",
    "ExecMainStatus",
    "ConditionResult",
    "ConditionTimestamp",
    "ConditionTimestampMonotonic",
    "AssertResult",
    "AssertTimestamp",
    "AssertTimestampMonotonic",
    "InactiveEnterTimestampMonotonic",
    "RefuseManualStart",
    "WorkingDirectory",
    "RootDirectory",
    "RootImage",
    "User",
    "Group",
    "DynamicUser",
    "EnvironmentFiles",
    "ExecStart",
    "ExecStartPre",
    "FragmentPath",
    "DropInPaths",
    "After",
    *HOW,
)
RUNS = ("active", "reloading")
UNITS, DEPTH, PATHS, FILES, PREDECESSORS = 8, 3, 20, 40, 60
LINES, READ_BYTES, LONGEST = 80, 128 * 1024, 300
# Where the drop-ins of a unit lie whose own file a mask hides.
DROPINS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)


def collect(context):
    """Return {units}: the facts of those units of a node that do not run.

    They are the units of the kubelet, of the runtime, and of the control plane's components.
    """
    names = [
        unit["name"]
        for unit in _units(context.data)
        if unit.get("name") and not unit.get("absent") and unit.get("active_state") not in RUNS
    ]
    names = list(dict.fromkeys(names))  # k3s.service runs a kubelet and the control plane
    if not names:
        raise Absent("each unit of the kubelet, its runtime and components runs, or there is none")
    try:
        return {"units": every(names, context.seconds(6))}
    except CommandError as error:
        raise Failed(str(error)) from error


def _units(data):
    """Return the units that other collectors read."""
    kubelet = (data.get("kubelet") or {}).get("unit") or {}
    collected = [
        (data.get(name) or {}).get("units") or [] for name in ("runtime", "component_units")
    ]
    return [kubelet, *collected[0], *collected[1]]


def every(names, seconds=6):
    """Return the facts of these units, and with the units that they need at most UNITS."""
    end, budget = time.monotonic() + seconds, [UNITS]
    blocks = systemd.show(names, PROPERTIES, _left(end))
    return [_facts(blocks[name], end, budget, DEPTH) for name in names if name in blocks]


def _left(end):
    return max(0.2, min(3.0, end - time.monotonic()))


def _facts(block, end, budget, depth):
    """Return systemd's state of a unit, what it checks at a start, and the units that it needs."""

    def value_of(name):
        return block.get(name, [""])[0]

    budget[0] -= 1
    name = value_of("Id")
    assignments = settings(_files(block, name))
    masked = value_of("LoadState") == "masked"
    if masked:
        block = dict(block, **_behind(assignments))
    checks, source = unit_conditions.checks(name, assignments, _left(end), not masked)
    return {
        "name": name,
        "load_state": value_of("LoadState"),
        "load_error": _message(value_of("LoadError")),
        "active_state": value_of("ActiveState"),
        "sub_state": value_of("SubState"),
        "result": value_of("Result"),
        "exec_main_status": _number(value_of("ExecMainStatus")),
        "manual_start": value_of("RefuseManualStart") != "yes",
        "condition_result": _tested(value_of, "Condition"),
        "condition_at": value_of("ConditionTimestamp"),
        "assert_result": _tested(value_of, "Assert"),
        "assert_at": value_of("AssertTimestamp"),
        "ended_at": moment(_number(value_of("InactiveEnterTimestampMonotonic"))),
        "checks": checks,
        "checks_from": source,
        "paths": paths(block, assignments),
        "needs": _needs(block, assignments, end, budget, depth),
        "said": systemd_lines(name, _left(end)),
        "after": _words_of(block, "After")[:PREDECESSORS],
        "fragment_path": value_of("FragmentPath")[:255] or None,
        "hidden": hidden(name, value_of("FragmentPath")),
    }


def hidden(name, fragment, folders=DROPINS):
    """Return the other files of a unit's name, in folders that systemd reads after that of its own.

    Links are left out that lead to its own file, to a mask, or from a folder that is a link.
    """
    folder = os.path.dirname(fragment)
    fragment = os.path.realpath(fragment)
    if folder not in folders or not os.path.isfile(fragment):  # a mask is no file
        return []
    paths = {}
    for later in folders[folders.index(folder) + 1 :]:
        path = os.path.join(later, name)
        real = os.path.realpath(path)
        if os.path.isfile(real) and real != fragment:
            paths.setdefault(real, path)
    return sorted(paths.values())[:PATHS]


def _tested(value_of, check):
    """Return the result of a check; None where systemd has not made it since the boot.

    systemd shows `no` then too.
    """
    if not _number(value_of(check + "TimestampMonotonic")):
        return None
    return value_of(check + "Result") == "yes"


def moment(microseconds):
    """Return seconds since the epoch of a moment of the monotonic clock; None without one."""
    if microseconds:
        return round(time.time() - time.monotonic() + microseconds / 1e6, 1)
    return None


def _number(value):
    if value.isdecimal() and len(value) <= 20:
        return int(value)
    return None


def _message(value):
    """Return the sentence of LoadError, behind the name of the error."""
    parts = words(value)
    if parts and parts[-1]:
        return files.one_line(parts[-1], LONGEST)
    return ""


# -- the units that it needs ----------------------------------------------------------------------


def _needs(block, assignments, end, budget, depth):
    """Return the facts of the needed units that do not run.

    how: the setting that needs the unit; path, line: where that setting is.
    """
    predecessors = _words_of(block, "After")
    needs = sorted((name, setting) for setting in HOW for name in _words_of(block, setting))
    if not needs or depth == 0:
        return []
    stopped = _blocks_of_stopped(sorted({name for name, _how in needs}), end)
    rows = []
    for name, setting in needs:
        if name in stopped and budget[0] > 0 and time.monotonic() < end:
            facts = _facts(stopped[name], end, budget, depth - 1)
            path, line = _line_of(assignments, setting, name)
            rows.append(
                dict(facts, how=setting, ordered=name in predecessors, path=path, line=line)
            )
    return rows


def _blocks_of_stopped(names, end):
    """Return {name: block} of those of these units that do not run; {} without an answer."""
    try:
        blocks = systemd.show(names, PROPERTIES, _left(end))
    except CommandError:
        return {}
    return {
        name: block
        for name, block in blocks.items()
        if block and block.get("ActiveState", [""])[0] not in RUNS
    }


def _words_of(block, key):
    return " ".join(block.get(key, [])).split()


def _line_of(assignments, key, word):
    """Return (path, line) of the last line of this key with this word, or (None, None)."""
    for _dummy, setting, text, path, line in reversed(assignments):
        if setting == key and word in text.split():
            return path, line
    return None, None


# -- paths, user and group ------------------------------------------------------------------------


def paths(block, written=()):
    """Return [{setting, name, state, changed_at, path, line}] of what the unit's start needs.

    state: ok, missing, no_directory, no_file, not_executable, or why it is not known; ended:
    the exit status of a program that ended.
    """

    def value_of(name):
        return block.get(name, [""])[0]

    rows = []
    if not value_of("RootDirectory") and not value_of("RootImage"):
        place = value_of("WorkingDirectory")
        if place.startswith("/"):  # neither ~, nor optional (!/path, of old ones -/path)
            rows.append(
                _path("WorkingDirectory", place, unit_conditions.directory, "no_directory", written)
            )
        for key in ("ExecStartPre", "ExecStart"):
            rows += [
                dict(
                    _path(key, name, unit_conditions.executable, "not_executable", written),
                    ended=ended,
                )
                for name, ended in _programs(block, key)
            ]
    rows += [
        _path("EnvironmentFile", name, _file, "no_file", written) for name in _environment(block)
    ]
    if value_of("DynamicUser") != "yes":
        rows += [
            dict(
                _place_of(written, key, value_of(key)),
                setting=key,
                name=value_of(key),
                state=_account(key, value_of(key)),
                changed_at=None,
            )
            for key in ("User", "Group")
            if value_of(key)
        ]
    return rows[:PATHS]


def _file(path):
    is_file = not stat.S_ISDIR(os.stat(path).st_mode)
    return is_file, ""


def _programs(block, key):
    """Return [(path, exit status)] of the unit's programs whose failure is not ignored.

    The status is None of a program that did not exit. A row of `systemctl show` has
    `code=exited ; status=1`, and in systemd 219 `status=1/FAILURE`.
    """
    programs = []
    for value in block.get(key, []):
        path = value.partition("path=")[2].partition(" ; ")[0]
        code, _dummy, rest = value.rpartition(" ; status=")
        status = rest.split(" ")[0].partition("/")[0]
        if path.startswith("/") and "ignore_errors=yes" not in value:
            programs.append((path, _number(status) if code.endswith("code=exited") else None))
    return programs


def _environment(block):
    """Return the files of EnvironmentFile= that must exist.

    A pattern among them stays a pattern.
    """
    env_files = []
    for value in block.get("EnvironmentFiles", []):
        path, mark, rest = value.rpartition(" (ignore_errors=")
        if mark and rest.startswith("no"):
            env_files.append(path)
    return env_files


def _path(setting, name, test, wrong, written):
    """Return the state of one path, with the time when it, or what it links to, was changed."""
    state, changed = "ok", None
    try:
        if any(char in name for char in "*?["):
            if unit_conditions.matches(name)[0]:
                state = "ok"
            else:
                state = "missing"
        else:
            changed = round(os.stat(name).st_ctime, 1)
            if test(name)[0]:
                state = "ok"
            else:
                state = wrong
    except OSError as error:
        state = files.reason(error)
    return dict(
        _place_of(written, setting, name),
        setting=setting,
        name=files.one_line(name, LONGEST),
        state=state,
        changed_at=changed,
    )


def _account(key, name):
    """Return ok where this user or group exists, else missing."""
    if name.isdecimal():
        return "ok"
    try:
        if key == "User":
            import pwd

            pwd.getpwnam(name)
        else:
            import grp

            grp.getgrnam(name)
    except KeyError:
        return "missing"
    return "ok"


# -- its files ------------------------------------------------------------------------------------


def _files(block, name):
    """Return the files of the unit in the order in which they count.

    For a masked unit they are the files behind the mask.
    """
    if block.get("LoadState", [""])[0] == "masked":
        behind = unit_mask.facts(name)["file"]
        return ([behind] if behind else []) + _dropins(name)
    return block.get("FragmentPath", []) + [
        path for value in block.get("DropInPaths", []) for path in words(value)
    ]


def _dropins(name):
    """Return the drop-ins of a unit by their name; the first folder counts for equal names."""
    dropins = {}
    for folder in DROPINS[::-1]:
        base = os.path.join(folder, name + ".d")
        try:
            dropins.update(
                (entry, os.path.join(base, entry))
                for entry in os.listdir(base)
                if entry.endswith(".conf")
            )
        except OSError:
            continue
    return [dropins[entry] for entry in sorted(dropins)]


def _behind(written):
    """Return the properties of a unit that it has without its mask.

    Their form is that of `systemctl show`.
    """
    properties = {key: [] for key in (*HOW, "After", "EnvironmentFiles", "ExecStart")}
    for _dummy, setting, value, _dummy_path, _dummy_line in written:
        key = {"EnvironmentFile": "EnvironmentFiles"}.get(setting, setting)
        if key in properties and not value:
            properties[key] = []
        elif key in properties:
            properties[key].append(_as_shown(key, value))
        elif key in ("WorkingDirectory", "User", "Group", "RootDirectory", "RootImage"):
            properties[key] = [value]
    # A specifier stands for what only systemd knows.
    plain = {key: [value for value in properties[key] if "%" not in value] for key in properties}
    return {key: values for key, values in plain.items() if values}


def _as_shown(key, value):
    """Return the value of a setting as `systemctl show` prints it."""
    optional = "no"
    if value.startswith("-"):
        optional = "yes"
    if key == "EnvironmentFiles":
        return "{} (ignore_errors={})".format(value.lstrip("-"), optional)
    if key == "ExecStart":
        program = value.lstrip("-@:+!|").split(" ")[0]
        return f"path={program} ; ignore_errors={optional}"
    return value


def settings(places):
    """Return [(section, key, value, path, line)] of these files, in their order."""
    rows = []
    for path in [place for place in places if place][:FILES]:
        section = ""
        for number, line in systemd.joined(files.text(path) or ""):
            if line.startswith("["):
                section = line
            elif "=" in line:
                key, _dummy, value = line.partition("=")
                rows.append((section, key.strip(), value.strip(), path, number))
    return rows


def _place_of(written, key, name):
    """Return {path, line} of the last line that sets the value.

    The line may have prefixes before it, and further words behind it (arguments of a program).
    """
    for _dummy, other, text, path, line in reversed(written):
        words = text.lstrip("-@:+!|").split()
        if other == key and words and words[0].strip('"') == name:
            return {"path": path, "line": line}
    return {"path": None, "line": None}


# -- its journal ----------------------------------------------------------------------------------


def systemd_lines(name, seconds, kept=KEPT, matches=()):
    """Return the last lines of systemd about this unit in this boot, oldest first.

    The list is empty where the journal has none. matches: fields of the journal that it asks for.
    """
    argv = [
        "journalctl",
        "--no-pager",
        "--all",
        "-q",
        "-b",
        "-r",
        "-o",
        "short-iso",
        "-n",
        str(LINES),
        "-u",
        name,
        *matches,
    ]
    try:
        text = command.run(argv, seconds, READ_BYTES)
    except (CommandError, OSError):
        return []
    lines = [line for line in text.split("\n")[::-1] if of_systemd(line)]
    return [files.masked_line(line, LONGEST) for line in lines[-kept:]]
