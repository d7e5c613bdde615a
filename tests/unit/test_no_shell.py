# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No shell reads what something else wrote.

Every program is started by its words, every task is a module with options.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_action

ROOT = Path(document.__file__).parents[3]
SHELLS = {
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "commands.getoutput",
    "pty.spawn",
    "asyncio.create_subprocess_shell",
}
EVAL = {
    "eval",
    "__import__",
    "pickle.loads",
    "pickle.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "shelve.open",
}
FREE = {"shell", "command", "raw", "script", "expect"}
# The one command line that goes through a shell, and the one import by name; both of our own words.
LOW_LEVEL, BY_NAME = (
    {"plugins/plugin_utils/transport/node_action.py"},
    {
        f"plugins/module_utils/{name}.py"
        for name in ("collectors/registry", "steps/registry", "steps/revert/registry")
    },
)
WORDS = {"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/env", "su", "sudo"}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def complaints(source: str, path: str) -> list[str]:
    """Return parts of this program that might give a shell words that are not its own."""
    found = []
    tree = ast.parse(source)
    for name, call in calls(tree):
        shell = next((one.value for one in call.keywords if one.arg == "shell"), None)
        if name in SHELLS or (
            shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False)
        ):
            found.append(f"{path}:{call.lineno}: {name} starts a shell")
        if name in EVAL - ({"__import__"} if path in BY_NAME else set()):
            found.append(f"{path}:{call.lineno}: {name}")
        if name.endswith("_low_level_execute_command") and path not in LOW_LEVEL:
            found.append(f"{path}:{call.lineno}: a command line of its own")
        if (
            name.endswith("run_command")
            and call.args
            and not isinstance(call.args[0], (ast.List, ast.Name))
        ):
            found.append(f"{path}:{call.lineno}: run_command of a text")
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) > 1:
            first, second = node.elts[:2]
            if (
                isinstance(first, ast.Constant)
                and first.value in WORDS
                and isinstance(second, ast.Constant)
                and second.value == "-c"
            ):
                found.append(f"{path}:{node.lineno}: a shell as a program")
    return found


def test_no_plugin_starts_a_shell() -> None:
    paths = sorted((ROOT / "plugins").rglob("*.py"))
    assert len(paths) > 100
    assert [
        line
        for path in paths
        for line in complaints(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    ] == []


@pytest.mark.parametrize(
    "source",
    [
        "os.system('x')",
        "subprocess.run(a, shell=True)",
        "subprocess.Popen(a, shell=b)",
        "eval(x)",
        "self._low_level_execute_command('rm %s' % name)",
        "module.run_command('kubectl get ' + name)",
        "run(['/bin/sh', '-c', text])",
        "pickle.loads(x)",
        "yaml.unsafe_load(x)",
    ],
)
def test_the_search_finds_what_it_looks_for(source: str) -> None:
    assert complaints(source, "plugins/x.py")


def test_the_one_command_line_is_made_of_our_own_words() -> None:
    """The mark is hexadecimal, the interpreter the operator's, the environment quoted by Ansible.

    The line has nothing of a node or of evidence.
    """
    tree = ast.parse(
        (ROOT / "plugins/plugin_utils/transport/question.py").read_text(encoding="utf-8")
    )
    command = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "command"
    )
    names = {
        node.id
        for node in ast.walk(command)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    } - {"str", "Any", "dict"}
    assert names == {
        "environment",
        "python",
        "FLAGS",
        "FIND",
        "mark",
        "find",
        "shlex",
    }
    assert node_action.node_program.mark().removeprefix("KUBEMEND-").isalnum()


def tasks(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from tasks(item)
    elif isinstance(value, dict):
        yield value
        for key in ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"):
            yield from tasks(value.get(key))


def test_no_playbook_and_no_role_has_a_free_command_line() -> None:
    paths = [
        *sorted((ROOT / "playbooks").rglob("*.yml")),
        *sorted((ROOT / "roles").rglob("tasks/*.yml")),
        *sorted((ROOT / "roles").rglob("handlers/*.yml")),
    ]
    assert len(paths) > 20
    found = []
    for path in paths:
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            words = {str(key).rpartition(".")[2] for key in task} | {
                str(task.get("action", "")).split(" ", maxsplit=1)[0].rpartition(".")[2]
            }
            found += [
                f"{path.relative_to(ROOT)}: {word} in {task.get('name')!r}" for word in words & FREE
            ]
    assert found == []
