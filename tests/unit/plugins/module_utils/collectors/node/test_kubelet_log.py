# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of the kubelet's log that matter."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    kubelet_log,
)


def test_lines_of_the_journal_that_matter():
    text = "\n".join(
        (
            (
                "2026-11-22T04:00:00+0000 w1 kubelet[5]: I1122 04:00:00.000001       5 server.go:1]"
                ' "Started"'
            ),
            (
                "2026-11-22T04:00:10+0000 w1 kubelet[5]: E1122 04:00:10.000001       5"
                ' cpu_manager.go:440] "failed" err="unable to freeze"'
            ),
            (
                "2026-11-22T04:00:20+0000 w1 kubelet[5]: E1122 04:00:20.000002       5"
                ' cpu_manager.go:440] "failed" err="unable to freeze"'
            ),
            (
                '2026-11-22T04:00:21+0000 w1 containerd[4]: time=x msg="Unable to freeze"'
                " token=abcdefghijklmnopqrstuvwxyz"
            ),
        )
    )
    found = kubelet_log.chosen(text)
    assert [line[:19] for line in found] == [
        "2026-11-22T04:00:20",
        "2026-11-22T04:00:21",
    ]
    assert "abcdefghij" not in found[1]
    assert (
        len(kubelet_log.chosen("\n".join(f"w1 x[{n}]: {n} unable to freeze" for n in range(100))))
        == kubelet_log.KEPT
    )


def test_what_the_api_said_of_the_nodes_name_is_kept_in_its_order():
    head = (
        "2026-11-22T04:00:%02d+0000 w1 kubelet[7]: E1122 04:00:%02d.000000 7"
        " kubelet_node_status.go:1] "
    )
    refused = (
        head + '"Unable to register node with API server" err="nodes \\"w9\\" is forbidden: node'
        ' \\"w1\\" is not allowed to modify node \\"w9\\""'
    )
    done = head + '"Successfully registered node" node="w1"'
    lines = [
        one % (second, second)
        for second, one in enumerate(
            (refused, done, refused, head + '"Attempting to register node" node="w9"')
        )
    ]
    assert kubelet_log.chosen("\n".join(lines)) == [lines[1], lines[2]]
    assert kubelet_log.chosen("\n".join(lines[:2])) == lines[:2]


@pytest.mark.parametrize(
    "said",
    [
        (
            'kubelet[5]: E1122 04:00:10.000001 5 cadvisor.go:1] "failed" err="inotify_init: too'
            ' many open files"'
        ),
        (
            'kubelet[5]: E1122 04:00:10.000001 5 x.go:1] "failed" err="inotify_add_watch'
            ' /sys/fs/cgroup: no space left on device"'
        ),
        "systemctl[9]: Failed to allocate directory watch: Too many open files",
        "systemd[1]: containerd.service: Main process exited, code=exited, status=205/LIMITS",
        (
            "systemd[77]: containerd.service: Failed at step LIMITS spawning /usr/bin/containerd:"
            " Operation not permitted"
        ),
    ],
)
def test_lines_about_open_files_matter_and_push_out_no_other(said):
    frozen = "2026-11-22T04:00:00+0000 w1 kubelet[5]: unable to freeze"
    line = "2026-11-22T04:00:10+0000 w1 " + said
    assert kubelet_log.chosen("\n".join((frozen, line, line))) == [frozen, line]
    many = kubelet_log.chosen(
        "\n".join([frozen] + [f"{line} of pod {number}" for number in range(100)])
    )
    assert many[0] == frozen
    assert len(many) == kubelet_log.KEPT + 1
    assert many[-1].endswith("of pod 99")


def test_errors_without_a_level_are_kept_and_stacks_are_not():
    at = "2026-11-22T04:00:%02d+0000 w1 "
    said = [
        "kubelet[5]: failed to fetch hugetlb info",
        "kubelet[5]: k8s.io/kubernetes/vendor/github.com/x/fs2.statHugeTlb",
        "kubelet[5]:         /workspace/src/k8s.io/kubernetes/x/hugetlb.go:35",
        "kubelet[5]: I1122 04:00:00.000001       5 server.go:1] failed to x",
        "kubelet[5]: failed to fetch hugetlb info",
        "containerd[4]: panic: runtime error: index out of range",
        "systemd[1]: Failed to start kubelet.service - kubelet.",
    ]
    found = kubelet_log.chosen("\n".join(at % second + line for second, line in enumerate(said)))
    assert found == [at % 4 + said[4], at % 5 + said[5]]
    many = [at % 0 + f"kubelet[5]: failed to do {number}" for number in range(99)]
    assert kubelet_log.chosen("\n".join(many)) == many[-kubelet_log.KEPT_PLAIN :]


def test_a_secret_at_the_cut_is_masked_as_a_whole():
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJ" + "A" * 60 + "." + "B" * 60
    head = "2026-11-22T04:00:10+0000 w1 kubelet[5]: unable to freeze "
    (kept,) = kubelet_log.chosen(head + "x" * (kubelet_log.LONGEST - len(head) - 20) + " " + token)
    assert "eyJ" not in kept


@pytest.mark.parametrize(
    "message",
    [
        # from 1.21 on, and before
        'image_gc_manager.go:400] "Removing image to free bytes" imageID="sha256:{}" size=1',
        'image_gc_manager.go:371] [imageGCManager]: Removing image "sha256:{}" to free 9 bytes',
    ],
)
def test_images_that_the_kubelet_removed_push_out_nothing(message):
    head = "2026-11-22T04:00:00+0000 w1 kubelet[5]: "
    frozen = head + "E1122 04:00:00.000001 5 cpu_manager.go:440] unable to freeze"
    removed = [f"{head}I1122 04:00:00.000001 5 {message.format(number)}" for number in range(500)]
    found = kubelet_log.chosen("\n".join([frozen, *removed]))
    assert found == [frozen, *removed[-kubelet_log.KEPT_IMAGES :]]


def test_certificates_that_expired_push_out_nothing():
    head = "2026-11-22T04:00:00+0000 w1 k3s[5]: "
    folder = head + "E1122 04:00:00.000001 5 a.go:1] Error (re-)creating driver directory: mkdir /a"
    end = "x509: certificate has expired or is not yet valid"
    lists = [f"{head}E1122 04:00:00.000001 5 r.go:1] list {n}: {end}" for n in range(100)]
    found = kubelet_log.chosen("\n".join([folder, *lists]))
    assert found == [folder, *lists[-kubelet_log.KEPT_CERTIFICATES :]]


START = """\
2026-11-22T04:00:00+0000 w1 systemd[1]: Started kubelet: The Kubernetes Node Agent.
2026-11-22T04:00:01+0000 w1 kubelet[5]: I1122 04:00:01.000001       5 server.go:1] "Started"
2026-11-22T04:00:02+0000 w1 kubelet[5]: W1122 04:00:02.000001       5 info.go:5] "Odd" err="no 1"
2026-11-22T04:00:03+0000 w1 kubelet[5]: E1122 04:00:03.000001       5 kubelet.go:9] "Failed" n=3
2026-11-22T04:00:04+0000 w1 kubelet[5]: E1122 04:00:04.000001       5 kubelet.go:9] "Failed" n=4
2026-11-22T04:00:05+0000 w1 rke2[5]: time="2026-11-22T04:00:05Z" level=warning msg="Disabling it"
2026-11-22T04:00:05+0000 w1 rke2[5]: time="2026-11-22T04:00:05Z" level=info msg="Running it"
2026-11-22T04:00:06+0000 w1 kubelet[5]: E1122 04:00:06.000001 5 a.go:9] token=abcdefghijklmnopqrstu
"""


def test_warnings_and_errors_of_a_start_are_kept_once():
    found = kubelet_log.complaints(START)
    assert [line[17:19] for line in found] == ["02", "03", "05", "06"]
    assert "abcdefghij" not in found[3]


def test_the_first_complaints_of_a_start_are_kept():
    head = "2026-11-22T04:00:01+0000 w1 kubelet[5]: E1122 04:00:01.000001       5 x.go:1] "
    found = kubelet_log.complaints("\n".join(head + "x" * count for count in range(1, 99)))
    assert len(found) == kubelet_log.KEPT_AT_START
    assert found[0].endswith("] x")


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [("kubelet.service", (999, 1090)), ("rke2-agent.service", (820, 1090))],
)
def test_what_counts_as_a_start(unit, seconds):
    assert kubelet_log.start(unit, 1000.7) == seconds


class Context:
    source = None

    def __init__(self, started):
        process = None if started is None else {"started_at": started}
        self.data = {"kubelet": {"unit": {"name": "kubelet.service"}, "process": process}}

    def seconds(self, wanted):
        return wanted


@pytest.mark.parametrize(("started", "calls", "kept"), [(1000.7, 2, 4), (None, 1, 0)])
def test_the_journal_of_a_start_is_read_once(monkeypatch, started, calls, kept):
    asked = []

    def run(argv, _seconds, _limit):
        asked.append(argv)
        return START

    monkeypatch.setattr(kubelet_log.command, "run", run)
    assert len(kubelet_log.collect(Context(started))["at_start"]) == kept
    assert len(asked) == calls
    assert ("--since=@999" in asked[-1] and "--until=@1090" in asked[-1]) == (started is not None)


def test_a_journal_that_begins_after_the_start_is_no_failure(monkeypatch):
    def run(argv, _seconds, _limit):
        if "--since=@999" in argv:
            raise kubelet_log.command.Silent("it said nothing")
        return START

    monkeypatch.setattr(kubelet_log.command, "run", run)
    assert kubelet_log.collect(Context(1000.7))["at_start"] == []
