# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a next start would change is kept as it is: rules of others, and held packages.

The machine runs a systemd-networkd and an apt of its own.
"""

from __future__ import annotations

import pytest

from tests.lab.support.repairing import codes, ended

RISK = ("-e", "kubemend_max_risk=1")
ROUTES = (*RISK, "-e", "kubemend_faults=KM534,KM902")
PACKAGES = (*RISK, "-e", "kubemend_faults=KM702,KM902", "-e", "kubemend_deep=true")
DROP_IN = "/etc/systemd/networkd.conf.d/99-zz-kubemend.conf"
RULE = "from 10.9.9.9 lookup 200"
# Two versions of a package that no node has, the newer one in a folder that says what Debian's own
# sources say, and unattended-upgrades with what it takes by default.
UPGRADES = r"""
set -e
. /etc/os-release
mkdir -p /srv/repo /srv/p/DEBIAN
for version in 2 1; do
  printf '%s\n' 'Package: nvidia-dkms-535' "Version: $version" 'Architecture: all' \
    'Maintainer: lab <lab@example.org>' 'Description: lab' > /srv/p/DEBIAN/control
  dpkg-deb --build /srv/p /srv/repo/p-$version.deb
done
dpkg -i /srv/repo/p-1.deb
cd /srv/repo
{
  sed /^Version/s/1/2/ /srv/p/DEBIAN/control
  printf 'Filename: ./p-2.deb\nSize: %s\nSHA256: %s\n' \
    "$(stat -c %s p-2.deb)" "$(sha256sum < p-2.deb | cut -d' ' -f1)"
} > Packages
{
  printf '%s\n' 'Origin: Debian' 'Label: Debian-Security' 'Suite: stable-security' \
    "Codename: $VERSION_CODENAME-security" 'SHA256:'
  printf ' %s %s Packages\n' "$(sha256sum < Packages | cut -d' ' -f1)" "$(stat -c %s Packages)"
} > Release
rm -rf /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list
taken='origin=Debian,codename=${distro_codename}-security,label=Debian-Security'
printf '%s\n' 'APT::Periodic::Unattended-Upgrade "1";' \
  "Unattended-Upgrade::Origins-Pattern:: \"$taken\";" > /etc/apt/apt.conf.d/99lab
printf '#!/bin/sh\n' > /usr/bin/unattended-upgrade
chmod 755 /usr/bin/unattended-upgrade
mkdir -p /etc/systemd/system/timers.target.wants
ln -sf /lib/systemd/system/apt-daily-upgrade.timer /etc/systemd/system/timers.target.wants/
apt-get update -q
"""


def said(cluster, node: str, command: str) -> str:
    return cluster.exec(node, command, timeout=120).stdout.decode().strip()


def restart_networkd(cluster, node: str) -> str:
    """Add a rule as a network plugin does, restart networkd, and return the rules."""
    add = f"ip rule del {RULE}; ip rule add {RULE} pref 1536"
    return said(cluster, node, f"{add}; systemctl restart systemd-networkd; sleep 10; ip rule")


def test_a_restart_of_networkd_leaves_the_rules_of_others(cluster, play, node):
    release = int(
        said(cluster, node, "systemctl --version | sed -n '1s/^systemd \\([0-9]*\\).*/\\1/p'")
    )
    cluster.exec(node, "ip link add cilium_host type dummy")
    if release < 249:
        pytest.skip(f"systemd {release} does not know ManageForeignRoutingPolicyRules")
    assert RULE not in restart_networkd(cluster, node)

    done, report = play("--check", *ROUTES)
    assert [step["remedy"] for step in report["plan"]] == ["networkd_routes"], done.stdout[-4000:]
    assert said(cluster, node, f"ls {DROP_IN} 2>/dev/null || true") == ""
    before = said(cluster, node, "systemctl show -p MainPID systemd-networkd")

    done, report = play(*ROUTES)
    assert (done.returncode, ended(report), codes(report)) == (0, ["done"], set()), done.stdout[
        -4000:
    ]
    assert said(cluster, node, "systemctl show -p MainPID systemd-networkd") == before
    analyzed = said(cluster, node, "systemd-analyze cat-config systemd/networkd.conf")
    assert analyzed.endswith("ManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no")
    assert RULE in restart_networkd(cluster, node)

    done, _report = play("-e", "kubemend_run_id=last", name="revert")
    assert done.returncode == 0, done.stdout[-4000:]
    assert said(cluster, node, f"ls {DROP_IN} 2>/dev/null || true") == ""


def test_packages_that_upgrade_themselves_are_held(cluster, play, node):
    cluster.exec(node, UPGRADES, timeout=600)
    waiting = "apt-get -s upgrade | grep '^Inst nvidia-dkms-535' || true"
    assert said(cluster, node, waiting)

    done, report = play(*PACKAGES)
    (step,) = report["plan"]
    assert step["blocked_by"].endswith("-e kubemend_allow=hold_packages"), done.stdout[-4000:]
    assert said(cluster, node, "apt-mark showhold") == ""

    done, report = play(*PACKAGES, "-e", "kubemend_allow=hold_packages")
    assert (done.returncode, ended(report), codes(report)) == (0, ["done"], set()), done.stdout[
        -4000:
    ]
    assert said(cluster, node, "apt-mark showhold") == "nvidia-dkms-535"
    assert said(cluster, node, waiting) == ""

    done, _report = play("-e", "kubemend_run_id=last", name="revert")
    assert done.returncode == 0, done.stdout[-4000:]
    assert said(cluster, node, "apt-mark showhold") == ""
    assert said(cluster, node, waiting)
