# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renews certificates of a control-plane node by its own kubeadm, each by its name.

Nothing restarts. kubeadm writes into a copy in memory; what it made is compared with what it
replaces, and then swapped file by file, the key before its certificate, with the former bytes in
the journal. etcd reads its files at each handshake, so that its ports show the new certificate at
once: no member stops working for it.
"""

import os
import time

from ...collectors.node import etcd
from ...shared import kubeadm_certificates
from ...shared.errors import PreconditionFailed
from ...shared.kubeadm_certificates import CERTIFICATES, ORDER
from ...state import file_target, journal, step_record, storage
from ...state.storage import ChangeError
from ...system import (
    certificate_fields,
    files,
    http_client,
    procfs,
    public_keys,
    served_certificates,
    yaml_scalars,
)
from .. import file_change, health_probe, kubeadm_renewal, preconditions
from ..base import StepHandler, outcome

COMPONENT = "certificates"  # what records of this kind are about
YEAR = 365 * 24 * 3600  # for so long kubeadm signs, whatever is left of the authority's time
SPACE, INODES = 16 * 1024 * 1024, 100  # that files of a few KiB and their journal need at most
SHOWN_SECONDS, LOOK_SECONDS, PAUSE = 20, 3, 0.5
OTHER = "another kind"
KEEP = (
    "a revert leaves renewed certificates: the former ones have ended or end soon, and the control"
    " plane would stop with them; their bytes are in the journal"
)
CLIENT, CLIENT_KEY = "client-certificate-data", "client-key-data"  # in a kubeconfig
ETCD_PORTS = {
    "etcd-server": ("listen-client-urls", "cert-file"),
    "etcd-peer": ("listen-peer-urls", "peer-cert-file"),
}


class RenewCertificates(StepHandler):
    """One step: these certificates of this node, renewed and not loaded."""

    def check(self, step):
        """Return what the record holds besides; raise PreconditionFailed or ChangeError."""
        self.scene = scene = _Scene(step)
        return {
            "component": COMPONENT,
            "path": scene.folder,
            "names": scene.names,
            "former_sha256": {path: file.sha256 for path, file in scene.files.items()},
        }

    def perform(self, step, record):
        """Renew, write, and show that the ports of etcd have the new certificates."""
        written = []
        if not self.scene.names:
            return outcome(step.context, step_record.PROVEN, "all of it has been renewed since")
        try:
            fresh = self._renewed()
            for name in self.scene.names:
                self._write(name, fresh, step.context)
                written.append(name)
        except (ChangeError, OSError) as error:
            return outcome(step.context, *_ended(written, error))
        reason = _unshown(self.scene.names, fresh, step.host)
        if reason:
            return outcome(step.context, step_record.FAILED, reason)
        return outcome(step.context, step_record.PROVEN, None, {"renewed": written})

    def _renewed(self):
        """Return {path: new bytes}, compared with what they replace; raise ChangeError."""
        scene = self.scene
        try:
            fresh = kubeadm_renewal.renew(
                scene.kubeadm, scene.algorithms, scene.folder, scene.copies
            )
        except kubeadm_renewal.RenewalError as error:
            raise ChangeError(f"nothing was changed: {error}") from error
        for name in scene.names:
            reason = _misfit(name, scene, fresh)
            if reason:
                raise ChangeError(
                    f"nothing was changed: what kubeadm made as {name} {reason}; renew it by hand"
                )
        return fresh

    def _write(self, name, fresh, context):
        """Write the files of one certificate; restore its key where the rest cannot be written."""
        kept = context.also(keep=KEEP)
        entries = []
        for path in CERTIFICATES[name].paths(self.scene.folder):
            try:
                done = file_change.replace(path, self.scene.files[path].sha256, fresh[path], kept)
            except (ChangeError, OSError) as error:
                if not getattr(error, "changed", False):
                    _restore_all(entries, context, error)
                # else this file has its new bytes, as those before it: they fit
                raise
            entries.append((path, done, self.scene.files[path].data))

    def recover(self, record, context=None, params=None):
        """Tell which certificates are renewed, and restore a key whose certificate is not."""
        renewed, remaining = [], []
        for name in record.get("names") or []:
            states = _states(name, record)
            if all(states.values()):
                renewed.append(name)
                continue
            remaining.append(name)
            try:
                _restore_half(record, states, context)
            except ChangeError as error:
                return step_record.FAILED, f"{name} is half written: {error}"
        if not remaining:
            return step_record.PROVEN, f"{', '.join(renewed)} renewed"
        sentence = f"{', '.join(remaining)} not renewed, which is judged again"
        if renewed:
            return step_record.PROVEN, f"{', '.join(renewed)} renewed, and {sentence}"
        return step_record.NOT_DONE, sentence


class _Scene:
    """The node before the renewal: its files, and its kubeadm; raise what forbids a renewal."""

    def __init__(self, step):
        self.host = step.host
        self.root = step.context.root
        change = step.change
        self.names = [name for name in ORDER if name in (change.get("names") or ())]
        self.folder = change.get("folder")
        if len(self.names) != len(change.get("names") or ()) or not self.names:
            raise PreconditionFailed(
                f"the plan names a certificate that is none of kubeadm's; {preconditions.OLD}"
            )
        if self.folder not in kubeadm_certificates.FOLDERS:
            raise PreconditionFailed(
                f"{files.one_line(self.folder, 100)} is no folder in which kubeadm keeps"
                " certificates: renew them where they were made"
            )
        self._require_alone()
        self._require_space()
        self.files, self.copies = {}, {}
        self.algorithms = {}
        serials = change.get("serials") or {}
        # A process that has a file of before keeps its certificate in the evidence until it
        # restarts: what an interrupted run renewed is not renewed again.
        self.names = [name for name in self.names if self._read(name, serials.get(name))]
        self.kubeadm = self._program(change.get("release"))

    def _require_alone(self):
        for pid in kubeadm_renewal.running():
            raise PreconditionFailed(
                f"another kubeadm runs on {self.host} (pid {pid}): let it end, and run again"
            )

    def _require_space(self):
        for place in (self.folder, self.root):
            try:
                state = os.statvfs(place)
            except OSError:
                continue  # of a folder that is made later; the write says it
            is_short = state.f_bavail * state.f_frsize < SPACE
            if is_short or (state.f_files and state.f_favail < INODES):
                raise PreconditionFailed(
                    f"the filesystem of {place} on {self.host} is full: no space or no inode is"
                    " left for new certificates and for the former ones; make room there and run"
                    " again"
                )

    def _read(self, name, serial):
        """Read the files of a certificate and of its authority; return whether it is due.

        It is not where it has been renewed since; PreconditionFailed is raised where they do not
        fit.
        """
        certificate = CERTIFICATES[name]
        for path in certificate.paths(self.folder):
            self.files[path] = self._file(path)
            self._require_one_name(path)
            self.copies[path] = self.files[path].data
        self._require_authority(certificate)
        fields = _fields(self.copies[path], path)
        if f"{fields.serial:x}" == serial:
            self.algorithms[name] = fields.algorithm
            return True
        if not self._is_sound(certificate, fields):
            raise PreconditionFailed(
                f"the evidence is old: {path} on {self.host} holds another certificate than it"
                f" did; {preconditions.OLD}"
            )
        return False

    def _is_sound(self, certificate, fields):
        """Return whether the authority of this node signed a certificate that is valid now."""
        path = certificate.authority_paths(self.folder)[0]
        signer = _fields(self.copies[path], path)
        return fields.issuer == signer.subject and fields.begins <= time.time() < fields.ends

    def _file(self, path):
        """Return a regular file of root in kubeadm's folder; raise PreconditionFailed."""
        with storage.change_errors(f"nothing was changed, because {path} cannot be read"):
            place = file_target.Place(path, self.root)
            with storage.descriptor(place.opened()) as folder:
                file = file_target.look(place, folder)
        top = os.path.realpath(kubeadm_certificates.KUBERNETES) + "/"
        if file is None:
            reason = "is missing"
        elif place.linked or not place.real.startswith(top):
            reason = f"leads to {place.real}, which is not where kubeadm writes"
        elif file.uid != os.geteuid():
            reason = f"belongs to another user (uid {file.uid})"
        elif file.mode & 0o022:
            reason = "can be written by other users"
        else:
            return file
        raise PreconditionFailed(
            f"{path} of {self.host} {reason}: see who put it there, and renew by hand"
        )

    def _require_one_name(self, path):
        """Require that no other name leads to a file that is replaced, before any of them is."""
        status = self.files[path].status
        if status.st_nlink > 1:
            raise PreconditionFailed(
                f"{path} of {self.host} has {int(status.st_nlink)} names (hard links), and a new"
                f" file would part them: remove the others (find -inum {int(status.st_ino)}), and"
                " run again"
            )

    def _require_authority(self, certificate):
        """Require that the authority is here with its key, and is valid for long enough."""
        path, key_path = certificate.authority_paths(self.folder)
        if not os.path.lexists(key_path):
            raise PreconditionFailed(
                f"{key_path} is not on {self.host}, as with an external CA: neither kubeadm nor"
                f" kubemend can renew {certificate.name}; have that authority sign another one"
            )
        for each in (path, key_path):
            if each not in self.copies:
                self.copies[each] = self._file(each).data
        fields, now = _fields(self.copies[path], path), time.time()
        if now < fields.begins:
            raise PreconditionFailed(
                f"by the clock of {self.host} its authority {path} is not valid before"
                f" {certificate_fields.date_text(fields.begins)}: set the clock first"
            )
        if fields.ends < now + YEAR:
            raise PreconditionFailed(
                f"the authority {path} of {self.host} ends at"
                f" {certificate_fields.date_text(fields.ends)}, before a certificate of a year"
                " would: renew the authority first, by hand"
            )

    def _program(self, release):
        """Return the node's kubeadm, which must be of the release of the components."""
        try:
            kubeadm = kubeadm_renewal.find()
        except kubeadm_renewal.RenewalError as error:
            raise PreconditionFailed(f"nothing was changed: {error}; renew by hand") from error
        if release and list(release)[1:2] != [kubeadm.minor]:
            raise PreconditionFailed(
                f"kubeadm of {self.host} is {kubeadm.text}, and the control plane runs"
                f" 1.{release[1]}: install kubeadm of that release, or renew by hand"
            )
        return kubeadm


def _text_of(data, path):
    """Return the PEM text in a file: of a kubeconfig that of its client."""
    text = data.decode("utf-8", "replace")
    if path.endswith(".conf"):
        return yaml_scalars.decoded(yaml_scalars.anywhere(text, CLIENT) or "") or ""
    return text


def _key_text(data, path):
    text = data.decode("utf-8", "replace")
    if path.endswith(".conf"):
        return yaml_scalars.decoded(yaml_scalars.anywhere(text, CLIENT_KEY) or "") or ""
    return text


def _fields(data, path):
    """Return the fields of the first certificate in a file; raise PreconditionFailed."""
    try:
        return certificate_fields.first(_text_of(data, path))
    except ValueError as error:
        raise PreconditionFailed(
            f"{path} holds no certificate that can be read ({files.one_line(error)}): renew it by"
            " hand"
        ) from error


def _misfit(name, scene, fresh):
    """Return what is wrong with a renewed certificate, or None."""
    certificate = CERTIFICATES[name]
    paths = certificate.paths(scene.folder)
    try:
        now = certificate_fields.first(_text_of(fresh[paths[-1]], paths[-1]))
        keys = public_keys.digests(_key_text(fresh[paths[0]], paths[0]))
        was = certificate_fields.first(_text_of(scene.copies[paths[-1]], paths[-1]))
        authority = certificate.authority_paths(scene.folder)[0]
        signer = certificate_fields.first(_text_of(scene.copies[authority], authority))
    except ValueError as error:
        return f"cannot be read ({files.one_line(error)})"
    if now.key not in keys:
        return "has another key than its certificate"
    if (now.subject_values, now.names) != (was.subject_values, was.names):
        return "has other names than the former one"
    if now.algorithm != was.algorithm:
        return _other_algorithm(name, now.algorithm, was.algorithm)
    if now.issuer != signer.subject:
        return "has another authority than the one of this node"
    if now.serial == was.serial:
        return "is the former one"
    is_now = now.begins <= time.time() < now.ends
    if not is_now or now.ends > signer.ends:
        return "has dates that do not fit"
    return None


def _other_algorithm(name, algorithm, former):
    """Return what is wrong where kubeadm does not make a key of the former kind."""
    return (
        f"has a key of {algorithm or OTHER}, and the former one is of {former or OTHER}, which"
        " this kubeadm does not make: sign it with the authority by openssl, or accept the other"
        f" key by kubeadm certs renew {name} (before 1.20 kubeadm alpha certs renew {name})"
    )


def _ended(written, error):
    """Return (state, reason) of a step whose write failed after some certificates."""
    if written:
        return (
            step_record.FAILED,
            f"{', '.join(written)} renewed, and no more: {files.one_line(error, 600)}",
        )
    state = step_record.NOT_DONE
    if getattr(error, "changed", False):
        state = step_record.FAILED
    return state, files.one_line(error, 800)


def _restore_all(entries, context, error):
    """Restore the files of a certificate that is half written; raise ChangeError where not."""
    for path, done, former in entries:
        try:
            file_change.replace(
                path, done["sha256_after"], former, context.also(reverts=done["entry"])
            )
        except (ChangeError, OSError) as again:
            raise ChangeError(
                f"{files.one_line(error, 300)}; and the former bytes of {path} were not put back:"
                f" {files.one_line(again, 300)}",
                changed=True,
            ) from again


def _states(name, record):
    """Return {path: whether it has other bytes than before the step}."""
    former = record.get("former_sha256") or {}
    states = {}
    for path in CERTIFICATES[name].paths(record["path"]):
        try:
            states[path] = storage.digest(files.read(path)) != former.get(path)
        except OSError:
            states[path] = False
    return states


def _restore_half(record, states, context):
    """Restore the files that the step wrote of a certificate that it did not write whole."""
    for path, is_changed in states.items():
        if is_changed:
            _restore(record, path, context)


def _restore(record, path, context):
    """Restore a file that the step wrote, where it still has those bytes."""
    for item in journal.read_run(record["run_id"], context.root):
        if _is_of(item, record, path):
            intent, entry = item["intent"], "{}/{}".format(record["run_id"], item["entry"])
            former = journal.former_bytes(item, context.root)
            file_change.replace(
                intent["real"], intent["sha256_after"], former, context.also(reverts=entry)
            )


def _is_of(item, record, path):
    """Return whether an entry of the journal is the step's own change of this file, and done."""
    intent, end = item["intent"], item["end"]
    if not intent or not end or intent["reverts"]:
        return False
    is_own = (intent["path"], intent["step"]) == (path, record["step"])
    return is_own and end["result"] == journal.COMMITTED


def _unshown(names, fresh, host):
    """Return why the ports of a running etcd do not prove the new certificates, or None."""
    instances = health_probe.instances(kubeadm_certificates.ETCD)
    expected = {}
    for instance in instances[:1]:
        for name in names:
            flag, certificate_flag = ETCD_PORTS.get(name, (None, None))
            path = procfs.flag(instance.argv, certificate_flag) if flag else None
            if path in fresh:
                digest = certificate_fields.first(fresh[path].decode("utf-8", "replace")).digest
                expected.update(dict.fromkeys(_places(instance.argv, flag), digest))
    end = time.monotonic() + SHOWN_SECONDS
    while expected:
        wrong = _wrong(expected)
        if not wrong:
            return None
        if time.monotonic() > end:
            return (
                f"the files of {host} are renewed, and etcd shows another certificate at"
                f" {' and '.join(wrong)}"
            )
        time.sleep(PAUSE)
    return None


def _places(argv, flag):
    """Return the first TLS address of a flag of etcd, as [(address, port)]."""
    urls = [etcd.parsed(url) for url in etcd.split(procfs.flag(argv, flag) or "")]
    places = [(address, port) for scheme, address, port in urls if scheme == "https"]
    return [(http_client.reachable(address), port) for address, port in places[:1]]


def _wrong(expected):
    """Return the ports that show another certificate.

    A port may be silent: etcd serves no client before it has a quorum, which may need the renewed
    certificates of another member.
    """
    clauses = []
    for answer in served_certificates.read(list(expected), LOOK_SECONDS):
        place = (answer["address"], answer["port"])
        if answer["pem"] and certificate_fields.first(answer["pem"]).digest != expected[place]:
            clauses.append(f"{http_client.bracketed(place[0])}:{place[1]}")
    return clauses
