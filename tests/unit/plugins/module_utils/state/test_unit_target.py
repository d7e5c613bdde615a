# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The enablement of a unit, and its mask, as the journal compares them."""

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    storage,
    unit_target,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command, systemd

SHOWN = {
    "Id": ["kubelet.service"],
    "LoadState": ["loaded"],
    "ActiveState": ["active"],
    "SubState": ["running"],
    "Result": ["success"],
    "MainPID": ["7"],
}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> "dict[str, Any]":
    blocks = {"kubelet.service": dict(SHOWN)}  # type: dict[str, Any]
    monkeypatch.setattr(systemd, "show", lambda names: blocks)
    monkeypatch.setattr(systemd, "enabled", lambda name, _seconds: "enabled")
    return blocks


def test_the_state_of_a_unit(shown: "dict[str, Any]") -> None:
    state = unit_target.state("kubelet.service")
    assert (state["load"], state["active"], state["pid"], state["enabled"]) == (
        "loaded",
        "active",
        7,
        "enabled",
    )
    shown["kubelet.service"]["MainPID"] = ["0"]
    assert unit_target.state("kubelet.service")["pid"] is None


@pytest.mark.parametrize("name", ["ssh.service", "kubelet", "--now", "a\nb.service"])
def test_a_unit_of_another_kind_is_refused(shown: "dict[str, Any]", name: str) -> None:
    with pytest.raises(ChangeError, match="no unit of a kubelet or a runtime"):
        unit_target.state(name)


def test_a_unit_that_does_not_exist_is_refused(shown: "dict[str, Any]") -> None:
    with pytest.raises(ChangeError, match=r"there is no unit containerd\.service"):
        unit_target.state("containerd.service")


def test_without_an_answer_of_systemd_nothing_is_known(
    shown: "dict[str, Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*dummy: Any) -> None:
        raise command.CommandError("timeout", "no answer")

    monkeypatch.setattr(systemd, "enabled", fail)
    with pytest.raises(ChangeError, match="systemd does not say"):
        unit_target.state("kubelet.service")


def test_an_entry_is_about_the_enablement(shown: "dict[str, Any]") -> None:
    intent = {"real": journal.UNIT + "kubelet.service"}
    assert unit_target.present(intent) == storage.digest(b"enabled\n")


def test_an_entry_is_about_a_mask(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.service"
    intent = {"real": journal.UNIT + str(path)}
    assert unit_target.present(intent) is None
    path.symlink_to("/dev/null")
    assert unit_target.present(intent) == storage.digest(b"/dev/null")


def test_a_unit_file_in_the_place_of_a_mask_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kubelet.service").write_text("[Service]\n")
    with pytest.raises(ChangeError, match="it is no link to /dev/null"):
        unit_target.mask_of(str(tmp_path / "kubelet.service"))
