# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The build backend of the command (PEP 517): a wheel that carries the built collection.

The setting `artefact` names a tarball of the collection. Without it, ansible-galaxy builds one of
the checkout that this folder is in.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
COLLECTION = "kubemend/collections/ansible_collections/kubemend/remediation/"
ARTEFACT = "artefact"
# Wheels of the same files are the same bytes.
DATE = (1980, 1, 1, 0, 0, 0)
MODE = 0o100644 << 16

Settings = Mapping[str, Any] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return what builds the collection; nothing where it is built already."""
    if _artefact(config_settings):
        return []
    return ["ansible-core>=2.16"]


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Return nothing: there is no sdist."""
    return []


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Refuse: the source of the command is the checkout of the collection."""
    raise SystemExit("The command has no sdist: build its wheel, or install it from a checkout.")


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    """Write what describes the package, without its wheel; return the folder's name."""
    project, version = _project(), _version()
    info = _info(project, version)
    for path, data in _metadata(info, project, version):
        file = Path(metadata_directory) / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
    return info.rstrip("/")


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Write the wheel, and return its name."""
    project, version = _project(), _version()
    name = f"{project['name']}-{version}-py3-none-any.whl"
    info = _info(project, version)
    with tempfile.TemporaryDirectory() as folder:
        artefact = _artefact(config_settings) or _built(Path(folder))
        with zipfile.ZipFile(
            Path(wheel_directory) / name, "w", compression=zipfile.ZIP_DEFLATED
        ) as wheel:
            record = []
            for path, data in (
                *_modules(),
                *_collection(artefact, version),
                *_metadata(info, project, version),
            ):
                _add(wheel, path, data)
                record.append(f"{path},sha256={_digest(data)},{len(data)}")
            record.append(f"{info}RECORD,,")
            _add(wheel, info + "RECORD", "".join(f"{line}\n" for line in record).encode())
    return name


def _artefact(settings: Settings) -> Path | None:
    value = (settings or {}).get(ARTEFACT)
    if not value:
        return None
    return Path(str(value))


def _project() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    with (HERE / "pyproject.toml").open("rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    return project


def _info(project: Mapping[str, Any], version: str) -> str:
    return f"{project['name']}-{version}.dist-info/"


def _version() -> str:
    """Return the version of the collection, which is that of the command."""
    for line in (CHECKOUT / "galaxy.yml").read_text(encoding="utf-8").splitlines():
        key, _colon, value = line.partition(":")
        if key == "version":
            return value.strip().strip("\"'")
    raise SystemExit("galaxy.yml names no version.")


def _built(folder: Path) -> Path:
    """Build the collection of the checkout, and return the tarball."""
    import subprocess

    command = [sys.executable, "-m", "ansible", "galaxy", "collection", "build"]
    subprocess.run([*command, "--output-path", str(folder)], cwd=CHECKOUT, check=True)
    return next(folder.glob("*.tar.gz"))


def _modules() -> Iterator[tuple[str, bytes]]:
    for path in sorted((HERE / "kubemend").glob("*.py")):
        yield f"kubemend/{path.name}", path.read_bytes()


def _collection(artefact: Path, version: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the tarball; refuse one of another version."""
    if not artefact.name.endswith(f"-{version}.tar.gz"):
        raise SystemExit(f"{artefact.name} is not the collection of version {version}.")
    with tarfile.open(artefact) as archive:
        for member in sorted(archive.getmembers(), key=lambda item: item.name):
            if not member.isfile():
                continue
            file = archive.extractfile(member)
            if file is not None:
                yield COLLECTION + member.name, file.read()


def _metadata(info: str, project: Mapping[str, Any], version: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files that describe the package."""
    fields = [
        ("Metadata-Version", "2.1"),
        ("Name", project["name"]),
        ("Version", version),
        ("Summary", project["description"]),
        ("License", project["license"]["text"]),
        ("Requires-Python", project["requires-python"]),
        *(("Requires-Dist", requirement) for requirement in project["dependencies"]),
        ("Description-Content-Type", "text/markdown"),
    ]
    head = "".join(f"{key}: {value}\n" for key, value in fields)
    readme = (HERE / project["readme"]).read_text(encoding="utf-8")
    yield info + "METADATA", f"{head}\n{readme}".encode()
    tags = "Root-Is-Purelib: true\nTag: py3-none-any\n"
    yield info + "WHEEL", f"Wheel-Version: 1.0\nGenerator: wheel_backend\n{tags}".encode()
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    yield info + "entry_points.txt", f"[console_scripts]\n{scripts}".encode()
    yield info + "LICENSE", (CHECKOUT / "LICENSE").read_bytes()


def _add(wheel: zipfile.ZipFile, path: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(path, DATE)
    entry.external_attr = MODE
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, data)


def _digest(data: bytes) -> str:
    """Return a digest as RECORD has it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return digest.rstrip(b"=").decode("ascii")
