# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pod_logs_info: both ways to a node, no text of the node in the result, early refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.action import pod_logs_info as action
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import log_merge
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

PLAYBOOK_FIXTURES = {"folder"}
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Read
      kubemend.remediation.pod_logs_info:
        evidence_dir: "{{ folder }}/capture"
        seconds_back: 60
        needles: [uid-1]
        timeout: 20
      register: done
    - name: Show
      ansible.builtin.copy:
        content: "{{ done | to_json }}"
        dest: "{{ folder }}/{{ inventory_hostname }}.result"
      delegate_to: localhost
      vars: {ansible_connection: local, ansible_become: false}
"""
SSH = """#!/bin/bash
case " $* " in
  *" silent "*)
    cat >/dev/null
    echo "ssh: connect to host silent port 22: Connection timed out" >&2
    exit 255 ;;
esac
exec /bin/sh -c "${@: -1}"
"""
SYSTEMCTL = (
    "#!/bin/sh\nprintf"
    " 'Id=kubelet.service\\nLoadState=loaded\\nActiveState=active\\nMainPID=0\\n'\n"
)
JOURNALCTL = '#!/bin/sh\ncase "$*" in *--since*--unit*|*--unit*--since*) cat %s/journal ;; esac\n'


def _play(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "play.yml").write_text(text)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")
    }
    environment.update(
        HOME=str(folder),
        ANSIBLE_HOST_KEY_CHECKING="0",
        ANSIBLE_LOCAL_TEMP=str(folder / "tmp"),
        PATH=f"{folder}/bin:{os.environ['PATH']}",
    )
    environment["ANSIBLE_COLLECTIONS_PATH"] = next(
        path for path in sys.path if Path(path, "ansible_collections", "kubemend").is_dir()
    )
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "ansible",
            "playbook",
            "-i",
            str(folder / "inventory.json"),
            str(folder / "play.yml"),
        ],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    (folder / "bin").mkdir()
    scripts = {
        "bin/systemctl": SYSTEMCTL,
        "bin/journalctl": JOURNALCTL % folder,
        "ssh": SSH,
        "su": '#!/bin/bash\nwhile [ "$1" != -c ]; do shift; done\nexec /bin/sh -c "$2"\n',
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    entries = [
        {"__REALTIME_TIMESTAMP": str(int(time.time() * 1e6)), "MESSAGE": text}
        for text in ('uid-1 ü token="abc" {{ 7 * 7 }}', "uid-2")
    ]
    (folder / "journal").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    ssh = {
        "ansible_connection": "ssh",
        "ansible_ssh_executable": str(folder / "ssh"),
        "ansible_python_interpreter": sys.executable,
    }
    hosts = {
        "program": ssh,
        "silent": {**ssh, "ansible_host": "silent"},
        "module": {
            **ssh,
            "ansible_become": True,
            "ansible_become_method": "su",
            "ansible_become_exe": str(folder / "su"),
            "ansible_ssh_transfer_method": "piped",
        },
    }
    (folder / "inventory.json").write_text(
        json.dumps({"all": {"hosts": hosts, "vars": {"folder": str(folder)}}})
    )
    return folder


@pytest.fixture(scope="module")
def done(folder: Path) -> dict[str, Any]:
    process = _play(folder, PLAY)
    assert process.returncode == 0, process.stdout + process.stderr
    return {
        path.name: json.loads(path.read_text())
        for path in (*folder.glob("*.result"), *(folder / "capture").glob("*.json"))
    }


@pytest.mark.parametrize("host", ["program", "module"])
def test_a_node_that_answers(done: dict[str, Any], host: str) -> None:
    document, result = done[f"{host}.json"], done[f"{host}.result"]
    assert [(line["component"], line["source"], line["text"]) for line in document["lines"]] == [
        ("kubelet", "kubelet.service", 'uid-1 ü token="***" {{ 7 * 7 }}')
    ]
    assert (document["schema"], document["host"], document["status"], document["seconds_back"]) == (
        "kubemend.logs/1",
        host,
        "ok",
        60.0,
    )
    assert (
        document["asked_at"]
        <= document["clock_begin"]
        <= document["clock"]
        <= document["received_at"]
    )
    assert (result["lines"], result["sources"], result["truncated"], result["changed"]) == (
        1,
        {"absent": 3, "ok": 1},
        False,
        False,
    )
    assert "uid-1" not in json.dumps(result)
    assert "kubelet.service" not in json.dumps(result)


def test_a_node_that_does_not(done: dict[str, Any]) -> None:
    document, result = done["silent.json"], done["silent.result"]
    assert (
        document["status"],
        document["lines"],
        result["status"],
        result["lines"],
        result["sources"],
    ) == ("unreachable", [], "unreachable", 0, {})


def test_merged(folder: Path, done: dict[str, Any]) -> None:
    documents = list(log_merge.load(folder / "capture"))
    assert [line.host for line in log_merge.merge(documents)] in (
        ["module", "program"],
        ["program", "module"],
    )
    assert [notice.split(":")[0] for notice in log_merge.notices(documents)] == [
        "silent",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ]


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("match: '('", "match is no regular expression"),
        ("max_bytes: 0", "max_bytes must lie between"),
        ("components: [etcd]", "value of components must be one or more of"),
    ],
)
def test_refused_before_any_node_is_asked(folder: Path, option: str, sentence: str) -> None:
    process = _play(
        folder, PLAY.replace("seconds_back: 60", option).replace("/capture", "/refused")
    )
    assert process.returncode == 2
    assert sentence in process.stdout
    assert not (folder / "refused").exists()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"lines": "x", "sources": 7},
        {
            "lines": [1],
            "sources": [None, {"status": "<b>"}, {"status": ["x"]}, {"truncated": "yes"}],
        },
    ],
)
def test_a_result_of_counts_whatever_the_node_says(answer: dict[str, Any]) -> None:
    told = {"lines": [], "sources": [], **answer}
    try:
        found = action.ActionModule.summary(None, told)
    except TypeError as error:
        pytest.fail(str(error))
    assert found == {
        "lines": 1 if answer.get("lines") == [1] else 0,
        "sources": {},
        "truncated": False,
    }


def test_the_program_carries_what_it_imports() -> None:
    names = node_program._sources(action.ActionModule.ENTRY.partition(":")[0], ())
    for name in (
        "logs.components",
        "logs.sources",
        "logs.journald",
        "logs.lines",
        "shared.redaction",
        "system.kubelet_process",
    ):
        assert f"{node_program.PACKAGE}plugins.module_utils.{name}" in names
