# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate docs/symptoms/NAME.md: its causes, what its playbook does and never does, and undo."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.docs import GENERATED, ROOT, decisions, faults
from tests.docs.language import ENGLISH

REPAIRS = (
    "It checks every cause above, and prints the verdict and the evidence of each. By default it"
    " prints the plan and changes nothing. With `-e kubemend_max_risk=2` it makes the steps of"
    " the plan up to risk 2."
)
OBSERVES = (
    "It checks every cause above, and prints the verdict and the evidence of each. It changes"
    " nothing, whatever `kubemend_max_risk` says."
)
BY_HAND = (
    "A plan has no step for the causes that the table above marks *none: by hand*. The page of each"
    " says how to correct it."
)
INVENTORY = "`INVENTORY` stands for the file that names your hosts, for example `hosts.yml`."
# What belongs to one symptom only; each line is a text of its own.
MORE = {
    "api_down": (
        "No API server has to answer. Each node is asked by ssh, each API server at its own"
        " address, and etcd with the API server's own certificate. What only the API knows is"
        " then *unknown*, and the report says so."
    ),
    "admission_errors": (
        "The report shows one rejected pod from its creation to its end: [how to read"
        " it](../timeline.md). With `-e kubemend_cleanup_rejected=true -e kubemend_max_risk=1`"
        " kubemend deletes rejected pods. It keeps a copy of each in the journal of the node that"
        " asks the API. It leaves the pods of a Job that has not ended: on older releases their"
        " deletion gives the Job another try. It also leaves the pods of controllers that are not"
        " Kubernetes' own, such as Volcano's Job and PyTorchJob. These may start all of their"
        " pods again. kubemend restarts no kubelet for any of these causes. On a node with device"
        " pods, a restart can take their devices from running ones."
    ),
    "pods_stay_pending": (
        "Pods that wait for less than five minutes do not count. With `-e"
        " kubemend_pod=NAMESPACE/NAME` that pod is judged at once. With `-e kubemend_capture=true"
        " -e kubemend_max_risk=1` the scheduler that leads dumps its cache, before anything is"
        " repaired: [what that"
        " proves](../capture.md#what-a-scheduler-knows-for-a-report-upstream)."
    ),
    "certificates": (
        "It needs no API. Files, kubeconfigs and ports of each node are read by ssh, and no key"
        " leaves a node. For a regular check, add `-e kubemend_fail_on=warning`, and `junit` in"
        " `kubemend_report_formats`. It then exits with 2 where a certificate ends within 30"
        " days, or an authority within a year."
    ),
    "pods_not_starting": (
        "Pods that wait for less than five minutes do not count. A workload whose own image,"
        " command, ConfigMap or Secret is the reason does not count either:"
        " [KM610](../faults/KM610.md) names it as info. The report quotes the messages that"
        " kubelets repeat most often, with their count. Next to each it names the faults of the"
        " same node that can be the cause."
    ),
    "etcd_space": (
        "Each member's health, metrics and data folder are read on its own host. So the playbook"
        " works while no API server answers. The pages of these faults have the commands, for each"
        " way of installing etcd:\n"
        "\n"
        "- [KM140](../faults/KM140.md): a snapshot, compaction, defragmentation and the alarm.\n"
        "- [KM145](../faults/KM145.md), [KM147](../faults/KM147.md) and"
        " [KM150](../faults/KM150.md): a member that is gone or damaged.\n"
        "- [KM146](../faults/KM146.md): a lost quorum."
    ),
    "before_reboot": (
        "Much is read once, at a start: the kubelet's files, the runtime's, the kernel's"
        " settings, fstab, certificates. A node can run for months with a file that its next"
        " start refuses. The playbook compares what lies on the disk with what runs. Run it"
        " before you reboot a node. In a script, add `-e kubemend_fail_on=critical`: it exits"
        " with 2 where the node would not come back. It also names faults of now, because a start"
        " does not cure them. With `-e kubemend_probe=true -e kubemend_max_risk=1` it starts the"
        " containerd of the disk on each node, apart from the one that runs, and ends it again:"
        " [what that starts and writes](../repairs.md#a-trial-start-of-containerd)."
    ),
    "before_upgrade": (
        "It checks for the minor release after that of the API server. `-e"
        " kubemend_upgrade_to=1.37` names another one, also one that is several steps away. What"
        " a release no longer takes is known from the sources of all releases since 1.15. For a"
        " release that this version of kubemend does not know, the answer is *unknown*. An"
        " ordinary audit does not judge KM720 to KM728. The rest of the list is what is ill now:"
        " it would stop an upgrade, or end a component that the upgrade restarts. Nothing of the"
        " next release has to be installed."
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
            say("| what you see | look at |"),
            "|---|---|",
            *_decisions(symptom, catalogue, language),
            "",
            *_signs(symptom, catalogue, language),
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


def _decisions(symptom, catalogue, language) -> Iterator[str]:
    """Yield a row for each thing that an operator may see: the faults to look at first."""
    for seen, codes in decisions.DECISIONS[symptom.name]:
        strange = set(codes) - set(symptom.causes + symptom.signs)
        if strange:
            raise SystemExit(f"decisions.py: {symptom.name} has no cause {sorted(strange)}")
        faults_shown = language.semicolon.join(
            f"[{code}](../faults/{code}.md) {language.within(catalogue[code].title)}"
            for code in codes
        )
        yield f"| {language.say(seen)} | {faults_shown} |"


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
        say(INVENTORY),
        "",
        say(OBSERVES if _observes(symptom) else REPAIRS),
        "",
    ]
    if needs:
        sentence = say(
            "- kubemend reads every host once, as in an audit. Collectors: {names}"
            " ([what each reads](../rights.md))."
        )
        parts.append(sentence.format(names=_names(needs, language)))
    if asked:
        sentence = say("- kubemend asks the API as in an audit. Collectors: {names}.")
        parts.append(sentence.format(names=_names(asked, language)))
    if _observes(symptom):
        parts.append(
            say(
                "- It makes no step: a finding that can be repaired names the command that does"
                " it, with the risk that the command needs."
            )
        )
    else:
        parts.append(_highest_risk(steps, language))
    if symptom.name in MORE:
        parts += ["", *(line and say(line) for line in MORE[symptom.name].splitlines())]
    return parts


def _observes(symptom) -> bool:
    """Tell whether the symptom's playbook is an audit, which makes no step of the plan."""
    text = (ROOT / "playbooks" / f"{symptom.name}.yml").read_text(encoding="utf-8")
    return "import_playbook: audit.yml" in text


def _highest_risk(steps, language) -> str:
    if not steps:
        return language.say("- A plan has no step for its causes: the playbook only reports.")
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
    if any(fault.code not in repaired for fault in _faults(symptom, catalogue)):
        parts += ["", say(BY_HAND)]
    return parts


def _undo(symptom, catalogue, repaired, language) -> list[str]:
    say = language.say
    steps = [fault for fault in _faults(symptom, catalogue) if fault.code in repaired]
    if not steps or _observes(symptom):
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
        say("[What it restores, what it leaves and what it refuses](../undo.md)."),
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
