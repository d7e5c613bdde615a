# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a kubelet does not run: KM502, and the causes that are faults of their own."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import (
    kubelet_down,
)
from tests.unit.support import known_rows, managed_node
from tests.unit.support.fake_kubelet_messages import (
    AGAIN,
    CASES,
    CPU_STATE,
    FAILED,
    HARMLESS,
    PID,
    ended,
    entry,
    failed,
    fatal,
    klog,
    systemd,
)
from tests.unit.support.fake_limits import Node, holder
from tests.unit.support.managed_node import NONE_STATE

PROFILE = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=list(HealthCheck),
)
OWN = ("KM505", "KM506", "KM507", "KM510", "KM515", "KM516", "KM517")
CODES = frozenset(("KM502", "KM503", *OWN))
CLOCK = 1795372289.0  # 18:31:29 of the lines
LOOPS = {**FAILED, "unit_file_state": "enabled", "n_restarts": 12}
STOPPED = {
    **FAILED,
    "unit_file_state": "enabled",
    "active_state": "inactive",
    "sub_state": "dead",
    "result": "success",
    "n_restarts": 0,
}
RUNS = {
    **LOOPS,
    "active_state": "active",
    "sub_state": "running",
    "result": "success",
    "exec_main_status": 0,
}


def judged(world, unit, lines=(), status="ok", process=None, **kubelet):
    data = world.data("w1", "kubelet")
    data.update(kubelet, unit=dict(unit), process=process)
    told = {"unit": "kubelet.service", "lines": list(lines)} if status == "ok" else None
    world.documents["w1"]["collectors"]["kubelet_end"] = {"status": status, "data": told}
    world.data("w1", "system")["clock"] = CLOCK + 5
    result = world.judge(faults=CODES)
    return {item.code: item for item in result.verdicts if item.host == "w1"}, [
        item for item in result.findings if item.host == "w1"
    ]


def said(verdicts):
    return {code: item.verdict for code, item in verdicts.items()}


def dead(line, status):
    return [*AGAIN, HARMLESS, line, *ended(status)]


CLEAR = dict.fromkeys(CODES, "clear")
STARTS = {
    **RUNS,
    "name": "k3s-agent.service",
    "active_state": "activating",
    "sub_state": "start",
    "n_restarts": 0,
}


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (
            "Node password rejected, duplicate hostname or contents of '/a' may not match server"
            " node-passwd entry, try enabling a unique node name with the --with-node-id flag",
            "present",
        ),
        ("https://127.0.0.1:6444/v1-k3s/readyz: 503 Service Unavailable", "unknown"),
    ],
)
def test_an_agent_of_k3s_that_its_server_refuses(world, answer, verdict):
    waits = "Waiting to retrieve agent configuration; server is not ready"
    line = entry(f'time="2022-08-30T14:00:20Z" level=info msg="{waits}: {answer}"')
    verdicts, findings = judged(world, STARTS, [*AGAIN, line])
    assert said(verdicts)["KM502"] == verdict
    for found in findings:
        assert (found.code, found.severity, found.risk) == ("KM502", "critical", 0)
        assert "k3s-agent.service does not finish its start" in found.summary
        assert "node-password.k3s" in found.remedy
    assert bool(findings) is (verdict == "present")


KUBELITE = {**LOOPS, "name": "snap.microk8s.daemon-kubelite.service", "exec_main_status": 255}
ARGS = "/var/snap/microk8s/current/args"


def test_another_component_within_kubelite_is_named_with_its_file_of_flags(world):
    # microk8s#2837
    line = fatal("API Server exited invalid port value 8080: only zero is allowed")
    _verdicts, (found,) = judged(world, KUBELITE, dead(line, 255))
    assert found.code == "KM502"
    assert "kube-apiserver within the same process ended: invalid port value" in found.summary
    assert "--insecure-port is 8080" in found.summary.partition("Known cause")[2]
    assert f"{ARGS}/kube-apiserver" in found.remedy


WITHOUT_FLAGS = (
    "[--etcd-servers must be specified, service-account-issuer is a required flag,"
    " --service-account-signing-key-file and --service-account-issuer are required flags]"
)
ENDPOINT = "the container runtime endpoint address was not specified or empty"


def empty(world, paths):
    world.documents["w1"]["collectors"]["installer"] = {
        "status": "ok",
        "data": {"paths": [], "kubelet_exe": None, "traces": None, "empty_arguments": paths},
    }


@pytest.mark.parametrize(
    ("files", "text", "code"),
    [
        ((), WITHOUT_FLAGS, "KM502"),
        (("kube-apiserver", "kubelite"), WITHOUT_FLAGS, "KM502"),
        (("kube-apiserver",), f"API Server exited {WITHOUT_FLAGS}", "KM502"),
        (("kubelet",), f"{ENDPOINT}, use --container-runtime-endpoint to set", "KM506"),
        (("kube-proxy",), "unknown flag: --port", "KM505"),
    ],
)
def test_empty_files_of_flags_are_no_matter_of_a_release(world, files, text, code):
    paths = [f"{ARGS}/{name}" for name in files]
    empty(world, paths)
    lines = dead(entry(f"Error: {text}"), 1)
    _verdicts, (found,) = judged(world, {**KUBELITE, "exec_main_status": 1}, lines)
    assert found.code == code
    assert "1.20" not in found.summary
    assert all(path in found.summary for path in paths)
    assert [proof.path for proof in found.evidence if proof.text == "empty"] == paths
    assert found.remedy.startswith("write ") is bool(paths)
    assert ARGS in found.remedy or paths


def test_a_kubelet_of_its_own_unit_has_no_such_files(world):
    empty(world, [f"{ARGS}/kubelet"])
    _verdicts, (found,) = judged(world, LOOPS, dead(entry("Error: unknown flag: --port"), 1))
    assert ARGS not in found.summary


@pytest.mark.parametrize(("program", "is_told"), [("rke2-server", True), ("kubelet", False)])
def test_an_election_that_a_component_of_the_same_process_lost(world, program, is_told):
    lease = "kube-system/cloud-controller-manager"
    unit = {**LOOPS, "name": f"{program}.service", "exec_main_status": 255}
    lines = [
        entry(
            f"I1122 18:31:29.346075   {PID} leaderelection.go:278] failed to renew lease {lease}"
        ),
        entry(f"F1122 18:31:29.346075   {PID} controllermanager.go:222] leaderelection lost"),
    ]
    _verdicts, (found,) = judged(world, unit, [*AGAIN, HARMLESS, *lines, *ended(255)])
    assert found.code == "KM502"
    assert ("cloud-controller-manager lost its election" in found.summary) is is_told
    assert found.remedy.startswith("see what made etcd") is is_told
    texts = [proof.text for proof in found.evidence]
    assert sum("leaderelection lost" in text for text in texts) == 1
    assert any(lease in text for text in texts) is is_told


def test_a_flag_that_a_component_within_kubelite_does_not_know(world):
    line = entry("Error: unknown flag: --port")
    _verdicts, (found,) = judged(world, {**KUBELITE, "exec_main_status": 1}, dead(line, 1))
    assert found.code == "KM505"
    assert "kube-scheduler" in found.summary
    assert ARGS in found.remedy
    assert "kubeadm" not in found.remedy


def test_a_kubelet_that_runs(world):
    assert said(judged(world, {**RUNS, "n_restarts": 0}, status="absent")[0]) == CLEAR
    assert said(judged(world, RUNS, status="not_asked")[0]) == CLEAR


@pytest.mark.parametrize(
    ("line", "status", "cause", "what"),
    CASES,
    ids=lambda value: value[-50:] if isinstance(value, str) else str(value),
)
def test_each_cause_is_one_fault(world, line, status, cause, what):
    verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": status}, dead(line, status))
    code = kubelet_down.CODES.get(cause, "KM502")
    assert said(verdicts) == {
        **dict.fromkeys(OWN, "clear"),
        "KM503": "clear",
        "KM502": "not_applicable",
        code: "present",
    }
    assert (found.code, found.component, found.severity, found.risk) == (
        code,
        "kubelet",
        "critical",
        0,
    )
    assert all(part in found.summary for part in re.split(": |, ", what))
    assert found.remedy.endswith(("at once", "kubelet.service"))
    assert [proof.kind for proof in found.evidence][-2:] == ["unit", "log"]
    quoted = " ".join(line.split())
    assert found.evidence[-1].text.startswith(quoted[:190])
    assert found.evidence[-1].text.endswith(quoted[-190:])


@pytest.mark.parametrize(
    "error",
    [
        "start cpu manager error: [cpumanager] unable to determine reserved CPU resources for"
        " static policy",
        "[cpumanager] unable to determine reserved CPU resources for static policy",
    ],
)
def test_a_policy_without_reserved_cpus_is_told_by_its_own_fault(world, error):
    """KM309 is about the value, so that KM506 does not repeat it."""
    line = failed("failed to run Kubelet: " + error)
    verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(line, 1))
    assert said(verdicts) == {**CLEAR, "KM502": "present"}
    assert "static policy" in found.summary


SWAPPED = failed(
    "failed to run Kubelet: running with swap on is not supported, please disable swap or set"
    " --fail-swap-on flag to false"
)
NO_INSTANCE = failed("failed to run Kubelet: error creating fsnotify watcher: too many open files")


@pytest.mark.parametrize(
    ("swaps", "because"), [("/dev/sda2 partition 4194300 0 -2\n", ("KM504",)), ("", ())]
)
def test_a_death_of_swap_is_explained_by_the_swap_that_is_on(world, swaps, because):
    world.data("w1", "swap")["swaps"] += swaps
    _dummy, (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(SWAPPED, 1))
    assert (found.code, found.because) == ("KM502", because)


@pytest.mark.parametrize(
    ("holders", "because"), [((), ("KM402",)), ((holder(7, "leaky", 100),), ("KM401",)), (None, ())]
)
def test_a_death_of_inotify_is_explained_by_who_used_it_up(world, holders, because):
    node = Node(world)
    if holders is not None:
        node.used_up(*holders)
    _dummy, (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(NO_INSTANCE, 1))
    assert (found.code, found.because) == ("KM502", because)


DENIED = (
    "type=AVC msg=audit(1700000000.364:4154): avc:  denied  { execute } for  pid=4040"
    ' comm="(kubelet)" name="kubelet" scontext=system_u:system_r:init_t:s0'
    " tcontext=system_u:object_r:unlabeled_t:s0 tclass=file permissive=0"
)
EXEC = "systemd[40]: kubelet.service: Failed at step EXEC spawning /usr/bin/kubelet: No such file"


@pytest.mark.parametrize(("lines", "because"), [([DENIED], ("KM528",)), ([], ())])
def test_a_program_that_systemd_may_not_execute_is_explained_by_selinux(world, lines, because):
    told = {"count": len(lines), "lines": lines, "cut": False, "since": True, "error": None}
    world.data("w1", "boot").update(
        selinux={"enforce": "1", "config": "enforcing"},
        denials=told | {"path": "/var/log/audit/audit.log"},
    )
    _verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": 203}, dead(EXEC, 203))
    assert (found.code, found.because) == ("KM502", because)


SPAWNS = "kubelet.service: Failed at step EXEC spawning /opt/bin/kubelet: {}"


@pytest.mark.parametrize(
    ("errno", "mounts", "words", "command"),
    [
        ("Permission denied", [("/opt", "rw,noexec")], "/opt is mounted with noexec", "remount"),
        ("Permission denied", [("/opt", "rw")], "may not execute /opt/bin/kubelet", "ls -lZ"),
        ("Operation not permitted", [], "does not let it execute /opt/bin/kubelet", "fapolicyd"),
        ("Exec format error", [], "of another architecture", "uname -m"),
        ("No such file or directory", [], "does not find /opt/bin/kubelet", "findmnt -T"),
    ],
)
def test_why_systemd_cannot_execute_a_kubelet(world, errno, mounts, words, command):
    world.data("w1", "boot")["mounts"] = [
        {"point": point, "source": "/dev/a", "type": "xfs", "options": options}
        for point, options in mounts
    ]
    lines = [*AGAIN, entry(SPAWNS.format(errno), "systemd", 40), *ended(203, "EXEC")]
    _verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": 203}, lines)
    assert found.code == "KM502"
    assert words in found.summary
    assert command in found.remedy


def test_a_file_of_its_environment_that_is_missing_is_a_known_cause(world):
    line = systemd("kubelet.service: Failed to load environment files: No such file or directory")
    lines = [*AGAIN, line, systemd("kubelet.service: Failed with result 'resources'.")]
    unit = {**LOOPS, "result": "resources", "exec_main_status": 0}
    _verdicts, (found,) = judged(world, unit, lines)
    assert found.code == "KM502"
    assert "Known cause" in found.summary
    assert "nodeadm" in found.remedy


def test_a_line_that_names_a_cgroup_tells_more_than_the_end(world):
    missing = "openat2 /sys/fs/cgroup/kubepods.slice/cpu.weight: no such file or directory"
    lines = dead(failed("root container [kubepods] doesn't exist"), 1)
    before = entry(f'E1120 18:31:28.000000 {PID} a.go:1] "cgroup manager.Set failed: {missing}"')
    _verdicts, (found,) = judged(
        world, {**LOOPS, "exec_main_status": 1}, [*lines[:-3], before, *lines[-3:]]
    )
    assert found.code == "KM502"
    assert "multipathd" in found.summary
    assert "RestrictRealtime" in found.remedy


@pytest.mark.parametrize(
    ("said_last", "is_crash"), [("signal: segmentation fault", True), ("exit status 1", False)]
)
def test_a_crash_of_a_program_says_that_it_may_be_damaged(world, said_last, is_crash):
    line = failed(f"containerd exited: {said_last}")
    _verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(line, 1))
    assert ("is damaged" in found.summary) == is_crash
    assert ("unpack theirs again" in found.remedy) == is_crash


EXECUTES = "containerd: fork/exec /var/lib/rancher/rke2/data/v1/bin/containerd: {}"
NOEXEC = {"point": "/var/lib", "source": "/dev/a", "type": "xfs", "options": "rw,noexec"}
EPERM, EACCES = "operation not permitted", "permission denied"


@pytest.mark.parametrize(
    ("errno", "more", "words", "command"),
    [
        (EPERM, {"fapolicyd": True}, "fapolicyd runs here", "fagenrules --load"),
        (EPERM, {"fapolicyd": False}, "not fapolicyd, which does not run", "ausearch -m FANOTIFY"),
        (EPERM, {"fapolicyd": None}, "fapolicyd, or another program", "ausearch -m FANOTIFY"),
        # a mount with noexec says another errno
        (EPERM, {"fapolicyd": True, "mounts": [NOEXEC]}, "fapolicyd runs here", "fagenrules"),
        (EACCES, {"mounts": [NOEXEC]}, "/var/lib is mounted with noexec", "remount,exec /var/lib,"),
        (
            EACCES,
            {"mounts": [{**NOEXEC, "point": "/var/l"}, {**NOEXEC, "options": "rw"}]},
            "it may not execute /var/lib/rancher/rke2/data/v1/bin/containerd",
            "findmnt -no OPTIONS -T /var/lib/rancher/rke2/data/v1/bin/containerd",
        ),
        ("no such file or directory", {"fapolicyd": True}, None, None),
    ],
)
def test_a_program_that_the_kernel_does_not_let_it_execute(world, errno, more, words, command):
    world.data("w1", "boot").update(more)
    line = failed(EXECUTES.format(errno))
    _verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(line, 1))
    assert ("xecute" in found.summary) == (words is not None)
    if words is not None:
        assert words in found.summary
        assert command in found.remedy


def test_a_death_that_is_not_certain_is_explained_by_nothing(world):
    world.data("w1", "swap")["swaps"] += "/dev/sda2 partition 4194300 0 -2\n"
    _dummy, (found,) = judged(world, {**LOOPS, "exec_main_status": 2}, dead(SWAPPED, 1))
    assert (found.code, found.because) == ("KM502", ())


def test_watches_are_another_fault_than_instances(world):
    line = fatal(
        "Failed to start cAdvisor inotify_add_watch /sys/fs/cgroup/x: no space left on device"
    )
    _dummy, (found,) = judged(world, {**LOOPS, "exec_main_status": 255}, dead(line, 255))
    assert "KM403" in found.summary
    assert "KM401" not in found.summary


@pytest.mark.parametrize(
    ("unit", "words", "remedy"),
    [
        (
            STOPPED,
            (
                "it is enabled and exited cleanly: it was stopped, or what it requires was"
                " stopped, since 2026-11-22T18:31:29+0000"
            ),
            "systemctl start kubelet.service; find out",
        ),
        (
            {**STOPPED, "unit_file_state": "disabled"},
            "it is disabled: it was not started since the boot, or it was stopped",
            "find out who stopped it",
        ),
    ],
)
def test_one_that_was_stopped_died_of_nothing(world, unit, words, remedy):
    verdicts, (found,) = judged(
        world,
        unit,
        [*dead(fatal("unknown flag: --old"), 255), systemd("Stopped kubelet.service - kubelet.")],
    )
    assert said(verdicts) == {**CLEAR, "KM502": "present"}
    assert words in found.summary
    assert remedy in found.remedy
    assert "--old" not in found.summary
    assert found.evidence[-1].text.startswith("the last line of its journal: ")
    assert found.evidence[-1].text.endswith("Stopped kubelet.service - kubelet.")
    assert said(judged(world, unit, status="error")[0]) == {**CLEAR, "KM502": "present"}


def test_one_that_systemd_gave_up(world):
    unit = {
        **LOOPS,
        "active_state": "failed",
        "sub_state": "failed",
        "result": "start-limit-hit",
        "exec_main_status": 1,
    }
    verdicts, (found,) = judged(world, unit, dead(failed("unknown flag: --x"), 1))
    assert said(verdicts) == {**CLEAR, "KM502": "not_applicable", "KM505": "present"}
    assert found.remedy.endswith(
        "systemctl reset-failed kubelet.service and systemctl start kubelet.service"
    )
    _dummy, (found,) = judged(world, unit, dead(failed("something new"), 1))
    assert (found.code, "does not start it any more" in found.summary) == ("KM502", True)


@pytest.mark.parametrize("status", ["error", "timeout", "denied", "not_asked"])
def test_without_its_journal_the_cause_is_unknown(world, status):
    verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, status=status)
    assert found.code == "KM502"
    assert "12 restarts so far" in found.summary
    assert said(verdicts)["KM502"] == "present"
    assert {said(verdicts).get(code, "not judged") for code in OWN} == {
        "not judged" if status == "not_asked" else "unknown"
    }


def test_an_empty_journal_says_nothing(world):
    verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": 1})
    assert found.code == "KM502"
    assert {verdicts[code].verdict for code in OWN} == {"unknown"}


def test_words_that_are_not_certain_prove_no_cause(world):
    verdicts, (found,) = judged(
        world, {**LOOPS, "exec_main_status": 1}, dead(entry("Error: unknown flag: --fake"), 2)
    )
    assert found.code == "KM502"
    assert "may mean" in found.summary
    assert {verdicts[code].verdict for code in OWN} == {"unknown"}


# -- between two ends
# --------------------------------------------------------------------------------------------------


def at(lines, seconds):
    """Return the same lines, that many seconds earlier, of another process."""
    return [
        line.replace(
            "18:31:29+0000", f"18:{31 - (seconds + 30) // 60:02d}:{(29 - seconds) % 60:02d}+0000"
        ).replace(str(PID), str(7000 + seconds))
        for line in lines
    ]


ONCE = [HARMLESS, failed("unknown flag: --x"), *ended(1)]


@pytest.mark.parametrize(
    "unit",
    [
        RUNS,
        {**RUNS, "active_state": "activating", "sub_state": "start"},
        {**LOOPS, "exec_main_status": 1},
    ],
)
def test_whenever_one_looks_a_loop_is_a_loop(world, unit):
    lines = [
        *at(AGAIN, 24),
        *at(ONCE, 24),
        *at(AGAIN, 12),
        *at(ONCE, 12),
        *at(AGAIN, 2),
        *at([HARMLESS], 2),
    ]
    verdicts, (found,) = judged(world, unit, lines, process={"pid": 9})
    assert said(verdicts) == {**CLEAR, "KM502": "not_applicable", "KM505": "present"}
    assert "--x" in found.summary


def test_two_ends_that_differ_are_not_certain(world):
    other = [line.replace("--x", "--y") for line in ONCE]
    lines = [
        *at(AGAIN, 24),
        *at(ONCE, 24),
        *at(AGAIN, 12),
        *at(other, 12),
        *at(AGAIN, 2),
        *at([HARMLESS], 2),
    ]
    verdicts, (found,) = judged(world, RUNS, lines)
    assert found.code == "KM502"
    assert {verdicts[code].verdict for code in OWN} == {"unknown"}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([*at(ONCE, 12), *AGAIN, HARMLESS], "one end only"),
        (
            [
                *at(ONCE, 24),
                *at(AGAIN, 12),
                *at(ONCE, 12),
                systemd("Started kubelet.service - kubelet."),
                HARMLESS,
            ],
            "somebody started it",
        ),
        (
            [*at(ONCE, 114), *at(AGAIN, 104), *at(ONCE, 100), *at(AGAIN, 90), HARMLESS],
            "it lives longer than those before it",
        ),
        ([], "nothing is told"),
    ],
)
def test_one_that_came_back_runs(world, lines, why):
    assert said(judged(world, RUNS, lines)[0]) == CLEAR, why


LOOP = [
    *at(AGAIN, 24),
    *at(ONCE, 24),
    *at(AGAIN, 12),
    *at(ONCE, 12),
    *at(AGAIN, 2),
    *at([HARMLESS], 2),
]


@pytest.mark.parametrize(
    ("clock", "loops"),
    [
        (5, True),
        (20, True),
        (40, False),
        (-40, False),
        (None, False),
        ("soon", False),
        (True, False),
    ],
)
def test_a_loop_is_one_for_as_long_as_its_processes_lived(world, clock, loops):
    judged(world, RUNS, LOOP)
    world.data("w1", "system")["clock"] = (
        clock if clock is None or isinstance(clock, (str, bool)) else CLOCK - 12 + clock
    )
    found = [item.code for item in world.judge(faults=CODES).findings if item.host == "w1"]
    assert found == (["KM505"] if loops else [])


def test_a_kubelet_that_systemd_has_not_started_again_is_in_no_loop(world):
    """The lines are those of another time, before its unit was loaded anew."""
    assert said(judged(world, {**RUNS, "n_restarts": 0}, LOOP)[0]) == CLEAR
    stopping = judged(world, {**RUNS, "active_state": "deactivating", "sub_state": "stop"}, LOOP)
    assert said(stopping[0])["KM502"] == "unknown"
    assert not stopping[1]


def test_one_that_its_unit_runs_is_not_said_to_run_beside_it(world):
    verdicts, found = judged(
        world, {**RUNS, "n_restarts": 0}, process={"pid": 9}, argv_source="process"
    )
    assert said(verdicts) == CLEAR
    assert verdicts["KM502"].note == ""
    assert not found


def test_a_process_of_a_moment_does_not_end_a_loop(world):
    verdicts, (found,) = judged(
        world, {**LOOPS, "exec_main_status": 1}, LOOP, process={"pid": 9}, argv_source="process"
    )
    assert found.code == "KM505"
    assert verdicts["KM502"].note != "it runs, but not its unit"


def test_one_that_is_masked_while_systemd_starts_it_again_is_fenced(world):
    verdicts, found = judged(
        world,
        {**LOOPS, "exec_main_status": 1, "unit_file_state": "masked"},
        dead(failed("unknown flag: --x"), 1),
    )
    assert "KM505" not in [one.code for one in found]
    assert verdicts["KM502"].verdict == "not_applicable"


@pytest.mark.parametrize(
    ("unit", "verdict"),
    [
        ({**RUNS, "active_state": "activating", "sub_state": "start"}, "unknown"),
        ({**RUNS, "active_state": "deactivating", "sub_state": "stop"}, "unknown"),
        ({**RUNS, "active_state": "", "sub_state": ""}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_a_state_in_between_is_unknown(world, unit, verdict):
    verdicts, found = judged(world, unit)
    assert {verdicts[code].verdict for code in ("KM502", *OWN)} == {verdict}
    assert not found


def test_one_that_is_masked_is_km503_only(world):
    unit = {**STOPPED, "load_state": "masked", "unit_file_state": "masked"}
    verdicts, (found,) = judged(world, unit)
    assert found.code == "KM503"
    assert {verdicts[code].verdict for code in ("KM502", *OWN)} == {"not_applicable"}


def test_a_kubelet_that_somebody_started_without_its_unit_runs(world):
    verdicts, found = judged(world, STOPPED, process={"pid": 7}, argv_source="process")
    assert said(verdicts) == CLEAR
    assert not found
    assert verdicts["KM502"].note == "it runs, but not its unit"


# -- where it is
# --------------------------------------------------------------------------------------------------


def file(path, text, **more):
    return {"path": path, "kind": "file", "size": len(text), "text": text, **more}


def test_the_line_that_gives_the_flag(world):
    env = file(
        "/var/lib/kubelet/kubeadm-flags.env",
        '# --x\nKUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1 --x=1"\n',
    )
    _dummy, (found,) = judged(
        world,
        {**LOOPS, "exec_main_status": 1, "environment_files": [env]},
        dead(failed("unknown flag: --x"), 1),
    )
    assert (found.evidence[0].path, found.evidence[0].line) == (
        env["path"],
        2,
    )
    assert f"take --x out of {env['path']}" in found.remedy


def test_the_file_that_has_the_gate(world):
    config = file("/var/lib/kubelet/config.yaml", "featureGates:\n  Nope: true\n")
    line = entry(
        "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults,"
        " error: unrecognized feature gate: Nope"
    )
    _dummy, (found,) = judged(world, {**LOOPS, "exec_main_status": 2}, dead(line, 2), config=config)
    assert (found.evidence[0].path, found.evidence[0].line, found.code) == (
        config["path"],
        2,
        "KM505",
    )
    assert config["path"] in found.remedy


def test_the_line_of_the_configuration(world):
    line = fatal(
        "failed to load Kubelet config file /etc/k.yaml, error failed to decode: yaml: line 3:"
        " mapping values are not allowed in this context"
    )
    _dummy, (found,) = judged(world, {**LOOPS, "exec_main_status": 255}, dead(line, 255))
    assert (found.evidence[0].path, found.evidence[0].line) == (
        "/etc/k.yaml",
        3,
    )
    assert "correct /etc/k.yaml" in found.remedy


BOOTSTRAP = failed(
    "failed to run Kubelet: unable to load bootstrap kubeconfig: stat"
    " /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory"
)


@pytest.mark.parametrize(
    ("kubelet", "code", "path"),
    [
        ({}, "KM507", None),
        (
            {"kubeconfig": file("/etc/kubernetes/kubelet.conf", "")},
            "KM510",
            "/etc/kubernetes/kubelet.conf",
        ),
        (
            {
                "client_certificate": {
                    "path": "/var/lib/kubelet/pki/kubelet-client-current.pem",
                    "pem": None,
                    "error": "it is empty",
                }
            },
            "KM510",
            "/var/lib/kubelet/pki/kubelet-client-current.pem",
        ),
        (
            {"client_certificate": {"path": "/x.pem", "pem": None, "error": "missing"}},
            "KM507",
            None,
        ),
        ({"config_dropins": [file("/etc/d/1.conf", "")]}, "KM507", None),
    ],
)
def test_credentials_that_a_power_cut_emptied(world, kubelet, code, path):
    verdicts, (found,) = judged(
        world, {**LOOPS, "exec_main_status": 1}, dead(BOOTSTRAP, 1), **kubelet
    )
    assert said(verdicts) == {**CLEAR, "KM502": "not_applicable", code: "present"}
    assert found.code == code
    assert "kubeadm kubeconfig user --org system:nodes --client-name system:node:w1" in found.remedy
    assert path is None or (
        path in found.summary
        and (found.evidence[0].path, found.evidence[0].text) == (path, "0 bytes")
    )


def test_a_configuration_of_kubespray_is_not_written_by_kubeadm(world):
    line = failed(
        "failed to load kubelet config file, path: /etc/kubernetes/kubelet-config.yaml, error:"
        " strict decoding error: x"
    )
    _dummy, (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(line, 1))
    assert found.code == "KM506"
    assert "correct /etc/kubernetes/kubelet-config.yaml; kubespray's cluster.yml" in found.remedy
    assert "kubeadm" not in found.remedy


# -- whatever a node sends
# --------------------------------------------------------------------------------------------------

ANY = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.lists(st.text(max_size=4), max_size=3)
    | st.dictionaries(
        st.sampled_from(["path", "text", "size", "kind", "error"]),
        st.none() | st.integers() | st.text(max_size=6),
        max_size=3,
    )
)


@PROFILE
@given(st.data())
def test_nothing_makes_it_raise(data):
    from tests.unit.plugins.plugin_utils.conftest import World

    world = World(masters=1)
    unit = data.draw(
        st.dictionaries(
            st.sampled_from([*LOOPS, "environment_files"]),
            ANY | st.sampled_from(["active", "failed", "activating", "exit-code"]),
        )
    )
    kubelet = data.draw(
        st.dictionaries(
            st.sampled_from(
                ["config", "config_dropins", "client_certificate", "argv_source", "process"]
            ),
            ANY,
        )
    )
    world.data("w1", "kubelet").update(kubelet, unit={**LOOPS, **unit})
    lines = data.draw(
        ANY
        | st.lists(
            st.sampled_from([*AGAIN, *dead(BOOTSTRAP, 1), *dead(failed("unknown flag: --x"), 1)])
            | ANY,
            max_size=8,
        )
    )
    world.documents["w1"]["collectors"]["kubelet_end"] = {"status": "ok", "data": {"lines": lines}}
    world.data("w1", "system")["clock"] = data.draw(ANY)
    for item in world.judge(faults=CODES).findings:
        assert item.summary.isprintable()
        assert item.remedy.isprintable()


def test_a_ca_that_a_power_cut_emptied(world):
    path = "/etc/kubernetes/pki/ca.crt"
    line = failed(f"unable to load client CA file {path}: data does not contain any valid RSA or")
    unit = {**LOOPS, "exec_main_status": 1}
    verdicts, (found,) = judged(
        world, unit, dead(line, 1), ca={"path": path, "pem": None, "error": "it is empty"}
    )
    assert said(verdicts) == {**CLEAR, "KM502": "not_applicable", "KM510": "present"}
    assert f"copy {path} from a node of the same cluster" in found.remedy
    verdicts, (found,) = judged(world, unit, dead(line, 1), ca={"path": path, "pem": "x"})
    assert said(verdicts) == {**CLEAR, "KM502": "present"}
    assert path in found.summary


@pytest.mark.parametrize(
    ("error", "words", "remedy"),
    [
        ("component not registered: kube", "a defect of this release", "another patch release"),
        ("failed to initialize kubelet client: x", "the API server does not answer", "/livez"),
        ("could not detect number of cpus", "processors or devices", "lscpu"),
        ("checkpoint is not found", "a file of its own state", "do not delete it"),
        ("something new", "the last error in the journal of kubelet.service: ", "fix what they"),
    ],
)
def test_each_class_has_words_and_an_advice(world, error, words, remedy):
    line = failed(f"failed to run Kubelet: {error}")
    _dummy, (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(line, 1))
    assert found.code == "KM502"
    assert words in found.summary
    assert error in found.summary
    assert remedy in found.remedy


def test_one_without_a_line_of_its_own_is_told_with_its_end(world):
    verdicts, (found,) = judged(
        world, {**LOOPS, "exec_main_status": 1}, [*AGAIN, HARMLESS, *ended(1)]
    )
    assert "status 1" in found.summary
    assert {verdicts[code].verdict for code in OWN} == {"unknown"}


def test_the_cause_of_a_known_message_is_told(world):
    line = entry(
        'E0301 10:00:00.000000 7 run.go:74] "command failed" err="failed to run Kubelet: failed to'
        ' create kubelet: open /dev/kmsg: no such file or directory"'
    )
    (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(line, 1))[1]
    assert "Known cause: The kubelet reads the log of the kernel" in found.summary
    assert found.remedy.startswith("in the configuration of an LXC container")


OF_WORKLOADS = known_rows.of_workloads()


@pytest.mark.parametrize(
    ("name", "place", "text"), OF_WORKLOADS, ids=[line[0] for line in OF_WORKLOADS]
)
def test_no_workload_is_the_cause_of_a_kubelet_that_does_not_run(world, name, place, text):
    line = entry(f'E0301 10:00:00.000000 7 run.go:74] "command failed" err="{text}"')
    (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(line, 1))[1]
    assert "Known cause" not in found.summary


PASSWORD = entry(
    'time="2022-08-30T14:00:20Z" level=info msg="Waiting to retrieve agent configuration; server is'
    " not ready: Node password rejected, duplicate hostname or contents of '/a' may not match"
    ' server node-passwd entry, try enabling a unique node name with the --with-node-id flag"'
)
OTHER = "Another machine has joined with this node's name"
NO_PEM = "The file of a certificate is empty or holds no PEM"
EMPTY_PAIR = next(line for line, *_rest in CASES if "failed to find any PEM data" in line)


@pytest.mark.parametrize(
    ("unit", "lines", "code", "words"),
    [
        ({**STARTS, "name": "k3s-agent.service"}, [*AGAIN, PASSWORD], "KM502", OTHER),
        ({**STARTS, "name": "rke2-agent.service"}, [*AGAIN, PASSWORD], "KM502", OTHER),
        ({**LOOPS, "exec_main_status": 1}, dead(EMPTY_PAIR, 1), "KM507", NO_PEM),
    ],
    ids=["k3s waits", "rke2 waits", "a fault of its own"],
)
def test_the_cause_of_a_known_message_is_told_wherever_it_is_quoted(
    world, unit, lines, code, words
):
    (found,) = judged(world, unit, lines)[1]
    assert found.code == code
    assert f"Known cause: {words}" in found.summary


NO_MEMBER = (
    'time="2026-08-13T15:38:44Z" level=fatal msg="Failed to start etcd: this server is a not a'
    " member of the etcd cluster. Found [m1-1f9a7c2e=https://192.0.2.11:2380], expect:"
    ' m1-1f9a7c2e=https://198.51.100.84:2380"'
)


@pytest.mark.parametrize(
    ("addresses", "cause"),
    [
        ("198.51.100.84 fd7a::84", "takes 198.51.100.84, the address of the VPN"),
        ("198.51.100.85", "by another address than it has now"),
        (None, "by another address than it has now"),
    ],
)
@pytest.mark.parametrize("is_waiting", [False, True], ids=["it ends", "it waits"])
def test_an_address_of_a_vpn_that_etcd_has_no_member_for(world, addresses, cause, is_waiting):
    before = []
    if addresses:
        text = f'level=info msg="Node-ip changed to [{addresses}] due to VPN"'
        before = [entry(f'time="2026-08-13T15:38:41Z" {text}')]
    lines = [*AGAIN, *before, *dead(entry(NO_MEMBER), 1)]
    unit = {**LOOPS, "name": "k3s.service", "exec_main_status": 1}
    if is_waiting:
        lines = [*AGAIN, *before, entry(NO_MEMBER.replace("level=fatal", "level=info"))]
        unit = {**STARTS, "name": "k3s.service"}
    (found,) = judged(world, unit, lines)[1]
    assert cause in found.summary


@pytest.mark.parametrize(
    ("name", "state", "enabled", "is_named"),
    [
        ("k3s.service", "activating", "enabled", True),
        ("k3s.service", "active", "disabled", True),
        ("k3s.service", "inactive", "disabled", False),
        ("rke2-server.service", "active", "enabled", False),
    ],
)
def test_a_server_beside_an_agent_of_k3s_is_named(world, name, state, enabled, is_named):
    row = {"name": name, "component": "k3s", "active_state": state, "unit_file_state": enabled}
    units = {"units": [{**row, "load_state": "loaded", "sub_state": "start", "result": "success"}]}
    world.documents["w1"]["collectors"]["component_units"] = {"status": "ok", "data": units}
    unit = {**LOOPS, "name": "k3s-agent.service", "exec_main_status": 1}
    taken = entry('time="2026-01-30T07:25:16Z" level=fatal msg="bind: address already in use"')
    _verdicts, (found,) = judged(world, unit, dead(taken, 1))
    assert ("k3s.service, the unit of a server" in found.summary) is is_named
    assert ("disable --now k3s.service" in found.remedy) is is_named


FLANNEL = 'time="2026-11-29T13:56:36Z" level=fatal msg="flannel exited: <nil>"'
K3S_FAILED = {
    **LOOPS,
    "name": "k3s.service",
    "active_state": "failed",
    "sub_state": "failed",
    "exec_main_status": 1,
}


@pytest.mark.parametrize("is_asked", [True, False])
def test_what_k3s_says_when_it_is_stopped_is_no_cause(world, is_asked):
    """k3s v1.21.2 ends with status 1 where systemctl stops it."""
    stopping = [systemd("Stopping k3s.service - Lightweight Kubernetes...")] * is_asked
    lines = [*AGAIN, HARMLESS, *stopping, entry(FLANNEL), *ended(1)]
    _verdicts, (found,) = judged(world, K3S_FAILED, lines)
    assert found.code == "KM502"
    assert ("systemctl stop" in found.summary) is is_asked
    assert ("flannel exited" in found.summary) is not is_asked


def test_the_next_start_that_has_only_begun_hides_no_cause(world):
    begun = [
        *AGAIN,
        entry("modprobe: FATAL: Module overlay not found in directory /lib/modules/6.1").replace(
            "kubelet[", "modprobe["
        ),
    ]
    lines = [*dead(failed("unknown flag: --no-such-flag"), 1), *begun]
    _verdicts, findings = judged(world, {**LOOPS, "exec_main_status": 1}, lines)
    assert [item.code for item in findings] == ["KM505"]


@pytest.mark.parametrize(
    "before",
    [
        # what every agent of k3s in a container logs, and goes on
        'level=error msg="Failed to set sysctl: open {}: permission denied"',
        'level=warning msg="ipset unavailable: Ipset utility not found"',
    ],
)
def test_a_line_that_ends_nothing_is_no_cause(world, before):
    path = "/proc/sys/net/netfilter/nf_conntrack_max"
    line = entry(f'time="2026-11-29T13:54:51Z" {before.format(path)}')
    _verdicts, findings = judged(
        world,
        {**LOOPS, "exec_main_status": 1},
        [
            *AGAIN,
            line,
            entry('time="2026-11-29T13:54:52Z" level=info msg=on'),
            entry("bye"),
            *ended(1),
        ],
    )
    assert findings
    assert not any("Known cause" in item.summary for item in findings)


def test_a_kubelet_that_panics_is_told_with_its_functions(world):
    frame = entry("example.org/x/store.(*Tree).Get(0xc000316680, 0x1a310c0)")
    lines = [*AGAIN, entry("fatal error: concurrent map writes"), frame, *ended(2)]
    _verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": 2}, lines)
    assert "concurrent map writes" in found.summary
    assert ", in store.(*Tree).Get" in found.summary


def test_what_k3s_says_once_it_is_stopped_is_no_known_message_of_its_runtime(world):
    said = 'time="2026-11-29T13:56:36Z" level=error msg="containerd exited: signal: terminated"'
    stopping = systemd("Stopping k3s.service - Lightweight Kubernetes...")
    _verdicts, findings = judged(
        world, K3S_FAILED, [*AGAIN, HARMLESS, stopping, entry(said, "k3s"), *ended(1)]
    )
    assert not any("Known cause" in item.summary for item in findings)


@pytest.mark.parametrize(
    ("text", "because"), [(NONE_STATE, ("KM301",)), (None, ()), ("", ("KM303",))]
)
def test_a_death_of_a_state_file_is_explained_by_what_is_wrong_with_it(world, text, because):
    managed = type("Worker", (managed_node.Node,), {"healthy": world.documents["w1"]})(text)
    world.documents["w1"] = managed.document
    words = f'"Failed to start ContainerManager" err="start cpu manager error: {CPU_STATE}"'
    _verdicts, (found,) = judged(world, {**LOOPS, "exec_main_status": 1}, dead(klog(words), 1))
    assert (found.code, found.because) == ("KM502", because)


K3S_LOOPS = {**LOOPS, "name": "k3s.service", "exec_main_status": 1}
EXITED = 'time="2026-11-29T13:56:36Z" level=fatal msg="containerd exited: exit status 1"'


@pytest.mark.parametrize("has_file", [True, False])
def test_the_end_of_the_containerd_within_k3s_has_its_own_reason(world, has_file):
    """Not what k3s said before it."""
    before = entry(
        'time="2026-11-29T13:56:35Z" level=error msg="modprobe: FATAL: Module overlay'
        ' not found in directory /lib/modules/6.1"',
        "k3s",
    )
    lines = [*AGAIN, before, entry(EXITED, "k3s"), *ended(1, unit="k3s.service")]
    judged(world, K3S_LOOPS, lines)
    said = 'time="2026-11-29T13:56:36Z" level=fatal msg="containerd: {}"'
    reason = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml: toml: expected equal sign"
    told = {"path": "/x/containerd.log", "error": None, "lines": [said.format(reason)]}
    end = world.data("w1", "kubelet_end")
    end.update(unit="k3s.service", runtime_file=told if has_file else None)
    (found,) = [row for row in world.judge(faults=CODES).findings if row.host == "w1"]
    assert "Module overlay" not in found.summary
    assert ("expected equal sign" in found.summary) is has_file
