# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exit cause of a kubelet: its last log lines in every generation, lines like them, its unit."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.text import without_middle
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    systemd_unit as unit_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet_end,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    exit_cause,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import systemd_unit
from tests.messages import judge, plausible, tables
from tests.unit.support.fake_kubelet_messages import (
    AGAIN,
    CASES,
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

Death = exit_cause.Death


def death(lines, facts):
    """Return the exit cause by these lines and the evidence of the unit, as both are decoded."""
    end = decode(kubelet_end.KubeletEnd, {"lines": lines}).answer
    unit = decode(unit_answer.Unit, facts).answer
    return exit_cause.death(end.lines, systemd_unit.unit(unit))


PROFILE = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=list(HealthCheck),
)


def of(line, status, **facts):
    """Return the exit cause by this last line, of a process that ended with this status."""
    return death(
        [*AGAIN, HARMLESS, line, *ended(status)], {**FAILED, "exec_main_status": status, **facts}
    )


@pytest.mark.parametrize(
    ("line", "status", "cause", "what"),
    CASES,
    ids=lambda value: value[-60:] if isinstance(value, str) else str(value),
)
def test_last_words(line, status, cause, what):
    found = of(line, status)
    assert (found.cause, found.what, found.certain) == (cause, what, cause != "unknown")
    assert found.line == without_middle(line.replace("\t", " ").strip(), 400)


@pytest.mark.parametrize(("cause", "pattern"), [one[:2] for one in exit_cause._TEXTS])
def test_every_text_has_a_case_that_it_decides(cause, pattern, monkeypatch):
    monkeypatch.setattr(
        exit_cause, "_TEXTS", [one for one in exit_cause._TEXTS if one[1] is not pattern]
    )
    assert any(
        (of(line, status).cause, of(line, status).what) != (known, what)
        for line, status, known, what in CASES
    )


# -- words that stand in harmless lines too
# ------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        # OpenShift warns of gates that are its own
        klog("unrecognized feature gate: GCPLabelsTags", "W", "feature_gate.go:330"),
        klog(
            '"Failed to start healthz server" err="listen tcp 127.0.0.1:10248: bind: address'
            ' already in use"',
            file="server.go:825",
        ),
        klog(
            '"Failed to watch CA file, will retry later" err="error creating fsnotify watcher: too'
            ' many open files"',
            file="dynamic_cafile_content.go:166",
        ),
        klog(
            'Unable to read config path "/etc/kubernetes/manifests": unable to create inotify:'
            " inotify_init: too many open files",
            file="file.go:108",
        ),
        klog(
            '"Failed to set rlimit on max file handles" err="operation not permitted"',
            file="server.go:1100",
        ),
        klog(
            '"Invalid kernel flag" flag="vm/overcommit_memory" expectedValue=1 actualValue=0',
            "I",
            "container_manager_linux.go:434",
        ),
        klog(
            "using lenient decoding as strict decoding failed: strict decoder error for apiVersion:"
            " kubelet.config.k8s.io/v1beta1",
            "W",
            "codec.go:118",
        ),
        klog(
            '"Continue after failing to read checkpoint file. Device allocation info may NOT be'
            ' up-to-date" err="checkpoint is corrupted"',
            file="manager.go:293",
        ),
        klog(
            '"Version from runtime service failed" err="rpc error: code = Unavailable desc ='
            ' connection error: desc = \\"transport: x\\""',
            file="remote.go:1",
        ),
        klog('"Swap is on" /proc/swaps contents=<', "I", "swap_util.go:115"),
        klog(
            '"Unhandled Error" err="failed to run Kubelet: running with swap on is not supported"'
        ),
        klog('"command failed" err="unknown flag: --x"', "I"),
        # rke2 starts it again itself
        entry(
            'time="2026-11-22T18:31:29Z" level=error msg="Kubelet exited: exit status 1"', "rke2"
        ),
        entry("Flag --container-runtime has been deprecated, unknown flag: --x"),
    ],
)
def test_a_harmless_line_is_no_last_word(line):
    found = of(line, 1)
    assert (found.cause, found.what, found.certain) == ("unknown", "status 1", False)


# -- who names pods
# ------------------------------------------------------------

FAKES = [
    "running with swap on is not supported",
    "unknown flag: --x",
    ": unknown flag: --x",
    "[invalid kernel flag: a, expected value: 1, actual value: 0",
    "x, unable to load bootstrap kubeconfig: y",
    "unrecognized feature gate: X",
    "invalid character '\"' unknown flag: --x",
    '": unknown flag: --x',
    '\\": unknown flag: --x',
    '\\\\", unknown flag: --x',
]


def quoted(text):
    """Return a text as Go's %q writes it, and klog the values of its fields."""
    return json.dumps(text, ensure_ascii=False)


SENTENCES = [
    "failed to run Kubelet: something about pod {0} and {0}",
    "something new: {0}",
    'pod "a": container {0}: no',
]


@pytest.mark.parametrize("fake", FAKES)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_quoted_words_are_no_cause(sentence, fake):
    text = sentence.format(quoted(fake))
    for line, status in (
        (klog(f'"command failed" err={quoted(text)}'), 1),
        (fatal(text), 255),
        (entry("panic: " + text), 2),
    ):
        assert of(line, status).cause == "unknown"
    assert of(klog(f'"command failed" err="no" pod={quoted(fake)}'), 1).cause == "unknown"


def test_a_quote_that_is_not_closed_hides_the_rest():
    assert of(fatal('pod "x, unknown flag: --x'), 255).cause == "unknown"


@PROFILE
@given(
    st.text(alphabet=st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp")), max_size=40),
    st.sampled_from(FAKES),
    st.sampled_from(SENTENCES),
)
def test_no_name_within_quotes_is_a_cause(name, fake, sentence):
    text = sentence.format(quoted(name + fake + name))
    assert (
        of(klog(f'"command failed" err={quoted(text)} pod={quoted(name + fake)}'), 1).cause
        == "unknown"
    )
    assert of(fatal(text), 255).cause == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        # a value of several lines, as klog indents it
        "\tF1122 18:31:29.346075   20288 server.go:274] unknown flag: --x",
        "x F1122 18:31:29.346075   20288 server.go:274] unknown flag: --x",
        ' E1122 18:31:29.346075   20288 run.go:72] "command failed" err="unknown flag: --x"',
        "Readiness probe failed: Error: unknown flag: --x",
        " panic: unknown flag: --x",
    ],
)
def test_a_form_counts_at_the_beginning_of_a_line_alone(text):
    assert of(entry(text), 255).cause == "unknown"


@pytest.mark.parametrize(
    "line",
    [
        klog("unknown flag: --x", "F", header=1),
        klog('"command failed" err="unknown flag: --x"', header=PID + 1),
        entry(
            '{"ts":1655581354264.5,"caller":"cli/run.go:72","msg":"command failed","err":"unknown'
            ' flag: --x"}'
        ),
    ],
)
def test_a_line_that_another_may_have_written_is_not_certain(line):
    found = of(line, 255 if "] unknown" in line else 1)
    assert (found.cause, found.certain) == ("unknown_flag", False)


def test_the_true_last_word_beats_one_that_a_probe_printed():
    found = of(entry("Error: unknown flag: --fake"), 1)
    assert found.cause == "unknown_flag"  # nothing tells them apart where there is no other
    lines = [
        *AGAIN,
        entry("Error: unknown flag: --fake"),
        failed("failed to run Kubelet: something new"),
        *ended(1),
    ]
    assert death(lines, {**FAILED, "exec_main_status": 1}).cause == "unknown"
    assert (
        death(
            [*AGAIN, entry("Error: unknown flag: --fake"), *[HARMLESS] * 30, *ended(1)],
            {**FAILED, "exec_main_status": 1},
        ).certain
        is False
    )


def test_a_line_without_the_journals_prefix_says_nothing():
    lines = [
        *AGAIN,
        HARMLESS,
        "F1122 18:31:29.346075   20288 server.go:274] unknown flag: --x",
        "    kubelet[20288]: Error: unknown flag: --x",
        *ended(255),
    ]
    assert death(lines, {**FAILED, "exec_main_status": 255}).cause == "unknown"
    assert (
        death(
            [
                *AGAIN,
                HARMLESS,
                entry("kubelet.service: Main process exited, code=exited, status=205/LIMITS"),
                *ended(255),
            ],
            {**FAILED, "exec_main_status": 255},
        ).cause
        == "unknown"
    )


# -- what the unit says
# ------------------------------------------------------------


@pytest.mark.parametrize(
    "facts",
    [
        {"exec_main_status": 2},
        {"exec_main_status": None},
        {"exec_main_status": "1"},
        {"result": "signal"},
        {"result": "success"},
        {"result": ["exit-code"]},
    ],
)
def test_certain_only_where_the_unit_agrees(facts):
    line = failed("unknown flag: --x")
    assert of(line, 1).certain is True
    assert (of(line, 1, **facts).cause, of(line, 1, **facts).certain) == ("unknown_flag", False)


def test_certain_only_where_the_process_ended_as_such_a_line_does():
    facts = {**FAILED, "exec_main_status": 1}
    # nobody saw its end
    assert death([*AGAIN, failed("unknown flag: --x")], facts).certain is False
    assert death([*AGAIN, failed("unknown flag: --x"), *ended(255)], facts).certain is False
    assert (
        death(
            [
                *AGAIN,
                failed("unknown flag: --x"),
                systemd("kubelet.service: Main process exited, code=killed, status=1/HUP"),
            ],
            facts,
        ).certain
        is False
    )
    assert death([*AGAIN, failed("unknown flag: --x"), *ended(1)], None).certain is False


@pytest.mark.parametrize("result", ["start-limit-hit", "start-limit"])
def test_given_up_is_as_good_as_waiting(result):
    assert (
        of(
            failed("unknown flag: --x"), 1, active_state="failed", sub_state="failed", result=result
        ).certain
        is True
    )


def test_red_hat_7_writes_the_end_before_the_last_words():
    lines = [  # kubernetes/kubelet#9, minikube#11966: systemd 219, klog of 1.18
        systemd("kubelet.service holdoff time over, scheduling restart."),
        systemd("Started kubelet: The Kubernetes Node Agent."),
        HARMLESS,
        systemd("kubelet.service: main process exited, code=exited, status=255/n/a"),
        fatal(
            'failed to run Kubelet: misconfiguration: kubelet cgroup driver: "cgroupfs" is'
            ' different from docker cgroup driver: "systemd"'
        ),
        systemd("Unit kubelet.service entered failed state."),
        systemd("kubelet.service failed."),
    ]
    found = death(lines, {**FAILED, "exec_main_status": 255, "n_restarts": None})
    assert (found.cause, found.certain) == ("cgroup_driver", True)


def test_limits_and_a_missing_program_are_systemds_own():
    # k/k#87004: Debian 10, in this order
    lines = [
        *AGAIN,
        systemd("kubelet.service: Main process exited, code=exited, status=205/LIMITS"),
        entry(
            "kubelet.service: Failed at step LIMITS spawning /usr/bin/kubelet: Operation not"
            " permitted",
            "systemd",
            55638,
        ),
        entry(
            "kubelet.service: Failed to adjust resource limit RLIMIT_NOFILE: Operation not"
            " permitted",
            "systemd",
            55638,
        ),
    ]
    found = death(lines, {**FAILED, "exec_main_status": 205})
    assert (found.cause, found.certain) == ("limits", True)
    assert "RLIMIT_NOFILE" not in found.line
    assert "step LIMITS" in found.line
    assert death([], {**FAILED, "exec_main_status": 205}) == Death("limits", certain=True)
    lines = [
        *AGAIN,
        entry(
            "kubelet.service: Failed at step EXEC spawning /usr/bin/kubelet: Permission denied",
            "(kubelet)",
        ),
        *ended(203, "EXEC"),
    ]
    assert (
        death(lines, {**FAILED, "exec_main_status": 203}).cause,
        death(lines, {**FAILED, "exec_main_status": 1}).certain,
    ) == ("executable", False)


def test_out_of_memory():
    lines = [
        *AGAIN,
        HARMLESS,
        systemd("kubelet.service: A process of this unit has been killed by the OOM killer."),
        systemd("kubelet.service: Main process exited, code=killed, status=9/KILL"),
        systemd("kubelet.service: Failed with result 'oom-kill'."),
    ]
    assert death(lines, {**FAILED, "result": "oom-kill", "exec_main_status": 9}).certain is True
    assert (death(lines, FAILED).cause, death(lines, FAILED).certain) == ("oom_kill", False)
    lines[-1] = systemd("kubelet.service: Failed with result 'signal'.")
    assert death(lines, {**FAILED, "result": "signal"}).what == "signal 9"


# -- what the table of messages tells
# ------------------------------------------------------------

CONFIGURATION = [
    row
    for row in tables.forms("kubelet")
    if row.meaning == "configuration"
    and row.last.startswith("1.3")
    # Of a file the place and the field are named instead, of a cgroup the one around the error.
    and "node_container_manager" not in row.place
    and row.key not in {"", "config", "config-dir"}
]
OWN_CAUSES = ("bad_configuration", "unknown_flag", "removed_gate")


def test_each_form_of_a_configuration_names_its_key():
    wrong = []
    for row in CONFIGURATION:
        line, status = judge._new(row, plausible.filled(row))
        found = of(entry(line.replace("   4242 ", f"   {PID} ")), status)
        # measured texts say it in their own way; a path with a verb has the field's name
        is_named = not found.message or "%v" in row.key or set(found.keys) & set(row.key.split())
        if found.cause not in OWN_CAUSES or not found.certain or not is_named:
            wrong.append((row.form, row.key, found))
    assert CONFIGURATION
    assert not wrong


@pytest.mark.parametrize(
    ("error", "cause", "keys"),
    [
        (
            "start cpu manager error: [cpumanager] unable to determine reserved CPU resources for"
            " static policy",
            "bad_configuration",
            ("kubeReserved", "systemReserved", "reservedSystemCPUs"),
        ),
        (
            "start cpu manager error: SMT Alignment Error: requested 3 cpus not multiple cpus per"
            " core = 2",
            "shortage",
            (),
        ),
        ("start cpu manager error: could not detect number of cpus", "device", ()),
        ("start cpu manager error: checkpoint is corrupted", "cpu_manager_state", ()),
        ("start memory manager error: checkpoint is corrupted", "memory_manager_state", ()),
        ("start memory manager error: something new", "unknown", ()),
        (
            "start cpu manager error: mkdir /var/lib/kubelet/x: no space left on device",
            "disk_full",
            (),
        ),
        ("validate service connection: something new", "unknown", ()),
        (
            "The currently active client certificate has expired and the server is responsive,"
            " exiting.",
            "client_certificate",
            (),
        ),
        (
            "unable to load client CA file /a/ca.crt: open /a/ca.crt: permission denied",
            "credential",
            (),
        ),
        ("failed to initialize kubelet client: x", "api", ()),
        ("component not registered: kube", "defect", ()),
        ("checkpoint is not found", "state", ()),
    ],
)
def test_what_stands_inside_decides(error, cause, keys):
    found = of(klog(f'"Failed to start ContainerManager" err="{error}"'), 1)
    assert (found.cause, found.keys, found.certain) == (cause, keys, cause != "unknown")
    assert found.final


def test_the_error_at_the_end_of_a_long_message_is_shown():
    name = "a" * 200
    found = of(
        failed(
            f"failed to run Kubelet: unable to load client CA file /{name}:"
            " x509: malformed extension"
        ),
        1,
    )
    assert found.cause == "credential"
    assert found.what.startswith("unable to load client CA file /aaa")
    assert found.what.endswith(": x509: malformed extension")
    assert len(found.what) <= 200


def test_an_end_of_which_the_line_is_not_known_is_final_where_the_unit_agrees():
    line = failed("failed to run Kubelet: something new")
    assert (of(line, 1).cause, of(line, 1).final) == ("unknown", True)
    assert of(line, 1, exec_main_status=2).final is False
    assert of(HARMLESS, 1).final is False


def test_two_ends_with_a_line_that_is_not_known_are_final():
    lines = [*AGAIN, failed("something new"), *ended(1)]
    lines += [line.replace(str(PID), "777") for line in lines]
    facts = decode(unit_answer.Unit, {**FAILED, "exec_main_status": 0}).answer
    unit = systemd_unit.unit(facts)
    found = exit_cause.repeated(lines, unit)
    assert found is not None
    assert (found.cause, found.final, found.certain) == ("unknown", True, False)


# -- which start
# ------------------------------------------------------------


def test_the_newest_start_decides():
    older = [fatal("unknown flag: --old"), *ended(255)]
    newer = [failed("unknown flag: --new").replace(str(PID), "777"), *ended(1)]
    facts = {**FAILED, "exec_main_status": 1}
    assert death([*older, *AGAIN, *newer], facts).what == "--new"
    assert (
        death([*older, *AGAIN, HARMLESS.replace(str(PID), "777"), *ended(1)], facts).cause
        == "unknown"
    )
    assert (
        death(
            [*older, "-- Boot 0123456789abcdef0123456789abcdef --", HARMLESS, *ended(1)], facts
        ).cause
        == "unknown"
    )


RUNS = {
    **FAILED,
    "active_state": "active",
    "sub_state": "running",
    "result": "success",
    "exec_main_status": 0,
}
ALIVE = klog('"Started kubelet"', "I", "server.go:1213", pid=777, header=777)


def test_while_a_newer_process_runs_nothing_is_certain():
    lines = [fatal("unknown flag: --x"), *ended(255), *AGAIN, ALIVE]
    assert death(lines, {**RUNS, "n_restarts": 0}) is None  # somebody started it by hand meanwhile
    assert [death(lines, {**RUNS, "n_restarts": count}).certain for count in (1, None)] == [
        False,
        False,
    ]
    assert death(lines[:-1], {**RUNS, "n_restarts": 4}).cause == "unknown_flag"
    assert death([ALIVE], {**RUNS, "n_restarts": 4}) is None
    assert death([], RUNS) is None


def test_what_was_stopped_did_not_die():
    stopped = [
        HARMLESS,
        systemd("Stopping kubelet: The Kubernetes Node Agent..."),
        systemd("kubelet.service: Succeeded."),
    ]
    facts = {
        **FAILED,
        "active_state": "inactive",
        "sub_state": "dead",
        "result": "success",
        "exec_main_status": 0,
    }
    assert death(stopped, facts) is None
    assert death([fatal("unknown flag: --x"), *ended(255)], facts) is None


def test_the_date_of_the_certificate():
    last = fatal(
        "failed to run Kubelet: unable to load bootstrap kubeconfig: stat"
        " /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory"
    )
    old = klog(
        "part of the existing bootstrap client certificate is expired: 2020-12-06 18:55:55"
        " +0000 UTC",
        file="bootstrap.go:265",
    )
    new = klog(
        '"Unhandled Error" err="part of the existing bootstrap client certificate in'
        ' /etc/kubernetes/kubelet.conf is expired: 2026-01-02 03:04:05 +0000 UTC"',
        file="bootstrap.go:241",
    )
    facts = {**FAILED, "exec_main_status": 255}
    assert death([old, last, *ended(255)], facts).what == "expired 2020-12-06 18:55:55 +0000"
    assert (
        death([new, last, *ended(255)], facts).what
        == "/etc/kubernetes/kubelet.conf: expired 2026-01-02 03:04:05 +0000"
    )


@pytest.mark.parametrize(
    "line",
    [
        klog(
            r'"Unable to register node with API server" err="nodes \"new\" is forbidden: node'
            r' \"old\" is not allowed to modify node \"new\"" node="new"',
            file="kubelet_node_status.go:95",
        ),
        klog(
            'Unable to register node "new" with API server: nodes "new" is forbidden: node "old"'
            ' cannot modify node "new"',
            file="kubelet_node_status.go:106",
        ),
    ],
)
def test_a_node_of_another_name_lives_and_never_registers(line):
    found = death([*AGAIN, line, HARMLESS], RUNS)
    assert (found.cause, found.what, found.certain) == (
        "node_name",
        "certificate of old, node new",
        False,
    )
    assert (
        death(
            [
                *AGAIN,
                line,
                klog('"Successfully registered node" node="new"', "I", "kubelet_node_status.go:75"),
            ],
            {**RUNS, "n_restarts": 0},
        )
        is None
    )
    assert (
        death(
            [*AGAIN, klog(r'"Unable to register node with API server" err="connection refused"')],
            RUNS,
        )
        is None
    )


def test_a_wrapper_and_its_children_are_one_start():
    # microk8s#2211
    lines = [
        systemd("Started Service for snap application microk8s.daemon-kubelite."),
        entry("+ ARCH=aarch64", "microk8s.daemon-kubelite", 8704),
        entry("++ /snap/microk8s/2129/bin/uname -m", "microk8s.daemon-kubelite", 8720),
        entry(
            'E1122 18:31:29.8   8704 kubelet.go:1423] "Failed to start ContainerManager" err="start'
            ' cpu manager error: checkpoint is corrupted"',
            "microk8s.daemon-kubelite",
            8704,
        ),
        *ended(1, unit="snap.microk8s.daemon-kubelite.service"),
    ]
    found = death(
        lines, {**FAILED, "name": "snap.microk8s.daemon-kubelite.service", "exec_main_status": 1}
    )
    assert (found.cause, found.certain) == ("cpu_manager_state", True)


def test_a_value_of_several_lines():
    lines = [
        *AGAIN,
        klog('"command failed" err=<'),
        entry(
            "\tfailed to load kubelet config file, path: /etc/k.yaml, error: failed to decode:"
            " yaml: line 4: x"
        ),
        entry("\t  second"),
        entry(" >"),
        *ended(1),
    ]
    found = death(lines, {**FAILED, "exec_main_status": 1})
    assert (found.cause, found.what, found.certain) == (
        "bad_configuration",
        "/etc/k.yaml: line 4",
        True,
    )


# -- whatever a node sends
# ------------------------------------------------------------

ANY = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.lists(st.integers(), max_size=3)
)
LINES = st.lists(
    st.one_of(
        ANY,
        st.builds(entry, st.text(max_size=80)),
        st.builds(failed, st.text(max_size=80)),
        st.builds(fatal, st.text(max_size=80)),
        st.builds(systemd, st.text(max_size=60)),
        st.sampled_from([*AGAIN, *ended(1), *ended(205), HARMLESS, *(case[0] for case in CASES)]),
    ),
    max_size=12,
)


@PROFILE
@given(
    LINES | ANY,
    st.dictionaries(
        st.sampled_from([*FAILED, "exec_main_status", "n_restarts", "main_pid"]),
        ANY | st.sampled_from(["active", "exit-code", "oom-kill", "failed", 205]),
    )
    | ANY,
)
def test_nothing_makes_it_raise(lines, facts):
    found = death(lines, facts)
    assert found is None or (
        found.what.isprintable()
        and found.line.isprintable()
        and len(found.what) <= 200
        and len(found.line) <= 400
    )
    assert found is None or not found.certain or (isinstance(facts, dict) and facts.get("result"))


@pytest.mark.parametrize(
    "text",
    [
        '"' * 40000,
        '\\"' * 20000,
        'a="\\"' * 10000,
        "[" * 40000,
        ": unknown flag: " * 3000,
        "invalid kernel flag: " * 2000,
    ],
)
def test_hostile_lines_take_no_time(text):
    begin = time.process_time()
    for line in (
        failed(text),
        fatal(text),
        entry(text),
        klog(f'"Unable to register node" err="{text}"'),
        entry('{"msg":"command failed","err":' + text),
    ):
        death([line] * 200 + ended(1), {**FAILED, "exec_main_status": 1})
    assert time.process_time() - begin < 10


@pytest.mark.parametrize(
    ("text", "cause", "what"),
    [
        (
            "starting kubernetes: preparing server: bootstrap data already found and encrypted with"
            " different token",
            exit_cause.SUPERVISOR,
            "bootstrap data already found",
        ),
        # of its API server, and not of the kubelet
        (
            "apiserver exited: unknown flag: --insecure-port",
            exit_cause.SUPERVISOR,
            "--insecure-port",
        ),
        # of its kubelet
        ("kubelet exited: unknown flag: --cni-bin-dir", exit_cause.UNKNOWN_FLAG, "--cni-bin-dir"),
        ("failed to find memory cgroup (v2)", exit_cause.CGROUP, "memory cgroup"),
        (
            "Failed to reconcile with temporary etcd: walpb: crc mismatch",
            exit_cause.STATE,
            "crc mismatch",
        ),
        (
            "starting kubernetes: preparing server: start managed database: listen tcp :2380: bind:"
            " address already in use",
            exit_cause.PORT_IN_USE,
            ":2380",
        ),
        ("starting kubernetes: preparing server: what nobody knows", exit_cause.UNKNOWN, ""),
    ],
)
def test_last_words_of_k3s(text, cause, what):
    line = entry(f'time="2022-09-05T23:36:37Z" level=fatal msg="{text}"')
    found = of(line, 1)
    assert found.cause == cause
    assert what in found.what
    assert found.certain is (cause != exit_cause.UNKNOWN)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (
            "starting kubernetes: preparing server: https://10.0.0.1:6443/v1-k3s/server-bootstrap:"
            " 401 Unauthorized",
            "supervisor",
        ),
        ("starting: https://10.0.0.1:9345/v1-rke2/config: 403 Forbidden", "supervisor"),
        ("starting: https://10.0.0.1:6443/v1-k3s/config: 503 Service Unavailable", "unknown"),
    ],
)
def test_a_server_of_k3s_that_refuses_the_token(message, cause):
    stamp = "2026-11-22T18:31:29+0000 w1 "
    lines = [
        f'{stamp}k3s[7]: time="2026-11-22T18:31:29Z" level=fatal msg="{message}"',
        f"{stamp}systemd[1]: k3s.service: Main process exited, code=exited, status=1/FAILURE",
    ]
    unit = systemd_unit.Unit(
        name="k3s.service",
        active="activating",
        sub="auto-restart",
        result="exit-code",
        status=1,
    )
    found = exit_cause.death(lines, unit)
    assert found is not None
    assert found.cause == cause
    assert ("token" in found.keys) is (cause == "supervisor")


TOO_LONG = "starting: preparing server: joining etcd cluster: context deadline exceeded"


@pytest.mark.parametrize(
    ("last", "before", "cause", "what"),
    [
        (TOO_LONG, "dial tcp 10.0.0.1:2379: i/o timeout", "network", "10.0.0.1:2379: i/o timeout"),
        (
            TOO_LONG,
            "dial tcp [fd00::1]:2379: connect: no route to host",
            "network",
            "[fd00::1]:2379: connect: no route to host",
        ),
        (TOO_LONG, "dial tcp 127.0.0.1:6443: connect: connection refused", "unknown", ""),
        (TOO_LONG, "nothing of an address", "unknown", ""),
        # a container and an image of pods, for which the program does not wait
        (
            TOO_LONG,
            "Probe failed: dial tcp 10.42.0.7:80: connect: connection refused",
            "unknown",
            "",
        ),
        (TOO_LONG, "Failed to pull image: dial tcp 10.0.0.9:443: i/o timeout", "unknown", ""),
        ("starting: something else", "dial tcp 10.0.0.1:2379: i/o timeout", "unknown", ""),
    ],
)
def test_the_address_that_a_server_of_rke2_waited_for(last, before, cause, what):
    stamp = "2026-11-22T18:31:29+0000 w1 "
    warning = f'{{"level":"warn","error":"rpc error: desc = \\"{before}\\""}}'
    lines = [
        f"{stamp}rke2[7]: {warning}",
        f'{stamp}rke2[7]: time="2026-11-22T18:31:29Z" level=fatal msg="{last}"',
        f"{stamp}systemd[1]: rke2-server.service: Main process exited, code=exited,"
        " status=1/FAILURE",
    ]
    unit = systemd_unit.Unit(
        name="rke2-server.service",
        active="activating",
        sub="auto-restart",
        result="exit-code",
        status=1,
    )
    found = exit_cause.death(lines, unit)
    assert found is not None
    assert (found.cause, found.what) == (cause, what)
    assert (before in found.line) is (cause == "network")


@pytest.mark.parametrize(
    ("before", "cause", "what"),
    [
        (
            'Failed to update stats for container "/": openat2 /sys/fs/cgroup/memory/memory.kmem'
            ".limit_in_bytes: no such file or directory, continuing to push stats",
            exit_cause.KERNEL_FILE,
            "/sys/fs/cgroup/memory/memory.kmem.limit_in_bytes",
        ),
        (
            'Failed to update stats for container "/": failure - cpuacct.stat is expected to have 4'
            " fields, continuing to push stats",
            exit_cause.CGROUP,
            "failure - cpuacct.stat is expected to have 4 fields",
        ),
        # of another cgroup it is no reason
        (
            'Failed to update stats for container "/system.slice/a.service": openat2'
            " /sys/fs/cgroup/memory/a: no such file or directory, continuing to push stats",
            exit_cause.UNKNOWN,
            "",
        ),
    ],
)
def test_why_there_are_no_stats_of_the_machine(before, cause, what):
    said = '"Failed to start ContainerManager" err="failed to get rootfs info: unable to find data'
    lines = [
        entry(f"W0923 03:35:02.498731    {PID} container.go:586] {before}"),
        entry(f'E0923 03:35:02.612497    {PID} kubelet.go:1480] {said} in memory cache"'),
        *ended(1),
    ]
    found = death(lines, {**FAILED, "exec_main_status": 1})
    assert (found.cause, found.what) == (cause, what)


YAML = "error converting YAML to JSON: yaml: line 2: mapping values are not allowed in this context"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"API Server exited open cluster.yaml node store: {YAML}", exit_cause.UNKNOWN),
        ("API Server exited unknown flag: --x", exit_cause.UNKNOWN),
        ("Controller Manager exited unknown flag: --x", exit_cause.UNKNOWN),
        ("Kubelet exited failed to parse kubelet flag: unknown flag: --x", exit_cause.UNKNOWN_FLAG),
        # what any component may find on the machine stays what it is
        ("API Server exited open /x/y: no space left on device", exit_cause.DISK),
    ],
)
def test_what_another_component_of_the_process_refuses_is_not_the_kubelet_s(text, cause):
    found = of(fatal(text), 255)
    assert found.cause == cause
    assert found.final
    assert text[:20] in found.line


KUBELITE = "snap.microk8s.daemon-kubelite.service"


def of_kubelite(text: str):
    lines = [
        systemd("Started Service for snap application microk8s.daemon-kubelite."),
        entry(f"F1122 18:31:29.8   8704 daemon.go:67] {text}", "microk8s.daemon-kubelite", 8704),
        *ended(255, unit=KUBELITE),
    ]
    return death(lines, {**FAILED, "name": KUBELITE, "exec_main_status": 255})


@pytest.mark.parametrize(
    ("text", "component", "message"),
    [
        # microk8s#2837, microk8s#121
        (
            "API Server exited invalid port value 8080: only zero is allowed",
            "kube-apiserver",
            "inv",
        ),
        (
            'API Server exited unable to load client CA file "/a.crt": open /a.crt: no such file or'
            " directory",
            "kube-apiserver",
            'unable to load client CA file "/a.crt": ',
        ),
        ("Scheduler exited unknown words", "kube-scheduler", "unknown words"),
        ("Controller Manager exited x", "kube-controller-manager", "x"),
        ("Proxy exited x", "kube-proxy", "x"),
    ],
)
def test_another_component_within_kubelite_is_named(text, component, message):
    found = of_kubelite(text)
    assert (found.cause, found.keys, found.final) == (exit_cause.UNKNOWN, (component,), True)
    assert found.message.startswith(message)


def test_the_kubelet_within_kubelite_is_read_as_a_kubelet():
    found = of_kubelite(
        "Kubelet exited failed to run Kubelet: running with swap on is not supported"
    )
    assert found.cause == "swap"


def test_a_word_that_is_no_flag():
    lines = [*AGAIN, klog('"command failed" err="unknown command \\"192.0.2.7\\""'), *ended(1)]
    found = death(lines, {**FAILED, "exec_main_status": 1})
    assert found.cause == "bad_configuration"
    assert found.what == "192.0.2.7"
