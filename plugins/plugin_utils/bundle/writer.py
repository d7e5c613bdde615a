# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as one file that can be given away: its evidence, its findings, its versions.

The packed evidence is read and evaluated again before the file exists, so that a bundle never
differs from its run.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import secrets
import shlex
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...module_utils.shared.text import counted
from ...module_utils.shared.version import TOOL_VERSION
from ..evidence import archive
from ..evidence import document as evidence_document
from ..faults import engine
from ..models import result as model_result
from ..models import timeline
from ..reports import json_report
from ..reports.run_info import Run
from ..run import command_line
from . import redact
from .anonymize.evidence import Anonymizer

Stream = Callable[[], Iterator[dict[str, Any]]]
MAX_CODES_SHOWN = 6
ATTEMPTS = 5  # at replacements that keep every verdict
NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class BundleError(Exception):
    """The reason why there is no bundle; one sentence."""


@dataclass(frozen=True)
class Case:
    """The contents of a bundle.

    Attributes:
        stream: yields the documents as they were evaluated, as often as it is called.
        faults: the selected codes, None for all.
        part: whether the run is a part of a fleet.
        core: the version of ansible-core.
        exit: the exit code and exit reason of the run; its waivers and severities are not packed.
        upgrade_to: the release that the operator named, None where it is the one that follows.
    """

    stream: Stream
    judged: model_result.Result
    run: Run
    faults: frozenset[str] | None
    deep: bool
    part: bool
    core: str
    exit: tuple[int, str]
    upgrade_to: tuple[int, int] | None = None


def objection(path: str) -> str | None:
    """Return why no bundle can be written there, before any host is read; None if it can."""
    target = Path(path)
    if os.path.lexists(target):
        return (
            f"kubemend_bundle is {path}, which exists already; it is not overwritten, so name"
            " another file or move that one away."
        )
    if not target.parent.is_dir():
        return (
            f"kubemend_bundle is {path}, but {target.parent} is no folder; make it, or name a file"
            " in one that exists."
        )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        return f"kubemend_bundle is {path}, but nothing can be written in {target.parent}."
    return None


def write(path: str, case: Case, anonymous: bool) -> None:
    """Write the bundle, whole or not at all, for its owner only. Raises BundleError or OSError."""
    packed, report = _clean_report(case, anonymous)
    digests = {archive.REPORT: hashlib.sha256(report).hexdigest()}
    for name in sorted(packed):
        digests[name] = hashlib.sha256(zlib.decompress(packed[name])).hexdigest()
    first = {**_about(case, anonymous), "files": digests}

    def members() -> Iterator[tuple[str, bytes]]:
        yield archive.FIRST, _json(first)
        yield archive.REPORT, report
        for name in sorted(packed):
            yield name, zlib.decompress(packed[name])

    _place(Path(path), members)


def _clean_report(case: Case, anonymous: bool) -> tuple[dict[str, bytes], bytes]:
    """Return the clean documents, and their report, which must be the run's own.

    Replacements are made by chance, and addresses octet by octet: networks whose prefix ends
    within an octet may come to overlap. Other replacements are tried then.
    """
    for _attempt in range(ATTEMPTS - 1):
        anonymizer = _anonymizer(case, anonymous)
        packed = _pack(case, anonymizer)
        try:
            return packed, _report(case, packed, anonymizer)
        except BundleError:
            if anonymizer is None:
                raise
    anonymizer = _anonymizer(case, anonymous)
    packed = _pack(case, anonymizer)
    return packed, _report(case, packed, anonymizer)


def _anonymizer(case: Case, anonymous: bool) -> Anonymizer | None:
    if not anonymous:
        return None
    documents = (redact.document(document) for document in case.stream())
    return Anonymizer(documents, secrets.token_bytes(32))


def _pack(case: Case, anonymizer: Anonymizer | None) -> dict[str, bytes]:
    """Return the clean documents by the names of their members, compressed."""
    packed: dict[str, bytes] = {}
    for document in case.stream():
        clean = _clean(document, anonymizer)
        name = _member_name(clean)
        data = json.dumps(clean, separators=(",", ":")).encode("ascii")
        if name in packed:
            raise BundleError(
                "No bundle was written: two hosts would have the same name in it"
                f" ({evidence_document.one_line(clean['host'], 80)})."
            )
        if len(data) > archive.MAX_MEMBER:
            raise BundleError(
                f"No bundle was written: the evidence of"
                f" {evidence_document.one_line(document['host'], 80)}"
                " is larger than what replay reads."
            )
        packed[name] = zlib.compress(data, 1)
    return packed


def _clean(document: dict[str, Any], anonymizer: Anonymizer | None) -> dict[str, Any]:
    redacted = redact.document(document)
    if anonymizer is None:
        return redacted
    return anonymizer.document(redacted)


def _member_name(document: Mapping[str, Any]) -> str:
    suffix = ".json"
    if document.get("kind") == "cluster":
        suffix = ".cluster.json"
    return archive.member_name(evidence_document.file_name(document["host"], suffix))


def command(path: str, case: Case) -> str:
    """Return the command that evaluates the bundle to the same verdicts."""
    words = [f"-e kubemend_evidence={shlex.quote(path)}"]
    if case.deep:
        words.append("-e kubemend_deep=true")
    if case.part:
        words.append("-e kubemend_slice=true")
    if case.upgrade_to is not None:
        words.append(f"-e kubemend_upgrade_to={case.upgrade_to[0]}.{case.upgrade_to[1]}")
    if case.faults is not None:
        words.append(f"-e kubemend_faults={','.join(sorted(case.faults))}")
    return command_line.command("replay", "", " ".join(words))


def _about(case: Case, anonymous: bool) -> dict[str, Any]:
    symptom = faults = None
    if case.run.symptom:
        symptom = case.run.symptom.name
    if case.faults is not None:
        faults = sorted(case.faults)
    return {
        "schema": archive.SCHEMA,
        "anonymous": anonymous,
        "run_id": case.run.run_id,
        "mode": case.run.mode,
        "symptom": symptom,
        "started": case.run.started,
        "finished": case.run.finished,
        "versions": {
            "kubemend": TOOL_VERSION,
            "evidence": evidence_document.SCHEMA,
            "report": json_report.SCHEMA,
            "ansible_core": case.core,
            "python": platform.python_version(),
        },
        "faults": faults,
        "deep": case.deep,
        "part": case.part,
        "replay": command("THIS_FILE", case),
    }


def _report(case: Case, packed: Mapping[str, bytes], anonymizer: Anonymizer | None) -> bytes:
    """Return the report of the packed evidence, which must be the run's own."""

    def clean(value: Any) -> Any:
        return _clean({"value": value}, anonymizer)["value"]

    documents = (
        evidence_document.validate(json.loads(zlib.decompress(packed[name])))
        for name in sorted(packed)
    )
    judged, clusters = engine.evaluate_clusters(
        documents, case.faults, deep=case.deep, part=case.part, upgrade_to=case.upgrade_to
    )
    _require_same(case.judged, judged, anonymizer)
    timelines, _lacking = timeline.of_clusters(clusters)
    # Captures contain log lines and name files of the operator, a comparison is about another run:
    # neither is in the packed evidence.
    run = replace(
        case.run,
        plan=(),
        steps=(),
        notices=tuple(clean(list(case.run.notices))),
        timelines=timelines,
        report_dir="",
        cluster_names={},
        captures=(),
        compared=None,
        outside=(),
        waivers_expired=(),
        severities={},
    )
    report = json_report.render(judged, run)
    report["exit_code"], report["exit_reason"] = case.exit
    report["plan"] = clean([step.shown() for step in case.run.plan])
    return _json(report)


def _require_same(
    before: model_result.Result, after: model_result.Result, anonymizer: Anonymizer | None
) -> None:
    """Raise BundleError unless the packed evidence gives the verdicts and findings of the run."""

    def rename(host: str | None) -> str | None:
        if not host or anonymizer is None:
            return host
        return anonymizer.text(host)

    rows_before, rows_after = _rows(before, rename), _rows(after, lambda host: host)
    if rows_before == rows_after:
        return
    advice = "please report this."
    if anonymizer is not None:
        advice = (
            "without kubemend_bundle_anonymous a bundle may be possible, and please report this."
        )
    codes = sorted({code for code, _row in set(rows_before) ^ set(rows_after)})
    raise BundleError(
        "No bundle was written: without what is taken out of it, it would not give the same"
        f" verdicts ({_codes(codes)}). The report is complete; {advice}"
    )


def _codes(codes: list[str]) -> str:
    shown = ", ".join(codes[:MAX_CODES_SHOWN])
    remainder = len(codes) - MAX_CODES_SHOWN
    if remainder > 0:
        shown += f" and {counted(remainder, 'other')}"
    return shown


def _rows(
    result: model_result.Result, rename: Callable[[str | None], str | None]
) -> list[tuple[str, str]]:
    """Return (code, the rest) of each verdict and finding, sorted."""
    rows = [(item.code, repr(_verdict_row(item, rename))) for item in result.verdicts]
    for item in result.findings:
        names = rename(item.host), rename(item.node)
        rows.append((item.code, repr((item.cluster, *names, item.component, item.severity))))
    return sorted(rows)


def _verdict_row(
    item: model_result.Verdict, rename: Callable[[str | None], str | None]
) -> tuple[Any, ...]:
    missing = sorted(
        (rename(lack.host) or "", lack.collector, lack.status) for lack in item.missing
    )
    return item.cluster, rename(item.host), item.component, item.verdict, missing


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode("ascii")


def _place(target: Path, members: Callable[[], Iterator[tuple[str, bytes]]]) -> None:
    # mkstemp creates the file with mode 0600.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            archive.packed(members(), file)
            file.flush()
            os.fsync(file.fileno())
        _link(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _link(temporary: Path, target: Path) -> None:
    """Give the file its name, and never replace a file that another process created meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise BundleError(
            f"No bundle was written: {target} came to be while the run was going on, and is not"
            " overwritten."
        ) from None
    except OSError as error:
        if error.errno not in NO_HARD_LINKS or os.path.lexists(target):
            raise
        temporary.rename(target)
