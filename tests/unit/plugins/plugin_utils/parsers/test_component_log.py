# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the last log lines tells why a component ended."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import component_log

# apache/cloudstack#9418, tests/cases/002
EXPIRED = (
    "W0719 09:12:44.118219       1 logging.go:59] [core] [Channel #1 SubChannel #2] grpc:"
    ' addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2379", ServerName:'
    ' "127.0.0.1", }. Err: connection error: desc = "transport: authentication handshake failed:'
    " tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current"
    ' time 2024-07-19T09:12:44Z is after 2024-05-26T08:19:00Z"'
)
REFUSED = (
    "W0526 14:05:31.201337       1 clientconn.go:1208] grpc: addrConn.createTransport failed to"
    ' connect to {https://127.0.0.1:2379  <nil> 0 <nil>}. Err :connection error: desc = "transport:'
    ' Error while dialing dial tcp 127.0.0.1:2379: connect: connection refused". Reconnecting...'
)
LEASES = (
    "F0719 09:12:48.021774       1 instance.go:290] Error creating leases: error creating storage"
    " factory: context deadline exceeded"
)
FLAG = "Error: unknown flag: --lock-nmae"
# of a webhook, which does not end the API server
WEBHOOK = (
    "W0719 09:12:44.118219       1 dispatcher.go:142] Failed calling webhook, failing open x:"
    ' failed calling webhook "x": Post "https://a.b.svc:443/m": x509: certificate signed by unknown'
    " authority"
)
TRACE = ["+ grep -Eq :", "+ cat /proc/sys/net/ipv6/conf/all/forwarding", "+ '[' 0 '==' 1 ]"]


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        ([*TRACE, "+ exit 1"], "; ".join([*TRACE[1:], "+ exit 1"])),
        (["begins", "++ cat x", "+ exit 12"], "++ cat x; + exit 12"),
        ([*TRACE, "cannot", "+ exit 1"], "+ exit 1"),
        ([*TRACE, "+ exit 0"], "+ exit 0"),
        (["+ exit 1"], "+ exit 1"),
    ],
)
def test_the_exit_of_a_traced_shell_has_the_commands_before_it(lines: list[str], last: str) -> None:
    found = component_log.entries(lines)
    assert found[-1] == last
    assert "\n".join(found).replace("; ", "\n") == "\n".join(lines)


GATE = "W0719 09:12:44.118219       1 feature_gate.go:1] unrecognized feature gate: Other"
CLIENT = (
    'E0719 09:12:45.000000       1 authentication.go:73] "Unable to authenticate the request"'
    ' err="[x509: certificate has expired or is not yet valid: current time x is after y]"'
)


@pytest.mark.parametrize(
    ("lines", "last", "line", "meaning"),
    [
        ([EXPIRED, LEASES], LEASES, EXPIRED, "credential"),
        ([REFUSED, "Error: context deadline exceeded"], "", REFUSED, "dependency"),
        ([EXPIRED, FLAG], FLAG, FLAG, "configuration"),
        ([CLIENT, LEASES], LEASES, LEASES, "dependency"),
        (["I0719 09:12:44.1 1 a.go:1] x509: x", "panic: boom"], "panic: boom", "panic: boom", None),
        (["panic: boom"], "panic: boom", "panic: boom", None),
        ([WEBHOOK, "panic: boom"], "panic: boom", "panic: boom", None),
        (
            [WEBHOOK, "I0719 09:12:44.1 1 a.go:1] Serving"],
            "",
            "I0719 09:12:44.1 1 a.go:1] Serving",
            None,
        ),
        ([GATE, LEASES], LEASES, LEASES, "dependency"),
        ([], "", "", None),
    ],
)
def test_the_line_that_tells_the_cause(
    lines: list[str], last: str, line: str, meaning: str | None
) -> None:
    last = last or next(reversed(lines), "")
    telling = component_log.telling(lines, last, "kube-apiserver")
    assert telling.line == line
    assert (telling.reading and telling.reading.meaning) == meaning


# rancher/rke2#1874, tests/cases/400: what its end cancels is no reason of that end
REMOVED = (
    '{"level":"warn","ts":"2022-01-31T19:32:29.394Z","msg":"server error","error":"the member has'
    ' been permanently removed from the cluster"}'
)
DATA = '{"level":"warn","msg":"data-dir used by this member must be removed"}'
CANCELLED = (
    '{"level":"warn","caller":"etcdserver/server.go:2068","msg":"failed to publish local member to'
    ' cluster through raft","publish-timeout":"15s","error":"etcdserver: request cancelled"}'
)
CLOSED = (
    'E0719 09:12:49.0 1 a.go:1] "Cannot accept" err="accept tcp [::]:1: use of closed network'
    ' connection"'
)
SIGNAL = '{"level":"info","msg":"received signal; shutting down","signal":"terminated"}'
BROKEN = 'E0719 09:12:48.9 1 a.go:1] "Cannot go on" err="disk is odd"'


@pytest.mark.parametrize(
    ("lines", "line", "meaning"),
    [
        ([REMOVED, DATA, CANCELLED, CANCELLED], REMOVED, "dependency"),
        ([DATA, CANCELLED], DATA, None),
        ([BROKEN, "I0719 09:12:48.9 1 a.go:1] Stopping", CLOSED, CLOSED], BROKEN, None),
        ([EXPIRED, CANCELLED], EXPIRED, "credential"),
        ([BROKEN, SIGNAL, CANCELLED], SIGNAL, None),
        ([CLIENT, CANCELLED], CANCELLED, None),
        ([BROKEN, GATE, CANCELLED], CANCELLED, None),
        ([CANCELLED], CANCELLED, None),
        ([EXPIRED, "Error: context canceled"], EXPIRED, "credential"),
    ],
)
def test_what_an_end_cancels_is_no_reason_of_it(
    lines: list[str], line: str, meaning: str | None
) -> None:
    telling = component_log.telling(lines, component_log.last_word(lines), "etcd")
    assert telling.line == line
    assert (telling.reading and telling.reading.meaning) == meaning


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["Failed to allocate device vector A", "[Vector addition of 50000 elements]"], 0),
        (["error: first", "Cannot open it", "done"], 1),
        (["begins", "done"], 1),
        (["Failed to a", "b: not found"], 1),
        (["Failed to a", "panic: boom"], 1),
        (["I saw no failure to report", "done"], 1),
    ],
)
def test_a_line_without_a_word_of_an_error_does_not_hide_one(lines: list[str], line: int) -> None:
    assert component_log.worded(lines, lines[-1]) == lines[line]
    assert component_log.worded(lines, "") == ""


def test_a_farewell_does_not_hide_the_error_before_what_was_cancelled() -> None:
    lines = [BROKEN, CLOSED, "I0719 09:12:50.0 1 a.go:1] Shutting down"]
    last = component_log.Telling(lines[-1])
    assert component_log.decisive(lines, last, "library").line == BROKEN
    assert component_log.decisive(lines[1:], last, "library").line == CLOSED


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            LEASES,
            "Error creating leases: error creating storage factory: context deadline exceeded",
        ),
        ('E1122 10:00:00.0 1 run.go:72] "command failed" err="a \\"b\\""', 'command failed: a "b"'),
        (FLAG, "unknown flag: --lock-nmae"),
        ("panic: boom", "boom"),
        (
            '{"level":"fatal","caller":"a.go:1","msg":"discovery failed","error":"no space"}',
            "discovery failed: no space",
        ),
        (
            '{"level":"fatal","caller":"a.go:1","msg":"discovery \\"a\\"","error":"no spa',
            'discovery "a": no spa',
        ),
        ('{"level":"fatal","caller":"a.go:1"', ""),
        ("2020-05-26 14:05:31.201337 C | etcdmain: listen tcp: no", "listen tcp: no"),
        (
            'time="2026-11-22T10:00:00Z" level=warning msg="failed to load plugin"'
            ' error="no \\"a\\""',
            'failed to load plugin: no "a"',
        ),
        (
            "2026-11-22T10:00:00+0000 node-1 containerd[700]: containerd: failed to load TOML",
            "containerd: failed to load TOML",
        ),
        ("", ""),
    ],
)
def test_the_text_of_a_line(line: str, text: str) -> None:
    assert component_log.text(line) == text


@pytest.mark.parametrize(
    ("line", "removed"),
    [
        (
            '{"msg":"server error","error":"the member has been permanently removed from the'
            ' cluster"}',
            True,
        ),
        ("I | etcdserver: the data-dir used by this member must be removed", True),
        ('{"msg":"removed member","removed-remote-peer-id":"ab"}', False),  # of one that stays
    ],
)
def test_an_etcd_whose_member_was_removed_says_so(line, removed):
    assert component_log.says_removed(line) is removed


K0S = 'time="2023-10-31 08:00:02" level=info msg="{}" component={} stream=stderr'


@pytest.mark.parametrize(
    ("component", "message", "text", "meaning"),
    [
        (
            "kube-apiserver",
            r"E1031 08:00:02.1 77 run.go:72] \"command failed\" err=\"unknown flag: --no-such\"",
            "command failed: unknown flag: --no-such",
            "configuration",
        ),
        (
            "etcd",
            r"{\"level\":\"fatal\",\"msg\":\"discovery failed\",\"error\":\"--initial-cluster has"
            r" a but missing from --initial-advertise-peer-urls=b (c)\"}",
            "discovery failed: --initial-cluster has a but missing from"
            " --initial-advertise-peer-urls=b (c)",
            "configuration",
        ),
        ("konnectivity", "something", "something", None),
    ],
)
def test_a_line_of_k0s_is_read_by_the_table_of_its_component(component, message, text, meaning):
    line = K0S.format(message, component)
    assert component_log.text(line) == text
    reading = component_log.reading(line, "kubelet")
    assert (reading and reading.meaning) == meaning


def test_a_user_s_text_names_no_component():
    line = 'time="2023-10-31 08:00:02" level=error msg="pod component=etcd failed: x" error=y'
    assert component_log.text(line) == "pod component=etcd failed: x: y"
    quoted = 'time="x1" level=error msg="a component=etcd unknown flag: --x"'
    assert component_log.reading(quoted, "k3s") == component_log.reading(
        quoted.replace("component=etcd", "component=none"), "k3s"
    )


HEAD = 'E1217 15:38:01.212635       1 proxier.go:1432] "Failed to execute iptables-restore" err='


@pytest.mark.parametrize(
    ("lines", "entries"),
    [
        (
            [f"{HEAD}<", "\texit status 2: v1.8.9", '\tunknown option "--x"', " >", "bye"],
            [f'{HEAD}"exit status 2: v1.8.9 unknown option \\"--x\\""', "bye"],
        ),
        # the line before it is not there any more
        (["\tunknown option", " >", "bye"], ["\tunknown option", "bye"]),
        # it is not closed
        ([f"{HEAD}<", "\tone", f'{HEAD}"two"'], [f'{HEAD}"one"', f'{HEAD}"two"']),
        ([f'{HEAD}"a=<b"', ">"], [f'{HEAD}"a=<b"']),
        ([f"{HEAD}<"], [f"{HEAD}<"]),
        ([], []),
    ],
    ids=["whole", "without its head", "not closed", "quoted", "head alone", "nothing"],
)
def test_a_value_of_several_lines_is_one_entry(lines, entries):
    assert component_log.entries(lines) == entries


def test_a_value_of_several_lines_is_bounded():
    found = component_log.entries([f"{HEAD}<", *["\tx"] * 100])
    assert len(found) > 1
    assert found[0].count(" x") < component_log.CONTINUED


def test_an_entry_of_several_lines_has_one_text():
    (entry,) = component_log.entries([f"{HEAD}<", '\tunknown option "--x"', " >"])
    assert component_log.text(entry) == ('Failed to execute iptables-restore: unknown option "--x"')


ERROR = "E1030 07:57:16.120904       1 main.go:359] Error registering network: x"


@pytest.mark.parametrize(
    ("farewell", "line"),
    [
        ("I1030 07:57:16.120960       1 main.go:448] Stopping shutdownHandler...", ERROR),
        ("Calico node failed to start", ERROR),
        ("Terminating", ERROR),
        ("panic: boom", "panic: boom"),
        ("the file is gone", "the file is gone"),
        (FLAG, FLAG),
    ],
)
def test_a_farewell_is_no_reason(farewell, line):
    lines = ["I1030 07:57:15.1       1 a.go:1] begins", ERROR, CLIENT, farewell]
    telling = component_log.telling(lines, component_log.last_word(lines), "library")
    assert component_log.decisive(lines, telling, "library").line == line


def test_a_farewell_without_an_error_before_it():
    lines = ["I1030 07:57:15.1       1 a.go:1] begins", "Terminating"]
    telling = component_log.telling(lines, component_log.last_word(lines), "library")
    assert component_log.decisive(lines, telling, "library") == telling


def test_a_mere_information_or_a_warning_is_not_why_a_program_ended():
    errors = [
        'E1129 13:54:51.000000       1 a.go:1] "it failed"',
        'time="2026-11-29T13:54:51Z" level=error msg="it failed"',
        '{"level":"error","msg":"it failed"}',
        "a program without a logger says something",
    ]
    milder = [
        'I1129 13:54:51.000000       1 a.go:1] "it went on"',
        'W1129 13:54:51.000000       1 a.go:1] "ipset is missing"',
        'time="2026-11-29T13:54:51Z" level=warning msg="ipset is missing"',
        '{"level":"warn","ts":"2026","msg":"slow fdatasync"}',
    ]
    assert component_log.Telling("bye").before([*errors, *milder]) == tuple(errors[::-1])
