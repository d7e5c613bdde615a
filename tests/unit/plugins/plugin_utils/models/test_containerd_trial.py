# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a trial start of containerd proves, by the answers of real ones: 1.6.20 and 2.2.1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    next_start,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import containerd_trial

CAPTURES = Path(__file__).parents[4] / "fixtures" / "containerd_trial"
RELEASES = sorted(path.name for path in CAPTURES.iterdir())
# (verdict, whether it starts without a CRI)
PROOFS = {
    "healthy": ("clear", False),
    "former-version": ("clear", False),
    "removed-plugin": ("clear", False),
    "no-folder-of-cni": ("clear", False),
    "no-toml": ("present", False),
    "another-type": ("present", False),
    "another-type-of-cri": ("present", False),
    "import-missing": ("present", False),
    "required-plugin": ("present", False),
    "no-such-snapshotter": ("present", True),
    "no-such-runtime": ("present", True),
    "mirrors": ("present", True),
    "cri-disabled": ("present", True),
    # what the trial itself lacks
    "snapshotter-of-a-disk": ("unknown", False),
    "cgroup": ("unknown", False),
}
WORDS = {
    "no-such-snapshotter": "overlayfss",
    "import-missing": "/etc/containerd/none.toml",
    "required-plugin": "io.containerd.nothing.v1.x",
    "no-such-runtime": "nvidia",
    "mirrors": "config_path",
}


def captured(release: str, name: str) -> next_start.Trial:
    """Return a real answer."""
    text = (CAPTURES / release / f"{name}.json").read_text(encoding="utf-8")
    return decode(next_start.Trial, json.loads(text)).answer


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", PROOFS)
def test_real_answers(release, name):
    proof = containerd_trial.proof(captured(release, name), True)
    assert (proof.verdict, proof.is_cri) == PROOFS[name], proof
    assert WORDS.get(name, "") in proof.text
    assert bool(proof.text) == (proof.verdict != "clear")


@pytest.mark.parametrize("release", RELEASES)
def test_every_capture_is_judged(release):
    assert {path.stem for path in (CAPTURES / release).iterdir()} == set(PROOFS)


@pytest.mark.parametrize("release", RELEASES)
def test_a_kubelet_of_another_runtime_needs_no_cri(release):
    names = [name for name, (_verdict, is_cri) in PROOFS.items() if is_cri]
    proofs = {containerd_trial.proof(captured(release, name), False).verdict for name in names}
    assert proofs == {"clear"}


@pytest.mark.parametrize(
    ("state", "lines", "word"),
    [
        ("refused", (), "no unshare"),
        ("silent", ("level=info msg=starting",), "no unshare"),
        ("", (), ""),
        ("ended", (), "without a reason"),
        ("ended", ("panic: runtime error", "goroutine 1 [running]:"), "without a reason"),
        ("ended", ("containerd: mkdir /opt/x: read-only file system",), "read-only"),
        ("ended", ("containerd: open /run/secrets/ca.pem: no such file",), "/run/secrets"),
    ],
)
def test_what_proves_nothing(state, lines, word):
    trial = next_start.Trial(state=state, reason="no unshare", lines=lines)
    proof = containerd_trial.proof(trial, True)
    assert proof.verdict == "unknown"
    assert word in proof.text


def test_a_configuration_in_a_folder_that_a_trial_does_not_see_is_named_all_the_same():
    line = "containerd: failed to load TOML: /var/lib/own/config.toml: (2, 2): unexpected token"
    trial = next_start.Trial(state="ended", path="/var/lib/own/config.toml", lines=(line,))
    assert containerd_trial.proof(trial, True).verdict == "present"


def test_a_line_of_json_that_containerd_does_not_survive():
    line = '{"level":"fatal","msg":"Failed to run CRI service"}'
    assert containerd_trial.proof(next_start.Trial(state="ended", lines=(line,)), True).line == line


def test_an_answer_without_a_word_of_its_cri_is_not_clear():
    assert containerd_trial.proof(next_start.Trial(state="served"), True).verdict == "unknown"
