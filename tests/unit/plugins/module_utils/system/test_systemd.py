# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of its units, and what their files say."""

import json
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    limits,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    systemd,
)
from tests.unit.support.fake_collector import FakeCollector, run_collectors

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures"


QUESTIONS = (
    (["kubelet.service"], ("Id", "ActiveState"), True),
    (("ssh.service", "crio.service"), ("Id", "LoadState"), True),
    (("*.swap", "swap.target"), ("Id",), False),
)


def test_what_several_ask_systemd_is_asked_once(systemctl):
    asked, _answers = systemctl
    systemd.learn(systemd.ask(QUESTIONS))
    assert [argv[1] for argv in asked] == ["show", "is-enabled"]
    assert asked[1][2:] == ["kubelet.service"]
    assert asked[0][4] == "ActiveState,Id,LoadState,Names"
    assert asked[0][5:] == [
        "*.swap",
        "crio.service",
        "kubelet.service",
        "ssh.service",
        "swap.target",
    ]
    del asked[:]
    assert systemd.show(*QUESTIONS[0][:2]) == {
        "kubelet.service": {"Id": ["kubelet.service"], "ActiveState": ["active"]}
    }
    assert list(systemd.show(*QUESTIONS[1][:2])) == ["sshd.service", "crio.service"]
    assert list(systemd.show(*QUESTIONS[2][:2])) == ["swap.img.swap"]
    assert systemd.enabled("kubelet.service") == "disabled"
    assert not asked
    systemd.show(["kubelet.service"], ("Id",))
    systemd.enabled("crio.service")
    assert len(asked) == 2  # another question is put


def test_without_states_there_is_still_what_systemd_shows(systemctl):
    asked, answers = systemctl
    answers["is-enabled"] = command.CommandError("systemctl did not end within 5 s")
    systemd.learn(systemd.ask(QUESTIONS))
    del asked[:]
    systemd.show(*QUESTIONS[0][:2])
    with pytest.raises(command.CommandError):
        systemd.enabled("kubelet.service")
    assert len(asked) == 1


@pytest.mark.parametrize("said", ["", "enabled\nmasked\n"])
def test_states_that_cannot_be_told_apart_are_asked_one_by_one(systemctl, said):
    asked, answers = systemctl
    answers["is-enabled"] = said
    systemd.learn(systemd.ask(QUESTIONS))
    answers["is-enabled"] = "static\n"
    assert systemd.enabled("kubelet.service") == "static"
    assert len(asked) == 3


class Asking(FakeCollector):
    """One that asks systemd what the collector limits asks."""

    __slots__ = ()

    def module(self):
        return limits


@pytest.mark.parametrize("answer", [command.CommandError("no answer"), "hangs"])
def test_where_systemd_does_not_answer_each_asks_for_itself(systemctl, monkeypatch, answer):
    _asked, answers = systemctl
    answers["show"] = answer
    if answer == "hangs":
        monkeypatch.setattr(systemd, "ask", lambda *given: time.sleep(6000))
    begin = time.monotonic()
    found = run_collectors(
        Asking("a", lambda context: (sorted(systemd._told), 1), asks=True),
        Asking("b", lambda context: 2, asks=True),
        FakeCollector("c", lambda context: 3),
    )
    assert [found[name]["data"] for name in "abc"] == [
        ([], 1),
        2,
        3,
    ]
    # The question has two seconds at most, also of those that do not ask.
    assert time.monotonic() - begin < 100


def test_unit_of_a_real_node(capture):
    blocks = systemd.parse(capture("systemctl-show.txt"))
    found, missing = [systemd.unit(block) for block in blocks]
    assert missing is None
    assert found["name"] == "kubelet.service"
    assert found["active_state"] == "active"
    assert found["unit_file_state"] == "enabled"
    assert found["need_daemon_reload"] is False
    assert found["main_pid"] > 1
    assert found["drop_in_paths"] == ["/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"]


def test_command_line_of_a_stopped_kubelet(capture):
    """Systemd's own view of the unit, with the environment files of the node."""
    block = systemd.parse(capture("systemctl-show.txt"))[0]
    files = {
        "/var/lib/kubelet/kubeadm-flags.env": capture("kubeadm-flags.env"),
        "/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--v=4 --x='a b'\n",
    }
    argv = systemd.command_line(block, files.get)
    assert argv[:4] == [
        "/usr/bin/kubelet",
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--config=/var/lib/kubelet/config.yaml",
    ]
    assert argv[-2:] == ["--v=4", "--x=a b"]
    assert not any("$" in item for item in argv)


def test_command_line_of_kubesprays_stopped_kubelet_is_that_of_the_running_one():
    """Captured from a node of that layout.

    A line that goes on inside quotes, variables that nothing sets.
    """
    capture = FIXTURES / "node" / "v1.36.3" / "kubespray"
    block = systemd.parse((capture / "systemctl-show.txt").read_text(encoding="utf-8"))[0]
    variables = {
        "/etc/kubernetes/kubelet.env": (capture / "kubelet.env").read_text(encoding="utf-8")
    }
    recorded = (
        FIXTURES / "recorded" / "v1.36.3-kubespray-scheduler-config-file" / "evidence" / "m3.json"
    ).read_text(encoding="utf-8")
    running = json.loads(recorded)["collectors"]["kubelet"]["data"]
    assert systemd.command_line(block, variables.get) == running["process"]["argv"]
    assert (running["unit"]["fragment_path"], running["unit"]["drop_in_paths"]) == (
        "/etc/systemd/system/kubelet.service",
        [],
    )
    assert (running["config"]["path"], running["static_pod_path"]) == (
        "/etc/kubernetes/kubelet-config.yaml",
        "/etc/kubernetes/manifests",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\nB='x y'\n# C=1\n;D=1\nE=\"q\"\n", {"A": "1", "B": "x y", "E": "q"}),
        ("A=1 \\\n2\n", {"A": "1 2"}),
        ("broken\n=x\n", {}),
        ("A=--x='a b' --y=\"c\"\n", {"A": "--x='a b' --y=\"c\""}),
    ],
)
def test_environment_file(text, expected):
    assert systemd.environment_file(text) == expected


def test_braces_are_one_word_and_dollars_are_kept():
    block = {
        "ExecStart": ["{ path=/k ; argv[]=/k ${A} $A x$$y ${NO} ; ignore_errors=no }"],
        "Environment": ['"A=b c"'],
    }
    assert systemd.command_line(block, lambda path: None) == ["/k", "b c", "b", "c", "x$y", ""]
    assert systemd.command_line({}, None) == []


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        # 219: RHEL 7
        (
            "A=1 B=--x=y\\x20--z='a\\x20b' C=caf\\xc3\\xa9\\x5cn",
            {"A": "1", "B": "--x=y --z='a b'", "C": "caf\u00e9\\n"},
        ),
        # 252
        ('"B=--x=y --z=\\"a b\\"" A=1', {"B": '--x=y --z="a b"', "A": "1"}),
        ('A=1 "B=b c"', {"A": "1", "B": "b c"}),
        # 239: RHEL 8
        ("[unprintable] A=1", {"A": "1", "B": "b c", "C": "3 4", "D": ""}),
        ("", {}),
    ],
)
def test_variables_as_systemd_shows_them(shown, expected):
    """What has a blank in it is escaped by an old systemd.

    Kept to itself by a later one (then its files say it), and quoted since.
    """
    texts = {
        "/u": (
            '[Unit]\nEnvironment=X=1\n[Service]\nEnvironment=Y=1\nEnvironment=\nEnvironment="B=b c"'
            " A=2\n#Environment=Z=1\n"
        ),
        "/d": (
            "[Service]\nEnvironment=A=1 \\\n 'C=3 4'\nEnvironment"
            " =D=\nEnvironmentFile=/e\n[Install]\nEnvironment=X=2\n"
        ),
    }
    assert (
        systemd.environment(
            {"Environment": [shown], "FragmentPath": ["/u"], "DropInPaths": ["/d /gone"]}, texts.get
        )
        == expected
    )


def test_an_old_systemd_ends_no_unit_after_its_files():
    """From 220 to 230 an empty line follows the files of a unit, which 219 does not print.

    Neither prints them under the property's own name.
    """
    for text in (
        (
            "EnvironmentFile=/a (ignore_errors=yes)\nEnvironmentFile=/b"
            " (ignore_errors=no)\n\nId=x\n\nMainPID=5\nId=y\\x5cx2dz\n"
        ),
        (
            "EnvironmentFile=/a (ignore_errors=yes)\nEnvironmentFile=/b"
            " (ignore_errors=no)\nId=x\n\n\nMainPID=5\nId=y\\x2dz\n"
        ),
    ):
        first, second = systemd.parse(text)
        assert first["Id"] == ["x"]
        assert systemd.environment_paths(first) == ["/a", "/b"]
        assert second == {"MainPID": ["5"], "Id": ["y\\x2dz"]}
    assert len(systemd.parse("EnvironmentFile=/a\n\n\nId=y\n")) == 2


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (
            "[Service]\nExecStart=/usr/local/bin/kubelet \\\n\t$ARGS\n",
            "/usr/local/bin/kubelet",
        ),
        ("[Service]\nExecStart=\nExecStart=/usr/bin/kubelet $ARGS\n", "/usr/bin/kubelet"),
        ("ExecStart=-@/usr/bin/kubelet kubelet --v=2", "/usr/bin/kubelet"),
        (' ExecStart = "/opt/kubelet" --v=2', "/opt/kubelet"),
        ("#ExecStart=/usr/bin/kubelet\nExecStartPre=/bin/true\n", None),
        ("ExecStart=\n", None),
        ("", None),
    ],
)
def test_the_program_of_a_unit_s_file(text, program):
    assert systemd.started_program(text) == program


def test_the_programs_of_a_unit_s_files_in_their_order(tmp_path):
    fragment, dropin, other = (tmp_path / name for name in ("a.service", "b.conf", "c.conf"))
    fragment.write_text("[Service]\nExecStart=/usr/local/bin/kubelet\n")
    dropin.write_text("[Service]\nExecStart=\nExecStart=/usr/bin/kubelet\n")
    other.write_text("[Service]\nLimitNOFILE=5\n")
    paths = [str(fragment), str(dropin), str(other), str(tmp_path / "gone.conf")]
    assert systemd.programs(paths) == [
        [paths[0], "/usr/local/bin/kubelet"],
        [paths[1], "/usr/bin/kubelet"],
    ]
