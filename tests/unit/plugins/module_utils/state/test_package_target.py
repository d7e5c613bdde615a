# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The selections of packages, as the journal compares them."""

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    package_target,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.system import files

STATUS = """Package: containerd
Status: install ok installed
Architecture: amd64

Package: runc
Status: hold ok installed
Architecture: amd64

Package: runc
Status: deinstall ok config-files
Architecture: i386

Package: nvidia-dkms-535
Status: install ok installed
Architecture: all
"""


@pytest.fixture
def status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(package_target, "ROOT", str(tmp_path))
    path = tmp_path / "var/lib/dpkg/status"
    path.parent.mkdir(parents=True)
    path.write_text(STATUS)
    return path


def test_installed_packages_with_their_architectures(status: Path) -> None:
    names = ["containerd", "runc", "nvidia-dkms-535", "docker.io"]
    assert package_target.selections(names) == {
        "containerd:amd64": "install",
        "runc:amd64": "hold",
        "nvidia-dkms-535": "install",
    }
    assert package_target.of_keys(["runc:amd64", "runc:i386"]) == {"runc:amd64": "hold"}


def test_the_journal_has_one_digest_for_all_of_them(status: Path) -> None:
    rows = {"runc:amd64": "hold", "containerd:amd64": "install"}
    intent = {"real": package_target.real(rows)}
    assert intent["real"] == "packages:containerd:amd64,runc:amd64"
    data = b"containerd:amd64\tinstall\nruncmd:amd64\thold\n".replace(b"runcmd", b"runc")
    assert package_target.encoded(rows) == data
    assert package_target.decoded(data) == rows
    assert package_target.present(intent) == storage.digest(data)
    status.write_text(STATUS.replace("hold", "install"))
    assert package_target.present(intent) != storage.digest(data)
    assert journal.PACKAGES == "packages:"


@pytest.mark.parametrize(
    "name", ["", "-y", "a b", "containerd:amd64", "x;y", "../x", "containerd\n"]
)
def test_names_that_are_none(status: Path, name: str) -> None:
    with pytest.raises(ChangeError, match="no name of a package"):
        package_target.selections([name])


def test_a_lock_that_cannot_be_looked_at(status: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(files, "opened", refuse)
    with pytest.raises(ChangeError, match="lock-frontend cannot be read"):
        package_target.selections(["runc"])


def test_a_lock_that_no_process_holds(status: Path) -> None:
    (status.parent / "lock").touch()
    assert package_target.selections(["runc"]) == {"runc:amd64": "hold"}
