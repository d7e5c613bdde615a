# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why systemd does not start a unit, and whether it would now: systemd 219 to 257."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.start_refusal import (
    refusals,
)
from tests.unit.support.facts import facts
from tests.unit.support.failed_unit import IDLE, failed, only_refusal

PROFILE = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=list(HealthCheck),
)
AT = "2026-11-25T13:02:11+0000 w1 "
MISSING = {
    "setting": "WorkingDirectory",
    "name": "/var/lib/kubelet",
    "state": "missing",
    "path": "/etc/systemd/system/kubelet.service",
    "line": 9,
}
# rootsongjc/kubernetes-handbook#31, systemd 219
OLD_CHDIR = [
    AT + "systemd[4711]: Failed at step CHDIR spawning /usr/local/bin/kubelet: No such file or"
    " directory",
    AT + "systemd[1]: kubelet.service: main process exited, code=exited, status=200/CHDIR",
    AT + "systemd[1]: Unit kubelet.service entered failed state.",
]
# systemd 255
NEW_CHDIR = [
    AT + "(kubelet)[4711]: kubelet.service: Changing to the requested working directory failed: No"
    " such file or directory",
    AT
    + "(kubelet)[4711]: kubelet.service: Failed at step CHDIR spawning /usr/local/bin/kubelet: No"
    " such file or directory",
]


def check(text="ConditionPathExists=/x", met=False, last=False, **more):
    return dict(
        {
            "text": text,
            "assert": text.startswith("Assert"),
            "trigger": False,
            "met": met,
            "last": last,
            "seen": "/x is missing",
            "path": "/etc/a.conf",
            "line": 2,
        },
        **more,
    )


@pytest.mark.parametrize("said", [OLD_CHDIR, NEW_CHDIR, []])
def test_a_working_directory_that_is_missing_is_named(said):
    found = only_refusal(failed(200, paths=[MISSING], said=said))
    facts(found.what, "200/CHDIR", "/var/lib/kubelet", "missing")
    assert (found.now, found.past) == (True, True)
    assert "/var/lib/kubelet" in found.cure
    assert found.place == (
        "/etc/systemd/system/kubelet.service",
        9,
        "WorkingDirectory=/var/lib/kubelet",
    )
    assert ("CHDIR" in found.line or "working directory" in found.line) is bool(said)


@pytest.mark.parametrize("said", [OLD_CHDIR, NEW_CHDIR, []])
def test_one_that_was_made_again_is_no_reason_against_a_start(said):
    found = only_refusal(failed(200, paths=[dict(MISSING, state="ok")], said=said))
    assert (found.now, found.past) == (False, True)
    assert "200/CHDIR" in found.what


def test_a_directory_that_is_there_and_may_not_be_entered_stays_a_reason():
    said = [
        AT + "(kubelet)[7]: kubelet.service: Changing to the requested working directory failed:"
        " Permission denied"
    ]
    assert only_refusal(failed(200, paths=[dict(MISSING, state="ok")], said=said)).now is True


@pytest.mark.parametrize("status", [0, 1, 2, 126, 199, 234, 246, 255])
def test_a_status_of_the_program_is_no_refusal(status):
    line = f"systemd[1]: kubelet.service: Main process exited, code=exited, status={status}/n/a"
    assert refusals(failed(status)) == []
    assert refusals(failed(status, said=[AT + line])) == []


@pytest.mark.parametrize("status", [223, 244, 246, 254])
def test_a_status_has_the_name_of_its_line(status):
    line = f"kubelet.service: Main process exited, code=exited, status={status}/NEWSTEP"
    found = only_refusal(failed(status, said=[AT + "systemd[1]: " + line]))
    assert f"({status}/NEWSTEP)" in found.what


def test_the_line_with_a_path_comes_before_the_one_without():
    said = [
        AT + "(kubelet)[9]: kubelet.service: Failed to set up mount namespacing:"
        " /run/systemd/unit-root/nope: No such file or directory",
        AT + "(kubelet)[9]: kubelet.service: Failed at step NAMESPACE spawning /usr/bin/kubelet: No"
        " such file or directory",
        AT + "systemd[1]: kubelet.service: Main process exited, code=exited, status=226/NAMESPACE",
    ]
    assert "/run/systemd/unit-root/nope" in only_refusal(failed(226, said=said)).what


@pytest.mark.parametrize(("changed", "again"), [(99.0, True), (101.0, False), (None, True)])
def test_a_program_that_was_installed_since_is_no_reason_against_a_start(changed, again):
    program = {
        "setting": "ExecStart",
        "name": "/usr/bin/kubelet",
        "state": "ok",
        "changed_at": changed,
    }
    assert only_refusal(failed(203, paths=[program], ended_at=100.0)).now is again


@pytest.mark.parametrize(
    ("setting", "state", "status", "word"),
    [
        ("ExecStart", "missing", 203, "/x is missing"),
        ("ExecStart", "not_executable", 203, "not an executable file"),
        ("ExecStartPre", "missing", 203, "ExecStartPre="),
        ("User", "missing", 217, "User=/x"),
        ("Group", "missing", 216, "Group=/x"),
        ("WorkingDirectory", "no_directory", 200, "not a directory"),
    ],
)
def test_what_its_start_needs_is_named(setting, state, status, word):
    found = only_refusal(failed(status, paths=[{"setting": setting, "name": "/x", "state": state}]))
    assert word in found.what
    assert str(status) in found.what
    assert (found.now, found.past) == (True, True)


@pytest.mark.parametrize("state", ["ok", "denied", "Input/output error", None, 7])
def test_a_path_that_is_well_or_that_may_not_be_seen_is_no_reason(state):
    assert refusals(IDLE, {"paths": [dict(MISSING, state=state)]}) == []


# -- files of EnvironmentFile=
# --------------------------------------------------------------------------------------------------

GONE = {"setting": "EnvironmentFile", "name": "/etc/default/kubelet", "state": "missing"}


def test_an_environment_file_that_is_missing_is_named():
    found = only_refusal(failed(0, "resources", paths=[GONE]))
    assert "EnvironmentFile=/etc/default/kubelet" in found.what
    assert (found.now, found.past) == (
        True,
        True,
    )


@pytest.mark.parametrize(("changed", "again"), [(99.0, True), (101.0, False)])
def test_one_that_was_written_since_is_no_reason_against_a_start(changed, again):
    said = [
        AT + "systemd[1]: kubelet.service: Failed to run 'start' task: No such file or directory"
    ]
    found = only_refusal(
        failed(
            0,
            "resources",
            paths=[dict(GONE, state="ok", changed_at=changed)],
            ended_at=100.0,
            said=said,
        )
    )
    assert found.now is again
    assert "No such file or directory" in found.what


def test_resources_that_are_no_files_stay_a_reason():
    said = [AT + "systemd[1]: kubelet.service: Failed to run 'start' task: Cannot allocate memory"]
    found = only_refusal(failed(0, "resources", said=said))
    assert "Cannot allocate memory" in found.what
    assert (found.now, found.past) == (True, True)
    assert only_refusal(failed(0, "resources")).now is True


# -- conditions and asserts
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word", "verb"),
    [
        ("ConditionPathExists=/x", "condition", "skips"),
        ("AssertPathExists=/x", "assert", "refuses"),
    ],
)
def test_a_check_that_is_not_met_is_named(text, word, verb):
    found = only_refusal(
        dict(
            IDLE,
            checks=[check(text), check("Condition" + "User=root", True)],
            **{word + "_result": False},
        )
    )
    assert verb in found.what
    assert text in found.what
    assert "/x is missing" in found.what
    assert (found.now, found.past) == (True, True)
    assert found.place == ("/etc/a.conf", 2, text)
    assert "ConditionUser" not in found.what


def test_one_that_is_met_now_is_no_reason_against_a_start():
    found = only_refusal(
        dict(IDLE, checks=[check(met=True)], condition_result=False, condition_at="Wed")
    )
    assert (found.now, found.past) == (False, True)
    assert "ConditionPathExists=/x" in found.what
    assert "Wed" in found.what


def test_one_of_which_a_reload_made_systemd_forget_the_result_is_named_where_it_is_the_only_one():
    one = check(met=True, last=None)
    assert (
        "ConditionPathExists=/x"
        in only_refusal(dict(IDLE, checks=[one], condition_result=False)).what
    )
    assert (
        "ConditionPathExists=/x"
        not in only_refusal(dict(IDLE, checks=[one, one], condition_result=False)).what
    )


def test_one_that_is_not_known_at_all_may_be_why():
    found = only_refusal(
        dict(
            IDLE,
            checks=[check(met=True, last=None), check("ConditionHost=x", None, None)],
            condition_result=False,
        )
    )
    assert found.now is True
    assert "ConditionHost=x may not be met" in found.what
    assert "ConditionPathExists" not in found.what


def test_one_that_would_not_be_met_now_did_not_refuse_the_last_start():
    found = only_refusal(dict(IDLE, checks=[check()], condition_result=True))
    assert (found.now, found.past) == (True, False)


@pytest.mark.parametrize(
    ("result", "last", "again"),
    [(False, False, True), (False, True, False), (True, False, None), (None, None, None)],
)
def test_one_that_cannot_be_looked_at_is_as_systemd_found_it(result, last, again):
    found = refusals(
        {},
        dict(
            IDLE, checks=[check("ConditionVirtualization=vm", None, last)], condition_result=result
        ),
    )
    assert [one.now for one in found] == ([] if again is None else [again])


def test_a_refusal_whose_condition_could_not_be_read_stays_one():
    found = only_refusal(dict(IDLE, checks=[], condition_result=False))
    assert (found.now, found.past) == (True, True)


@pytest.mark.parametrize(
    ("mets", "refused"),
    [((False, False), True), ((False, True), False), ((True, True), False), ((False, None), False)],
)
def test_of_triggers_one_is_enough(mets, refused):
    checks = [
        check(f"ConditionPathExists=|/{index:d}", met, None, trigger=True)
        for index, met in enumerate(mets)
    ]
    assert bool(refusals({}, dict(IDLE, checks=checks, condition_result=True))) is refused


def test_an_exec_condition_is_named():
    found = only_refusal(dict(IDLE, result="exec-condition", checks=[], condition_result=False))
    assert "ExecCondition=" in found.what
    assert (found.now, found.past) == (True, True)


# -- its file
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["bad-setting", "error"])
def test_a_unit_that_cannot_be_loaded(state):
    found = only_refusal(
        dict(IDLE, load_state=state, load_error="Unit kubelet.service has a bad unit file setting.")
    )
    assert state in found.what
    assert "bad unit file setting" in found.what
    assert found.now


def test_one_that_only_another_unit_may_start():
    assert "RefuseManualStart" in only_refusal(dict(IDLE, manual_start=False)).what


# -- units that it needs
# --------------------------------------------------------------------------------------------------


def needed(how="Requires", ordered=True, **more):
    return dict(IDLE, how=how, ordered=ordered, name="mounts.service", **more)


LOST = {
    "active_state": "failed",
    "sub_state": "failed",
    "result": "exit-code",
    "exec_main_status": 1,
}
UNMET = {"checks": [check()], "condition_result": False}


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (needed(**LOST), "result exit-code, status 1"),
        (needed("BindsTo", False, **LOST), "status 1"),
        (
            needed(
                active_state="activating",
                sub_state="auto-restart",
                result="exit-code",
                exec_main_status=203,
            ),
            "203/EXEC",
        ),
        (
            needed(
                paths=[{"setting": "ExecStart", "name": "/bin/false", "state": "ok", "ended": 1}],
                **LOST,
            ),
            "ExecStart=/bin/false ended with 1",
        ),
        (needed(ordered=False, load_state="not-found"), "is not there"),
        (needed(load_state="masked"), "is masked"),
        (needed(load_state="bad-setting", load_error="why"), "why"),
        (needed("Requisite"), "is not active"),
        (needed("BindsTo", **UNMET), "ConditionPathExists=/x"),
        (needed(paths=[MISSING]), "/var/lib/kubelet is missing"),
        (
            needed(needs=[dict(IDLE, how="Requires", ordered=True, name="dev-x.device")]),
            "dev-x.device",
        ),
    ],
)
def test_a_unit_that_it_needs_is_named_with_how_it_failed(one, word):
    found = only_refusal(
        dict(IDLE, needs=[one], said=[AT + "systemd[1]: Dependency failed for kubelet.service."])
    )
    assert "{}=mounts.service".format(one["how"]) in found.what
    assert word in found.what
    assert (found.now, found.past) == (True, True)
    assert "systemctl start mounts.service" in found.cure


@pytest.mark.parametrize(
    ("changes", "is_killed"),
    [
        ({"result": "signal", "exec_main_status": 9}, True),
        ({"result": "oom-kill", "exec_main_status": 0}, True),
        ({}, False),
        ({"result": "signal", "exec_main_status": 9, "active_state": "inactive"}, False),
    ],
)
def test_a_unit_that_it_needs_and_that_was_killed_is_to_come_back(changes, is_killed):
    cures = [
        row.cure
        for row in refusals({}, dict(IDLE, needs=[needed("BindsTo", **{**LOST, **changes})]))
    ]
    assert any("OOMScoreAdjust=-999" in cure for cure in cures) is is_killed


@pytest.mark.parametrize(
    "one",
    [
        needed(),
        needed("BindsTo"),
        needed(ordered=False, **LOST),
        needed(**UNMET),
        needed(active_state="activating"),
    ],
)
def test_a_unit_that_systemd_starts_first_is_no_reason(one):
    assert refusals({}, dict(IDLE, needs=[one])) == []


def test_a_dependency_refused_the_last_start_where_its_journal_says_so_or_it_was_never_tried():
    tried = dict(IDLE, needs=[needed(**LOST)], condition_result=True)
    assert only_refusal(tried).past is False
    assert only_refusal(dict(tried, condition_result=None)).past is True


def test_the_line_that_makes_it_needed_is_shown():
    found = only_refusal(dict(IDLE, needs=[needed(path="/a.conf", line=3, **LOST)]))
    assert found.place == ("/a.conf", 3, "Requires=mounts.service")
    assert "/a.conf, line 3" in found.cure


def test_units_that_need_each_other_end():
    one = needed(**LOST)
    for _level in range(20):
        one = needed(needs=[one])
    assert len(refusals({}, dict(IDLE, needs=[one]))) < 2


@pytest.mark.parametrize(("ended", "said"), [(1, True), (0, False), (None, False), ("1", False)])
def test_a_program_before_its_own_that_ended_badly_is_named(ended, said):
    found = refusals(
        failed(0),
        {
            "paths": [
                {"setting": "ExecStartPre", "name": "/bin/false", "state": "ok", "ended": ended}
            ]
        },
    )
    assert [(one.now, one.past) for one in found] == ([(False, True)] if said else [])
    assert not said or ("ExecStartPre=/bin/false" in found[0].what and "status 1" in found[0].what)


# -- the rest
# --------------------------------------------------------------------------------------------------


def test_the_limit_of_starts_is_named_and_no_reason_against_a_start():
    said = [AT + "systemd[1]: kubelet.service: Start request repeated too quickly."]
    found = only_refusal(failed(1, said=said))
    assert "limit of starts" in found.what
    assert (found.now, found.past) == (False, True)


@pytest.mark.parametrize("state", ["active", "reloading"])
def test_a_unit_that_runs_has_none(state):
    assert refusals({}, dict(failed(200, paths=[MISSING]), active_state=state)) == []


def test_old_evidence_has_the_record_alone():
    assert refusals(IDLE) == []
    assert only_refusal(None, failed(226)).now is True
    assert only_refusal({}, dict(IDLE, load_state="bad-setting")).now is True


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["failed", "missing", "not-found", "resources"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "state",
                    "setting",
                    "how",
                    "checks",
                    "paths",
                    "needs",
                    "said",
                    "met",
                    "last",
                    "load_state",
                    "result",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
)


@PROFILE
@given(
    ANYTHING,
    st.dictionaries(
        st.sampled_from(
            sorted(
                {
                    *IDLE,
                    "checks",
                    "paths",
                    "needs",
                    "said",
                    "ended_at",
                    "condition_result",
                    "manual_start",
                }
            )
        ),
        ANYTHING,
    ),
)
def test_no_type_of_evidence_raises(record, facts):
    swapped = refusals(*reversed((record, facts)))
    for one in refusals(record, facts) + swapped:
        assert all(
            isinstance(text, str) and text.isprintable() for text in (one.what, one.cure, one.line)
        )


@pytest.mark.parametrize(("source", "blocked"), [("busctl", False), ("files", True), (None, True)])
def test_a_condition_that_was_taken_out_blocks_no_start(source, blocked):
    """Systemd keeps the last result over a daemon-reload; busctl lists what it would check now."""
    facts = dict(IDLE, condition_result=False, checks=[], checks_from=source)
    found = only_refusal(facts)
    assert (found.now, found.past) == (blocked, True)


@pytest.mark.parametrize("setting", [["WorkingDirectory"], {"a": 1}, None, 7])
def test_a_setting_of_another_type_is_no_error(setting):
    facts = failed(200, paths=[dict(MISSING, setting=setting)], said=OLD_CHDIR)
    assert refusals({}, facts)[0].past is True


FAILED_FOR = [
    AT + "systemd[1]: Dependency failed for crio.service - Container Runtime Interface.",
    AT + "systemd[1]: crio.service: Job crio.service/start failed with result 'dependency'.",
]
STARTED = AT + "systemd[1]: Started crio.service - Container Runtime Interface."


@pytest.mark.parametrize(
    ("state", "said", "is_told"),
    [
        ("inactive", FAILED_FOR, True),
        ("inactive", [STARTED, *FAILED_FOR], True),
        ("inactive", [*FAILED_FOR, STARTED], False),
        ("inactive", [STARTED], False),
        ("inactive", [], False),
        ("active", FAILED_FOR, False),
    ],
)
def test_a_unit_that_failed_only_while_this_one_was_to_start(state, said, is_told):
    record = {"name": "crio.service", "active_state": state, "result": "success"}
    found = refusals(record, {"said": said, "needs": []})
    assert [(row.now, row.past) for row in found] == [(False, True)] * is_told
    assert not is_told or "systemctl start crio.service" in found[0].cure
