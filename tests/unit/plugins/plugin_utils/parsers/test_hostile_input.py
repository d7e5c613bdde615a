# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every parser of what a node, a file or the API says, fed with anything.

A parser raises no exception but its own, takes little time, and returns the promised shape.

Other tests check what each makes of its own grammar; this is the floor under all of them.
KUBEMEND_TEST_FULL=1 looks longer, with seeds of its own.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import time
from collections.abc import Callable
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    boot,
    component_end,
    etcd,
    kubelet_log,
    limits,
    scheduler_log,
    swap,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.logs import lines as log_lines
from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    repeated_lines,
    stacks,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    label_selector,
    quantity,
    redaction,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    package_target,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import (
    plan as drain_plan,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    automatic_upgrades,
    boot_mounts,
    etcd_grpc,
    files,
    gpu_driver,
    grpc_call,
    http_client,
    json_line,
    procfs,
    protobuf,
    rpm_upgrades,
    runtime_files,
    systemd,
    yaml_scalars,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle import redact
from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing import (
    argument as editing_argument,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    systemd_unit as unit_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    nodes as nodes_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    next_start as next_start_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    runtime as runtime_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    swap as swap_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import taints
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    client_certificate,
    exit_cause,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    config as kubelet_config,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    cache_dump,
    node_tree,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    message as scheduling_message,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    admission_message,
    component_log,
    cpu_manager_state,
    cpuset,
    error_answer,
    klog,
    known_message,
    limits_conf,
    message_form,
    modules_load_fstab,
    pflag,
    pod_manifest,
    release_number,
    runtime_journal,
    swap_files,
    sysctl_d,
    systemd_unit,
    unit_journal,
    upgrade_origins,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import (
    node_ready_wait,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    diff as report_diff,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import waivers_file
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.settings import SettingsError
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import (
    options as ssh_options,
)
from tests.unit.support import file_evidence

EVERY_PLACE = frozenset(
    place for rows in known_message.files().values() for row in rows for place in row.places
)
PLUGINS = Path(evidence_document.__file__).parents[2]
EXAMPLES = 1000 if os.environ.get("KUBEMEND_TEST_FULL") == "1" else 25
SLOW = 2.0  # seconds of CPU for the longest of these inputs
MARKS = "\n \t\"'\\{}[]()<>:;,=/#@%&*!|-_.~$\0\x1b\r\u2028\x85²٣é\u202e0123456789abcEeIinx"
SEEDS = (
    "a" * 20000,
    "{" * 5000,
    "[" * 5000,
    "- " * 3000,
    "\\" * 9999,
    "((((" * 2000,
    '"' * 9999,
    "9" * 9999,
    "0-" * 4000,
    "1-2," * 4000,
    " " * 20000,
    "\n" * 9999,
    "a=" * 5000,
    "--" * 9999,
    "://" * 3000 + "@",
    "eyJ" * 3000,
    "-----BEGIN CERTIFICATE-----" * 300,
    "PRIVATE KEY-----" * 500,
    "a: &a [*a, *a]",
    "&a [" + "*a," * 99 + "]",
    "!!python/object/apply:os.system ['true']",
    "{{ 7 * 7 }}",
    "%s%s%n",
    "v" + "1" * 5000 + ".2",
    "v1.٣",
    "1²",
    "http://a:1²",
    "https://a:" + "9" * 5000,
    "1e99999999",
    "Bearer " * 2000,
    "x" * 99 + "\ud800",
    "\x1b]0;x\x07",
    "kind: Pod\nspec: {containers: [{command: [kube-scheduler]}]}",
    "0/9 nodes are available: 3 " * 400,
    "I0101 00:00:00.0 1 a.go:1] " * 300,
    "kubepods-pod" + "0" * 32 + ".slice/" * 300,
    "name: TOKEN\nvalue: " * 400,
    "a\\\n" * 3000,
    "Authorization: " * 1500,
    "pass" * 3000,
    "-u a:" * 2000,
)
TEXT = st.one_of(
    st.sampled_from(SEEDS),
    st.text(max_size=200),
    st.text(MARKS, max_size=300),
    st.lists(
        st.one_of(st.sampled_from(SEEDS).map(lambda seed: seed[:40]), st.text(MARKS, max_size=9)),
        max_size=8,
    ).map("".join),
)
BYTES = st.one_of(
    st.binary(max_size=300), TEXT.map(lambda text: text.encode("utf-8", "surrogatepass"))
)
# A message of protobuf whose fields have any bytes, among bytes that are no field.
REPLY = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 13), BYTES).map(lambda field: protobuf.message(*field)),
        st.binary(min_size=1, max_size=12),
    ),
    max_size=12,
).map(b"".join)
LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**400, 10**401),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(SEEDS).map(lambda seed: seed[:80]),
)
JUNK = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(MARKS, max_size=8), inner, max_size=4)
    ),
    max_leaves=6,
)
LINES = st.lists(TEXT, max_size=6)


def _evidence(collector: str, data: Any) -> dict[str, Any]:
    """Return a document with this one collector's answer."""
    return {
        "collected_at": "2026-11-22T18:31:29Z",
        "collectors": {collector: {"status": "ok", "data": data}},
    }


def _decoded(kind: type, junk: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return junk.map(lambda value: decode(kind, value).answer)


CONF = st.fixed_dictionaries(
    {
        "path": st.sampled_from(
            ["/etc/sysctl.d/a.conf", "/etc/security/limits.conf", "/etc/modules-load.d/a.conf"]
        ),
        "text": st.one_of(TEXT, JUNK),
        "link": JUNK,
    }
)
FILES = st.one_of(JUNK, st.lists(st.one_of(JUNK, CONF), max_size=3)).map(file_evidence.files)
SWAP = _decoded(
    swap_answer.Swap,
    st.fixed_dictionaries(
        {"swaps": st.one_of(TEXT, JUNK), "fstab": JUNK, "cmdline": st.one_of(TEXT, JUNK)}
    ),
)


class Parser(NamedTuple):
    """A function, its input (one strategy an argument), its results, its errors."""

    call: Callable[..., Any]
    given: tuple[Any, ...]
    gives: tuple[Any, ...] = (str,)
    raises: tuple[type[BaseException], ...] = ()


NONE = type(None)
PARSERS = (
    # controller
    Parser(
        evidence_document.decoded,
        (st.one_of(TEXT, BYTES),),
        (object,),
        (ValueError, RecursionError, OverflowError),
    ),
    Parser(evidence_document.validate, (JUNK,), (dict,), (evidence_document.EvidenceError,)),
    Parser(
        lambda text: upgrade_origins.matches(
            next_start_answer.OriginPattern(False, text),
            next_start_answer.PackageSource(),
            next_start_answer.Distribution(),
        ),
        (TEXT,),
        (bool,),
    ),
    Parser(release_number.parse, (TEXT,), (tuple, NONE)),
    Parser(ssh_options.parse, (TEXT,), (dict,)),
    Parser(
        lambda text: known_message.find(EVERY_PLACE, text), (TEXT,), (known_message.Known, NONE)
    ),
    Parser(
        waivers_file.parse,
        (BYTES, st.just("waivers.yml"), st.just(("KM101",))),
        (tuple,),
        (SettingsError,),
    ),
    Parser(evidence_document.cluster_key, (TEXT,), (str, NONE)),
    Parser(
        evidence_document.one_line,
        (st.one_of(TEXT, JUNK.filter(lambda value: not isinstance(value, int))),),
    ),
    Parser(evidence_document.shell_name, (TEXT, st.just("x"))),
    Parser(pflag.parse_bool, (TEXT,), (bool, NONE)),
    Parser(pflag.parse_version, (TEXT,), (tuple, NONE)),
    Parser(pflag.normalise, (TEXT,)),
    Parser(pflag.shell_words, (TEXT,), (list,)),
    Parser(pflag.component_of, (LINES, TEXT), (str, NONE)),
    Parser(pflag.string_flag, (LINES, st.just("config")), (str, NONE)),
    Parser(pod_manifest.parse, (TEXT,), (pod_manifest.Manifest,), (pod_manifest.ManifestError,)),
    Parser(
        lambda text: list(pod_manifest.scalars(text)),
        (TEXT,),
        (list,),
        (pod_manifest.ManifestError,),
    ),
    Parser(
        editing_argument.set_argument,
        (
            TEXT,
            st.just("kube-scheduler"),
            st.just("--leader-elect"),
            st.sampled_from(["true", None]),
        ),
        (editing_argument.Edit,),
        (editing_argument.EditRefused,),
    ),
    Parser(cpuset.parse, (TEXT,), (frozenset,), (cpuset.CpusetError,)),
    Parser(cpu_manager_state.cpu_state, (TEXT,), (cpu_manager_state.CpuState,)),
    Parser(kubelet_config.cpus, (TEXT,), (Fraction, NONE)),
    Parser(klog.parse, (TEXT,), (klog.Line,)),
    Parser(scheduling_message.parse, (st.one_of(TEXT, JUNK),), (scheduling_message.Message,)),
    Parser(admission_message.refusal, (TEXT, TEXT), (admission_message.Refusal,)),
    Parser(taints.parse_reasons, (st.one_of(TEXT, JUNK),), (tuple,)),
    Parser(taints.read, (_decoded(nodes_answer.Taint, JUNK),), (taints.Taint, NONE)),
    Parser(cache_dump.parse, (LINES,), (cache_dump.Dump,)),
    Parser(node_tree.algorithm, (st.one_of(TEXT, JUNK),), (str, NONE)),
    Parser(node_tree.defect, (st.one_of(TEXT, JUNK),), (bool, NONE)),
    Parser(message_form.read, (TEXT, st.just("kubelet")), (message_form.Reading, NONE)),
    Parser(
        component_log.telling,
        (LINES, TEXT, st.just("kube-apiserver")),
        (component_log.Telling,),
    ),
    Parser(component_log.entries, (LINES,), (list,)),
    Parser(error_answer.read, (TEXT, st.just("kubelet")), (error_answer.Answer, NONE)),
    Parser(unit_journal.starts, (LINES,), (list,)),
    Parser(
        exit_cause.death,
        (LINES, _decoded(unit_answer.Unit, JUNK).map(systemd_unit.unit)),
        (exit_cause.Death, NONE),
    ),
    Parser(systemd_unit.unit, (_decoded(unit_answer.Unit, JUNK),), (systemd_unit.Unit,)),
    Parser(
        client_certificate.read,
        (
            st.builds(
                _evidence,
                st.just("kubelet"),
                st.fixed_dictionaries(
                    {
                        "client_certificate": st.one_of(
                            JUNK,
                            st.fixed_dictionaries({"path": JUNK, "pem": st.one_of(TEXT, JUNK)}),
                        ),
                        "kubeconfig": JUNK,
                    }
                ),
            ),
        ),
        (client_certificate.Validity, NONE),
    ),
    Parser(
        runtime_journal.last_words,
        (
            _decoded(
                runtime_answer.RuntimeUnit,
                st.fixed_dictionaries(
                    {"said": st.one_of(LINES, JUNK), "exec_main_status": JUNK, "result": JUNK}
                ),
            ),
        ),
        (runtime_journal.Words,),
    ),
    Parser(
        runtime_journal.damaged,
        (
            _decoded(
                runtime_answer.Metadata,
                st.one_of(JUNK, st.fixed_dictionaries({"path": JUNK, "valid": st.booleans()})),
            ),
        ),
    ),
    Parser(
        node_ready_wait.waiting,
        (
            st.lists(
                _decoded(
                    nodes_answer.Node,
                    st.fixed_dictionaries(
                        {"name": st.one_of(JUNK, st.just("x")), "ready": JUNK, "taints": JUNK}
                    ),
                ),
                max_size=3,
            ),
            st.just(["x"]),
        ),
        (dict,),
    ),
    Parser(limits_conf.entries, (FILES,), (list,)),
    Parser(modules_load_fstab.modules, (FILES,), (list,)),
    Parser(modules_load_fstab.mounts, (SWAP.map(attrgetter("fstab")),), (list,)),
    Parser(sysctl_d.number, (SWAP.map(attrgetter("swaps")),), (int, NONE)),
    Parser(sysctl_d.canonical, (TEXT,)),
    Parser(sysctl_d.at_boot, (FILES, st.just(["fs.file-max"])), (dict,)),
    Parser(swap_files.active, (SWAP.map(attrgetter("swaps")),), (list, NONE)),
    Parser(swap_files.fstab, (SWAP.map(attrgetter("fstab")),), (tuple,)),
    Parser(swap_files.unescaped, (TEXT,)),
    Parser(swap_files.words, (SWAP.map(attrgetter("cmdline")),), (list, NONE)),
    Parser(redact.text, (TEXT,)),
    Parser(report_diff.parse, (BYTES, st.just("x")), (report_diff.Earlier,), (SettingsError,)),
    # nodes
    Parser(boot_mounts.absent, (TEXT, st.just(True), TEXT), (tuple,)),
    Parser(rpm_upgrades.sections, (TEXT,), (dict,), (ValueError,)),
    Parser(lambda text: rpm_upgrades.sections(f"[main]\n{text}"), (TEXT,), (dict,), (ValueError,)),
    Parser(rpm_upgrades.locked, (TEXT,), (list,)),
    Parser(rpm_upgrades.toml_locked, (TEXT,), (list,)),
    Parser(lambda text: rpm_upgrades.toml_locked(f"[[packages]]{text}"), (TEXT,), (list,)),
    Parser(rpm_upgrades.installed, (TEXT,), (list,)),
    Parser(automatic_upgrades.settings_of, (TEXT,), (dict,)),
    Parser(automatic_upgrades.free, (TEXT,), (list,)),
    Parser(automatic_upgrades.releases_of, (TEXT,), (dict,)),
    Parser(automatic_upgrades.policies, (TEXT, st.just({})), (list,)),
    Parser(
        lambda text: automatic_upgrades.policies(f"x:\n  Version table:\n *** {text}", {}),
        (TEXT,),
        (list,),
    ),
    Parser(gpu_driver.loaded, (TEXT,), (str,)),
    Parser(lambda text: runtime_files.conflicts({"config.toml": text}), (TEXT,), (list,)),
    Parser(redaction.data, (BYTES,), (tuple,)),
    Parser(redaction.argv, (LINES,), (list,)),
    Parser(files.certificates, (TEXT,), (str, NONE)),
    Parser(json_line.dumps, (JUNK,), (str,), (ValueError,)),
    Parser(yaml_scalars.top, (TEXT, st.just("clusters")), (str, list, NONE)),
    Parser(yaml_scalars.anywhere, (TEXT, st.just("server")), (str, list, NONE)),
    Parser(yaml_scalars.scalar, (TEXT,), (str, NONE)),
    Parser(yaml_scalars.os_release, (TEXT,), (dict,)),
    Parser(procfs.component, (TEXT, LINES), (str, NONE)),
    Parser(procfs.cgroup, (TEXT,), (dict,)),
    Parser(procfs.session, (TEXT,), (str, NONE)),
    Parser(procfs.rlimit, (TEXT, st.just("Max open files")), (list, NONE)),
    Parser(procfs.real_uid, (TEXT,), (int, NONE)),
    Parser(procfs.number, (TEXT,), (int, NONE)),
    Parser(procfs.flag, (LINES, st.just("config")), (str, NONE)),
    Parser(procfs.start_of, (TEXT, TEXT, st.just(1.8e9), st.just(100)), (float, NONE)),
    Parser(procfs.host_path, (st.just("/etc/x"), TEXT, TEXT), (str, NONE)),
    Parser(systemd.parse, (TEXT,), (list,)),
    Parser(systemd.words, (TEXT,), (list,)),
    Parser(systemd.joined, (TEXT,), (list,)),
    Parser(systemd.environment_file, (TEXT,), (dict,)),
    Parser(grpc_call.status, (BYTES,), (int, NONE)),
    Parser(boot.mounts, (TEXT, st.just(("/", "/var"))), (list,)),
    Parser(limits.file_nr, (TEXT,), (int, list, dict, NONE)),
    Parser(limits.capable, (TEXT,), (bool, NONE)),
    Parser(limits.settings, (st.just("/etc/x"), TEXT), (list,)),
    Parser(swap.paths, (TEXT,), (list, set)),
    Parser(swap.cmdline, (TEXT,), (str, list, NONE)),
    Parser(swap.memory, (TEXT,), (dict,)),
    Parser(kubelet_log.chosen, (TEXT,), (list,)),
    Parser(stacks.removed, (LINES, st.just(str)), (list,)),
    Parser(stacks.fill, (LINES, st.just(str)), (bool,)),
    Parser(stacks.begin_in_file, (BYTES,), (bytes,)),
    Parser(component_end.ends, (BYTES, BYTES), (tuple,)),
    Parser(component_end.find_start_failure, (LINES, st.just("kube-scheduler")), (str, NONE)),
    Parser(scheduler_log.events, (st.lists(BYTES, max_size=6),), (tuple,)),
    Parser(etcd.split, (TEXT,), (list,)),
    Parser(etcd.parsed, (TEXT,), (tuple,)),
    Parser(etcd.members, (BYTES,), (dict,), (http_client.HttpError,)),
    Parser(etcd.status_of, (BYTES,), (dict,), (http_client.HttpError,)),
    Parser(etcd.alarms, (BYTES,), (list,), (http_client.HttpError,)),
    Parser(protobuf.fields, (BYTES,), (list,), (protobuf.Malformed,)),
    Parser(etcd_grpc.member_list, (REPLY,), (bytes,), (protobuf.Malformed,)),
    Parser(etcd_grpc.member_status, (REPLY,), (bytes,), (protobuf.Malformed,)),
    Parser(etcd_grpc.alarm_list, (REPLY,), (bytes,), (protobuf.Malformed,)),
    Parser(etcd_grpc.key_count, (REPLY,), (bytes,), (protobuf.Malformed,)),
    Parser(log_lines.seconds, (TEXT,), (float, int, NONE)),
    Parser(log_lines.written, (BYTES,), (tuple, NONE)),
    Parser(repeated_lines.fold, (BYTES.map(lambda raw: raw[:500]),), (bytes,)),
    Parser(lambda raw: list(repeated_lines.IN_FILE.finditer(raw)), (BYTES,), (list,)),
    Parser(lambda raw: list(repeated_lines.IN_JOURNAL.finditer(raw)), (BYTES,), (list,)),
    Parser(log_lines.entry, (BYTES,), (tuple, NONE)),
    Parser(log_lines.unusable, (TEXT,), (str, NONE)),
    Parser(quantity.parse, (st.one_of(TEXT, JUNK),), (Fraction, NONE)),
    Parser(label_selector.parse, (TEXT,), (list,), (ValueError,)),
    Parser(package_target.decoded, (BYTES,), (dict,), (storage.ChangeError,)),
    Parser(drain_plan.moment, (TEXT,), (float, int, NONE)),
)
# Parsers with a property test of their own that asks more, or none of what a node says.
ELSEWHERE = {
    "plugin_utils/evidence/contract.py",
    "plugin_utils/run/settings.py",
    "plugin_utils/parsers/pflag.py",
    "module_utils/system/systemd.py",
}


def name_of(parser: Parser) -> str:
    return f"{parser.call.__module__.rpartition('.')[2]}.{parser.call.__name__}"


@pytest.mark.parametrize("parser", PARSERS, ids=name_of)
def test_anything_gives_what_was_promised_or_the_documented_error(parser: Parser) -> None:
    @settings(max_examples=EXAMPLES)
    @given(st.tuples(*parser.given))
    def feed(values: tuple[Any, ...]) -> None:
        begin = time.process_time()
        try:
            found = parser.call(*values)
        except parser.raises:
            found = None
        else:
            assert isinstance(found, parser.gives), f"{found!r:.200}"
        assert time.process_time() - begin < SLOW, f"{values!r:.200}"

    feed()


@pytest.mark.parametrize(
    "parser", [parser for parser in PARSERS if parser.given[0] in (TEXT, BYTES)], ids=name_of
)
def test_each_of_the_long_ones(parser: Parser) -> None:
    """A parser whose time grows with the square of its input is slow on these."""
    for seed in SEEDS:
        first: str | bytes = seed
        if parser.given[0] is BYTES:
            first = seed.encode("utf-8", "surrogatepass")
        values = [first, *("x" if strategy is TEXT else None for strategy in parser.given[1:])]
        if None in values:
            continue
        begin = time.process_time()
        with contextlib.suppress(parser.raises):
            parser.call(*values)
        assert time.process_time() - begin < SLOW, f"{seed[:40]!r}"


@settings(max_examples=EXAMPLES)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "kubelet",
                "system",
                "manifests",
                "instances",
                "etcd",
                "limits",
                "swap",
                "boot",
                "kubelet_log",
                "runtime",
                "pinning",
                "x y",
            ]
        ),
        st.fixed_dictionaries(
            {"status": st.sampled_from(["ok", "ok", "ok", "absent", "denied", "zzz"]), "data": JUNK}
        ),
        max_size=5,
    ),
    JUNK,
    JUNK,
)
@example({}, float("inf"), None)
@example({}, True, "2026-11-21T09:00:00Z")
def test_whatever_a_node_answers_is_written_and_judged(
    collectors: dict[str, Any], duration: Any, at: Any
) -> None:
    document = evidence_document.envelope(
        "m1", "ok", "", {"collectors": collectors, "duration_ms": duration, "collected_at": at}
    )
    accepted = evidence_document.accepted(evidence_document.finalise(document, ["node"]))
    assert evidence_document.validate(accepted)["host"] == "m1"
    assert accepted["groups"] == ["node"]
    result = fault_engine.evaluate([accepted])
    assert {row.host for row in result.hosts} == {"m1"}


def test_no_parser_is_forgotten() -> None:
    """A function called parse takes what something else wrote: it stands in the table above."""
    known = {(parser.call.__module__, parser.call.__name__) for parser in PARSERS}
    for path in sorted(
        [*(PLUGINS / "plugin_utils").rglob("*.py"), *(PLUGINS / "module_utils").rglob("*.py")]
    ):
        module = "ansible_collections.kubemend.remediation.plugins." + ".".join(
            path.relative_to(PLUGINS).with_suffix("").parts
        )
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if (
                isinstance(node, ast.FunctionDef)
                and node.name in ("parse", "entries", "told", "decoded")
                and str(path.relative_to(PLUGINS)) not in ELSEWHERE
            ):
                is_exempt = node.name == "told" or path.stem == "yaml_scalars"
                assert (module, node.name) in known or is_exempt, (
                    f"{path.relative_to(PLUGINS)}: {node.name}"
                )


def test_the_bound_of_values_lets_pass_what_collectors_bring() -> None:
    dense = json.dumps(
        {"processes": [{"pid": number, "fd": [1, 2, 3], "comm": "x"} for number in range(100000)]}
    )
    assert len(evidence_document.decoded(dense)["processes"]) == 100000
    for bomb in (
        '[{"":0}' + ',{"":0}' * 1000000 + "]",
        "[[]" + ",[]" * 2000000 + "]",
        '["ab"' + ',"ab"' * 4000000 + "]",
    ):
        with pytest.raises(OverflowError):
            evidence_document.decoded(bomb)
