# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The renewal of a control-plane node's certificates, and the restarts that load them.

All faults of a host's certificates have the same steps: what has expired is renewed, then what
loads it is restarted. A fault whose files are right has the restarts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ....module_utils.shared import kubeadm_certificates
from ....module_utils.shared.step_kinds import (
    LOAD_CERTIFICATES,
    RENEW_CERTIFICATES,
    kind_of,
)
from ...evidence import contract
from ...evidence.answers.node.api_server import ServerAnswer
from ...evidence.answers.node.manifests import Manifests
from ...faults.control_plane import certificate_renewal, certificate_trust
from ...faults.control_plane import certificates as certificate_faults
from ...faults.node import clock
from ...models import api_server, installer
from ...models import certificates as model_certificates
from ...models.certificates import API, HostCertificates, Used
from ...models.cluster import Host
from ...models.control_plane import ControlPlane
from ...parsers import pod_manifest, x509_certificate
from .. import fencing
from ..plan import Remedy, RemedyContext, Step, all_of
from .control_plane import kubelet_in_the_way, new_step, node_guard

YEAR = timedelta(days=365)
RISK, SERVING_RISK = 2, 3
UNLOADED = "KM122"  # whose files are right
ANSWERS_NOTHING = 500  # from this status on, an API server is not ready


@dataclass(frozen=True)
class _Renewal:
    """A host with its certificates, and which of them are renewed.

    uses: what is renewed, each with kubeadm's name. are_valid: whether these are valid still.
    """

    scene: RemedyContext
    host: Host
    certificates: HostCertificates
    now: datetime
    uses: dict[str, Used]
    are_valid: bool = False

    @property
    def folder(self) -> str:
        """Return kubeadm's folder of certificates on this host."""
        used = [*self.uses.values(), *self.certificates.files]
        folders = [folder for folder in map(certificate_renewal.folder_of, used) if folder]
        return (folders or [certificate_renewal.USUAL])[0].rstrip("/")


def expired(scene: RemedyContext) -> Sequence[Step]:
    """KM120, KM122, KM126: renew what has expired, and restart what has not loaded it."""
    renewal = _selected(scene, _is_over)
    if renewal is None:
        return ()
    stale = certificate_trust.stale_components(scene.document, renewal.certificates, renewal.now)
    return _steps(renewal, [*kubeadm_certificates.loaders(renewal.uses), *stale])


def due(scene: RemedyContext) -> Sequence[Step]:
    """KM121: renew what ends soon, and restart what loads it, although it still serves."""
    renewal = _selected(scene, certificate_faults.is_due)
    if renewal is None:
        return ()
    renewal = replace(renewal, are_valid=True)
    return _steps(renewal, kubeadm_certificates.loaders(renewal.uses))


def _is_over(use: Used, now: datetime) -> bool:
    return bool(certificate_faults.ended(use.leaf, now))


def _selected(scene: RemedyContext, is_chosen: Any) -> _Renewal | None:
    """Return the host with the certificates that are chosen, None where nothing is known of it."""
    host = next((host for host in scene.cluster.hosts if host.host == scene.finding.host), None)
    certificates = model_certificates.extract(scene.document)
    if host is None or certificates.now is None:
        return None
    uses = [*certificates.files]
    rows = map(certificate_faults.of_kubeconfig, certificates.kubeconfigs)
    uses += filter(certificate_faults.is_of_installer, rows)
    chosen = [use for use in uses if is_chosen(use, certificates.now)]
    named = {certificate_renewal.name_of(use): use for use in chosen}
    ordered = {name: named[name] for name in kubeadm_certificates.ORDER if name in named}
    return _Renewal(scene, host, certificates, certificates.now, ordered)


def _steps(renewal: _Renewal, components: Iterable[str]) -> Sequence[Step]:
    """Return the renewal and the restarts behind it, or what forbids them."""
    scene = renewal.scene
    owner = installer.owner_of(scene.document)
    if owner:
        return _of_other(renewal, owner) if scene.finding.code != UNLOADED else ()
    loaders = [name for name in kubeadm_certificates.LOADERS if name in set(components)]
    serves = API in loaders and _serves(renewal)
    risk = SERVING_RISK if serves or renewal.are_valid else RISK
    blocked = all_of(_unfit(renewal) if renewal.uses else None, _not_now(scene, bool(loaders)))
    steps = []
    if renewal.uses:
        steps.append(_renewal(renewal, blocked, risk))
    if loaders:
        steps.append(_load(renewal, loaders, serves, blocked, risk))
    return steps


def _of_other(renewal: _Renewal, owner: str) -> Sequence[Step]:
    """Return a step that says who renews certificates of this host, and how."""
    advice = certificate_renewal.advice(
        renewal.host, renewal.scene.document, renewal.certificates, renewal.uses.values()
    )
    step = new_step(renewal.scene, RENEW_CERTIFICATES, renewal.folder, None, concerned=[])
    return (replace(step, blocked_by=f"{owner} owns these certificates: {advice}"),)


def _serves(renewal: _Renewal) -> bool:
    """Tell whether the API server of this host serves clients; in doubt it does."""
    plane = renewal.host.control_plane
    if plane is None or not api_server.runs(plane):
        return False
    uses = [*renewal.certificates.served, *renewal.certificates.files]
    shown = [use for use in uses if (use.component, use.flag) == (API, "tls-cert-file")]
    if shown and _is_over(shown[0], renewal.now):
        return False
    answers = api_server.answers(renewal.scene.document)
    return answers is None or all(map(_is_ready, answers.servers))


def _is_ready(server: ServerAnswer) -> bool:
    """Tell whether an API server is ready; one that refuses to tell is."""
    status = server.readyz.status
    return status is not None and status < ANSWERS_NOTHING


def _not_now(scene: RemedyContext, restarts: bool) -> str | None:
    """Return what forbids changes on this host now.

    Without an API server it is unknown whether the node was taken out on purpose: api_down.
    """
    return all_of(kubelet_in_the_way(scene) if restarts else None, fencing.refusal(scene))


def _unfit(renewal: _Renewal) -> str | None:
    """Return why these certificates cannot be renewed here, or None."""
    uses = list(renewal.uses.values())
    doubts = [
        doubt for doubt in map(renewal.certificates.doubt, (use.leaf for use in uses)) if doubt
    ]
    away = clock.away(renewal.host.clock, clock.CONTROLLER) if renewal.host.clock else 0.0
    if doubts or abs(away) > clock.OFF:
        reason = doubts[0] if doubts else f"the clock of this host is {abs(away):.0f} s off (KM526)"
        return f"{reason}: set the clock first, and audit again"
    if not certificate_renewal.has_keys(renewal.certificates, uses):
        return (
            "the key of the authority that signed them is not on this host (an external CA):"
            " neither kubeadm nor kubemend can renew them; have that authority sign new ones"
        )
    return _short_authority(renewal, uses)


def _short_authority(renewal: _Renewal, uses: Sequence[Used]) -> str | None:
    """Return that an authority ends before a new certificate of a year would, or None."""
    for authority in renewal.certificates.authorities:
        signed = [use for use in uses if x509_certificate.is_signed(use.chain, authority.chain)]
        if signed and authority.leaf.ends < renewal.now + YEAR:
            return (
                f"the authority {authority.place} ends at {authority.leaf.ends:%Y-%m-%d}, before a"
                " certificate of a year would: renew the authority first, by hand (KM123)"
            )
    return None


def _renewal(renewal: _Renewal, blocked: str | None, risk: int) -> Step:
    """Return the step that renews, after which nothing has restarted."""
    lines = [
        f"kubeadm certs renew {name}: {use.place}, which {_ends(use, renewal.now)}\n"
        for name, use in renewal.uses.items()
    ]
    return new_step(
        renewal.scene,
        RENEW_CERTIFICATES,
        renewal.folder,
        blocked,
        risk,
        concerned=[],
        limit=kind_of(RENEW_CERTIFICATES).seconds,
        diff="".join(lines),
        note="nothing restarts; the former bytes stay in the journal, and a revert leaves new ones",
        guard=node_guard(renewal.scene),
        change={
            "kind": RENEW_CERTIFICATES,
            "path": renewal.folder,
            "folder": renewal.folder,
            "names": list(renewal.uses),
            "serials": {name: f"{use.leaf.serial:x}" for name, use in renewal.uses.items()},
            "release": certificate_renewal.release(renewal.host.control_plane),
        },
    )


def _ends(use: Used, now: datetime) -> str:
    return certificate_faults.ended(use.leaf, now) or f"ends at {use.leaf.ends:%Y-%m-%d}"


def _load(
    renewal: _Renewal, components: Sequence[str], serves: bool, blocked: str | None, risk: int
) -> Step:
    """Return the step that restarts these components, one after the other."""
    loads = kubeadm_certificates.all_paths(renewal.folder)
    plane = renewal.host.control_plane
    restarts = {
        component: {
            "image": _image(renewal.scene.document, component),
            "words": _words(plane, component),
            "loads": loads,
        }
        for component in components
    }
    return new_step(
        renewal.scene,
        LOAD_CERTIFICATES,
        renewal.folder,
        blocked,
        risk,
        concerned=[],
        limit=kind_of(LOAD_CERTIFICATES).seconds,
        diff="".join(f"restart of {component}\n" for component in components),
        note="etcd is not restarted: it reads its files at each handshake",
        guard=node_guard(renewal.scene),
        change={
            "kind": LOAD_CERTIFICATES,
            "path": renewal.folder,
            "components": restarts,
            "serves": serves,
        },
    )


def _image(document: Mapping[str, Any], component: str) -> str | None:
    """Return the image in the component's manifest, which its next start needs."""
    for file in contract.answer(document, Manifests).files:
        try:
            text = pod_manifest.parseable(file.text or "", file.masked)
            containers = pod_manifest.parse(text).containers
        except pod_manifest.ManifestError:
            continue
        for container in containers:
            if container.component == component:
                return container.image
    return None


def _words(plane: ControlPlane | None, component: str) -> list[str] | None:
    """Return the command line in the component's manifest, None where it starts a shell."""
    uses = [use for use in plane.files if use.component == component] if plane else []
    if len(uses) != 1 or not uses[0].words:
        return None
    is_own = uses[0].words[0].rpartition("/")[2] == component
    return list(uses[0].words) if is_own else None


REMEDIES: dict[str, Remedy] = {
    "KM120": expired,
    "KM121": due,
    UNLOADED: expired,
    "KM126": expired,
}
