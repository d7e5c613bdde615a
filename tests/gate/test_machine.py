# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The environment that stages and make audit run in, and the order of stages."""

from __future__ import annotations

import threading

import pytest

from tests.gate import audit, counts, machine, runner, venvs
from tests.gate.stages import sanity


@pytest.fixture(autouse=True)
def output(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "OUTPUT", tmp_path)


def test_the_callers_settings_are_left_out_and_the_way_to_the_index_stays(monkeypatch):
    for key in (
        "ANSIBLE_STRATEGY",
        "PYTHONPATH",
        "PIP_TARGET",
        "KUBEMEND_FULL",
        "PIP_CERT",
        "HTTPS_PROXY",
        "KUBEMEND_LAB_CACHE",
    ):
        monkeypatch.setenv(key, "x")
    monkeypatch.setenv("PATH", "/home/a/.pyenv/shims:/usr/bin")
    env = machine.environment(ANSIBLE_HOME="/y")
    assert not {"ANSIBLE_STRATEGY", "PYTHONPATH", "PIP_TARGET", "KUBEMEND_FULL"} & set(env)
    assert {"PIP_CERT", "HTTPS_PROXY", "KUBEMEND_LAB_CACHE"} <= set(env)
    assert (env["ANSIBLE_HOME"], env["PATH"]) == ("/y", "/usr/bin")


def test_audit_takes_an_inventory_a_list_of_hosts_or_the_example(tmp_path):
    inventory = tmp_path / "my hosts"
    inventory.write_text("", encoding="utf-8")
    assert audit.playbook_arguments(str(inventory))[:2] == ["-i", str(inventory)]
    assert audit.playbook_arguments("m1,")[:2] == ["-i", "m1,"]
    assert audit.playbook_arguments("")[0].endswith("replay.yml")
    with pytest.raises(audit.BadInput, match="no such file"):
        audit.playbook_arguments(str(tmp_path / "none"))


def test_no_python_is_one_sentence(monkeypatch):
    monkeypatch.setattr(machine, "pythons", lambda: {(3, 9): "/usr/bin/python3.9"})
    with pytest.raises(venvs.Unavailable, match=r"no Python 3\.11 to 3\.14 was found"):
        venvs.find_python("audit")


def test_the_pips_of_ansible_test():
    table = "# core pip\n2.16 23.1.2 21.3.1\n2.21 25.2\n"
    assert sanity.pip_versions(table, "2.16") == ["23.1.2", "21.3.1"]
    assert sanity.pip_versions(table, "2.21") == ["25.2"]


def test_ansible_test_gets_the_pip_settings_that_it_would_hide():
    listed = (
        "global.cert='/a'\nglobal.index-url='https://user:pass@index.example/simple'\n"
        ":env:.cert='/b'\ninstall.user='true'\n"
    )
    assert (
        sanity.pip_settings(listed, {"cache-dir": "/c"})
        == "[global]\ncache-dir = /c\ncert = /b\nindex-url ="
        " https://user:pass@index.example/simple\n"
    )


def good(_context):
    return counts.Counts(passed=1)


def test_two_stages_run_at_once_in_their_lanes_and_the_last_one_waits():
    together = threading.Barrier(2, timeout=300)
    order = []

    def company(context):
        together.wait()
        order.append(context.name)
        return counts.Counts(passed=1)

    def last(context):
        order.append(context.name)
        return counts.Counts(passed=1)

    stages = [
        runner.Stage("last", last, last=True),
        runner.Stage("lab", company, first=True),
        runner.Stage("other", company),
    ]
    lines = runner.Gate(stages).run()
    assert sorted(order[:2]) == ["lab", "other"]
    assert order[2] == "last"
    assert [line.name for line in lines] == ["last", "lab", "other"]


def test_first_stages_run_in_their_order_and_the_others_are_gentle():
    seen = []

    def work(context):
        seen.append((context.name, context.gentle))
        return counts.Counts(passed=1)

    runner.Gate(
        [
            runner.Stage("build", work, first=True),
            runner.Stage("lab", work, first=True),
            runner.Stage("other", work),
        ]
    ).run()
    assert [one for one in seen if not one[1]] == [("build", False), ("lab", False)]
    assert ("other", True) in seen


def test_a_stage_that_breaks_has_failed_and_the_next_one_runs():
    def broken(_context):
        raise ZeroDivisionError("boom")

    lines = runner.Gate(
        [
            runner.Stage("broken", broken),
            runner.Stage("good", lambda _context: counts.Counts(passed=1)),
        ]
    ).run()
    assert lines[0].counts.failed == ["the stage itself broke: ZeroDivisionError: boom"]
    assert lines[1].counts.passed == 1


@pytest.mark.parametrize("in_ci", [False, True])
def test_without_a_lab_nodes_are_skipped_but_not_in_ci(monkeypatch, in_ci):
    monkeypatch.setattr(machine, "why_no_lab", lambda: "no podman")
    monkeypatch.setattr(machine, "in_ci", lambda: in_ci)
    found = (
        runner.Gate([runner.Stage("lab", lambda _context: counts.Counts(passed=1), nodes=True)])
        .run()[0]
        .counts
    )
    assert (found.passed, found.failed, found.skipped) == (
        0,
        ["no podman"] if in_ci else [],
        [] if in_ci else ["no podman"],
    )


def test_a_command_that_hangs_is_ended_with_its_children():
    context = runner.Context("hang")
    returncode, text = context.run(["sh", "-c", "echo before; sleep 600 & wait"], timeout=5)
    assert returncode != 0
    assert "before" in text
    assert "did not end within 5 seconds" in text


def test_nothing_begins_once_the_run_is_interrupted(monkeypatch):
    monkeypatch.setattr(runner, "STOPPED", threading.Event())
    ran = []

    def first(context):
        ran.append(context.name)
        runner.STOPPED.set()
        assert context.run(["sh", "-c", "exit 0"]) == (runner.INTERRUPTED, "")
        return counts.Counts(passed=1)

    gate = runner.Gate([runner.Stage("a", first, first=True), runner.Stage("b", first, first=True)])
    gate._lane(gate.stages, [])
    assert ran == ["a"]
