# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What proves that a component runs as it should, with a clock and processes made up."""

import os
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import step_record
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    health_probe,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    component_endpoints,
    component_process,
)
from tests.unit.support.facts import facts

NAME = "kube-scheduler"
WELL = {"healthz": 200, "check": True, "elect": True, "configz": 200, "error": None}
SICK = {"healthz": None, "check": None, "elect": None, "configz": None, "error": "refused"}
OFF = dict(WELL, check=False, elect=False)


def one(pid, *flags):
    return health_probe.Instance(pid, pid * 10, [NAME, *flags], {"pod_uid": "u"})


class Story:
    """What runs, what it says and which logs there are, each from a second on: [(since, what)]."""

    def __init__(self, monkeypatch):
        self.now, self.runs, self.says, self.logs, self.asked = (
            0.0,
            [(0, [one(7)])],
            [(0, WELL)],
            [(0, ())],
            [],
        )
        monkeypatch.setattr(
            health_probe,
            "time",
            SimpleNamespace(monotonic=lambda: round(1000 + self.now, 3), sleep=self.sleep),
        )
        monkeypatch.setattr(health_probe, "instances", lambda dummy: self.at(self.runs))
        monkeypatch.setattr(health_probe, "starts", lambda dummy: set(self.at(self.logs)))
        monkeypatch.setattr(health_probe, "ask", self.ask)

    def sleep(self, seconds):
        self.now = round(self.now + seconds, 3)

    def at(self, told):
        return [what for since, what in told if self.now >= since - 0.01][-1]

    def ask(self, dummy, instance, credentials):
        self.asked.append((self.now, instance.pid))
        return self.at(self.says)

    def wait(self, want=None, end=60, **more):
        found = health_probe.wait(
            want or health_probe.ExpectedState(NAME, elect=True), [], 1000 + end, **more
        )
        return found.ok, found.reason


@pytest.fixture
def story(monkeypatch):
    return Story(monkeypatch)


def test_it_is_proven_once_it_was_well_for_two_seconds(story):
    assert story.wait() == (True, None)
    assert 2 <= story.now < 2.3
    assert len(story.asked) == 3, "not asked at every look"


@pytest.mark.parametrize("stable", [0.5, 5])
def test_how_long_is_the_callers_choice(story, stable):
    assert story.wait(stable=stable)[0]
    assert stable <= story.now < stable + 0.3


def test_one_that_ends_within_the_two_seconds_proves_nothing(story):
    story.runs = [(0, [one(7)]), (1.5, []), (3, [one(8)])]
    assert story.wait() == (True, None)
    assert 5 <= story.now < 5.3
    assert story.asked[-1][1] == 8


def test_nor_does_its_successor_inherit_what_it_showed(story):
    story.runs = [(0, [one(7)]), (1.5, [one(8)])]
    assert story.wait()[0]
    assert 3.5 <= story.now < 3.8


def test_one_that_is_not_well_any_more_when_it_is_asked_again(story):
    story.says = [(0, WELL), (0.5, SICK), (4, WELL)]
    assert story.wait()[0]
    assert 6 <= story.now < 6.3


def test_the_right_process_alone_is_no_proof(story):
    story.says = [(0, SICK)]
    healthy, reason = story.wait(end=5)
    assert healthy is False
    facts(reason, "healthz", "refused")
    assert 5 <= story.now < 5.3


def test_nothing_that_runs_is_none_either(story):
    story.runs = [(0, [])]
    healthy, reason = story.wait(end=5)
    assert healthy is False
    facts(reason, "no process", "kube-scheduler")
    assert story.asked == []


def test_the_former_process_is_not_the_one(story):
    healthy, reason = story.wait(health_probe.ExpectedState(NAME, not_identity=(7, 70)), end=5)
    assert healthy is False
    facts(reason, "former process", "pid 7")
    assert story.asked == []


def test_what_is_wrong_for_five_seconds_stays_wrong(story):
    story.says = [(0, OFF)]
    healthy, reason = story.wait()
    assert healthy is False
    facts(reason, "healthz", "leader election", "off")
    assert 5 <= story.now < 5.3


def test_what_is_wrong_for_a_moment_is_not(story):
    story.says = [(0, OFF), (4, WELL), (4.5, OFF), (8, WELL)]
    assert story.wait()[0]
    assert story.now < 10.5


def test_who_is_not_to_give_up_waits_to_the_end(story):
    story.says = [(0, OFF)]
    assert story.wait(end=20, hopeless=False)[0] is False
    assert story.now >= 20
    story.now, story.says, story.runs = (
        0.0,
        [(0, SICK)],
        [(0, [one(7)]), (1, [one(8)]), (2, [one(9)]), (3, [])],
    )
    assert story.wait(end=20, hopeless=False)[0] is False
    assert story.now >= 20


def test_one_that_is_well_just_before_the_end_gets_its_two_seconds(story):
    story.says = [(0, SICK), (4.5, WELL)]
    assert story.wait(end=5) == (True, None)
    assert 6.5 <= story.now < 6.8


def test_three_that_ended_are_enough(story):
    story.says = [(0, SICK)]
    story.runs = [(0, [one(7)]), (1, []), (2, [one(8)]), (3, []), (4, [one(9)]), (5, [])]
    healthy, reason = story.wait()
    assert healthy is False
    facts(reason, "new process", "3 times")
    assert 5 <= story.now < 5.3


def test_two_that_ended_are_told_at_the_end(story):
    story.says, story.runs = [(0, SICK)], [(0, [one(7)]), (1, [one(8)]), (2, [])]
    healthy, reason = story.wait(end=9)
    assert healthy is False
    facts(reason, "kube-scheduler", "new process", "2 times")


def test_those_that_left_only_a_log_ended_too(story):
    """Seen between two looks or not at all.

    The logs of the beginning are of earlier ones, and one is of the process that runs.
    """
    story.runs, story.logs = (
        [(0, [])],
        [
            (0, ("0.log",)),
            (2, ("0.log", "1.log")),
            (4, ("1.log", "2.log")),
            (6, ("2.log", "3.log")),
        ],
    )
    healthy, reason = story.wait()
    assert healthy is False
    facts(reason, "new process", "3 times")
    assert 6 <= story.now < 7.2
    story.now, story.runs, story.says = 0.0, [(0, [one(7)])], [(0, SICK)]
    facts(story.wait(end=12)[1], "healthz", "refused", "new process", "2 times")


def test_beside_another_one_nobody_knows_who_answered(story):
    story.runs = [(0, [one(8), one(7)])]
    healthy, reason = story.wait(end=5)
    assert healthy is False
    facts(reason, "another process", "pid 7")
    assert story.asked == []


def test_another_one_that_comes_within_the_two_seconds(story):
    """A second manifest that the kubelet takes for it.

    What was shown before it came is not what is there now.
    """
    story.runs = [(0, [one(7)]), (1, [one(8), one(7)])]
    healthy, reason = story.wait(health_probe.ExpectedState(NAME, not_identity=(8, 80)), end=5)
    assert healthy is False
    facts(reason, "another process", "pid 8")
    story.now, story.runs = 0.0, [(0, [one(7)]), (1, [one(8), one(7)]), (4, [one(7)])]
    assert story.wait(health_probe.ExpectedState(NAME, not_identity=(8, 80)))[0]
    assert story.now >= 4


def test_the_kubelets_back_off_is_asked_for_once(story):
    asked = []

    def later():
        asked.append(story.now)
        return 1000 + 10

    story.runs = [(0, []), (8, [one(7)])]
    assert story.wait(end=5, later=later) == (True, None)
    assert len(asked) == 1
    assert 5 <= asked[0] < 5.3
    story.now, story.runs = 0.0, [(0, [])]
    assert story.wait(end=5, later=later)[0] is False
    assert len(asked) == 2
    assert 10 <= story.now < 10.3


@pytest.mark.parametrize("runs", [[(0, [one(7)])], [(0, [one(7)]), (2, [])]])
def test_no_back_off_for_what_runs_or_ended(story, runs):
    story.runs, story.says = runs, [(0, SICK)]
    assert story.wait(end=5, later=lambda: 1000 + 60)[0] is False
    assert story.now < 5.3


def test_where_only_its_process_counts_it_is_not_asked(story):
    assert story.wait(health_probe.ExpectedState(NAME, healthy=False))[0]
    assert story.asked == []
    assert 2 <= story.now < 2.3


@pytest.mark.parametrize(
    ("want", "said"),
    [
        ({"argv": [NAME, "--v=2", "--x", "--y=T"]}, None),
        ({"argv": [NAME]}, "former command line"),
        ({"argv": [NAME, "--v=2"]}, "former command line"),
        ({"flags": {"v": "2"}}, None),
        ({"flags": {"v": "3"}}, "runs with --v = 2, not = 3"),
        ({"flags": {"v": None}}, "runs with --v = 2, not not set"),
        ({"flags": {"w": None}}, None),
        ({"flags": {"w": "true"}}, "runs with --w not set, not = true"),
        ({"flags": {"a": None, "v": "9"}}, "--v"),
        ({"flags": {"x": "true"}}, None),
        ({"flags": {"y": "true"}}, None),
        ({"flags": {"v": "true"}}, "runs with --v"),
        ({"flags": {"x": "1"}}, "runs with --x"),
    ],
)
def test_the_command_line_that_is_wanted(want, said):
    told = health_probe.ExpectedState(NAME, **want).misfit(one(7, "--v=2", "--x", "--y=T"))
    assert said in told if said else told is None


@pytest.mark.parametrize(
    ("told", "elect", "said"),
    [
        (WELL, True, None),
        (WELL, False, "says that leader election is on"),
        (OFF, True, "says that leader election is off"),
        (OFF, False, None),
        (dict(WELL, check=None), True, None),
        (dict(WELL, check=None, elect=False), True, "its configz says"),
        (dict(WELL, check=False, elect=None), True, "its healthz says"),
        (dict(WELL, healthz=500), True, "its healthz answers 500"),
        (dict(WELL, healthz=500), None, "its healthz answers 500"),
        (OFF, None, None),
        (dict(WELL, elect=None, check=None), True, "neither its healthz nor its configz"),
        (dict(WELL, elect=None, check=None), None, None),
    ],
)
def test_what_it_must_have_shown(told, elect, said):
    lacks = health_probe.ExpectedState(NAME, elect=elect).lacking(told, 60)
    assert said in lacks if said else lacks is None


@pytest.mark.parametrize(
    ("told", "elect"),
    [
        (WELL, None),
        (OFF, None),
        (dict(OFF, healthz=500), True),
        (SICK, True),
        (dict(WELL, elect=None, check=None), True),
    ],
)
def test_what_is_no_contradiction(told, elect):
    """Where it does not matter, or one that is not well says anything at all.

    There is time left for it.
    """
    assert health_probe.ExpectedState(NAME, elect=elect).contrary(told) is None


@pytest.mark.parametrize(
    ("age", "code", "refuses"),
    [(24, 403, True), (24, 401, True), (26, 403, False), (24, 404, False)],
)
def test_a_young_one_may_still_refuse_everybody(age, code, refuses):
    lacks = health_probe.ExpectedState(NAME, elect=True).lacking(
        dict(WELL, configz=code, elect=None), age
    )
    assert (lacks == f"its configz refuses us (HTTP {code:d})") is refuses
    assert refuses or lacks is None


UID = "0123456789abcdef" * 2


def test_when_it_was_started_and_which_starts_left_a_log(monkeypatch, tmp_path):
    mine = health_probe.Instance(os.getpid(), step_record.ticks(os.getpid()), [], {"pod_uid": None})
    assert abs(mine.started_at - component_process.procfs.started_at(os.getpid())) < 1
    assert mine.started_at > 0
    monkeypatch.setattr(component_process, "PODS", str(tmp_path))
    for name in (
        f"kube-system_kube-scheduler-m2_{UID}/kube-scheduler/0.log",
        f"kube-system_kube-scheduler-m2_{UID}/kube-scheduler/1.log",
        "kube-system_etcd-m2_u/etcd/0.log",
        f"kube-system_kube-scheduler-m2_{UID}/kube-scheduler/note.txt",
        "clusters-a_kube-scheduler-6d5f_v/kube-scheduler/0.log",
        f"kube-system_kube-scheduler-m2_{UID}/sidecar/0.log",
        f"kube-system_kube-scheduler-extender-m2_{UID}/kube-scheduler-extender/0.log",
        # another scheduler, in a pod of the API
        "kube-system_kube-scheduler-extra-6d5f-x2bzx_5d0cf9b4-2a39-4f0e-9c1d-6e6a7f0a2d11"
        "/kube-scheduler/0.log",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(os.path.relpath(path, tmp_path) for path in health_probe.starts(NAME)) == [
        f"kube-system_kube-scheduler-m2_{UID}/kube-scheduler/0.log",
        f"kube-system_kube-scheduler-m2_{UID}/kube-scheduler/1.log",
    ]


class Served:
    """A component's doors and answers: healthz by port, configz by certificate."""

    def __init__(self, monkeypatch, doors, healthz, configz):
        self.asked, self.configz, self.closed = [], configz, 0
        monkeypatch.setattr(component_endpoints, "doors", lambda component, argv: doors)
        monkeypatch.setattr(
            component_process,
            "healthz",
            lambda address, port, pairs, seconds, secure: (
                self.asked.append(("healthz", port, list(pairs), secure)) or healthz[port]
            ),
        )
        monkeypatch.setattr(
            component_process.tls, "context", lambda certificate, key: (certificate, key)
        )
        monkeypatch.setattr(component_process.http_client, "Connection", self.connect)
        monkeypatch.setattr(component_endpoints, "configz", lambda answer: answer)

    def connect(self, address, port, seconds, context):
        answer = self.configz[context and context[0]]
        self.asked.append(("configz", port, context))

        def request(path):
            if isinstance(answer, str):
                raise component_process.http_client.HttpError(answer)
            return [dict({"leader_election": None}, **answer)]

        def close():
            self.closed += 1

        return SimpleNamespace(request=request, close=close)


OK = {"status": 200, "body": "[+]ping ok\n[+]leaderElection ok\n", "error": None}
NONE = {"status": None, "body": "", "error": "refused"}
PAIRS = [("/a", "cert-a", "key-a"), ("/b", "cert-b", "key-b")]
ON = {"status": 200, "leader_election": {"LeaderElect": True}}


def said(served_by, component=NAME):
    told = health_probe.ask(component, one(7), PAIRS)
    assert served_by.closed == len([asked for asked in served_by.asked if asked[0] == "configz"])
    return told["port"], told["healthz"], told["check"], told["elect"], told["configz"]


def test_what_it_says_of_itself(monkeypatch):
    served = Served(monkeypatch, [("127.0.0.1", 10259, True)], {10259: OK}, {"cert-a": ON})
    assert said(served) == (10259, 200, True, True, 200)
    assert served.asked == [("healthz", 10259, [], True), ("configz", 10259, ("cert-a", "key-a"))]


def test_the_door_that_answers(monkeypatch):
    """Over plain HTTP no client is asked who it is."""
    served = Served(
        monkeypatch,
        [("127.0.0.1", 10259, True), ("127.0.0.1", 10251, False)],
        {10259: NONE, 10251: OK},
        {None: ON},
    )
    assert said(served) == (10251, 200, True, True, 200)
    assert served.asked[-1] == (
        "configz",
        10251,
        None,
    )
    assert health_probe.ask(NAME, one(7), [])["configz"] == 200
    served = Served(
        monkeypatch,
        [("127.0.0.1", 10259, True), ("127.0.0.1", 10251, False)],
        {10259: OK, 10251: NONE},
        {"cert-a": ON},
    )
    assert said(served)[0] == 10259


def test_no_door_answers_or_there_is_none(monkeypatch):
    served = Served(monkeypatch, [("127.0.0.1", 10259, True)], {10259: NONE}, {})
    assert said(served) == (10259, None, None, None, None)
    assert health_probe.ask(NAME, one(7), PAIRS)["error"] == "refused"
    assert said(Served(monkeypatch, [], {}, {})) == (None, None, None, None, None)
    assert health_probe.ask(NAME, one(7), PAIRS)["error"] == "it serves on no port"


@pytest.mark.parametrize(("status", "check"), [(500, True), (401, None), (403, None), (404, None)])
def test_who_is_not_well_is_not_asked_further(monkeypatch, status, check):
    """A healthz that fails names its checks all the same; a refusal names none."""
    served = Served(monkeypatch, [("127.0.0.1", 10259, True)], {10259: dict(OK, status=status)}, {})
    assert said(served) == (10259, status, check, None, None)


@pytest.mark.parametrize(
    ("first", "elect", "code"),
    [
        ({"status": 403}, True, 200),
        ({"status": 401}, True, 200),
        ("no such file", True, 200),
        ({"status": 404}, None, 404),
        ({"status": 200, "leader_election": {"leaderElect": False}}, False, 200),
        ({"status": 200, "leader_election": {"leaseDuration": 1}}, None, 200),
    ],
)
def test_the_next_certificate_is_tried_where_one_is_refused(monkeypatch, first, elect, code):
    served = Served(
        monkeypatch, [("127.0.0.1", 10259, True)], {10259: OK}, {"cert-a": first, "cert-b": ON}
    )
    assert said(served) == (10259, 200, True, elect, code)


def test_where_every_certificate_is_refused(monkeypatch):
    served = Served(
        monkeypatch,
        [("127.0.0.1", 10259, True)],
        {10259: OK},
        {"cert-a": {"status": 403}, "cert-b": {"status": 403}},
    )
    assert said(served) == (10259, 200, True, None, 403)


def test_only_an_api_server_is_shown_certificates_for_its_healthz(monkeypatch):
    served = Served(
        monkeypatch, [("10.0.0.1", 6443, True)], {6443: OK}, {"cert-a": {"status": 404}}
    )
    said(served, "kube-apiserver")
    assert served.asked[0] == ("healthz", 6443, PAIRS, True)


def test_a_certificate_that_cannot_be_used_is_no_answer(monkeypatch):
    """The next one may be."""

    def context(*pair):
        if pair == ("cert-a", "key-a"):
            raise component_process.http_client.HttpError("no such file")
        return pair

    monkeypatch.setattr(component_process.tls, "context", context)
    monkeypatch.setattr(
        component_process.http_client,
        "get",
        lambda address, port, path, seconds, pair: {
            "status": 400 if pair is None else 200 if pair == ("cert-b", "key-b") else 401,
            "error": None,
        },
    )
    assert health_probe.healthz("10.0.0.1", 6443, PAIRS)["status"] == 200
    assert health_probe.healthz("10.0.0.1", 6443, PAIRS[:1]) == {
        "status": 401,
        "error": "no such file",
    }
    monkeypatch.setattr(
        component_process.http_client,
        "get",
        lambda address, port, path, seconds, pair: {"status": 401, "error": pair},
    )
    assert health_probe.healthz("127.0.0.1", 10251, PAIRS, secure=False) == {
        "status": 401,
        "error": None,
    }


@pytest.mark.parametrize(
    ("told", "elect"),
    [
        (WELL, True),
        (dict(WELL, elect=None), True),
        (dict(WELL, elect=False), False),
        (dict(WELL, elect=None, check=None), None),
    ],
)
def test_what_a_step_tells_of_its_proof(told, elect):
    """The proof is its configz where that says it, else its healthz."""
    found = health_probe.HealthResult()
    assert (found.ok, found.observation()) == (
        False,
        {"pid": None, "started_at": None, "elect": None, "healthz": None, "configz": None},
    )
    found.answer, found.instance = told, SimpleNamespace(pid=7, started_at=5.0)
    assert found.observation() == {
        "pid": 7,
        "started_at": 5.0,
        "elect": elect,
        "healthz": 200,
        "configz": 200,
    }


def test_what_is_wanted() -> None:
    instance = health_probe.Instance(
        7, 1, ["kube-scheduler", "--leader_elect=false", "--leader-elect"], {"pod_uid": None}
    )
    assert (
        health_probe.ExpectedState("kube-scheduler", {"leader-elect": "true"}).misfit(instance)
        is None
    )
    assert "runs with --leader-elect" in (
        health_probe.ExpectedState("kube-scheduler", {"leader-elect": "false"}).misfit(instance)
        or ""
    )
    assert "former process" in (
        health_probe.ExpectedState("kube-scheduler", not_identity=(7, 1)).misfit(instance) or ""
    )
    want = health_probe.ExpectedState("kube-scheduler", elect=True)
    answer = {"healthz": 200, "check": True, "elect": None, "configz": 403, "error": None}
    assert "refuses us" in (want.lacking(answer, 1) or "")
    assert want.lacking(answer, 60) is None
    assert "configz says" in (want.lacking({**answer, "elect": False, "configz": 200}, 60) or "")
    assert "neither" in (want.lacking({**answer, "check": None}, 60) or "")
