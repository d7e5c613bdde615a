# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin of Istio, and the configuration of another one that lacks it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import cni_chain
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.moments import moment

POD, WRITTEN = "istio-cni-node-n5kbp", 1795525500.0
CILIUM, CALICO = ("05-cilium.conflist", ["cilium-cni"]), ("10-calico.conflist", ["calico"])


def chain(*files: tuple[str, list[str]], **changed: Any) -> cni_chain.CniChain:
    """Return what a node has with these files (name, plugins)."""
    rows = [{"name": name, "plugins": plugins, "mtime": WRITTEN} for name, plugins in files]
    data = {"folder": "/etc/cni/net.d", "files": rows, "programs": ["cilium-cni", "istio-cni"]}
    answer = {"status": "ok", "data": data | changed}
    return cni_chain.extract({"host": "w1", "collectors": {"cni": answer}})


def before(seconds: float) -> datetime:
    written = moment(WRITTEN)
    assert written is not None
    return written - timedelta(seconds=seconds)


def test_the_file_that_cilium_writes_again() -> None:
    clause, advice = chain(CILIUM).clause(POD, before(1800))
    assert clause.startswith("/etc/cni/net.d/05-cilium.conflist")
    assert "cni.exclusive" in clause
    assert advice == cni_chain.NOT_EXCLUSIVE


def test_a_file_of_istio_that_cilium_renamed() -> None:
    aside = ["100-x.conf.cilium_bak", "YYY-istio-cni.conf.cilium_bak"]
    clause, advice = chain(CILIUM, aside=aside).clause(POD, before(-60))
    assert aside[1] in clause
    assert advice == cni_chain.NOT_EXCLUSIVE


@pytest.mark.parametrize(
    ("file", "since"), [(CILIUM, before(-60)), (CILIUM, None), (CALICO, before(1800))]
)
def test_who_wrote_a_file_is_not_always_known(
    file: tuple[str, list[str]], since: datetime | None
) -> None:
    clause, advice = chain(file).clause(POD, since)
    assert file[0] in clause
    assert ("exclusive" in clause, advice) == (False, "")


@pytest.mark.parametrize(
    "given",
    [
        chain(("05-cilium.conflist", ["cilium-cni", "istio-cni"])),
        chain(CILIUM, ("YYY-istio-cni.conf", ["istio-cni"])),
        chain(("00-multus.conf", ["multus"]), CILIUM),  # which may have the plugin within
        chain(CILIUM, programs=["cilium-cni"]),
        chain(CILIUM, programs=None),
        chain(CILIUM, error="denied"),
        chain(CILIUM, files=[{"name": "05-cilium.conflist", "error": "denied"}]),
        chain(("10-lo.conf", ["loopback"])),
        chain(),
        cni_chain.extract({"host": "w1", "collectors": {}}),
    ],
)
def test_what_shows_no_lack(given: cni_chain.CniChain) -> None:
    assert given.clause(POD, before(1800)) == ("", "")


def test_a_pod_of_another_agent() -> None:
    assert chain(CILIUM).clause("cilium-x2v7d", before(1800)) == ("", "")
