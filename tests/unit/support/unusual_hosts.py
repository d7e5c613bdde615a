# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that each differ in one thing, with a stand-in for ssh, and plays that read them."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.unit.support.loopback_sshd import Server

# Plays ssh: the last argument is what the node's shell gets, one before it is the host's address.
SSH = r"""#!/bin/bash
command="${@: -1}"
echo "$*" >>"${0%/*}/calls"
case " $* " in
  *" silent "*)
    cat >/dev/null
    echo "ssh: connect to host silent port 22: Connection timed out" >&2
    exit 255 ;;
  *" wrong-key "*)
    echo "Permission denied (publickey)." >&2
    exit 255 ;;
  *" noisy "*) echo "Welcome! KUBEMEND-0000 {}"; echo "quota exceeded" >&2 ;;
  *" broken "*)
    cat >/dev/null
    echo "/bin/sh: cannot execute" >&2
    exit 126 ;;
  *" bare "*)
    cat >/dev/null
    command() { return 1; }
    export -f command
    exec /bin/bash -c "${command/#\/bin\/sh//bin/bash}" ;;
  *" root-"*) export PATH="${0%/*}/root:$PATH" ;;
  *" ordinary-"*) export PATH="${0%/*}/ordinary:$PATH" ;;
  *" huge "*) cat >/dev/null; exec head -c 80000000 /dev/zero ;;
  *" hang "*) echo >"${0%/*}/hanging-$$"; cat >/dev/null; exec sleep 6000 ;;
esac
exec /bin/sh -c "$command"
"""
PROGRAMS = {
    "ssh": SSH,
    "root/id": "#!/bin/sh\necho 0\n",
    "ordinary/id": "#!/bin/sh\necho 1000\n",
    "refusing/sudo": "#!/bin/sh\necho sudo: a password is required >&2; exit 1\n",
    "good/sudo": '#!/bin/bash\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n',
    "su": '#!/bin/bash\nwhile [ "$1" != -c ]; do shift; done\nexec /bin/sh -c "$2"\n',
}
# Behind an sshd, the stand-in for ssh plays the node: its address says which one.
NODE = """#!/bin/bash
connection=($SSH_CONNECTION)
exec "${0%/*}/ssh" "$(<"${0%/*}/at-${connection[2]}")" "$SSH_ORIGINAL_COMMAND"
"""
ADDRESSES = {
    name: f"127.0.1.{number}"
    for number, name in enumerate(
        (
            *("plain", "silent", "wrong-key", "noisy", "broken", "bare", "root-x", "ordinary-x"),
            *("huge", "hang"),
        ),
        1,
    )
}
AS_ROOT = {"ansible_host": "ordinary-x", "kubemend_become": True}
HOSTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "silent": {"ansible_host": "silent"},
    "wrong_key": {"ansible_host": "wrong-key"},
    "denied": {"ansible_ssh_private_key_file": "{{ folder }}/other"},
    "refused": {"ansible_port": "{{ closed_port | default(22) }}"},
    "noisy": {"ansible_host": "noisy"},
    "broken": {"ansible_host": "broken"},
    "bare": {"ansible_host": "bare", "ansible_python_interpreter": "auto_silent"},
    "hang": {"ansible_host": "hang"},
    "undefined": {"ansible_host": "{{ nothing }}"},
    "no_plugin": {"ansible_connection": "no.such.plugin"},
    "omitted": {"ansible_user": "{{ nothing | default(omit) }}"},
    "omitted_address": {"ansible_host": "{{ nothing | default(omit) }}"},
    "template": {"ansible_host": "{{ 'pl' ~ 'ain' }}"},
    "here": {"ansible_connection": "local"},
    "no_python": {"ansible_python_interpreter": "/opt/none/python3"},
    "sudo": {**AS_ROOT, "ansible_become_exe": "{{ folder }}/good/sudo"},
    "sudo_refuses": {**AS_ROOT, "ansible_become_exe": "{{ folder }}/refusing/sudo"},
    "sudo_missing": {**AS_ROOT, "ansible_become_exe": "{{ folder }}/none/sudo"},
    "sudo_password": {
        **AS_ROOT,
        "ansible_become_exe": "{{ folder }}/refusing/sudo",
        "ansible_become_password": "secret-of-sudo",
    },
    "root": {
        "ansible_host": "root-x",
        "kubemend_become": True,
        "ansible_become_exe": "{{ folder }}/none/sudo",
    },
    "su": {
        **AS_ROOT,
        "ansible_become_method": "su",
        "ansible_become_exe": "{{ folder }}/su",
        "ansible_ssh_transfer_method": "piped",
    },
    "no_become": {"kubemend_become": True, "ansible_become": False},
    "bad_become": {"kubemend_become": True, "ansible_become_method": "nosuch"},
    "no_pipelining": {"ansible_pipelining": False},
    "no_ssh": {"ansible_ssh_executable": "/opt/none/ssh"},
    "connection_password": {"ansible_password": "secret-of-connection"},
    "no_timeout": {"kubemend_timeout": "{{ nothing }}"},
}
TASK_PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - block:
        - name: Ask
          kubemend.remediation.node_evidence_info:
            evidence_dir: "{{ folder }}/task"
            collectors: [system]
            groups: [node]
            kubeconfig: "{{ kubemend_kubeconfig | default(omit) }}"
            timeout: "{{ kubemend_timeout | default(120) | int }}"
            terminal: false
          become: "{{ kubemend_become | default(true) | bool }}"
          register: _kubemend_asked
      rescue:
        - ansible.builtin.meta: clear_host_errors
    - name: Note
      ansible.builtin.copy:
        content: >-
          {{ dict(ansible_play_hosts_all | zip(ansible_play_hosts_all
             | map('extract', hostvars, ['_kubemend_asked']) | map(attribute='msg', default='')))
             | to_json }}
        dest: "{{ folder }}/messages.json"
        mode: "0600"
      delegate_to: localhost
      run_once: true
"""
FLEET_PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Ask
      kubemend.remediation.fleet_evidence_info:
        evidence_dir: "{{ folder }}/fleet"
        collectors: [system]
        transport: "{{ transport | default('ssh') }}"
        groups: "{{ dict(ansible_play_hosts_all | product([['node']])) }}"
      delegate_to: localhost
      run_once: true
      register: fleet
    - name: Note
      ansible.builtin.copy:
        content: "{{ fleet | to_json }}"
        dest: "{{ folder }}/fleet.json"
        mode: "0600"
      delegate_to: localhost
      run_once: true
"""


# Makes every host ready as the task does, and shows where a password is in what was made.
ACTION = """
import json
from ansible.plugins.action import ActionBase
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import hosts


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        names = task_vars["ansible_play_hosts"]
        fleet = hosts.Fleet(self, task_vars, {"groups": {}, "evidence_dir": "/tmp"})
        ready = [fleet.prepare(name) for name in names]
        secrets = {host.name: self.secrets(host) for host in ready}
        return {"changed": False, "secrets": secrets}

    def secrets(self, host):
        plugins = [host.connection, host.connection.become]
        values = [plugin.get_options() for plugin in plugins if plugin]
        for context in (host.connection._play_context, host.action._play_context):
            values.append([context.password, context.become_pass, context.become])
        values.append(host.action._task.dump_attrs())
        words = repr(values).replace("'", " ").replace('"', " ").split()
        return sorted({word for word in words if word.startswith("secret-of-")})
"""
READY_PLAY = """
- hosts: all:!localhost
  gather_facts: false
  tasks:
    - make_ready:
      delegate_to: localhost
      run_once: true
      register: ready
    - ansible.builtin.copy:
        content: "{{ ready.secrets | to_json }}"
        dest: "{{ folder }}/secrets.json"
        mode: "0600"
      delegate_to: localhost
      run_once: true
"""


def write(folder: Path, hosts: dict[str, dict[str, Any]]) -> None:
    """Write inventory, plays and programs into a folder."""
    for name, text in PROGRAMS.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    rows = {
        name: {
            "ansible_host": "plain",
            "ansible_connection": "ssh",
            "ansible_ssh_executable": str(folder / "ssh"),
            "ansible_python_interpreter": sys.executable,
            "kubemend_become": False,
            # A busy machine starts a program late: only a host that never answers has a short one.
            "kubemend_timeout": 5 if name == "hang" else 120,
            **more,
        }
        for name, more in hosts.items()
    }
    rows["localhost"] = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
    }
    (folder / "inventory.json").write_text(
        json.dumps({"all": {"hosts": rows, "vars": {"folder": str(folder)}}})
    )
    (folder / "action_plugins").mkdir()
    (folder / "action_plugins" / "make_ready.py").write_text(ACTION)
    (folder / "ready.yml").write_text(READY_PLAY)
    (folder / "task.yml").write_text(TASK_PLAY.replace("hosts: all", "hosts: all:!localhost"))
    (folder / "fleet.yml").write_text(FLEET_PLAY.replace("hosts: all", "hosts: all:!localhost"))


def behind(server: Server, hosts: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the same hosts behind an sshd, for a play that may use asyncssh."""
    folder = server.folder
    alias = f"Host omitted_address\n HostName {ADDRESSES['plain']}\n"
    (folder / "config").write_text(f"{alias}Host *\n UserKnownHostsFile /dev/null\n")
    (folder / "node").write_text(NODE)
    (folder / "node").chmod(0o755)
    for name, address in ADDRESSES.items():
        (folder / f"at-{address}").write_text(name)
    shared = {
        "ansible_port": server.port,
        "ansible_user": getpass.getuser(),
        "ansible_ssh_private_key_file": str(folder / "key"),
        "ansible_ssh_executable": "ssh",
        "ansible_ssh_args": f"-F {folder}/config -o ControlMaster=no",
        "closed_port": server.closed_port,
        "transport": "auto",
    }
    rows = {name: {"ansible_host": "plain", **shared, **more} for name, more in hosts.items()}
    if "broken" in rows:  # which never answers either
        rows["broken"]["kubemend_timeout"] = 5
    for row in rows.values():
        row["ansible_host"] = ADDRESSES.get(row["ansible_host"], row["ansible_host"])
        if row["ansible_host"].startswith("{{ 'pl'"):
            row["ansible_host"] = "{{ '127.0' ~ '.1.1' }}"
    return rows


def end_hanging(folder: Path) -> None:
    """End what still hangs behind an sshd, which does not end it."""
    for path in folder.glob("hanging-*"):
        pid = path.name.partition("-")[2]
        with contextlib.suppress(OSError):
            if b"6000" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)


def start(folder: Path, play: str, *args: str) -> subprocess.Popen[str]:
    """Start a play, in a session of its own."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")
    }
    environment.update(
        HOME=str(folder),
        ANSIBLE_FORKS="6",
        ANSIBLE_HOST_KEY_CHECKING="0",
        ANSIBLE_LOCAL_TEMP=str(folder / "tmp"),
        ANSIBLE_LOCALHOST_WARNING="0",
    )
    environment["ANSIBLE_COLLECTIONS_PATH"] = next(
        path for path in sys.path if Path(path, "ansible_collections", "kubemend").is_dir()
    )
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "ansible", "playbook", "-i", str(folder / "inventory.json")),
            *(str(folder / play), *args),
        ],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
