# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole cold run over 1, 20 and 100 hosts by ssh.

The audit from the command to its report, against what others need for next to nothing.

The hosts are so many names of one node, each with a connection of its own, from which nothing is
kept of the run before. What the others do: Ansible's ping and fact gathering, the same ping under
Mitogen, and pyinfra's `echo`.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.gate import machine, venvs
from tests.lab.cluster.clusters import Cluster

SIZES, FORKS = (1, 20, 100), 8
MANY = "/etc/ssh/sshd_config.d/00-bench.conf"


@dataclass(frozen=True)
class Cost:
    """What a command cost.

    seconds: seconds from the command to its end
    cpu: seconds of this machine's processors
    sent: bytes to the node, without its own traffic
    received: bytes from the node, without its own traffic
    """

    seconds: float
    cpu: float
    sent: int
    received: int


def main(k8s: str) -> None:
    if k8s not in Cluster.known():
        print(f"whole runs over ssh: skipped, no lab cluster {k8s} is up (make lab-up K8S={k8s})")
        return
    try:
        home = venvs.ensure("bench")
    except venvs.Unavailable as problem:
        print(f"whole runs over ssh: skipped, {problem}")
        return
    cluster = Cluster.find(k8s)
    worker = next(
        iter(
            yaml.safe_load(cluster.inventory.read_text(encoding="utf-8"))["all"]["children"][
                "kube_node"
            ]["hosts"].values()
        )
    )
    with _many_logins(cluster):
        _print(cluster, k8s, worker, home)


@contextlib.contextmanager
def _many_logins(cluster: Cluster) -> Iterator[None]:
    """Let sshd of the worker accept many logins: a hundred hosts would have as many sshd.

    One alone refuses at random from the tenth that has not logged in yet (MaxStartups).
    """
    cluster.exec("w1", f"echo 'MaxStartups 200' > {MANY} && systemctl reload ssh")
    try:
        yield
    finally:
        cluster.exec("w1", f"rm -f {MANY} && systemctl reload ssh", check=False)


def _print(cluster: Cluster, k8s: str, worker: Mapping[str, str], home: Path) -> None:
    idle = _idle(cluster)
    print(
        f"whole cold runs over ssh ({k8s}; {FORKS} at once; seconds, ratio to ping's, CPU seconds"
        " here, bytes for each host to and from it)"
    )
    for size in SIZES:
        with tempfile.TemporaryDirectory(prefix="kubemend-bench-", dir="/tmp") as folder:
            commands = _commands(Path(folder), worker, size, home)
            costs = {
                name: _run(command, env, cluster, idle) for name, (command, env) in commands.items()
            }
        for name, cost in costs.items():
            print(
                f"  {size:4} hosts, {name:18} {cost.seconds:6.1f} s"
                f" {cost.seconds / costs['ping'].seconds:5.2f}x  {cost.cpu:6.1f} s "
                f" {cost.sent // size:8} {cost.received // size:8}"
            )


def _bytes(cluster: Cluster) -> tuple[int, int]:
    """Return the bytes that the worker's interface has received and sent."""
    line = next(
        line
        for line in cluster.exec("w1", "cat /proc/net/dev").stdout.decode("ascii").splitlines()
        if line.strip().startswith("eth0:")
    )
    numbers = [int(word) for word in line.partition(":")[2].split()]
    return numbers[0], numbers[8]


def _idle(cluster: Cluster, seconds: float = 10.0) -> tuple[float, float]:
    """Return the bytes that the worker's kubelet and pods receive and send in a second."""
    before = _bytes(cluster)
    time.sleep(seconds)
    after = _bytes(cluster)
    return (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds


def _commands(
    folder: Path, worker: Mapping[str, str], size: int, home: Path
) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return each command with its environment. Every command makes its connections anew."""
    names = [f"w{number:03}" for number in range(size)]
    hosts = folder / "hosts.yml"
    hosts.write_text(
        yaml.safe_dump({"all": {"hosts": {name: dict(worker) for name in names}}}), encoding="utf-8"
    )
    play = folder / "ping.yml"
    play.write_text(
        yaml.safe_dump(
            [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {}}]}]
        ),
        encoding="utf-8",
    )
    facts = folder / "facts.yml"
    facts.write_text(
        yaml.safe_dump(
            [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.setup": {}}]}]
        ),
        encoding="utf-8",
    )
    deploy = folder / "inventory.py"
    deploy.write_text(
        f"hosts = [(name, {{'ssh_hostname': {worker['ansible_host']!r}, 'ssh_user':"
        f" {worker['ansible_user']!r}, 'ssh_key': {worker['ansible_ssh_private_key_file']!r},"
        " 'ssh_strict_host_key_checking': 'off', 'ssh_known_hosts_file': '/dev/null'}) for name"
        f" in {names!r}]\n",
        encoding="utf-8",
    )

    def environment(name: str, **more: str) -> dict[str, str]:
        (folder / name).mkdir()
        return machine.environment(
            ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()),
            ANSIBLE_SSH_CONTROL_PATH_DIR=str(folder / name),
            ANSIBLE_FORKS=str(FORKS),
            ANSIBLE_PIPELINING="True",
            ANSIBLE_HOST_KEY_CHECKING="False",
            **more,
        )

    playbook = str(Path(sys.executable).with_name("ansible-playbook"))
    strategy = (
        next(home.glob("lib/python*/site-packages")) / "ansible_mitogen" / "plugins" / "strategy"
    )
    mitogen = environment(
        "m", ANSIBLE_STRATEGY_PLUGINS=str(strategy), ANSIBLE_STRATEGY="mitogen_linear"
    )
    audit = [
        playbook,
        "-i",
        str(hosts),
        "kubemend.remediation.audit",
        "-e",
        f"kubemend_report_dir={folder / 'report'}",
        "-e",
        "kubemend_fail_on=never",
    ]
    return {
        "ping": ([playbook, "-i", str(hosts), str(play)], environment("p")),
        "gather_facts": ([playbook, "-i", str(hosts), str(facts)], environment("f")),
        "ping under Mitogen": (
            [str(home / "bin" / "ansible-playbook"), "-i", str(hosts), str(play)],
            mitogen,
        ),
        "pyinfra echo": (
            [
                str(home / "bin" / "pyinfra"),
                "-y",
                "--parallel",
                str(FORKS),
                str(deploy),
                "server.shell",
                "echo",
            ],
            environment("i"),
        ),
        "audit": (audit, environment("a")),
    }


def _run(
    command: list[str], env: dict[str, str], cluster: Cluster, idle: tuple[float, float]
) -> Cost:
    before, used, begin = (
        _bytes(cluster),
        resource.getrusage(resource.RUSAGE_CHILDREN),
        time.perf_counter(),
    )
    run = subprocess.run(
        command,
        env=env,
        cwd=Path(env["ANSIBLE_SSH_CONTROL_PATH_DIR"]).parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=900,
        check=False,
    )
    seconds, now, after = (
        time.perf_counter() - begin,
        resource.getrusage(resource.RUSAGE_CHILDREN),
        _bytes(cluster),
    )
    if run.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{run.stdout[-2000:]}")
    return Cost(
        seconds,
        now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime,
        *(
            max(0, round(late - early - rate * seconds))
            for early, late, rate in zip(before, after, idle, strict=True)
        ),
    )
