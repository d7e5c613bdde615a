# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results to render, of any number of hosts, with all fields of a report, genuine or hostile."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.timeline import Timeline
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.timeline_lines import (
    Entry,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import (
    Run,
    Symptom,
)

HOSTILE = (
    '</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>--></title></style>"'
    " onclick=\"alert(3)\" ' onfocus='alert(4)' &lt;b&gt; {{ 7 * 7 }} {% for x in y %} ${1+1}"
    " \x1b[31mred\x1b]8;;http://x\x07 \u202egnp.exe\u202c \u2066 \u200b \0 \r\n \ud800 \u2028"
    " javascript:alert(5) data:text/html,x"
)
DIFF = (
    "--- a/kube-scheduler.yaml\n+++ b/kube-scheduler.yaml\n@@ -17 +17 @@\n-    -"
    " --leader-elect=false\n+    - --leader-elect=true\n"
)
Said = Callable[[str], str]


def result(size: int, broken: int = 1, silent: int = 1, said: Said = str) -> model_result.Result:
    """Three masters and workers.

    `broken` workers with a finding of their own each, `silent` ones that did not answer.

    said: what becomes of every text that a node, the API or an inventory can choose.
    """
    key = said("0123456789abcdef")
    names = [said(f"m{n}") for n in (1, 2, 3)] + [said(f"worker-{n:05}") for n in range(size - 3)]
    bad, still = names[3 : 3 + broken], set(names[3 + broken : 3 + broken + silent])
    hosts = tuple(
        model_result.HostRow(
            name,
            name + "-node",
            key,
            "control_plane" if index < 3 else "worker",
            "unreachable" if name in still else "ok",
            said("timed out") if name in still else "",
        )
        for index, name in enumerate(names)
    )
    lacks = tuple(
        model_result.Missing(name, said("kubelet"), said("unreachable")) for name in sorted(still)
    )
    verdicts = [
        model_result.Verdict("KM101", key, "present", component="kube-scheduler"),
        model_result.Verdict("KM102", key, "clear"),
        model_result.Verdict("KM103", key, "not_applicable"),
        model_result.Verdict("KM104", key, "clear", note=said("a note")),
    ]
    if lacks:
        verdicts += [
            model_result.Verdict(code, key, "unknown", missing=lacks)
            for code in ("KM105", "KM106", "KM107")
        ]
    for name in names:
        verdicts += [
            model_result.Verdict(
                f"KM5{n:02}",
                key,
                "unknown" if name in still else "clear",
                name,
                missing=(
                    (model_result.Missing(name, said("kubelet"), said("unreachable")),)
                    if name in still
                    else ()
                ),
            )
            for n in range(4, 22)
        ]
        verdicts.append(
            model_result.Verdict(
                "KM502",
                key,
                "present" if name in bad else "unknown" if name in still else "clear",
                name,
                missing=(
                    (model_result.Missing(name, said("kubelet"), said("unreachable")),)
                    if name in still
                    else ()
                ),
            )
        )
    return model_result.Result(
        clusters=(model_result.ClusterRow(key, said("v1.36.3"), tuple(names)),),
        hosts=hosts,
        verdicts=tuple(verdicts),
        not_judged=(
            model_result.NotJudged("KM404", key, "tier"),
            model_result.NotJudged("KM405", None, said("limit")),
        ),
        findings=(
            _election(key, names[1], said),
            *(_kubelet(key, name, said) for name in bad),
            _info(key, said),
        ),
    )


def _election(key: str, host: str, said: Said) -> model_result.Finding:
    argv = (
        said("/usr/local/bin/kube-scheduler"),
        "--leader-elect=false",
        said("--kubeconfig=/etc/kubernetes/scheduler.conf"),
    )
    return model_result.Finding(
        "KM101",
        "critical",
        key,
        host,
        said("kube-scheduler"),
        said("leader election is off"),
        said("node"),
        ("KM110",),
        (
            model_result.EvidenceRef(
                "file",
                host,
                path=said("/etc/kubernetes/manifests/kube-scheduler.yaml"),
                line=17,
                text=said("- --leader-elect=false"),
            ),
            model_result.EvidenceRef("process", host, pid=1234, argv=argv),
            model_result.EvidenceRef("http", said("m3"), text=said("leaderElect=false")),
            model_result.EvidenceRef(
                "api", None, object=said("Lease kube-system/kube-scheduler"), text=said("holder m2")
            ),
        ),
        said("set the argument to --leader-elect=true"),
        2,
        said(
            "ansible-playbook -i INVENTORY kubemend.remediation.remediate -e kubemend_faults=KM101"
            " -e kubemend_max_risk=2"
        ),
    )


def _kubelet(key: str, host: str, said: Said) -> model_result.Finding:
    return model_result.Finding(
        "KM502",
        "critical",
        key,
        host,
        "kubelet",
        said("the kubelet does not run: it ended with status 1"),
        None,
        (),
        (
            model_result.EvidenceRef(
                "unit", host, object="kubelet.service", text=said("failed (Result: exit-code)")
            ),
            model_result.EvidenceRef(
                "log",
                host,
                path="/var/log/journal",
                text=said("failed to run Kubelet: running with swap on is not supported"),
            ),
        ),
        said("start the kubelet"),
        2,
        said(
            "ansible-playbook -i INVENTORY kubemend.remediation.remediate -e kubemend_faults=KM502"
            " -e kubemend_max_risk=2"
        ),
    )


def _info(key: str, said: Said) -> model_result.Finding:
    return model_result.Finding(
        "KM113",
        "warning",
        key,
        None,
        None,
        said("Jobs got more pods than asked for"),
        None,
        ("KM101",),
        (
            model_result.EvidenceRef(
                "api", None, object=said("Job default/once"), text=said("2 pods")
            ),
        ),
    )


def run(
    said: Said = str, mode: str = "observe", steps: int = 2, entries: int = 6, symptom: bool = True
) -> Run:
    planned = tuple(
        Step(
            said(f"{n:02}-m2-kube-scheduler"),
            said("m2"),
            "KM101",
            said("static_pod"),
            2,
            said("/etc/kubernetes/manifests/kube-scheduler.yaml"),
            allowed=n % 2 == 0,
            blocked_by=said("risk 2 needs kubemend_max_risk=2 (it is 0)") if n % 2 else None,
            diff="".join(
                line[:1] + said(line[1:]).replace("\n", "") + "\n" for line in DIFF.splitlines()
            ),
            note=said("one master at a time"),
        )
        for n in range(steps)
    )
    told = Timeline(
        said("default/once-x7f2p"),
        said("once-x7f2p"),
        said("0b4f3c1e-8a3b-4d7e-9d62-0c5a4e1f2a3b"),
        said("pod of Job once"),
        tuple(
            Entry(
                1_795_000_000.25 + n,
                "us" if n % 2 else "s",
                said("api"),
                said("once-other"),
                said(f"created by kube-controller-manager ({n})"),
                "api",
                said("asks for cpu 1"),
            )
            for n in range(entries)
        ),
    )
    return Run(
        run_id="20261121T090000Z-1a2b3c",
        started="2026-11-21T09:00:00Z",
        finished="2026-11-21T09:00:09Z",
        mode=mode,
        report_dir=said("/r"),
        tool_version="0.1.0",
        notices=(said("a wish that has no effect"),),
        symptom=(
            Symptom(
                "duplicate_pods",
                said("Pods of Jobs are created twice"),
                ("KM101", "KM102", "KM103", "KM105", "KM404"),
            )
            if symptom
            else None
        ),
        titles={"KM101": said("Leader election disabled"), "KM502": said("Kubelet does not run")},
        plan=planned,
        steps=(
            (
                {"id": planned[0].id, "state": "done", "reason": said("proven")},
                {"id": said("99-unplanned"), "state": "failed", "reason": said("not known")},
            )
            if mode == "verify"
            else ()
        ),
        outcome=(2, "failed", said("step 01 failed")) if mode == "verify" else None,
        timelines=(told,),
    )


def hostile(text: str) -> str:
    """Append everything that a page, a template or a console could take for its own to the text."""
    return text + HOSTILE
