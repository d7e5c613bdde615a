# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory and the limit of the running ansible-playbook, as a command repeats them.

The command kubemend (command/) runs ansible-playbook, which its user may not have on the path: the
environment says so, and then a line names kubemend itself.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import constants, context

PLAYBOOK = "ansible-playbook"
COMMAND = "KUBEMEND_COMMAND"
COMMAND_HOSTS = "KUBEMEND_COMMAND_HOSTS"  # the words that name them, such as --kubeconfig FILE


def command(playbook: str, hosts: str, variables: str) -> str:
    """Return the command that runs a playbook of the collection.

    Args:
        playbook: its name.
        hosts: the options that name the hosts (options).
        variables: the options that follow.
    """
    program = os.environ.get(COMMAND)
    if program:
        return f"{program} {playbook}{hosts} {variables}"
    return f"{PLAYBOOK}{hosts} kubemend.remediation.{playbook} {variables}"


def revert(run_id: str) -> str:
    """Return the command that takes a run back, for the hosts of this run."""
    return command("revert", options(), f"-e kubemend_run_id={run_id}")


def parted(line: str) -> tuple[str, str]:
    """Return (text, command) of a line that may end with a command, which is not wrapped."""
    begin = f"{PLAYBOOK} "
    program = os.environ.get(COMMAND)
    if program:
        begin = f"{program} revert "
    text, command, arguments = line.partition(begin)
    return text, command + arguments


def explain() -> str:
    """Return the command that shows the page of a fault; empty where it is not in use."""
    program = os.environ.get(COMMAND)
    if program:
        return f"{program} explain"
    return ""


def options() -> str:
    """Return the options that name the hosts of this run, quoted for a shell.

    Without an inventory on the command line Ansible takes its default one, and so does the command.
    """
    arguments = context.CLIARGS
    words = os.environ.get(COMMAND_HOSTS)
    if words:
        return f" {words}{rendered({'subset': arguments.get('subset')}, (), '')}"
    return rendered(arguments, constants.DEFAULT_HOST_LIST, str(Path.cwd()))


def rendered(arguments: Mapping[str, Any], default: Any, folder: str) -> str:
    """Return -i and --limit of these arguments; paths below the folder are relative to it."""
    inventories = _listed(arguments.get("inventory"))
    if inventories == _listed(default):
        inventories = []
    words = []
    for inventory in inventories:
        words += ["-i", _relative(inventory, folder)]
    subset = str(arguments.get("subset") or "")
    if subset.startswith("-"):
        words.append(f"--limit={subset}")
    elif subset:
        words += ["--limit", subset]
    return "".join(f" {shlex.quote(word)}" for word in words)


def missing_inventory() -> str:
    """Return the first inventory of the command line that is no file and no folder, or ""."""
    paths = [path for path in _listed(context.CLIARGS.get("inventory")) if "," not in path]
    if paths == _listed(constants.DEFAULT_HOST_LIST):
        return ""
    return next((path for path in paths if not Path(path).exists()), "")


def _listed(value: Any) -> list[str]:
    if not value:
        return []
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value]


def _relative(inventory: str, folder: str) -> str:
    """Return a path as an operator types it; a list of hosts (with a comma) is none."""
    below = folder.rstrip("/") + "/"
    if "," in inventory or not inventory.startswith(below):
        return inventory
    relative = inventory[len(below) :]
    if relative.startswith("-"):  # or it reads as an option
        return f"./{relative}"
    return relative
