# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests that do not parse, are not loaded, stand twice, or were left half changed."""

from __future__ import annotations

import pytest

from tests.unit.support.facts import facts, facts_of_each
from tests.unit.support.verdicts import SCHEDULER, present, verdicts


def test_a_change_of_seconds_ago_is_unknown_not_a_fault(world):
    world.manifest("m2", SCHEDULER, "--leader-elect=true", "--v=4", mtime=1_800_000_000.0 - 5)
    result = world.judge()
    assert verdicts(result, "KM108")["m2"] == "unknown"
    world.manifest("m2", SCHEDULER, "--leader-elect=true", "--v=4", mtime=1_800_000_000.0 - 500)
    assert ("KM108", "m2", SCHEDULER) in present(world.judge())


def test_a_manifest_that_was_moved_in_keeps_the_time_of_its_last_write(world):
    old, clock = 1_800_000_000.0 - 500, 1_800_000_000.0
    world.manifest("m2", SCHEDULER, "--leader-elect=true", "--v=4", mtime=old, ctime=clock - 5)
    assert verdicts(world.judge(), "KM108")["m2"] == "unknown"
    world.manifest("m2", SCHEDULER, "--leader-elect=true", "--v=4", mtime=old, ctime=clock - 61)
    assert ("KM108", "m2", SCHEDULER) in present(world.judge())


def test_broken_manifest(world):
    world.data("m2", "manifests")["files"][0]["text"] = "apiVersion: v1\nkind: Pod\n  bad: [\n"
    result = world.judge()
    assert present(result) == {("KM107", "m2", SCHEDULER)}
    assert result.findings[0].evidence[0].line == 3


def test_backup_beside_the_manifest(world):
    files = world.data("m2", "manifests")["files"]
    files.append({**files[0], "path": files[0]["path"] + ".bak", "name": files[0]["name"] + ".bak"})
    result = world.judge()
    assert present(result) == {("KM109", "m2", SCHEDULER)}
    (found,) = result.findings
    assert "kube-scheduler.yaml, kube-scheduler.yaml.bak" in found.summary
    # both have the arguments that it runs with
    assert "it runs with" not in found.summary


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--leader-elect=true",),
            "runs with the arguments of kube-scheduler.yaml.bak, without --v=4",
        ),
        (
            ("--leader-elect=true", "--v=4"),
            "runs with the arguments of kube-scheduler.yaml",
        ),
        (("--leader-elect=true", "--v=5"), None),
    ],
)
def test_which_of_two_manifests_runs(world, arguments, words):
    world.manifest("m2", SCHEDULER, "--leader-elect=true")
    files = world.data("m2", "manifests")["files"]
    name = f"{SCHEDULER}.yaml.bak"
    backup = {**files[-1], "path": files[-1]["path"] + ".bak", "name": name}
    world.manifest("m2", SCHEDULER, "--leader-elect=true", "--v=4")
    files.append(backup)
    world.run("m2", SCHEDULER, *arguments, elect=True)
    summaries = [item.summary for item in world.judge().findings if item.code == "KM109"]
    assert len(summaries) == 1
    assert (words or "the kubelet runs either") in summaries[0]
    assert ("it runs with" in summaries[0]) is (words is not None)


@pytest.mark.parametrize(("second", "twice"), [("haproxy", True), ("keepalived", False)])
def test_two_files_of_another_static_pod(world, second, twice):
    """What stands before the API servers flaps just so; two pods in two files are none of this."""
    files = world.data("m2", "manifests")["files"]
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: kube-system}\nspec:"
        " {containers: [{name: a, image: b, command: [a]}]}\n"
    )
    for name, pod in (("haproxy.yaml", "haproxy"), ("haproxy.yaml.bak", second)):
        files.append(
            {
                **files[0],
                "path": "/etc/kubernetes/manifests/" + name,
                "name": name,
                "text": text % pod,
                "masked": [],
            }
        )
    result = world.judge()
    assert present(result) == ({("KM109", "m2", None)} if twice else set())
    if twice:
        (found,) = result.findings
        assert (
            found.severity,
            found.risk,
            [proof.path.rpartition("/")[2] for proof in found.evidence],
        ) == ("warning", 0, ["haproxy.yaml", "haproxy.yaml.bak"])
        assert (
            "2 manifests of the pod kube-system/haproxy in the static pod folder" in found.summary
        )


@pytest.mark.parametrize(
    ("journal", "verdict"),
    [
        ({"pending": [], "unproven": [], "busy": False}, "clear"),
        (
            {
                "pending": [
                    {"run_id": "r", "what": "edit_manifest: /a", "state": "before", "path": "/a"}
                ],
                "busy": False,
            },
            "present",
        ),
        (
            {
                "pending": [
                    {"run_id": "r", "what": "edit_manifest: /a", "state": "after", "path": "/a"}
                ],
                "busy": True,
            },
            "unknown",
        ),
        (
            {"unproven": [{"run_id": "r", "step": "01-x", "path": "/a", "running": False}]},
            "present",
        ),
        # it may still be rolled back
        ({"unproven": [{"run_id": "r", "step": "01-x", "path": "/a", "running": True}]}, "unknown"),
        (
            {
                "down": [
                    {
                        "run_id": "r",
                        "step": "01-x",
                        "component": SCHEDULER,
                        "path": "/a",
                        "reason": "component down",
                    }
                ]
            },
            "present",
        ),
        (None, "not_applicable"),
    ],
)
def test_interrupted_change(world, journal, verdict):
    world.documents["m2"]["collectors"]["journal"] = {
        "status": "ok" if journal else "absent",
        "data": journal,
    }
    assert verdicts(world.judge(), "KM902")["m2"] == verdict


def test_all_that_was_left_open_is_one_finding_that_tells_each(world):
    """One repair ends it: the component that does not run must not hide behind a file."""
    world.documents["m2"]["collectors"]["journal"] = {
        "status": "ok",
        "data": {
            "pending": [
                {"run_id": "r", "what": "edit_manifest: /a", "state": "before", "path": "/a"}
            ],
            "down": [
                {
                    "run_id": "q",
                    "step": "01-x",
                    "component": SCHEDULER,
                    "path": "/b",
                    "reason": "component down",
                }
            ],
        },
    }
    (found,) = [item for item in world.judge().findings if item.code == "KM902"]
    facts(found.summary, "run r", "1 more")
    assert [proof.path for proof in found.evidence] == ["/a", "/b"]
    facts_of_each(
        (proof.text for proof in found.evidence),
        ("edit_manifest: /a", "as before"),
        ("component down",),
    )
