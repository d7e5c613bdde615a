# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole profile of a host, as the role open_files asks for it.

The tests check which steps there are, what they set, and what refuses them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.limits import (
    EVENTS,
    FILE_MAX,
    INSTANCES,
    NOFILE,
    NPROC,
    NR_OPEN,
    PID_MAX,
    WATCHES,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    cpu_manager_reset,
    kernel_settings,
    login_limits,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_limits import LIMITS_D, Node, process, record

SYSCTL, OURS = "/etc/sysctl.d/10-a.conf", login_limits.FILE
BOTH = {"* hard nofile": 655360, "root hard nofile": 655360}


class Asked(Node):
    """w1 of limits_node, which is to have everything."""

    def __init__(self, world):
        super().__init__(world)
        self.seen["processes"].append(process("sshd", 3, nofile=(1024, 524288)))
        self.consent = plan.Consent(1, profile=frozenset({"w1"}))

    def steps(self, *allow, **limits):
        documents = self.world.documents
        result, found = fault_engine.evaluate_clusters(
            [*documents.values(), self.world.api], frozenset({"KM402", "KM407"})
        )
        consent = plan.Consent(1, frozenset(allow), limits=limits, profile=frozenset({"w1"}))
        wished = kernel_settings.wishes(found, consent.profile, fault_engine.KEY_DIGITS)
        made = plan.plan(
            [*result.findings, *wished],
            found,
            documents.__getitem__,
            consent,
            kernel_settings.REMEDIES,
            fault_engine.KEY_DIGITS,
        )
        assert {step.host for step in made} <= {"w1"}
        return {step.component: step for step in made}

    def lines(self, item=NOFILE, *allow, **limits):
        step = self.steps(*allow, **limits).get(item)
        return step and step.change["lines"]


@pytest.fixture
def node(world):
    return Asked(world)


def test_everything_that_is_less_and_nothing_else(node):
    steps = node.steps()
    assert {
        key: step.change.get("settings") or step.change["lines"] for key, step in steps.items()
    } == {
        INSTANCES: {INSTANCES: 8192},
        WATCHES: {WATCHES: 524288},
        EVENTS: {EVENTS: 16384},
        NOFILE: BOTH,
        # systemd gives it all file handles there are
        NPROC: {"* hard nproc": 655360, "root hard nproc": 655360},
    }
    assert {(step.allowed, step.risk, step.code) for step in steps.values()} == {
        (True, 1, "profile")
    }
    step = steps[NOFILE]
    assert (step.remedy, step.target, step.expect) == (
        "file_limit",
        OURS,
        {"component": None},
    )
    assert "soft limits stay" in step.note
    assert step.diff == f"--- {OURS}\n+++ {OURS}\n+* hard nofile 655360\n+root hard nofile 655360\n"


def test_a_host_that_has_everything_has_no_step(node):
    node.seen["kernel"].update({INSTANCES: "8192", WATCHES: "600000"})
    node.sysctl((SYSCTL, f"{INSTANCES} = 8192\n{WATCHES} = 600000\n{EVENTS} = 16384\n"))
    node.limits_d(
        "* hard nofile 655360\nroot - nofile unlimited\n* hard nproc 700000\nroot hard nproc"
        " 655360\n"
    )
    assert node.steps() == {}


@pytest.mark.parametrize(
    ("running", "files", "expected"),
    [
        ("8192", "", 8192),
        ("20000", "", 20000),
        ("8192", f"{INSTANCES} = 8192", None),
        ("9000", f"{INSTANCES} = 8500", 9000),
        ("128", f"{INSTANCES} = 20000", 20000),
    ],
)
def test_the_kernel_now_and_after_a_boot(node, running, files, expected):
    node.seen["kernel"][INSTANCES] = running
    step = node.sysctl((SYSCTL, files + "\n")).steps().get(INSTANCES)
    assert (step and step.change["settings"]) == (expected and {INSTANCES: expected})


def test_what_is_used_up_is_one_step_with_what_was_asked_for(node):
    step = node.used_up().steps()[INSTANCES]
    assert (step.code, step.change["settings"]) == ("KM402", {INSTANCES: 8192})


def test_the_variables_say_how_much(node):
    steps = node.steps(**{INSTANCES: 300, NOFILE: 600000, FILE_MAX: 4096})
    assert steps[INSTANCES].change["settings"] == {INSTANCES: 300}
    assert set(steps[NOFILE].change["lines"].values()) == {600000}
    assert FILE_MAX not in steps


def test_hosts_that_did_not_ask_have_none(world):
    node = Asked(world)
    result, found = fault_engine.evaluate_clusters(
        [*node.world.documents.values(), node.world.api], frozenset({"KM402"})
    )
    assert list(kernel_settings.wishes(found, (), fault_engine.KEY_DIGITS)) == []
    assert result.findings == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* hard nofile 900000\n", {"root hard nofile": 655360}),
        ("* - nofile 4096\n", BOTH),
        ("* soft nofile 900000\n", BOTH),
        ("root -\n", {"* hard nofile": 655360}),
        ("* hard nofile 900000\n* hard nofile 5\n", BOTH),
        ("@dba hard nofile 5\n", BOTH),
        ("* - nofile unlimited\nroot hard nofile -1\n", None),
    ],
)
def test_never_less_than_a_line_says(node, text, expected):
    assert node.limits_d(text).lines() == expected


@pytest.mark.parametrize(
    ("nofile", "expected"), [((1024, 655360), None), ((1024, 700000), None), ((1024, -1), None)]
)
def test_never_less_than_sessions_have(node, nofile, expected):
    node.seen["processes"][-1]["nofile"] = list(nofile)
    assert node.lines() == expected


def test_without_an_sshd_as_much_as_pid_1_has(node):
    node.seen["processes"].pop()
    assert node.lines() == {"* hard nofile": 1048576, "root hard nofile": 1048576}


def test_of_several_sshds_the_one_that_gives_most(node):
    for nofile in ((1024, 700000), (1024, -1)):
        node.seen["processes"][-1:] = [
            process("sshd", 3, nofile=(1024, 4096)),
            process("sshd", 4, nofile=nofile),
        ]
        assert node.lines() is None


@pytest.mark.parametrize(
    "init",
    [None, {"cap_sys_resource": True}, {"nofile": "many", "nproc": [5], "cap_sys_resource": True}],
)
def test_without_a_word_of_pid_1_what_was_asked_for(node, init):
    """Where nothing tells what logins have, it is what was asked for.

    How much there may be is another question.
    """
    node.seen["init"] = init
    node.seen["processes"].pop()
    steps = node.steps()
    assert steps[NOFILE].change["lines"] == BOTH
    assert set(steps[NPROC].change["lines"].values()) == {655360}
    assert steps[NPROC].allowed is (init is not None)


def test_exactly_as_much_as_there_may_be(node):
    node.seen["kernel"][NR_OPEN] = "655360"
    assert node.steps()[NOFILE].allowed
    assert "no service of" not in node.steps()[NOFILE].note


def test_a_limited_run_leaves_others_alone(node):
    node.document["status"] = "not_asked"
    (reason,) = {step.blocked_by for step in node.steps().values()}
    facts(reason, "w1", "--limit")


def test_nproc_is_what_pid_1_gives(node):
    node.seen["init"]["nproc"] = [-1, -1]
    assert node.lines(NPROC) is None
    node.seen["init"]["nproc"] = [700000, 700000]
    assert node.lines(NPROC) is None


def test_more_processes_than_there_are_pids_are_corrected_and_said(node):
    node.seen["kernel"][PID_MAX] = "100000"
    step = node.steps()[NPROC]
    assert step.allowed
    assert set(step.change["lines"].values()) == {100000}
    assert "nproc 655360 makes no sense here, where kernel.pid_max is 100000" in step.note
    node.seen["kernel"][PID_MAX] = "32768"
    assert node.lines(NPROC) is None  # logins have more already


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"kernel": {NR_OPEN: "500000"}},
            (
                "nofile 655360 is above 500000 (fs.nr_open), which would refuse logins: ask for"
                " less with -e kubemend_nofile=NUMBER"
            ),
        ),
        (
            {"init": {"nofile": [20000, 20000], "cap_sys_resource": False}},
            "nofile 655360 is above 20000 (the hard limit of PID 1",
        ),
        (
            {"init": {"cap_sys_resource": None}},
            "could not be read, and one that is too large refuses every login",
        ),
    ],
)
def test_above_the_ceiling_is_refused_by_name(node, change, said):
    for key, more in change.items():
        node.seen[key].update(more)
    step = node.steps()[NOFILE]
    assert not step.allowed
    assert said in step.blocked_by
    assert node.steps()[INSTANCES].allowed


def test_nproc_above_what_pid_1_may_give(node):
    node.seen["init"]["cap_sys_resource"] = False
    assert "nproc 655360 is above 63716 (the hard limit of PID 1" in node.steps()[NPROC].blocked_by
    assert "kubemend_nproc" in node.steps()[NPROC].blocked_by


@pytest.mark.parametrize(
    ("path", "is_later"), [("/etc/security/limits.d/99-zzz.conf", True), (LIMITS_D, False)]
)
def test_a_later_file_that_says_less_is_named(node, path, is_later):
    step = node.limits_d("\n* hard nofile 4096\n", path).steps()[NOFILE]
    assert (step.blocked_by is not None) == is_later
    if is_later:
        facts(step.blocked_by, f"{path}:2", OURS)


def test_our_own_file_as_it_was(node):
    assert node.limits_d("* hard nofile 4096\n", OURS).lines() == BOTH
    assert node.steps()[NOFILE].allowed


def test_files_that_could_not_be_read(node):
    node.seen["limits_files"].append(record("/etc/security/limits.d/10.conf", None, error="denied"))
    assert (
        "10.conf could not be read: what logins have now is not known"
        in node.steps()[NOFILE].blocked_by
    )


def test_a_node_on_which_no_login_reads_it(node):
    node.seen["pam"] = []
    assert "no service of /etc/pam.d asks for pam_limits" in node.steps()[NOFILE].note


def test_a_host_that_did_not_answer_is_said(node):
    node.put("limits", None, "error")
    steps = node.steps()
    assert {step.diff for key, step in steps.items() if key != NOFILE} == {""}
    assert "pam_limits" not in steps[NOFILE].note
    # Steps of one file that change nothing are one.
    assert FILE_MAX in steps
    assert set(steps) <= {FILE_MAX, INSTANCES, WATCHES, EVENTS, NOFILE}
    assert not any(step.allowed for step in steps.values())
    assert "could not be read" in steps[FILE_MAX].blocked_by
    assert "could not be read" in steps[NOFILE].blocked_by


def test_who_was_taken_out_on_purpose_is_left_alone(node):
    next(one for one in node.world.data("api", "nodes")["items"] if one["name"] == "w1").update(
        unschedulable=True, cordon=None
    )
    (reason,) = {step.blocked_by for step in node.steps().values()}
    facts(reason, "cordoned", "w1", "-e kubemend_allow=fenced")
    assert all(step.allowed for step in node.steps("fenced").values())


@pytest.mark.parametrize(
    ("status", "name", "allowed"),
    [("absent", None, True), ("absent", "w1", False), ("error", None, False), ("ok", None, False)],
)
def test_a_host_without_a_kubelet_is_left_to_whoever_names_it(node, status, name, allowed):
    node.world.api = {
        **node.world.api,
        "status": "unreachable",
        "reason": "refused",
        "collectors": {},
    }
    node.document["node"] = name
    node.document["collectors"]["kubelet"].update(status=status)
    if status != "ok":
        node.document["collectors"]["kubelet"]["data"] = None
    assert {step.allowed for step in node.steps().values()} == {allowed}


# KM406


def mended(node, *allow, max_risk=1):
    documents = node.world.documents
    result, found = fault_engine.evaluate_clusters(
        [*documents.values(), node.world.api], frozenset({"KM406"})
    )
    steps = plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        plan.Consent(max_risk, frozenset(allow)),
        kernel_settings.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    return steps[0] if steps else None


def test_a_line_that_locks_out_gets_one_of_ours_behind_it(node):
    node.limits_d(
        "* hard nofile 2000000\n@dba - nofile 3000000\nwww hard nofile 5000\napp hard nofile"
        " unlimited\n"
    )
    step = mended(node)
    most = {"* hard nofile": 1048576, "@dba hard nofile": 1048576, "app hard nofile": 1048576}
    assert (step.code, step.risk, step.allowed, step.change["lines"]) == (
        "KM406",
        1,
        True,
        most,
    )
    assert "keep this session open" in step.note
    node.limits_d("".join(f"{key} {value}\n" for key, value in most.items()), OURS)
    assert node.verdict("KM406") == "clear"
    assert mended(node) is None


def test_ours_that_has_become_too_large_is_lowered(node):
    node.limits_d("* hard nofile 2000000\n", OURS)
    assert mended(node).change["lines"] == {"* hard nofile": 1048576}
    assert mended(node).allowed


def test_where_pid_1_bounds_it(node):
    node.seen["init"].update(nofile=[20000, 20000], cap_sys_resource=False)
    assert mended(node.limits_d("* hard nofile 655360\n")).change["lines"] == {
        "* hard nofile": 20000
    }


def test_a_line_that_locks_out_stays_on_a_node_that_somebody_took_out(node):
    next(one for one in node.world.data("api", "nodes")["items"] if one["name"] == "w1").update(
        unschedulable=True, cordon=None
    )
    node.limits_d("* hard nofile 2000000\n")
    facts(mended(node).blocked_by, "cordoned", "w1", "-e kubemend_allow=fenced")
    assert mended(node, "fenced").allowed


def test_it_is_never_written_in_vain_nor_unasked(node):
    node.limits_d("* hard nofile 2000000\n", "/etc/security/limits.d/99-zzz.conf")
    assert mended(node).blocked_by.startswith(
        f"/etc/security/limits.d/99-zzz.conf:1 is read after {OURS}"
    )
    assert plan.only_risk(mended(node, max_risk=0)) is False  # what stands in its way comes first


def test_a_domain_that_is_no_word_of_ours(node):
    assert (
        "is not written again here"
        in mended(node.limits_d("b\u00fcro hard nofile 2000000\n")).blocked_by
    )


def test_the_profile_leaves_to_it_what_is_above_the_ceiling(node):
    node.limits_d("* hard nofile 2000000\n")
    assert node.lines() == {"root hard nofile": 655360}


# Lowered, where that is allowed by name and the number is the operator's own


def high(node):
    """Give w1 more inotify instances than are asked for, from a former run of kubemend."""
    node.seen["kernel"].update({INSTANCES: "16384", WATCHES: "600000"})
    node.sysctl((OUR_SYSCTL, f"{INSTANCES} = 16384\n{WATCHES} = 600000\n{EVENTS} = 16384\n"))
    return node


OUR_SYSCTL = "/etc/sysctl.d/99-zz-kubemend.conf"


def test_lowered_to_exactly_the_number_that_was_given(node):
    step = high(node).steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert (step.allowed, step.risk, step.target) == (
        True,
        1,
        OUR_SYSCTL,
    )
    assert "a revert brings the former number back" in step.note
    assert step.change == {
        "kind": "kernel_setting",
        "path": OUR_SYSCTL,
        "settings": {INSTANCES: 4096},
        "lower": True,
        "running": 16384,
    }
    assert (
        step.diff
        == f"--- {OUR_SYSCTL}\n+++ {OUR_SYSCTL}\n+{INSTANCES} = 4096\nthe kernel: 16384 -> 4096\n"
    )


@pytest.mark.parametrize(
    ("allow", "limits"),
    [((), {INSTANCES: 4096}), (("lower_limits",), {}), (("lower_limits",), {INSTANCES: 16384})],
)
def test_nothing_is_lowered_without_the_word_or_by_a_default(node, allow, limits):
    assert INSTANCES not in high(node).steps(*allow, **limits)


def test_a_value_that_nobody_wrote_down_is_lowered_and_not_made_to_last(node):
    node.seen["kernel"][INSTANCES] = "16384"
    step = node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert step.code == "profile"
    assert step.change["settings"] == {INSTANCES: 4096}
    # KM407, as ever
    assert node.steps(**{INSTANCES: 4096})[INSTANCES].change["settings"] == {INSTANCES: 16384}


def test_what_a_boot_would_bring_is_lowered_too(node):
    high(node).seen["kernel"][INSTANCES] = "4096"
    step = node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert step.allowed
    assert "the kernel" not in step.diff
    assert step.change["running"] == 4096


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {
                "uids": [
                    {"uid": 1000, "instances": 3900, "watches": 5},
                    {"uid": 0, "instances": 5, "watches": 5},
                ]
            },
            (
                f"3900 of {INSTANCES} are in use by uid 1000, for which 4096 is not enough: ask for"
                " more with -e kubemend_inotify_instances=NUMBER"
            ),
        ),
        (
            {"complete": False},
            f"how many of {INSTANCES} are in use is not known: ask with -e kubemend_deep=true",
        ),
        ({"denied": 3}, "is not known"),
        ({"uids": []}, "is not known"),
        ({"uids": [{"uid": 0, "instances": None}]}, "is not known"),
    ],
)
def test_what_is_in_use_must_fit(node, change, said):
    high(node).walk.update(change)
    step = node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert not step.allowed
    assert said in step.blocked_by


def test_what_is_in_use_fits_by_a_little(node):
    high(node).walk["uids"] = [{"uid": 0, "instances": 3891, "watches": 5}]
    assert node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES].allowed


@pytest.mark.parametrize("opened", [0, 3])
def test_what_a_try_proved_to_be_used_up_is_not_lowered_whatever_was_counted(node, opened):
    """Counting does not see everybody who holds one: here 40 of 16384."""
    step = high(node).used_up(opened=opened).steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert not step.allowed
    assert (
        f"{INSTANCES} is 16384 and used up, for which 4096 is not enough (another inotify instance"
        " could not" in step.blocked_by
    )
    assert "find out who holds so many" in step.blocked_by


def test_what_is_used_up_with_less_is_no_reason(node):
    """128 are used up, and the file's 16384, which were never loaded, are to be 4096."""
    high(node).used_up().seen["kernel"][INSTANCES] = "128"
    step = node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert step.allowed
    assert step.change["settings"] == {INSTANCES: 4096}
    assert step.change["running"] == 128


def test_file_handles_by_the_kernels_own_count(node):
    node.seen["kernel"][FILE_MAX] = "4000000"
    high(node).sysctl(("/etc/sysctl.d/99-zzz.conf", ""))
    node.seen["file_nr"] = [1000000, 4000000]
    assert (
        "1000000 of fs.file-max are in use, for which 1000000 is not enough"
        in node.steps("lower_limits", **{FILE_MAX: 1000000})[FILE_MAX].blocked_by
    )
    assert node.steps("lower_limits", **{FILE_MAX: 2000000})[FILE_MAX].allowed
    node.seen["file_nr"] = None
    assert "is not known" in node.steps("lower_limits", **{FILE_MAX: 2000000})[FILE_MAX].blocked_by


def test_a_queue_that_nobody_can_count(node):
    high(node).seen["kernel"][EVENTS] = "32768"
    assert node.steps("lower_limits", **{EVENTS: 16384})[EVENTS].allowed


@pytest.mark.parametrize(
    "path",
    [
        "/etc/sysctl.d/10-a.conf",
        "/etc/sysctl.d/99-zzz.conf",
        "/etc/sysctl.conf",
        "/run/sysctl.d/50-x.conf",
    ],
)
def test_somebody_elses_file_that_says_more_is_named_and_stays(node, path):
    high(node).sysctl((path, f"{INSTANCES} = 9000\n"))
    step = node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert not step.allowed
    assert f"{path}:1 says more, and is not ours to lower" in step.blocked_by


def test_a_later_file_that_says_less_is_another_matter(node):
    high(node).sysctl(("/etc/sysctl.d/99-zzz.conf", f"{INSTANCES} = 200\n"))
    step = node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert not step.allowed
    assert "/etc/sysctl.d/99-zzz.conf:1" in step.blocked_by
    assert "4096 is asked for" in step.blocked_by


def test_a_vendors_default_is_nobodys_wish(node):
    high(node).sysctl(("/usr/lib/sysctl.d/10-a.conf", f"{INSTANCES} = 9000\n"))
    assert node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES].allowed


def test_a_vendors_file_that_decides_over_ours_is_named(node):
    """A boot would bring its number, and every run would lower it again."""
    high(node).sysctl(("/usr/lib/sysctl.d/99-zzz.conf", f"{INSTANCES} = 9000\n"))
    step = node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert not step.allowed
    assert "/usr/lib/sysctl.d/99-zzz.conf:1 says more, and is not ours to lower" in step.blocked_by


@pytest.mark.parametrize(("reapply", "allowed"), [("0", False), ("1", True)])
def test_a_profile_of_tuned_that_decides_over_ours_is_named(node, reapply, allowed):
    rows = [
        {
            "key": INSTANCES,
            "value": "9000",
            "path": "/usr/lib/tuned/profiles/x/tuned.conf",
            "line": 4,
        }
    ]
    high(node).seen["late"] = {
        "ufw": {"sysctl": None},
        "networkd": [],
        "tuned": {"reapply": reapply, "rows": rows, "unknown": []},
    }
    step = node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES]
    assert step.allowed is allowed
    assert (
        "/usr/lib/tuned/profiles/x/tuned.conf:4 says more" in (step.blocked_by or "")
    ) is not allowed


def test_a_host_that_has_the_number_has_no_step(node):
    node.seen["kernel"][INSTANCES] = "4096"
    node.sysctl((OUR_SYSCTL, f"{INSTANCES} = 4096\n"))
    assert INSTANCES not in node.steps("lower_limits", **{INSTANCES: 4096})


def test_without_its_consent_a_fenced_host_is_not_lowered_either(node):
    high(node).world.api["collectors"]["nodes"]["data"]["items"] = []
    assert not node.steps("lower_limits", **{INSTANCES: 4096})[INSTANCES].allowed


@pytest.mark.parametrize("code", [kernel_settings.PROFILE, cpu_manager_reset.ASKED, "KM402"])
def test_the_schema_of_a_report_knows_what_a_step_is_for(code):
    known = json.loads(
        (Path(__file__).parents[6] / "docs" / "schema" / "report-1.json").read_text(
            encoding="utf-8"
        )
    )["$defs"]
    assert re.search(known["plan_step"]["properties"]["code"]["pattern"], code)
    # of a finding it is always a fault's
    assert bool(re.search(known["code"]["pattern"], code)) == (code == "KM402")
