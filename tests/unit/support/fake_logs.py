# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of tests: its files of logs, and stand-ins for journalctl and systemctl."""

import gzip
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    components as log_components,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    journald,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    sources as log_sources,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import procfs

UID = "0123456789abcdef0123456789abcdef"
KUBELET = {
    "__REALTIME_TIMESTAMP": None,
    "_SYSTEMD_UNIT": "kubelet.service",
    "MESSAGE": "I1121 20:01:02.1 1 kubelet.go:1] x",
}
# Plays journalctl: what it is asked for picks a file of the folder; what it was asked is kept.
JOURNALCTL = """#!/bin/sh
echo "$@" >> {folder}/asked
case "$*" in
  *MESSAGE_ID=*) sleep $(cat {folder}/slow); cat {folder}/dropped 2>/dev/null ;;
  *--unit=kubelet.service*--since*)
    cat {folder}/window 2>/dev/null
    cat {folder}/complaint >&2 2>/dev/null
    sleep $(cat {folder}/sleep) ;;
  *--unit=kubelet.service*--lines=1*)
    sleep $(cat {folder}/slow); cat {folder}/any 2>/dev/null ;;
  *) sleep $(cat {folder}/slow); cat {folder}/oldest 2>/dev/null ;;
esac
exit $(cat {folder}/code)
"""
SYSTEMCTL = "#!/bin/sh\ncat {folder}/units\n"


def when(moment: float) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


def cri(moment: float, text: str, tag: str = "F") -> str:
    return f"{when(moment)} stderr {tag} {text}\n"


class Stopped:
    """`time` of a program for which it is still the moment that the logs were written about."""

    def __init__(self, node: "Node") -> None:
        self.time = lambda: node.now

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)


class Node:
    """A node's logs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = time.time()
        self.pods = folder / "pods"
        self.pods.mkdir()
        for name, text in (("journalctl", JOURNALCTL), ("systemctl", SYSTEMCTL)):
            path = folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.format(folder=folder))
            path.chmod(0o755)
        (folder / "sleep").write_text("0")
        (folder / "slow").write_text("0")
        (folder / "code").write_text("0")
        self.units("loaded")

    def units(self, state: str) -> None:
        (self.folder / "units").write_text(
            f"Id=kubelet.service\nLoadState={state}\nActiveState=inactive\nMainPID=0\n"
        )

    def journal(self, name: str, *entries: tuple[float, object], **more: object) -> None:
        lines = [
            json.dumps(
                {**KUBELET, "__REALTIME_TIMESTAMP": str(int(moment * 1e6)), "MESSAGE": text, **more}
            )
            for moment, text in entries
        ]
        (self.folder / name).write_text("".join(line + "\n" for line in lines))

    def log(
        self,
        name: str,
        text: str,
        component: str = "kube-scheduler",
        age: float = 0,
        uid: str = UID,
    ) -> Path:
        path = self.pods / f"kube-system_{component}-m1_{uid}" / component / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        os.utime(path, (self.now - age, self.now - age))
        return path

    def read(self, *components: str, **params: object) -> dict:
        return log_components.read(
            {
                "components": list(components) or ["kube-scheduler"],
                "seconds_back": 100.0,
                "timeout": 300,
                **params,
            }
        )


def a_node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    # not tmp_path: its parents are root's alone
    folder = Path(tempfile.mkdtemp(prefix="kubemend-logs-"))
    folder.chmod(0o755)
    found = Node(folder)
    monkeypatch.setattr(log_sources, "PODS", str(found.pods))
    # a machine with a lab on it has kubelets
    monkeypatch.setattr(procfs, "of_interest", list)
    monkeypatch.setattr(log_components, "time", Stopped(found))
    # What a busy machine answers late is no answer, which the tests of a slow journalctl show.
    monkeypatch.setattr(journald, "QUIET_LIMIT", 60.0)
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    yield found
    shutil.rmtree(folder)


def texts(document: dict) -> list[str]:
    return [line["text"] for line in document["lines"]]
