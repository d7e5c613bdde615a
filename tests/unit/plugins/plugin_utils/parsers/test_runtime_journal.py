# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM508: last log lines of a container runtime, and a database that a power cut damaged."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    runtime,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import runtime_journal
from tests.unit.plugins.plugin_utils.faults.node.test_container_runtime import (
    CONFIG,
    DISABLED,
    NOT_ASKED,
    Node,
)


@pytest.fixture
def node(world):
    return Node(world)


LOOPS = {
    "active_state": "activating",
    "sub_state": "auto-restart",
    "result": "exit-code",
    "exec_main_status": 1,
    "main_pid": 0,
}
TOML = (
    "2027-01-15T07:59:50+0000 w1 containerd[9]: containerd: failed to load TOML:"
    " /etc/containerd/config.toml: (2, 2): unexpected token"
)
JSON = (
    "2027-01-15T07:59:50+0000 w1 dockerd[9]: unable to configure the Docker daemon with file"
    " /etc/docker/daemon.json: invalid character '}'"
)
CUT = (
    '2027-01-15T07:59:50+0000 w1 crio[9]: level=fatal msg="loading overlay-layers/layers.json:'
    ' unexpected end of JSON input"'
)
# Of cri-o/cri-o: a node after a power cut, one with another file system, one whose folder may not
# be made, one with a word that is no TOML.
ZEROS = (
    '2025-11-05T00:10:00+0000 w1 crio[9]: level=fatal msg="validating root config: failed to get'
    " store to set defaults: loading"
    ' \\"/var/lib/containers/storage/overlay-containers/volatile-containers.json\\":'
    ' []*storage.Container: decode slice: expect [ or n, but found \\x00..."'
)
BACKING = (
    '2021-12-01T11:45:31+0000 w1 crio[9]: level=fatal msg="Validating root config: failed to get'
    " store to set defaults: kernel does not support overlay fs: 'overlay' is not supported over"
    ' xfs"'
)
PLUGINS = (
    '2022-12-09T09:52:02+0000 w1 crio[9]: level=fatal msg="validating network config: invalid'
    ' plugin_dirs entry: mkdir /opt/cni: permission denied"'
)
DECODE = (
    "2019-11-06T22:26:18+0000 w1 crio[9]: unable to decode configuration /etc/crio/crio.conf: toml:"
    " cannot load TOML value of type []interface {}"
)
CONMON = (
    '2020-05-17T23:07:00-0300 w1 crio[9]: time="2020-05-17 23:07:00.079441070-03:00" level=fatal'
    ' msg="validating runtime config: conmon'
    ' validation: invalid conmon path: stat /usr/libexec/crio/conmon: no such file or directory"'
)
FULL = (
    '2022-12-09T09:52:02+0000 w1 crio[9]: level=fatal msg="validating root config: invalid log_dir:'
    ' mkdir /var/log/crio: no space left on device"'
)
NUL = (
    "2027-01-15T07:59:50+0000 w1 dockerd[9]: unable to configure the Docker daemon with file"
    " /etc/docker/daemon.json: invalid character '\\x00' looking for"
)
NEW = '2027-01-15T07:59:50+0000 w1 containerd[9]: time="…" level=fatal msg="something new"'
BYE = "2027-01-15T07:59:51+0000 w1 containerd[9]: bye"


@pytest.mark.parametrize(
    ("line", "what", "cure"),
    [
        (TOML, "it refuses its configuration", "fix the file that its last log lines name"),
        (JSON, "it refuses its configuration", "fix the file"),
        (CUT, "is empty or cut off, as a power cut leaves it", "crio wipe"),
        (ZEROS, "is empty or cut off, as a power cut leaves it", "crio wipe"),
        (NUL, "is empty or cut off", "/etc/docker/daemon.json"),
        (BACKING, "CRI-O cannot open its storage", "ftype=1"),
        (FULL, "a disk is full", "df -h"),
        (PLUGINS, "it refuses its configuration", "fix the file"),
        (CONMON, "it refuses its configuration: validating runtime config: conmon", "fix"),
        (DECODE, "it refuses its configuration", "fix the file"),
        (
            "… w1 containerd[9]: containerd: mkdir /var/lib/containerd: read-only file system",
            "is read-only (KM521)",
            "journalctl -k",
        ),
        ("… w1 containerd[9]: open /x: no space left on device", "a disk is full", "df -h"),
        (
            "… w1 containerd[9]: failed to create fsnotify watcher: too many open files",
            "(KM401, KM402)",
            "too_many_open_files",
        ),
        (
            "… w1 containerd[9]: open /var/lib/x: too many open files",
            "KM404",
            "too_many_open_files",
        ),
        (
            "… w1 containerd[9]: mkdir /sys/fs/cgroup/memory/x: no space left on device",
            "not a disk problem",
            "/proc/cgroups",
        ),
        (
            "… w1 containerd[9]: mkdir /sys/fs/cgroup/x: read-only file system",
            "not a disk problem",
            "/proc/cgroups",
        ),
    ],
)
def test_one_that_ended_tells_of_what(node, line, what, cure):
    node.set(unit={**LOOPS, "said": [line, BYE]}, **NOT_ASKED)
    found = node.finding()
    assert what in found.summary
    assert cure in found.remedy.partition("; then: ")[0]
    assert "journalctl -u containerd.service" in found.remedy
    assert [(proof.kind, proof.object, proof.text) for proof in found.evidence][1] == (
        "log",
        "containerd.service",
        line,
    )


# Of the table of messages: containerd/containerd#12612 (C05), and CRI-O's own words.
MIRRORS = (
    '2027-01-15T07:59:50+0000 w1 containerd[9]: time="2027-01-15T07:59:50Z" level=fatal msg="failed'
    ' to load plugin" error="invalid cri image config: `mirrors` cannot be set when `config_path`'
    ' is provided"'
)
PORT = (
    "2027-01-15T07:59:50+0000 w1 containerd[9]: containerd: failed to get listener for debug"
    " endpoint: listen tcp 127.0.0.1:1338: bind: address already in use"
)


@pytest.mark.parametrize(
    ("line", "what", "cure"),
    [
        (MIRRORS, "it refuses its configuration: failed to load plugin", "correct what that line"),
        (PORT, "cannot listen on its address", "ss -ltnp"),
    ],
)
def test_one_whose_words_the_table_has_is_told_by_their_class(node, line, what, cure):
    node.set(unit={**LOOPS, "said": [line, BYE]}, **NOT_ASKED)
    found = node.finding()
    assert what in found.summary
    assert cure in found.remedy.partition("; then: ")[0]
    assert found.evidence[1].text == line


CNI = (
    '2027-01-15T07:59:52+0000 w1 containerd[9]: time="2027-01-15T07:59:52Z" level=warning'
    ' msg="failed to load plugin io.containerd.snapshotter.v1.devmapper"'
    ' error="devmapper not configured"'
)
PIDS = TOML.replace("containerd[9]", "containerd[8]")


@pytest.mark.parametrize(
    ("said", "line", "cause"),
    [
        ([CNI], CNI, ""),
        ([PORT, CNI], PORT, "cannot listen on its address"),
        ([PIDS, CNI], CNI, ""),
        ([PIDS, NEW], NEW, ""),
        ([PIDS, PORT], PORT, "cannot listen on its address"),
    ],
)
def test_what_a_program_survived_and_an_earlier_start_are_no_cause(node, said, line, cause):
    node.set(unit={**LOOPS, "said": said}, **NOT_ASKED)
    found = node.finding()
    assert found.evidence[1].text == line
    assert cause in found.summary
    assert "refuses its configuration" not in found.summary
    assert "does not load" not in found.summary


def test_words_that_are_not_known_are_shown_and_name_no_cause(node):
    node.set(unit={**LOOPS, "said": [NEW, BYE]}, **NOT_ASKED)
    found = node.finding()
    assert found.evidence[1].text == NEW
    assert "a disk is full" not in found.summary
    assert "journal of containerd.service: " in found.summary
    assert "something new" in found.summary
    node.set(unit={**LOOPS, "said": [BYE]}, **NOT_ASKED)
    assert node.finding().evidence[1].text == BYE


@pytest.mark.parametrize(
    "words",
    [
        "failed to load listeners: can't create unix socket /var/run/docker.sock: is a directory",
        "failed to start containerd: timeout waiting for containerd to start",
        'failed to dial "/run/containerd/containerd.sock": context deadline exceeded',
        "unknown flag: --graph",
    ],
)
def test_the_last_words_of_dockerd_come_before_what_systemd_says_of_its_end(node, words):
    line = f"2027-01-15T07:59:52+0000 w1 dockerd[9]: {words}"
    systemd = "2027-01-15T07:59:53+0000 w1 systemd[1]: docker.service: Failed with result 'x'."
    node.set(unit={**LOOPS, "said": [line, systemd]}, **NOT_ASKED)
    assert node.finding().evidence[1].text == line


def test_one_that_said_nothing_is_told_without(node):
    node.set(unit={**LOOPS, "said": []}, **NOT_ASKED)
    assert [proof.kind for proof in node.finding().evidence] == ["unit"]


@pytest.mark.parametrize("said", [None, 7, "x", [7, None]])
def test_a_log_of_another_type_is_unknown(node, said):
    node.set(unit={**LOOPS, "said": said}, **NOT_ASKED)
    assert node.verdict() == "unknown"


@pytest.mark.parametrize(("status", "what"), [(203, "203/EXEC"), (205, "205/LIMITS (KM409)")])
def test_what_systemd_itself_knows_of_its_end(node, status, what):
    node.set(unit={**LOOPS, "exec_main_status": status, "said": []}, **NOT_ASKED)
    assert what in node.finding().summary


LOST = {
    "path": "/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db",
    "size": 32768,
    "valid": False,
}
ALIVE = {"path": "/etc/containerd/config.toml", "disabled_plugins": [], "line": None}


def test_a_database_that_a_power_cut_damaged_is_why_containerd_serves_no_cri(node):
    node.set(calls=DISABLED, config=ALIVE, metadata=LOST)
    found = node.finding()
    assert (
        "its database of containers and images is damaged, as a power cut leaves it"
        in found.summary
    )
    assert found.evidence[0].path == LOST["path"]
    assert "move what lies in /var/lib/containerd away" in found.remedy
    assert "systemctl" not in found.remedy


@pytest.mark.parametrize(
    ("config", "metadata"),
    [(ALIVE, {**LOST, "valid": True}), (ALIVE, None), (CONFIG, LOST)],
)
def test_a_database_that_is_well_or_a_plugin_that_is_disabled_is_no_damage(node, config, metadata):
    node.set(calls=DISABLED, config=config, metadata=metadata)
    assert "damaged" not in node.finding().summary


UNLOADED = 'time="x" level=warning msg="failed to load plugin%s" error="%s"%s'


@pytest.mark.parametrize(
    ("old", "error", "new", "plugin", "cure"),
    [
        # containerd 1.6 and 2.2
        (
            " io.containerd.grpc.v1.cri",
            "invalid plugin config: `mirrors` cannot be set when `config_path` is provided",
            "",
            "io.containerd.grpc.v1.cri",
            "hosts.toml",
        ),
        (
            "",
            "unable to load CRI image service plugin dependency: unknown",
            " id=io.containerd.podsandbox.controller.v1.podsandbox type=x",
            "io.containerd.podsandbox.controller.v1.podsandbox",
            "",
        ),
        (
            " io.containerd.grpc.v1.cri",
            "failed to create fsnotify watcher: too many open files",
            "",
            "io.containerd.grpc.v1.cri",
            "too_many_open_files",
        ),
    ],
)
def test_a_plugin_that_was_not_loaded(old, error, new, plugin, cure):
    failure = runtime_journal.plugin_failure([UNLOADED % (old, error, new)])
    assert failure.plugin == plugin
    assert failure.reason.startswith(error)
    assert cure in failure.cure


def test_the_plugin_that_others_lack_comes_first():
    lines = [
        UNLOADED
        % ("", "unable to load CRI runtime plugin: no plugins", " id=io.containerd.grpc.v1.cri"),
        UNLOADED % ("", 'a \\"b\\" c', " id=io.containerd.cri.v1.images type=x"),
        UNLOADED % (" io.containerd.snapshotter.v1.devmapper", "devmapper not configured", ""),
        "started",
    ]
    assert runtime_journal.plugin_failure(lines).reason == 'a "b" c'
    assert runtime_journal.plugin_failure(lines[2:]) is None


def test_the_newest_error_is_none_that_the_end_brought_about():
    odd = 'containerd[7]: time="x" level=error msg="failed to load" error="odd"'
    closed = 'containerd[7]: time="x" level=error msg="failed" error="http: Server closed"'
    for said, line in (((odd, closed), odd), ((closed,), closed)):
        record = runtime.RuntimeUnit(name="containerd.service", said=said)
        assert runtime_journal.last_words(record).line == line
