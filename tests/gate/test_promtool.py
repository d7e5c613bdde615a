# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""promtool is taken from PATH, from what was unpacked, or from Debian's package."""

from __future__ import annotations

import shutil

import pytest

from tests.gate import machine, promtool


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Pretend that apt-get and dpkg-deb do what they should; return what was called."""
    found: list[str] = []

    def act(words, folder):
        found.append(" ".join(words[:2]))
        if words[1] == "download":
            (folder / "prometheus_2_amd64.deb").touch()
        if words[0] == "dpkg-deb":
            (folder / "files/usr/bin").mkdir(parents=True)
            (folder / "files/usr/bin/promtool").write_text("x")
        return True

    monkeypatch.setattr(machine, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(promtool, "_run", act)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "promtool" else name)
    return found


def test_the_package_is_unpacked_once_and_leaves_only_promtool(calls, tmp_path):
    kept = tmp_path / ".venv" / "promtool"
    assert promtool.ensure() == promtool.ensure() == str(kept)
    assert calls == ["apt-get download", "dpkg-deb --extract"]
    assert list(kept.parent.iterdir()) == [kept]


def test_without_apt_there_is_none(calls, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert promtool.ensure() is None
    assert calls == []


def test_a_failed_download_leaves_nothing(calls, monkeypatch, tmp_path):
    monkeypatch.setattr(promtool, "_run", lambda _words, _folder: False)
    assert promtool.ensure() is None
    assert list((tmp_path / ".venv").iterdir()) == []


def test_what_is_installed_is_taken(calls, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert promtool.ensure() == "/usr/bin/promtool"
    assert calls == []
    monkeypatch.setenv(promtool.VARIABLE, "/x/promtool")
    assert promtool.command() == "/x/promtool"
