# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trial start of containerd: by stand-ins, and by a real one where this machine has it."""

import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import (
    containerd_trial,
    private_root,
)
from tests.unit.support.private_root import NEEDS_NAMESPACES, program

BOOTED = 'level=info msg="containerd successfully booted in 0.01s"'
LOADS_CRI = 'level=info msg="loading plugin" id=io.containerd.grpc.v1.cri'
UNLOADED = 'level=warning msg="failed to load plugin" error="x" id=io.containerd.grpc.v1.cri'


def real():
    """Return a containerd of this machine or of the lab, None without one."""
    cache = os.environ.get("KUBEMEND_LAB_CACHE") or Path("~/.cache/kubemend-lab").expanduser()
    built = sorted(map(str, Path(cache).glob("containerd-*/containerd")))
    return shutil.which("containerd") or next(iter(built), None)


@pytest.fixture
def unit(tmp_path, monkeypatch):
    """Return a function that makes the unit of a containerd, with its configuration."""
    config = tmp_path / "config.toml"

    def make(path, text="", start="", environment=""):
        config.write_text(text)
        argv = start or f"{path} --config {config}"
        block = {"ExecStart": [f"{{ path={path} ; argv[]={argv} ; ignore_errors=no }}"]}
        if environment:
            block["Environment"] = [environment]
        monkeypatch.setattr(
            containerd_trial.systemd, "show", lambda *_dummy: {containerd_trial.UNIT: block}
        )
        return config

    monkeypatch.setattr(containerd_trial, "STABLE", 0.1)
    monkeypatch.setattr(containerd_trial, "memory_free", lambda: containerd_trial.LEAST_FREE)
    return make


def trial():
    return containerd_trial.run({"timeout": 30})["trial"]


@NEEDS_NAMESPACES
@pytest.mark.parametrize(
    ("script", "state", "cri"),
    [
        (f"echo '{LOADS_CRI}' >&2; echo '{BOOTED}' >&2; sleep 60", "served", True),
        (f"echo '{BOOTED}'; sleep 60", "served", False),
        ("echo 'level=info msg=starting'; echo 'containerd: no' >&2; exit 1", "ended", False),
        (f"echo '{BOOTED}'; echo 'level=fatal msg=no'; exit 1", "ended", False),
    ],
)
def test_what_it_does(tmp_path, trial_folder, unit, script, state, cri):
    config = unit(program(tmp_path, script + "\n"))
    answer = trial()
    assert (answer["state"], answer["cri"], answer["reason"]) == (state, cri, "")
    assert answer["path"] == str(config)
    assert not trial_folder.exists()


@NEEDS_NAMESPACES
def test_one_that_neither_serves_nor_ends(tmp_path, trial_folder, unit, monkeypatch):
    monkeypatch.setattr(containerd_trial, "SECONDS", 0)
    unit(program(tmp_path, "sleep 60\n"))
    assert trial()["state"] == "silent"


@NEEDS_NAMESPACES
def test_it_gets_the_command_line_and_the_variables_of_its_unit(tmp_path, trial_folder, unit):
    path = program(tmp_path, 'echo "$@"; echo "$ONE,$NOTIFY_SOCKET,"\n')
    unit(path, start=f"{path} -l debug --state /x", environment="ONE=1 NOTIFY_SOCKET=/run/n")
    assert trial()["lines"] == ["-l debug --state /x --log-level info", "1,,"]


@NEEDS_NAMESPACES
def test_plugins_that_were_not_loaded_and_secrets(tmp_path, trial_folder, unit):
    lines = [UNLOADED, "level=info password=hunter22hunter22", *"123456789"]
    unit(program(tmp_path, "".join(f"echo '{line}'\n" for line in lines)))
    answer = trial()
    assert len(answer["failures"]) == 1
    assert answer["lines"] == list("23456789")
    assert "hunter22" not in str(answer)


@pytest.mark.parametrize(
    ("start", "reason"),
    [("/bin/sh -c containerd", "/bin/sh"), ("/usr/bin/k3s-containerd", "k3s"), ("", "nothing")],
)
def test_a_unit_that_starts_something_else(unit, monkeypatch, start, reason):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    unit("/usr/bin/containerd", start=start or " ")
    answer = trial()
    assert answer["state"] == "refused"
    assert reason in answer["reason"]


@pytest.mark.parametrize(("user", "free", "reason"), [(1000, 1 << 30, "root"), (0, 1, "memory")])
def test_where_nothing_is_started(unit, monkeypatch, user, free, reason):
    unit("/usr/bin/containerd")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(containerd_trial, "memory_free", lambda: free)
    monkeypatch.setattr(private_root, "Program", None)
    answer = trial()
    assert (answer["state"], answer["lines"]) == ("refused", [])
    assert reason in answer["reason"]


def test_folders_of_the_containerd_that_runs_are_hidden(unit, tmp_path):
    config = unit(
        "/usr/bin/containerd",
        'root = "/data/root"\nstate = "/data/state"\n[plugins."io.containerd.nri.v1.nri"]\n'
        'plugin_path = "/data/nri"\n[plugins.x]\nroot = "/data/other"\n',
    )
    argv = ["/usr/bin/containerd", "--config", str(config), "--root=/data/flag"]
    plan = containerd_trial.plan_of(argv, str(config), {})
    assert {"/data/root", "/data/state", "/data/nri", "/data/flag"} <= set(plan.hidden)
    assert {"/var/lib/containerd", "/opt/nri/plugins", "/run"} <= set(plan.hidden)
    assert "/data/other" not in plan.hidden
    assert {"/data/other", str(config)} <= set(plan.paths)


@pytest.mark.parametrize(
    ("line", "files", "place"),
    [
        ("containerd: (2, 3): Can't convert", ["/a"], ("/a", 2, "grpc.gid")),
        ("containerd: failed at row 2 column 9: toml", ["/a"], ("/a", 2, "grpc.gid")),
        ("containerd: failed: /b: (1, 1): no", ["/a", "/b"], ("/b", 1, "")),
        ("containerd: (2, 3): Can't convert", ["/a", "/b"], None),
        ("containerd: no such file", ["/a"], None),
    ],
)
def test_the_setting_that_a_line_names(line, files, place):
    texts = dict.fromkeys(files, "[grpc]\ngid = 'many'\n")
    found = containerd_trial.place_of(line, texts)
    assert (found and tuple(found.values())) == place


@NEEDS_NAMESPACES
@pytest.mark.skipif(real() is None, reason="no containerd on this machine or in the lab's cache")
@pytest.mark.parametrize(
    ("text", "state"),
    [
        (
            'version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = "/opt/none"\n',
            "served",
        ),
        ('version = 2\n[grpc]\ngid = "many"\n', "ended"),
        ('version = 2\nimports = ["/etc/kubemend/none.toml"]\n', "ended"),
        ("version = 2\n[grpc\n", "ended"),
    ],
)
def test_a_real_containerd(tmp_path, trial_folder, unit, text, state):
    before = {path: Path(path).exists() for path in ("/run/containerd", "/var/lib/containerd")}
    config = unit(real(), text)
    answer = trial()
    assert answer["state"] == state, answer
    assert answer["cri"] == (state == "served")
    assert {path: Path(path).exists() for path in before} == before
    assert not Path("/opt/none").exists()
    assert config.read_text() == text
