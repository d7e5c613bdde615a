# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report.sarif: the findings as SARIF 2.1.0, for tools that show results of code scanners.

A result has the file of its evidence, below a folder of the name of its host. Paths are those of
nodes: HOSTS stands for the folder in which each host has its root, which exists nowhere.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ..faults import CATALOGUE
from ..models import result as model_result
from . import phrases, times
from .run_info import Run, exit_of
from .text_page import cut, escape

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
VERSION = "2.1.0"
BASE = "HOSTS"
LEVELS = {"critical": "error", "warning": "warning", "info": "note"}
FINISHED = ("ok", "threshold")  # reasons of runs that did all that they should
# What SARIF reads as a placeholder, or as a link, within a message.
_PLACEHOLDER = re.compile(r"\{(\d+)\}")


def render(result: model_result.Result, run: Run) -> str:
    """Return the whole file."""
    codes = sorted({finding.code for finding in result.findings} | CATALOGUE.keys())
    indexes = {code: index for index, code in enumerate(codes)}
    document = {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kubemend",
                        "fullName": "kubemend.remediation",
                        "semanticVersion": run.tool_version,
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "automationDetails": {"id": f"kubemend/{run.run_id}"},
                "originalUriBaseIds": {
                    BASE: {"description": {"text": "The root of each host, below its name"}}
                },
                "invocations": [_invocation(result, run)],
                "results": [_result(finding, indexes, run) for finding in result.findings],
            }
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _rule(code: str) -> dict[str, Any]:
    fault = CATALOGUE.get(code)
    if fault is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": fault.title},
        "fullDescription": {"text": f"{fault.title}: judged for {fault.applies}."},
        "help": {"text": f"{model_result.DOCS}/{code}.md in the folder of the collection"},
        "defaultConfiguration": {"level": LEVELS[fault.severity]},
        "properties": {"severity": fault.severity, "scope": fault.scope, "tags": ["kubernetes"]},
    }


def _invocation(result: model_result.Result, run: Run) -> dict[str, Any]:
    """Return times and outcome of the run, and what it could not judge."""
    code, reason = exit_of(result, run)
    return {
        "executionSuccessful": reason in FINISHED,
        "exitCode": code,
        "exitCodeDescription": reason,
        "startTimeUtc": run.started,
        "endTimeUtc": run.finished,
        "toolExecutionNotifications": [
            {
                "level": "warning",
                "message": _message(f"{codes} could not be judged: missing {missing}"),
            }
            for codes, missing in phrases.unknown_rows(result.verdicts, result.hosts)
        ]
        + [{"level": "note", "message": _message(sentence)} for sentence in run.sentences],
    }


def _result(finding: model_result.Finding, indexes: Mapping[str, int], run: Run) -> dict[str, Any]:
    place = (finding.host or finding.node, finding.component)
    parts = [" ".join(filter(None, place)), times.readable(finding.summary, None)]
    text = ": ".join(filter(None, parts))
    if finding.remedy:
        text += f"; fix: {finding.remedy}"
    row = {
        "ruleId": finding.code,
        "ruleIndex": indexes[finding.code],
        "level": LEVELS[finding.severity],
        "message": _message(text),
        "locations": [_location(finding, run)],
        "partialFingerprints": {"kubemend/v1": finding.id},
    }
    if finding.waived is not None:
        row["suppressions"] = [
            {
                "kind": "external",
                "status": "accepted",
                "justification": _plain(phrases.waiver(finding.waived)),
            }
        ]
    return row


def _location(finding: model_result.Finding, run: Run) -> dict[str, Any]:
    """Return the first file of the evidence, else the host, else the cluster."""
    cluster = run.cluster_names.get(finding.cluster) or finding.cluster or "cluster"
    place = [name for name in (finding.host or finding.node, finding.component) if name]
    host = finding.host or finding.node or cluster
    logical = {
        "name": _plain(finding.component or host),
        "fullyQualifiedName": _plain("/".join([cluster, *place])),
    }
    return {"physicalLocation": _file(finding, host), "logicalLocations": [logical]}


def _file(finding: model_result.Finding, host: str) -> dict[str, Any]:
    for proof in finding.evidence:
        if proof.path:
            path = posixpath.normpath(f"/{proof.path}").lstrip("/")  # never above the host
            location: dict[str, Any] = _artifact(f"{proof.host or host}/{path}")
            if proof.line:
                location["region"] = {"startLine": proof.line}
            return location
    return _artifact(host)


def _artifact(path: str) -> dict[str, Any]:
    return {"artifactLocation": {"uri": _uri(path), "uriBaseId": BASE}}


def _uri(path: str) -> str:
    """Return a relative reference; a name with a colon would be read as one with a scheme."""
    return quote(path.encode("utf-8", "backslashreplace"), safe="/-._~")


def _plain(text: str) -> str:
    return cut(escape(text))


def _message(text: str) -> dict[str, str]:
    """Return a message whose text is neither a placeholder nor a link."""
    plain = _PLACEHOLDER.sub(r"{{\1}}", _plain(text))
    return {"text": plain.replace("](", "] (")}
