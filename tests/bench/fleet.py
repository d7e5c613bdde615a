# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole cold run over 1, 20, 100 and 300 hosts by ssh: controllers and nodes apart.

Each host has a connection of its own, as real hosts have: names that share an address, a port and
a user would share one ControlPath, and be sessions of one connection. What the others do: Ansible's
ping, fact gathering, the same ping under Mitogen, and pyinfra's `echo`.

The far bed is an sshd of this machine whose node's Python is a stub, so that nodes cost nothing but
a login; the other bed is a node of the lab, which shares this machine's processors.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.bench import command_cost, far
from tests.gate import machine, venvs
from tests.lab.cluster.clusters import Cluster

SIZES = (1, 20, 100, 300)
FORKS, MANY_FORKS, DEFAULT_FORKS = 8, 32, 5
MANY = "/etc/ssh/sshd_config.d/00-bench.conf"
SIZES_VARIABLE = "KUBEMEND_BENCH_SIZES"  # "1,20", for a short look
COUNT_CPU = "awk '/^usage_usec/ {print $2}' /sys/fs/cgroup/cpu.stat"

Command = tuple[list[str], dict[str, str]]


def main(k8s: str) -> None:
    command_cost.adopt()
    try:
        home = venvs.ensure("bench")
    except venvs.Unavailable as problem:
        print(f"whole runs over ssh: skipped, {problem}")
        return
    _far(home)
    _here(k8s, home)


def _far(home: Path) -> None:
    program = far.sshd()
    if program is None:
        print("whole runs over ssh to far nodes: skipped, no sshd (package openssh-server)")
        return
    with far.opened(program) as bed:
        _print("far", bed.variables, bed.seconds, bed.process.pid, home)


def _here(k8s: str, home: Path) -> None:
    if k8s not in Cluster.known():
        print(f"whole runs over ssh: skipped, no lab cluster {k8s} is up (make lab-up K8S={k8s})")
        return
    cluster = Cluster.find(k8s)
    hosts = yaml.safe_load(cluster.inventory.read_text(encoding="utf-8"))["all"]["children"]
    worker = next(iter(hosts["kube_node"]["hosts"].values()))

    def seconds() -> float:
        return int(cluster.exec("w1", COUNT_CPU).stdout) / 1e6

    with _many_logins(cluster):
        _print(k8s, worker, seconds, 0, home)


@contextlib.contextmanager
def _many_logins(cluster: Cluster) -> Iterator[None]:
    """Let sshd of the worker accept many logins: a hundred hosts would have as many sshd.

    One alone refuses at random from the tenth that has not logged in yet (MaxStartups).
    """
    cluster.exec("w1", f"echo 'MaxStartups 400' > {MANY} && systemctl reload ssh")
    try:
        yield
    finally:
        cluster.exec("w1", f"rm -f {MANY} && systemctl reload ssh", check=False)


def _sizes() -> tuple[int, ...]:
    named = os.environ.get(SIZES_VARIABLE)
    if not named:
        return SIZES
    return tuple(int(word) for word in named.split(","))


def _print(
    bed: str, node: Mapping[str, Any], node_seconds: Callable[[], float], spared: int, home: Path
) -> None:
    print(
        f"whole cold runs over ssh ({bed}; {_client(node)}; seconds, ratio to ping's, CPU seconds"
        " of the controller, CPU seconds of the nodes)"
    )
    for size in _sizes():
        with tempfile.TemporaryDirectory(prefix="kubemend-bench-", dir="/tmp") as name:
            folder = Path(name)
            ping = 0.0
            for row, (command, env) in _commands(folder, node, size, home, bed).items():
                before = node_seconds()
                seconds, cpu = command_cost.run(command, env, folder, spared)
                ping = ping or seconds
                print(
                    f"  {size:4} hosts, {row:28} {seconds:6.1f} s {seconds / ping:5.2f}x "
                    f" {cpu:6.1f} s {node_seconds() - before:6.1f} s",
                    flush=True,
                )


def _client(node: Mapping[str, Any]) -> str:
    """Return the client's release and the key exchange that it agrees on with a node."""
    release = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False).stderr
    talk = subprocess.run(
        ["ssh", "-v", *_options(node), str(node["ansible_host"]), "true"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    ).stderr
    exchange = re.search(r"kex: algorithm: (\S+)", talk)
    return (
        f"{release.split(',')[0].strip()}, {exchange.group(1) if exchange else 'no key exchange'}"
    )


def _options(node: Mapping[str, Any]) -> list[str]:
    return [
        *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
        *("-p", str(node.get("ansible_port", 22)), "-l", str(node["ansible_user"])),
        *("-i", str(node["ansible_ssh_private_key_file"])),
    ]


def _commands(
    folder: Path, node: Mapping[str, Any], size: int, home: Path, bed: str
) -> dict[str, Command]:
    """Return each command with its environment. Every command makes its connections anew."""
    names = [f"w{number:03}" for number in range(size)]
    hosts = _inventory(folder, node, names)
    deploy = _pyinfra_inventory(folder, node, names)
    playbook = str(Path(sys.executable).with_name("ansible-playbook"))

    def environment(name: str, forks: int = FORKS, **more: str) -> dict[str, str]:
        (folder / name).mkdir()
        env = machine.environment(
            ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()),
            ANSIBLE_SSH_CONTROL_PATH_DIR=str(folder / name),
            ANSIBLE_FORKS=str(forks),
            ANSIBLE_PIPELINING="True",
            ANSIBLE_HOST_KEY_CHECKING="False",
            **more,
        )
        return {key: value for key, value in env.items() if not key.startswith("PYTHON")}

    def play(module: str) -> str:
        path = folder / f"{module}.yml"
        task = {f"ansible.builtin.{module}": {}}
        path.write_text(
            yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [task]}]),
            encoding="utf-8",
        )
        return str(path)

    def audit(name: str, *more: str, forks: int = FORKS) -> Command:
        words = [playbook, "-i", hosts, "kubemend.remediation.audit", *more]
        words += ["-e", f"kubemend_report_dir={folder / 'report' / name}"]
        return [*words, "-e", "kubemend_fail_on=never"], environment(name, forks)

    def pyinfra(name: str, parallel: int) -> Command:
        words = [str(home / "bin" / "pyinfra"), "-y", "--parallel", str(parallel), deploy]
        return [*words, "server.shell", "echo"], environment(name)

    rows: dict[str, Command] = {
        "ping": ([playbook, "-i", hosts, play("ping")], environment("ping"))
    }
    if bed != "far":  # the stub there knows no facts, and no Mitogen
        strategy = next(home.glob("lib/python*/site-packages")) / "ansible_mitogen/plugins/strategy"
        mitogen = environment(
            "m", ANSIBLE_STRATEGY_PLUGINS=str(strategy), ANSIBLE_STRATEGY="mitogen_linear"
        )
        rows["gather_facts"] = ([playbook, "-i", hosts, play("setup")], environment("f"))
        rows["ping under Mitogen"] = (
            [str(home / "bin" / "ansible-playbook"), "-i", hosts, play("ping")],
            mitogen,
        )
    return {
        **rows,
        f"pyinfra echo, {FORKS} at once": pyinfra("i", FORKS),
        f"pyinfra echo, {MANY_FORKS} at once": pyinfra("j", MANY_FORKS),
        f"audit, task, {DEFAULT_FORKS} forks": audit("d", forks=DEFAULT_FORKS),
        f"audit, task, {FORKS} forks": audit("t"),
        f"audit, task, {MANY_FORKS} forks": audit("u", forks=MANY_FORKS),
        "audit, one task, ssh": audit("a", "-e", "kubemend_transport=ssh"),
        "audit, one task, asyncssh": audit("y", "-e", "kubemend_transport=auto"),
    }


def _inventory(folder: Path, node: Mapping[str, Any], names: list[str]) -> str:
    """Write the inventory: each name has a connection of its own, and the first one the API."""
    own = {"ansible_control_path": "%(directory)s/{{ inventory_hostname }}"}
    rows = {name: {**node, **own} for name in names}
    groups = {
        "kube_control_plane": {"hosts": {name: rows[name] for name in names[:1]}},
        "kube_node": {"hosts": {name: rows[name] for name in names[1:]}},
    }
    path = folder / "hosts.yml"
    path.write_text(yaml.safe_dump({"all": {"children": groups}}), encoding="utf-8")
    return str(path)


def _pyinfra_inventory(folder: Path, node: Mapping[str, Any], names: list[str]) -> str:
    data = {
        "ssh_hostname": node["ansible_host"],
        "ssh_port": int(node.get("ansible_port", 22)),
        "ssh_user": node["ansible_user"],
        "ssh_key": node["ansible_ssh_private_key_file"],
        "ssh_strict_host_key_checking": "off",
        "ssh_known_hosts_file": "/dev/null",
    }
    path = folder / "inventory.py"
    path.write_text(f"hosts = [(name, {data!r}) for name in {names!r}]\n", encoding="utf-8")
    return str(path)
