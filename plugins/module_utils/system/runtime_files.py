# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration, as its next start reads it.

containerd itself is asked whether it can read its files: `config dump` reads them, prints them and
ends. What it prints may have passwords of registries, and stays here.
"""

import os

from . import command, files, toml_lines

MAX_TEXT, MAX_FILES, LONGEST, SECONDS = 256 * 1024, 20, 400, 5
SLACK = 1.0  # seconds: start times are told in hundredths, and by another clock than a file's
CONFIG_PATH, MIRRORS, CONFIGS = "config_path", "mirrors", "configs"


def containerd(path, program, started, was_replaced, seconds=lambda most: most):
    """Return {path, files, asked, error, conflicts} of containerd's configuration.

    files: [{path, newer}]: those that it reads, and whether they changed since its start;
    asked: whether the program on the disk was asked; error: why it refuses its files, or "";
    conflicts: [{path, line, key}]: settings of registries that its CRI refuses together.
    """
    texts = configuration(path)
    rows = [{"path": files.one_line(name, 253), "newer": _newer(name, started)} for name in texts]
    is_changed = was_replaced or any(row["newer"] for row in rows)
    answer = {
        "path": files.one_line(path, 253),
        "files": rows,
        "asked": False,
        "error": "",
        "conflicts": [],
    }
    if not os.path.lexists(path):
        return answer  # containerd then starts with its defaults
    if is_changed and not _can_ask(program, texts):
        answer["error"] = None
    elif is_changed:
        answer["error"] = refusal(program, path, seconds(SECONDS))
        answer["asked"] = answer["error"] is not None
        answer["conflicts"] = conflicts(texts)
    return answer


def _can_ask(program, texts):
    """Return whether this user may start the program, and it may read the files."""
    return os.access(program, os.X_OK) and all(os.access(path, os.R_OK) for path in texts)


def refusal(program, path, seconds):
    """Return why a program refuses these files, "" where it does not; None without an answer."""
    try:
        command.run([program, "--config", path, "config", "dump"], seconds, MAX_TEXT)
    except command.Silent as error:
        return files.masked_text(files.one_line(error.last_line or "it ended", LONGEST), LONGEST)
    except (command.CommandError, OSError):
        return None
    return ""


def conflicts(texts):
    """Return the settings that may not stand beside a config_path of registries.

    texts: {path: text} of all files, of which the CRI makes one configuration.
    """
    folders, excluded = [], []
    for path, text in texts.items():
        for line, table, key, value in toml_lines.rows(text):
            row = {"path": files.one_line(path, 253), "line": line, "key": _excluded(table)}
            if row["key"]:
                excluded.append(row)
            elif table[-1:] == ("registry",) and key == CONFIG_PATH and _is_set(value):
                folders.append(dict(row, key=CONFIG_PATH))
    if folders and excluded:
        return [folders[-1], *excluded][:MAX_FILES]
    return []


def _is_set(value):
    return any(toml_lines.texts(value))


def _excluded(table):
    """Return the name of a table that excludes a config_path, or an empty text."""
    if "registry" not in table:
        return ""
    if MIRRORS in table:
        return MIRRORS
    if CONFIGS in table and table[-1:] == ("tls",):
        return "configs.tls"
    return ""


def configuration(path):
    """Return {path: text} of a configuration and its imports, in their order."""
    texts = {path: files.text(path, MAX_TEXT) or ""}
    for pattern in _imports(texts[path]):
        full = os.path.join(os.path.dirname(path), pattern)
        for name in _matches(full)[:MAX_FILES]:
            texts.setdefault(name, files.text(name, MAX_TEXT) or "")
    return texts


def _imports(text):
    rows = toml_lines.rows(text)
    values = [value for _line, table, key, value in rows if not table and key == "imports"]
    return toml_lines.texts("".join(values[-1:]))[:MAX_FILES]


def _matches(pattern):
    import glob  # it brings re

    return sorted(glob.glob(pattern))


def _newer(path, started):
    """Return whether a file was changed after a process started, None where that is unknown.

    A package keeps the time of change that a file had where it was built; its inode is newer.
    """
    changed = files.ctime(path)
    if started is None or changed is None:
        return None
    return changed > started + SLACK
