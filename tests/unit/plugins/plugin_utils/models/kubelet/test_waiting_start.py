# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What k3s and RKE2 wait for in a start that does not end, and what may come by itself."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    waiting_start,
)

STAMP = "2026-11-24T13:09:30+0000 w1 "
STARTING = STAMP + "systemd[1]: Starting Lightweight Kubernetes..."
PASSWORD = (
    "Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not"
    " match server node-passwd entry, try enabling a unique node name with the --with-node-id flag"
)
WAITING = "Waiting to retrieve agent configuration; server is not ready: "
HASH = "token CA hash does not match the Cluster CA certificate hash: f08676bf != 8e7d49c6"
EXPIRED = (
    r"CA cert validation failed: Get \"https://127.0.0.1:9345/cacerts\": tls: failed to verify"
    " certificate: x509: certificate has expired or is not yet valid: current time"
)


def logged(text: str, level: str = "info", pid: int = 1697) -> str:
    return f'{STAMP}k3s[{pid}]: time="2022-08-30T14:00:20Z" level={level} msg="{text}"'


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        (logged(WAITING + PASSWORD), PASSWORD, "node-password.k3s"),
        # k3s#3727
        (logged(HASH, "error"), HASH, "node-token"),
        (
            logged(f"Failed to validate connection to cluster at https://a:6443: {HASH}", "error"),
            HASH,
            "node-token",
        ),
        (logged(EXPIRED, "error"), "CA cert validation failed: Get", "certificate rotate"),
    ],
)
def test_what_does_not_pass_by_itself(line, message, advice):
    found = waiting_start.find([STARTING, logged("Starting k3s agent"), line])
    assert found is not None
    assert found.message.startswith(message)
    assert advice in found.advice
    assert found.clause
    assert found.line == line


FOUND = (
    "this server is a not a member of the etcd cluster. Found [m2-96a67933=https://192.0.2.4:2380"
    " m1-5d1ce7ce=https://192.0.2.3:2380 m3-09ac1081=https://192.0.2.2:2380], expect: "
)


# k3d#262 and k3s#7558
@pytest.mark.parametrize(
    ("words", "expected", "here"),
    [
        ("Failed to test data store connection: ", "m1-5d1ce7ce=192.0.2.5", "192.0.2.5"),
        ("Failed to test etcd connection: ", "m1-5d1ce7ce=https://[fd00::5]:2380", "[fd00::5]"),
    ],
)
def test_a_server_whose_etcd_has_it_at_another_address_waits_for_good(words, expected, here):
    line = logged(words + FOUND + expected)
    found = waiting_start.find([STARTING, line])
    assert found is not None
    assert "m1-5d1ce7ce is at https://192.0.2.3:2380" in found.message
    assert here in found.message
    assert waiting_start.find([STARTING, line, logged("Connection to etcd is ready")]) is None


def test_a_member_that_is_not_added_yet_may_come():
    line = logged(f"Failed to test etcd connection: {FOUND}m4-1f9a7c2e=https://192.0.2.6:2380")
    assert waiting_start.find([STARTING, line]) is None


OVERLAY = (
    r"\"overlayfs\" snapshotter cannot be enabled for \"/var/lib/rancher/k3s/agent/containerd\","
    r" try using \"fuse-overlayfs\" or \"native\": failed to mount overlay: invalid argument"
)


@pytest.mark.parametrize("words", ["Failed to retrieve agent config: ", WAITING])
def test_what_the_machine_itself_lacks_does_not_pass(words):
    found = waiting_start.find([STARTING, logged(words + OVERLAY, "error")])
    assert found is not None
    assert found.is_whole
    assert found.message.endswith("failed to mount overlay: invalid argument")
    assert "overlay" in found.clause
    assert "findmnt" in found.advice


CONFIG = "https://127.0.0.1:6444/v1-k3s/config"
CACERTS = "https://10.0.0.1:6443/cacerts"


@pytest.mark.parametrize(
    ("text", "clause", "advice"),
    [
        (f"CA cert validation failed: {CACERTS}: 403 Forbidden", "none", "NO_PROXY"),
        (f"CA cert validation failed: {CACERTS}: 401 Unauthorized", "none", "NO_PROXY"),
        (
            f"{WAITING}failed to retrieve configuration from server: {CONFIG}: 401 Unauthorized",
            "refuses its token",
            "node-token",
        ),
        (
            "Waiting to retrieve kube-proxy configuration; server is not ready:"
            f" {CONFIG}: 403 Forbidden",
            "refuses its token",
            "node-token",
        ),
    ],
)
def test_a_refusal_by_http_that_repeats_does_not_pass(text, clause, advice):
    line = logged(text, "error")
    found = waiting_start.find([STARTING, line, line])
    assert found is not None
    assert clause in found.clause
    assert advice in found.advice
    assert waiting_start.find([STARTING, line]) is None
    assert waiting_start.find([STARTING, line, line, logged("Running kubelet --x")]) is None


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [STARTING],
        [STARTING, logged("Starting k3s agent")],
        # a server that is not up yet
        [
            STARTING,
            logged(
                WAITING
                + r"failed to get CA certs: Get \"https://127.0.0.1:6444/cacerts\": dial tcp"
                " 10.0.0.1:6443: connect: connection refused"
            ),
        ],
        [
            STARTING,
            logged(WAITING + "https://127.0.0.1:6444/v1-k3s/readyz: 503 Service Unavailable"),
        ],
        # it was refused, and is not any more
        [
            STARTING,
            logged(WAITING + PASSWORD),
            logged(WAITING + "https://127.0.0.1:6444/v1-k3s/config: 503 Service Unavailable"),
        ],
        # an earlier start
        [
            STARTING,
            logged(WAITING + PASSWORD),
            STAMP
            + "systemd[1]: k3s-agent.service: Main process exited, code=killed, status=9/KILL",
        ],
        # a pod's own words
        [STARTING, STAMP + f"k3s[1697]: I0830 14:00:20.000001 1697 a.go:1] {PASSWORD}"],
    ],
)
def test_what_may_pass_or_is_not_known(lines):
    assert waiting_start.find(lines) is None


@pytest.mark.parametrize(
    "error",
    [
        "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        "net/http: request canceled while waiting for connection (Client.Timeout exceeded while"
        " awaiting headers)",
        "remote error: tls: internal error",
        "write tcp 127.0.0.1:1->127.0.0.1:6444: write: broken pipe",
        "http: server gave HTTP response to HTTPS client",
        "502 Bad Gateway",
    ],
)
def test_a_server_that_is_slow_or_down_refuses_nothing(error):
    text = rf"CA cert validation failed: Get \"https://127.0.0.1:6444/cacerts\": {error}"
    assert waiting_start.find([STARTING, logged(WAITING + text)]) is None
    assert waiting_start.find([STARTING, logged(text, "error")]) is None


@pytest.mark.parametrize(
    "progress",
    ["Running kubelet --address=0.0.0.0", "Running containerd -c /c.toml", "Connecting to proxy"],
)
def test_a_start_that_went_on_is_refused_no_more(progress):
    refused = logged(WAITING + PASSWORD)
    assert waiting_start.find([STARTING, refused, logged(progress)]) is None
    assert waiting_start.find([STARTING, logged(progress), refused]) is not None


def test_hostile_lines_do_not_make_it_raise():
    for text in ('"' * 5000, "\\" * 5001, WAITING * 500, WAITING + "[" * 5000):
        assert waiting_start.find([STARTING, logged(text)]) is None


MISMATCH = (
    'k3s[1697]: {"level":"warn","msg":"request sent was ignored by remote peer due to cluster ID'
    ' mismatch","remote-peer-id":"12ade1","remote-peer-cluster-id":"96831dd7",'
    '"local-member-id":"a2ecd5","local-member-cluster-id":"f3896440","error":"cluster ID mismatch"}'
)


def test_a_server_with_the_etcd_of_another_cluster_does_not_come_up():
    waits = logged("Waiting for etcd server to become available")
    found = waiting_start.find([STARTING, STAMP + MISMATCH, waits])
    assert "f3896440 here, 96831dd7 there" in found.clause
    assert "server/db" in found.advice
    assert waiting_start.find([STARTING, waits]) is None
    assert waiting_start.find([STARTING, STAMP + MISMATCH, logged("Running kubelet -a")]) is None


def asked(balancer: str, error: str, times: int, program: str = "k3s") -> list[str]:
    lines = [STARTING, logged(f"Running load balancer k3s-agent 127.0.0.1:6444 -> [{balancer}]")]
    lines += [logged(f"failed to get CA certs: {error}", "error")] * times
    return [line.replace("k3s[", f"{program}[") for line in lines]


@pytest.mark.parametrize(
    ("balancer", "program", "words", "is_whole"),
    [
        # rke2#3275, rke2#3901
        ("127.0.0.1:9345", "rke2", "this machine itself", True),
        ("192.0.2.10:9435", "rke2", "at port 9345", True),
        ("192.0.2.10:9345", "rke2", "192.0.2.10:9345 does not answer", False),
        ("192.0.2.10:6443", "k3s", "192.0.2.10:6443 does not answer", False),
    ],
)
def test_a_server_that_gives_no_answer_again_and_again(balancer, program, words, is_whole):
    error = r"Get \"https://127.0.0.1:6444/cacerts\": EOF"
    found = waiting_start.find(asked(balancer, error, 3, program))
    assert words in found.clause
    assert found.is_whole is is_whole
    assert balancer in found.advice
    assert waiting_start.find(asked(balancer, error, 2, program)) is None


def test_an_agent_that_cannot_work_with_its_configuration():
    # k3s#3266
    text = (
        r"Failed to retrieve agent config: \"overlayfs\" snapshotter cannot be enabled for"
        r" \"/var/lib/rancher/k3s/agent/containerd\": failed to mount overlay: invalid argument"
    )
    found = waiting_start.find([STARTING, logged(text, "error")])
    assert "overlayfs" in found.clause
    assert found.is_whole  # a known message tells the cause
    text = r"Failed to retrieve agent config: stat /opt/none: no such file or directory"
    found = waiting_start.find([STARTING, logged(text, "error")])
    assert "on this machine" in found.clause
    assert not found.is_whole
    refused = "Failed to retrieve agent config: dial tcp 192.0.2.1:6443: connection refused"
    assert waiting_start.find([STARTING, logged(refused, "error")]) is None


@pytest.mark.parametrize(
    ("balancer", "server", "address"),
    [
        # k3s 1.21, and later releases, which name their balancers
        ("Running load balancer 127.0.0.1:6444 -> [192.0.2.9:6443]", "", "192.0.2.9:6443"),
        (
            "Running load balancer k3s-agent 127.0.0.1:6444 -> [192.0.2.9:6443]",
            "",
            "192.0.2.9:6443",
        ),
        ("Starting k3s agent v1.21.2+k3s1", "192.0.2.8:6443", "192.0.2.8:6443"),
        ("Starting k3s agent v1.21.2+k3s1", "", "SERVER:6443"),
    ],
)
def test_a_server_that_gives_no_answer_is_named(balancer, server, address):
    line = logged(
        r"failed to get CA certs: Get \"https://127.0.0.1:6444/cacerts\": read tcp"
        " 127.0.0.1:4034->127.0.0.1:6444: read: connection reset by peer",
        "error",
    )
    found = waiting_start.find([STARTING, logged(balancer), *[line] * 3], server)
    assert found is not None
    assert address in found.clause
    assert f"https://{address}/cacerts" in found.advice
