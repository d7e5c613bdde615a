# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step in check mode, of every kind.

It looks at what the step looks at last, says what would refuse it, and changes nothing at all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import (
    check_mode,
)
from tests.fault_injection import clusters, nodes
from tests.fault_injection.judged import RUN

PREDICTED = {
    kind.name for kind in step_kinds.KINDS.values() if kind.check_mode in check_mode.PREDICTED
}
SCENES = {**nodes.SCENES, **clusters.SCENES}
ASKED = {name: scene for name, scene in SCENES.items() if not set(scene.kinds) & PREDICTED}
ANOTHER = "a" * 64


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, Any]]:
    with SCENES[request.param].make(tmp_path, monkeypatch) as node:
        yield SCENES[request.param], node


def look(scene: Any, node: Any, step: dict[str, Any]) -> dict[str, Any]:
    """Tell what the node says; nothing of it is another one than before."""
    before, root = scene.state(node), nodes.tree(Path(node.root))
    answer = scene.do(
        {"run_id": RUN, "root": str(node.root), "lock": None, "check": True, "step": step}
    )
    assert scene.state(node) == before
    assert nodes.tree(Path(node.root)) == root
    assert answer["journal"] is None
    return dict(answer)


@pytest.mark.parametrize("scene", ASKED, indirect=True)
def test_what_nothing_refuses_would_be_done(scene: tuple[Any, Any]) -> None:
    made, node = scene
    answer = look(made, node, made.steps(node)[0])
    assert answer["state"] == "skipped", answer
    assert answer["reason"].startswith("check mode: "), answer


def test_every_kind_of_step_is_asked_or_named_as_one_that_is_not() -> None:
    """A new kind of step has a scene, and with it the tests here.

    A kind without a scene is one of those that are predicted.
    """
    kinds = {kind for scene in SCENES.values() for kind in scene.kinds}
    assert set(step_kinds.in_plans()) - kinds <= PREDICTED | {"recover"}
    assert not {kind for scene in ASKED.values() for kind in scene.kinds} & PREDICTED


@pytest.mark.parametrize(
    "scene",
    ["manifest", "configuration", "stray manifest", "fstab", "kubeadm's ConfigMap", "workload"],
    indirect=True,
)
def test_what_somebody_changed_since_would_be_refused(scene: tuple[Any, Any]) -> None:
    made, node = scene
    step = made.steps(node)[0]
    answer = look(made, node, {**step, "change": {**step["change"], "sha256": ANOTHER}})
    assert answer["state"] == "refused", answer
    assert "no longer what evidence said" in answer["reason"], answer
    assert "plan again" in answer["reason"], answer


def _sick(node: Any) -> None:
    (node.state / "sick").touch()


def _full(node: Any) -> None:
    (node.proc / "meminfo").write_text("MemAvailable: 1 kB\n")


def _relinked(node: Any) -> None:
    with contextlib.suppress(FileNotFoundError):
        Path(node.etc).unlink()
    Path(node.etc).symlink_to("/usr/lib/another.service")


@pytest.mark.parametrize(
    ("scene", "trouble", "said"),
    [
        ("manifest", _sick, "the kubelet of m2 is not healthy"),
        ("stray manifest", _sick, "the kubelet of m2 is not healthy"),
        ("swapoff", _full, "make room first"),
        ("kubelet unmasked", _relinked, "is no longer"),
        (
            "kubelet started",
            lambda node: node.set(enabled="masked"),
            "masked, which was done on purpose",
        ),
        ("kubelet enabled", lambda node: node.set(enabled="static"), "the evidence is old"),
    ],
    indirect=["scene"],
)
def test_what_stands_in_the_way_now_would_refuse_it(
    scene: tuple[Any, Any], trouble: Any, said: str
) -> None:
    made, node = scene
    step = made.steps(node)[0]
    trouble(node)
    answer = look(made, node, step)
    assert answer["state"] == "refused", answer
    assert said in answer["reason"], answer
