# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the logs of the cluster's own pods tell of why they end."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import system_pods
from tests.unit.support import ended_pods


@pytest.mark.parametrize(
    ("line", "text", "meaning"),
    [
        (ended_pods.UNKNOWN, ended_pods.SAID, "configuration"),
        (
            "flag provided but not defined: -cloud",
            "flag provided but not defined: -cloud",
            "configuration",
        ),
        ("panic: boom", "boom", None),
    ],
)
def test_the_line_that_ends_it(world, line, text, meaning):
    ended_pods.end(world, lines=["I1124 07:00:00.0 1 a.go:1] begins", line, "usage: --x, --y"])
    (pod,) = system_pods.extract(world.documents["w1"])
    assert pod.line == text
    assert (pod.reading and pod.reading.meaning) == meaning
    assert (pod.namespace, pod.container, pod.restarts) == ("kube-system", "kube-proxy", 7)


STACK = ["panic: boom", "", "goroutine 1 [running]:", "example.org/x/agent.(*Agent).Run(0x1)"]


@pytest.mark.parametrize(
    ("lines", "panicked"),
    [(STACK, ", in agent.(*Agent).Run"), ([*STACK, "Error: unknown flag: --x"], "")],
)
def test_a_panic_is_told_with_its_function(world, lines, panicked):
    ended_pods.end(world, lines=lines)
    (pod,) = system_pods.extract(world.documents["w1"])
    assert pod.panicked == panicked


@pytest.mark.parametrize(("kernel", "is_old"), [("6.1.0-37-amd64", False), ("4.19.0", True)])
def test_the_known_cause_fits_the_kernel_of_the_node(world, kernel, is_old):
    line = "requirements failed: Require support for dead code elimination (Linux 5.1 or newer)"
    world.data("w1", "system")["kernel"] = kernel
    ended_pods.end(world, pod="cilium-x", container="cilium-agent", lines=[line])
    (pod,) = system_pods.extract(world.documents["w1"])
    assert ("too old" in pod.known.cause) is is_old


def test_a_host_whose_clock_is_not_known(world):
    ended_pods.end(world)
    world.data("w1", "system")["clock"] = None
    (pod,) = system_pods.extract(world.documents["w1"])
    assert not pod.current


def test_what_a_node_says_is_bounded(world):
    ended_pods.end(world, pod="\x1b" * 900, lines=["panic: " + "x" * 9000])
    (pod,) = system_pods.extract(world.documents["w1"])
    assert len(pod.pod) <= 253
    assert len(pod.line) <= system_pods.SHOWN
    assert "\x1b" not in pod.pod


SOCKET = "listen unix /run/a.sock: bind: address already in use"
OWN = "/var/log/a.log"


@pytest.mark.parametrize(
    ("lines", "own", "is_known"),
    [
        (["F1124 07:00:00.0 1 a.go:1] " + SOCKET], [], True),
        (["Retrying"], [SOCKET], True),
        (["E1124 07:00:00.0 1 a.go:1] " + SOCKET, "F1124 07:00:01.0 1 a.go:2] bye"], [], True),
        # its last line is certain, so that what was said before it is no cause
        (["F1124 07:00:00.0 1 a.go:1] " + SOCKET, ended_pods.UNKNOWN], [], False),
        (["Retrying"], [], False),
    ],
    ids=["last line", "own file", "line before", "certain last line", "nothing"],
)
def test_the_known_cause_of_an_end(world, lines, own, is_known):
    file = {"path": OWN, "lines": own, "error": None}
    ended_pods.end(world, pod="csi-a", container="csi", lines=lines, own=file)
    (pod,) = system_pods.extract(world.documents["w1"])
    assert (pod.known and pod.known.cause[:33]) == (
        "A file is at the place of its soc" if is_known else None
    )


def test_the_line_whose_cause_is_known_is_quoted(world):
    later = "E1124 07:00:01.0 1 a.go:1] again: " + SOCKET
    lines = ["E1124 07:00:00.0 1 a.go:1] first: " + SOCKET, later, "Retrying", "bye"]
    ended_pods.end(world, pod="csi-a", container="csi", lines=lines)
    (pod,) = system_pods.extract(world.documents["w1"])
    assert pod.line == "first: " + SOCKET
    assert pod.known is not None


@pytest.mark.parametrize(
    ("reason", "is_known"), [("system not yet initialized", True), ("unknown error", False)]
)
def test_what_an_add_on_says_at_its_end_is_kept_apart_without_a_known_cause(
    world, reason, is_known
):
    line = f"Failed to allocate device vector A (error code {reason})!"
    lines = [line, "[Vector addition of 50000 elements]"]
    names = {"namespace": "gpu-operator", "pod": "nvidia-cuda-validator-rr9qz"}
    ended_pods.end(world, container="cuda-validation", lines=lines, **names)
    extracted = system_pods.extract(world.documents["w1"])
    unclear = system_pods.unclear(world.documents["w1"])
    assert [pod.line for pod in extracted] == [line] * is_known
    assert [pod.line for pod in unclear] == [line] * (not is_known)


def test_a_value_of_several_lines_is_quoted_whole(world):
    lines = [
        'E1124 07:00:00.0 1 a.go:1] "Failed" err=<',
        '\tip6tables-restore v1.8.9 (nf_tables): unknown option "--xor-mark"',
        "\tError occurred at line: 11",
        " >",
    ]
    ended_pods.end(world, lines=lines)
    (pod,) = system_pods.extract(world.documents["w1"])
    assert '"--xor-mark" Error occurred at line: 11' in pod.line
    assert pod.known.id == "kernel-without-mark-for-ipv6"
