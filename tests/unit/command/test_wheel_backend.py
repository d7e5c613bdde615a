# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheel: its files, its version, and the collection that it carries."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
import wheel_backend
import yaml

VERSION = yaml.safe_load((wheel_backend.CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))[
    "version"
]


@pytest.fixture(name="artefact")
def _artefact(tmp_path):
    path = tmp_path / f"kubemend-remediation-{VERSION}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("galaxy.yml", "plugins/x.py"):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    return path


@pytest.fixture(name="wheel")
def _wheel(artefact, tmp_path):
    name = wheel_backend.build_wheel(str(tmp_path), {"artefact": str(artefact)})
    assert name == f"kubemend-{VERSION}-py3-none-any.whl"
    return tmp_path / name


def test_the_wheel_has_the_command_and_the_files_of_the_artefact(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.read(f"{wheel_backend.COLLECTION}plugins/x.py") == b"plugins/x.py"
    modules = (wheel_backend.HERE / "kubemend").glob("*.py")
    assert {f"kubemend/{path.name}" for path in modules} <= set(names)
    assert not any(name.startswith("/") or "link" in name for name in names)


def test_the_record_has_every_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        info = f"kubemend-{VERSION}.dist-info/"
        rows = [line.split(",") for line in archive.read(info + "RECORD").decode().splitlines()]
        assert [row[0] for row in rows] == archive.namelist()
        for name, digest, size in rows[:-1]:
            data = archive.read(name)
            wanted = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert (digest, int(size)) == (f"sha256={wanted}", len(data))


def test_the_metadata_has_the_version_of_galaxy_yml(wheel, tmp_path):
    folder = wheel_backend.prepare_metadata_for_build_wheel(str(tmp_path))
    text = (tmp_path / folder / "METADATA").read_text(encoding="utf-8")
    assert f"\nVersion: {VERSION}\n" in text
    requirements = [line for line in text.splitlines() if line.startswith("Requires-Dist: ")]
    assert [line.split()[1].partition(">")[0] for line in requirements] == [
        "ansible-core",
        "argcomplete",
    ]
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"{folder}/METADATA").decode() == text
        assert b"kubemend = kubemend.cli:main" in archive.read(f"{folder}/entry_points.txt")


def test_a_wheel_is_the_same_bytes_again(wheel, artefact, tmp_path):
    (tmp_path / "again").mkdir()
    name = wheel_backend.build_wheel(str(tmp_path / "again"), {"artefact": str(artefact)})
    assert (tmp_path / "again" / name).read_bytes() == wheel.read_bytes()


def test_an_artefact_of_another_version_is_refused(artefact, tmp_path):
    other = artefact.rename(tmp_path / "kubemend-remediation-0.0.1.tar.gz")
    with pytest.raises(SystemExit, match="is not the collection of version"):
        wheel_backend.build_wheel(str(tmp_path), {"artefact": str(other)})


def test_only_a_build_of_the_collection_needs_ansible():
    assert wheel_backend.get_requires_for_build_wheel({"artefact": "x"}) == []
    assert wheel_backend.get_requires_for_build_wheel(None) == ["ansible-core>=2.16"]


def test_the_artefact_leaves_the_command_out():
    galaxy = yaml.safe_load((wheel_backend.CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))
    assert Path(wheel_backend.HERE).name in galaxy["build_ignore"]
