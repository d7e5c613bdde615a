# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bytecode of the collection's modules: kept, private, and never trusted from others."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import bytecode
from tests.unit.conftest import Operator

NAME = f"{bytecode.PREFIX}plugin_utils.models.sample"


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a collection's directory with one module, for a user without any cache."""
    folder = tmp_path / "plugins"
    (folder / "plugin_utils" / "models").mkdir(parents=True)
    (folder / "plugin_utils" / "models" / "sample.py").write_text("VALUE = 1\n", encoding="utf-8")
    monkeypatch.setattr(bytecode, "PLUGINS", folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("ANSIBLE_HOME", str(home))
    return folder


def load() -> int:
    """Load the module anew, as a new process does, and return its value."""
    spec = bytecode.Finder.find_spec(NAME)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return int(module.VALUE)


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.pyc"))


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be written next to the sources, for root too."""
    monkeypatch.setattr(bytecode, "_is_usable", lambda cache: False)


def test_bytecode_is_kept_next_to_the_source(plugins: Path) -> None:
    assert load() == 1
    (cache,) = files(plugins)
    assert cache.parent.name == "__pycache__"
    stamp = cache.stat().st_mtime_ns
    assert load() == 1
    assert cache.stat().st_mtime_ns == stamp


def test_a_changed_source_is_compiled_again(plugins: Path) -> None:
    load()
    source = plugins / "plugin_utils" / "models" / "sample.py"
    source.write_text("VALUE = 22\n", encoding="utf-8")
    assert load() == 22


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b"import os\n"])
def test_a_damaged_cache_is_replaced(plugins: Path, content: bytes) -> None:
    load()
    (cache,) = files(plugins)
    cache.write_bytes(content)
    assert load() == 1
    assert cache.read_bytes() != content


def test_without_a_place_next_to_the_source_it_is_the_users_own(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_only(monkeypatch)
    assert load() == 1
    assert files(plugins) == []
    (cache,) = files(tmp_path / "home")
    assert cache.stat().st_mode & 0o777 == 0o600
    assert cache.parent.stat().st_mode & 0o777 == 0o700
    stamp = cache.stat().st_mtime_ns
    assert load() == 1
    assert cache.stat().st_mtime_ns == stamp


@pytest.mark.parametrize("part", ["", "kubemend"])
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_directory_that_others_may_write_to_is_not_used(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, mode: int
) -> None:
    folder = tmp_path / "home" / part
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    read_only(monkeypatch)
    assert load() == 1
    assert files(tmp_path / "home") == []


def test_a_directory_of_another_user_is_not_used(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    read_only(monkeypatch)
    assert load() == 1
    assert files(tmp_path / "home") == []


def test_a_link_is_not_followed(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home" / "kubemend").symlink_to(tmp_path / "elsewhere")
    read_only(monkeypatch)
    assert load() == 1
    assert files(tmp_path / "elsewhere") == []


def test_python_is_told_to_write_none(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert load() == 1
    assert files(plugins) == []


def test_where_none_is_written_no_directory_is_made(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    read_only(monkeypatch)
    assert load() == 1
    assert list((tmp_path / "home").iterdir()) == []


def test_a_generous_umask_opens_no_directory(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_only(monkeypatch)
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "home" / "new"))
    former = os.umask(0)
    try:
        load()
    finally:
        os.umask(former)
    made = [path for path in (tmp_path / "home").rglob("*") if path.is_dir()]
    assert len(made) == 3
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}


def test_each_level_of_optimisation_has_its_own(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_only(monkeypatch)
    load()
    name = importlib.util.cache_from_source("sample.py", optimization=2)
    monkeypatch.setattr(
        bytecode, "cache_from_source", lambda source: str(Path(source).parent / name)
    )
    load()
    assert len(files(tmp_path / "home")) == 2


def test_the_prefix_of_python_is_used(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "prefix"))
    read_only(monkeypatch)
    assert load() == 1
    assert files(plugins) == []
    assert len(files(tmp_path / "prefix")) == 1


@pytest.mark.parametrize(
    "name",
    [
        "json",
        f"{bytecode.PREFIX}action.diagnose",
        f"{bytecode.PREFIX}plugin_utils.models",
        f"{bytecode.PREFIX}plugin_utils.models.absent",
        f"x{NAME}",
    ],
)
def test_everything_else_is_left_to_other_finders(plugins: Path, name: str) -> None:
    assert bytecode.Finder.find_spec(name) is None


class _AnsibleCollectionFinder:
    """Stand for Ansible's finder, which is known by its name."""


@pytest.mark.parametrize("first", [0, 1, 3])
def test_it_comes_directly_before_ansibles_finder_once(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    finders = [object(), object(), object()]
    ansibles = _AnsibleCollectionFinder()
    finders.insert(first, ansibles)
    monkeypatch.setattr(sys, "meta_path", list(finders))
    bytecode.install()
    bytecode.install()
    assert sys.meta_path == [*finders[:first], bytecode.Finder, *finders[first:]]


def test_a_python_without_names_for_caches_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    finders = [_AnsibleCollectionFinder()]
    monkeypatch.setattr(sys, "meta_path", list(finders))
    monkeypatch.setattr(sys.implementation, "cache_tag", None)
    bytecode.install()
    assert sys.meta_path == finders


def test_without_ansibles_finder_imports_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    finders = [object(), object()]
    monkeypatch.setattr(sys, "meta_path", list(finders))
    bytecode.install()
    assert sys.meta_path == finders


PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - kubemend.remediation.prepare_run:
      run_once: true
"""


def test_a_playbook_leaves_bytecode_in_the_users_home(operator: Operator, tmp_path: Path) -> None:
    """A collection that cannot be written to, as an execution environment has it."""
    copy = tmp_path / "read" / "ansible_collections" / "kubemend" / "remediation"
    shutil.copytree(
        bytecode.PLUGINS, copy / "plugins", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(bytecode.PLUGINS.parent / "meta", copy / "meta")
    shutil.copy(bytecode.PLUGINS.parent / "galaxy.yml", copy / "galaxy.yml")
    for package in copy.rglob("plugins/**/*.py"):
        # a file where Python would make its directory: so not even root can write there
        (package.parent / "__pycache__").touch()
    operator.write("play.yml", PLAY)
    (tmp_path / "home").chmod(0o700)
    done = operator.run(
        str(tmp_path / "play.yml"),
        env={
            "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "read"),
            "ANSIBLE_HOME": str(tmp_path / "home" / ".ansible"),
        },
    )
    assert done.rc == 0, done.output
    assert len(files(tmp_path / "home" / ".ansible" / "kubemend")) > 20
