# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of a run: an inventory, the Nodes of a kubeconfig's cluster, or names."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import kubeconfig, nodes, playbooks
from .wrong_input import WrongInput, nearest, shown

# Names and addresses as an inventory has them, no option of ssh and no template.
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
_INVENTORY = "inventory.json"


@dataclass(frozen=True)
class Hosts:
    """How ansible-playbook learns of the hosts.

    Attributes:
        arguments: of ansible-playbook.
        words: that name the same hosts to this command, but for --limit.
    """

    arguments: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


@contextlib.contextmanager
def of(options: argparse.Namespace, names: Iterable[str]) -> Iterator[Hosts]:
    """Yield the hosts that the options and the names on the command line mean."""
    names = _names(names)
    if options.kubeconfig and options.inventory:
        raise WrongInput("-i and --kubeconfig exclude each other: each names all hosts")
    if options.context and not options.kubeconfig:
        raise WrongInput("--context names a context of --kubeconfig, which is not given")
    limit = _limit(options, names)
    if options.kubeconfig:
        with tempfile.TemporaryDirectory(prefix="kubemend-") as folder:
            yield _of_cluster(options, Path(folder) / _INVENTORY, names, limit)
    elif options.inventory:
        for path in options.inventory:
            _require_inventory(path)
        words = [word for path in options.inventory for word in ("-i", path)]
        yield Hosts([*words, *limit], words)
    elif names:
        words = ["-i", "".join(f"{name}," for name in names)]
        yield Hosts([*words, *limit], words)
    else:
        _require_default_inventory()
        yield Hosts(limit)


def _names(words: Iterable[str]) -> list[str]:
    names = [name for word in words for name in word.split(",") if name]
    for name in names:
        if Path(name).is_file():
            raise WrongInput(f"{shown(name)} is a file; an inventory is given as -i {shown(name)}")
        if not _HOST.fullmatch(name):
            raise WrongInput(f"{shown(name)} is no name of a host")
    return list(dict.fromkeys(names))


def _limit(options: argparse.Namespace, names: list[str]) -> list[str]:
    """Return the arguments that leave only these hosts of an inventory or of a cluster."""
    if not names or not (options.inventory or options.kubeconfig):
        return ["--limit", options.limit] if options.limit else []
    if options.limit:
        raise WrongInput(
            "--limit and names of hosts exclude each other where an inventory is given"
        )
    return ["--limit", ",".join(names)]


def _require_inventory(path: str) -> None:
    # "m1," is a list of hosts, not a file.
    if "," not in path and not Path(path).expanduser().exists():
        raise WrongInput(f"there is no inventory {shown(path)}")


def _require_default_inventory() -> None:
    """Raise WrongInput where Ansible's own settings name no inventory that exists."""
    sources = [str(source) for source in playbooks.ansible_settings().DEFAULT_HOST_LIST]
    if not any("," in source or Path(source).exists() for source in sources):
        raise WrongInput(
            "no host is named: give names of hosts, an inventory with -i, or a kubeconfig with"
            " --kubeconfig"
        )


def _near(name: str, known: list[str]) -> str:
    end = nearest(name, known)
    return end if end.startswith("the nearest") else f"it has {len(known)} of other names"


def _of_cluster(
    options: argparse.Namespace, path: Path, names: list[str], limit: list[str]
) -> Hosts:
    """Write an inventory of the Nodes of a cluster."""
    members = nodes.read(kubeconfig.read(options.kubeconfig, options.context))
    known = [node.name for node in members]
    for name in names:
        if name not in known:
            raise WrongInput(f"the cluster has no Node {shown(name)}; {_near(name, known)}")
    path.write_text(json.dumps(inventory(members), indent=1) + "\n", encoding="utf-8")
    words = ["--kubeconfig", options.kubeconfig]
    if options.context:
        words += ["--context", options.context]
    return Hosts(["-i", str(path), *limit], words)


def inventory(members: Iterable[nodes.Node]) -> dict[str, object]:
    """Return an inventory with the groups that the playbooks use."""
    groups: dict[str, dict[str, object]] = {"kube_control_plane": {}, "kube_node": {}}
    for node in members:
        group = "kube_control_plane" if node.control_plane else "kube_node"
        groups[group][node.name] = {"ansible_host": node.address}
    return {"all": {"children": {name: {"hosts": hosts} for name, hosts in groups.items()}}}
