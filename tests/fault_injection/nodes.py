# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of step that changes a node, on a node of files and stand-ins that outlive it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import boot
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    etcd_client,
    kubelet_restart,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    cpu_manager_reset,
    kernel_module,
    service_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command, procfs
from tests.fault_injection import services
from tests.fault_injection.effects import OURS
from tests.unit.plugins.module_utils.steps.handlers import (
    test_certificate_load,
    test_certificate_renewal,
    test_cpu_manager_reset,
    test_kernel_module,
    test_kernel_setting,
    test_login_limit,
    test_networkd_routes,
    test_package_hold,
    test_pinning_probe,
    test_scheduler_restart,
    test_service_limit,
    test_service_start,
    test_service_unmask,
    test_swap_off,
)
from tests.unit.support import child_process, fake_etcd, fake_step

Step = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """One kind of step: a node with a plan for it, the steps for its state, and the state."""

    make: Callable[[Path, pytest.MonkeyPatch], contextlib.AbstractContextManager[Any]]
    steps: Callable[[Any], list[Step]]
    state: Callable[[Any], Any]
    kinds: tuple[str, ...]  # the remedies that this is about
    # the one file that it writes, where it writes one
    target: Callable[[Any], Path | None] = lambda node: None
    slow: bool = False
    # a step of a plan, with a run's parameters
    do: Callable[[dict[str, Any]], dict[str, Any]] = step_executor.work


def tree(*paths: Path) -> dict[str, Any]:
    """Return every file under these with bytes, mode and links, and folders by their names."""
    found: dict[str, Any] = {}
    for top in paths:
        for path in (
            sorted([top, *top.rglob("*")]) if top.is_dir() and not top.is_symlink() else [top]
        ):
            if path.is_symlink():
                found[str(path)] = ("link", str(path.readlink()))
            elif path.is_dir():
                found[str(path)] = "folder"
            elif path.is_file():
                found[str(path)] = (
                    path.read_bytes(),
                    stat.S_IMODE(path.stat().st_mode),
                    path.stat().st_nlink,
                )
    return found


def plain(
    module: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> contextlib.AbstractContextManager[Any]:
    """Return the node of a module's own tests, unchanged."""
    return contextlib.nullcontext(module.Node(path, monkeypatch))


def of(module: Any) -> Callable[[Path, pytest.MonkeyPatch], contextlib.AbstractContextManager[Any]]:
    return lambda path, monkeypatch: plain(module, path, monkeypatch)


def effect(what: str) -> None:
    """Announce that a stand-in changes its world now."""
    sys.audit(OURS, what)


# --- settings, modules and limits: one file of ours, and the kernel or a process


class Modules(test_kernel_module.Node):
    """Its kernel is a file."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernel = path / "modules.json"
        self.kernel.write_text(
            json.dumps({test_kernel_module.NAME: boot.ABSENT, "overlay": boot.BUILTIN})
        )
        super().__init__(path, monkeypatch)
        monkeypatch.setattr(
            kernel_module.LoadKernelModule,
            "states",
            staticmethod(lambda: json.loads(self.kernel.read_text())),
        )
        monkeypatch.setattr(command, "complaint", self._modprobe)

    def _modprobe(self, argv: list[str], _seconds: float) -> str:
        effect("modprobe")
        text = json.dumps({**json.loads(self.kernel.read_text()), argv[1]: boot.LOADED})
        fresh = self.kernel.with_name("modules.new")
        fresh.write_text(text)
        fresh.rename(self.kernel)
        return ""


class Packages(test_package_hold.Node):
    """Its apt-mark is there as well when who asked it is gone."""

    def apt_mark(self, argv: list[str], seconds: float) -> str:
        effect("apt-mark " + argv[1])
        apart(lambda: test_package_hold.Node.apt_mark(self, argv, seconds))
        effect("answer")
        return ""


@contextlib.contextmanager
def _limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with subprocess.Popen(
        ["/bin/sh", "-c", "ulimit -S -n 20; ulimit -H -n 60; echo x; exec sleep 600"],
        stdout=subprocess.PIPE,
    ) as begun:
        assert begun.stdout
        begun.stdout.readline()
        try:
            yield test_service_limit.Node(path, monkeypatch, begun.pid)
        finally:
            begun.kill()


# --- the kubelet and its managers


@contextlib.contextmanager
def _stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    node = test_service_start.Node(path, monkeypatch)
    monkeypatch.setattr(service_start, "STABLE", 0.05)
    yield node


def apart(action: Callable[[], None]) -> None:
    """Run what systemd, the kubelet or a service do: it is not kubemend's, and never cut off."""
    os.waitpid(child_process.fork(action), 0)


class Outliving:
    """A kubelet that outlives the process that started it.

    Its state, and what it was asked, is a file.
    """

    world: Path

    @staticmethod
    def alone(monkeypatch: pytest.MonkeyPatch) -> None:
        """Hide other processes of this machine, which are no part of the node."""
        monkeypatch.setattr(procfs, "of_interest", lambda *dummy: [])

    def _put(self, **changes: Any) -> None:
        fresh = self.world.with_name("kubelet.new")
        fresh.write_text(json.dumps({**json.loads(self.world.read_text()), **changes}))
        fresh.rename(self.world)

    @property
    def pid(self) -> int:
        return int(json.loads(self.world.read_text()).get("pid", 0))

    @pid.setter
    def pid(self, value: int) -> None:
        self._put(pid=value)

    @property
    def argv(self) -> list[str]:
        return list(json.loads(self.world.read_text()).get("argv", []))

    @argv.setter
    def argv(self, value: list[str]) -> None:
        self._put(argv=value)

    @property
    def commands(self) -> list[str]:
        return list(json.loads(self.world.read_text()).get("commands", []))

    @commands.setter
    def commands(self, value: list[str]) -> None:
        self._put(commands=value)

    def _systemctl(self, *words: str) -> None:
        effect("systemctl " + words[0])
        apart(lambda: self.as_one(words[0]))

    def as_one(self, word: str) -> None:
        raise NotImplementedError


class Managers(Outliving, test_cpu_manager_reset.Node):
    """A node whose kubelet outlives the process that started it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = path / "kubelet.json"
        self.world.write_text("{}")
        super().__init__(path, monkeypatch)
        self.alone(monkeypatch)
        monkeypatch.setattr(kubelet_restart, "SECONDS", 1.5)
        for name in ("STOPPING", "WRITTEN"):
            monkeypatch.setattr(cpu_manager_reset, name, 1.5)
        self.start()

    def as_one(self, word: str) -> None:
        self.commands = [*self.commands, word]
        if word == "stop":
            self.pid = 0
        if word == "restart":
            self.start()

    def steps(self) -> list[Step]:
        """Return the steps for a kubelet that its state keeps down: former policy, drain, reset.

        One that runs under the new one is done.
        """
        if self.pid and self.policies()[0] == self.policy and not self.lent():
            return []
        return ([] if self.pid else [self.lend()]) + [self.reset()]

    def state_of(self) -> Any:
        return [
            self.policies(),
            self.lent(),
            bool(self.pid),
            self.argv,
            sorted(path.name for path in self.path.iterdir() if path.name != "kubemend"),
        ]


class Leader(test_scheduler_restart.Node):
    """Whether its scheduler was ended is a file."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mark = folder / "ended"
        super().__init__(folder, monkeypatch)

    holder = property(  # type: ignore[assignment]
        lambda self: self.takes if self.ended else "m1_a", lambda self, value: None
    )
    running = property(  # type: ignore[assignment]
        lambda self: [test_scheduler_restart.NEW if self.ended else test_scheduler_restart.FORMER],
        lambda self, value: None,
    )
    ended = property(  # type: ignore[assignment]
        lambda self: [10] if self.mark.exists() else [], lambda self, value: None
    )

    def end(self, instance: Any) -> None:
        effect("SIGTERM")
        self.mark.touch()

    def steps(self) -> list[Step]:
        told = {
            "kind": "restart_leader",
            "lock": test_scheduler_restart.LOCK,
            "holder": "m1_a",
            "node": "m1",
            "pods": [["shop", "agent-x", "m3"]],
            "cluster_uid": "ks",
        }
        return (
            []
            if self.ended
            else [
                {
                    "id": test_scheduler_restart.STEP,
                    "host": "m1",
                    "remedy": "restart_leader",
                    "change": told,
                    "expect": {"component": "kube-scheduler", "restart": "signal", "pid": None},
                    "guard": {"allow": []},
                }
            ]
        )


def _pinned(node: Any) -> list[Step]:
    return [
        {
            "id": "04-pinned",
            "host": "w1",
            "remedy": "pinned_pod",
            "change": {"path": str(node.file), "whole_cores": False, "state": str(node.state)},
        }
    ]


# --- certificates of the control plane


def _renewed(
    *names: str,
) -> Callable[[Path, pytest.MonkeyPatch], contextlib.AbstractContextManager[Any]]:
    return lambda path, monkeypatch: contextlib.nullcontext(
        test_certificate_renewal.Node(path, monkeypatch, names)
    )


def _renewal(node: Any) -> list[Step]:
    left = node.left()
    return [node.step(left)] if left else []


class Loaders(test_certificate_load.Node):
    """Components whose kubelet starts them again, also when who ended them is gone."""

    def end(self, instance: Any) -> None:
        effect("SIGTERM")
        apart(lambda: test_certificate_load.Node.end(self, instance))

    def steps(self) -> list[Step]:
        left = [name for name, number in self.numbers().items() if number == 1]
        return [self.step(*left)] if left else []


# --- swap


def _fstab(node: Any) -> list[Step]:
    data = node.fstab.read_bytes()
    if data != test_swap_off.FSTAB:
        return []
    return [
        {
            "id": "01-swap",
            "host": "w1",
            "remedy": "swap_persistence",
            "change": {
                "path": str(node.fstab),
                "sha256": hashlib.sha256(data).hexdigest(),
                "splices": [[9, 9, "", "IyBrdWJlbWVuZDog"]],
            },
        }
    ]


def _swap_unit(node: Any) -> list[Step]:
    path = node.path / "system" / "dev-sda2.swap"
    return (
        []
        if path.exists()
        else [
            {
                "id": "02-mask",
                "host": "w1",
                "remedy": "swap_persistence",
                "change": {"path": str(path), "sha256": None, "splices": []},
            }
        ]
    )


def _swapoff(node: Any) -> list[Step]:
    config = [
        {"path": str(node.config), "sha256": hashlib.sha256(b"failSwapOn: true\n").hexdigest()}
    ]
    return [
        {
            "id": "03-off",
            "host": "w1",
            "remedy": "swap_off",
            "change": {"path": "/swapfile", "config": config, "seconds": 5},
        }
    ]


# --- etcd: members that answer, each request an effect


@contextlib.contextmanager
def _etcd(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with fake_etcd.made(path, monkeypatch) as node:
        ask, connected = etcd_client.Client.ask, etcd_client.Client._connected

        def told(client: Any, question: str, *args: Any, **more: Any) -> Any:
            answer = ask(client, question, *args, **more)
            effect(f"answered {question}")
            return answer

        def begun(client: Any, seconds: float) -> Any:
            effect("request")
            return connected(client, seconds)

        monkeypatch.setattr(etcd_client.Client, "ask", told)
        monkeypatch.setattr(etcd_client.Client, "_connected", begun)
        yield node


@contextlib.contextmanager
def _small(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with _etcd(path, monkeypatch) as node:
        for member in node.cluster.members:
            member.size = member.used = fake_etcd.MIB
        yield node


@contextlib.contextmanager
def _compacted(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with _etcd(path, monkeypatch) as node:
        for member in node.cluster.members:
            member.used = fake_etcd.MIB
        yield node


def _snapshots(node: Any) -> list[bytes]:
    """Return the content of each complete snapshot that there is, once."""
    folder = node.root / "etcd-snapshots"
    paths = sorted(folder.glob("[!.]*")) if folder.exists() else []
    return sorted({path.read_bytes() for path in paths})


def _while(kind: str, is_needed: Callable[[Any], bool]) -> Callable[[Any], list[Step]]:
    """Return the steps of a plan: one of this kind where the evidence calls for it."""
    return lambda node: [node.step(kind)] if is_needed(node) else []


# --- static pods: a kubelet and a scheduler that really run


@contextlib.contextmanager
def _static(_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with fake_step.made(monkeypatch) as node:
        yield node


@contextlib.contextmanager
def _stray(_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with fake_step.made(monkeypatch) as node:
        (node.folder / "kube-scheduler.yaml.bak").write_bytes(node.manifest.read_bytes())
        yield node


@contextlib.contextmanager
def _configured(_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with fake_step.made(monkeypatch) as node:
        node.configure()
        yield node


def _manifest(node: Any) -> list[Step]:
    return [node.step()] if b"--leader-elect=false" in node.manifest.read_bytes() else []


def _config(node: Any) -> list[Step]:
    return [node.config_step()] if b"false" in node.config.read_bytes() else []


def _move_out(node: Any) -> list[Step]:
    stray = node.folder / "kube-scheduler.yaml.bak"
    if not stray.exists():
        return []
    step = node.step(remedy="move_out", target=str(stray))
    step["change"] = {
        "kind": "move_out",
        "path": str(stray),
        "sha256": hashlib.sha256(stray.read_bytes()).hexdigest(),
        "splices": [],
    }
    step["expect"].update(restart=None, elect=False, flags={})
    return [step]


def _scheduler(node: Any) -> Any:
    """Without what each such node has of its own: its folder and its ports."""
    node.wait_healthy()
    state = repr(
        [
            tree(node.folder),
            node.config.read_bytes(),
            [sorted(one.argv[1:]) for one in node.running()],
        ]
    )
    return re.sub(r"--port=[0-9]+", "--port", state.replace(str(node.path), ""))


SCENES: dict[str, Scene] = {
    "kernel setting": Scene(
        of(test_kernel_setting),
        lambda node: [
            node.step({test_kernel_setting.KEY: 8192, test_kernel_setting.OTHER: 2097152})
        ],
        lambda node: [tree(node.path.parent), node.value(), node.value(test_kernel_setting.OTHER)],
        ("kernel_setting",),
        lambda node: node.path,
    ),
    "kernel setting where it stands": Scene(
        lambda path, monkeypatch: contextlib.nullcontext(
            test_kernel_setting.Foreign(path, monkeypatch)
        ),
        lambda node: [node.step()],
        lambda node: [tree(node.path.parent), node.value()],
        ("kernel_setting",),
        lambda node: node.path,
    ),
    "kernel module": Scene(
        lambda path, monkeypatch: contextlib.nullcontext(Modules(path, monkeypatch)),
        lambda node: [node.step()],
        lambda node: [tree(node.path.parent), json.loads(node.kernel.read_text())],
        ("kernel_module",),
        lambda node: node.path,
    ),
    "limits of logins": Scene(
        of(test_login_limit),
        lambda node: [node.step()],
        lambda node: tree(node.path.parent),
        ("file_limit",),
        lambda node: node.path,
    ),
    "routes of others": Scene(
        of(test_networkd_routes),
        lambda node: [node.step()],
        lambda node: tree(node.etc),
        ("networkd_routes",),
        lambda node: node.path,
    ),
    "packages on hold": Scene(
        lambda path, monkeypatch: contextlib.nullcontext(Packages(path, monkeypatch)),
        lambda node: [node.step()],
        lambda node: node.held(),
        ("hold_packages",),
    ),
    "limit of a unit": Scene(
        _limited,
        lambda node: [node.step()],
        lambda node: [tree(node.folder), node.has()],
        ("unit_limit",),
        lambda node: node.path,
    ),
    "limit of a unit with its restart": Scene(
        lambda path, monkeypatch: services.service(path, monkeypatch, apart),
        services.Service.steps,
        services.Service.state,
        ("unit_limit",),
        lambda node: node.path,
    ),
    "fstab": Scene(
        of(test_swap_off),
        _fstab,
        lambda node: [tree(node.fstab), node.called],
        ("swap_persistence",),
        lambda node: node.fstab,
    ),
    "swap unit": Scene(
        of(test_swap_off),
        _swap_unit,
        lambda node: tree(node.path / "system"),
        ("swap_persistence",),
        lambda node: node.path / "system" / "dev-sda2.swap",
    ),
    "swapoff": Scene(
        of(test_swap_off), _swapoff, lambda node: (node.proc / "swaps").read_text(), ("swap_off",)
    ),
    "kubelet enabled": Scene(
        _stopped,
        lambda node: [] if node.get("enabled") == "enabled" else [node.step("enable_kubelet")],
        lambda node: [node.get("enabled"), node.get("active")],
        ("enable_kubelet", "enable_runtime"),
    ),
    "kubelet started": Scene(
        _stopped,
        lambda node: [] if node.get("active") == "active" else [node.step("start_kubelet")],
        lambda node: [node.get("enabled"), node.get("active")],
        ("start_kubelet", "start_runtime"),
    ),
    "kubelet unmasked": Scene(
        of(test_service_unmask),
        lambda node: (
            [
                {
                    "id": "01-unmask",
                    "host": "w1",
                    "remedy": "unmask_kubelet",
                    "guard": {"allow": []},
                    "expect": {"component": "kubelet"},
                    "change": {
                        "kind": "unmask_kubelet",
                        "path": str(node.etc),
                        "unit": test_service_unmask.UNIT,
                        "to": "/dev/null",
                    },
                }
            ]
            if node.etc.is_symlink()
            else []
        ),
        lambda node: [tree(*node.folders), node.get("load")],
        ("unmask_kubelet",),
    ),
    "managers' state": Scene(
        lambda path, monkeypatch: contextlib.nullcontext(Managers(path, monkeypatch)),
        Managers.steps,
        Managers.state_of,
        ("start_former", "reset_state", "unlend"),
    ),
    "pinned pod": Scene(
        of(test_pinning_probe),
        _pinned,
        lambda node: [node.file.exists(), node.container()],
        ("pinned_pod",),
        lambda node: node.file,
    ),
    "leading scheduler": Scene(
        lambda path, monkeypatch: contextlib.nullcontext(Leader(path, monkeypatch)),
        Leader.steps,
        lambda node: [node.ended, node.holder],
        ("restart_leader",),
    ),
    "kubeconfig renewed": Scene(
        _renewed("admin.conf"),
        _renewal,
        lambda node: node.state(),
        ("renew_certificates",),
        lambda node: node.folder.parent / "admin.conf",
    ),
    "certificates renewed": Scene(
        _renewed("apiserver", "etcd-peer"),
        _renewal,
        lambda node: node.state(),
        ("renew_certificates",),
        lambda node: node.folder / "apiserver.crt",
    ),
    "certificates loaded": Scene(
        lambda path, monkeypatch: contextlib.nullcontext(Loaders(path, monkeypatch)),
        Loaders.steps,
        lambda node: node.numbers(),
        ("load_certificates",),
    ),
    "snapshot of etcd": Scene(
        _etcd,
        _while("etcd_snapshot", lambda node: True),
        _snapshots,
        ("etcd_snapshot",),
    ),
    "history of etcd": Scene(
        _etcd,
        _while("etcd_compact", lambda node: not node.cluster.compacted),
        lambda node: [node.cluster.compacted, [one.used for one in node.cluster.members]],
        ("etcd_compact",),
    ),
    "member of etcd": Scene(
        _compacted,
        _while("etcd_defragment", lambda node: node.member.size > fake_etcd.MIB),
        lambda node: [[one.size for one in node.cluster.members], node.cluster.leader],
        ("etcd_defragment",),
    ),
    "alarm of etcd": Scene(
        _small,
        _while("etcd_alarm", lambda node: node.cluster.full),
        lambda node: node.cluster.alarms,
        ("etcd_alarm",),
    ),
    "manifest": Scene(
        _static, _manifest, _scheduler, ("edit_manifest",), lambda node: node.manifest, True
    ),
    "configuration": Scene(
        _configured, _config, _scheduler, ("edit_config", "restart"), lambda node: node.config, True
    ),
    "stray manifest": Scene(
        _stray,
        _move_out,
        _scheduler,
        ("move_out",),
        lambda node: node.folder / "kube-scheduler.yaml.bak",
        True,
    ),
}
