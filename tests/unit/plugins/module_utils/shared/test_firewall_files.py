# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller judges of firewalld and ufw is what the collector brings."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import firewall_files
from ansible_collections.kubemend.remediation.plugins.module_utils.system import boot_firewall
from tests.unit.support.firewall_records import walls


def content(path):
    return f"ENABLED=yes\n# {path}\n"


def node(root, name, paths):
    """Install one firewall with these files, and return its evidence."""
    for path in (f"/etc/systemd/system/{name}.service", *paths):
        file = root / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content(path))
    return boot_firewall.collect(str(root))


def test_every_file_of_ufw_reaches_the_controller(tmp_path):
    paths = firewall_files.RULES + firewall_files.SCRIPTS
    seen = node(tmp_path, firewall_files.UFW, paths)
    (wall,) = walls(seen)
    assert wall.name == firewall_files.UFW
    assert [wall.text(path) for path in paths] == [content(path) for path in paths]
    assert wall.file in firewall_files.RULES


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        (firewall_files.OURS + "/zones/public.xml", True),
        (firewall_files.VENDOR + "/zones/public.xml", True),
        (firewall_files.OURS + "/services/own.xml", True),
        (firewall_files.VENDOR + "/services/kube-apiserver.xml", True),
        (firewall_files.VENDOR + "/services/etcd-server.xml", True),
        (firewall_files.VENDOR + "/services/samba.xml", False),
    ],
)
def test_of_the_services_of_the_package_those_of_kubernetes_are_read(tmp_path, path, is_read):
    (wall,) = walls(node(tmp_path, firewall_files.FIREWALLD, [path]))
    assert (path in wall.files) is is_read
