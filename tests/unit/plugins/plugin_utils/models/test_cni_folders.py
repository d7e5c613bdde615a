# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose folders of the CNI are not those that a plugin has in its settings."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import cni_folders
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cni_folders import (
    CniFolders,
)

K3S = "/var/lib/rancher/k3s/agent/etc/cni/net.d"
KUBECONFIG = "stat /etc/cni/net.d/multus.d/multus.kubeconfig: no such file or directory"
WHEREABOUTS = 'error adding container to network "rto": config file not found'
PROGRAM = 'failed (add): failed to find plugin "multus" in path [/var/lib/rancher/k3s/data/3c/bin]'
THERE = CniFolders(K3S, ("/var/lib/rancher/k3s/data/cni",), frozenset(("multus", "bridge")))


def document(**collectors):
    return {
        "collectors": {name: {"status": "ok", "data": data} for name, data in collectors.items()}
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (KUBECONFIG, ["/etc/cni/net.d/multus.d/multus.kubeconfig", K3S]),
        (WHEREABOUTS, ["/etc/cni/net.d", K3S]),
        (PROGRAM, ["multus", "/var/lib/rancher/k3s/data/cni", "/var/lib/rancher/k3s/data/3c/bin"]),
    ],
)
def test_what_other_folders_explain(text, named):
    clause, advice = THERE.clause(text)
    assert [part for part in named if part not in clause] == []
    assert advice


@pytest.mark.parametrize(
    ("folders", "text"),
    [
        (CniFolders(), KUBECONFIG),
        (CniFolders("/etc/cni/net.d"), WHEREABOUTS),
        (CniFolders(K3S), PROGRAM),
        (THERE, PROGRAM.replace('"multus"', '"tuning"')),
        (THERE, PROGRAM.replace("3c/bin", "cni")),
        (THERE, "stat /etc/cni/net.d2/x: no such file or directory"),
        (THERE, "context deadline exceeded"),
    ],
)
def test_what_they_do_not_explain(folders, text):
    assert folders.clause(text) == ("", "")


RELEASE = "/data/k3s/data/2e877cf/bin"
CURRENT = "/data/k3s/data/8e61313beb4e/bin"
TEMPLATE = "/data/k3s/agent/etc/containerd/config.toml.tmpl"
OLD = 'plugin type="flannel" failed (add): incompatible CNI versions; config is "1.0.0", plugin'
OF_DOCKERSHIM = '[plugin bridge does not support config version "1.0.0"]'
GONE = f'failed to find plugin "flannel" in path [{RELEASE}]'


@pytest.mark.parametrize("text", [OLD, OF_DOCKERSHIM, GONE])
@pytest.mark.parametrize("running", [CURRENT, "/usr/local/bin", ""])
def test_programs_of_a_former_release_of_k3s(text, running):
    folders = CniFolders(K3S, (RELEASE,), frozenset(), running=running, unit="k3s.service")
    clause, advice = folders.clause(text)
    for words in (RELEASE, TEMPLATE):
        assert words in clause
    assert (CURRENT in clause) is (running == CURRENT)
    assert TEMPLATE in advice
    assert advice.endswith("systemctl restart k3s.service")


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        (RELEASE, GONE),
        (CURRENT, GONE),
        ("/data/k3s/data/current/bin", GONE),
        ("/opt/cni/bin", GONE),
        (RELEASE, "context deadline exceeded"),
    ],
)
def test_programs_of_the_release_that_runs(folder, text):
    folders = CniFolders(K3S, (folder,), frozenset(), running=RELEASE, unit="k3s.service")
    assert folders.clause(text) == ("", "")


@pytest.mark.parametrize("unit", ["containerd.service", "rke2-agent.service"])
def test_where_an_old_program_is(unit):
    clause, advice = CniFolders("/etc/cni/net.d", ("/usr/lib/cni",), unit=unit).clause(OLD)
    assert "/usr/lib/cni" in clause
    assert "/usr/lib/cni" in advice
    assert ("config.toml.tmpl" in advice) is unit.startswith("rke2")
    assert CniFolders("/etc/cni/net.d", unit=unit).clause(OLD) == ("", "")


def test_the_program_that_runs_is_read():
    kubelet = {"process": {"pid": 1, "exe": f"{CURRENT}/k3s"}, "unit": {"name": "k3s.service"}}
    cni = {"folder": K3S, "bin_dirs": [RELEASE]}
    found = cni_folders.extract(document(cni=cni, kubelet=kubelet))
    assert (found.running, found.unit) == (CURRENT, "k3s.service")


UNAUTHORIZED = "Multus: [default/x/1]: error getting pod: Unauthorized"


def configuration(name, plugin, error=None):
    return {"name": name, "network": "x", "plugins": [plugin], "ipam": [], "error": error}


@pytest.mark.parametrize(
    ("files", "has_pod", "text", "is_left"),
    [
        ([("00-multus.conf", "multus"), ("05-cilium.conflist", "cilium-cni")], False, None, True),
        ([("00-multus.conf", "multus-shim")], False, None, True),
        ([("00-multus.conf", "multus")], True, None, False),
        ([("00-multus.conf", "multus")], None, None, False),  # an older release did not look
        ([("00-multus.conf", "multus")], False, "context deadline exceeded", False),
        ([("05-cilium.conflist", "cilium-cni"), ("10-multus.conf", "multus")], False, None, False),
        ([("00-multus.conf", "multus", "denied")], False, None, False),
        ([], False, None, False),
    ],
)
def test_the_configuration_that_multus_left(files, has_pod, text, is_left):
    rows = [configuration(*file) for file in files]
    data = {"folder": "/etc/cni/net.d", "files": rows, "multus": has_pod}
    clause, advice = cni_folders.extract(document(cni=data)).clause(text or UNAUTHORIZED)
    assert ("/etc/cni/net.d/00-multus.conf" in clause) is is_left
    assert ("multus.d" in advice) is is_left


@pytest.mark.parametrize(
    ("unit", "folder"),
    [
        ("k3s-agent.service", K3S),
        ("snap.microk8s.daemon-kubelite.service", "/var/snap/microk8s/current/args/cni-network"),
        ("kubelet.service", ""),
    ],
)
def test_the_folder_of_a_layout_where_the_runtime_does_not_tell_it(unit, folder):
    kubelet = {"unit": {"name": unit}}
    assert cni_folders.extract(document(kubelet=kubelet)) == CniFolders(folder)
    told = document(kubelet=kubelet, cni={"folder": "/x", "bin_dirs": ["/y"], "programs": ["z"]})
    assert cni_folders.extract(told) == CniFolders("/x", ("/y",), frozenset("z"), unit=unit)
