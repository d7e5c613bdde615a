# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of a kubelet's unit, on RHEL 7 to Debian 13, and what that means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    systemd_unit as unit_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    systemd_unit,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.systemd_unit import (
    at_boot,
    fence,
    restarted,
    state,
    stopped_by_hand,
)
from tests.unit.support.facts import facts

PROFILE = settings(deadline=None, database=None, derandomize=True, max_examples=200)


def unit(facts):
    return systemd_unit.unit(decode(unit_answer.Unit, facts).answer)


def of(
    active="active",
    sub="running",
    file_state="enabled",
    result="success",
    name="kubelet.service",
    **facts,
):
    return unit(
        {
            "name": name,
            "load_state": "loaded",
            "active_state": active,
            "sub_state": sub,
            "unit_file_state": file_state,
            "result": result,
            "exec_main_status": 0,
            "n_restarts": 0,
            "main_pid": 0,
            **facts,
        }
    )


# (where, unit, at boot, state). What `systemctl show` says there.
SEEN = [
    (
        "RHEL 7 (219): incident D, after the power cut",
        of("inactive", "dead", "disabled", n_restarts=None),
        "no",
        "stopped",
    ),
    (
        "RHEL 7: a wrong cgroup driver",
        of("activating", "auto-restart", result="exit-code", exec_main_status=255, n_restarts=None),
        "yes",
        "looping",
    ),
    (
        "RHEL 7: given up (kubernetes#54542)",
        of("failed", "failed", "disabled", "start-limit", exec_main_status=2, n_restarts=None),
        "no",
        "gave_up",
    ),
    ("Ubuntu 20.04 (245): well", of(main_pid=742), "yes", "running"),
    (
        "Ubuntu 22.04 (249): swap",
        of("activating", "auto-restart", result="exit-code", exec_main_status=1, n_restarts=871),
        "yes",
        "looping",
    ),
    (
        "Ubuntu 24.04 (255): about to be started",
        of(
            "activating",
            "auto-restart-queued",
            result="exit-code",
            exec_main_status=1,
            n_restarts=3,
        ),
        "yes",
        "looping",
    ),
    ("Debian 11 (247): stopped by hand", of("inactive", "dead"), "yes", "stopped"),
    (
        "Debian 12 (252): given up",
        of("failed", "failed", result="start-limit-hit", exec_main_status=1, n_restarts=5),
        "yes",
        "gave_up",
    ),
    (
        "Debian 12: 205/LIMITS, Restart=no",
        of("failed", "failed", result="exit-code", exec_main_status=205),
        "yes",
        "failed",
    ),
    (
        "Debian 12: masked and stopped",
        of("inactive", "dead", "masked", load_state="masked"),
        "no",
        "fenced",
    ),
    (
        "Debian 13 (257): masked under /run",
        of("inactive", "dead", "masked-runtime", load_state="masked"),
        "unknown",
        "fenced",
    ),
    (
        "masked while it runs",
        of(file_state="masked", load_state="masked", main_pid=9),
        "no",
        "running",
    ),
    (
        "killed for memory",
        of("activating", "auto-restart", result="oom-kill", exec_main_status=9),
        "yes",
        "looping",
    ),
    ("no such unit", of("inactive", "dead", "", load_state="not-found"), "no", "absent"),
    (
        "a file that systemd cannot read",
        of("inactive", "dead", "", load_state="bad-setting"),
        "no",
        "stopped",
    ),
    ("k3s", of(name="k3s.service", main_pid=1), "yes", "running"),
    (
        "k3s installed with INSTALL_K3S_SKIP_ENABLE",
        of("inactive", "dead", "disabled", name="k3s-agent.service"),
        "no",
        "stopped",
    ),
    (
        "rke2 waiting for its API",
        of("activating", "start", name="rke2-server.service"),
        "yes",
        "starting",
    ),
    (
        "microk8s",
        of(
            "activating",
            "auto-restart",
            result="exit-code",
            exec_main_status=1,
            n_restarts=259,
            name="snap.microk8s.daemon-kubelite.service",
        ),
        "yes",
        "looping",
    ),
    (
        "a snap that was disabled",
        of("inactive", "dead", "disabled", name="snap.kubelet-eks.daemon.service"),
        "no",
        "stopped",
    ),
    (
        "kubespray's unit, enabled under /run",
        of(file_state="enabled-runtime", main_pid=3),
        "no",
        "running",
    ),
    ("made by systemd-run", of(file_state="transient", main_pid=3), "no", "running"),
    ("stopping", of("deactivating", "stop-sigterm"), "yes", "stopping"),
    ("reading its configuration anew", of("reloading", "reload", main_pid=5), "yes", "running"),
]


@pytest.mark.parametrize(
    ("one", "boot", "kind"), [case[1:] for case in SEEN], ids=[case[0] for case in SEEN]
)
def test_what_was_seen(one, boot, kind):
    assert (at_boot(one).answer, state(one).kind) == (boot, kind)
    assert at_boot(one).why
    assert state(one).why


@pytest.mark.parametrize(
    ("result", "status", "said"),
    [
        ("exit-code", 255, "status 255"),
        ("signal", 9, "status 9"),
        ("core-dump", 6, "status 6"),
        ("timeout", 0, None),
        ("exit-code", None, None),
    ],
)
def test_how_it_ended_is_said(result, status, said):
    why = state(of("failed", "failed", result=result, exec_main_status=status)).why
    assert result in why
    assert said in why if said else "status" not in why


@pytest.mark.parametrize(
    ("file_state", "answer"),
    [
        ("enabled", "yes"),
        ("enabled-runtime", "no"),
        ("disabled", "no"),
        ("linked", "no"),
        ("linked-runtime", "no"),
        ("masked", "no"),
        ("masked-runtime", "unknown"),
        ("static", "unknown"),
        ("indirect", "unknown"),
        ("alias", "unknown"),
        ("generated", "unknown"),
        ("transient", "no"),
        ("bad", "no"),
        ("invalid", "no"),
        ("", "unknown"),
        ("something new", "unknown"),
    ],
)
def test_states_of_a_unit_file(file_state, answer):
    assert at_boot(of(file_state=file_state)).answer == answer


def test_a_mask_is_named_and_where_it_is():
    fences = [fence(of(file_state=word)) for word in ("enabled", "disabled", "masked")]
    assert fences[:2] == [None, None]
    facts(fences[2], "masked")
    assert "boot" not in fences[2]
    facts(fence(of(file_state="masked-runtime")), "masked", "next boot")
    assert fence(of(file_state="", load_state="masked")) == fences[2]
    assert at_boot(of(file_state="", load_state="masked")).answer == "no"
    facts(fence(of(file_state="masked-runtime", load_state="masked")), "masked", "next boot")


@pytest.mark.parametrize(
    ("one", "answer"),
    [
        (of("inactive", "dead"), "yes"),
        (of("inactive", "dead", "disabled"), "unknown"),
        (of("inactive", "dead", result="exit-code"), "unknown"),
        (of(), "no"),
        (of("activating", "auto-restart", result="exit-code"), "no"),
        (of("failed", "failed", result="exit-code"), "no"),
        (of("deactivating", "stop"), "unknown"),
        (unit(None), "unknown"),
    ],
)
def test_stopped_by_hand(one, answer):
    assert stopped_by_hand(one) == answer


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        ({"n_restarts": 3, "main_pid": 10}, {"n_restarts": 4, "main_pid": 11}, "yes"),
        ({"n_restarts": 3, "main_pid": 10}, {"n_restarts": 3, "main_pid": 10}, "no"),
        (
            {"n_restarts": 3, "main_pid": 10},
            {"n_restarts": 0, "main_pid": 11},
            "unknown",
        ),  # by hand
        ({"n_restarts": 0, "main_pid": 10}, {"n_restarts": 0, "main_pid": 11}, "unknown"),
        # RHEL 7 has nothing better
        ({"n_restarts": None, "main_pid": 10}, {"n_restarts": None, "main_pid": 11}, "yes"),
        ({"n_restarts": None, "main_pid": 10}, {"n_restarts": None, "main_pid": 10}, "no"),
        ({"n_restarts": 1, "main_pid": 0}, {"n_restarts": 1, "main_pid": 0}, "unknown"),
        ({"name": "k3s.service"}, {}, "unknown"),
    ],
)
def test_two_looks(before, after, answer):
    assert restarted(of(**before), of(**after)) == answer
    assert (state(of(**after), of(**before)).kind == "looping") is (answer == "yes")


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("kubelet.service", "kubelet"),
        ("k3s.service", "k3s"),
        ("k3s-agent.service", "k3s"),
        ("rke2-server.service", "rke2"),
        ("rke2-agent", "rke2"),
        ("snap.microk8s.daemon-kubelite.service", "snap"),
        ("snap.kubelet-eks.daemon.service", "snap"),
        ("containerd.service", "other"),
        ("k3sx.service", "other"),
    ],
)
def test_families(name, family):
    assert of(name=name).family == family


def test_a_reason_names_result_and_status():
    assert (
        "result exit-code, status 255"
        in state(of("activating", "auto-restart", result="exit-code", exec_main_status=255)).why
    )
    assert (
        "snap"
        in at_boot(of(file_state="disabled", name="snap.microk8s.daemon-kubelite.service")).why
    )
    assert "disabled" in state(of("inactive", "dead", "disabled")).why
    assert "it was stopped" in state(of("inactive", "dead")).why


@pytest.mark.parametrize(
    "facts",
    [None, [], "x", {}, {"active_state": "a\nb"}, {"active_state": "x" * 999}, {"result": 1}],
)
def test_nothing_known_is_unknown(facts):
    one = unit(facts)
    assert (state(one).kind, at_boot(one).answer, stopped_by_hand(one), one.masked) == (
        "unknown",
        "unknown",
        "unknown",
        False,
    )


WORDS = st.sampled_from(
    [
        "",
        "loaded",
        "masked",
        "active",
        "inactive",
        "failed",
        "activating",
        "auto-restart",
        "success",
        "exit-code",
        "enabled",
        "disabled",
        "static",
        "masked-runtime",
        "not-found",
        "error",
        "start-limit",
    ]
)
FACTS = st.dictionaries(
    st.sampled_from(
        [
            "name",
            "load_state",
            "active_state",
            "sub_state",
            "unit_file_state",
            "result",
            "exec_main_status",
            "n_restarts",
            "main_pid",
        ]
    ),
    WORDS
    | st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.lists(st.text(max_size=3)),
)
KINDS = {
    systemd_unit.RUNNING,
    systemd_unit.STARTING,
    systemd_unit.LOOPING,
    systemd_unit.GAVE_UP,
    systemd_unit.FAILED,
    systemd_unit.STOPPED,
    systemd_unit.STOPPING,
    systemd_unit.FENCED,
    systemd_unit.ABSENT,
    systemd_unit.UNKNOWN,
}


@PROFILE
@given(FACTS, FACTS)
def test_whatever_a_node_says(before, after):
    one = unit(after)
    found = state(one, unit(before))
    assert found.kind in KINDS
    assert found.why.isprintable()
    assert at_boot(one).answer in ("yes", "no", "unknown")
    assert not (one.masked and at_boot(one).answer == "yes")
    assert not (stopped_by_hand(one) == "yes" and one.masked)
