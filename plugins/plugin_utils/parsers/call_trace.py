# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose code the call trace of a lockup, a hung task or an oops was in. Pure.

Names of the kernel's own scheduler, locks and entries tell nothing: every trace has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..evidence.document import one_line

SHOWN = 3
PROGRAM = re.compile(r"bpf_prog_[0-9a-f]{16}(?:_(?P<name>\w{1,64}))?")
_BPF = re.compile(
    r"bpf_prog_|bpf_trace_run\d{1,2}$|trace_call_bpf$|_{0,3}bpf_prog_run|cls_bpf_classify$"
    r"|bpf_dispatcher_|tcf_bpf_act$"
)
_PLAIN = re.compile(
    r"_{0,3}(?:schedule|entry_|do_syscall|x64_sys|asm_|ret_from|exc_|sysvec|common_interrupt"
    r"|native_|queued_|raw_spin|_raw|mutex_|rwsem|down_|io_schedule|kthread|worker_thread|apic"
    r"|smp_|irq|do_IRQ|secondary_|start_secondary|cpu_startup|do_idle|x86_|handle_irq|watchdog"
    r"|bit_wait|wait_for_|out_of_line|system_call|dump_stack|show_stack|rest_init|nmi|panic)"
)
# Drivers whose product is another name.
DRIVERS = {
    "falco": "Falco",
    "falco_probe": "Falco",
    "scap": "Sysdig",
    "sysdig_probe": "Sysdig",
    "sysdigcloud_probe": "Sysdig",
}


@dataclass(frozen=True)
class CallTrace:
    """What a trace shows.

    calls: functions that are not of every trace. modules: those with code in it. bpf: the function
    that runs a BPF program, or "". programs: names of BPF programs
    """

    calls: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    bpf: str = ""
    programs: tuple[str, ...] = ()

    @property
    def clause(self) -> str:
        """Return whose code it was in, as a clause, or ""."""
        if not self.calls and not self.bpf:
            return ""
        parts = []
        if self.bpf:
            names = " ".join(("a BPF program", ", ".join(self.programs))).strip()
            parts.append(f"{names} ({self.bpf})")
        if self.modules:
            parts.append(f"the module {', '.join(map(_module, self.modules))}")
        calls = " < ".join(self.calls[:SHOWN])
        if not parts:
            return f"; its call trace was in {calls}"
        code = " and ".join(parts)
        return "; its call trace was in " + ": ".join(part for part in (code, calls) if part)

    @property
    def advice(self) -> str:
        """Return what to do about whose code it was, or ""."""
        if self.bpf:
            return (
                "see on that node which agent loaded the BPF program (bpftool prog show, bpftool"
                " perf show): a network plugin, Falco, or another agent of security or tracing."
                " Update or stop that agent, and look for this kernel in its known issues"
            )
        if self.modules:
            return (
                f"see on that node who built the module (modinfo {self.modules[0]}). With one of"
                " the distribution, a disk, a card or a server that it drives may not answer."
                " Update or remove one of an agent or a vendor"
            )
        return ""


def read(trace: Iterable[str]) -> CallTrace:
    """Return what the functions of a trace show, innermost first."""
    calls: list[str] = []
    modules: list[str] = []
    programs: list[str] = []
    bpf = ""
    for call in trace:
        name, _space, module = one_line(call, 160).partition(" ")
        if _BPF.match(name):
            bpf = bpf or name
            program = PROGRAM.match(name)
            programs += [program.group("name")] if program and program.group("name") else []
        elif not _PLAIN.match(name):
            calls.append(name)
        modules += [module] if module and not name.startswith("bpf_prog_") else []
    unique = (tuple(dict.fromkeys(rows))[:SHOWN] for rows in (calls, modules, programs))
    first, second, third = unique
    return CallTrace(first, second, bpf, third)


def _module(name: str) -> str:
    product = DRIVERS.get(name)
    return f"{name} of {product}" if product else name
