# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Jobs that may have had too many pods."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    jobs,
)
from tests.unit.support import answers

JOBS = answers.recorded("v1.18.4-gpu-plugin-gone", "m1.cluster", "jobs")


def test_a_job_with_more_pods_than_it_needs():
    answer = answers.typed(jobs.Jobs, JOBS)
    assert (answer.listed, answer.events_oldest) == (1, "2026-11-21T17:32:04Z")
    (job,) = answer.items
    assert (job.namespace, job.name, job.owner) == ("lab-jobs-d2c3e3", "work", None)
    assert job.uid == "014e0e92-c832-4fec-b895-0374390478ff"
    assert job.created == "2026-11-21T17:32:04Z"
    assert (job.completions, job.parallelism) == (1, 1)
    assert (job.active, job.succeeded, job.failed) == (1, 0, 3)
    assert (job.suspend, job.finished) == (False, False)
    assert len(job.pods) == len(job.events) == 4
    assert [pod.reason for pod in job.pods][:3] == ["UnexpectedAdmissionError"] * 3
    assert {event.pod for event in job.events} == {pod.name for pod in job.pods}


def test_completions_of_another_type_are_unknown():
    decoded = answers.changed(jobs.Jobs, JOBS, "items", 0, "completions", value="1")
    assert decoded.malformed == ("items[0].completions",)
    assert decoded.answer.items[0].completions is None
    assert decoded.answer.items[0].parallelism == 1


def test_a_job_whose_completions_are_not_set():
    decoded = answers.changed(jobs.Jobs, JOBS, "items", 0, "completions", value=None)
    assert (decoded.malformed, decoded.answer.items[0].completions) == ((), None)


def test_a_pod_of_another_type_is_dropped():
    decoded = answers.changed(jobs.Jobs, JOBS, "items", 0, "pods", 1, value="work-w99jd")
    assert decoded.malformed == ("items[0].pods[1]",)
    assert len(decoded.answer.items[0].pods) == 3
