# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as one file that can be given away: its evidence, its findings, its versions.

What is packed is read again and judged before there is a file, so that nobody is sent a bundle that
says something else than the run that it is of.
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

from ..evidence import archive
from ..evidence import document as evidence
from ..faults import engine as judge
from ..models import result as model
from ..models import timeline
from ..reports import json_report as report_json
from ..reports.run_info import Run, exit_of
from . import redact
from .anonymize.evidence import Anonymous

Stream = Callable[[], Iterator[dict[str, Any]]]
SHOWN = 6


class BundleError(Exception):
    """Why there is no bundle; one sentence."""


@dataclass(frozen=True)
class Case:
    """What is packed. stream: the documents as they were judged, as often as it is called. core.

    The version of ansible-core.
    """

    stream: Stream
    judged: model.Result
    run: Run
    faults: frozenset[str] | None
    deep: bool
    part: bool
    core: str


def objection(path: str) -> str | None:
    """Why no bundle can be written there, before anything is asked of a host; None where it can."""
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
    change = (
        Anonymous((redact.document(one) for one in case.stream()), secrets.token_bytes(32))
        if anonymous
        else None
    )
    packed: dict[str, bytes] = {}
    for document in case.stream():
        clean = redact.document(document)
        clean = change.document(clean) if change else clean
        name = archive.member_name(
            evidence.file_name(
                clean["host"], ".cluster.json" if clean.get("kind") == "cluster" else ".json"
            )
        )
        data = json.dumps(clean, separators=(",", ":")).encode("ascii")
        if name in packed:
            raise BundleError(
                "No bundle was written: two hosts would have the same name in it"
                f" ({evidence.one_line(clean['host'], 80)})."
            )
        if len(data) > archive.MAX_MEMBER:
            raise BundleError(
                f"No bundle was written: the evidence of {evidence.one_line(document['host'], 80)}"
                " is larger than what replay reads."
            )
        packed[name] = zlib.compress(data, 1)
    report = _report(case, packed, change)
    digests = {
        name: hashlib.sha256(zlib.decompress(packed[name])).hexdigest() for name in sorted(packed)
    }
    first = {
        **_about(case, anonymous),
        "files": {archive.REPORT: hashlib.sha256(report).hexdigest(), **digests},
    }

    def members() -> Iterator[tuple[str, bytes]]:
        yield archive.FIRST, _json(first)
        yield archive.REPORT, report
        for name in sorted(packed):
            yield name, zlib.decompress(packed[name])

    _place(Path(path), members)


def command(path: str, case: Case) -> str:
    """What reads the bundle to the same verdicts."""
    more = (" -e kubemend_deep=true" if case.deep else "") + (
        " -e kubemend_slice=true" if case.part else ""
    )
    return (
        "ansible-playbook kubemend.remediation.replay -e"
        f" kubemend_evidence={shlex.quote(path)}{more}"
        + (
            f" -e kubemend_faults={','.join(sorted(case.faults))}"
            if case.faults is not None
            else ""
        )
    )


def _about(case: Case, anonymous: bool) -> dict[str, Any]:
    return {
        "schema": archive.SCHEMA,
        "anonymous": anonymous,
        "run_id": case.run.run_id,
        "mode": case.run.mode,
        "symptom": case.run.symptom.name if case.run.symptom else None,
        "started": case.run.started,
        "finished": case.run.finished,
        "versions": {
            "kubemend": evidence.TOOL_VERSION,
            "evidence": evidence.SCHEMA,
            "report": report_json.SCHEMA,
            "ansible_core": case.core,
            "python": platform.python_version(),
        },
        "faults": None if case.faults is None else sorted(case.faults),
        "deep": case.deep,
        "part": case.part,
        "replay": command("THIS_FILE", case),
    }


def _report(case: Case, packed: Mapping[str, bytes], change: Anonymous | None) -> bytes:
    """The report of what is packed, which must be the run's own."""

    def clean(value: Any) -> Any:
        held = redact.document({"value": value})
        return (change.document(held) if change else held)["value"]

    documents = (
        evidence.validate(json.loads(zlib.decompress(packed[name]))) for name in sorted(packed)
    )
    judged, clusters = judge.examine(documents, case.faults, deep=case.deep, part=case.part)
    _compare(case.judged, judged, change)
    timelines, _lacking = timeline.of_clusters(clusters)
    # Captures are words of a log and name files of the operator, a comparison tells of another run:
    # neither is in the evidence that is packed.
    run = replace(
        case.run,
        plan=(),
        steps=(),
        notices=tuple(clean(list(case.run.notices))),
        timelines=timelines,
        report_dir="",
        captures=(),
        compared=None,
        outside=(),
    )
    report = report_json.render(judged, run)
    report["exit_code"], report["exit_reason"] = exit_of(judged, case.run)
    report["plan"] = clean([step.shown() for step in case.run.plan])
    return _json(report)


def _compare(before: model.Result, after: model.Result, change: Anonymous | None) -> None:
    def name(host: str | None) -> str | None:
        return change.text(host) if change and host else host

    def rows(
        result: model.Result, called: Callable[[str | None], str | None]
    ) -> list[tuple[str, str]]:
        found = [
            (
                item.code,
                repr(
                    (
                        item.cluster,
                        called(item.host),
                        item.component,
                        item.verdict,
                        sorted(
                            (called(lack.host) or "", lack.collector, lack.status)
                            for lack in item.missing
                        ),
                    )
                ),
            )
            for item in result.verdicts
        ]
        found += [
            (
                item.code,
                repr(
                    (
                        item.cluster,
                        called(item.host),
                        called(item.node),
                        item.component,
                        item.severity,
                    )
                ),
            )
            for item in result.findings
        ]
        return sorted(found)

    told, tells = rows(before, name), rows(after, lambda host: host)
    if told != tells:
        codes = sorted({code for code, _row in set(told) ^ set(tells)})
        shown = ", ".join(codes[:SHOWN]) + (
            f" and {len(codes) - SHOWN} others" if len(codes) > SHOWN else ""
        )
        raise BundleError(
            "No bundle was written: without what is taken out of it, it would not give the same"
            f" verdicts ({shown}). The report is complete; "
            + (
                "without kubemend_bundle_anonymous a bundle may be possible, and please report"
                " this."
                if change
                else "please report this."
            )
        )


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode("ascii")


def _place(target: Path, members: Callable[[], Iterator[tuple[str, bytes]]]) -> None:
    # 0600 by itself
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            archive.packed(members(), file)
            file.flush()
            os.fsync(file.fileno())
        try:
            # which, unlike a rename, never replaces what came there meanwhile
            os.link(name, target)
        except FileExistsError:
            raise BundleError(
                f"No bundle was written: {target} came to be while the run was going on, and is not"
                " overwritten."
            ) from None
        except OSError as error:
            if error.errno not in (
                errno.EPERM,
                errno.EOPNOTSUPP,
                errno.ENOSYS,
                errno.EMLINK,
            ) or os.path.lexists(target):
                raise
            os.rename(name, target)
            return
        os.unlink(name)
    except BaseException:
        if os.path.exists(name):
            os.unlink(name)
        raise
