# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import go_panic

PANIC = "panic: runtime error: invalid memory address or nil pointer dereference [recovered]"
VENDOR = "k8s.io/kubernetes/vendor/k8s.io"
STACK = [
    PANIC,
    "\tpanic: runtime error: invalid memory address or nil pointer dereference",
    "[signal SIGSEGV: segmentation violation code=0x1 addr=0x8 pc=0x1a2b3c4]",
    "",
    "goroutine 1 [running]:",
    f"{VENDOR}/apimachinery/pkg/util/runtime.HandleCrash(0x0, 0x0, 0x0)",
    "\t/workspace/runtime.go:55 +0x105",
    "panic(0x3a7c1c0, 0x72f0ab0)",
    "\t/usr/local/go/src/runtime/panic.go:522 +0x1b5",
    f"{VENDOR}/apiextensions-apiserver/pkg/apiserver.(*crdHandler).getServingInfo(0xc00067, 0x24)",
    "\t/workspace/handler.go:647 +0x3f7",
    f"{VENDOR}/apiextensions-apiserver/finalizer.(*CRDFinalizer).deleteInstances(...)",
    f"{VENDOR}/apimachinery/pkg/util/wait.JitterUntil(0xc00e2372a0, 0x3b9aca00)",
    "created by k8s.io/x.Run",
]


def test_the_functions_of_a_panic_stand_in_the_order_of_its_stack() -> None:
    assert go_panic.functions(STACK) == (
        "apiserver.(*crdHandler).getServingInfo",
        "finalizer.(*CRDFinalizer).deleteInstances",
    )


@pytest.mark.parametrize(
    "lines",
    [[], STACK[5:], [PANIC], [PANIC, "goroutine 1 [running]:", "main.main()"], [PANIC, "x" * 5000]],
)
def test_without_a_panic_or_a_stack_there_are_none(lines: list[str]) -> None:
    assert go_panic.functions(lines) == ()
    assert go_panic.clause(PANIC, lines) == ""


def test_a_deep_stack_is_cut() -> None:
    lines = [PANIC, *(f"github.com/x/y.F{number}(0x1)" for number in range(50))]
    assert go_panic.functions(lines) == tuple(f"y.F{n}" for n in range(go_panic.SHOWN))


@pytest.mark.parametrize(
    ("quoted", "is_told"),
    [(PANIC, True), ("fatal error: concurrent map writes", True), ("Error: unknown flag", False)],
)
def test_only_a_quoted_panic_has_functions(quoted: str, is_told: bool) -> None:
    assert bool(go_panic.clause(quoted, STACK)) is is_told
