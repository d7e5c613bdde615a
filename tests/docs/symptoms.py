# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate docs/symptoms/NAME.md: its causes, what its playbook does and never does, and undo."""

from __future__ import annotations

import re

from tests.docs import GENERATED, faults
from tests.docs.language import ENGLISH

# What an operator sees, by symptom: the one thing about it that no literal of the catalogue says.
SEEN = {
    "duplicate_pods": (
        (
            "A Job with `completions: 1` and `parallelism: 1` gets two pods at the same time; one"
            " of them is deleted again about a second later."
        ),
        "Which of the two is left is chance: some Jobs fail, most do not.",
        (
            "The lock objects look healthy, because an instance that does not elect never touches"
            " them."
        ),
    ),
    "api_down": (
        (
            "`kubectl` says `The connection to the server was refused`, `i/o timeout`,"
            " `TLS handshake timeout`, `EOF` or `the server is currently unable to handle the"
            " request`, always or again and again."
        ),
        (
            "`kubectl` says `x509: certificate has expired or is not yet valid`, or `You must be"
            " logged in to the server`, since a certain day."
        ),
        (
            "Nodes are `NotReady` all at once, pods go on running, and nothing new is scheduled or"
            " deleted."
        ),
        "Each request that creates something is refused: `failed calling webhook`.",
    ),
    "admission_errors": (
        (
            "`kubectl get pods` says `UnexpectedAdmissionError`, `OutOfcpu`, `OutOfpods` or the"
            " like of pods that never started."
        ),
        (
            "`Allocate failed due to requested number of devices unavailable for nvidia.com/gpu."
            " Requested: 1, Available: 0, which is unexpected`, although the node has a free,"
            " healthy device."
        ),
        "The same Jobs succeed when they are tried again.",
    ),
    "cpu_pinning": (
        "A pod with whole CPUs, requests equal to limits, runs on the CPUs that all share.",
        (
            "The kubelet's log says `ReconcileState: failed to update container` and `unable to"
            " freeze`."
        ),
        (
            "A kubelet does not start any more after its CPU manager policy, its reserved CPUs or"
            " the machine's CPUs were changed."
        ),
    ),
    "too_many_open_files": (
        (
            "`Too many open files`, of systemctl, of `kubectl logs -f`, or `failed to create"
            " fsnotify watcher: too many open files` of a program."
        ),
        "A service ends with `205/LIMITS`.",
        "No user can log in since limits were raised.",
    ),
    "node_unreachable": (
        "`kubectl get nodes` says `NotReady`, or `Ready,SchedulingDisabled`.",
        (
            "Pods wait, because the node carries `node.kubernetes.io/unreachable` or a taint of"
            " your own; taken away by hand it comes back."
        ),
        "The kubelet does not run, runs again and again, or does not come back after a reboot.",
    ),
    "pods_stay_pending": (
        (
            "`kubectl get pods` says `Pending` for minutes, with or without an event"
            " `FailedScheduling` (`0/4 nodes are available: …`)."
        ),
        "A DaemonSet's pod waits for a node that is Ready.",
        "A Deployment, Job or DaemonSet gets no pod at all.",
    ),
    "pods_not_starting": (
        (
            "`kubectl get pods -o wide` says `ContainerCreating`, `CreateContainerError`,"
            " `CreateContainerConfigError`, `ImagePullBackOff` or `Init:0/1` for minutes, of many"
            " pods of one node."
        ),
        (
            "Events `FailedCreatePodSandBox`, `FailedMount`, `FailedAttachVolume`,"
            " `NetworkNotReady` or `FailedCreatePodContainer`."
        ),
        "Pods of one node are `CrashLoopBackOff`, or stay `Terminating` after their grace period.",
    ),
    "etcd_space": (
        (
            "`etcdserver: mvcc: database space exceeded`, `etcdserver: no leader` or `etcdserver:"
            " request timed out` answers every change, while reads may work."
        ),
        "Leaders change again and again, and `kubectl` takes seconds.",
        "The log of etcd says `took too long`, `slow fdatasync` or `panic`.",
    ),
    "certificates": (
        (
            "kubectl says `x509: certificate has expired or is not yet valid`, `certificate signed"
            " by unknown authority` or `You must be logged in to the server (Unauthorized)`."
        ),
        "The API server or etcd starts again and again, a year after the installation.",
        "One API server accepts a token or a certificate that another one refuses.",
    ),
}
# What belongs to one symptom only.
MORE = {
    "api_down": (
        "No API server has to answer: each node is asked by ssh, each API server at its own"
        " address, and etcd with the API server's own certificate. What only the API tells is then"
        " *unknown*, and the report says so."
    ),
    "admission_errors": (
        "The report shows one rejected pod from its creation to its end: [how to read"
        " it](../timeline.md). With `-e kubemend_cleanup_rejected=true -e kubemend_max_risk=1`"
        " rejected pods are deleted, each kept in the journal of the node that asks the API; those"
        " of a Job that has not ended stay, for deleting one would give it another try on older"
        " releases, and so do those of controllers that are not Kubernetes' own (Volcano's Job,"
        " PyTorchJob), which may start all of their pods again over it. No kubelet is restarted for"
        " any of these causes: on a node with device pods that can cost running ones their devices."
    ),
    "pods_stay_pending": (
        "Pods that wait for less than five minutes do not count; with `-e"
        " kubemend_pod=NAMESPACE/NAME` that pod is judged at once. With `-e kubemend_capture=true"
        " -e kubemend_max_risk=1` the scheduler that leads dumps its cache, before anything is"
        " repaired: [what that proves](../capture.md#what-a-scheduler-knows-for-a-report-upstream)."
    ),
    "certificates": (
        "It needs no API: files, kubeconfigs and ports of each node are read by ssh, and no key"
        " leaves a node. As a regular check run it with `-e kubemend_fail_on=warning`, and with"
        " `junit` in `kubemend_report_formats`: it exits with 2 where a certificate ends within 30"
        " days or an authority within a year."
    ),
    "pods_not_starting": (
        "Pods that wait for less than five minutes do not count, nor does a workload whose own"
        " image, command, ConfigMap or Secret is the reason: [KM610](../faults/KM610.md) names it"
        " as info. The words that kubelets report most often are quoted with their count, and each"
        " fault of the same node that can be the cause is named with them."
    ),
    "etcd_space": (
        "Each member's health, metrics and data folder are read on its own host, so that the"
        " playbook works while no API server answers. The commands for a snapshot, compaction,"
        " defragmentation and the alarm, for each way of installing etcd, are on the page of"
        " [KM140](../faults/KM140.md); those for a member that is gone or damaged on the pages of"
        " [KM145](../faults/KM145.md), [KM147](../faults/KM147.md) and"
        " [KM150](../faults/KM150.md); those for a lost quorum on that of"
        " [KM146](../faults/KM146.md)."
    ),
}

# Which fault to look at first, by what is seen.
FIRST_LOOK = {
    "api_down": (
        (
            "Every API server answers at its own address, and that of `kubectl` does not.",
            ("KM178",),
        ),
        (
            "The connection is refused, and no `kube-apiserver` runs on the node.",
            ("KM114", "KM174", "KM173", "KM170", "KM172"),
        ),
        ("No static pod runs on the node.", ("KM502", "KM508", "KM521", "KM178")),
        ("`/readyz?verbose` says `[-]etcd failed`.", ("KM170", "KM115")),
        ("`/readyz?verbose` says that another check fails.", ("KM175",)),
        ("Answers are `429`, or take seconds.", ("KM171", "KM523")),
        ("It answers, and refuses what is created.", ("KM176", "KM115")),
        ("A certificate is not accepted.", ("KM507", "KM526")),
    ),
}


def page(symptom, catalogue, repaired, language=ENGLISH) -> str:
    """Return a symptom's page in a language, with the links of the English page."""
    say = language.say
    causes = [catalogue[code] for code in symptom.causes]
    rows = [_row(fault, repaired, language) for fault in causes]
    return "\n".join(
        [
            f"# {say(symptom.title)}",
            "",
            GENERATED,
            "",
            f"## {say('What you see')}",
            "",
            *(f"- {say(line)}" for line in SEEN[symptom.name]),
            "",
            *_signs(symptom, catalogue, language),
            *_first_look(symptom, language),
            f"## {say('What it can be')}",
            "",
            say("In the order in which they are looked at:"),
            "",
            say("| fault | cause | severity | a plan's step, risk |"),
            "|---|---|---|---|",
            *rows,
            "",
            f"## {say('What the playbook does')}",
            "",
            *_does(symptom, catalogue, repaired, language),
            "",
            f"## {say('What it never does')}",
            "",
            *_never(symptom, catalogue, repaired, language),
            "",
            f"## {say('How to undo')}",
            "",
            *_undo(symptom, catalogue, repaired, language),
            "",
        ]
    )


def _row(fault, repaired, language) -> str:
    repair = faults.repair_cell(fault, repaired)
    if not repair.isdecimal():
        repair = language.say(repair)
    return (
        f"| [{fault.code}](../faults/{fault.code}.md) | {language.say(fault.title)} |"
        f" {language.say(fault.severity)} | {repair} |"
    )


def _signs(symptom, catalogue, language) -> list[str]:
    """Return the sentence that names the faults which show the symptom, and an empty line."""
    signs = language.semicolon.join(
        f"[{code}](../faults/{code}.md) {language.within(catalogue[code].title)}"
        for code in symptom.signs
    )
    if not signs:
        return []
    return [language.say("The symptom itself is judged too: {signs}.").format(signs=signs), ""]


def _first_look(symptom, language) -> list[str]:
    """Return the decision table: what is seen, and the faults to look at; [] without one."""
    rows = FIRST_LOOK.get(symptom.name, ())
    if not rows:
        return []
    lines = []
    for seen, codes in rows:
        links = ", ".join(f"[{code}](../faults/{code}.md)" for code in codes)
        lines.append(f"| {language.say(seen)} | {links} |")
    return [language.say("| what you see | look first at |"), "|---|---|", *lines, ""]


def _faults(symptom, catalogue):
    return [catalogue[code] for code in dict.fromkeys(symptom.signs + symptom.causes)]


def _does(symptom, catalogue, repaired, language) -> list[str]:
    say = language.say
    needs = sorted({name for fault in _faults(symptom, catalogue) for name in fault.needs})
    asked = sorted({name for fault in _faults(symptom, catalogue) for name in fault.cluster_needs})
    steps = [fault for fault in _faults(symptom, catalogue) if fault.code in repaired]
    parts = [
        "```",
        f"ansible-playbook -i INVENTORY kubemend.remediation.{symptom.name}",
        "```",
        "",
        say(
            "It judges every cause above and prints each with its verdict and its evidence. It"
            " observes, prints the plan and changes nothing, unless `-e kubemend_max_risk=<risk>`"
            " consents to the steps of the plan up to that risk."
        ),
        "",
    ]
    if needs:
        sentence = say(
            "- Every host is asked once, as in an audit. Its causes are told by {names}"
            " ([what each reads](../rights.md))."
        )
        parts.append(sentence.format(names=_names(needs, language)))
    if asked:
        sentence = say("- The API is asked as in an audit. Its causes are told by {names}.")
        parts.append(sentence.format(names=_names(asked, language)))
    parts.append(_highest_risk(steps, language))
    if symptom.name in MORE:
        parts += ["", say(MORE[symptom.name])]
    return parts


def _highest_risk(steps, language) -> str:
    if not steps:
        return language.say("- No cause of it has a step: it only tells.")
    sentence = language.say(
        "- The highest risk that a step of it can have is {risk} ([what is"
        " done](../repairs.md#what-is-repaired))."
    )
    return sentence.format(risk=max(faults.step_risk(fault) for fault in steps))


def _names(names, language) -> str:
    return language.comma.join(f"`{name}`" for name in names)


def _never(symptom, catalogue, repaired, language) -> list[str]:
    say = language.say
    parts = [
        say("- Repair what was not proven: *unknown* is no cause."),
        say("- Restart anything to have a look at it."),
        say("- Take away a cordon or a taint that is not a run's own."),
    ]
    for fault in _faults(symptom, catalogue):
        sentences = _sentences(faults.written(fault.code, "What kubemend can do"))
        parts += [
            say("- {fault}: {sentence}").format(
                fault=f"[{fault.code}](../faults/{fault.code}.md) {language.within(fault.title)}",
                sentence=say(sentence),
            )
            for sentence in sentences
            if sentence.startswith("kubemend never ")
        ]
    left = [
        f"[{fault.code}](../faults/{fault.code}.md)"
        for fault in _faults(symptom, catalogue)
        if fault.code not in repaired
    ]
    if left:
        sentence = say("No step of a plan is about {faults}: their pages say what a person can do.")
        parts += ["", sentence.format(faults=language.comma.join(left))]
    return parts


def _undo(symptom, catalogue, repaired, language) -> list[str]:
    say = language.say
    steps = [fault for fault in _faults(symptom, catalogue) if fault.code in repaired]
    if not steps:
        return [say("There is nothing to undo: it changes nothing.")]
    notes = [note for note in (_undo_note(fault, language) for fault in steps) if note]
    revert = "ansible-playbook -i INVENTORY kubemend.remediation.revert"
    last = f"{revert} -e kubemend_run_id=last"
    return [
        say(
            "Without `kubemend_max_risk` nothing was changed, and there is nothing to undo. A"
            " repair is taken back by"
        ),
        "",
        "```",
        f"{revert:{len(last)}}   # {say('what can be undone')}",
        f"{last}   # {say('or an id')}",
        "```",
        "",
        say("[What it brings back, what it leaves and what it refuses](../undo.md)."),
        *(["", *notes] if notes else []),
    ]


def _undo_note(fault, language) -> str:
    """Return what a fault's page states about a revert, as an item of a list, or ""."""
    texts = [faults.written(fault.code, title) for title in ("What kubemend can do", "Undo")]
    sentences = [sentence for text in texts for sentence in _sentences(text)]
    sentences = [sentence for sentence in sentences if re.search(r"\b[Rr]evert", sentence)]
    if not sentences:
        return ""
    return language.say("- {fault}: {sentence}").format(
        fault=f"[{fault.code}](../faults/{fault.code}.md)",
        sentence=language.say(" ".join(sentences)),
    )


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.:])\s+(?=[A-Z])", text)
