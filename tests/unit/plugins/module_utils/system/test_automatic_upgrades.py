# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""unattended-upgrades and what it takes: outputs in the form of apt 2.6 of Debian 12."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    automatic_upgrades,
    command,
)

DUMP = """APT "";
APT::Architecture "amd64";
APT::Periodic "";
APT::Periodic::Update-Package-Lists "1";
APT::Periodic::Unattended-Upgrade "1";
Unattended-Upgrade "";
Unattended-Upgrade::Origins-Pattern "";
Unattended-Upgrade::Origins-Pattern:: "origin=Debian,codename=${distro_codename},label=Debian";
Unattended-Upgrade::Origins-Pattern:: "origin=Debian,codename=${distro_codename}-security";
Unattended-Upgrade::Package-Blacklist "";
Unattended-Upgrade::Package-Blacklist:: "kubelet$";
"""
SOURCES = """Package files:
 100 /var/lib/dpkg/status
     release a=now
 500 https://u:geheim@pkgs.example.org/kubernetes ./ Packages
     release o=obs://build.opensuse.org/isv:kubernetes:core:stable:v1.30/deb,n=deb,c=
     origin pkgs.example.org
 500 http://deb.debian.org/debian-security bookworm-security/main amd64 Packages
     release v=12,o=Debian,a=stable-security,n=bookworm-security,l=Debian-Security,c=main,b=amd64
     origin deb.debian.org
 500 http://deb.debian.org/debian bookworm/main amd64 Packages
     release v=12.7,o=Debian,a=stable,n=bookworm,l=Debian,c=main,b=amd64
     origin deb.debian.org
Pinned packages:
"""
NEWER = """containerd:
  Installed: 1.6.20~ds1-1+b1
  Candidate: 1.6.20~ds1-1+deb12u1
  Version table:
     1.6.20~ds1-1+deb12u1 500
        500 http://deb.debian.org/debian-security bookworm-security/main amd64 Packages
 *** 1.6.20~ds1-1+b1 500
        500 http://deb.debian.org/debian bookworm/main amd64 Packages
        100 /var/lib/dpkg/status
"""
OWN = """kubelet:
  Installed: 1.30.4-1.1
  Candidate: 1.30.5-1.1
  Version table:
     1.30.5-1.1 500
        500 https://u:geheim@pkgs.example.org/kubernetes ./ Packages
 *** 1.30.4-1.1 500
        500 https://u:geheim@pkgs.example.org/kubernetes ./ Packages
        100 /var/lib/dpkg/status
     1.20.0-1 500
        500 http://deb.debian.org/debian bookworm/main amd64 Packages
"""
STATUS = """Package: containerd
Status: install ok installed
Version: 1.6.20~ds1-1+b1

Package: kubelet
Status: install ok installed

Package: runc
Status: hold ok installed

Package: docker.io
Status: deinstall ok config-files

Package: nvidia-driver-535
Status: install ok installed

Package: bash
Status: install ok installed
"""


def test_settings_of_apt():
    settings = automatic_upgrades.settings_of(DUMP)
    assert settings["APT::Periodic::Unattended-Upgrade"] == ["1"]
    assert settings["Unattended-Upgrade::Package-Blacklist"] == ["", "kubelet$"]
    assert len(settings["Unattended-Upgrade::Origins-Pattern"]) == 3


def test_packages_that_nothing_holds():
    assert automatic_upgrades.free(STATUS) == ["containerd", "kubelet", "nvidia-driver-535"]


def origins(text):
    releases = automatic_upgrades.releases_of(SOURCES)
    rows = automatic_upgrades.policies(text, releases)
    return [(row["name"], [source["codename"] for source in row["sources"]]) for row in rows]


def test_sources_of_the_version_and_of_newer_ones():
    assert origins(NEWER + OWN) == [
        ("containerd", ["bookworm-security", "bookworm"]),
        ("kubelet", ["deb"]),
    ]


def test_the_two_versions():
    (row,) = automatic_upgrades.policies(NEWER, {})
    assert (row["installed"], row["candidate"]) == ("1.6.20~ds1-1+b1", "1.6.20~ds1-1+deb12u1")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (" *** 1.6.20~ds1-1+b1 500", " *** 1.6.20~ds1-1+b1 1001", []),
        ("+deb12u1 500\n", "+deb12u1 -1\n", [("containerd", ["bookworm"])]),
        ("+deb12u1 500\n", "+deb12u1 500 (phased 10%)\n", None),
        (" *** 1.6.20~ds1-1+b1 500", "     1.6.20~ds1-1+b1 500", []),
    ],
)
def test_pins(before, after, expected):
    assert before in NEWER
    if expected is None:
        expected = origins(NEWER)
    assert origins(NEWER.replace(before, after)) == expected


def test_a_name_with_a_comma():
    releases = automatic_upgrades.releases_of(" 500 u s/c\n     release o=Docker, Inc.,a=stable\n")
    assert releases["u s/c"]["origin"] == "Docker, Inc."


@pytest.fixture
def machine(tmp_path):
    """Return a folder that stands for a Debian 12 with unattended-upgrades."""
    files = {
        "usr/bin/unattended-upgrade": "",
        "etc/os-release": 'ID=debian\nVERSION_CODENAME="bookworm"\n',
        "var/lib/dpkg/status": STATUS,
        "etc/systemd/system/timers.target.wants/apt-daily-upgrade.timer": "[Timer]\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def apt(dump=DUMP):
    def run(argv, _seconds, _limit):
        if argv[0] == "apt-config":
            return dump
        if len(argv) == 2:
            return SOURCES
        texts = {"containerd": NEWER, "kubelet": OWN}
        return "".join(texts.get(name, "") for name in argv[2:])

    return run


def test_the_whole_answer(machine):
    answer = automatic_upgrades.of_apt(str(machine), apt())
    assert answer["on"] is True
    assert answer["system"] == {"id": "Debian", "codename": "bookworm"}
    assert [row["old"] for row in answer["patterns"]] == [False, False]
    # kubelet is on the blacklist, runc is held
    assert [row["name"] for row in answer["packages"]] == ["containerd"]
    assert "geheim" not in str(answer)


def test_an_address_never_leaves_the_node(machine):
    dump = DUMP.replace("kubelet$", "(broken")
    answer = automatic_upgrades.of_apt(str(machine), apt(dump))
    assert [row["name"] for row in answer["packages"]] == ["containerd", "kubelet"]
    assert "geheim" not in str(answer)


@pytest.mark.parametrize(
    "dump",
    [
        DUMP.replace('Unattended-Upgrade "1"', 'Unattended-Upgrade "0"'),
        DUMP.replace('APT::Periodic::Unattended-Upgrade "1";\n', ""),
        DUMP + 'APT::Periodic::Enable "0";\n',
        "",
    ],
)
def test_upgrades_that_are_off(machine, dump):
    answer = automatic_upgrades.of_apt(str(machine), apt(dump))
    assert (answer["on"], answer["packages"], answer["error"]) == (False, [], None)


def test_a_timer_that_is_masked_or_disabled(machine):
    (machine / "etc/systemd/system/apt-daily-upgrade.timer").symlink_to("/dev/null")
    assert automatic_upgrades.of_apt(str(machine), apt())["on"] is False
    (machine / "etc/systemd/system/apt-daily-upgrade.timer").unlink()
    (machine / "etc/systemd/system/timers.target.wants/apt-daily-upgrade.timer").unlink()
    assert automatic_upgrades.of_apt(str(machine), apt())["on"] is False


def test_an_apt_that_does_not_answer(machine):
    def run(*dummy):
        raise command.CommandError("apt-config did not end within 5 s")

    assert automatic_upgrades.of_apt(str(machine), run)["error"] == (
        "apt-config did not end within 5 s"
    )


def test_a_machine_without_the_program(tmp_path):
    assert automatic_upgrades.of_apt(str(tmp_path), apt()) is None
