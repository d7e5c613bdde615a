# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first lines of a report."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    Coverage,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    groups,
    headline,
)
from tests.browser import fleet


def test_the_first_line_has_cluster_release_nodes_seconds_and_mode():
    result = replace(
        fleet.result(5), coverage=(Coverage("0123456789abcdef", 6, 4, (("w9", "no_host"),)),)
    )
    run = fleet.run(symptom=False)
    parts = headline.identity(result, run).split(headline.SEPARATOR)
    assert parts == [
        "kubemend audit",
        "cluster 01234567",
        "Kubernetes v1.36.3",
        "4 of 6 nodes read",
        "9 s",
        "nothing was changed",
    ]
    assert "prod" in headline.identity(
        result, replace(run, cluster_names={"0123456789abcdef": "prod"})
    )


def test_hosts_that_are_no_nodes_of_the_api_and_were_not_read_are_counted():
    left = (("w4", "unreachable"), ("w8", "unreachable"), ("w9", "unreachable"))
    result = replace(fleet.result(5), coverage=(Coverage("0123456789abcdef", 4, 3, left),))
    assert headline.read("0123456789abcdef", result) == "3 of 4 nodes read, 2 other hosts not read"
    whole = replace(fleet.result(5), coverage=(Coverage("0123456789abcdef", 4, 4, left[:1]),))
    assert headline.read("0123456789abcdef", whole) == "4 of 4 nodes read, 1 other host not read"


def test_findings_for_information_are_counted_too():
    assert list(headline.counts(fleet.result(5))) == ["critical", "warning", "info", "unknown"]


def test_ages_relate_to_the_evidence_of_a_replay():
    run = replace(fleet.run(), mode="replay", evidence_time="2025-01-01T00:00:00Z")
    assert str(headline.now(run)).startswith("2025")
    assert headline.now(replace(run, evidence_time="")) is None
    assert str(headline.now(fleet.run())).startswith("2026")


def test_chains_are_counted_only_where_there_are_some():
    findings = fleet.result(5).findings
    entries = groups.chain(groups.group(findings))
    assert headline.chains(entries) == ""
    kcm = replace(findings[0], component="kube-controller-manager")
    linked = groups.chain(groups.group([kcm, *findings[1:]]))
    # One of the two entries at the top explains nothing: it is no cause.
    assert [entry.depth for entry in linked].count(0) == 2
    assert headline.chains(linked) == "3 findings, 1 cause explains 1 of them"


def test_a_further_cause_is_counted_where_it_explains_a_finding():
    jobs, first, second, third = (
        groups.group([replace(fleet.result(5).findings[0], code=code, host=host)])[0]
        for code, host in (("KM113", "m1"), ("KM101", "m1"), ("KM102", "m2"), ("KM102", "m3"))
    )
    entries = [
        groups.Entry(first, 0, (), (jobs,)),
        groups.Entry(jobs, 1, (groups.Cause("KM102", ("m3",)),), ()),
        groups.Entry(second, 0, (), ()),
        groups.Entry(third, 0, (), ()),
    ]
    assert headline.chains(entries) == "4 findings, 2 causes explain 1 of them"
    entries[1] = replace(entries[1], others=(groups.Cause("KM102"),))
    assert headline.chains(entries) == "4 findings, 3 causes explain 1 of them"
