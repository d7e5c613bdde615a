# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Symptoms, and the faults that can cause each: the differential that a playbook prints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Symptom:
    """What an operator sees.

    causes: codes in the order in which they are looked at
    signs: codes that show it
    """

    name: str
    title: str
    causes: tuple[str, ...]
    signs: tuple[str, ...] = ()

    @property
    def codes(self) -> frozenset[str]:
        """Return every code that the symptom's playbook judges.

        A host that did not answer belongs to each.
        """
        return frozenset(self.causes + self.signs + ("KM901", "KM902", "KM903"))


SYMPTOMS = {
    symptom.name: symptom
    for symptom in (
        Symptom(
            name="duplicate_pods",
            title="Pods of Jobs are created twice",
            causes=(
                "KM101",
                "KM102",
                "KM103",
                "KM104",
                "KM105",
                "KM106",
                "KM107",
                "KM108",
                "KM109",
                "KM110",
                "KM111",
                "KM112",
            ),
            signs=("KM113",),
        ),
        Symptom(
            name="admission_errors",
            title="Pods are rejected by the kubelet",
            causes=(
                "KM101",
                "KM102",
                "KM103",
                "KM104",
                "KM105",
                "KM106",
                "KM111",
                "KM112",
                "KM205",
                "KM321",
                "KM322",
                "KM323",
                "KM324",
                "KM325",
                "KM326",
                "KM327",
                "KM328",
                "KM329",
                "KM330",
                "KM331",
            ),
            signs=("KM320", "KM113"),
        ),
        Symptom(
            name="cpu_pinning",
            title="CPU pinning does not work",
            causes=(
                "KM506",
                "KM301",
                "KM302",
                "KM303",
                "KM304",
                "KM305",
                "KM306",
                "KM307",
                "KM308",
                "KM309",
                "KM310",
                "KM311",
                "KM312",
                "KM313",
                "KM329",
            ),
        ),
        Symptom(
            name="too_many_open_files",
            title="Too many open files",
            causes=(
                "KM401",
                "KM402",
                "KM403",
                "KM404",
                "KM405",
                "KM406",
                "KM407",
                "KM408",
                "KM409",
                "KM410",
                "KM411",
            ),
        ),
        Symptom(
            name="node_unreachable",
            title="A node is NotReady or unreachable",
            causes=(
                "KM115",
                "KM512",
                "KM525",
                "KM526",
                "KM511",
                "KM114",
                "KM116",
                "KM503",
                "KM508",
                "KM502",
                "KM501",
                "KM504",
                "KM505",
                "KM506",
                "KM507",
                "KM510",
                "KM515",
                "KM516",
                "KM517",
                "KM524",
                "KM301",
                "KM302",
                "KM303",
                "KM304",
                "KM305",
                "KM306",
                "KM307",
                "KM309",
                "KM310",
                "KM401",
                "KM402",
                "KM403",
                "KM409",
                "KM411",
                "KM520",
                "KM521",
                "KM527",
                "KM522",
                "KM528",
                "KM509",
                "KM518",
                "KM530",
                "KM531",
                "KM519",
                "KM532",
                "KM523",
                "KM529",
                "KM118",
                "KM514",
                "KM513",
            ),
        ),
        Symptom(
            name="pods_stay_pending",
            title="Pods stay Pending",
            causes=(
                "KM203",
                "KM115",
                "KM114",
                "KM116",
                "KM204",
                "KM202",
                "KM201",
                "KM210",
                "KM211",
                "KM212",
                "KM213",
                "KM214",
                "KM215",
                "KM216",
                "KM217",
                "KM218",
                "KM219",
                "KM220",
                "KM221",
                "KM222",
                "KM223",
                "KM224",
                "KM225",
                "KM118",
                "KM513",
                "KM514",
            ),
        ),
        Symptom(
            name="pods_not_starting",
            title="Pods have a node and do not start",
            causes=(
                "KM115",
                "KM512",
                "KM525",
                "KM508",
                "KM516",
                "KM524",
                "KM519",
                "KM532",
                "KM533",
                "KM534",
                "KM535",
                "KM604",
                "KM602",
                "KM603",
                "KM605",
                "KM601",
                "KM607",
                "KM608",
                "KM606",
                "KM610",
                "KM402",
                "KM401",
                "KM403",
                "KM404",
                "KM405",
                "KM411",
                "KM520",
                "KM521",
                "KM522",
                "KM523",
                "KM527",
                "KM528",
                "KM529",
                "KM118",
                "KM220",
            ),
            signs=("KM600", "KM609", "KM611"),
        ),
    )
}
