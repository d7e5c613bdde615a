# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The ssh inventory of a cluster, and variations of it."""

from __future__ import annotations

import json
from pathlib import Path

# What an operator gives a slow host: the processor of a virtual machine is emulated.
SLOW = {"kubemend_timeout": 120}
GROUPS = {"master": "kube_control_plane", "worker": "kube_node"}


def inventory(
    nodes, key: Path, prefix: str = "", leave_out=(), extra_vars: dict | None = None
) -> dict:
    """Prefix tells the hosts of two clusters apart.

    Leave_out drops hosts that the operator forgot.
    """
    groups = {group: {"hosts": {}} for group in GROUPS.values()}
    for node in nodes:
        if node.name not in leave_out:
            # Only *common* arguments: ansible_ssh_args would replace Ansible's own ControlPersist.
            groups[GROUPS[node.role]]["hosts"][f"{prefix}{node.name}"] = {
                "ansible_host": node.ip,
                "ansible_user": "root",
                "ansible_ssh_private_key_file": str(key),
                "ansible_ssh_common_args": (
                    "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
                    " -o ConnectTimeout=5 -o IdentitiesOnly=yes"
                ),
                **(SLOW if node.vm else {}),
                **(extra_vars or {}),
            }
    return {"all": {"children": groups}}


def merge(*inventories: dict) -> dict:
    """Return one inventory that holds several clusters."""
    groups = {group: {"hosts": {}} for group in GROUPS.values()}
    for one in inventories:
        for group, content in one["all"]["children"].items():
            groups[group]["hosts"].update(content["hosts"])
    return {"all": {"children": groups}}


def to_yaml(value, indent: int = 0) -> str:
    """Nested mappings of scalars: all that an inventory needs, without a dependency."""
    lines = []
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            lines.append(f"{' ' * indent}{key}:\n{to_yaml(inner, indent + 2)}")
        else:
            lines.append(f"{' ' * indent}{key}: {json.dumps(inner)}\n")
    return "".join(lines)


def write(path: Path, data: dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    temp = path.with_name(f".{path.name}.tmp")
    temp.write_text(to_yaml(data))
    temp.rename(path)
    return path
