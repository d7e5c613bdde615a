# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A trial start of the containerd of the disk, with the configuration of the disk.

It is the command line of its unit, in a private root (private_root.py): the root and the state of
the containerd that runs, its sockets, plugins of NRI and devices are not there. It is ended as soon
as it serves, or ended by itself, or at a time limit.
"""

import os
import re

from ..collectors.node import runtime
from ..system import command, files, procfs, runtime_files, systemd, toml_lines
from . import private_root

UNIT = "containerd.service"
SECONDS, STABLE = 20, 1.5  # until it serves; for how long it must go on then
BOOTED, LOADING = b"containerd successfully booted", "loading plugin"
UNLOADED, SKIPPED = "failed to load plugin", "skip loading plugin"
# The plugins that serve the CRI: of 1.x, and of 2.x.
CRI = ("io.containerd.grpc.v1.cri",)
ROOT, STATE, NRI = "/var/lib/containerd", "/run/containerd", "/opt/nri/plugins"
ALWAYS_HIDDEN = (ROOT, STATE, NRI, "/var/lib/kubelet", "/var/lib/kubemend")
# Programs, libraries, configuration: what has a file system of its own there is seen.
ALWAYS_SEEN = ("/etc", "/usr", "/opt", "/lib", "/lib64", "/bin", "/sbin")
KEPT_LINES, KEPT_FAILURES, LONGEST, MOST_PATHS = 8, 20, 600, 200
LEAST_FREE = 512 * 1024  # KiB of memory that has to be free: one containerd takes a tenth
# Where its parsers of TOML say that an error is: 1.x, and 2.x.
PLACE = re.compile(r"\((\d{1,6}), \d{1,6}\)|\bat row (\d{1,6})\b")
SERVED, ENDED, SILENT, REFUSED = "served", "ended", "silent", "refused"


def run(params):
    """Return {trial: {state, reason, path, program, lines, failures, cri, place}}.

    state: served; ended, by itself; silent, until the time limit; refused, where nothing was
    started. reason: why it was refused. lines: its last ones. failures: of plugins. cri: whether it
    began to load the plugin that serves the CRI. place: {path, line, key} of the setting that its
    last line names.
    """
    answer = {
        "state": REFUSED,
        "reason": "",
        "path": "",
        "program": "",
        "lines": [],
        "failures": [],
        "cri": None,
        "place": None,
    }
    try:
        _try(answer, params)
    except (private_root.RootError, command.CommandError, OSError) as error:
        answer["reason"] = files.one_line(error, 300)
    except ImportError as error:
        answer["reason"] = f"this Python lacks a module: {files.one_line(error, 200)}"
    return {"trial": answer}


def _try(answer, params):
    """Start it in a private root, and fill the answer."""
    if os.geteuid() != 0:
        raise private_root.RootError("it needs root")
    if memory_free() < LEAST_FREE:
        raise private_root.RootError("less than 512 MiB of memory are free")
    block = systemd.show(*runtime.question()[:2]).get(UNIT) or {}
    argv = systemd.command_line(block)
    path = runtime.config_of({UNIT: block})
    answer["path"] = files.one_line(path, 253)
    answer["program"] = files.one_line("".join(argv[:1]), 253)
    if not argv or os.path.basename(argv[0]) != "containerd":
        raise private_root.RootError(
            f"{UNIT} starts {files.one_line(' '.join(argv[:1]) or 'nothing', 80)}, not containerd"
        )
    plan = plan_of(argv, path, systemd.environment(block))
    with private_root.Folder(plan.place), private_root.Program(plan) as program:
        seconds = min(SECONDS, max(1, int(params.get("timeout") or 30) - 5))
        fill(answer, program, program.read(seconds, BOOTED))
    if answer["state"] == ENDED:
        answer["place"] = place_of("".join(answer["lines"][-1:]), runtime_files.configuration(path))


def fill(answer, program, is_booted):
    """Fill the answer from what the program printed."""
    if is_booted:
        program.read(STABLE)
    states = {(True, False): SERVED, (False, False): SILENT}
    answer["state"] = states.get((is_booted, program.has_ended), ENDED)
    lines = program.text.decode("utf-8", "replace").strip().split("\n")
    shown = [files.masked_ends(line, LONGEST) for line in lines if line.strip()]
    answer["lines"] = shown[-KEPT_LINES:]
    answer["failures"] = [line for line in shown if _is_failure(line)][-KEPT_FAILURES:]
    answer["cri"] = any(_loads_cri(line) for line in shown)


def place_of(line, texts):
    """Return {path, line, key} of the setting that a line names, None where it names none.

    Of several files the line has to name the one that it is about.
    """
    match, named = PLACE.search(line), [path for path in texts if path in line]
    paths = named if named or len(texts) > 1 else list(texts)
    if match is None or len(paths) != 1:
        return None
    number = int(match.group(1) or match.group(2))
    rows = [row for row in toml_lines.rows(texts[paths[0]]) if row[0] == number]
    key = ".".join((*rows[0][1], rows[0][2])) if rows else ""
    return {
        "path": files.one_line(paths[0], 253),
        "line": number,
        "key": files.one_line(key, 200),
    }


def _is_failure(line):
    return UNLOADED in line and "skip plugin" not in line


def _loads_cri(line):
    return LOADING in line and SKIPPED not in line and any(name in line for name in CRI)


def plan_of(argv, path, environment):
    """Return the plan of a private root for this command line of containerd."""
    texts = runtime_files.configuration(path)
    paths = _named_paths(texts)[:MOST_PATHS]
    named = {"root": procfs.flag(argv, "root"), "state": procfs.flag(argv, "state")}
    hidden = list(ALWAYS_HIDDEN) + [folder for folder in named.values() if folder]
    for text in texts.values():
        hidden += [folder for folder in _folders(text) if folder.startswith("/")]
    variables = {"PATH": command.PATH, "LC_ALL": "C"}
    variables.update(environment)
    variables.pop("NOTIFY_SOCKET", None)
    # what it logs is read: a level of its configuration may leave it out
    return private_root.Plan(
        [*argv, "--log-level", "info"],
        variables,
        list(texts),
        paths + _below(ALWAYS_SEEN),
        list(dict.fromkeys(hidden)),
    )


def _below(folders):
    """Return these folders, and the mount points below them."""
    rows = list(folders)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            point = line.split(" ")[4]
            if point.startswith(tuple(folder + "/" for folder in folders)):
                rows.append(point)
    return rows


def _named_paths(texts):
    """Return the absolute paths that a configuration names."""
    paths = []
    for text in texts.values():
        for _line, _table, _key, row in toml_lines.rows(text):
            paths += [value for value in toml_lines.texts(row) if value.startswith("/")]
    return paths


def _folders(text):
    """Return the folders of a configuration that a trial start must not see.

    Its root, its state, and those of NRI, whose plugins containerd starts.
    """
    folders = []
    for _line, table, key, value in toml_lines.rows(text):
        if _names_hidden("".join(table[-1:]), key):
            folders += toml_lines.texts(value)
    return folders


def _names_hidden(table, key):
    """Return whether a key of a table, an empty text for none, names such a folder."""
    if table:
        return table.endswith(".nri") and key == "plugin_path"
    return key in ("root", "state")


def memory_free(path="/proc/meminfo"):
    """Return the KiB of memory that are available."""
    with open(path, encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1])
    return 0
