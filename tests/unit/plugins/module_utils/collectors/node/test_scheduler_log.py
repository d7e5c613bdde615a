# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector scheduler_log.

The lines of a scheduler's own log that tell in which order nodes came, and when its list was made.
"""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    scheduler_log,
)

HEAD = b"2026-11-23T05:37:19.367925977Z stderr F I1123 05:37:19.367273       1 "
ADD = HEAD + b'node_tree.go:86] Added node "m1" in group "sh:\\x00:200002" to NodeTree\n'
BARE = HEAD + b'node_tree.go:86] Added node "m2" in group "" to NodeTree\n'
GONE = HEAD + b'node_tree.go:108] Removed node "m1" in group "sh:\\x00:200002" from NodeTree\n'
BOUND = (
    HEAD
    + b'default_binder.go:51] pod a/first is bound successfully on node "m1", 3 nodes evaluated, 3'
    b" nodes were found feasible\n"
)
REFUSED = (
    HEAD + b"factory.go:462] Unable to schedule a/everywhere-x: no fit: 0/4 nodes are available: 3"
    b" node(s) didn't match node selector.; waiting\n"
)
DOCKER = (
    b'{"log":"I1123 05:37:19.367273       1 node_tree.go:86] Added node \\"m1\\" in group'
    b' \\"sh:\\\\x00:200002\\" to NodeTree\\n","stream":"stderr"}\n'
)
ONE = ["add", "m1", "sh/200002"]
UID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([ADD], [ONE]),
        ([DOCKER], [ONE]),
        ([BARE], [["add", "m2", ""]]),
        ([GONE], [["remove", "m1", "sh/200002"]]),
        ([BOUND, BOUND, REFUSED], [["round", "", ""]]),
        (
            [ADD, BOUND, GONE, REFUSED],
            [ONE, ["round", "", ""], ["remove", "m1", "sh/200002"], ["round", "", ""]],
        ),
        (
            [HEAD + b"node NodeTree of another wording\n", b'\xff NodeTree Added node "\n', b"\n"],
            [],
        ),
    ],
)
def test_what_the_lines_tell(lines, found):
    assert scheduler_log.events(lines) == (found, True)


def test_more_than_is_kept_is_not_all(monkeypatch):
    monkeypatch.setattr(scheduler_log, "MAX_EVENTS", 2)
    assert scheduler_log.events([ADD, BARE, GONE]) == ([ONE, ["add", "m2", ""]], False)
    monkeypatch.setattr(scheduler_log, "MAX_READ", 10)
    assert scheduler_log.events([ADD]) == ([], False)


def context(argv, version="v1.18.4", **more):
    process = dict(
        {
            "pid": 7,
            "component": "kube-scheduler",
            "static": True,
            "pod_uid": UID,
            "argv": ["kube-scheduler", *argv],
        },
        **more,
    )
    answers = {"components": [{"pid": 7, "metrics": {"git_version": version}}]}
    return base.Context(
        {},
        [],
        {
            "instances": {"processes": [process, dict(process, component="kube-apiserver")]},
            "component_http": answers,
        },
    )


@pytest.fixture
def pods(tmp_path, monkeypatch):
    folder = tmp_path / ("kube-system_kube-scheduler-m1_" + UID) / "kube-scheduler"
    folder.mkdir(parents=True)
    monkeypatch.setattr(scheduler_log, "PODS", str(tmp_path))
    (folder / "9.log").write_bytes(GONE)
    (folder / "10.log").write_bytes(ADD + BOUND)
    return folder


def test_the_log_of_the_last_start(pods):
    (found,) = scheduler_log.collect(context(["--v=2"]))["logs"]
    assert found == {
        "pid": 7,
        "level": 2,
        "path": str(pods / "10.log"),
        "whole": True,
        "events": [ONE, ["round", "", ""]],
    }


def test_what_was_rotated_is_missing(pods):
    (pods / "10.log.20261123-053719").write_bytes(b"")
    assert scheduler_log.collect(context(["--v", "4"]))["logs"][0]["whole"] is False


@pytest.mark.parametrize("argv", [[], ["--v=1"], ["--v=x"], ["--v=-1"]])
def test_without_the_level_no_file_is_opened(pods, argv, monkeypatch):
    monkeypatch.setattr(scheduler_log, "newest", None)
    (found,) = scheduler_log.collect(context(argv))["logs"]
    assert (found["path"], found["events"], found["whole"]) == (None, [], False)


@pytest.mark.parametrize(
    ("version", "read"),
    [
        ("v1.18.0", True),
        ("v1.18.7", True),
        ("v1.18.8", False),
        ("v1.18.4-vendor.1", True),
        ("v1.18.20+a", False),
        ("v1.19.0-rc.2", True),
        ("v1.19.0", False),
        ("v1.17.9", False),
        ("v1.36.3", False),
        (None, True),
        ("", True),
        ("1.x.y", True),
    ],
)
def test_only_of_a_scheduler_that_may_lose_nodes_the_log_is_read(pods, version, read):
    (found,) = scheduler_log.collect(context(["--v=2"], version))["logs"]
    assert (found["path"], found["whole"], len(found["events"])) == (
        (str(pods / "10.log"), True, 2) if read else (None, False, 0)
    )


def test_where_nobody_told_a_version_the_log_is_read(pods):
    asked = context(["--v=2"])
    asked.data["component_http"] = None
    assert scheduler_log.collect(asked)["logs"][0]["path"] == str(pods / "10.log")


@pytest.mark.parametrize("more", [{"static": False}, {"pod_uid": None}])
def test_what_runs_in_no_static_pod_has_no_such_log(pods, more):
    assert scheduler_log.collect(context(["--v=2"], **more)) == {"logs": []}


def test_there_is_no_log(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler_log, "PODS", str(tmp_path / "none"))
    assert scheduler_log.collect(context(["--v=2"]))["logs"][0]["path"] is None
    (tmp_path / ("x_" + UID) / "kube-scheduler").mkdir(parents=True)
    assert scheduler_log.newest(str(tmp_path), UID) == (None, False)
