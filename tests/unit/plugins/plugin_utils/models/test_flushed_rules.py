# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What services of a firewall do to the rules of others, by what the collector boot reads."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import flushed_rules
from tests.unit.support.firewall_records import CONF as FIREWALLD_CONF
from tests.unit.support.firewall_records import red_hat, ubuntu
from tests.unit.support.loaded_rules import CONF, DEBIAN, FLUSH, OF_RED_HAT, RED_HAT, loader

CLOCK, UPTIME = 1800000000.0, 86400.0
BOOTED = CLOCK - UPTIME
AT = BOOTED + 7200
DIRECT = "/etc/firewalld/direct.xml"
RULE = '<direct>\n <rule ipv="ipv4" table="filter" chain="INPUT" priority="0">-j DROP</rule>\n'
OUR_CONF = "/etc/firewalld/firewalld.conf"
BACKEND = {OUR_CONF: FIREWALLD_CONF + "FirewallBackend=iptables\nFlushAllOnReload=no\n"}


def host(firewalls, system=("debian", "12")):
    identity, version = system
    answers = {
        "boot": {"firewall": firewalls},
        "system": {
            "clock": CLOCK,
            "uptime_s": UPTIME,
            "os_release": {"id": identity, "version_id": version},
        },
    }
    collectors = {name: {"status": "ok", "data": data} for name, data in answers.items()}
    return flushed_rules.extract({"host": "w1", "collectors": collectors})


def flushes(**firewalls):
    return [(row.service, row.by, row.lines[0].text) for row in host(firewalls).flushes]


def test_without_a_firewall():
    assert host({}) == flushed_rules.HostFirewall()
    assert host({"nftables": loader(*DEBIAN, FLUSH, active=False)}).flushes == ()


@pytest.mark.parametrize(
    ("lines", "by"),
    [
        ((*DEBIAN, FLUSH), "start"),
        ((*DEBIAN, (CONF, 3, "flush ruleset ip;")), "start"),
        # tables of these families are none of iptables-nft
        ((*DEBIAN, (CONF, 3, "flush ruleset inet")), ""),
        ((*DEBIAN, (OF_RED_HAT, 3, "flush ruleset")), ""),  # a file that this unit does not load
        (DEBIAN, ""),
        ((*RED_HAT, (OF_RED_HAT, 1, 'include "nftables/*.nft"')), ""),
        (
            (
                *RED_HAT,
                (OF_RED_HAT, 1, 'include "nftables/*.nft"'),
                ("/etc/nftables/main.nft", 2, "flush ruleset"),
            ),
            "start",
        ),
    ],
)
def test_starts_of_nftables(lines, by):
    found = flushes(nftables=loader(*lines, since=AT))
    assert [row[1] for row in found] == ([by] if by else [])


def test_the_time_and_the_place_of_a_start():
    (flush,) = host({"nftables": loader(*DEBIAN, FLUSH, since=AT)}).flushes
    assert flush.at == datetime.fromtimestamp(AT, timezone.utc)
    assert (flush.lines[0].path, flush.lines[0].line) == (CONF, 3)


@pytest.mark.parametrize(
    ("changes", "by"),
    [
        ({"enabled_at": BOOTED - 9}, "stop"),
        ({"enabled_at": BOOTED + 9}, ""),  # enable --now after the boot: its first start
        ({"enabled_at": None}, ""),
        ({"enabled_at": BOOTED - 9, "masked": True}, ""),
    ],
)
def test_a_restart_where_only_the_stop_flushes(changes, by):
    found = flushes(nftables=loader(*RED_HAT, since=AT, **changes))
    assert [row[1] for row in found] == ([by] if by else [])


def test_a_drop_in_takes_the_stop_back():
    drop_in = ("/etc/systemd/system/nftables.service.d/a.conf", 2, "ExecStop=")
    record = loader(*RED_HAT, drop_in, since=AT, enabled_at=BOOTED - 9)
    assert flushes(nftables=record) == []


@pytest.mark.parametrize(
    ("lines", "changed", "failed", "by"),
    [
        (RED_HAT, AT, False, "reload"),
        ((*DEBIAN, FLUSH), AT, False, "reload"),
        ((*DEBIAN, FLUSH), AT, True, "start"),  # nft -f changes all or nothing
        ((*DEBIAN, FLUSH), AT, None, "start"),
        ((*DEBIAN, FLUSH), BOOTED + 12, False, "start"),
        (DEBIAN, AT, False, ""),
    ],
)
def test_reloads_of_nftables(lines, changed, failed, by):
    record = loader(*lines, since=BOOTED + 10, changed_at=changed, reload_failed=failed)
    assert [row[1] for row in flushes(nftables=record)] == ([by] if by else [])


RULES_V4, RULES_V6 = "/etc/iptables/rules.v4", "/etc/iptables/rules.v6"
DEFAULTS = "/etc/default/netfilter-persistent"


@pytest.mark.parametrize(
    ("name", "lines", "scope"),
    [
        (
            "netfilter-persistent",
            ((RULES_V4, 2, "*filter"), (RULES_V4, 9, "*nat"), (RULES_V6, 2, "*filter")),
            "the tables filter and nat of iptables",
        ),
        (
            "netfilter-persistent",
            ((RULES_V4, 2, "*nat"), (DEFAULTS, 9, "IP6TABLES_RESTORE_NOFLUSH=yes")),
            "the tables nat of iptables",
        ),
        (
            "netfilter-persistent",
            ((RULES_V4, 2, "*nat"), (DEFAULTS, 9, "IPTABLES_RESTORE_NOFLUSH=yes")),
            "",
        ),
        ("netfilter-persistent", (), ""),
        ("iptables", (("/etc/sysconfig/iptables", 4, "*filter"),), "the tables filter of iptables"),
    ],
)
def test_services_of_iptables_restore(name, lines, scope):
    found = host({name: loader(*lines, since=AT)}).flushes
    assert [row.scope for row in found] == ([scope] if scope else [])


@pytest.mark.parametrize(("value", "count"), [("no", 0), ("yes", 1)])
def test_ufw_that_manages_the_chains_of_the_kernel(value, count):
    found = ubuntu(**{"/etc/default/ufw": f"IPV6=yes\nMANAGE_BUILTINS={value}\n"})
    assert len(host(found).flushes) == count


@pytest.mark.parametrize(
    ("version", "system", "texts", "is_flushing"),
    [
        ("0.9.11", ("rhel", "8.10"), {}, True),
        (None, ("rhel", "8.10"), {}, True),
        (None, ("centos", "7"), {}, True),
        (None, ("rocky", "9.4"), {}, False),
        ("1.2.1", ("rocky", "9.2"), {}, True),
        ("1.2.5", ("rocky", "9.3"), {}, False),
        ("1.3.3", ("debian", "12"), {}, True),
        ("2.1.1", ("ubuntu", "24.04"), {}, False),
        ("2.1.1", ("ubuntu", "24.04"), {DIRECT: RULE}, True),
        ("2.1.1", ("ubuntu", "24.04"), BACKEND, True),
        (None, ("debian", "12"), BACKEND, True),
        ("2.x", ("debian", "12"), {}, False),
        ("0.9.11", ("rhel", "8.10"), {OUR_CONF: None}, False),
    ],
)
def test_releases_of_firewalld(version, system, texts, is_flushing):
    found = red_hat(**texts)
    found["firewalld"]["version"] = version
    assert bool(host(found, system).flushes) is is_flushing


@pytest.mark.parametrize(
    ("version", "system", "drops"),
    [
        ("1.3.4", ("rocky", "9.4"), True),
        ("1.2.0", ("arch", "1"), False),
        (None, ("rocky", "9.4"), None),
        (None, ("rocky", "8.9"), False),
    ],
)
def test_which_firewalld_drops_what_is_invalid(version, system, drops):
    found = red_hat()
    found["firewalld"]["version"] = version
    assert host(found, system).firewalld.drops_invalid is drops
