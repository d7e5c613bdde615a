# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings and modules that a boot does not bring, repaired and kept over a real reboot."""

from __future__ import annotations

from tests.lab.support.repairing import ended

CONSENT = ("-e", "kubemend_max_risk=1", "-e", "kubemend_faults=KM520")
FORWARD = "net.ipv4.ip_forward"
SETTINGS = "/etc/sysctl.d/90-kubernetes.conf"
MODULES = "/etc/modules-load.d/kubernetes.conf"


def value(cluster, node: str, key: str) -> str:
    return cluster.read(node, f"/proc/sys/{key.replace('.', '/')}").decode().strip()


def is_loaded(cluster, node: str, module: str) -> bool:
    modules = cluster.read(node, "/proc/modules").decode().splitlines()
    return module in {line.split()[0] for line in modules}


def test_forwarding_that_a_boot_took_away_comes_back_and_stays(cluster, play, node):
    cluster.exec(node, f"sed -i /ip_forward/d {SETTINGS}")
    cluster.restart_node(node)
    assert value(cluster, node, FORWARD) == "0"

    done, report = play(*CONSENT)
    assert (done.returncode, ended(report), report["findings"]) == (0, ["done"], []), done.stdout[
        -4000:
    ]
    assert [(step["host"], step["remedy"]) for step in report["plan"]] == [(node, "kernel_setting")]
    assert value(cluster, node, FORWARD) == "1"

    cluster.restart_node(node)
    assert value(cluster, node, FORWARD) == "1"
    done, report = play(*CONSENT)
    assert (done.returncode, report["plan"], report["findings"]) == (0, [], []), done.stdout[-4000:]


def test_a_module_that_no_file_names_is_foretold_and_kept(cluster, play, node):
    """Warned of before the boot that takes it away: the module is loaded still."""
    cluster.exec(node, f"sed -i /br_netfilter/d {MODULES}")
    assert is_loaded(cluster, node, "br_netfilter")
    _done, report = play("--check", *CONSENT)
    assert [(finding["code"], finding["host"]) for finding in report["findings"]] == [
        ("KM520", node)
    ]

    done, report = play(*CONSENT)
    assert (done.returncode, set(ended(report)), report["findings"]) == (0, {"done"}, []), (
        done.stdout[-4000:]
    )
    cluster.restart_node(node)
    assert is_loaded(cluster, node, "br_netfilter")
    done, report = play(*CONSENT)
    assert (done.returncode, report["plan"], report["findings"]) == (0, [], []), done.stdout[-4000:]
