# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's properties of a unit, and the command line that it would start."""

import contextlib
import re

from ..shared.systemd_output import parse, words
from . import command, files

PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "Result",
    "MainPID",
    "NeedDaemonReload",
    "NRestarts",
    "ExecMainStatus",
    "FragmentPath",
    "DropInPaths",
    "ExecStart",
    "Environment",
    "EnvironmentFiles",
)
MAX_UNIT_FILE = 65536
UNPRINTABLE = "[unprintable]"
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_BYTES = re.compile(r"(?:\\x[0-9a-f]{2})+")


_told = {}  # (names, properties) of a question -> its answer, once that was learnt
_states = {}  # name -> what is-enabled says of it, once that was learnt


def show(names, properties=PROPERTIES, seconds=5):
    """Return {unit name: {property: [values]}} of these units, by one systemctl.

    An answer of learn() to exactly these units and properties is used instead.
    """
    answer = _told.get((tuple(names), tuple(properties)))
    if answer is None:
        return _shown(names, properties, seconds)
    return answer


def ask(questions, seconds=2):
    """Return answers for learn() to (names, properties, whether is-enabled is asked too).

    One or two calls of systemctl replace the separate calls of show() and enabled(). Where systemd
    does not answer within the time limit, there is no answer.
    """
    names = {name for question in questions for name in question[0]}
    properties = {name for question in questions for name in question[1]}
    blocks = _shown(sorted(names), sorted({*properties, "Names"}), seconds / 2.0)
    answers = [
        (tuple(names), tuple(properties), _answer(names, properties, blocks))
        for names, properties, _dummy in questions
    ]
    return answers, _states_by_files(questions, blocks, seconds / 3.0)


def _states_by_files(questions, blocks, seconds):
    """Return {name: state} of the units whose is-enabled is asked; {} where that is not known."""
    enableable = set()
    for names, _properties, is_enabled in questions:
        if is_enabled:
            enableable.update(names)
    present = sorted(name for name in enableable if name in blocks and unit(blocks[name]))
    lines = []
    if present:
        with contextlib.suppress(command.CommandError, OSError):
            text = command.run(["systemctl", "is-enabled", *present], seconds)
            lines = [line.strip() for line in text.splitlines()]
    if len(lines) != len(present):  # of a unit without a file it says nothing
        return {}
    return dict(zip(present, lines))


def _answer(names, properties, blocks):
    units = {}
    for name in names:
        for unit_name in sorted(blocks):
            block = blocks[unit_name]
            if _is(name, unit_name, block):
                units[unit_name] = {key: block[key] for key in properties if key in block}
    return units


def learn(answers):
    """Let show() and enabled() return these answers, in this process and its children.

    Only a short program may use this, because the answers do not change afterwards.
    """
    shown, states = answers
    _told.update(((names, properties), blocks) for names, properties, blocks in shown)
    _states.update(states)


def _is(requested_name, name, block):
    if requested_name.startswith("*"):
        return name.endswith(requested_name[1:])
    return requested_name == name or requested_name in block.get("Names", [""])[0].split()


def _shown(names, properties, seconds):
    # The root's mount unit is called -.mount, which systemctl takes for an option.
    if any(name.startswith("-") for name in names):
        end = ["--"]
    else:
        end = []
    text = command.run(
        ["systemctl", "show", "--no-pager", "-p", ",".join(properties), *end, *list(names)], seconds
    )
    return {block["Id"][0]: block for block in parse(text) if "Id" in block}


def enabled(name, seconds=5):
    """Return the state of a unit, by its present unit files.

    UnitFileState of `show` may be older: it does not change at an enable or disable without a
    reload.
    """
    return (
        _states.get(name)
        or command.run(["systemctl", "is-enabled", name], seconds).strip().partition("\n")[0]
    )


def unit(block):
    """Return the evidence of one unit; None when there is no such unit."""

    def first_value(name):
        return block.get(name, [""])[0]

    if first_value("LoadState") == "not-found" and first_value("ActiveState") in ("inactive", ""):
        return None
    return {
        "name": first_value("Id"),
        "load_state": first_value("LoadState"),
        "active_state": first_value("ActiveState"),
        "sub_state": first_value("SubState"),
        "unit_file_state": first_value("UnitFileState"),
        "result": first_value("Result"),
        "main_pid": _number(first_value("MainPID")),
        "need_daemon_reload": first_value("NeedDaemonReload") == "yes",
        "n_restarts": _number(first_value("NRestarts")),
        "exec_main_status": _number(first_value("ExecMainStatus")),
        "fragment_path": first_value("FragmentPath") or None,
        "drop_in_paths": [path for value in block.get("DropInPaths", []) for path in words(value)],
    }


def _number(value):
    if value.isdecimal() and len(value) <= 20:
        return int(value)
    return None


def start_words(block):
    """Return the words of ExecStart as they stand there; [] when the unit starts nothing."""
    starts = [value for value in block.get("ExecStart", []) if "argv[]=" in value]
    if starts:
        return words(starts[-1].split("argv[]=", 1)[1].split(" ; ", 1)[0])
    return []


def programs(paths):
    """Return [[path, program]] of the files of a unit that start one, in their order."""
    rows = []
    for path in paths:
        program = started_program(files.text(path, MAX_UNIT_FILE) or "")
        if program:
            rows.append([path, files.one_line(program, 200)])
    return rows


def started_program(text):
    """Return the program of the last ExecStart= of a unit's file; None without one."""
    program = None
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name.strip() == "ExecStart" and value.strip():
            # What precedes the path tells how it is started, and not what.
            program = value.split()[0].lstrip("@-:+!|").strip("\"'") or program
    return program


def split_variables(block):
    """Return the variables of ExecStart whose values are split into words, in their order.

    These are written as $NAME.
    """
    return [
        word[1:]
        for word in start_words(block)
        if word.startswith("$") and not word.startswith(("${", "$$"))
    ]


def variables(block):
    """Return the names of all variables of ExecStart: $NAME, ${NAME} and those within a word."""
    return {name for word in start_words(block) for name in _VARIABLE.findall(word)}


def values_of_others(data, used):
    """Return [[start, end]] of the values of unused variables, in the bytes of an EnvironmentFile.

    used: the names of the variables whose values are not in the list.
    """
    spans, position, hidden = [], 0, False
    for line in data.split(b"\n"):
        bare = line.strip()
        goes_on, start = position > 0 and data[: position - 1].endswith(b"\\"), 0
        if not goes_on:
            hidden = _assigns_other(bare, used)
            start = line.find(b"=") + 1
        end = len(line.rstrip())
        if line[:end].endswith(b"\\"):
            end = end - 1
        while start < end and line[start : start + 1] in b" \t":
            start += 1
        if hidden and start < end:
            spans.append([position + start, position + end])
        position += len(line) + 1
    return spans


def _assigns_other(line, used):
    """Return whether a line gives a value to a variable that is not among those used."""
    name, equal, _value = line.partition(b"=")
    if not equal or name[:1] in b"#;":
        return False
    return name.strip().decode("utf-8", "replace") not in used


def environment_paths(block):
    """Return the files of EnvironmentFiles=, in their order."""
    return [
        value.rpartition(" (ignore_errors=")[0] or value
        for value in block.get("EnvironmentFiles", [])
    ]


def command_line(block, read=files.text):
    """Return the argv of ExecStart, with variables replaced as systemd does.

    The list is empty when the unit starts nothing.
    """
    variables = environment(block, read)
    result = []
    for word in start_words(block):
        if word.startswith("$") and not word.startswith(("${", "$$")):
            result += words(variables.get(word[1:], ""))
        else:
            result.append(_expanded(word, variables))
    return result


def environment(block, read=files.text):
    """Return the variables of Environment= and of EnvironmentFiles=, in which a later one wins."""
    assignments = [word for value in block.get("Environment", []) for word in _assignments(value)]
    variables = {}
    for word in _written(block, read) if UNPRINTABLE in assignments else assignments:
        name, equal, text = word.partition("=")
        if equal:
            variables[name] = text
    for path in environment_paths(block):
        variables.update(environment_file(read(path) or ""))
    return variables


def _assignments(value):
    r"""Return the words of Environment=.

    systemd quotes a word with double quotes where it needs them. Older releases print a blank as
    \x20, and quotes unchanged.
    """
    if value.startswith('"') or ' "' in value:
        return words(value)
    return [
        _BYTES.sub(
            lambda match: bytearray.fromhex(match.group().replace("\\x", "")).decode(
                "utf-8", "replace"
            ),
            word,
        )
        for word in value.split()
    ]


def _written(block, read):
    """Return the words of Environment= in the unit's files.

    systemd of RHEL 8, and of 240 before it learned to quote, prints [unprintable] for a word that
    contains a blank.
    """
    assignments = []
    for path in block.get("FragmentPath", []) + [
        dropin for value in block.get("DropInPaths", []) for dropin in words(value)
    ]:
        for value in _environment_settings(read(path) or ""):
            if value.strip():
                assignments = assignments + words(value)
            else:
                assignments = []
    return assignments


def _environment_settings(text):
    """Return the values of Environment= in the section [Service] of a unit's file."""
    values, section = [], ""
    for _dummy, line in joined(text):
        name, equal, value = line.partition("=")
        if line.startswith("["):
            section = line
        if equal and section == "[Service]" and name.strip() == "Environment":
            values.append(value)
    return values


def joined(text, comments="#;"):
    """Return [(number of its first line, line)] without comments.

    A backslash at the end of a line continues it, even past a comment.
    """
    lines, begun, parts = [], 0, []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if line and line[0] in comments:
            continue
        begun = begun or number
        parts.append(line[:-1] if line.endswith("\\") else line)
        if not line.endswith("\\"):
            lines.append((begun, " ".join(parts).strip()))
            begun, parts = 0, []
    return lines + ([(begun, " ".join(parts).strip())] if parts else [])


def environment_file(text):
    """Return the assignments NAME=value as systemd reads them.

    The parser knows comments, quotes, and a backslash that continues a line.
    """
    variables = {}
    for line in text.replace("\\\n", "").splitlines():
        name, equal, value = line.strip().partition("=")
        if equal and name and name[0] not in "#;":
            value = value.strip()
            # Quotes around the whole are taken off; those within belong to the words that $NAME is
            # split into.
            if len(value) > 1 and value[0] in "\"'" and value.find(value[0], 1) == len(value) - 1:
                value = value[1:-1]
            variables[name.strip()] = value
    return variables


def _expanded(word, variables):
    begin = word.find("${")
    while begin >= 0:
        end = word.find("}", begin)
        if end < 0:
            break
        value = variables.get(word[begin + 2 : end], "")
        word = word[:begin] + value + word[end + 1 :]
        begin = word.find("${", begin + len(value))
    return word.replace("$$", "$")
