# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence recorded from real clusters, judged again.

The verdicts that were checked by hand are in the same folder.

tests/fixtures/recorded/<version>-<incident>/ holds evidence as an audit wrote it and expected.json.
The evidence is recorded with `python -m tests.lab.support.playbook record`, that of pods-pending
and scheduler-out-of-reach by the lab's test_pending.py. A run with KUBEMEND_APPROVE=1 writes
expected.json, and a person then reads it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from tests.docs import examples

FOLDER = Path(__file__).resolve().parents[4] / "fixtures" / "recorded"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) if FOLDER.is_dir() else []


def rows(case: str) -> list[list]:
    """Return every verdict that says something, and every finding's place."""
    result = fault_engine.evaluate(
        evidence_sources.stream([str(FOLDER / case / "evidence")]), deep=True
    )
    told = [
        [
            item.verdict,
            item.code,
            item.host,
            item.component,
            sorted({lack.host for lack in item.missing}),
        ]
        for item in result.verdicts
    ]
    told += [
        [
            "finding",
            item.code,
            item.host,
            item.component,
            [proof.path for proof in item.evidence if proof.path],
        ]
        for item in result.findings
    ]
    return told + [
        ["not_judged", item.code, None, None, [item.reason]] for item in result.not_judged
    ]


@pytest.mark.parametrize("case", CASES)
def test_recorded_evidence_gives_the_verdicts_that_were_checked(case):
    path = FOLDER / case / "expected.json"
    found = rows(case)
    if os.environ.get("KUBEMEND_APPROVE") == "1":
        path.write_text(
            "[\n" + ",\n".join(json.dumps(row) for row in found) + "\n]\n", encoding="utf-8"
        )
    assert found == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_a_summary_leaves_its_node_to_the_line_above(case):
    """A report groups nodes with one sentence: it must not name one of them."""
    result = fault_engine.evaluate(
        evidence_sources.stream([str(FOLDER / case / "evidence")]), deep=True
    )
    for found in result.findings:
        assert "(namespace" not in found.summary
        if re.match("KM2|KM3[23]|KM509|KM512|KM518|KM607", found.code):
            words = re.findall(r"[\w.-]+", found.summary)
            assert not {*found.everywhere, found.node}.intersection(words)


RECORDED = {
    code: example for code, example in examples.read().items() if "::" not in example["source"]
}


@pytest.mark.parametrize("code", sorted(RECORDED))
def test_the_example_of_a_fault_s_page_is_what_its_recording_says(code):
    """`python -m tests.docs.examples` writes the examples."""
    example = RECORDED[code]
    assert examples.recorded(example["source"])[code] == example["text"]


def test_something_was_recorded():
    assert CASES


def test_the_reasons_name_files_that_exist():
    text = json.dumps(WITHOUT_RECORD)
    names = set(re.findall(r"[\w/]*test_\w+\.py", text))
    places = (FOLDER.parents[2], Path(__file__).parent, Path(__file__).parents[1])
    assert names
    assert [name for name in names if not any((at / name).exists() for at in places)] == []


@pytest.mark.parametrize("code", sorted(fault_engine.CATALOGUE))
def test_every_fault_was_judged_both_ways_on_real_evidence(code):
    """A predicate must have said present, clear and unknown of a real cluster's evidence."""
    seen = {
        row[0]
        for case in CASES
        for row in json.loads((FOLDER / case / "expected.json").read_text())
        if row[1] == code
    }
    missing = {"present", "clear", "unknown"} - seen
    excused = WITHOUT_RECORD.get(code, {})
    assert missing == set(excused), f"{code}: {missing} never recorded"


# What no lab cluster was made to show, with the reason; hand-written evidence in test_engine.py
# covers it where it exists.
WITHOUT_RECORD: dict[str, dict[str, str]] = {
    **{
        f"KM72{digit}": dict.fromkeys(
            ("present", "clear", "unknown"),
            "a recording is judged as an audit is; those of upgrade/ are before_upgrade's",
        )
        for digit in range(9)
    },
    "KM111": {
        "present": (
            "API servers on two stores cannot be made in one kubeadm cluster without wrecking it"
        )
    },
    "KM118": {
        "present": (
            "nearly all were recorded before repeated_errors was read;"
            " node/test_repeated_errors.py has them"
        )
    },
    "KM141": dict.fromkeys(
        ("present", "unknown"), "no lab fills a database; control_plane/test_etcd_space.py has some"
    ),
    "KM170": dict.fromkeys(
        ("present",),
        "recorded before api_server was read; control_plane/test_api_server.py has them",
    ),
    "KM171": dict.fromkeys(
        ("present",),
        "recorded before api_server was read; control_plane/test_api_server.py has them",
    ),
    "KM172": dict.fromkeys(
        ("present",),
        "no lab cluster is short of memory; control_plane/test_api_server.py has them",
    ),
    "KM173": dict.fromkeys(
        ("present",),
        "recorded before api_server was read; control_plane/test_api_server.py has them",
    ),
    "KM174": dict.fromkeys(
        ("present",),
        (
            "recorded before static_pod_paths was read;"
            " control_plane/test_static_pod_volumes.py has them"
        ),
    ),
    "KM175": dict.fromkeys(
        ("present",),
        "recorded before api_server was read; control_plane/test_api_server.py has them",
    ),
    "KM176": dict.fromkeys(
        ("present",),
        "recorded before webhooks were read; control_plane/test_admission.py has them",
    ),
    "KM177": dict.fromkeys(
        ("present",),
        "recorded before api_services were read; control_plane/test_admission.py has them",
    ),
    "KM178": dict.fromkeys(
        ("present",),
        (
            "a lab cluster has no address in front of its API servers;"
            " control_plane/test_api_address.py has them"
        ),
    ),
    "KM179": {
        "present": (
            "nearly all were recorded before component_units was read;"
            " control_plane/test_static_pod_volumes.py has them"
        )
    },
    "KM181": {
        "present": "no lab cluster has a proxy; control_plane/test_component_proxy.py has them"
    },
    "KM120": dict.fromkeys(
        ("present",),
        "recorded before certificates were read; control_plane/test_certificates.py has them",
    ),
    "KM532": dict.fromkeys(
        ("present",),
        "recorded before the networks of Nodes were read; node/test_pod_networks.py has them",
    ),
    "KM533": dict.fromkeys(
        ("present",),
        "recorded before resolvers were read; node/test_pod_resolver.py has them",
    ),
    "KM550": dict.fromkeys(
        ("present",),
        "recorded before system_pods was read; pods/test_system_pods.py has them",
    ),
    "KM560": dict.fromkeys(
        ("present",),
        "recorded before pods that run were read; pods/test_pod_errors.py has them",
    ),
    "KM561": dict.fromkeys(
        ("present",),
        "recorded before failed probes were read; pods/test_unready_pods.py has them",
    ),
    "KM180": dict.fromkeys(
        ("present",),
        "recorded before object_events were read; control_plane/test_object_events.py has them",
    ),
    "KM564": dict.fromkeys(
        ("present",),
        "recorded before failed_units were read; node/test_failed_units.py has them",
    ),
    "KM562": dict.fromkeys(
        ("present",),
        "a node of the lab is a container, without a kernel; node/test_kernel_log.py has them",
    ),
    "KM534": dict.fromkeys(
        ("present",),
        "recorded before interfaces were read; node/test_network_settings.py has them",
    ),
    "KM535": dict.fromkeys(
        ("present",),
        "recorded before tables of the kernel were read; node/test_network_tables.py has them",
    ),
    "KM121": dict.fromkeys(
        ("present",),
        "recorded before certificates were read; control_plane/test_certificates.py has them",
    ),
    "KM122": dict.fromkeys(
        ("present",),
        "recorded before certificates were read; control_plane/test_certificate_trust.py has them",
    ),
    "KM123": dict.fromkeys(
        ("present",),
        "recorded before certificates were read; control_plane/test_authorities.py has them",
    ),
    "KM124": dict.fromkeys(
        ("present",),
        "recorded before certificates were read; control_plane/test_certificate_trust.py has them",
    ),
    "KM125": dict.fromkeys(
        ("present",),
        "recorded before certificates were read; control_plane/test_certificate_names.py has them",
    ),
    "KM126": dict.fromkeys(
        ("present",),
        "recorded before certificates were read; control_plane/test_kubeconfigs.py has them",
    ),
    "KM127": dict.fromkeys(
        ("present",),
        "recorded before certificates were read; control_plane/test_shared_keys.py has them",
    ),
    "KM128": {
        "present": "kubeadm gives these flags always; control_plane/test_signing.py has others",
    },
    "KM142": {"present": "no lab damages a member; control_plane/test_etcd_space.py has some"},
    "KM143": dict.fromkeys(
        ("present",), "no lab fills a database; control_plane/test_etcd_space.py has some"
    ),
    "KM536": {"present": "no lab has such a release; node/test_known_defects.py has them"},
    "KM144": {
        "present": "a lab's etcd does not sync; control_plane/test_etcd_speed.py has slow ones"
    },
    "KM148": dict.fromkeys(
        ("present",),
        "recorded clusters have no learner; control_plane/test_etcd_quorum.py",
    ),
    "KM149": dict.fromkeys(
        ("present",),
        "a lab has one release; control_plane/test_etcd_quorum.py has others",
    ),
    "KM150": {"present": "no lab damages a member; control_plane/test_etcd_quorum.py has some"},
    "KM530": {
        "present": (
            "nearly all were recorded before the capacity of Nodes was read;"
            " node/test_machine.py has them"
        )
    },
    "KM531": {
        "present": (
            "nearly all were recorded before the files of units were read;"
            " node/test_kubelet_program.py has them"
        )
    },
    "KM116": dict.fromkeys(
        ("present",),
        "components of recorded clusters are static pods; control_plane/test_services.py has units",
    ),
    "KM201": {"unknown": "no lab runs a vendor's build; scheduling/test_lost_nodes.py has some"},
    "KM225": {
        "present": "recorded clusters have no such pods; scheduling/test_unschedulable.py has them"
    },
    "KM329": {
        "present": (
            "on two CPUs what is left beside the one that is pinned is less than a whole one: the"
            " kubelet says OutOfcpu"
        )
    },
    "KM330": {"present": "the lab's kubelets run without a static memory manager"},
    "KM331": {"present": "the lab's nodes have one NUMA node"},
    "KM405": {
        "present": "file handles are the whole machine's: whoever uses them up stops the tests too"
    },
    "KM408": {
        "clear": (
            "no node of the lab has a limit of everybody that is below its services';"
            " limits/test_process.py has one"
        )
    },
    "KM411": {
        "present": (
            "no lab fills the machine that it runs on with threads; limits/test_kernel.py has some"
        )
    },
    "KM409": {
        "present": (
            "systemd gives a unit the most that it can have where the kernel refuses more; only"
            " other limits of older ones end so"
        )
    },
    "KM515": {
        "present": (
            "the lab's nodes share the machine's cgroups, of which its kubelets are told not to"
            " mind"
        )
    },
    "KM516": {
        "present": (
            "no kubelet of the lab has dockershim, and they were recorded before cri was asked;"
            " node/test_cgroup_driver.py has others"
        )
    },
    "KM517": {
        "present": (
            "the lab's kubelets may not change the machine's kernel; node/test_kubelet_down.py has"
            " their last log lines"
        )
    },
    "KM521": {
        "present": "recorded before the lab's folder-read-only; node/test_boot.py has others"
    },
    "KM522": dict.fromkeys(
        ("present", "clear"), "no machine of the lab has SELinux; node/test_boot.py has them"
    ),
    "KM523": {
        "present": "recorded before the lab's memory-pressure; node/test_network.py has others"
    },
    "KM526": dict.fromkeys(
        ("present", "unknown"),
        "the lab's nodes share the machine's clock; most were recorded before the controller noted"
        " its times",
    ),
    "KM527": {
        "present": (
            "no node of the lab runs firewalld or ufw; node/test_firewall.py has those of"
            " distributions"
        )
    },
    "KM528": dict.fromkeys(
        ("present", "clear"),
        "no machine of the lab has SELinux; node/test_firewall.py has its denials",
    ),
    "KM529": {
        "present": (
            "nearly all were recorded before repeated_errors was read;"
            " node/test_repeated_errors.py has them"
        )
    },
    "KM601": dict.fromkeys(
        ("present",),
        "recorded before memory cgroups were counted; pods/test_cgroups.py has them",
    ),
    "KM602": dict.fromkeys(("present",), "recorded before cni was read; pods/test_cni.py has them"),
    "KM603": dict.fromkeys(("present",), "recorded before cni was read; pods/test_cni.py has them"),
    "KM604": dict.fromkeys(("present",), "recorded before cni was read; pods/test_cni.py has them"),
    "KM607": dict.fromkeys(
        ("present",), "recorded before hangs was read; pods/test_hangs.py has them"
    ),
    "KM606": dict.fromkeys(
        ("present",), "recorded before pod_start was read; pods/test_volumes.py has them"
    ),
    "KM608": {
        "present": "kubeadm of the lab installs one release; pods/test_version_skew.py has others"
    },
    "KM609": dict.fromkeys(
        ("present",),
        "recorded before pod_states was read; pods/test_pod_states.py has them",
    ),
    "KM610": dict.fromkeys(
        ("present",), "recorded before pod_start was read; pods/test_node_pods.py has them"
    ),
    "KM611": dict.fromkeys(
        ("present",),
        "recorded before pod_states was read; pods/test_pod_states.py has them",
    ),
    **{
        code: dict.fromkeys(
            ("present", "clear"),
            "recorded before next_start was read; node/test_next_program_start.py,"
            " node/test_next_boot.py and node/test_automatic_upgrades.py have them",
        )
        for code in ("KM702", "KM703", "KM705", "KM706")
    },
    "KM701": {
        "present": (
            "no lab node was recorded with a configuration that its next start refuses;"
            " node/test_next_program_start.py has them"
        )
    },
    **{
        code: {
            "present": (
                "a recording of such a node is a next start's own; node/test_next_program_start.py"
                " has them"
            )
        }
        for code in ("KM700", "KM704")
    },
    "KM707": dict.fromkeys(
        ("present",), "no kubelet was recorded between; node/test_kubelet_next_configuration.py"
    ),
    "KM901": {"unknown": "a host that does not answer is the fault itself"},
    "KM905": dict.fromkeys(
        ("present", "unknown"),
        "every machine of the lab is a node, and its API names it; models/test_node_hosts.py has"
        " others",
    ),
    "KM903": {
        "present": (
            "recorded before levels were journalled; it is made real in"
            " tests/lab/tests/test_capture.py"
        )
    },
}


@pytest.mark.parametrize(
    ("case", "code", "because"),
    [
        # what keeps a kubelet from its start is one chain with it
        ("v1.36.3-pinning-policy-changed", "KM301", ()),
        ("v1.21.2-k3s-cpu-policy", "KM502", ("KM301",)),
        # the etcd of k3s is stopped with its unit
        ("v1.21.2-k3s-server-stopped", "KM145", ("KM502",)),
        ("v1.21.2-k3s-go-fault", "KM145", ("KM502",)),
    ],
)
def test_the_cause_of_a_finding_in_a_recording(case, code, because):
    result = fault_engine.evaluate(
        evidence_sources.stream([str(FOLDER / case / "evidence")]), deep=True
    )
    assert [item.because for item in result.findings if item.code == code] == [because]
