# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner: whatever a collector does, it costs only itself."""

import json
import os
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collect import jsonline, runner, spec
from ansible_collections.kubemend.remediation.plugins.modules import node_evidence_info


def _hang(context):
    time.sleep(60)


def _crash(context):
    raise KeyError("members\nof a strange\x1bshape")


def _absent(context):
    raise spec.Absent("not here")


def _denied(context):
    raise PermissionError(13, "Permission denied")


def _failed(context):
    raise spec.Failed("no answer", {"kept": 1})


def _killed(context):
    os.kill(os.getpid(), 9)


def _huge(context):
    return "x" * (runner.MAX_COLLECTOR + 1)


def _unmarshallable(context):
    return object()


def _loud(context):
    os.write(1, b"noise")
    os.write(2, b"noise")
    return {"fine": True}


class Fake(spec.Collector):
    __slots__ = ("function",)

    def __init__(self, name, function, **more):
        super().__init__(name, "test", **{"timeout": 5, **more})
        self.function = function

    def run(self, context):
        return self.function(context)


def _run(*collectors, timeout=30, processes=()):
    return runner.run({"timeout": timeout}, list(collectors), list(processes))


@pytest.mark.parametrize("function, status, error", [
    (_crash, "error", "KeyError: 'members\\nof a strange\\x1bshape'"), (_absent, "absent", "not here"), (_denied, "denied", "[Errno 13] Permission denied"),
    (_failed, "error", "no answer"), (_killed, "error", "the collector's process ended without an answer"),
    (_huge, "error", f"more than {runner.MAX_COLLECTOR} bytes"), (_unmarshallable, "error", "the collector's process ended without an answer"),
])
def test_one_that_fails_costs_itself(function, status, error):
    found = _run(Fake("bad", function), Fake("good", lambda context: {"a": [1, 2.5, None, True, "ü"]}))
    assert (found["bad"]["status"], found["bad"]["error"]) == (status, error)
    assert found["good"]["status"] == "ok" and found["good"]["data"] == {"a": [1, 2.5, None, True, "ü"]}
    if function is _failed:
        assert found["bad"]["data"] == {"kept": 1}
    if function is _huge:
        assert found["bad"]["truncated"] is True


def test_one_that_hangs_is_left_behind():
    begin = time.monotonic()
    found = _run(Fake("slow", _hang, timeout=0.3), Fake("after", lambda context: context.data.get("slow"), needs=("slow",)), Fake("good", lambda context: 1))
    assert time.monotonic() - begin < 5
    assert [found[name]["status"] for name in ("slow", "after", "good")] == ["timeout", "ok", "ok"]


def test_the_whole_has_a_deadline():
    begin = time.monotonic()
    found = _run(Fake("slow", _hang, timeout=60), Fake("next", _hang, timeout=60, needs=("slow",)), timeout=2)
    assert time.monotonic() - begin < 4
    assert {one["status"] for one in found.values()} == {"timeout"}


def test_nothing_of_a_child_reaches_our_output(capfd):
    assert _run(Fake("loud", _loud))["loud"]["status"] == "ok"
    assert capfd.readouterr() == ("", "")


def test_data_reaches_those_that_need_it():
    found = _run(Fake("b", lambda context: context.data["a"] + 1, needs=("a",)), Fake("a", lambda context: 1))
    assert found["b"]["data"] == 2


def test_without_its_component_it_is_absent_and_not_even_started():
    found = _run(Fake("x", _hang, components=("etcd",)), processes=[(1, "kubelet")])
    assert found["x"]["status"] == "absent"
    assert _run(Fake("x", _absent, components=("etcd",)), processes=[(1, "hyperkube")])["x"]["error"] == "not here"


def test_needs_are_chosen_too():
    assert [one.name for one in spec.chosen(["etcd"])] == ["instances", "etcd"]
    assert [one.name for one in spec.chosen()] == [one.name for one in spec.COLLECTORS if one.tier == spec.CORE]
    assert set(spec.BY_NAME) >= {need for one in spec.COLLECTORS for need in one.needs}


@pytest.mark.parametrize("value", [
    None, True, 1, -1.5, 1e300, "a\"\\\n\x7fü\U0001f600", [], {}, {"a": [1, {"b": ()}], "c": {}}, [[], [None, False]],
])
def test_json_line(value):
    line = jsonline.dumps(value)
    assert json.loads(line) == json.loads(json.dumps(value))
    assert line.isascii() and "\n" not in line


def test_json_line_has_no_numbers_that_json_has_not():
    assert jsonline.dumps([float("nan"), float("inf")]) == "[null,null]"


def test_the_document_is_bounded(monkeypatch):
    monkeypatch.setattr(runner, "MAX_DOCUMENT", 3000)
    monkeypatch.setattr(runner, "gather", lambda params: {"collectors": {
        "a": {"data": "x" * 5000, "status": "ok"}, "b": {"data": "y", "status": "ok"}}})
    found = json.loads(runner.collect({}))["collectors"]
    assert found["a"] == {"data": None, "status": "error", "truncated": True, "error": "the document would be larger than 3000 bytes"}
    assert found["b"]["data"] == "y"


def test_the_document_of_this_machine():
    document = runner.gather({"timeout": 20, "collectors": ["system", "installer"]})
    assert set(document["collectors"]) == set(spec.BY_NAME)
    assert document["collectors"]["system"]["status"] == "ok" and document["collectors"]["kubelet"]["status"] == "not_asked"


def test_the_ordinary_module_ships_every_collector():
    """Where it is not a program on standard input, Ansible packs what the module imports, and collectors are imported by name."""
    shipped = {module.__name__.rpartition(".")[2] for module in node_evidence_info.SHIPPED}
    assert set(spec.BY_NAME) <= shipped
