# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of k3s and RKE2, and the servers that an agent does not reach."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import rancher_unit

LOST = (
    'time="2024-06-14T12:37:04Z" level=error msg="Remotedialer proxy error; reconnecting..."'
    ' error="dial tcp {}: connect: no route to host" url="wss://x/v1-rke2/connect"'
)


def document(unit="rke2-agent.service", state="active", last=0.0, lines=(), words=()):
    entries = [{"count": 9, "minutes": 9, "last": 1.8e9 + last, "line": line} for line in lines]
    rows = [{"component": "rke2", "source": unit, "entries": entries}]
    row = {"name": unit, "active_state": state, "start_words": list(words)}
    answers = {
        "kubelet": {"unit": row, "argv": ["kubelet"]},
        "repeated_errors": {"read_at": 1.8e9, "components": rows},
    }
    records = {name: {"status": "ok", "data": data} for name, data in answers.items()}
    return {"host": "w1", "collectors": records}


@pytest.mark.parametrize(
    ("unit", "words", "program", "is_agent"),
    [
        ("rke2-agent.service", (), "rke2", True),
        ("rke2-server.service", (), "rke2", False),
        ("k3s-agent.service", (), "k3s", True),
        ("k3s.service", (), "k3s", False),
        ("k3s.service", ("/usr/local/bin/k3s", "agent"), "k3s", True),
    ],
)
def test_the_unit_of_a_program(unit, words, program, is_agent):
    found = rancher_unit.extract(document(unit, words=words))
    assert found is not None
    assert (found.program, found.name, found.is_agent) == (program, unit, is_agent)
    assert found.short_name == unit.removesuffix(".service")
    assert program in found.servers_file


@pytest.mark.parametrize("unit", ["kubelet.service", "k0sworker.service"])
def test_other_units(unit):
    assert rancher_unit.extract(document(unit)) is None


@pytest.mark.parametrize(
    ("state", "is_stopped"),
    [("inactive", True), ("failed", True), ("active", False), ("activating", False)],
)
def test_a_unit_that_is_stopped(state, is_stopped):
    found = rancher_unit.extract(document(state=state))
    assert found is not None
    assert found.is_stopped is is_stopped


@pytest.mark.parametrize(
    ("place", "last", "lost"),
    [
        ("10.0.0.9:9345", 0.0, (("10.0.0.9", "9345"),)),
        ("[fd00::9]:9345", 0.0, (("fd00::9", "9345"),)),
        ("10.0.0.9:9345", -400.0, ()),
    ],
)
def test_a_server_that_an_agent_does_not_reach(place, last, lost):
    found = rancher_unit.extract(document(last=last, lines=[LOST.format(place)] * 2))
    assert found is not None
    assert found.lost == lost
    assert bool(found.lines) is bool(lost)


def test_a_server_has_no_tunnel():
    found = rancher_unit.extract(document("rke2-server.service", lines=[LOST.format("10.0.0.9:1")]))
    assert found is not None
    assert found.lost == ()


def configured(*settings, error=None, words=()):
    rows = [{"line": 1, "key": key, "value": value} for key, value in settings]
    file = {"path": "/etc/rancher/k3s/config.yaml", "error": error, "settings": rows}
    made = document("k3s.service", words=words)
    kubelet = made["collectors"]["kubelet"]["data"]
    kubelet["distribution"] = {"program": "k3s", "files": [file]}
    found = rancher_unit.extract(made)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "is_single"),
    [
        ("192.0.2.11", True),
        ("fd00::11", True),
        ("0.0.0.0", False),
        ("::", False),
        ("127.0.0.1", False),
        ("node.example.org", False),
    ],
)
def test_addresses_of_which_the_loopback_is_no_part(value, is_single):
    found = configured(("bind-address", value), ("kubelet-arg", f"--address={value}"))
    for place in (found.bind_address, found.kubelet_address):
        assert (place is not None) is is_single
        assert place is None or (place.value, place.line) == (value, 1)


def test_the_last_address_counts():
    found = configured(("kubelet-arg", "address=192.0.2.11"), ("kubelet-arg", "address=0.0.0.0"))
    assert found.kubelet_address is None


@pytest.mark.parametrize(
    ("settings", "words", "is_without"),
    [
        ((("egress-selector-mode", "disabled"),), (), True),
        ((), ("k3s", "server", "--egress-selector-mode=disabled"), True),
        ((("egress-selector-mode", "pod"),), (), False),
        ((), (), False),
    ],
)
def test_a_server_without_its_tunnel(settings, words, is_without):
    assert configured(*settings, words=words).without_tunnel is is_without


def test_a_configuration_that_is_not_known():
    assert not configured(error="denied").is_read
    assert configured().is_read
    found = rancher_unit.extract(document("k3s.service"))
    assert found is not None
    assert not found.is_read
