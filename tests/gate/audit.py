# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""make audit: evaluate the bundled evidence, or audit an inventory, with our own ansible-core."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import sys

from tests.gate import machine, venvs

EXAMPLE = machine.ROOT / "examples" / "two-leaders"
# With an inventory, what the operator's environment says about reaching hosts
# counts. What it says about where code comes from and how plays run does not.
REACH = (
    "ANSIBLE_CONFIG",
    "ANSIBLE_HOST_KEY_CHECKING",
    "ANSIBLE_TIMEOUT",
    "ANSIBLE_FORKS",
    "ANSIBLE_PIPELINING",
    "ANSIBLE_NOCOLOR",
    "ANSIBLE_FORCE_COLOR",
    "ANSIBLE_PRIVATE_KEY_FILE",
    "ANSIBLE_ASK_PASS",
    "ANSIBLE_TRANSPORT",
)
REACH_PREFIXES = (
    "ANSIBLE_SSH_",
    "ANSIBLE_REMOTE_",
    "ANSIBLE_BECOME",
    "ANSIBLE_VAULT_",
    "ANSIBLE_SCP_",
    "ANSIBLE_SFTP_",
)


class BadInput(Exception):
    """The message is one sentence for the user."""


def playbook_arguments(inventory: str) -> list[str]:
    """Return the arguments of ansible-playbook."""
    if not inventory:
        evidence = json.dumps({"kubemend_evidence": str(EXAMPLE)})
        return [str(machine.ROOT / "playbooks" / "replay.yml"), "-e", evidence]
    # "m1," is a list of hosts, not a file.
    if "," not in inventory and not pathlib.Path(inventory).exists():
        raise BadInput(f"INVENTORY={inventory}: there is no such file or folder")
    return ["-i", inventory, str(machine.ROOT / "playbooks" / "audit.yml")]


def environment(inventory: str) -> dict[str, str]:
    env = machine.environment(ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()))
    if inventory:
        env.update(
            {
                key: value
                for key, value in os.environ.items()
                if key in REACH or key.startswith(REACH_PREFIXES)
            }
        )
    else:
        # Recorded evidence needs no settings, so the caller's ansible.cfg is
        # left out: what a fresh checkout shows is then the same for everybody.
        config = machine.VENV / "replay.cfg"
        config.write_text(
            "[defaults]\nlocalhost_warning = false\n[inventory]\ninventory_unparsed_warning ="
            " false\n",
            encoding="ascii",
        )
        env["ANSIBLE_CONFIG"] = str(config)
    # The pinned environment itself, not another Ansible of the caller's PATH.
    env["PATH"] = os.pathsep.join([str(machine.VENV / "audit" / "bin"), env["PATH"]])
    return env


def main() -> int:
    inventory = os.environ.get("INVENTORY", "")
    try:
        command = playbook_arguments(inventory) + shlex.split(os.environ.get("ARGS", ""))
        if not (machine.VENV / "audit" / "kubemend.stamp").exists():
            print("making .venv with the pinned ansible-core (once)", file=sys.stderr, flush=True)
        python = venvs.ensure("audit") / "bin" / "python"
    except (BadInput, venvs.Unavailable, ValueError) as problem:
        print(f"make audit: {problem}", file=sys.stderr)
        return 2
    # By the interpreter, not by bin/ansible-playbook: a long or spaced path
    # does not fit into the first line of a script.
    command = [str(python), "-m", "ansible", "playbook", *command]
    os.execve(command[0], command, environment(inventory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
