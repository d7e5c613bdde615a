# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Levels that only a restart raises.

The step of a repair where it is allowed by name, and else a sentence.
"""

from __future__ import annotations

import base64

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    plan as capture_plan,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    restart_steps,
)

MANAGER, ALLOW = "kube-controller-manager", ("capture_restart",)
RUN = "20261121T090000Z-1a2b3c"


def made(world, *components, allow=ALLOW, host="m2"):
    documents = [*world.documents.values(), *([world.api] if world.api else [])]
    targets = capture_plan.plan(RUN, documents, components, 4, 60).targets
    return restart_steps.add(
        [(one, "it has no endpoint") for one in targets if one.on == host], documents, allow, RUN
    )


def test_the_step_sets_the_level_and_is_proven_by_it_alone(world):
    (target,), refused = made(world, MANAGER)
    step = target.step
    assert refused == ()
    assert (step["id"], step["remedy"], step["host"], step["risk"]) == (
        f"raise-{MANAGER}",
        "edit_manifest",
        "m2",
        2,
    )
    assert step["expect"]["flags"] == {"v": "4"}
    assert step["expect"]["elect"] is False
    assert step["expect"]["restart"] == "kubelet"
    assert step["expect"]["component"] == MANAGER
    assert step["change"]["path"] == f"/etc/kubernetes/manifests/{MANAGER}.yaml"
    ((_begin, _end, old, new),) = step["change"]["splices"]
    assert "--v=4" in base64.b64decode(new).decode()
    assert "leader-elect" not in base64.b64decode(new).decode()
    assert base64.b64decode(old) == b""
    assert "+    - --v=4\n" in step["diff"]


def test_a_level_that_is_there_is_replaced(world):
    world.manifest("m2", MANAGER, "--leader-elect=true", "--v=2")
    world.run("m2", MANAGER, "--leader-elect=true", "--v=2", elect=True)
    (target,), _refused = made(world, MANAGER)
    assert target.former == 2
    assert "-    - --v=2\n+    - --v=4\n" in target.step["diff"]


@pytest.mark.parametrize(
    ("component", "allow", "host", "word"),
    [
        (MANAGER, [], "m2", "-e kubemend_allow=capture_restart"),
        (MANAGER, ["pending_changes"], "m2", "-e kubemend_allow=capture_restart"),
        ("kubelet", [], "w1", "-e kubemend_allow=capture_restart"),
    ],
)
def test_what_is_not_restarted_says_why(world, component, allow, host, word):
    found, (why,) = made(world, component, allow=allow, host=host)
    assert found == ()
    assert f"{component} of {host} stays at level 0: it has no endpoint; " in why
    assert word in why


def test_what_a_repair_would_refuse_is_refused(world):
    world.data("m2", "kubelet")["unit"]["active_state"] = "inactive"
    world.data("m2", "kubelet")["process"] = None
    found, (why,) = made(world, MANAGER)
    assert found == ()
    assert "repair the kubelet of m2 first" in why


@pytest.mark.parametrize(("component", "host"), [(MANAGER, "m2"), ("kubelet", "w1")])
def test_nothing_is_restarted_for_a_log_on_a_node_that_somebody_took_out(world, component, host):
    world.data(host, "kubelet")["unit"]["name"] = "kubelet.service"
    next(one for one in world.data("api", "nodes")["items"] if one["name"] == host).update(
        unschedulable=True
    )
    found, (why,) = made(world, component, host=host)
    assert found == ()
    assert (
        f"another client cordoned {host}; allow it with -e kubemend_allow=capture_restart,fenced"
        in why
    )


def test_nothing_is_restarted_for_a_log_while_the_cluster_accepts_no_writes(world):
    world.data("m1", "etcd").update(
        status={"version": "3.6.16", "leader": "1", "errors": ["memberID:1 alarm:NOSPACE"]}
    )
    found, (why,) = made(world, MANAGER)
    assert found == ()
    assert "KM115" in why


def test_a_component_of_no_manifest_is_refused(world):
    world.data("m2", "manifests")["files"] = []
    found, (why,) = made(world, MANAGER)
    assert found == ()
    assert "runs from no manifest" in why


def test_nothing_to_raise_asks_nothing():
    assert restart_steps.add([], [], ALLOW, RUN) == ((), ())


SERVER = "kube-apiserver"


def test_an_api_server_is_restarted_while_the_rest_of_the_control_plane_is_whole(world):
    for host in ("m1", "m2", "m3"):
        world.manifest(host, SERVER, f"--advertise-address=10.0.0.{host[1]}")
    found, refused = made(world, SERVER)
    assert refused == ()
    (target,) = found
    assert (target.step["id"], target.step["remedy"], target.step["expect"]["component"]) == (
        f"raise-{SERVER}",
        "edit_manifest",
        SERVER,
    )
    assert target.step["expect"]["elect"] is False
    assert "10.0.0.1:6443" in target.step["guard"]["api_servers"]


@pytest.mark.parametrize(
    ("lose", "word"),
    [
        (
            lambda world: world.data("m3", "instances").update(processes=[]),
            "kube-apiserver of m3 does not run",
        ),
        (lambda world: world.documents["m3"].update(status="unreachable"), "m3 does not answer"),
    ],
)
def test_an_api_server_is_not_restarted_while_another_member_is_lost(world, lose, word):
    world.manifest("m2", SERVER, "--advertise-address=10.0.0.2")
    lose(world)
    found, (why,) = made(world, SERVER)
    assert found == ()
    assert "only while the rest of the control plane is whole" in why
    assert word in why


def test_masters_that_were_not_looked_at_are_named_with_the_way_out(world):
    world.manifest("m2", SERVER, "--advertise-address=10.0.0.2")
    for host in ("m1", "m3"):
        world.documents.pop(host)
    found, (why,) = made(world, SERVER)
    assert found == ()
    assert "was not looked at: run without --limit" in why
    assert "m1" in why
    assert "m3" in why


def test_masters_that_limit_left_out_are_named_too(world):
    """They are hosts of the inventory, and the evidence says that they were not asked."""
    world.manifest("m2", SERVER, "--advertise-address=10.0.0.2")
    for host in ("m1", "m3"):
        world.documents[host].update(status="not_asked", collectors={})
    found, (why,) = made(world, SERVER)
    assert found == ()
    assert "m1, m3 was not looked at: run without --limit" in why


def test_the_only_api_server_is_never_restarted(world):
    single = type(world)(1)
    del single.data("m1", "etcd")["members"][1:]
    single.manifest("m1", SERVER, "--advertise-address=10.0.0.1")
    found, (why,) = made(single, SERVER, host="m1")
    assert found == ()
    assert "never restarted for a log" in why
