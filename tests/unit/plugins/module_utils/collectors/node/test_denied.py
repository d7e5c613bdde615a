# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this user may not look at is denied, never absent.

An absence is an answer that clears faults.
"""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
    worker,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    api_way,
    kubelet_log,
    pinning,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command

DENIED = {"path": "/secret", "text": None, "error": "denied"}


def asked(kubelet):
    return base.Context({}, [], {"kubelet": kubelet})


def test_a_kubeconfig_that_may_not_be_read():
    with pytest.raises(base.Denied):
        api_way.collect(asked({"kubeconfig": DENIED}))
    with pytest.raises(base.Absent):
        api_way.collect(asked({"kubeconfig": {"text": None, "error": "missing"}}))


@pytest.mark.parametrize("text", ["", "\n"])
@pytest.mark.parametrize("uid", [0, 1000])
def test_a_journal_that_shows_nothing(monkeypatch, uid, text):
    monkeypatch.setattr(command, "run", lambda *dummy, **dummies: text)
    monkeypatch.setattr(kubelet_log.os, "geteuid", lambda: uid)
    if uid:
        with pytest.raises(base.Denied):
            kubelet_log.collect(asked({}))
    else:
        assert kubelet_log.collect(asked({})) == {"lines": [], "at_start": []}


def test_a_folder_that_may_not_be_entered(monkeypatch, tmp_path):
    real = os.lstat

    def lstat(path, *more, **named):
        if str(path).startswith("/closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *more, **named)

    monkeypatch.setattr(worker.os, "lstat", lstat)
    assert worker._hidden("/closed/device-plugins")[0] == "denied"
    assert worker._hidden(str(tmp_path / "nothing")) == (
        "absent",
        "%s does not exist" % (tmp_path / "nothing"),
    )
    assert worker._hidden(str(tmp_path)) is None


def test_a_state_file(monkeypatch, tmp_path):
    assert pinning._state(str(tmp_path / "cpu_manager_state")) is None
    monkeypatch.setattr(pinning.files, "record", lambda path: dict(DENIED, link=None))
    assert pinning._state("/closed/cpu_manager_state")["error"] == "denied"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    monkeypatch.undo()
    assert pinning._state(str(tmp_path / "link")) is not None
