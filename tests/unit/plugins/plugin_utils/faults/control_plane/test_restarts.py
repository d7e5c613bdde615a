# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM117, and KM114 of what runs again: why a component was restarted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support import known_rows

SCHEDULER, MANAGER, SERVER, ETCD = (
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
    "etcd",
)
CLOCK = 1_800_000_000.0
UID, SANDBOX = "0" * 31 + "a", "5" * 64
PATH = f"/var/log/pods/kube-system_kube-scheduler-m2_{UID}/kube-scheduler/2.log"
LOST = "F1125 08:00:05.100000       1 server.go:264] leaderelection lost"
REFUSED = 'E1125 08:00:05.100000       1 run.go:72] "command failed" err="open /x: no such file"'


def says(text: str, *words: str) -> None:
    for word in words:
        assert word in text


def identity(attempt: int, component: str = SCHEDULER) -> str:
    return f"{attempt:02d}{len(component):02d}" + "e" * 60


def row(
    age: float, attempt: int, ended: float | None = None, component: str = SCHEDULER, **more: Any
) -> dict[str, Any]:
    """Return a container that was made so many seconds ago, and ended so many seconds ago."""
    return {
        "component": component,
        "id": identity(attempt, component),
        "sandbox": SANDBOX,
        "pod_uid": UID,
        "attempt": attempt,
        "state": "running" if ended is None else "exited",
        "created": CLOCK - age,
        "started": CLOCK - age,
        "finished": None if ended is None else CLOCK - ended,
        "exit_code": None,
        "reason": None,
        "message": "",
        "memory_limit": None,
        **more,
    }


def made(age: float, attempt: int, component: str = SCHEDULER) -> str:
    return (
        f"{CLOCK - age:.3f} m2 containerd[7]: time=x level=info"
        f' msg="CreateContainer within sandbox \\"{SANDBOX}\\" for'
        f" &ContainerMetadata{{Name:{component},Attempt:{attempt},}} returns container id"
        f' \\"{identity(attempt, component)}\\""'
    )


def stop(age: float, attempt: int, timeout: int = 30, component: str = SCHEDULER) -> str:
    return (
        f"{CLOCK - age:.3f} m2 containerd[7]: time=x level=info"
        f' msg="StopContainer for \\"{identity(attempt, component)}\\" with timeout {timeout} (s)"'
    )


def journal(*lines: str, **more: Any) -> dict[str, Any]:
    return {"lines": list(lines), "oldest": None, "error": None, **more}


def restarts(world: Any, rows: list[dict[str, Any]] | None, **more: Any) -> None:
    """Set what m2 tells of ends; its components of these rows started with the last of them."""
    data = {
        "since": CLOCK - 4200,
        "runtime_started": CLOCK - 90000,
        "containers": rows,
        "unread": None if rows is not None else "the runtime answers no call of the CRI",
        "runtime": journal(),
        "kubelet": journal(),
        "kernel": journal(),
        **more,
    }
    world.documents["m2"]["collectors"]["component_restart"] = {"status": "ok", "data": data}
    for one in rows or ():
        if one["state"] == "running":
            begin(world, one["component"], one["created"])


def begin(world: Any, component: str, started: float) -> None:
    world.manifest("m2", component, "--v=2")
    for process in world.data("m2", "instances")["processes"]:
        if process["component"] == component:
            process["started_at"] = started


def log(world: Any, *lines: str, **more: Any) -> None:
    data = {
        "component": SCHEDULER,
        "running": True,
        "restart": 2,
        "begun": CLOCK - 900000,
        "path": PATH,
        "first": CLOCK - 9000,
        "last": CLOCK - 700,
        "lines": list(lines),
        "kubelet": None,
        **more,
    }
    collectors = world.documents["m2"]["collectors"]
    collectors["component_end"] = {"status": "ok", "data": {"components": [data]}}


def found(world: Any, *codes: str) -> list[Any]:
    return [one for one in world.judge().findings if one.code in (codes or ("KM117", "KM114"))]


def verdict(world: Any) -> Any:
    (said,) = [
        one for one in world.judge().verdicts if one.code == "KM117" and one.host == "m2"
    ] or [None]
    return said


def killed(code: int, **more: Any) -> dict[str, Any]:
    """Return a scheduler that ended 700 s ago, and its successor."""
    return {"rows": [row(9000, 2, 700, exit_code=code, **more), row(695, 3)]}


def test_a_plane_whose_components_run_for_long_is_clear(world):
    world.documents["m2"]["collectors"]["component_restart"] = {"status": "absent", "data": None}
    assert verdict(world).verdict == "clear"
    assert not found(world)


@pytest.mark.parametrize(
    ("status", "said"), [("error", "unknown"), ("denied", "unknown"), ("absent", "clear")]
)
def test_a_young_component_is_unknown_where_its_ends_were_not_read(world, status, said):
    begin(world, SCHEDULER, CLOCK - 100)
    world.documents["m2"]["collectors"]["component_restart"] = {"status": status, "data": None}
    assert verdict(world).verdict == said


def test_evidence_of_an_older_release_is_not_judged(world):
    begin(world, SCHEDULER, CLOCK - 100)
    world.documents["m2"]["collectors"].pop("component_restart", None)
    assert verdict(world) is None


def test_its_own_exit_is_told_with_its_code_and_its_log(world):
    restarts(world, killed(1)["rows"], runtime=journal(made(695, 3)))
    log(world, REFUSED)
    (one,) = found(world)
    assert (one.code, one.severity, one.component) == ("KM117", "info", SCHEDULER)
    says(one.summary, "exited by itself", "exit code 1", "no such file")
    assert [proof.path for proof in one.evidence] == [PATH]


def test_a_lock_that_was_lost(world):
    restarts(world, killed(1)["rows"], runtime=journal(made(695, 3)))
    log(world, LOST)
    (one,) = found(world)
    says(one.summary, "lock")


@pytest.mark.parametrize(
    ("lines", "kernel", "words"),
    [
        ({"reason": "OOMKilled", "memory_limit": 64 * 1024 * 1024}, (), ("64 MiB",)),
        ({"reason": "OOMKilled"}, (), ("OOM killer",)),
        (
            {"reason": "Error"},
            (f"{CLOCK - 701:.1f} m2 kernel: Out of memory: Killed process 9 (kube-scheduler)",),
            ("the machine had no memory left",),
        ),
        (
            {"reason": "Error"},
            (
                f"{CLOCK - 701:.1f} m2 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/x,"
                f"task_memcg=/kubepods/pod{UID}/{identity(2)},task=kube-scheduler,pid=9,uid=0",
                f"{CLOCK - 701:.1f} m2 kernel: Memory cgroup out of memory: Killed process 9"
                " (kube-scheduler)",
            ),
            ("memory limit",),
        ),
    ],
)
def test_the_oom_killer(world, lines, kernel, words):
    restarts(
        world,
        killed(137, **lines)["rows"],
        runtime=journal(made(695, 3)),
        kernel=journal(*kernel),
    )
    (one,) = found(world)
    says(one.summary, "OOM killer", *words)
    assert "resources.limits.memory" in one.remedy


def test_a_probe_that_the_kubelet_logs(world):
    probe = (
        f"{CLOCK - 735:.1f} m2 kubelet[7]: I0115 08:00:00.000000       7 prober.go:107]"
        ' "Probe failed" probeType="Liveness" pod="kube-system/kube-scheduler-m2" podUID="a"'
        ' containerName="kube-scheduler" probeResult="failure" output="statuscode: 503"'
    )
    restarts(
        world,
        killed(137)["rows"],
        runtime=journal(stop(730, 2), made(695, 3)),
        kubelet=journal(probe),
    )
    (one,) = found(world)
    says(one.summary, "liveness probe failed", "statuscode: 503")
    assert one.evidence[0].object == "kubelet"


@pytest.mark.parametrize("code", [0, 2, 137])
def test_a_probe_of_which_the_kubelet_logs_nothing(world, code):
    """A kubelet with --v=0 stops a container of a running pod for no other reason."""
    restarts(world, killed(code)["rows"], runtime=journal(stop(730, 2), made(695, 3)))
    (one,) = found(world)
    says(one.summary, "liveness or startup probe")
    assert "reason=Unhealthy" in one.remedy


def test_sigkill_of_another_process(world):
    restarts(world, killed(137)["rows"], runtime=journal(made(695, 3)))
    (one,) = found(world)
    says(one.summary, "SIGKILL", "another process")


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"runtime": journal(error="late")}, "runtime"),
        ({"runtime": journal()}, "runtime"),  # it logs no start either
        ({"runtime": journal(made(695, 3)), "kernel": journal(error="late")}, "kernel"),
        ({"runtime": journal(made(695, 3), oldest=CLOCK - 699)}, "runtime"),
        ({"runtime": journal(made(695, 3), oldest=CLOCK - 810)}, "runtime"),
    ],
)
def test_who_killed_it_is_unknown_where_a_journal_is_missing(world, more, word):
    restarts(world, killed(137)["rows"], **more)
    (one,) = found(world)
    says(one.summary, "why is not known", word, "137")


@pytest.mark.parametrize(
    ("code", "runtime"),
    [
        (0, journal(made(695, 3))),  # SIGTERM
        (143, journal(made(695, 3))),
        (137, journal(stop(700, 2, timeout=0), made(695, 3))),  # crictl stop
    ],
)
def test_an_operator_who_restarts_it_is_no_fault(world, code, runtime):
    restarts(world, killed(code)["rows"], runtime=runtime)
    assert not found(world)
    assert verdict(world).verdict == "clear"
    assert SCHEDULER in verdict(world).note


def test_a_manifest_that_was_changed_is_no_fault(world):
    restarts(world, [row(695, 0)], runtime=journal(made(695, 0)))
    assert not found(world)
    assert "manifest" in verdict(world).note


def test_an_upgrade_of_two_components_and_who_loses_its_lock_meanwhile(world):
    rows = [
        row(700, 0, component=SERVER),
        row(650, 0, component=ETCD),
        row(9000, 2, 640, exit_code=1),
        row(635, 3),
    ]
    restarts(world, rows, runtime=journal(made(635, 3)))
    log(world, LOST)
    assert not found(world)


@pytest.mark.parametrize("uptime", [800.0, 500.0])
def test_a_boot_is_no_fault(world, uptime):
    world.data("m2", "system")["uptime_s"] = uptime
    rows = [
        row(9000, 2, 790, exit_code=255, reason="Unknown"),
        row(480, 3, 470, exit_code=1, sandbox="6" * 64),
        row(460, 4, sandbox="6" * 64),
    ]
    restarts(world, rows, runtime=journal(made(460, 4)))
    log(world, REFUSED, restart=3)
    assert not found(world)


def test_the_runtime_was_restarted_and_lost_it(world):
    restarts(
        world,
        killed(255, reason="Unknown")["rows"],
        runtime=journal(made(695, 3)),
        runtime_started=CLOCK - 698,
    )
    (one,) = found(world)
    says(one.summary, "runtime was restarted")


def test_another_sandbox(world):
    rows = killed(137)["rows"]
    rows[1]["sandbox"] = "6" * 64
    restarts(world, rows, runtime=journal(stop(702, 2), made(695, 3)))
    (one,) = found(world)
    says(one.summary, "sandbox")


def test_a_manifest_that_is_written_again_makes_a_pod_of_the_same_uid(world):
    """The UID of a static pod is a digest of its manifest."""
    rows = killed(2)["rows"]
    rows[1]["sandbox"] = "6" * 64
    restarts(world, rows)
    for file in world.data("m2", "manifests")["files"]:
        file["mtime"] = rows[1]["created"] - 13
    assert found(world) == []


def test_ends_that_only_the_journal_has(world):
    """The kubelet keeps one ended container: the older ones are told by the runtime's journal."""
    rows = [row(900, 4, 700, exit_code=137, reason="OOMKilled"), row(695, 5)]
    runtime = journal(made(3900, 3), stop(930, 3), made(900, 4), made(695, 5))
    restarts(world, rows, runtime=runtime)
    (one,) = found(world)
    assert (one.code, one.severity) == ("KM117", "warning")
    says(one.summary, "2 times", "OOM killer", "probe")


def test_three_ends_within_the_hour_do_not_stay_up(world):
    rows = [row(900, 4, 700, exit_code=137, reason="OOMKilled"), row(695, 5)]
    runtime = journal(
        made(3000, 2), stop(2030, 2), made(2000, 3), stop(930, 3), made(900, 4), made(695, 5)
    )
    restarts(world, rows, runtime=runtime)
    (one,) = found(world)
    assert (one.code, one.severity, one.component) == ("KM114", "warning", SCHEDULER)
    says(one.summary, "restarts again and again", "OOM killer")
    assert "resources.limits.memory" in one.remedy


def test_three_ends_of_which_the_last_is_long_ago_are_over(world):
    rows = [row(2400, 4, 2300, exit_code=137, reason="OOMKilled"), row(2200, 5)]
    runtime = journal(
        made(3400, 2), stop(3030, 2), made(3000, 3), stop(2430, 3), made(2400, 4), made(2200, 5)
    )
    restarts(world, rows, runtime=runtime)
    assert [(one.code, one.severity) for one in found(world)] == [("KM117", "warning")]


@pytest.mark.parametrize(("seconds", "code"), [("10s", "KM117"), ("20s", "KM114")])
def test_the_back_off_of_the_kubelet_tells_of_three_ends(world, seconds, code):
    back_off = (
        f"{CLOCK - 690:.1f} m2 kubelet[7]: E0115 08:00:00.000000       7 pod_workers.go:1324]"
        ' "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for'
        f' \\"kube-scheduler\\" with CrashLoopBackOff: \\"back-off {seconds} restarting failed'
        ' container=kube-scheduler pod=kube-scheduler-m2_kube-system(a)\\""'
        ' pod="kube-system/kube-scheduler-m2"'
    )
    restarts(
        world,
        killed(137, reason="OOMKilled")["rows"],
        runtime=journal(made(695, 3)),
        kubelet=journal(back_off),
    )
    assert [one.code for one in found(world)] == [code]


def test_a_users_pod_with_a_container_of_that_name_is_another_one(world):
    foreign = made(800, 7).replace(SANDBOX, "7" * 64)
    restarts(world, [row(9000, 2)], runtime=journal(foreign))
    assert not found(world)


def test_of_a_runtime_that_is_not_asked_the_log_tells(world):
    begin(world, SCHEDULER, CLOCK - 695)
    restarts(world, None)
    log(world, LOST)
    (one,) = found(world)
    says(one.summary, "lock")
    log(world, "I1125 quiet")
    (one,) = found(world)
    says(one.summary, "why is not known", "the runtime answers no call of the CRI")


def test_one_that_is_down_is_told_with_the_reason_of_its_end(world):
    running = world.data("m2", "instances")["processes"]
    running[:] = [one for one in running if one["component"] != SCHEDULER]
    restarts(world, [row(60, 2, 50, exit_code=137, reason="OOMKilled")])
    log(world, "I1125 quiet")
    (one,) = found(world)
    assert (one.code, one.severity) == ("KM114", "critical")
    says(one.summary, "OOM killer")
    assert "quiet" not in one.summary


@pytest.mark.parametrize(
    ("kinds", "is_new", "says_down"),
    [
        (["oom", "oom"], True, True),
        (["oom"], True, False),
        (["exit", "exit"], True, False),  # what it needs may still be on its way
        (["oom", "exit"], True, False),
        (["exit", "exit"], False, True),
        (["exit", "late"], False, False),  # it tried to reach something
        (["oom", "exit"], False, True),
    ],
)
def test_starts_that_end_in_themselves_are_told_at_once(world, kinds, is_new, says_down):
    running = world.data("m2", "instances")["processes"]
    running[:] = [one for one in running if one["component"] != SCHEDULER]
    world.manifest("m2", SCHEDULER, "--v=2", mtime=CLOCK - (50 if is_new else 9000))
    world.data("m2", "kubelet")["process"]["started_at"] = CLOCK - 100
    rows = []
    first = 0 if is_new else 7
    for number, kind in enumerate(kinds):
        age = 40 - 15 * number
        lived = 8 if kind == "late" else 1
        code = {"oom": 137}.get(kind, 1)
        reason = "OOMKilled" if kind == "oom" else "Error"
        rows.append(row(age, first + number, age - lived, exit_code=code, reason=reason))
    restarts(world, rows)
    assert [one.code for one in found(world)] == ["KM114"] * says_down
    missing = [
        (lack.collector, lack.status)
        for one in world.judge().verdicts
        if (one.code, one.host) == ("KM114", "m2")
        for lack in one.missing
    ]
    assert missing == [("instances", "starting")] * (not says_down)


def test_a_lock_that_was_lost_with_the_api_server_is_a_consequence(world):
    rows = [
        row(9000, 2, 700, component=SERVER, exit_code=137, reason="OOMKilled"),
        row(690, 3, component=SERVER),
        row(9000, 2, 680, exit_code=1),
        row(675, 3),
    ]
    restarts(world, rows, runtime=journal(made(675, 3)))
    log(world, LOST)
    told = {one.component: one.because for one in found(world)}
    assert told == {SERVER: (), SCHEDULER: ("KM117",)}


@pytest.mark.parametrize(
    "data",
    [
        {"containers": "many"},
        {"containers": [7]},
        {"containers": [{"component": SCHEDULER, "attempt": "x"}]},
        {"runtime": {"lines": 7}},
        {"kernel": None},
    ],
)
def test_evidence_of_another_shape_is_never_a_finding(world, data):
    begin(world, SCHEDULER, CLOCK - 100)
    restarts(world, [], **data)
    assert not found(world)


def test_of_an_end_that_nothing_shows_only_the_next_start_is_known(world):
    restarts(world, [row(695, 5)])
    (one,) = found(world)
    says(one.summary, "ended before 2027-01-15T07:48:25Z")


def test_a_container_that_cannot_be_made_is_told_before_an_older_end(world):
    running = world.data("m2", "instances")["processes"]
    running[:] = [one for one in running if one["component"] != SCHEDULER]
    restarts(world, [row(9000, 2, 700, exit_code=137, reason="OOMKilled")])
    kubelet = (
        "2027-01-15T07:59:00+0000 m2 kubelet[7]: E0115 07:59:00.000000 7 pod_workers.go:1324]"
        ' "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for'
        ' \\"kube-scheduler\\" with CreateContainerError: \\"no such runtime\\""'
        ' pod="kube-system/kube-scheduler-m2"'
    )
    log(world, "I1125 quiet", running=False, kubelet=kubelet)
    (one,) = found(world)
    says(one.summary, "no such runtime")
    assert "OOM killer" not in one.summary


def test_what_ended_under_a_former_manifest_is_over(world):
    """The runtime still has the ended container of the former pod."""
    rows = [
        row(900, 3, 890, exit_code=137, reason="OOMKilled", pod_uid="1" * 32, sandbox="6" * 64),
        row(695, 0),
    ]
    restarts(world, rows, runtime=journal(made(695, 0)))
    assert not found(world)
    assert "OOM killer" in verdict(world).note


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (['I1126 19:02:53.039070       1 shared_informer.go:409] "Caches are synced"'], None),
        (["panic: runtime error: index out of range"], "KM117"),
        ([], "KM117"),
    ],
)
def test_a_controller_manager_at_sigterm(world, lines, code):
    """It does not handle the signal, and exits with the code of a panic (seen with v1.36.3)."""
    restarts(world, killed(2)["rows"], runtime=journal(made(695, 3)))
    log(world, *lines)
    assert [one.code for one in found(world)] == ([code] if code else [])


def test_the_exit_code_of_a_container_that_the_runtime_has_no_more(world):
    ended = identity(3)
    event = (
        f'{CLOCK - 901:.3f} m2 containerd[7]: level=info msg="received container exit event'
        f' container_id:\\"{ended}\\" id:\\"{ended}\\" pid:7 exit_status:137"'
    )
    rows = [row(900, 4, 700, exit_code=137), row(695, 5)]
    restarts(world, rows, runtime=journal(made(3900, 3), event, made(900, 4), made(695, 5)))
    (one,) = found(world)
    assert (one.code, one.severity) == ("KM117", "warning")
    says(one.summary, "2 times", "before that: SIGKILL")


def test_the_group_of_a_victim_counts_and_not_its_name(world):
    """A pod of a user has a process of that name, and is killed with all others of its group."""
    group = f"/kubepods/burstable/pod{'c' * 8}-0000-0000-0000-{'c' * 12}/{'d' * 64}"
    killed_line = "m2 kernel: Memory cgroup out of memory: Killed process"
    kernel = journal(
        f"{CLOCK - 701:.1f} m2 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg={group},"
        f"task_memcg={group},task=sh,pid=8,uid=0",
        f"{CLOCK - 701:.1f} {killed_line} 8 (sh)",
        f"{CLOCK - 701:.1f} m2 kernel: Tasks in {group} are going to be killed due to"
        " memory.oom.group set",
        f"{CLOCK - 701:.1f} {killed_line} 9 (kube-scheduler)",
    )
    restarts(world, killed(137)["rows"], runtime=journal(made(695, 3)), kernel=kernel)
    (one,) = found(world)
    says(one.summary, "another process killed it")


@pytest.mark.parametrize(
    ("group", "age", "name", "word"),
    [
        (f"/kubepods/pod{UID}/kata", 701, SCHEDULER, "kernel's OOM killer ended it"),
        (f"/kubepods/pod{UID}/kata", 712, SCHEDULER, "another process"),
        (f"/kubepods/pod{UID}/kata", 701, "sh", "another process"),
        # another container of the pod
        (f"/kubepods/pod{UID}/{'d' * 64}", 701, SCHEDULER, "another process"),
        (f"/kubepods/pod{'1' * 32}/kata", 701, SCHEDULER, "another process"),
    ],
)
def test_the_group_of_the_pod_where_it_names_no_container(world, group, age, name, word):
    kernel = journal(
        f"{CLOCK - age:.1f} m2 kernel: oom-kill:constraint=CONSTRAINT_NONE,task_memcg={group},"
        f"task={name},pid=9,uid=0",
        f"{CLOCK - age:.1f} m2 kernel: Out of memory: Killed process 9 ({name})",
    )
    restarts(world, killed(137)["rows"], runtime=journal(made(695, 3)), kernel=kernel)
    (one,) = found(world)
    says(one.summary, word)
    assert "only the name" not in one.summary


@pytest.mark.parametrize(
    ("code", "reason", "age", "word", "is_guess"),
    [
        (137, "Error", 701, "OOM killer", True),
        (137, "OOMKilled", 701, "the machine had no memory left", False),
        (1, "OOMKilled", 701, "the machine had no memory left", False),
        (137, "Error", 711, "SIGKILL", False),
        (1, "Error", 701, "exited by itself", False),  # nothing killed it
    ],
)
def test_a_name_alone_is_told_as_such(world, code, reason, age, word, is_guess):
    kernel = f"{CLOCK - age:.1f} m2 kernel: Out of memory: Killed process 9 (kube-scheduler)"
    rows = killed(code, reason=reason)["rows"]
    restarts(world, rows, runtime=journal(made(695, 3)), kernel=journal(kernel))
    (one,) = found(world)
    says(one.summary, word)
    assert ("only the name" in one.summary) is is_guess


def test_a_long_name_is_cut_by_the_kernel(world):
    kernel = f"{CLOCK - 701:.1f} m2 kernel: Out of memory: Killed process 9 (kube-controller)"
    rows = [row(9000, 2, 700, MANAGER, exit_code=137), row(695, 3, component=MANAGER)]
    restarts(world, rows, runtime=journal(made(695, 3, MANAGER)), kernel=journal(kernel))
    (one,) = found(world)
    says(one.summary, "only the name")


@pytest.mark.parametrize(("group", "is_told"), [("", True), ("/kubepods/poda/kata", False)])
def test_a_container_that_the_runtime_has_no_more_may_be_a_victim(world, group, is_told):
    """Its exit code is not known then."""
    kernel = [f"{CLOCK - 697:.1f} m2 kernel: Out of memory: Killed process 9 (kube-scheduler)"]
    if group:
        limit = f"oom-kill:constraint=CONSTRAINT_NONE,task_memcg={group},task=kube-scheduler,pid=9"
        kernel.insert(0, f"{CLOCK - 697:.1f} m2 kernel: {limit}")
    runtime = journal(made(9000, 2), made(695, 3))
    restarts(world, [row(695, 3)], runtime=runtime, kernel=journal(*kernel))
    (one,) = found(world)
    assert ("OOM killer ended it" in one.summary) is is_told


def test_a_container_of_a_pod_that_is_not_known_is_no_victim_of_another(world):
    kernel = (
        f"{CLOCK - 697:.1f} m2 kernel: oom-kill:constraint=CONSTRAINT_NONE,"
        "task_memcg=/kubepods/poda/kata,task=kube-scheduler,pid=9",
        f"{CLOCK - 697:.1f} m2 kernel: Out of memory: Killed process 9 (kube-scheduler)",
    )
    runtime = journal(crio(900, 4), crio(695, 0))
    restarts(world, [row(695, 0)], runtime=runtime, kernel=journal(*kernel))
    assert "OOM" not in verdict(world).note


def back_off(age: float, seconds: str) -> str:
    return (
        f"{CLOCK - age:.1f} m2 kubelet[7]: E0115 08:00:00.000000       7 pod_workers.go:1324]"
        ' "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for'
        f' \\"kube-scheduler\\" with CrashLoopBackOff: \\"back-off {seconds} restarting failed'
        ' container=kube-scheduler pod=kube-scheduler-m2_kube-system(a)\\""'
        ' pod="kube-system/kube-scheduler-m2"'
    )


@pytest.mark.parametrize(
    ("age", "code"), [(3000, "KM117"), (711, "KM117"), (709, "KM114"), (650, "KM114")]
)
def test_an_old_back_off_is_over(world, age, code):
    restarts(
        world,
        killed(137, reason="OOMKilled")["rows"],
        runtime=journal(made(695, 3)),
        kubelet=journal(back_off(age, "40s")),
    )
    assert [one.code for one in found(world)] == [code]


def test_a_back_off_behind_a_later_restart_is_of_that(world):
    rows = [
        row(9000, 2, 900, exit_code=137, reason="OOMKilled"),
        row(890, 3, 700, exit_code=0),
        row(650, 4),
    ]
    restarts(
        world,
        rows,
        runtime=journal(made(890, 3), made(650, 4)),
        kubelet=journal(back_off(660, "40s")),
    )
    assert [one.code for one in found(world)] == ["KM117"]


@pytest.mark.parametrize(
    ("crashed", "code"), [(1190, "KM114"), (1210, "KM117")], ids=["recently", "over"]
)
def test_a_restart_by_an_operator_hides_no_crashes(world, crashed, code):
    """SIGTERM of an operator ended it last, and three crashes did before."""
    rows = [
        row(crashed + 100, 4, crashed, exit_code=137, reason="OOMKilled"),
        row(crashed - 10, 5, 300, exit_code=0),
        row(295, 6),
    ]
    runtime = journal(
        made(3000, 2),
        stop(2030, 2),
        made(2000, 3),
        stop(crashed + 110, 3),
        made(crashed + 100, 4),
        made(crashed - 10, 5),
        made(295, 6),
    )
    restarts(world, rows, runtime=runtime)
    (one,) = found(world)
    assert (one.code, one.severity) == (code, "warning")
    says(one.summary, "OOM killer")


@pytest.mark.parametrize(
    "line",
    [
        '{"level":"warn","msg":"server error","error":"the member has been permanently removed'
        ' from the cluster"}',
        "2027-01-15 08:00:00.201337 I | etcdserver: the data-dir used by this member must be"
        " removed",
    ],
)
@pytest.mark.parametrize("asked", [True, False])
def test_an_etcd_whose_member_was_removed_ends_with_0(world, line, asked):
    rows = [row(9000, 2, 700, ETCD, exit_code=0), row(695, 3, component=ETCD)]
    restarts(world, rows, runtime=journal(made(695, 3, ETCD)))
    if not asked:
        restarts(world, None)
        begin(world, ETCD, CLOCK - 695)
    log(world, line, component=ETCD)
    (one,) = found(world)
    assert (one.code, one.component) == ("KM117", ETCD)
    says(one.summary, "removed from the etcd cluster, and it exited")
    assert [proof.path for proof in one.evidence] == [PATH]
    says(one.remedy, "etcdctl member")


@pytest.mark.parametrize(("code", "word"), [(1, "etcd cluster, and it exited"), (137, "SIGKILL")])
def test_a_removed_etcd_that_ends_with_another_code(world, code, word):
    rows = [row(9000, 2, 700, ETCD, exit_code=code), row(695, 3, component=ETCD)]
    restarts(world, rows, runtime=journal(made(695, 3, ETCD)))
    log(world, "the member has been permanently removed from the cluster", component=ETCD)
    (one,) = found(world)
    says(one.summary, word)


def test_a_removed_etcd_of_which_only_the_log_is_left(world):
    rows = [row(695, 3, component=ETCD)]
    restarts(world, rows, runtime=journal(made(9000, 2, ETCD), made(695, 3, ETCD)))
    log(world, "the member has been permanently removed from the cluster", component=ETCD)
    (one,) = found(world)
    says(one.summary, "removed from the etcd cluster, and it exited")


def test_only_etcd_has_members(world):
    restarts(world, killed(0)["rows"], runtime=journal(made(695, 3)))
    log(world, "the member has been permanently removed from the cluster")
    assert not found(world)
    restarts(world, None)
    begin(world, SCHEDULER, CLOCK - 695)
    (one,) = found(world)
    says(one.summary, "why is not known")


def test_a_component_whose_start_is_not_known_is_unknown_without_its_ends(world):
    begin(world, SCHEDULER, 0.0)
    world.documents["m2"]["collectors"]["component_restart"] = {"status": "error", "data": None}
    assert verdict(world).verdict == "unknown"


@pytest.mark.parametrize(
    ("age", "said"), [(100, "unknown"), (3400, "unknown"), (3590, "clear"), (4000, "clear")]
)
@pytest.mark.parametrize("rows", [None, []])
def test_of_a_runtime_that_shows_no_container_it_is_unknown(world, rows, age, said):
    restarts(world, rows)
    begin(world, SCHEDULER, CLOCK - age)
    assert verdict(world).verdict == said
    assert not found(world)


def test_a_process_without_a_manifest_is_not_judged(world):
    restarts(world, [])
    begin(world, SCHEDULER, CLOCK - 100)
    files = world.data("m2", "manifests")["files"]
    files[:] = [file for file in files if file["name"] != "kube-scheduler.yaml"]
    assert verdict(world).verdict == "clear"


def test_a_process_that_is_no_static_pod_is_not_judged(world):
    restarts(world, [])
    begin(world, SCHEDULER, CLOCK - 100)
    for process in world.data("m2", "instances")["processes"]:
        if process["component"] == SCHEDULER:
            process["static"] = False
    assert verdict(world).verdict == "clear"


def test_a_journal_that_reaches_back_far_enough(world):
    restarts(world, killed(137)["rows"], runtime=journal(made(695, 3), oldest=CLOCK - 830))
    (one,) = found(world)
    says(one.summary, "another process killed it")


def test_starts_that_a_cut_journal_hides_are_told_as_not_known(world):
    """The runtime has the starts 2 and 4 alone: 3 ended, and nothing tells why."""
    rows = [row(9000, 2, 2000, exit_code=0), row(695, 4)]
    restarts(world, rows, runtime=journal(made(695, 4), oldest=CLOCK - 2500))
    (one,) = found(world)
    says(one.summary, "why is not known", "the runtime has no more")
    rows[1] = row(695, 3)
    restarts(world, rows, runtime=journal(made(695, 3), oldest=CLOCK - 2500))
    assert verdict(world).verdict == "clear"


def test_starts_of_another_pod_are_no_gap(world):
    rows = [row(9000, 0, 700, exit_code=0, pod_uid="1" * 32, sandbox="6" * 64), row(695, 7)]
    restarts(world, rows, runtime=journal(made(695, 7)))
    assert not found(world)
    assert "not known" not in verdict(world).note


def message(age: float, text: str, container: str = SCHEDULER) -> str:
    return (
        f"{CLOCK - age:.1f} m2 kubelet[7]: I0115 08:00:00.000000       7 kuberuntime_manager.go:1]"
        f' "Message for Container of pod" containerName="{container}"'
        ' containerStatusID={"Type":"containerd","ID":"x"} pod="kube-system/kube-scheduler-m2"'
        f' containerMessage="Container {container} {text}, will be restarted"'
    )


@pytest.mark.parametrize(
    ("container", "codes"), [(SCHEDULER, []), ("proxy", ["KM117"])], ids=["its own", "another"]
)
def test_a_kubelet_that_reads_another_definition(world, container, codes):
    """A kubelet of another release makes each container anew, in its pod."""
    restarts(
        world,
        killed(0)["rows"],
        runtime=journal(stop(730, 2), made(695, 3)),
        kubelet=journal(message(730, "definition changed", container)),
    )
    assert [one.code for one in found(world)] == codes
    if not codes:
        assert "definition" in verdict(world).note


def probe(age: float, kind: str, output: str) -> str:
    return (
        f"{CLOCK - age:.1f} m2 kubelet[7]: I0115 08:00:00.000000       7 prober.go:107]"
        f' "Probe failed" probeType="{kind}" pod="kube-system/kube-scheduler-m2" podUID="a"'
        f' containerName="kube-scheduler" probeResult="failure" output="{output}"'
    )


def test_the_answer_to_another_probe_is_not_told(world):
    lines = [probe(1200, "Startup", "statuscode: 500"), message(731, "failed liveness probe")]
    runtime = journal(stop(730, 2), made(695, 3))
    restarts(world, killed(137)["rows"], runtime=runtime, kubelet=journal(*lines))
    (one,) = found(world)
    says(one.summary, "its liveness probe failed")
    assert "500" not in one.summary
    lines = [probe(740, "Startup", "statuscode: 500"), message(731, "failed startup probe")]
    restarts(world, killed(137)["rows"], runtime=runtime, kubelet=journal(*lines))
    (one,) = found(world)
    says(one.summary, "its startup probe failed", "statuscode: 500")


def test_the_probe_of_the_container_before_is_not_told(world):
    rows = [row(900, 2, 700, exit_code=137), row(695, 3)]
    restarts(
        world,
        rows,
        runtime=journal(stop(730, 2), made(695, 3)),
        kubelet=journal(probe(905, "Startup", "statuscode: 500")),
    )
    assert all("500" not in one.summary for one in found(world))


@pytest.mark.parametrize(
    ("moved", "codes"), [(13, []), (179, []), (181, ["KM117"]), (-5, ["KM117"])]
)
def test_a_manifest_that_was_moved_away_and_back(world, moved, codes):
    """It keeps the time of its last write."""
    rows = killed(2)["rows"]
    rows[1]["sandbox"] = "6" * 64
    restarts(world, rows)
    for file in world.data("m2", "manifests")["files"]:
        file["ctime"] = rows[1]["created"] - moved
    assert [one.code for one in found(world)] == codes


def test_an_exit_shortly_behind_a_manifest_that_was_moved_in(world):
    rows = [row(900, 0, 700, exit_code=1), row(695, 1)]
    restarts(world, rows, runtime=journal(made(900, 0), made(695, 1)))
    assert not found(world)


def crio(age: float, attempt: int) -> str:
    return (
        f'{CLOCK - age:.3f} m2 crio[7]: time="x" level=info msg="Created container'
        f' {identity(attempt)}: kube-system/kube-scheduler-m2/kube-scheduler" id=x'
    )


def test_starts_of_cri_o_have_no_number_and_are_of_the_same_pod(world):
    """Its line of a start has none: the ones before the start that the runtime still has count."""
    rows = [row(900, 4, 700, exit_code=137, reason="OOMKilled"), row(695, 5)]
    runtime = journal(crio(3500, 2), crio(2000, 3), crio(900, 4), crio(695, 5))
    restarts(world, rows, runtime=runtime)
    (one,) = found(world)
    assert (one.code, one.severity) == ("KM117", "warning")
    says(one.summary, "4 times", "OOM killer")
    assert "manifest" not in one.summary
    assert "sandbox" not in one.summary
    restarts(world, [row(695, 0)], runtime=journal(crio(900, 4), crio(695, 0)))
    assert not found(world)


def crio_stop(age: float, attempt: int) -> str:
    return (
        f'{CLOCK - age:.3f} m2 crio[7]: time="x" level=info msg="Stopping container:'
        f' {identity(attempt)} (timeout: 30s)" id=x'
    )


def test_the_log_of_a_start_of_cri_o_is_found_by_its_number(world):
    restarts(world, [row(695, 5)], runtime=journal(crio(3900, 4), crio(695, 5)))
    log(world, LOST, restart=4)
    (one,) = found(world)
    says(one.summary, "could not renew its lock")


@pytest.mark.parametrize("time", ["mtime", "ctime"])
def test_a_stop_by_cri_o_within_a_pod_is_no_manifests(world, time):
    runtime = journal(crio(3900, 4), crio_stop(700, 4), crio(695, 5))
    restarts(world, [row(695, 5)], runtime=runtime)
    for file in world.data("m2", "manifests")["files"]:
        file[time] = CLOCK - 705
    (one,) = found(world)
    says(one.summary, "probe fails")
    runtime = journal(crio(3900, 4), crio_stop(700, 4), crio(695, 0))
    restarts(world, [row(695, 0)], runtime=runtime)
    for file in world.data("m2", "manifests")["files"]:
        file[time] = CLOCK - 705
    assert not found(world)
    assert "probe" not in verdict(world).note


@pytest.mark.parametrize("component", [ETCD, SERVER])
def test_a_silent_exit_2_of_one_that_handles_sigterm_is_not_known(world, component):
    rows = [row(9000, 2, 700, component, exit_code=2), row(695, 3, component=component)]
    restarts(world, rows, runtime=journal(made(695, 3, component)))
    log(world, "I1126 quiet", component=component)
    (one,) = found(world)
    says(one.summary, "exit code 2", "why is not known")


def test_one_that_is_down_now_was_not_restarted(world):
    """The kubelet does not run, so that KM114 does not judge it."""
    restarts(world, killed(137, reason="OOMKilled")["rows"], runtime=journal(made(695, 3)))
    running = world.data("m2", "instances")["processes"]
    running[:] = [one for one in running if one["component"] != SCHEDULER]
    world.data("m2", "kubelet").update(process=None, unit={"active_state": "inactive"})
    assert not found(world, "KM117")
    assert verdict(world).verdict == "unknown"
    assert f"{SCHEDULER} does not run at the moment" in verdict(world).note


def test_an_etcd_that_ends_with_0_is_not_known_without_its_log(world):
    rows = [row(9000, 2, 700, ETCD, exit_code=0), row(695, 3, component=ETCD)]
    restarts(world, rows, runtime=journal(made(695, 3, ETCD)))
    world.documents["m2"]["collectors"]["component_end"] = {"status": "timeout", "data": None}
    (one,) = found(world, "KM117")
    says(one.summary, "why is not known", "its log")
    log(world, "I1126 quiet", component=ETCD)
    assert not found(world)
    world.documents["m2"]["collectors"]["component_end"] = {"status": "timeout", "data": None}
    rows[0]["exit_code"] = 1
    (one,) = found(world, "KM117")
    says(one.summary, "exited by itself")


@pytest.mark.parametrize(
    ("begun", "words"),
    [
        (731, "from --v=2 on"),
        (789, "from --v=2 on"),
        (791, "probe fails"),
        (500, "probe fails"),  # it was started again behind the stop
    ],
)
def test_a_stop_at_the_start_of_a_kubelet_is_no_probes(world, begun, words):
    """A kubelet of another release may read another definition, and --v=0 does not tell."""
    world.data("m2", "kubelet")["process"]["started_at"] = CLOCK - begun
    restarts(world, killed(0)["rows"], runtime=journal(stop(730, 2), made(695, 3)))
    (one,) = found(world)
    says(one.summary, words)


@pytest.mark.parametrize(("age", "codes"), [(650, ["KM117"]), (550, [])])
def test_only_a_short_time_excuses_exits_behind_a_manifest(world, age, codes):
    world.manifest("m2", SCHEDULER, "--v=2", mtime=CLOCK - 1200)
    rows = [row(9000, 2, 1200 - age, exit_code=1), row(1195 - age, 3)]
    restarts(world, rows, runtime=journal(made(1195 - age, 3)))
    for file in world.data("m2", "manifests")["files"]:
        file["mtime"] = CLOCK - 1200
    assert [one.code for one in found(world)] == codes


@pytest.mark.parametrize(("later", "codes"), [(290, []), (310, ["KM117"])])
def test_only_a_short_time_excuses_what_follows(world, later, codes):
    rows = [
        row(1200, 0, component=SERVER),
        row(9000, 2, 1200 - later, exit_code=1),
        row(1195 - later, 3),
    ]
    restarts(world, rows, runtime=journal(made(1195 - later, 3)))
    log(world, LOST)
    assert [one.code for one in found(world)] == codes


@pytest.mark.parametrize(
    ("age", "words"), [(729.5, "liveness probe failed"), (728.5, "or startup")]
)
def test_a_probe_of_the_next_container_is_not_why(world, age, words):
    restarts(
        world,
        killed(137)["rows"],
        runtime=journal(stop(730, 2), made(695, 3)),
        kubelet=journal(probe(age, "Liveness", "statuscode: 503")),
    )
    (one,) = found(world)
    says(one.summary, words)


@pytest.mark.parametrize(("age", "words"), [(1320, "liveness probe failed"), (1340, "or startup")])
def test_a_probe_that_failed_long_before_is_not_why(world, age, words):
    restarts(
        world,
        killed(137)["rows"],
        runtime=journal(stop(730, 2), made(695, 3)),
        kubelet=journal(probe(age, "Liveness", "statuscode: 503")),
    )
    (one,) = found(world)
    says(one.summary, words)


def test_one_that_was_stopped_and_is_down_did_not_end_by_its_last_crash(world):
    rows = [row(900, 2, 700, exit_code=137, reason="OOMKilled"), row(690, 3, 600, exit_code=0)]
    restarts(world, rows, runtime=journal(made(900, 2), made(690, 3)))
    running = world.data("m2", "instances")["processes"]
    running[:] = [one for one in running if one["component"] != SCHEDULER]
    log(world, "I1125 quiet", restart=3, running=False)
    (one,) = found(world)
    assert (one.code, one.severity) == ("KM114", "critical")
    assert "OOM" not in one.summary


@pytest.mark.parametrize("lines", [[], [REFUSED]])
def test_one_that_is_down_without_a_log_is_told_with_its_end(world, lines):
    restarts(world, [row(60, 2, 50, exit_code=137, reason="OOMKilled")])
    running = world.data("m2", "instances")["processes"]
    running[:] = [one for one in running if one["component"] != SCHEDULER]
    log(world, *lines)
    (one,) = found(world)
    says(one.summary, "OOM killer", "does not stay up" if lines else "does not start")


def test_one_that_is_alive_by_chance_is_told_with_its_end(world):
    rows = [row(40, 2, 35, exit_code=137, reason="OOMKilled"), row(30, 3)]
    restarts(world, rows, runtime=journal(made(40, 2), made(30, 3)))
    log(world, REFUSED, first=CLOCK - 40, last=CLOCK - 35)
    (one,) = found(world)
    assert (one.code, one.severity) == ("KM114", "critical")
    says(one.summary, "ends again and again", "OOM killer")


def test_what_was_long_before_an_upgrade_does_not_follow_from_it(world):
    rows = [row(700, 0, component=SERVER), row(9000, 2, 1000, exit_code=1), row(995, 3)]
    restarts(world, rows, runtime=journal(made(995, 3)))
    log(world, LOST)
    assert [one.component for one in found(world)] == [SCHEDULER]


@pytest.mark.parametrize(("ended", "words"), [(600, "probe fails"), (500, "another process")])
def test_a_stop_counts_for_its_timeout_and_a_while(world, ended, words):
    rows = [row(9000, 2, ended, exit_code=137), row(ended - 5, 3)]
    restarts(world, rows, runtime=journal(stop(730, 2), made(ended - 5, 3)))
    (one,) = found(world)
    says(one.summary, words)


def test_a_runtime_that_was_started_long_after_did_not_lose_it(world):
    restarts(
        world,
        killed(255, reason="Unknown")["rows"],
        runtime=journal(made(695, 3)),
        runtime_started=CLOCK - 600,
    )
    (one,) = found(world)
    says(one.summary, "why is not known")


def test_the_runtimes_own_line_of_the_oom_killer(world):
    line = f"{CLOCK - 701:.1f} m2 containerd[7]: level=info msg=TaskOOM container={identity(2)}"
    rows = killed(137, reason="Error")["rows"]
    restarts(world, rows, runtime=journal(line, made(695, 3)))
    (one,) = found(world)
    says(one.summary, "the kernel's OOM killer ended it")


def test_the_cause_of_a_known_message_is_told(world):
    line = "F1125 1 main.go:85] listen unix /run/a.sock: bind: address already in use"
    restarts(world, killed(1)["rows"], runtime=journal(made(695, 3)))
    log(world, line)
    (one,) = found(world)
    assert (one.code, one.severity) == ("KM117", "warning")
    says(one.summary, "Known cause: A file is at the place of its socket /run/a.sock")
    assert one.remedy.startswith("ss -lxp on the node")


def test_a_message_of_another_release_has_no_known_cause(world, monkeypatch):
    restarts(world, killed(1)["rows"], runtime=journal(made(695, 3)))
    log(world, "F1125 1 main.go:85] listen unix /run/a.sock: bind: address already in use")
    known_rows.of_a_later_release(monkeypatch)
    (one,) = found(world)
    assert "Known cause" not in one.summary


@pytest.mark.parametrize(
    ("code", "more", "is_told"),
    [(137, {"reason": "OOMKilled"}, False), (1, {}, True)],
    ids=["the kernel ended it", "it ended itself"],
)
def test_a_line_of_one_that_others_ended_is_not_the_cause(world, code, more, is_told):
    line = "F1125 1 main.go:85] listen unix /run/a.sock: bind: address already in use"
    rows = [row(900, 2, 800, exit_code=code, **more), row(790, 3, 700, exit_code=code, **more)]
    rows = [row(1000, 1, 910, exit_code=code, **more), *rows, row(695, 4)]
    runtime = journal(made(900, 2), made(790, 3), made(695, 4))
    restarts(world, rows, runtime=runtime)
    log(world, line)
    (one,) = found(world)
    assert one.code == "KM114"
    assert ("Known cause: " in one.summary) is is_told
