# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that an audit sends to a node: no module in them can change the node.

This looks at what the modules themselves do. Which commands they run is the collectors' tests'.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from ansible_collections.kubemend.remediation.plugins.action import (
    cluster_evidence_info,
    node_evidence_info,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

PACKAGE = node_program.PACKAGE + "plugins.module_utils."
AUDITS = {
    "node": node_evidence_info.ActionModule,
    "cluster": cluster_evidence_info.ActionModule,
}
# Functions of os that change a file or another process, and flags that open a file for writing.
OF_OS = {
    "O_APPEND", "O_CREAT", "O_RDWR", "O_TRUNC", "O_WRONLY",
    "chflags", "chmod", "chown", "fchmod", "fchown", "ftruncate", "kill", "killpg", "lchown",
    "link", "makedirs", "mkdir", "mkfifo", "mknod", "pwrite", "reboot", "remove", "removedirs",
    "removexattr", "rename", "renames", "replace", "rmdir", "sendfile", "setxattr", "symlink",
    "system", "truncate", "unlink", "utime", "write", "writev",
}  # fmt: skip
MODULES = {"shutil", "tempfile"}
# What the audit itself needs. Nothing of it touches a file or a process of the node.
OWN = {
    # its own commands: standard input is /dev/null, and a command is killed at its time limit
    "system.command": {"os.O_RDWR", "os.kill"},
    # its own processes, which end at their limits
    "collectors.runner": {"os.O_RDWR"},
    "collectors.channels": {"os.O_RDWR", "os.kill", "os.write"},
    # the pipe from the child that asks a mount, which may hang
    "collectors.node.hangs": {"os.write"},
    # a certificate, in a file that exists in memory only
    "system.tls": {"os.write"},
    # kubectl proxy, with its socket and log in a private temporary directory
    "kubeapi.proxy": {"shutil", "tempfile", "open for writing"},
}


def changes(source: str) -> Iterator[str]:
    """Yield each operation of a source that can change a node."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os" and node.attr in OF_OS:
                yield f"os.{node.attr}"
        elif isinstance(node, ast.Import):
            yield from MODULES.intersection(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from MODULES.intersection({node.module})
            yield from (f"os.{alias.name}" for alias in node.names if _is_change_of_os(node, alias))
        elif isinstance(node, ast.Call) and _opens_for_writing(node):
            yield "open for writing"


def _is_change_of_os(node: ast.ImportFrom, alias: ast.alias) -> bool:
    return node.module == "os" and alias.name in OF_OS


def _opens_for_writing(call: ast.Call) -> bool:
    """Tell whether a call is open(path, mode) or path.open(mode) with a mode that writes."""
    if isinstance(call.func, ast.Attribute):
        name, given = call.func.attr, call.args[:1]
    else:
        name, given = getattr(call.func, "id", ""), call.args[1:2]
    if name in ("write_text", "write_bytes", "touch"):
        return True
    given += [word.value for word in call.keywords if word.arg == "mode"]
    modes = [str(mode.value) for mode in given if isinstance(mode, ast.Constant)]
    return name in ("open", "fdopen") and any(set("wax+").intersection(mode) for mode in modes)


def shipped(audit: str) -> dict[str, str]:
    """Return {module: source} of the program of an audit."""
    action = AUDITS[audit]
    sources = node_program._sources(action.ENTRY.partition(":")[0], action.SHIP)
    return {name.removeprefix(PACKAGE): text for name, text in sources.items() if text}


@pytest.mark.parametrize("audit", AUDITS)
def test_no_module_can_change_the_node(audit: str) -> None:
    found = {name: set(changes(source)) for name, source in shipped(audit).items()}
    assert {
        name: more for name, what in found.items() if (more := what - OWN.get(name, set()))
    } == {}


@pytest.mark.parametrize("audit", AUDITS)
def test_no_module_of_repairs_is_shipped(audit: str) -> None:
    packages = {name.partition(".")[0] for name in shipped(audit)}
    assert "collectors" in packages
    assert not packages & {"changes", "steps", "capture"}


def test_each_operation_that_the_audit_needs_is_used() -> None:
    sources = {name: text for audit in AUDITS for name, text in shipped(audit).items()}
    assert [name for name, needed in OWN.items() if needed - set(changes(sources[name]))] == []


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.unlink(path)",
        "from os import rename",
        "import os\nfd = os.open(path, os.O_RDONLY | os.O_CREAT)",
        "import shutil",
        "from tempfile import mkdtemp",
        "open(path, 'w')",
        "open(path, mode='ab')",
        "path.open('x')",
        "path.write_text(text)",
        "import os\nos.kill(pid, 9)",
    ],
)
def test_each_kind_of_change_is_seen(source: str) -> None:
    assert list(changes(source))


def test_reading_is_no_change() -> None:
    source = "import os\nopen(path)\nopen(path, 'rb')\nos.open(path, os.O_RDONLY)\nos.read(fd, 1)"
    assert list(changes(source)) == []
