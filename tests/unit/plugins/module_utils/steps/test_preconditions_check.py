# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All guards of a step together.

Each of them is asked, of what it is about, and one that refuses is enough.
"""

from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    preconditions,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    runtime_tool,
)

EVERYONE = [{"component": "kube-apiserver"}]
FORMER = SimpleNamespace(pid=7)
ALL = ["_kubelet", "_runtime", "_process", "_only_manifest", "answering", "_pending"]


class Node:
    """Guards that are content, and what they were asked."""

    def __init__(self, monkeypatch):
        self.monkeypatch, self.asked, self.former = monkeypatch, {}, FORMER
        monkeypatch.setattr(preconditions.procfs, "of_interest", list)
        monkeypatch.setattr(
            preconditions.instances, "collect", lambda context: {"processes": EVERYONE}
        )
        monkeypatch.setattr(
            preconditions.credentials,
            "of_components",
            lambda params, everyone: iter([(params["path"], everyone is EVERYONE, None)]),
        )
        for name in [*ALL, "another"]:
            monkeypatch.setattr(preconditions, name, self.content(name))

    def content(self, name):
        def answer(*given):
            self.asked[name] = given
            return {
                "_kubelet": {"static_pod_path": "/manifests"},
                "_runtime": ["a note"],
                "_process": self.former,
            }.get(name)

        return answer

    def refuses(self, name):
        def refuse(*dummy):
            raise preconditions.PreconditionFailed("because of " + name)

        self.monkeypatch.setattr(preconditions, name, refuse)

    def check(self, component="kube-scheduler", restart="kubelet"):
        self.step = {
            "host": "m2",
            "expect": {"component": component, "restart": restart, "image": "i:1"},
            "guard": {"api_servers": ["a:1"]},
        }
        return preconditions.check(self.step, {"path": "/pki"})


@pytest.fixture
def node(monkeypatch):
    return Node(monkeypatch)


def test_each_is_asked_of_what_it_is_about(node):
    scene = node.check()
    assert (scene.former, scene.credentials, scene.notes) == (
        FORMER,
        [("/pki", True, None)],
        ["a note"],
    )
    step = node.step
    assert node.asked == {
        "_kubelet": ("m2",),
        "_runtime": ({"static_pod_path": "/manifests"}, "i:1", "kube-scheduler", "m2"),
        "_process": (step["expect"], "kube-scheduler", "m2"),
        "_only_manifest": (step, "/manifests", "kube-scheduler", "m2"),
        "answering": (step["guard"], EVERYONE, "m2"),
        "_pending": (step, FORMER, "m2"),
    }


@pytest.mark.parametrize("name", ALL)
def test_one_that_refuses_is_enough(node, name):
    node.refuses(name)
    with pytest.raises(preconditions.PreconditionFailed, match="because of " + name):
        node.check()


def test_an_api_server_goes_away_only_beside_another(node):
    node.check("kube-apiserver")
    assert node.asked["another"] == (node.step["guard"], EVERYONE, [("/pki", True, None)], "m2")
    node.refuses("another")
    with pytest.raises(preconditions.PreconditionFailed, match="because of another"):
        node.check("kube-apiserver")
    assert node.check("kube-controller-manager").former is FORMER


@pytest.mark.parametrize("component", ["etcd", "kubelet", "", None])
def test_no_other_component_is_restarted(node, component):
    with pytest.raises(
        preconditions.PreconditionFailed,
        match="of m2 is not edited or restarted by a step of this kind",
    ):
        node.check(component)
    assert node.asked == {}


@pytest.mark.parametrize(("restart", "former"), [(None, FORMER), ("kubelet", None)])
def test_nothing_is_loaded_where_nothing_is_restarted(node, restart, former):
    node.former = former
    node.refuses("_pending")
    assert node.check(restart=restart).former is former


def test_a_step_without_anything_is_refused(node):
    with pytest.raises(preconditions.PreconditionFailed, match="of this host"):
        preconditions.check({}, {})


@pytest.mark.parametrize("name", ["_kubelet", "_runtime", "answering"])
def test_what_must_work_before_an_interrupted_step_is_proved_or_undone(node, name):
    assert preconditions.resume(
        {"host": "m2", "guard": {"api_servers": ["a:1"]}}, {"path": "/pki"}
    ) == [("/pki", True, None)]
    assert node.asked == {
        "_kubelet": ("m2",),
        "_runtime": ({"static_pod_path": "/manifests"}, None, None, "m2"),
        "answering": ({"api_servers": ["a:1"]}, EVERYONE, "m2"),
    }
    node.refuses(name)
    with pytest.raises(preconditions.PreconditionFailed, match="because of " + name):
        preconditions.resume({}, {"path": "/pki"})


def container_runtime(monkeypatch, answers=True, image=True):
    """Give a runtime that may answer.

    answers: whether it answers
    image: whether it has the image; None where it cannot be asked for it
    """

    def demand():
        if not answers:
            raise runtime_tool.RuntimeDown("it took 5 s")

    monkeypatch.setattr(
        preconditions.runtime_tool,
        "find",
        lambda evidence: SimpleNamespace(demand=demand, has_image=lambda name: image),
    )


@pytest.mark.parametrize(
    ("answers", "image", "said"),
    [
        (False, True, "container runtime of m2 does not answer (it took 5 s)"),
        (True, False, "image i:1 of kube-scheduler is gone from the runtime of m2"),
    ],
)
def test_without_a_runtime_or_the_image_nothing_could_start(monkeypatch, answers, image, said):
    container_runtime(monkeypatch, answers, image)
    with pytest.raises(preconditions.PreconditionFailed) as refused:
        preconditions._runtime({}, "i:1", "kube-scheduler", "m2")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("image", "has", "notes"), [("i:1", True, 0), ("i:1", None, 1), (None, False, 0)]
)
def test_a_runtime_that_answers(monkeypatch, image, has, notes):
    """The runtime is asked for the image if the step names one.

    If no tool can answer, a note says so, and the step is not refused.
    """
    container_runtime(monkeypatch, image=has)
    assert len(preconditions._runtime({}, image, "kube-scheduler", "m2")) == notes


@pytest.mark.parametrize(
    ("answers", "image", "has", "wanted"),
    [
        (True, "i:1", True, True),
        (True, "i:1", None, True),
        (True, "i:1", False, False),
        (False, "i:1", True, False),
        (True, None, False, True),
    ],
)
def test_whether_a_start_lacks_nothing(monkeypatch, answers, image, has, wanted):
    """Only then is it worth while to wait for the kubelet's back-off."""
    monkeypatch.setattr(preconditions, "_kubelet", lambda host: {})
    container_runtime(monkeypatch, answers, has)
    assert preconditions.startable(image) is wanted

    def down(host):
        raise preconditions.PreconditionFailed("no kubelet runs")

    monkeypatch.setattr(preconditions, "_kubelet", down)
    assert preconditions.startable(image) is False


def manifest(path, component="kube-scheduler"):
    path.write_text(f"spec:\n  containers:\n  - command:\n    - {component}\n")


def test_a_kubelet_without_a_folder_of_static_pods_would_start_nothing(tmp_path):
    for folder, said in (
        (None, "has no folder of static pods"),
        ("", "has no folder of static pods"),
        (str(tmp_path / "gone"), "cannot be read"),
    ):
        with pytest.raises(preconditions.PreconditionFailed, match=said):
            preconditions._only_manifest({}, folder, "kube-scheduler", "m2")


@pytest.mark.parametrize(
    "step",
    [
        {},
        {"change": None, "guard": None},
        {"change": {"kind": "splice", "path": "/etc/scheduler.conf"}},
    ],
)
def test_a_restart_or_another_file_needs_its_one_manifest_too(tmp_path, step):
    with pytest.raises(
        preconditions.PreconditionFailed, match=r"no file in .* is a manifest of kube-scheduler"
    ):
        preconditions._only_manifest(step, str(tmp_path), "kube-scheduler", "m2")
    manifest(tmp_path / "a.yaml")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    preconditions._only_manifest(step, str(tmp_path), "kube-scheduler", "m2")
    manifest(tmp_path / "b")
    with pytest.raises(preconditions.PreconditionFailed, match="may hold manifests"):
        preconditions._only_manifest(step, str(tmp_path), "kube-scheduler", "m2")


def test_what_the_kubelet_starts_from_a_manifest_may_not_run_now(monkeypatch):
    monkeypatch.setattr(preconditions.health_probe, "instances", lambda component: [])
    assert preconditions._process({"pid": None}, "kube-scheduler", "m2") is None
    assert (
        preconditions._process(
            {"pid": 7, "started_at": 1.0, "restart": "kubelet"}, "kube-scheduler", "m2"
        )
        is None
    )


@pytest.mark.parametrize("told", [None, {}, {"api_servers": []}])
def test_where_no_api_server_is_named_the_one_of_this_node_is_asked(monkeypatch, told):
    here = [
        {
            "component": "kube-apiserver",
            "host_network": True,
            "argv": ["kube-apiserver", "--advertise-address=10.0.0.2"],
        }
    ]
    asked = []
    monkeypatch.setattr(
        preconditions.http_client,
        "get",
        lambda *given: asked.append(given[:2]) or {"status": 401, "error": None},
    )
    others = [
        dict(here[0], component=name, argv=[name, "--bind-address=10.0.0.9"])
        for name in ("kube-scheduler", "etcd")
    ]
    preconditions.answering(told, [*others, *here], "m2")
    assert asked == [("10.0.0.2", 6443)]
    with pytest.raises(preconditions.PreconditionFailed, match="none is known and none runs here"):
        preconditions.answering(told, others, "m2")


# --- what brings an API server back asks none


@pytest.fixture
def running(node, monkeypatch):
    """Let one component run, and no other."""
    processes = {"kube-scheduler": [FORMER], "kube-apiserver": []}
    monkeypatch.setattr(preconditions.health_probe, "instances", processes.__getitem__)
    return node


COMPONENTS = {
    "kube-apiserver": {"image": "i:1", "words": None, "loads": ["/a"]},
    "kube-scheduler": {"image": "i:2", "words": ["kube-scheduler"], "loads": ["/b"]},
}


def test_no_api_server_is_asked_of_what_restarts(running):
    found = preconditions.restartable(COMPONENTS, {"allow": ["a"], "api_servers": ["x:1"]}, "m2")
    assert found == {"kube-apiserver": None, "kube-scheduler": FORMER}
    assert "answering" not in running.asked
    assert "another" not in running.asked
    assert running.asked["_runtime"][1:] == ("i:2", "kube-scheduler", "m2")
    assert running.asked["_only_manifest"][1:] == ("/manifests", "kube-scheduler", "m2")
    step, former, _host = running.asked["_pending"]
    assert former is FORMER
    assert step["guard"] == {"allow": ["a"], "loads": ["/b"]}
    assert step["expect"]["words"] == ["kube-scheduler"]


@pytest.mark.parametrize("name", ["_kubelet", "_runtime", "_only_manifest", "_pending"])
def test_each_refuses_a_restart_for_certificates(running, name):
    running.refuses(name)
    with pytest.raises(preconditions.PreconditionFailed, match="because of " + name):
        preconditions.restartable(COMPONENTS, None, "m2")


def test_another_is_asked_with_the_certificates_of_now(running):
    preconditions.require_another({"api_servers": ["x:1"]}, {"path": "/pki"}, "m2")
    assert running.asked["another"] == (
        {"api_servers": ["x:1"]},
        EVERYONE,
        [("/pki", True, None)],
        "m2",
    )
    assert preconditions.credentials_now({"path": "/pki"}) == [("/pki", True, None)]
