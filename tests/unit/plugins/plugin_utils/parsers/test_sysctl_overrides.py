# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings once a boot is over.

What ufw, systemd-networkd and tuned make of what sysctl.d says, and what KM407 and KM520 say of it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    limits as limits_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    limits as model_limits,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    persistent_sysctl,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    sysctl_d,
    sysctl_overrides,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    kernel_settings,
)
from tests.unit.plugins.plugin_utils.faults.node.test_boot import Node as BootNode
from tests.unit.support.fake_limits import Node as LimitsNode
from tests.unit.support.fake_limits import record
from tests.unit.support.file_evidence import files

FORWARD, ALL, INSTANCES, FILE_MAX = (
    "net.ipv4.ip_forward",
    "net.ipv4.conf.all.forwarding",
    model_limits.INSTANCES,
    model_limits.FILE_MAX,
)
CONF, OURS, UFW, PROFILE = (
    "/etc/sysctl.d/50-app.conf",
    persistent_sysctl.FILE,
    "/etc/ufw/sysctl.conf",
    "/usr/lib/tuned/mine/tuned.conf",
)
KEYS = (FORWARD, ALL, INSTANCES, FILE_MAX)


def ufw(text):
    return {"ufw": {"sysctl": record(UFW, text)}}


def row(key, value, path=PROFILE, line=4):
    return {"path": path, "line": line, "key": key, "value": value}


def tuned(*rows, reapply=None, unknown=()):
    return {"tuned": {"reapply": reapply, "rows": list(rows), "unknown": list(unknown)}}


def networkd(*rows):
    return {"networkd": list(rows)}


NETWORK = "/etc/systemd/network/10-wan.network"
GLOBAL = "/etc/systemd/networkd.conf"


def typed(late):
    """Return the overrides as the decoder reads them, whatever they are."""
    return decode(limits_answer.Limits, {"late": late}).answer.late


def boots(text, late):
    """Return {key: (value, path, line, who)}."""
    conf = files([record(CONF, text)])
    found = sysctl_overrides.at_boot(typed(late), sysctl_d.at_boot(conf, KEYS), KEYS)
    return {key: (one.value, one.path, one.line, one.who) for key, one in found.items()}


@pytest.mark.parametrize(
    ("text", "late", "wanted"),
    [
        (f"{FORWARD}=1\n", None, {FORWARD: ("1", CONF, 1, "")}),
        (
            f"{FORWARD}=1\n",
            {"ufw": None, "networkd": None, "tuned": None},
            {FORWARD: ("1", CONF, 1, "")},
        ),
        (f"{FORWARD}=1\n", ufw("# x\nnet/ipv4/ip_forward=0\n"), {FORWARD: ("0", UFW, 2, "ufw")}),
        (f"{FORWARD}=1\n", ufw("net/ipv4/conf/all/forwarding=0\n"), {ALL: ("0", UFW, 1, "ufw")}),
        (f"{FORWARD}=1\n", ufw("#net/ipv4/ip_forward=0\n"), {FORWARD: ("1", CONF, 1, "")}),
        (
            "",
            networkd(row("IPForward", "yes", NETWORK)),
            {FORWARD: ("1", NETWORK, 4, "systemd-networkd")},
        ),
        (
            f"{FORWARD}=0\n",
            networkd(row("IPForward", "ipv4", NETWORK)),
            {FORWARD: ("1", NETWORK, 4, "systemd-networkd")},
        ),
        (
            f"{FORWARD}=1\n",
            networkd(row("IPForward", "no", NETWORK), row("IPForward", "ipv6", NETWORK)),
            {FORWARD: ("1", CONF, 1, "")},
        ),
        (
            f"{FORWARD}=1\n",
            networkd(row("IPForward", "yes", NETWORK)),
            {FORWARD: ("1", CONF, 1, "")},
        ),
        (
            "",
            networkd(row("IPMasquerade", "both", NETWORK)),
            {FORWARD: ("1", NETWORK, 4, "systemd-networkd")},
        ),
        (
            f"{FORWARD}=1\n",
            networkd(row("IPv4Forwarding", "no", GLOBAL)),
            {ALL: ("0", GLOBAL, 4, "systemd-networkd")},
        ),
        # of one interface alone
        (
            f"{FORWARD}=1\n",
            networkd(row("IPv4Forwarding", "no", NETWORK)),
            {FORWARD: ("1", CONF, 1, "")},
        ),
        (f"{INSTANCES}=512\n", tuned(row(INSTANCES, "128")), {INSTANCES: ("512", CONF, 1, "")}),
        (
            f"{INSTANCES}=512\n",
            tuned(row(INSTANCES, "128"), reapply="0"),
            {INSTANCES: ("128", PROFILE, 4, "tuned")},
        ),
        ("", tuned(row(INSTANCES, "8192")), {INSTANCES: ("8192", PROFILE, 4, "tuned")}),
        ("", tuned(row(INSTANCES, ">8192")), {INSTANCES: ("?", PROFILE, 4, "tuned")}),
        (
            f"{INSTANCES}=9000\n",
            tuned(row(INSTANCES, ">8192"), reapply="false"),
            {INSTANCES: ("9000", CONF, 1, "")},
        ),
        (
            f"{INSTANCES}=900\n",
            tuned(row(INSTANCES, ">8192"), reapply="no"),
            {INSTANCES: ("8192", PROFILE, 4, "tuned")},
        ),
        (
            f"{INSTANCES}=900\n",
            tuned(row(INSTANCES, "${x}"), reapply="0"),
            {INSTANCES: ("${x}", PROFILE, 4, "tuned")},
        ),
        (
            f"{FORWARD}=1\n",
            {**ufw("net/ipv4/ip_forward=0\n"), **tuned(row("vm.swappiness", "10"))},
            {FORWARD: ("1", CONF, 1, "")},
        ),
        # a profile without settings of the kernel reads no sysctl.d again
        (
            f"{FORWARD}=1\n",
            {**ufw("net/ipv4/ip_forward=0\n"), **tuned()},
            {FORWARD: ("0", UFW, 1, "ufw")},
        ),
        (
            f"{FORWARD}=1\n",
            {**ufw("net/ipv4/ip_forward=0\n"), **tuned(unknown=["lost"])},
            {FORWARD: ("0", UFW, 1, "ufw")},
        ),
        (
            f"{FORWARD}=1\n",
            {**networkd(row("IPv4Forwarding", "no", GLOBAL)), **tuned()},
            {ALL: ("0", GLOBAL, 4, "systemd-networkd")},
        ),
    ],
)
def test_who_has_the_last_word(text, late, wanted):
    assert boots(text, late) == wanted


NAMES = st.sampled_from(
    (
        "ufw",
        "networkd",
        "tuned",
        "rows",
        "sysctl",
        "path",
        "line",
        "key",
        "value",
        "text",
        "unknown",
        "reapply",
    )
)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
        max_leaves=20,
    )
)
def test_nothing_that_a_node_says_breaks_it(late):
    sysctl_overrides.unread(typed(late))
    assert {FORWARD} <= boots(f"{FORWARD}=1\n", late).keys() | {FORWARD}


@pytest.fixture
def limited(world):
    return LimitsNode(world)


def of(node, *codes):
    result = node.world.judge(faults=frozenset(codes))
    return [one for one in result.verdicts if one.host == "w1"], [
        one for one in result.findings if one.host == "w1"
    ]


def test_what_tuned_raises_lasts(limited):
    limited.seen["kernel"][INSTANCES] = "8192"
    assert [one.component for one in of(limited, "KM407")[1]] == [INSTANCES]
    limited.seen["late"] = tuned(row(INSTANCES, "8192"))
    assert of(limited, "KM407")[1] == []


def test_what_ufw_undoes_is_raised_in_its_line(limited):
    limited.seen["sysctl_files"] += [record(CONF, f"{INSTANCES} = 4096\n")]
    limited.seen["kernel"][INSTANCES] = "4096"
    assert of(limited, "KM407")[1] == []
    limited.seen["late"] = ufw("fs/inotify/max_user_instances=128\n")
    (found,) = of(limited, "KM407")[1]
    assert (
        f"{CONF}:1 says 4096, and {UFW}:1, which ufw sets after sysctl.d, says 128; the kernel has"
        " 4096 now" in found.summary
    )
    assert [(proof.path, proof.line) for proof in found.evidence] == [(CONF, 1), (UFW, 1)]
    documents = limited.world.documents
    result, clusters = fault_engine.evaluate_clusters(
        [*documents.values(), limited.world.api], faults=frozenset(("KM407",))
    )
    (step,) = plan.plan(
        result.findings,
        clusters,
        documents.__getitem__,
        plan.Consent(1),
        kernel_settings.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    assert (step.allowed, step.target, step.change["line"]) == (
        True,
        UFW,
        {"number": 1, "text": "fs/inotify/max_user_instances=128"},
    )
    assert step.note.startswith(
        f"{UFW}:1 says 128, which ufw sets after sysctl.d: it must read"
        " fs/inotify/max_user_instances=4096"
    )


def test_a_file_of_ufw_that_nobody_could_read_leaves_it_unknown(limited):
    limited.seen["late"] = {"ufw": {"sysctl": record(UFW, None, error="denied")}}
    assert [one.verdict for one in of(limited, "KM407")[0]] == ["unknown"]
    limited.seen["late"] = tuned(unknown=["lost"])
    assert [one.verdict for one in of(limited, "KM407")[0]] == ["unknown"]


@pytest.fixture
def booted(world):
    return BootNode(world)


def test_forwarding_that_ufw_takes_away_at_the_next_boot(booted):
    assert booted.judged("KM520")[0] == "clear"
    booted.limits["late"] = ufw("# ufw\nnet/ipv4/ip_forward=0\n")
    verdict, (found,) = booted.judged("KM520")
    assert verdict == "present"
    assert f"{UFW}:2 brings it back to 0 at the next boot" in found.summary
    assert found.evidence[0].path == UFW
    (step,) = booted.steps()
    assert (step.target, step.change["line"]) == (
        UFW,
        {"number": 2, "text": "net/ipv4/ip_forward=0"},
    )
    assert "+net/ipv4/ip_forward=1" in step.diff
    booted.limits["late"] = ufw("net/ipv4/conf/all/forwarding=0\n")
    assert booted.judged("KM520")[0] == "present"
    assert "+net/ipv4/conf/all/forwarding=1" in booted.steps()[0].diff
