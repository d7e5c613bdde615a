# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to a node and back.

A stand-in for ssh plays the nodes that there are, in one run of ansible-playbook.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.action import node_evidence_info
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

# Plays ssh: the last argument is what the node's shell gets. FAKE_HOST is the host's address.
PLAYBOOK_FIXTURES = {"run"}
SSH = r"""#!/bin/bash
command="${@: -1}"
case " $* " in
  *" silent "*)
    cat >/dev/null
    echo "ssh: connect to host silent port 22: Connection timed out" >&2
    exit 255 ;;
  *" noisy "*) echo "Welcome! KUBEMEND-0000 {}"; echo "quota exceeded" >&2 ;;
  *" broken "*)
    [[ $command != *KUBEMEND-* ]] || cat >/dev/null
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
  *" liar "*)
    cat >/dev/null
    printf '%s' "$command" | grep -o 'KUBEMEND-[0-9a-f]*' | head -1 |
      sed 's/$/ {"collectors": "x", "host": "other"/' ;;
esac
exec /bin/sh -c "$command"
"""
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Ask
      kubemend.remediation.node_evidence_info:
        evidence_dir: "{{ folder }}/evidence"
        collectors: [system, installer]
        groups: [node]
        timeout: 90
"""
REMOTE = {
    "plain": {},
    "noisy": {},
    "silent": {},
    "broken": {},
    "bare": {},
    "huge": {},
    "liar": {},
    "named": {"ansible_python_interpreter": "{{ which }}", "which": sys.executable},
    "discovered": {"ansible_python_interpreter": "auto_silent"},
    "gone": {"ansible_python_interpreter": "/opt/none/bin/python3"},
    "plain_module": {
        "ansible_become": True,
        "ansible_become_method": "su",
        "ansible_become_exe": "{{ folder }}/su",
        "ansible_ssh_transfer_method": "piped",
        "ansible_python_interpreter": sys.executable,
    },
    # Become is on and cannot work: a node that is root already needs none of it, another one says
    # why.
    **{
        name: {
            "ansible_become": True,
            "ansible_become_exe": "{{ folder }}/none/sudo",
            "ansible_python_interpreter": sys.executable,
            **more,
        }
        for name, more in {
            "root_sudo": {},
            "root_password": {"ansible_become_password": "not-needed"},
            "root_auto": {"ansible_python_interpreter": "auto_silent"},
            "root_module": {
                "ansible_become_method": "su",
                "ansible_become_exe": "{{ folder }}/none/su",
                "ansible_ssh_transfer_method": "piped",
            },
            "root_as_ada": {"ansible_become_user": "ada"},
            "root_wanted": {"ansible_become_exe": "{{ folder }}/enter"},
            "ordinary_sudo": {},
            "ordinary_refused": {"ansible_become_exe": "{{ folder }}/refusing/sudo"},
            "ordinary_module": {
                "ansible_become_method": "su",
                "ansible_become_exe": "{{ folder }}/none/su",
                "ansible_ssh_transfer_method": "piped",
            },
        }.items()
    },
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("nodes")
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    (folder / "su").write_text(
        '#!/bin/bash\nwhile [ "$1" != -c ]; do shift; done\nexec /bin/sh -c "$2"\n'
    )
    (folder / "su").chmod(0o755)
    for name, text in {
        "root/id": "echo 0",
        "ordinary/id": "echo 1000",
        "enter": "exit 3",
        "refusing/sudo": "echo sudo: a password is required >&2; exit 1",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    hosts = {
        name: {
            "ansible_host": name.replace("_", "-"),
            "ansible_connection": "ssh",
            "ansible_ssh_executable": str(folder / "ssh"),
            **more,
        }
        for name, more in REMOTE.items()
    }
    hosts["here"] = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (folder / "inventory.json").write_text(
        json.dumps({"all": {"hosts": hosts, "vars": {"folder": str(folder)}}})
    )
    (folder / "play.yml").write_text(PLAY)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")
    }
    environment.update(
        HOME=str(folder),
        ANSIBLE_FORKS="6",
        ANSIBLE_HOST_KEY_CHECKING="0",
        ANSIBLE_LOCAL_TEMP=str(folder / "tmp"),
    )
    environment["ANSIBLE_COLLECTIONS_PATH"] = next(
        path for path in sys.path if Path(path, "ansible_collections", "kubemend").is_dir()
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ansible",
            "playbook",
            "-i",
            str(folder / "inventory.json"),
            "--check",
            str(folder / "play.yml"),
        ],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    found: dict[str, Any] = {
        "output": done.stdout + done.stderr,
        "rc": done.returncode,
        "folder": folder,
    }
    for path in (folder / "evidence").glob("*.json"):
        found[path.stem] = json.loads(path.read_text())
    return found


def test_every_host_is_a_result_and_no_failure(run: dict[str, Any]) -> None:
    assert run["rc"] == 0, run["output"]
    assert set(run) >= set(REMOTE) | {"here"}


@pytest.mark.parametrize(
    "host",
    [
        "plain",
        "noisy",
        "named",
        "discovered",
        "here",
        "plain_module",
        "root_sudo",
        "root_password",
        "root_auto",
        "root_module",
    ],
)
def test_a_node_that_answers(run: dict[str, Any], host: str) -> None:
    document = run[host]
    assert (document["status"], document["reason"], document["host"], document["groups"]) == (
        "ok",
        "",
        host,
        ["node"],
    )
    assert document["collectors"]["system"]["status"] == "ok"
    assert document["collectors"]["kubelet"]["status"] == "not_asked"


@pytest.mark.parametrize(
    ("host", "status", "reason"),
    [
        ("silent", "unreachable", "Connection timed out"),
        ("broken", "unreachable", "temporary directory"),
        ("broken", "unreachable", "cannot execute"),
        ("bare", "error", "no Python 3.6 or newer"),
        ("gone", "error", "/opt/none/bin/python3"),
        ("huge", "error", "too large"),
        ("liar", "error", "no JSON"),
        ("root_as_ada", "error", "none/sudo"),
        ("ordinary_sudo", "error", "none/sudo"),
        ("ordinary_refused", "error", "Missing sudo password"),
        ("ordinary_module", "error", "none/su"),
        ("root_wanted", "error", "json"),
    ],
)
def test_a_node_that_does_not(run: dict[str, Any], host: str, status: str, reason: str) -> None:
    document = run[host]
    assert document["status"] == status, document
    assert document["reason"], document
    assert reason in document["reason"], document
    assert document["collectors"] == {}
    assert document["host"] == host
    assert "\n" not in document["reason"]


def test_an_audit_ships_nothing_that_changes_a_node() -> None:
    sources = node_program._sources(
        "plugins.module_utils.collectors.runner", ("plugins.module_utils.collectors.node",)
    )
    names = {name.removeprefix(node_program.PACKAGE + "plugins.module_utils.") for name in sources}
    assert "collectors.node.journal" in names
    assert not [name for name in names if name.partition(".")[0] in ("steps", "capture")]


def test_the_program_carries_what_it_imports() -> None:
    sources = node_program._sources(
        "plugins.module_utils.collectors.runner", ("plugins.module_utils.collectors.node",)
    )
    names = {
        name.removeprefix(node_program.PACKAGE)
        for name, source in sources.items()
        if source is not None
    }
    assert {
        "plugins.module_utils.collectors.node.kubelet",
        "plugins.module_utils.system.files",
        "plugins.module_utils.shared.version",
    } <= names
    for name, source in sources.items():
        for node in ast.walk(ast.parse(source or "")):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = ".".join(name.split(".")[: -node.level])
                module = f"{base}.{node.module}" if node.module else base
                assert module in sources
                for one in node.names:
                    path = node_program.COLLECTION.joinpath(
                        *f"{module}.{one.name}".removeprefix(node_program.PACKAGE).split(".")
                    )
                    assert (
                        not path.with_suffix(".py").is_file() or f"{module}.{one.name}" in sources
                    ), f"{name} imports {one.name}"


def test_what_every_node_imports_is_little() -> None:
    """Import time is the price of every audit of every node."""
    program = node_program.build(
        "plugins.module_utils.collectors.runner:collect",
        ("plugins.module_utils.collectors.node",),
        {"collectors": ["installer"]},
        "MARK",
    )
    program = program.replace(
        b'sys.stdout.write("\\n" + _mark + " " + _answer() + "\\n")',
        b'_answer(); sys.stdout.write(" ".join(sorted(sys.modules)))',
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-"],
        input=program,
        capture_output=True,
        check=True,
        timeout=300,
    )
    costly = {
        "re",
        "json",
        "enum",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "http",
        "hashlib",
        "signal",
        "typing",
        "dataclasses",
    }
    assert not costly & set(done.stdout.decode().split())


def test_parameters_are_data_and_nothing_else() -> None:
    params = {"kubeconfig": "'\"\n);import os;os.abort()#\u00fc", "timeout": 3}
    head = (
        node_program.build("plugins.module_utils.shared.version:x", (), params, "MARK")
        .split(b"\nif ")[0]
        .decode("ascii")
    )
    assert ast.literal_eval(head.split(" = ", 1)[1])[2] == params


def test_the_body_is_made_once() -> None:
    arguments = (
        "plugins.module_utils.collectors.runner:collect",
        ("plugins.module_utils.collectors.node",),
    )
    assert node_program.body(*arguments) is node_program.body(*arguments)


class Answered(node_evidence_info.ActionModule):
    """The action with a node's answer, and no connection."""

    def __init__(self, folder: Path, collectors: dict[str, Any]) -> None:
        self.folder, self.collectors = folder, collectors
        self._play_context = SimpleNamespace(remote_addr="192.0.2.1")

    def _begun(
        self, tmp: Any, task_vars: Any, spec: Any
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]:
        return {}, {}, {"evidence_dir": str(self.folder), "groups": ["node"], "timeout": 5}, "w1"

    def _ask(self, host: str, params: Any, task_vars: Any) -> tuple[str, str, dict[str, Any]]:
        return "ok", "", {"collectors": self.collectors}


def _as_error(folder: Path, result: dict[str, Any], reason: str) -> None:
    document = json.loads((folder / "w1.json").read_text())
    assert (result["status"], result["role"], result["path"]) == (
        "error",
        "unknown",
        str(folder / "w1.json"),
    )
    assert reason in result["reason"]
    assert (document["status"], document["reason"], document["groups"]) == (
        "error",
        result["reason"],
        ["node"],
    )
    assert (document["address"], document["collectors"]) == ("192.0.2.1", {})
    assert document["asked_at"] <= document["received_at"]


@pytest.mark.parametrize("name", ["finalise", "accepted", "role_of"])
def test_whatever_goes_wrong_with_an_answer_is_an_error_of_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    class Unforeseen(Exception):
        pass

    whole = getattr(evidence_document, name)

    def breaks(document: dict[str, Any], *args: Any) -> Any:
        if document["collectors"]:
            raise Unforeseen("by\x1b chance")
        return whole(document, *args)

    monkeypatch.setattr(evidence_document, name, breaks)
    _as_error(
        tmp_path,
        Answered(tmp_path, {"system": {"status": "ok", "data": {}}}).run(),
        "Unforeseen: by chance",
    )


def test_the_result_says_what_was_written(tmp_path: Path) -> None:
    collectors = {
        "instances": {
            "status": "ok",
            "data": {
                "x": float("inf"),
                "processes": [
                    {"component": "kube-scheduler", "static": True, "host_network": True}
                ],
            },
        }
    }
    _as_error(tmp_path, Answered(tmp_path, collectors).run(), "a number without a value")
    del collectors["instances"]["data"]["x"]
    result = Answered(tmp_path, collectors).run()
    assert (
        result["status"],
        result["role"],
        json.loads((tmp_path / "w1.json").read_text())["status"],
    ) == ("ok", "control_plane", "ok")
