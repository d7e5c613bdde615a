# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collector program on the oldest and the newest Python found here.

The same fixtures, the same results.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import (
    node_program,
    question,
)

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "node"
FLOOR = (3, 6)
ENTRY, SHIP = (
    "plugins.module_utils.collectors.runner:collect",
    ("plugins.module_utils.collectors.node",),
)
# Runs behind the same importer as on a node, with nothing but the standard library.
PARSE = """
import json
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_http, etcd, system
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import redaction as mask
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    files, procfs, systemd as unit, tls, yaml_scalars as kubeconfig
)

def parse(folder):
    def text(name):
        return files.text(folder + "/" + name)
    block = unit.parse(text("systemctl-show.txt"))[0]
    return [
        unit.unit(block), unit.command_line(block, lambda path: text("kubeadm-flags.env")),
        kubeconfig.os_release(text("os-release.txt")),
        kubeconfig.top(text("kubelet-config.yaml"), "staticPodPath"),
        system.ipv4(text("fib_trie.txt")),
        procfs.cgroup(text("cgroup-static-pod.txt")), procfs.cgroup(text("cgroup-kubelet.txt")),
        procfs.host_path("/etc/kubernetes/scheduler.conf", text("mountinfo-scheduler.txt"),
                         text("mountinfo-host.txt")),
        procfs.start_of(text("stat-scheduler.txt"), "1.0 1.0", 1e9, 100),
        etcd.members(text("etcd-members.json").encode("utf-8")),
        [[component_http.configz(200, text("configz-%d.json" % port).encode("utf-8")),
          component_http.metrics(200, text("metrics-%d.txt" % port).encode("utf-8")),
          component_http.has_check(text("healthz-%d.txt" % port))] for port in (10257, 10259)],
        files.record(folder + "/kubelet-config.yaml")["sha256"],
        mask.argv(["a", "--token", "abc", "--password=x y"]),
        tls.context().check_hostname,
    ]
"""


def _pythons() -> dict[tuple[int, ...], str]:
    """Return every Python 3 of this machine: on PATH, in /usr/bin, under pyenv."""
    folders = [
        *os.environ.get("PATH", "").split(os.pathsep),
        "/usr/bin",
        "/usr/libexec",
        "/usr/local/bin",
    ]
    versions = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser()) / "versions"
    folders += [str(path / "bin") for path in sorted(versions.glob("*"))]
    found: dict[tuple[int, ...], str] = {}
    for folder in dict.fromkeys(folders):
        if "shims" in folder or not Path(folder).is_dir():
            continue
        for path in sorted(Path(folder).iterdir()):
            if re.fullmatch(r"(python3(\.\d+)?|platform-python)", path.name):
                done = subprocess.run(
                    [str(path), "-I", "-S", "-c", "import sys; print(*sys.version_info[:2])"],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode == 0:
                    found.setdefault(tuple(int(part) for part in done.stdout.split()), str(path))
    return {version: path for version, path in found.items() if version >= FLOOR}


PYTHONS = _pythons()
ENDS = sorted({min(PYTHONS), max(PYTHONS)})


def _run(python: str, program: bytes, mark: str) -> object:
    done = subprocess.run(
        [python, "-I", "-S", "-"], input=program, capture_output=True, check=False, timeout=600
    )
    assert mark.encode() in done.stdout, done.stderr.decode()[-2000:]
    assert done.stderr == b""
    return json.loads(done.stdout.decode("ascii").split(mark + " ", 1)[1])


def _parse(python: str, version: str) -> object:
    program = node_program.build(ENTRY, SHIP, {}, "MARK").decode("ascii")
    # the importer as on a node, but then our function instead of the entry
    program = program.split('sys.stdout.write("\\n" + _mark + " " + _answer()')[0] + PARSE
    program += (
        f'\nsys.stdout.write("MARK " + json.dumps(parse({str(FIXTURES / version)!r}),'
        " sort_keys=True))\n"
    )
    return _run(python, program.encode("ascii"), "MARK")


@pytest.mark.parametrize("version", ["v1.18.4", "v1.36.3"])
@pytest.mark.parametrize("python", ENDS, ids=lambda version: "python{}.{}".format(*version))
def test_same_results(python: tuple[int, ...], version: str) -> None:
    assert _parse(PYTHONS[python], version) == _parse(sys.executable, version)


@pytest.mark.parametrize("python", ENDS, ids=lambda version: "python{}.{}".format(*version))
def test_the_program_itself(python: tuple[int, ...]) -> None:
    """As the action sends it, against this machine.

    Whatever runs here, every collector ends and says how.
    """
    document = _run(
        PYTHONS[python],
        node_program.build(ENTRY, SHIP, {"timeout": 20, "deep": True}, "MARK"),
        "MARK",
    )
    assert isinstance(document, dict)
    assert document["python"].startswith("{}.{}.".format(*python))
    assert {one["status"] for one in document["collectors"].values()} <= {
        "ok",
        "absent",
        "denied",
        "error",
    }
    assert document["collectors"]["system"]["status"] == "ok"
    assert not [
        one["error"]
        for one in document["collectors"].values()
        if re.match(r"[A-Z]\w+(Error|Exception)\b", one["error"] or "")
    ]


@pytest.mark.skipif(FLOOR not in PYTHONS, reason="Python 3.6 was not found on this machine")
def test_the_floor_itself_was_tried() -> None:
    assert FLOOR in ENDS


def test_a_python_below_the_floor_says_so() -> None:
    old = [
        str(path)
        for path in (
            Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser()) / "versions"
        ).glob("2.7*/bin/python2.7")
    ]
    if not old:
        pytest.skip("Python 2.7 was not found on this machine")
    program = node_program.build(ENTRY, SHIP, {}, "MARK")
    done = subprocess.run(
        [old[0], "-S", "-E", "-"], input=program, capture_output=True, check=False, timeout=600
    )
    assert done.stdout.decode().strip() == 'MARK {"python": "2.7"}'
    greeting = subprocess.run(
        [old[0], *question.FLAGS.split()],
        input=program,
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert "Unknown option: -I" in greeting.stderr.decode()
