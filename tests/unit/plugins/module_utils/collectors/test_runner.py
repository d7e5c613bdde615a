# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner: whatever a collector does, it costs only itself."""

import json
import os
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
    channels,
    registry,
    runner,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import limits
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    systemd,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_collector import FakeCollector, hang, run_collectors


def _crash(context):
    raise KeyError("members\nof a strange\x1bshape")


def _absent(context):
    raise base.Absent("not here")


def _denied(context):
    raise PermissionError(13, "Permission denied")


def _failed(context):
    raise base.Failed("no answer", {"kept": 1})


def _killed(context):
    os.kill(os.getpid(), 9)


def _huge(context):
    return "x" * (channels.MAX_COLLECTOR + 1)


def _unmarshallable(context):
    return object()


def _loud(context):
    os.write(1, b"noise")
    os.write(2, b"noise")
    return {"fine": True}


@pytest.mark.parametrize(
    ("function", "status", "error"),
    [
        (_crash, "error", "KeyError: 'members\\nof a strange\\x1bshape'"),
        (_absent, "absent", "not here"),
        (_denied, "denied", "[Errno 13] Permission denied"),
        (_failed, "error", "no answer"),
        (_killed, "error", "the collector's process ended without an answer"),
        (_huge, "error", f"more than {channels.MAX_COLLECTOR} bytes"),
        (_unmarshallable, "error", "the collector's process ended without an answer"),
    ],
)
def test_one_that_fails_costs_itself(function, status, error):
    found = run_collectors(
        FakeCollector("bad", function),
        FakeCollector("good", lambda context: {"a": [1, 2.5, None, True, "ü"]}),
    )
    assert (found["bad"]["status"], found["bad"]["error"]) == (status, error)
    assert found["good"]["status"] == "ok"
    assert found["good"]["data"] == {"a": [1, 2.5, None, True, "ü"]}
    if function is _failed:
        assert found["bad"]["data"] == {"kept": 1}
    if function is _huge:
        assert found["bad"]["truncated"] is True


def test_one_that_hangs_is_left_behind():
    begin = time.monotonic()
    found = run_collectors(
        FakeCollector("slow", hang, timeout=0.3),
        FakeCollector("after", lambda context: context.data.get("slow"), needs=("slow",)),
        FakeCollector("good", lambda context: 1),
    )
    assert time.monotonic() - begin < 100
    assert [found[name]["status"] for name in ("slow", "after", "good")] == ["timeout", "ok", "ok"]


def test_the_whole_has_a_deadline():
    begin = time.monotonic()
    found = run_collectors(
        FakeCollector("slow", hang, timeout=3000),
        FakeCollector("next", hang, timeout=3000, needs=("slow",)),
        timeout=2,
    )
    assert time.monotonic() - begin < 100
    assert {one["status"] for one in found.values()} == {"timeout"}


def test_nothing_of_a_child_reaches_our_output(capfd):
    assert run_collectors(FakeCollector("loud", _loud))["loud"]["status"] == "ok"
    assert capfd.readouterr() == ("", "")


def test_data_reaches_those_that_need_it():
    found = run_collectors(
        FakeCollector("b", lambda context: context.data["a"] + 1, needs=("a",)),
        FakeCollector("a", lambda context: 1),
    )
    assert found["b"]["data"] == 2


def test_without_its_component_it_is_absent_and_not_even_started():
    found = run_collectors(
        FakeCollector("x", hang, components=("etcd",)), processes=[(1, "kubelet")]
    )
    assert found["x"]["status"] == "absent"
    assert (
        run_collectors(
            FakeCollector("x", _absent, components=("etcd",)), processes=[(1, "hyperkube")]
        )["x"]["error"]
        == "not here"
    )


@pytest.mark.parametrize(
    ("processes", "exists", "status"),
    [
        ([(1, "etcd")], False, "ok"),
        ([(1, "k3s-server")], True, "ok"),
        ([(1, "k3s-server")], False, "absent"),
    ],
)
def test_its_component_or_its_path_has_to_be_there(tmp_path, processes, exists, status):
    path = tmp_path / "db"
    if exists:
        path.mkdir()
    collector = FakeCollector("x", lambda context: 1, components=("etcd",), path=str(path))
    assert run_collectors(collector, processes=processes)["x"]["status"] == status


class Asking(FakeCollector):
    """One that asks systemctl what the collector limits asks."""

    __slots__ = ()

    def module(self):
        return limits


def _shows(context):
    return sorted(systemd._told), len(systemd.show(*limits.question()[:2]))


def test_those_that_ask_systemd_wait_for_one_answer(systemctl):
    found = run_collectors(
        Asking("a", _shows, asks=True),
        Asking("b", _shows, asks=True),
        FakeCollector("c", lambda context: 3),
    )
    names, properties, _files = limits.question()
    assert found["a"]["data"] == found["b"]["data"] == ([(tuple(names), tuple(properties))], 3)
    assert found["c"]["data"] == 3
    assert set(found) == {"a", "b", "c"}  # what they asked is no evidence of its own


def test_one_alone_asks_for_itself(systemctl):
    assert run_collectors(Asking("a", _shows, asks=True))["a"]["data"] == ([], 4)


def test_one_whose_module_is_broken_costs_only_itself(systemctl):
    class Broken(Asking):
        __slots__ = ()

        def module(self):
            raise SyntaxError("broken")

    found = run_collectors(
        Broken("a", lambda context: 1, asks=True), Asking("b", lambda context: 2, asks=True)
    )
    assert found["b"]["data"] == 2


def test_what_one_asks_is_what_it_shows():
    for collector in registry.COLLECTORS:
        if collector.asks:
            names, properties, files = collector.module().question()
            assert names
            assert "Id" in properties
            assert isinstance(files, bool)


def test_needs_are_chosen_too():
    assert [one.name for one in registry.select(["etcd"])] == ["instances", "etcd"]
    assert [one.name for one in registry.select()] == [
        one.name for one in registry.COLLECTORS if one.tier == registry.CORE
    ]
    assert set(registry.BY_NAME) >= {need for one in registry.COLLECTORS for need in one.needs}


def test_the_document_is_bounded(monkeypatch):
    monkeypatch.setattr(runner, "MAX_DOCUMENT", 3000)
    monkeypatch.setattr(
        runner,
        "gather",
        lambda params: {
            "collectors": {
                "a": {"data": "x" * 5000, "status": "ok"},
                "b": {"data": "y", "status": "ok"},
            }
        },
    )
    found = json.loads(runner.collect({}))["collectors"]
    facts(found["a"].pop("error"), "3000 bytes")
    assert found["a"] == {"data": None, "status": "error", "truncated": True}
    assert found["b"]["data"] == "y"


def test_the_document_of_this_machine():
    document = runner.gather({"timeout": 20, "collectors": ["system", "installer"]})
    assert set(document["collectors"]) == set(registry.BY_NAME)
    assert document["collectors"]["system"]["status"] == "ok"
    assert document["collectors"]["kubelet"]["status"] == "not_asked"
