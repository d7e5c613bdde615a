# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold immediately before a write, each by itself.

An API server goes away only while another one is well.
"""

from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    health_probe,
    preconditions,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    component_process,
)

MINE = [
    {
        "component": "kube-apiserver",
        "host_network": True,
        "argv": ["kube-apiserver", "--advertise-address=10.0.0.2"],
    }
]
SERVERS = {"api_servers": ["10.0.0.2:6443", "10.0.0.1:6443", "10.0.0.3:6443", "nonsense"]}


def healthz(monkeypatch, answers):
    asked = []

    def told(address, port, credentials, seconds):
        asked.append((address, port, credentials, seconds > 0))
        status = answers.get(address)
        return {"status": status, "body": "", "error": None if status else "timed out"}

    monkeypatch.setattr(health_probe, "healthz", told)
    return asked


def test_another_one_that_is_well_is_enough(monkeypatch):
    asked = healthz(monkeypatch, {"10.0.0.2": 200, "10.0.0.1": 500, "10.0.0.3": 200})
    preconditions.another(SERVERS, MINE, ["pair"], "m2")
    assert asked == [("10.0.0.1", 6443, ["pair"], True), ("10.0.0.3", 6443, ["pair"], True)]


@pytest.mark.parametrize(
    ("servers", "answers", "word"),
    [
        (
            SERVERS,
            {"10.0.0.2": 200, "10.0.0.1": 500},
            "10.0.0.1:6443: HTTP 500; 10.0.0.3:6443: timed out",
        ),
        ({"api_servers": ["10.0.0.2:6443"]}, {"10.0.0.2": 200}, "none is known"),
        ({}, {}, "none is known"),
        (None, {}, "none is known"),
    ],
)
def test_its_own_answer_does_not_count(monkeypatch, servers, answers, word):
    healthz(monkeypatch, answers)
    with pytest.raises(preconditions.PreconditionFailed) as refused:
        preconditions.another(servers, MINE, [], "m2")
    assert word in str(refused.value)
    assert "no API server but the one of m2 is well" in str(refused.value)


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        (200, None, 200),
        (401, 200, 200),
        (403, 200, 200),
        (403, 403, 403),
        (404, 200, 404),
        (None, 200, None),
        (500, 200, 500),
    ],
)
def test_who_may_ask_a_server_that_lets_nobody_ask(monkeypatch, first, second, wanted):
    given = iter([first, second])
    monkeypatch.setattr(
        component_process.http_client,
        "get",
        lambda *dummy: {"status": next(given), "body": "", "error": None},
    )
    monkeypatch.setattr(component_process.tls, "context", lambda *pair: pair)
    assert (
        health_probe.healthz("10.0.0.1", 6443, [("path", "certificate", "key")])["status"] == wanted
    )


PROCESS = {"pid": 7, "started_at": 1000.0}
PAIRS = tuple(PROCESS.items())  # a default that no test changes


def kubelet(monkeypatch, process=PAIRS, status=200, error=None):
    known = {
        "process": process and dict(process),
        "healthz": {"status": status, "url": "http://127.0.0.1:10248/healthz", "error": error},
    }
    monkeypatch.setattr(preconditions.kubelet, "collect", lambda context: known)
    monkeypatch.setattr(preconditions.procfs, "of_interest", list)
    return known


@pytest.mark.parametrize(
    ("process", "status", "error", "word"),
    [
        (None, None, None, "no kubelet runs on m2"),
        (PROCESS, None, "refused", "is not healthy (http://127.0.0.1:10248/healthz: refused)"),
        (PROCESS, 500, None, "HTTP 500"),
        (PROCESS, 401, None, "HTTP 401"),
        (PROCESS, 204, None, "HTTP 204"),
    ],
)
def test_only_a_kubelet_that_is_well_brings_a_component_back(
    monkeypatch, process, status, error, word
):
    kubelet(monkeypatch, process, status, error)
    with pytest.raises(preconditions.PreconditionFailed) as refused:
        preconditions._kubelet("m2")
    assert word in str(refused.value)


def test_a_kubelet_that_is_well_or_cannot_be_looked_at(monkeypatch):
    known = kubelet(monkeypatch)
    assert preconditions._kubelet("m2") is known
    monkeypatch.setattr(preconditions.kubelet, "collect", lambda context: {}["process"])
    with pytest.raises(preconditions.PreconditionFailed, match="cannot be looked at"):
        preconditions._kubelet("m2")


@pytest.mark.parametrize(
    ("expect", "running", "found"),
    [
        ({"pid": 7, "started_at": 1000.0, "restart": "signal"}, [(7, 1001.5)], 7),
        ({"pid": 7, "started_at": 1000.0, "restart": "signal"}, [(7, 1002.5)], None),
        ({"pid": 7, "started_at": 1000.0}, [(7, 990.0)], None),
        ({"pid": 7, "started_at": 1000.0, "restart": "signal"}, [(8, 1000.0)], None),
        ({"pid": 7, "started_at": 1000.0, "restart": "signal"}, [], None),
        ({"pid": 7, "started_at": 1000.0, "restart": "signal"}, [(8, 1000.0), (7, 1000.0)], 7),
        ({"pid": 7, "started_at": None, "restart": "signal"}, [(7, 5.0)], 7),
        ({"pid": 7, "started_at": 1000.0, "restart": "signal"}, [(7, None)], 7),
        ({"pid": 7, "started_at": 1000.0, "restart": "kubelet"}, [(9, 2000.0)], 9),
        ({"pid": None}, [(9, 2000.0), (8, 1000.0)], 9),
    ],
)
def test_the_process_of_the_plan_and_no_other_is_ended(monkeypatch, expect, running, found):
    """A number that another process got since is not the process.

    What the kubelet restarts by a manifest may be another.
    """
    monkeypatch.setattr(
        health_probe,
        "instances",
        lambda component: [
            SimpleNamespace(pid=pid, started_at=started) for pid, started in running
        ],
    )
    if found:
        assert preconditions._process(expect, "kube-scheduler", "m2").pid == found
        return
    with pytest.raises(
        preconditions.PreconditionFailed,
        match="the evidence is old: kube-scheduler on m2 is no longer the process 7",
    ):
        preconditions._process(expect, "kube-scheduler", "m2")


@pytest.mark.parametrize(
    ("files", "change", "mine", "word"),
    [
        (["a.yaml"], {"path": "a.yaml"}, None, None),
        (["a.yaml", "a.yaml.bak"], {"path": "a.yaml"}, None, "a.yaml.bak on m2 may hold manifests"),
        (["b.yaml"], {"path": "a.yaml"}, None, "b.yaml on m2 may hold manifests"),
        (["b.yaml"], {"path": "/etc/scheduler.conf"}, "a.yaml", "b.yaml on m2"),
        (["a.yaml"], {"path": "/etc/scheduler.conf"}, "a.yaml", None),
        (["a.yaml", "b.yaml"], {"path": "/etc/scheduler.conf"}, None, "may hold manifests"),
        (["a.yaml", "b.yaml"], {"kind": "move_out", "path": "b.yaml"}, None, None),
        (
            ["a.yaml", "b.yaml", "c.yaml"],
            {"kind": "move_out", "path": "b.yaml"},
            None,
            "may hold manifests",
        ),
        (["b.yaml"], {"kind": "move_out", "path": "b.yaml"}, None, "nothing would start it again"),
        ([], {"path": "a.yaml"}, None, "nothing would start it again"),
        ([".a.yaml"], {"path": ".a.yaml"}, None, "nothing would start it again"),
    ],
)
def test_the_manifest_that_is_meant_is_the_only_one(tmp_path, files, change, mine, word):
    """The kubelet would also take another file of the folder for the manifest.

    Which of the two runs after the restart is the kubelet's choice.
    """
    for name in files:
        (tmp_path / name).write_text("spec:\n  containers:\n  - command:\n    - kube-scheduler\n")
    (tmp_path / "other.yaml").write_text("spec:\n  containers:\n  - name: etcd\n")
    step = {
        "change": dict(change, path=str(tmp_path / change["path"])),
        "guard": {"manifest": mine and str(tmp_path / mine)},
    }
    if word is None:
        preconditions._only_manifest(step, str(tmp_path), "kube-scheduler", "m2")
        return
    with pytest.raises(preconditions.PreconditionFailed) as refused:
        preconditions._only_manifest(step, str(tmp_path), "kube-scheduler", "m2")
    assert word in str(refused.value)


def test_an_api_server_in_a_pod_of_its_own_network_is_another_clusters():
    """Vcluster and its like.

    One that answers says nothing of the cluster whose component is restarted.
    """
    nested = {
        "component": "kube-apiserver",
        "host_network": False,
        "argv": ["kube-apiserver", "--advertise-address=10.244.0.9"],
    }
    assert preconditions.own_servers([nested]) == []
    assert preconditions.own_servers([nested, *MINE]) == ["10.0.0.2:6443"]
    bound = dict(MINE[0], argv=["kube-apiserver", "--bind-address=0.0.0.0", "--secure-port=7443"])
    assert preconditions.own_servers([bound]) == ["127.0.0.1:7443"]


@pytest.mark.parametrize(
    ("answers", "served"), [({}, False), ({"10.0.0.1": 503}, True), ({"10.0.0.3": 200}, True)]
)
def test_any_answer_shows_that_an_api_server_is_there(monkeypatch, answers, served):
    monkeypatch.setattr(
        preconditions.http_client,
        "get",
        lambda address, *dummy: {"status": answers.get(address), "error": "timed out"},
    )
    if served:
        preconditions.answering(SERVERS, [], "m2")
        return
    with pytest.raises(
        preconditions.PreconditionFailed,
        match=(
            r"no API server answers from m2 .*10.0.0.1:6443: timed out.*nonsense: no address and"
            " port"
        ),
    ):
        preconditions.answering(SERVERS, [], "m2")


@pytest.mark.parametrize(
    ("step", "own"),
    [
        ({"remedy": "edit_manifest", "change": {"path": "/m"}}, ["/m"]),
        ({"remedy": "edit_config", "change": {"path": "/c"}}, [None]),
        ({"remedy": "restart"}, ["/conf", None]),
        ({"remedy": "restart", "guard": {"loads": ["/x"]}}, ["/x", None]),
    ],
)
def test_somebody_elses_changes_wait_for_their_owner(monkeypatch, step, own):
    """A restart waits for changes of another tool, which it would load.

    Of the changes that the restart is for, only its own file is left out. An edited configuration
    that was newer already is not left out.
    """
    asked, told = [], [{"kind": "file", "path": "/y"}]
    former = SimpleNamespace(pid=1, started_at=1.0, argv=["kube-scheduler", "--config=/conf"])
    monkeypatch.setattr(
        preconditions.restart_impact,
        "changes",
        lambda process, given, words, flags, mine: asked.append(mine) or told,
    )
    monkeypatch.setattr(
        preconditions.restart_impact,
        "sentence",
        lambda host, component, found: "pending on {}: {}".format(host, found[0]["path"]),
    )
    monkeypatch.setattr(preconditions.instances, "flag_files", lambda *dummy: {})
    step = dict(step, expect={"component": "kube-scheduler", "restart": "signal"})
    with pytest.raises(preconditions.PreconditionFailed, match="pending on m2: /y"):
        preconditions._pending(step, former, "m2")
    assert asked == [own]
    preconditions._pending(dict(step, guard={"allow": ["pending_changes"]}), former, "m2")
    told.clear()
    preconditions._pending(step, former, "m2")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("  - command:\n    - kube-scheduler\n", True),
        ("    - /usr/local/bin/kube-scheduler  # x\n", True),
        ('{"command":["kube-scheduler","--v=2"]}', True),
        ("metadata:\n  name: kube-scheduler\n", True),
        ('{"metadata": {"name": "kube-scheduler"}}', True),
        ("command: [ '/kube-scheduler', x]", True),
        ("# the kube-scheduler lives elsewhere\n", False),
        ("    - --user=system:kube-scheduler\n", False),
        ("    - kube-scheduler-extra\n", False),
        ("name: kube-scheduler\r\n", True),
        ("path: /etc/kube-scheduler\n", False),
    ],
)
def test_whether_a_file_speaks_of_a_component(tmp_path: Path, text: str, holds: bool) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(text.encode())
    assert preconditions.speaks_of(str(path), "kube-scheduler") is holds
