# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM404 as steps: which service gets a drop-in, and what logins get.

The tests also check which process only gets advice, and what forbids a step.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.limits import NR_OPEN
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    kernel_settings,
    login_limits,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    run_files,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_limits import POD, Node, process, unit

APP, OURS = "app.service", "/etc/systemd/system/app.service.d/99-zz-kubemend.conf"
HIGHER = "/etc/systemd/system/app.service.d/zzz.conf"


def full(pid=50, soft=2048, hard=4096, **more):
    return {
        "pid": pid,
        "comm": "app",
        "uid": 0,
        "unit": APP,
        "pod_uid": None,
        "container_id": None,
        "open": soft,
        "soft": soft,
        "hard": hard,
        "ticks": 777,
        "session": None,
        **more,
    }


class Full(Node):
    """w1 of limits_node, with a service at its limit."""

    def __init__(self, world):
        super().__init__(world)
        self.walk.update(nofile=[full()], units=[unit(APP, ours=None)])
        self.seen["processes"].append(process("sshd", 3, nofile=(1024, 4096)))

    def steps(self, *allow, max_risk=1, **limits):
        documents = self.world.documents
        result, found = fault_engine.evaluate_clusters(
            [*documents.values(), self.world.api], frozenset({"KM404"}), deep=True
        )
        consent = plan.Consent(max_risk, frozenset(allow), limits=limits)
        return plan.plan(
            result.findings,
            found,
            documents.__getitem__,
            consent,
            kernel_settings.REMEDIES,
            fault_engine.KEY_DIGITS,
        )

    def step(self, *allow, **limits):
        (one,) = self.steps(*allow, **limits)
        return one


@pytest.fixture
def node(world):
    return Full(world)


def test_a_service_gets_a_dropin_and_its_process_is_told(node):
    step = node.step()
    assert (step.host, step.code, step.remedy, step.risk, step.target, step.allowed) == (
        "w1",
        "KM404",
        "unit_limit",
        1,
        OURS,
        True,
    )
    assert step.change == {
        "kind": "unit_limit",
        "path": OURS,
        "unit": APP,
        "line": "655360",
        "processes": [{"pid": 50, "ticks": 777, "soft": 655360, "hard": 655360}],
    }
    assert (
        step.diff
        == f"--- {OURS}\n+++ {OURS}\n+[Service]\n+LimitNOFILE=655360\nprocess 50 (app): 2048 (hard"
        " 4096) -> 655360 (hard 655360)\n"
    )
    assert "select()" not in step.note
    assert "nothing is restarted" in step.note
    assert "daemon-reload" in step.note
    assert step.expect == {"component": None, "later": False}
    facts(node.steps(max_risk=0)[0].blocked_by, "risk 1", "-e kubemend_max_risk=1")


def first(soft=1100, hard=4096, **more):
    return {
        "pid": 40,
        "comm": "app",
        "uid": 0,
        "role": "",
        "unit": APP,
        "nofile": [soft, hard],
        "open": 9,
        "ticks": 700,
        **more,
    }


def test_a_worker_is_at_its_limit_and_its_first_process_is_told_too(node):
    node.walk["units"] = [unit(APP, ours=None, main=first())]
    step = node.step()
    assert [
        (one["pid"], one["ticks"], one["soft"], one["hard"]) for one in step.change["processes"]
    ] == [(50, 777, 655360, 655360), (40, 700, 655360, 655360)]
    assert step.diff.endswith(
        "process 40 (app), from which others inherit it: 1100 (hard 4096) -> 655360 (hard 655360)\n"
    )
    assert step.allowed
    assert step.expect == {"component": None, "later": False}


@pytest.mark.parametrize(
    ("main", "cap", "said"),
    [
        (first(soft=1024), True, "what its first process 40 starts has 1024 until then"),
        (first(soft=4096), False, "what its first process 40 starts has 4096"),
        (first(soft=655360, hard=655360), True, ""),
        (first(nofile=None), True, ""),
        (first(ticks=None), True, ""),
        (None, True, ""),
    ],
)
def test_a_first_process_that_is_not_told(node, main, cap, said):
    node.seen["init"].update(cap_sys_resource=cap)
    node.walk["units"] = [unit(APP, ours=None, main=main)]
    step = node.step()
    assert [one["pid"] for one in step.change["processes"]] == [50]
    assert said in step.note
    assert ("its first process" in step.note) == bool(said)


def test_a_first_process_of_another_type_is_unknown_and_plans_nothing(node):
    node.walk["units"] = [unit(APP, ours=None, main="x")]
    assert not node.steps()


def test_a_first_process_that_is_told_makes_up_for_no_worker_that_is_not(node):
    node.walk.update(
        nofile=[full(), full(pid=51, ticks=None)], units=[unit(APP, ours=None, main=first())]
    )
    step = node.step()
    assert [one["pid"] for one in step.change["processes"]] == [
        50,
        40,
    ]
    assert "keeps it until then" in step.note
    assert "-e kubemend_allow=service_restart -e kubemend_max_risk=2" in step.note


@pytest.mark.parametrize(
    ("has", "line"),
    [
        ([1024, 524288], "655360"),
        ([4096, 4096], "655360"),
        ([1024, 1048576], "655360:1048576"),
        ([1024, -1], "655360:infinity"),
        ([655359, 655360], "655360"),
        ([655360, 655360], None),
        ([-1, -1], None),
        ([700000, 700000], None),
    ],
)
def test_never_below_what_the_unit_has(node, has, line):
    node.walk["units"] = [unit(APP, limit_nofile=has, ours=None)]
    step = node.step()
    assert step.change["line"] == line
    assert step.allowed
    assert ("LimitNOFILE" in step.diff) == (line is not None) == ("is restarted" in step.note)


@pytest.mark.parametrize(
    ("cap", "soft", "hard", "told", "later"),
    [
        (True, 2048, 1048576, (655360, 1048576), False),
        (True, 2048, -1, (655360, -1), False),
        (False, 2048, 4096, (4096, 4096), False),
        (False, 2048, 2048, (None, None), True),
        (False, 2000, 2080, (2080, 2080), True),
        (False, 2048, -1, (655360, -1), False),
    ],
)
def test_without_the_capability_a_process_is_told_no_more_than_its_hard_limit(
    node, cap, soft, hard, told, later
):
    node.seen["init"].update(cap_sys_resource=cap)
    node.walk["nofile"] = [full(soft=soft, hard=hard)]
    step = node.step()
    (one,) = step.change["processes"]
    assert (one["soft"], one["hard"]) == told
    assert step.expect["later"] is later
    assert ("keeps it until then" in step.note) == (told[0] is None)


@pytest.mark.parametrize(
    ("ours", "cap", "expected"),
    [("655360", False, []), ("655360", True, [None]), ("4096", False, ["655360"])],
)
def test_what_our_file_says_already_is_not_written_again(node, ours, cap, expected):
    node.seen["init"].update(cap_sys_resource=cap)
    node.walk.update(nofile=[full(hard=2048)], units=[unit(APP, ours=ours)])
    assert [step.change["line"] for step in node.steps()] == expected


@pytest.mark.parametrize(
    ("change", "limits", "said"),
    [
        (
            {"kernel": {NR_OPEN: "500000"}},
            {},
            (
                "LimitNOFILE=655360 is above 500000 (fs.nr_open), and app.service would not start"
                " with it: ask for less with -e kubemend_nofile=NUMBER"
            ),
        ),
        (
            {"init": {"nofile": [20000, 20000], "cap_sys_resource": False}},
            {},
            "is above 20000 (the hard limit of PID 1",
        ),
        ({"init": None}, {}, "how many files a process may have open at most could not be read"),
        ({}, {"nofile": 1000}, "app.service has 2048 already, which are used up"),
    ],
)
def test_refused_by_name(node, change, limits, said):
    node.seen.update(change)
    step = node.step(**limits)
    assert said in step.blocked_by
    assert not step.allowed


@pytest.mark.parametrize(
    ("walk", "said"),
    [
        ({"units": None}, "what systemd gives app.service could not be read"),
        ({"units": [unit(APP, limit_nofile=None)]}, "what systemd gives app.service"),
        ({"nofile": [full(ticks=None)]}, "when its processes were started is not known"),
        (
            {"units": [unit(APP, sets=[{"path": HIGHER, "line": 2, "text": "LimitNOFILE=5"}])]},
            f"{HIGHER}:2 is read after {OURS} and says LimitNOFILE=5",
        ),
    ],
)
def test_what_is_not_known_or_decides_later(node, walk, said):
    node.walk.update(walk)
    assert said in node.step().blocked_by


def test_a_file_that_is_read_before_ours_is_none_of_our_business(node):
    node.walk["units"] = [
        unit(
            APP,
            sets=[
                {"path": path, "line": 2, "text": "LimitNOFILE=5"}
                for path in ("/usr/lib/systemd/system/zzz.service", OURS.replace("99-zz", "50"))
            ],
        )
    ]
    assert node.step().allowed


def test_a_target_that_is_asked_for(node):
    assert node.step(nofile=3000).change["line"] == "3000:524288"
    assert node.step(nofile=1000000).change["line"] == "1000000"


def test_somebody_who_took_the_node_out_is_left_alone(node):
    node.world.nodes = None
    node.document["collectors"]["kubelet"] = {
        "status": "ok",
        "data": {"unit": {"name": "kubelet.service", "load_state": "masked"}},
    }
    assert "masked" in node.step().blocked_by
    assert node.step("fenced").allowed


@pytest.mark.parametrize(
    "one",
    [
        full(pod_uid=POD, container_id="c" * 64, unit=None),
        full(unit=None),
        full(unit="a b.service"),
        full(unit="-x.service"),
        full(unit="x.scope"),
        full(unit="user@1000.service"),
        full(unit=None, session="session-1.scope", hard=700000),
        full(unit=None, session="session-1.scope", hard=-1),
    ],
)
def test_of_others_the_finding_says_what_to_do(node, one):
    node.walk["nofile"] = [one]
    assert node.present() == ["KM404"]
    assert node.steps() == ()


def test_a_kubelet_sets_its_own(node):
    node.walk["nofile"] = []
    node.seen["processes"][0].update(open=1000000, ticks=5)
    assert "maxOpenFiles" in node.finding("KM404").remedy
    assert node.steps() == ()


@pytest.mark.parametrize("name", ["kubelet.service", "k3s.service", "rke2-agent.service"])
def test_what_else_runs_in_the_unit_of_a_kubelet_gives_it_no_dropin(node, name):
    node.walk.update(nofile=[full(unit=name)], units=[unit(name, ours=None)])
    assert node.present() == ["KM404"]
    assert node.steps() == ()


@pytest.mark.parametrize(
    "path", [None, "", "/run/systemd/transient/app.service", "/run/systemd/system/app.service"]
)
def test_a_transient_unit_gets_no_file_and_its_process_is_told(node, path):
    node.walk["units"] = [unit(APP, ours=None, fragment_path=path)]
    step = node.step()
    assert (step.change["line"], step.change["processes"][0]["soft"], step.allowed) == (
        None,
        655360,
        True,
    )
    assert "LimitNOFILE" not in step.diff
    assert "app.service is a transient unit, and gets no file" in step.note
    assert "is restarted" not in step.note
    node.walk["nofile"] = [full(soft=1024)]
    assert node.steps() == ()


@pytest.mark.parametrize(
    "path",
    [
        "/etc/systemd/system/app.service",
        "/lib/systemd/system/app.service",
        "/run/systemd/generator.late/app.service",
    ],
)
def test_a_unit_that_is_there_again_after_a_boot_gets_a_file(node, path):
    node.walk["units"] = [unit(APP, ours=None, fragment_path=path)]
    assert node.step().change["line"] == "655360"


@pytest.mark.parametrize(
    ("soft", "target", "told"),
    [(1024, 655360, None), (100, 1025, None), (100, 1024, 1024), (1025, 655360, 655360)],
)
def test_a_running_process_that_may_use_select_is_not_told(node, soft, target, told):
    node.walk["nofile"] = [full(soft=soft)]
    node.walk["units"] = [unit(APP, limit_nofile=[soft, 4096], ours=None)]
    step = node.step(nofile=target)
    (one,) = step.change["processes"]
    assert (one["soft"], one.get("select", False)) == (told, told is None)
    assert step.change["line"]
    assert step.allowed
    assert ("keeps its limit" in step.note) == (told is None) == step.expect["later"]
    assert "the kernel does not let us" not in step.note
    assert ("process 50" in step.diff) == (told is not None)
    assert ("-e kubemend_allow=service_restart -e kubemend_max_risk=2" in step.note) == (
        told is None
    )


def test_a_runtime_by_the_evidence_of_every_tier(node):
    node.walk["nofile"] = []
    node.seen["processes"][1].update(open=1024, nofile=[1024, 524288], ticks=5)
    step = node.step()
    assert (step.change["unit"], step.change["processes"][0]["pid"]) == (
        "containerd.service",
        2,
    )
    assert step.allowed
    # no program that uses select()
    assert step.change["processes"] == [{"pid": 2, "ticks": 5, "soft": 655360, "hard": 655360}]


def test_what_a_restart_of_a_runtime_costs_is_said_where_only_that_is_left(node):
    node.walk["nofile"] = []
    node.seen["init"].update(cap_sys_resource=False)
    node.seen["processes"][1].update(open=1024, nofile=[1024, 1024], ticks=5)
    note = node.step().note
    assert (
        "service_restart, which ends what containerd.service does in that moment, and leaves"
        " containers running" in note
    )
    assert "-e kubemend_allow=service_restart -e kubemend_max_risk=3" in note


def restarts(node, *allow, **options):
    """Return the steps for a service that only a restart raises, which is allowed."""
    node.seen["init"].update(cap_sys_resource=False)
    return node.steps("service_restart", *allow, **{"max_risk": 3, **options})


def test_a_restart_where_nothing_else_gives_it_at_once(node):
    (step,) = restarts(node)
    assert (
        step.remedy,
        step.risk,
        step.allowed,
        step.change["line"],
        step.change["restart"],
        step.limit,
    ) == ("unit_limit", 2, True, "655360", 655360, 240)
    assert step.diff.endswith(
        f"+LimitNOFILE=655360\nsystemctl daemon-reload; systemctl restart {APP}: process 50 (app)"
        " has 2048 -> 655360\n"
    )
    assert step.guard == {"allow": ["service_restart"]}
    assert "nothing is restarted" not in step.note
    assert step.expect["later"] is False
    facts(restarts(node, max_risk=1)[0].blocked_by, "risk 2", "-e kubemend_max_risk=2")


def test_none_where_the_running_process_can_be_told_or_nobody_allowed_it(node):
    (step,) = node.steps("service_restart", max_risk=3)
    assert "restart" not in step.change
    assert step.risk == 1
    assert "systemctl" not in step.diff
    node.seen["init"].update(cap_sys_resource=False)
    assert "restart" not in node.step().change


def test_the_role_that_wants_the_whole_profile_restarts_nothing(node):
    node.seen["init"].update(cap_sys_resource=False)
    consent = plan.Consent(3, frozenset({"service_restart"}), profile=frozenset({"w1"}))
    documents = node.world.documents
    result, found = fault_engine.evaluate_clusters(
        [*documents.values(), node.world.api], frozenset({"KM404"}), deep=True
    )
    (step,) = plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        consent,
        kernel_settings.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    assert "restart" not in step.change
    assert step.risk == 1


def test_a_restart_alone_where_our_file_says_it_already(node):
    node.walk["units"] = [unit(APP, ours="655360")]
    (step,) = restarts(node)
    assert step.change["line"] is None
    assert step.change["restart"] == 655360
    assert step.diff.startswith("systemctl daemon-reload")


def test_a_transient_unit_is_not_restarted(node):
    node.walk["units"] = [unit(APP, ours=None, fragment_path="/run/systemd/transient/app.service")]
    assert "restart" not in restarts(node)[0].change


@pytest.mark.parametrize(
    "name",
    [
        "etcd.service",
        "systemd-logind.service",
        "dbus.service",
        "haproxy.service",
        "keepalived.service",
        "firewalld.service",
    ],
)
def test_some_are_never_restarted(node, name):
    node.walk.update(nofile=[full(unit=name)], units=[unit(name, ours=None)])
    (step,) = restarts(node)
    assert not step.allowed
    facts(step.blocked_by, name, "w1", "not restarted", "service_restart", "kubemend_allow")
    assert "service_restart" not in node.step().note


@pytest.mark.parametrize(
    ("held", "allow", "risk"),
    [
        (["uid-1"], (), 3),
        ([], (), 2),
        (None, (), 2),
        (None, ("kubelet_restart",), 3),
        ([], ("kubelet_restart",), 2),
    ],
)
def test_beside_pods_with_devices_it_is_of_the_risk_of_a_kubelets_restart(node, held, allow, risk):
    """If the devices are not known, the node itself refuses the restart.

    If a kubelet's restart is allowed, it does not, and the risk is the higher one.
    """
    node.put("devices", {"running": held})
    assert restarts(node, *allow)[0].risk == risk


def test_a_program_that_may_use_select_is_restarted_with_a_warning(node):
    node.walk["nofile"] = [full(soft=1024)]
    assert "a program that uses select() breaks beyond 1024 files" in restarts(node)[0].note
    node.walk["nofile"] = [full(soft=2048)]
    assert "select()" not in restarts(node)[0].note


def test_a_runtimes_restart_is_of_its_own_risk(node):
    node.walk["nofile"] = []
    node.seen["processes"][1].update(open=1024, nofile=[1024, 1024], ticks=5)
    (step,) = restarts(node)
    assert (step.risk, step.change["unit"]) == (
        3,
        "containerd.service",
    )
    assert "leaves containers running" in step.note


def test_a_dropin_that_is_read_later_forbids_a_restart_too(node):
    node.walk["units"] = [
        unit(
            APP,
            ours=None,
            sets=[
                {
                    "path": "/etc/systemd/system/app.service.d/zzz.conf",
                    "line": 2,
                    "text": "LimitNOFILE=9",
                }
            ],
        )
    ]
    assert "is read after" in restarts(node)[0].blocked_by
    node.walk["units"][0]["ours"] = "655360"  # written before that one was
    assert "is read after" in restarts(node)[0].blocked_by


def test_several_services_and_what_stands_in_the_way_of_one(node):
    node.walk.update(
        nofile=[full(), full(51, unit="b.service"), full(52), full(53, unit=None)],
        units=[unit(APP, ours=None), unit("b.service", limit_nofile=None)],
    )
    (step,) = node.steps()
    # 53 is still at its limit then
    assert [one["pid"] for one in step.change["processes"]] == [50, 52]
    assert step.allowed
    assert step.expect["later"] is True
    assert (
        "nothing is done for b.service: what systemd gives b.service could not be read" in step.note
    )


@pytest.mark.parametrize(
    ("uid", "lines"), [(0, {"root hard nofile": 655360}), (1000, {"* hard nofile": 655360})]
)
def test_a_login_at_its_hard_limit(node, uid, lines):
    node.walk["nofile"] = [full(unit=None, session="session-3.scope", uid=uid)]
    step = node.step()
    assert (step.remedy, step.target, step.change["lines"], step.allowed, step.component) == (
        "file_limit",
        login_limits.FILE,
        lines,
        True,
        None,
    )
    assert step.expect["later"] is True
    assert "soft limits stay" in step.note
    node.limits_d("* hard nofile 655360\nroot hard nofile 700000\n")
    assert node.steps() == ()  # the next login has it


def test_the_line_of_a_group_counts_before_that_of_everybody(node):
    node.walk["nofile"] = [full(unit=None, session="session-3.scope", uid=1000)]
    node.limits_d("@dba hard nofile 5\n")
    assert "as that of @dba" in node.step().note


def test_logins_above_the_ceiling_are_refused_by_name(node):
    node.walk["nofile"] = [full(unit=None, session="session-3.scope")]
    node.seen["kernel"][NR_OPEN] = "500000"
    assert "would refuse logins" in node.step().blocked_by


def test_a_users_own_manager_where_its_session_asks_for_limits(node):
    node.walk["nofile"] = [full(unit="user@1000.service", session="user@1000.service", uid=1000)]
    node.seen["pam"].append(
        {"path": "/etc/pam.d/systemd-user", "line": 1, "text": "session required pam_limits.so"}
    )
    assert node.step().change["lines"] == {"* hard nofile": 655360}


@pytest.mark.parametrize(("later", "code"), [(True, 0), (False, 2)])
def test_what_counts_from_the_next_start_is_no_failure(node, later, code):
    step = plan.Step(
        "01",
        "w1",
        "KM404",
        "unit_limit",
        1,
        OURS,
        allowed=True,
        expect={"component": None, "later": later},
    )
    assert (
        run_files.outcome([step], [{"id": "01", "state": "done", "reason": ""}], node.result())[0]
        == code
    )


def test_a_host_that_is_to_have_the_whole_profile_gets_logins_by_their_wish_alone(node):
    node.walk["nofile"] = [full(), full(pid=60, unit=None, session="session-3.scope", uid=1000)]
    documents = node.world.documents
    result, found = fault_engine.evaluate_clusters(
        [*documents.values(), node.world.api], frozenset({"KM404"}), deep=True
    )
    consent = plan.Consent(1, profile=frozenset({"w1"}))
    wished = [
        *result.findings,
        *kernel_settings.wishes(found, consent.profile, fault_engine.KEY_DIGITS),
    ]
    made = plan.plan(
        wished,
        found,
        documents.__getitem__,
        consent,
        kernel_settings.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    assert [
        (step.code, step.remedy, step.allowed) for step in made if step.remedy != "kernel_setting"
    ] == [
        ("KM404", "unit_limit", True),
        ("profile", "file_limit", True),
        ("profile", "file_limit", True),
    ]
