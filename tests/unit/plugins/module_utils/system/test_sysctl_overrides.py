# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that set kernel settings after systemd-sysctl, by the files of distributions.

They are Ubuntu 22.04 (ufw), Debian 12 and 13 (networkd) and RHEL 9 (tuned).
"""

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    sysctl_overrides,
)

UFW = {
    "etc/default/ufw": (
        'IPV6=yes\nDEFAULT_INPUT_POLICY="DROP"\nIPT_SYSCTL=/etc/ufw/sysctl.conf\nIPT_MODULES=""\n'
    ),
    "etc/ufw/ufw.conf": "ENABLED=yes\nLOGLEVEL=low\n",
    "etc/ufw/sysctl.conf": "#net/ipv4/ip_forward=1\nnet/ipv4/ip_forward=0\n",
    "etc/systemd/system/multi-user.target.wants/ufw.service": "",
}
TUNED = {
    "etc/tuned/active_profile": "mine\n",
    "etc/tuned/tuned-main.conf": "# reapply\nreapply_sysctl = 1\n",
    "etc/tuned/mine/tuned.conf": (
        "[main]\nsummary=x\ninclude=throughput-performance\n\n[sysctl]\nfs.inotify.max_user_inst"
        "ances=4096\n\n[vm]\nx=1\n"
    ),
    "usr/lib/tuned/throughput-performance/tuned.conf": (
        "[main]\nsummary=y\n[sysctl]\n# a comment\nvm.swappiness=10\nfs.file-max=>8192\n"
    ),
    "etc/systemd/system/multi-user.target.wants/tuned.service": "",
}
NETWORKD = {
    "etc/systemd/networkd.conf": "[Network]\n#IPv4Forwarding=\nIPv4Forwarding=no\n",
    "etc/systemd/network/10-wan.network": "[Match]\nName=e*\n[Network]\nDHCP=yes\nIPForward=ipv4\n",
    "etc/systemd/network/10-wan.network.d/more.conf": "[Network]\nIPMasquerade=both\n",
    "etc/systemd/network/10-x.netdev": "[Network]\nIPForward=yes\n",
    "usr/lib/systemd/network/80-container-ve.network": "[Network]\nIPMasquerade=both\n",
    "usr/lib/systemd/system/multi-user.target.wants/systemd-networkd.service": "",
}


def told(root, *layouts, **without):
    for layout in layouts:
        for path, text in layout.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
    for path in without.get("without", ()):
        (root / path).unlink()
    return sysctl_overrides.facts(str(root))


def rows(found):
    return [(row["path"], row["line"], row["key"], row["value"]) for row in found]


def test_a_machine_with_none_of_them(tmp_path):
    assert told(tmp_path) == {"ufw": None, "networkd": None, "tuned": None}


def test_ufw_reads_a_file_of_its_own(tmp_path):
    record = told(tmp_path, UFW)["ufw"]["sysctl"]
    assert (record["path"], record["text"]) == ("/etc/ufw/sysctl.conf", UFW["etc/ufw/sysctl.conf"])


def test_ufw_that_is_off_or_not_started_or_without_that_file(tmp_path):
    wants = "etc/systemd/system/multi-user.target.wants/ufw.service"
    assert told(tmp_path / "a", UFW, without=[wants])["ufw"] is None
    assert told(tmp_path / "b", UFW, {"etc/ufw/ufw.conf": "ENABLED=no\n"})["ufw"] is None
    assert told(tmp_path / "c", UFW, {"etc/default/ufw": "IPT_SYSCTL=\n"})["ufw"] == {
        "sysctl": None
    }
    assert told(tmp_path / "d", UFW, {"etc/default/ufw": "IPT_SYSCTL=/etc/../root/x\n"})["ufw"] == {
        "sysctl": None
    }
    assert (
        told(tmp_path / "e", UFW, without=["etc/ufw/sysctl.conf"])["ufw"]["sysctl"]["error"]
        == "missing"
    )
    (tmp_path / "a/etc/systemd/system/ufw.service").symlink_to("/dev/null")
    assert told(tmp_path / "a", UFW)["ufw"] is None


def test_networkd_says_what_is_forwarded(tmp_path):
    assert rows(told(tmp_path, NETWORKD)["networkd"]) == [
        ("/etc/systemd/networkd.conf", 3, "IPv4Forwarding", "no"),
        ("/etc/systemd/network/10-wan.network", 5, "IPForward", "ipv4"),
        ("/etc/systemd/network/10-wan.network.d/more.conf", 2, "IPMasquerade", "both"),
    ]


def test_tuned_has_a_profile_that_includes_another(tmp_path):
    found = told(tmp_path, TUNED)["tuned"]
    parent, own = "/usr/lib/tuned/throughput-performance/tuned.conf", "/etc/tuned/mine/tuned.conf"
    assert rows(found["rows"]) == [
        (parent, 5, "vm.swappiness", "10"),
        (parent, 6, "fs.file-max", ">8192"),
        (own, 6, "fs.inotify.max_user_instances", "4096"),
    ]
    assert (found["reapply"], found["unknown"]) == ("1", [])


def test_profiles_that_are_not_to_be_found_or_include_each_other(tmp_path):
    assert told(tmp_path, TUNED, without=["usr/lib/tuned/throughput-performance/tuned.conf"])[
        "tuned"
    ]["unknown"] == ["throughput-performance"]
    found = told(
        tmp_path,
        TUNED,
        {
            "usr/lib/tuned/throughput-performance/tuned.conf": (
                "[main]\ninclude=mine\n[sysctl]\nvm.swappiness=1\n"
            )
        },
    )["tuned"]
    assert found["unknown"] == ["mine"]
    assert rows(found["rows"])[0][2:] == ("vm.swappiness", "1")
    assert told(tmp_path, {"etc/tuned/active_profile": "../../secret\n"})["tuned"]["unknown"] == [
        "../../secret"
    ]


def test_a_profile_may_replace_what_it_includes(tmp_path):
    found = told(
        tmp_path,
        TUNED,
        {
            "etc/tuned/mine/tuned.conf": (
                "[main]\ninclude=throughput-performance\n[sysctl]\nreplace=1\nfs.nr_open=5\n"
            )
        },
    )["tuned"]
    assert [row["key"] for row in found["rows"]] == ["fs.nr_open"]
