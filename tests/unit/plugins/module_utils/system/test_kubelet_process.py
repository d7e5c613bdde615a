# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of a node's kubelet, and the unit to which it belongs."""

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import units
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    files,
    kubelet_process,
    procfs,
    systemd,
)

UNIT = "0::/system.slice/kubelet.service\n"
POD = "0::/kubepods/burstable/pod" + "a1" * 16 + "/" + "b2" * 32 + "\n"


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> "dict[int, str]":
    """Return the cgroups of the kubelets that run, by their pid."""
    groups = {}  # type: dict[int, str]
    block = {"Id": ["kubelet.service"], "LoadState": ["loaded"], "MainPID": ["7"]}
    monkeypatch.setattr(systemd, "show", lambda _names, **_more: {"kubelet.service": block})
    monkeypatch.setattr(procfs, "argv", lambda _pid: ["/usr/bin/kubelet", "--v=2"])
    monkeypatch.setattr(procfs, "started_at", lambda _pid: 1.0)
    monkeypatch.setattr(procfs, "link", lambda _pid, _name: "/usr/bin/kubelet (deleted)")
    monkeypatch.setattr(files, "text", lambda path: groups[int(path.split("/")[2])])
    return groups


def here(groups: "dict[int, str]") -> Any:
    return kubelet_process.here([(pid, "kubelet") for pid in groups])


def test_the_process_of_the_unit_precedes_any_other(node: "dict[int, str]") -> None:
    node.update({3: "0::/user.slice\n", 7: UNIT})
    process, block, trouble = here(node)
    assert (process["pid"], block["Id"], trouble) == (7, ["kubelet.service"], None)
    assert (process["exe"], process["exe_deleted"]) == ("/usr/bin/kubelet", True)


def test_a_kubelet_in_a_pod_is_of_another_cluster(node: "dict[int, str]") -> None:
    node[3] = POD
    process, block, _trouble = here(node)
    assert process is None
    assert block["Id"] == ["kubelet.service"]
    node[9] = "0::/user.slice\n"
    assert here(node)[0]["pid"] == 9


def test_without_systemd_the_process_is_found_all_the_same(
    node: "dict[int, str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_names: Any, **_more: Any) -> None:
        raise command.CommandError("no bus")

    monkeypatch.setattr(systemd, "show", fail)
    node[7] = UNIT
    process, block, trouble = here(node)
    assert (process["pid"], block, str(trouble)) == (7, {}, "no bus")


def test_units_of_a_distribution_are_asked_where_its_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = ((str(tmp_path / "none"), ("a.service",)), (str(tmp_path), ("b.service",)))
    monkeypatch.setattr(kubelet_process, "OTHERS", others)
    assert kubelet_process.question()[0] == [units.KUBELET, "b.service"]


def test_drop_ins_are_in_the_order_in_which_they_are_read(tmp_path: Path) -> None:
    for name in ("b.conf", "a.conf", "c.txt", "sub/z.conf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = kubelet_process.dropin_paths(str(tmp_path))
    assert [path[len(str(tmp_path)) + 1 :] for path in found] == ["a.conf", "b.conf", "sub/z.conf"]


@pytest.mark.parametrize(
    ("variables", "kept"),
    [
        (["PATH=/bin", "TOKEN=secret", "HTTP_PROXY=http://other:1"], {}),
        (
            ["HTTPS_PROXY=http://proxy:3128", "NO_PROXY=10.0.0.0/8,.local"],
            {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8,.local"},
        ),
        (["https_proxy=proxy:3128"], {"HTTPS_PROXY": "proxy:3128"}),
        (["https_proxy=low:1", "HTTPS_PROXY=high:1"], {"HTTPS_PROXY": "high:1"}),
        (["HTTPS_PROXY=", "https_proxy=low:1"], {"HTTPS_PROXY": "low:1"}),
        (["HTTPS_PROXY=http://me:secret@proxy:3128/"], {"HTTPS_PROXY": "http://proxy:3128"}),
        (["HTTPS_PROXY=me:secret@proxy:3128"], {"HTTPS_PROXY": "proxy:3128"}),
        # a user and a password without what follows them
        (["HTTPS_PROXY=http://me:48151"], {"HTTPS_PROXY": "http://me:*****"}),
        (["HTTPS_PROXY=me:6789"], {"HTTPS_PROXY": "me:****"}),
        (["HTTPS_PROXY=http://me.example:99999"], {"HTTPS_PROXY": "http://me.example:*****"}),
        (
            ["HTTPS_PROXY=http://proxy.example:48151"],
            {"HTTPS_PROXY": "http://proxy.example:48151"},
        ),
        (["HTTPS_PROXY=http://10.0.0.9:48151/"], {"HTTPS_PROXY": "http://10.0.0.9:48151"}),
        (["HTTPS_PROXY=http://me:secret@proxy:48151"], {"HTTPS_PROXY": "http://proxy:48151"}),
        (["HTTPS_PROXY=http://me:se://c@re/t@proxy:1"], {"HTTPS_PROXY": "http://proxy:1"}),
        (["HTTPS_PROXY=secret://me@proxy:1"], {"HTTPS_PROXY": "proxy:1"}),
        (["HTTPS_PROXY=http://proxy:3128?token=secret"], {"HTTPS_PROXY": "http://proxy:3128"}),
        (["HTTPS_PROXY=http://proxy#secret"], {"HTTPS_PROXY": "http://proxy"}),
        (["HTTPS_PROXY=http://[fd00::9]:3128/x"], {"HTTPS_PROXY": "http://[fd00::9]:3128"}),
        *(
            (["HTTPS_PROXY=" + value], {"HTTPS_PROXY": "[unreadable]"})
            for value in (
                "http:u:secret",
                "http://user:secret",
                "http://user:123secret",
                "http://user:1234567",
                "http://proxy:3128?token=a@secret",
                "http://me:pass@",
                "http://pass word",
            )
        ),
        (["NO_PROXY", ""], {}),
    ],
)
def test_of_the_environment_the_proxy_without_its_credentials(
    variables: "list[str]", kept: "dict[str, str]"
) -> None:
    assert kubelet_process.proxies(variables) == kept


def test_a_list_of_a_large_cluster_is_kept() -> None:
    entries = "node.example.com," * 3000
    assert kubelet_process.proxies(["NO_PROXY=" + entries]) == {"NO_PROXY": entries}


def test_a_list_without_a_proxy_is_cut() -> None:
    kept = kubelet_process.proxies(["NO_PROXY=" + "a" * 99999])
    assert len(kept["NO_PROXY"]) <= kubelet_process.MAX_PROXY + 40


def test_an_environment_that_may_not_be_read(
    node: "dict[int, str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    def environ(_pid: int, name: str) -> bytes:
        assert name == "environ"
        raise PermissionError

    node[7] = UNIT
    monkeypatch.setattr(procfs, "files_of_proc", environ)
    assert here(node)[0]["proxy"] is None
    monkeypatch.setattr(
        procfs, "files_of_proc", lambda _pid, _name: b"A=b\0HTTPS_PROXY=http://proxy:1\0"
    )
    assert here(node)[0]["proxy"] == {"HTTPS_PROXY": "http://proxy:1"}
