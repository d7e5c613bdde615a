# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of each level by the answer of its host, in any shape.

The tests also check the report of it.
"""

from __future__ import annotations

import json
import stat
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    outcome as capture_outcome,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    plan as capture_plan,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.outcome import (
    PROBED,
    RAISED,
    RESTORED,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.plan import Plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    capture as report_capture,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)
from tests.unit.plugins.plugin_utils.capture.test_log_merge import NOW
from tests.unit.support.capture_outcome import (
    EVIL,
    FIRST,
    KUBELET,
    OTHER,
    RUN,
    SCHEDULER,
    SECOND,
    WIDE,
    note,
    plan,
    record_capture,
    says,
)
from tests.unit.support.facts import facts, facts_of_each


@pytest.fixture
def folder(tmp_path):
    """Give the folder of a capture that went well."""
    record_capture(tmp_path)
    return tmp_path


def became(folder, *targets):
    return [
        (one.target.real, one.raised, one.restored, one.reason)
        for one in capture_outcome.became(str(folder), targets or (FIRST, SECOND))
    ]


def verdict(folder, made=None):
    done = report_capture.make(str(folder), made or plan(), WIDE)
    return done.reason, done.sentence


def test_raised_and_put_back(folder):
    assert became(folder) == [(SCHEDULER, True, True, ""), (KUBELET, True, True, "")]
    assert verdict(folder) == ("ok", "")


def test_a_capture_that_was_ended_before_anything_was_read_is_no_success(folder):
    for path in (folder / "capture" / "logs").iterdir():
        path.unlink()
    reason, sentence = verdict(folder)
    assert reason == "failed"
    facts(sentence, "ended before")


def test_a_host_whose_lines_were_not_read_is_named(folder):
    (folder / "capture" / "logs" / "w1.json").unlink()
    assert verdict(folder)[0] == "ok"
    assert "w1: what it logged was not read" in (folder / "report.txt").read_text()


def test_what_may_have_been_raised_and_was_never_put_back_is_a_failure(folder):
    note(folder, RAISED, says(SCHEDULER, "unsure", "HTTP 502"), says(KUBELET, "raised"))
    note(folder, RESTORED, status="unreachable", reason="timed out")
    assert became(folder, FIRST) == [(SCHEDULER, False, False, "timed out")]
    assert verdict(folder)[0] == "failed"


def test_put_back_by_the_service_first(folder):
    """It names nothing then: there was nothing left."""
    note(folder, RESTORED)
    assert became(folder) == [(SCHEDULER, True, True, ""), (KUBELET, True, True, "")]
    assert verdict(folder)[0] == "ok"


@pytest.mark.parametrize(
    ("status", "reason", "word"),
    [("unreachable", "timed out", "timed out"), ("error", "", "error")],
)
def test_a_host_that_is_silent_at_the_end(folder, status, reason, word):
    note(folder, RESTORED, status=status, reason=reason)
    assert became(folder) == [(SCHEDULER, True, False, word), (KUBELET, True, False, word)]
    found, sentence = verdict(folder)
    assert found == "failed"
    assert f"the level of kube-scheduler of m1, kubelet of w1 was not put back ({word})" in sentence
    assert f"kubemend_run_id={RUN}" in sentence
    assert "a service there goes on trying" in sentence


def test_a_host_that_was_never_asked_to_put_back(folder):
    (folder / "capture" / "m1.restored.json").unlink()
    assert became(folder)[0] == (SCHEDULER, True, False, "it was not put back")
    assert verdict(folder)[0] == "failed"


def test_one_that_could_not_be_put_back(folder):
    note(folder, RESTORED, says(SCHEDULER, "failed", "HTTP 500"), says(KUBELET, "restored"))
    assert became(folder) == [(SCHEDULER, True, False, "HTTP 500"), (KUBELET, True, True, "")]
    assert "kube-scheduler of m1 was not put back (HTTP 500)" in verdict(folder)[1]


def test_an_error_beside_what_was_put_back(folder):
    note(folder, RESTORED, says(SCHEDULER, "restored"), error="it ended")
    assert became(folder) == [(SCHEDULER, True, True, ""), (KUBELET, True, False, "it ended")]


def test_one_that_was_refused(folder):
    note(folder, RAISED, says(SCHEDULER, "refused", "raised by run x"), says(KUBELET, "raised"))
    note(folder, RESTORED, says(KUBELET, "restored"))
    assert became(folder) == [
        (SCHEDULER, False, None, "raised by run x"),
        (KUBELET, True, True, ""),
    ]
    reason, sentence = verdict(folder)
    assert reason == "refused"
    facts(sentence, "kube-scheduler", "m1", "raised by run x")


@pytest.mark.parametrize(
    ("back", "restored", "reason"),
    [
        (("restored", ""), None, "lost"),
        (("failed", "still away"), False, "still away"),
        (None, None, "lost"),
    ],
)
def test_one_whose_answer_was_lost_may_have_been_raised(folder, back, restored, reason):
    note(folder, RAISED, says(SCHEDULER, "refused", "lost"))
    note(folder, RESTORED, *([says(SCHEDULER, *back)] if back else []))
    assert became(folder, FIRST) == [(SCHEDULER, False, restored, reason)]
    assert verdict(folder, plan(FIRST))[0] == ("refused" if restored is None else "failed")


def test_where_nothing_was_raised_nothing_went_well(folder):
    """No service, no level: the run fails and says why."""
    note(folder, RAISED, error="no level was raised, because the service does not start")
    note(folder, RESTORED)
    assert became(folder, FIRST) == [
        (SCHEDULER, False, None, "no level was raised, because the service does not start")
    ]
    assert verdict(folder)[0] == "refused"
    assert "the service does not start" in verdict(folder)[1]


def test_where_nothing_can_be_written_nothing_was_raised_and_nothing_is_tried(folder):
    """A folder that is somebody else's: neither raising nor putting back does anything there."""
    why = "nothing was changed: the folder /var/lib/kubemend belongs to somebody else"
    note(folder, RAISED, says(SCHEDULER, "refused", why), error=why)
    note(folder, RESTORED, error=why)
    made = report_capture.make(str(folder), plan(FIRST), WIDE)
    assert f"  m1 kube-scheduler: not raised: {why}\n" in made.text
    assert "goes on trying" not in made.text
    assert made.reason == "refused"


def test_a_host_that_ended_half_way(folder):
    note(folder, RAISED, says(SCHEDULER, "raised"), error="nobody knows")
    note(folder, RESTORED, says(SCHEDULER, "restored"))
    assert became(folder) == [(SCHEDULER, True, True, ""), (KUBELET, False, None, "nobody knows")]


def test_an_answer_that_was_never_heard(folder):
    note(folder, RAISED, status="unreachable", reason="timed out")
    assert became(folder, FIRST) == [(SCHEDULER, False, True, "")]  # it put back what it had raised
    note(folder, RESTORED, status="unreachable", reason="timed out again")
    # as far as anybody knows
    assert became(folder, FIRST) == [(SCHEDULER, False, False, "timed out again")]


def test_a_restart_that_was_not_proven_is_not_put_back_by_silence(folder):
    """Its files are back, so that its host has nothing more to put back: that is no success."""
    target = replace(FIRST, step={"id": "raise-kube-scheduler"})
    note(folder, RAISED, says(SCHEDULER, "unsure", "it did not come back"))
    note(folder, RESTORED)
    assert became(folder, target) == [(SCHEDULER, False, False, "it did not come back")]
    assert verdict(folder, plan(target))[0] == "failed"
    assert "it did not come back" in verdict(folder, plan(target))[1]


def test_what_was_never_begun(tmp_path):
    assert became(tmp_path) == [
        (SCHEDULER, False, None, "it was not begun"),
        (KUBELET, False, None, "it was not begun"),
    ]
    note(tmp_path, RESTORED, status="unreachable", reason="timed out")
    assert became(tmp_path, FIRST) == [(SCHEDULER, False, None, "it was not begun")]


def test_a_cluster_that_another_run_holds(tmp_path):
    run_cluster_lock.note(
        str(tmp_path), run_cluster_lock.Held("m1", None, "ok", False, OTHER, "held")
    )
    found, sentence = verdict(tmp_path)
    assert found == "refused"
    assert OTHER in sentence


def test_without_targets_no_lock_is_needed(tmp_path):
    assert verdict(tmp_path, Plan(RUN, 60, 4, ("kubelet",), begun=NOW)) == ("ok", "")


def test_what_can_be_raised_is_what_its_host_offers(folder):
    note(folder, PROBED, says(SCHEDULER, "offered"), says(KUBELET, "refused", "it is off"))
    targets, lost, refused = capture_outcome.offered(str(folder), plan())
    assert (targets, lost) == ((FIRST,), ())
    facts_of_each(refused, ("kubelet", "w1", "level 0", "it is off"))
    note(folder, PROBED, status="unreachable", reason="timed out")
    facts_of_each(
        capture_outcome.offered(str(folder), plan())[2],
        ("kube-scheduler", "m1", "level 2", "timed out"),
        ("kubelet", "w1", "level 0", "timed out"),
    )
    (folder / "capture" / "m1.probed.json").unlink()
    targets, lost, refused = capture_outcome.offered(str(folder), plan(FIRST))
    assert (targets, lost) == ((), ())
    facts_of_each(refused, ("kube-scheduler", "m1", "level 2", "not asked"))
    note(folder, PROBED, says(SCHEDULER, "absent", "it has none"), says(KUBELET, "offered"))
    assert capture_outcome.offered(str(folder), plan()) == (
        (SECOND,),
        ((FIRST, "it has none"),),
        (),
    )


@pytest.mark.parametrize("state", ["", "raised", "OFFERED", None, True])
def test_only_that_word_is_an_offer(folder, state):
    note(folder, PROBED, says(SCHEDULER, state))
    assert capture_outcome.offered(str(folder), plan(FIRST))[0] == ()


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from([SCHEDULER, "raised", "restored", EVIL])
)
SHAPES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["targets", "error", "real", "state", "reason", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
    derandomize=True,
)
@given(SHAPES, SHAPES)
def test_no_shape_of_an_answer_does_any_harm(folder, first, second):
    for suffix, answer in ((PROBED, first), (RAISED, first), (RESTORED, second)):
        capture_outcome.note(str(folder), "m1", suffix, "ok", "", answer)
    capture_outcome.offered(str(folder), plan())
    made = report_capture.make(str(folder), plan(), WIDE)
    assert not set(EVIL) & set("\x1b\x07\r\u202e") & set(made.text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '{"status": "ok"}',
        '{"status": "ok", "reason": "", "answer": 3}',
        "\xff",
    ],
)
def test_no_file_of_an_answer_does_any_harm(folder, text):
    (folder / "capture" / "m1.restored.json").write_bytes(text.encode("latin-1"))
    for _dummy, raised, restored, reason in became(folder):
        assert raised is True
        assert (restored is False and "cannot be read" in reason) or "answer" in text


@pytest.mark.parametrize("host", ["we/ird", "../up", "m1"])
def test_files_are_for_their_owner_and_stay_in_the_folder(tmp_path, host):
    note(tmp_path, RAISED, host=host)
    (path,) = (tmp_path / "capture").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert capture_outcome.noted(str(tmp_path), host, RAISED) == capture_outcome.Answer(
        host, {}, ""
    )


def test_the_plan_is_kept(tmp_path):
    capture_outcome.write(str(tmp_path), capture_outcome.PLAN, capture_plan.dumped(plan()))
    assert capture_outcome.read_plan(str(tmp_path)) == plan()


# The report.


def since(folder, node, **started):
    path = folder / "capture" / "logs" / f"{node}.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "started": {"host": NOW - 9000, **started}})
    )


def noticed(folder, *targets):
    made = report_capture.make(str(folder), replace(plan(*targets), begun=NOW - 60), WIDE)
    return made, json.loads((folder / "report.json").read_text())["notices"]


def test_what_was_started_again_in_the_window_is_noticed(folder):
    """Host and level were back after ten seconds.

    The report does not claim that the level was up for all of the time.
    """
    since(folder, "m1", **{"kube-scheduler": NOW - 50})
    since(folder, "w1", host=NOW - 30, kubelet=NOW - 20)
    made, notices = noticed(folder)
    facts_of_each(
        notices[:2],
        ("kube-scheduler", "m1", "2026-11-21T20:00:12Z"),
        ("w1", "2026-11-21T20:00:32Z"),
    )
    assert made.reason == "ok"
    assert all(f"  {one}\n" in made.text for one in notices[:2])
    since(folder, "m1", **{"kube-scheduler": NOW - 70})
    since(folder, "w1", kubelet=NOW - 70)
    assert noticed(folder)[1] == []
    since(folder, "m1", **{"kube-scheduler": NOW - 50})  # that was us
    assert noticed(folder, replace(FIRST, step={"id": "x"}))[1] == []


@pytest.mark.parametrize(
    ("started", "why"),
    [
        ({"kubelet": NOW - 20}, "it was started again at 2026-11-21T20:00:42Z, with its own level"),
        ({}, "it does not run, and starts with its own level"),
        ({"kubelet": NOW - 90}, None),
        ({"kubelet": "x"}, "it does not run"),
        (None, None),
    ],
)
def test_a_level_of_a_process_that_is_gone_is_not_left(folder, started, why):
    """The kubelet of w1 does not answer m1, which raised it; w1 itself says why."""
    note(folder, RESTORED, says(SCHEDULER, "restored"), says(KUBELET, "failed", "HTTP 502"))
    if started is not None:
        since(folder, "w1", **started)
    made = noticed(folder)[0]
    line = (
        f"w1 kubelet: 0 -> 4, not raised any more: {why}"
        if why
        else "w1 kubelet: 0 -> 4, NOT PUT BACK: HTTP 502; a service on m1 goes on trying"
    )
    assert line in made.text
    assert made.reason == ("ok" if why else "failed")
