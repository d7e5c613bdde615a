# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that k3s or RKE2 runs: why it ends, the key to change, the unit to restart."""

from __future__ import annotations

import pytest

FILE = "/etc/rancher/rke2/config.yaml"
LOG = "/var/lib/rancher/rke2/agent/logs/kubelet.log"
CLOCK = 1795372289.0  # 18:31:29 of the lines
STAMP = "2026-11-22T18:31:29+0000 w1 "
STARTED = STAMP + "systemd[1]: Starting Rancher Kubernetes Engine v2 (agent)..."
CODES = frozenset(("KM502", "KM505", "KM506", "KM507", "KM516", "KM517"))
UNIT = {
    "name": "rke2-agent.service",
    "load_state": "loaded",
    "active_state": "active",
    "sub_state": "running",
    "unit_file_state": "enabled",
    "result": "success",
    "exec_main_status": 0,
    "n_restarts": 0,
    "fragment_path": "/usr/local/lib/systemd/system/rke2-agent.service",
}
STARTING = {**UNIT, "active_state": "activating", "sub_state": "start"}
UNKNOWN_FIELD = (
    "failed to load kubelet config file, error: failed to load Kubelet config file"
    ' /etc/k.yaml, error failed to decode: strict decoding error: unknown field \\"abc\\", path:'
    " /etc/k.yaml"
)
REFUSED_CALL = (
    "failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint"
    ' \\"unix:///run/k3s/containerd/containerd.sock\\": rpc error: code = Unavailable desc = x'
)
CERTIFICATE = "failed to run Kubelet: unable to load bootstrap kubeconfig: stat : no such file"


def rke2(text, level="error", at=STAMP):
    return f'{at}rke2[77]: time="2026-11-22T18:31:29Z" level={level} msg="{text}"'


EXITED = rke2("Kubelet exited: exit status 1")


def logged(error):
    return f'E1122 18:31:29.346075   20288 run.go:72] "command failed" err="{error}"'


def judged(world, lines, log=(), unit=None, arguments=(), **kubelet):
    rows = [
        {"line": number, "key": "kubelet-arg", "value": value}
        for number, value in enumerate(arguments, 4)
    ]
    distribution = {"program": "rke2", "files": [{"path": FILE, "error": None, "settings": rows}]}
    data = world.data("w1", "kubelet")
    data.update({"process": None, "argv": [], "argv_source": "unit", **kubelet})
    data.update(unit=dict(unit or UNIT), distribution=distribution, config=None)
    file = {"path": LOG, "error": None, "lines": list(log)}
    end = {"unit": data["unit"]["name"], "lines": [STARTED, *lines], "file": file}
    world.documents["w1"]["collectors"]["kubelet_end"] = {"status": "ok", "data": end}
    world.data("w1", "system")["clock"] = CLOCK + 5
    result = world.judge(faults=CODES)
    return {item.code: item for item in result.findings if item.host == "w1"}


@pytest.mark.parametrize("unit", [UNIT, STARTING])
@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UNKNOWN_FIELD, "KM506", "/etc/k.yaml: abc"),
        ("unknown flag: --no-such", "KM505", "--no-such"),
        (CERTIFICATE, "KM507", "client certificate"),
        (REFUSED_CALL, "KM502", "does not answer as it needs"),
    ],
)
def test_what_its_own_log_says_is_the_fault(world, unit, error, code, words):
    (found,) = judged(world, [EXITED, EXITED], [logged(error)], unit).values()
    assert found.code == code
    assert found.severity == "critical"
    assert words in found.summary
    assert "RKE2 starts it, and it ends (exit status 1)" in found.summary
    assert "systemctl restart rke2-agent.service" in found.remedy
    assert "kubeadm" not in found.remedy
    assert {"rke2-agent.service", LOG} <= {ref.object for ref in found.evidence if ref.object}


@pytest.mark.parametrize(
    ("error", "places"),
    [
        ("unknown flag: --no-such", ["no-such=1"]),
        (
            'invalid argument \\"Gone=true\\" for \\"--feature-gates\\" flag: unrecognized feature'
            " gate: Gone",
            ["feature-gates=Gone=true"],
        ),
        (
            'invalid argument \\"x\\" for \\"--max-pods\\" flag: strconv.ParseInt: parsing \\"x\\":'
            " invalid syntax",
            ["max-pods=x"],
        ),
    ],
)
def test_the_line_of_the_key_is_named(world, error, places):
    arguments = ("max-pods=250", "no-such=1", "feature-gates=Gone=true", "max-pods=x")
    (found,) = judged(world, [EXITED], [logged(error)], arguments=arguments).values()
    lines = [4 + arguments.index(place) for place in places]
    assert [(ref.path, ref.line) for ref in found.evidence if ref.path == FILE] == [
        (FILE, line) for line in lines
    ]
    assert f"kubelet-arg in {FILE}:{lines[0]}" in found.remedy


def test_without_its_own_log_its_end_is_told(world):
    found = judged(world, [EXITED, EXITED])["KM502"]
    assert "exit status 1), 2 times" in found.summary
    assert f"tail -n 50 {LOG}" in found.remedy


@pytest.mark.parametrize(
    ("lines", "log", "kubelet"),
    [
        ([], [], {}),
        # one end tells nothing of the next one, where no line says so
        ([EXITED], [], {}),
        ([EXITED], [logged(REFUSED_CALL)], {}),
        # it ended, and the one after it goes on
        (
            [EXITED, EXITED],
            [logged(UNKNOWN_FIELD)],
            {"process": {"pid": 9, "started_at": CLOCK - 60}, "argv_source": "process"},
        ),
        # an end of long ago, and a start by hand a moment ago
        (
            [EXITED.replace("18:31:29+", "17:31:29+")] * 2,
            [logged(UNKNOWN_FIELD)],
            {"process": {"pid": 9, "started_at": CLOCK}, "argv_source": "process"},
        ),
        # a value that a user put into a line
        ([rke2("x Kubelet exited: exit status 1", "info")] * 2, [logged(UNKNOWN_FIELD)], {}),
        # an earlier start of RKE2
        (
            [
                EXITED,
                EXITED,
                STAMP
                + "systemd[1]: rke2-agent.service: Main process exited, code=exited, status=1",
                STARTED,
                rke2("Starting", "info").replace("[77]", "[78]"),
            ],
            [logged(UNKNOWN_FIELD)],
            {},
        ),
    ],
)
def test_what_shows_no_loop_is_none(world, lines, log, kubelet):
    assert judged(world, lines, log, **kubelet) == {}


def test_a_process_between_two_ends_does_not_end_the_loop(world):
    young = {"process": {"pid": 9, "started_at": CLOCK + 3}, "argv_source": "process"}
    assert set(judged(world, [EXITED], [logged(UNKNOWN_FIELD)], **young)) == {"KM506"}


def test_the_control_plane_of_a_server_waits_for_it(world):
    server = {**STARTING, "name": "rke2-server.service"}
    found = judged(world, [EXITED], [logged(UNKNOWN_FIELD)], server)["KM506"]
    assert "wait for it" in found.summary
    assert "systemctl restart rke2-server.service" in found.remedy


def test_a_setting_of_k3s_that_it_refuses_is_named_with_its_line(world):
    unit = {**UNIT, "name": "k3s.service", "active_state": "activating"}
    unit |= {"sub_state": "auto-restart", "result": "exit-code", "exec_main_status": 1}
    line = (
        f'{STAMP}k3s[7]: time="2026-11-22T18:31:29Z" level=fatal msg="apiserver exited: unknown'
        ' flag: --no-such"'
    )
    end = f"{STAMP}systemd[1]: k3s.service: Main process exited, code=exited, status=1/FAILURE"
    data = world.data("w1", "kubelet")
    settings = [{"line": 9, "key": "kube-apiserver-arg", "value": "no-such=1"}]
    file = "/etc/rancher/k3s/config.yaml"
    files = [{"path": file, "error": None, "settings": settings}]
    data.update(process=None, unit=unit, distribution={"program": "k3s", "files": files})
    told = {"unit": "k3s.service", "lines": [line, end]}
    world.documents["w1"]["collectors"]["kubelet_end"] = {"status": "ok", "data": told}
    (found,) = [item for item in world.judge(faults=CODES).findings if item.host == "w1"]
    assert "k3s refuses its configuration" in found.summary
    assert f"kube-apiserver-arg in {file}:9" in found.summary
    assert f"kube-apiserver-arg in {file}:9" in found.remedy
    assert "systemctl restart k3s.service" in found.remedy


def test_a_token_that_the_server_refuses_is_named_with_where_the_right_one_is(world):
    unit = {**UNIT, "active_state": "activating", "sub_state": "auto-restart"}
    unit |= {"result": "exit-code", "exec_main_status": 1, "name": "rke2-server.service"}
    answer = "https://10.0.0.1:9345/v1-rke2/server-bootstrap: 401 Unauthorized"
    line = f'{STAMP}rke2[7]: time="2026-11-22T18:31:29Z" level=fatal msg="starting: {answer}"'
    end = f"{STAMP}systemd[1]: rke2-server.service: Main process exited, code=exited, status=1/F"
    settings = [{"line": 2, "key": "token", "value": None}]
    files = [{"path": FILE, "error": None, "settings": settings}]
    data = world.data("w1", "kubelet")
    data.update(process=None, unit=unit, distribution={"program": "rke2", "files": files})
    told = {"unit": "rke2-server.service", "lines": [line, end]}
    world.documents["w1"]["collectors"]["kubelet_end"] = {"status": "ok", "data": told}
    (found,) = [item for item in world.judge(faults=CODES).findings if item.host == "w1"]
    assert f"correct token in {FILE}:2" in found.remedy
    assert "/var/lib/rancher/rke2/server/node-token" in found.remedy
    assert "401 Unauthorized" in found.summary
