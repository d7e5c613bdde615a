# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device plugin folder.

Checkpoints of real kubelets, and sockets with and without somebody behind them.
"""

import json
import socket

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import devices

# Written by kubelets of 1.18.4 and 1.36.3.
OLD = (
    '{"Data":{"PodDeviceEntries":[{"PodUID":"04e48f8a-47ae-418f-885f-118cea99395b","ContainerNam'
    'e":"work","ResourceName":"nvidia.com/gpu",'
    '"DeviceIDs":["gpu-0"],"AllocResp":"ChQKC0xBQl9ERVZJQ0VTEgVncHUtMA=="}],"RegisteredDevices":'
    '{"nvidia.com/gpu":["gpu-0","gpu-1"]}},'
    '"Checksum":1950804978}'
)
NEW = (
    '{"Data":{"PodDeviceEntries":[{"PodUID":"2d330539-abb3-4685-a920-de3e0b4f140a","ContainerNam'
    'e":"work","ResourceName":"nvidia.com/gpu",'
    '"DeviceIDs":{"-1":["gpu-0"]},"AllocResp":"ChQKC0xBQl9ERVZJQ0VTEgVncHUtMA=="}],"RegisteredDe'
    'vices":{"nvidia.com/gpu":["gpu-1","gpu-0"]}},'
    '"Checksum":2861914492}'
)
EMPTY = '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3467439661}'


def collect(tmp_path, text=None):
    if text is not None:
        (tmp_path / devices.CHECKPOINT).write_text(text, encoding="utf-8")
    context = base.Context({}, [], {})
    return devices.collect(context, str(tmp_path))


@pytest.mark.parametrize(
    ("text", "form", "held"), [(OLD, "list", 1), (NEW, "numa", 1), (EMPTY, None, 0)]
)
def test_checkpoints_of_real_kubelets(tmp_path, text, form, held):
    found = collect(tmp_path, text)["checkpoint"]
    assert (found["checksum"], found["format"], found["error"], len(found["entries"])) == (
        "right",
        form,
        None,
        held,
    )
    if held:
        assert found["entries"][0]["devices"] == ["gpu-0"]
        assert sorted(found["registered"]["nvidia.com/gpu"]) == ["gpu-0", "gpu-1"]
    # What the plugin told for the container may hold secrets.
    assert "LAB_DEVICES" not in json.dumps(found)
    assert "ChQKC0" not in json.dumps(found)


@pytest.mark.parametrize(
    ("text", "checksum", "error"),
    [
        (NEW.replace('"work"', '"other"'), "wrong", None),
        (NEW.replace("ChQKC0xB", "ChQKC0xC"), "wrong", None),
        (NEW.replace("2861914492", "0"), "absent", None),
        ("", None, "it is empty"),
        (NEW[:100], None, "JSONDecodeError"),
        ("[]", None, "TypeError"),
        ('{"Data":{"PodDeviceEntries":[{}]}}', None, "KeyError"),
    ],
)
def test_a_checkpoint_that_is_not_what_was_written(tmp_path, text, checksum, error):
    evidence = collect(tmp_path, text)
    found = evidence["checkpoint"]
    # who has devices is not known from one that cannot be read
    assert (evidence["running"], evidence["names"]) == (([], []) if error is None else (None, None))
    assert devices.running(str(tmp_path)) == (set() if error is None else None)
    assert found["checksum"] == checksum
    assert found["error"] is None if error is None else error in found["error"]


def test_sockets(tmp_path):
    listening, ended = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "kubelet.sock"))
    listening.listen(1)
    ended.bind(str(tmp_path / "plugin.sock"))
    ended.close()
    (tmp_path / "DEPRECATION").write_text("", encoding="utf-8")
    found = collect(tmp_path)
    listening.close()
    assert found["kubelet_socket"]["answers"] is True
    assert found["checkpoint"] is None
    assert [(one["name"], one["answers"]) for one in found["sockets"]] == [("plugin.sock", False)]


def test_without_the_folder(tmp_path):
    with pytest.raises(base.Absent):
        devices.collect(base.Context({}, [], {}), str(tmp_path / "none"))


def test_the_names_of_pods_by_their_folders_of_logs(tmp_path):
    (tmp_path / "default_job-a_uid-1").mkdir()
    assert devices.names({"uid-1", "uid-2"}, str(tmp_path)) == ["default/job-a", "uid-2"]
    assert devices.names({"uid-1"}, str(tmp_path / "none")) == ["uid-1"]
