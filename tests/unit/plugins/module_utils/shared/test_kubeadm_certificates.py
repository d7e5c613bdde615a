# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of kubeadm's certificates, compared with the flags of the components."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    kubeadm_certificates,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    certificate_flags,
)

FOLDER = "/etc/kubernetes/pki"
ROWS = kubeadm_certificates.CERTIFICATES


def test_its_files_are_those_that_components_use():
    known = {f"{FOLDER}/{name}" for _component, _flag, name in certificate_flags.USUAL}
    known.add(f"{FOLDER}/{certificate_flags.PROBE[2]}")
    certificates = {row.paths(FOLDER)[-1] for row in ROWS.values() if row.file}
    assert certificates <= known
    authorities = {"ca.crt", "etcd/ca.crt", "front-proxy-ca.crt", "sa.pub"}
    leaves = {path for path in known if path.endswith(".crt")}
    assert leaves - certificates == {f"{FOLDER}/{name}" for name in authorities} & leaves


def test_its_kubeconfigs_are_those_of_components_and_administrators():
    of_host = {path for _component, path in certificate_flags.KUBECONFIGS}
    configs = {row.paths(FOLDER)[0] for row in ROWS.values() if not row.file}
    assert configs == {path for path in of_host if path.startswith("/etc/kubernetes/")}


def test_an_authority_has_a_certificate_and_a_key():
    assert ROWS["etcd-peer"].authority_paths(FOLDER) == [
        f"{FOLDER}/etcd/ca.crt",
        f"{FOLDER}/etcd/ca.key",
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), []),
        (("etcd-peer", "etcd-server", "admin.conf"), []),
        (("scheduler.conf", "apiserver"), ["kube-apiserver", "kube-scheduler"]),
        (("front-proxy-client",), ["kube-apiserver"]),
        (
            kubeadm_certificates.ORDER,
            ["kube-apiserver", "kube-controller-manager", "kube-scheduler"],
        ),
    ],
)
def test_who_loads_them_comes_in_its_order(names, expected):
    assert kubeadm_certificates.loaders(names) == expected


def test_every_file_is_one_that_a_restart_loads():
    paths = kubeadm_certificates.all_paths(FOLDER)
    assert len(paths) == len(set(paths)) == 7 * 2 + 4
