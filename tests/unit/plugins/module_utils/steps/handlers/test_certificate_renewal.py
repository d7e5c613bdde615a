# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates renewed on their node.

Nothing is written before all is known to fit, a pair is whole or as it was, and a revert leaves it.
"""

import base64
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    kubeadm_certificates,
    step_kinds,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    revert_plan,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
    health_probe,
    kubeadm_renewal,
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    certificate_renewal,
)
from tests.unit.support import pki

RUN, NEXT = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
STEP = "01-m1-renew-certificates"
ALL = tuple(kubeadm_certificates.ORDER)
FORMER, FRESH, OTHER = "former", "fresh", "other"


def kubeconfig(pair):
    data = base64.b64encode(pair.pem.encode()).decode()
    key = base64.b64encode(pair.private.encode()).decode()
    return (
        "apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user:\n"
        f"    client-certificate-data: {data}\n    client-key-data: {key}\n"
    ).encode()


class Node:
    """A control-plane node whose certificates have ended, and a kubeadm that makes other ones."""

    def __init__(self, path, monkeypatch, names=ALL):
        self.path, self.root, self.names = path, str(path / "kubemend"), names
        top = path / "kubernetes"
        self.folder = top / "pki"
        monkeypatch.setattr(kubeadm_certificates, "KUBERNETES", str(top))
        monkeypatch.setattr(kubeadm_certificates, "FOLDERS", (str(self.folder),))
        now = time.time()
        self.authorities = {
            "ca": pki.Authority("kubernetes", now),
            "etcd/ca": pki.Authority("etcd-ca", now),
            "front-proxy-ca": pki.Authority("front-proxy-ca", now),
        }
        (self.folder / "etcd").mkdir(parents=True)
        self.put_authorities()
        self.former, self.fresh, self.serials = {}, {}, {}
        for name in names:
            self._make(name)
        for path_of, data in self.former.items():
            self.put(path_of, data)
        self.algorithm = "ECDSA-P256"
        self.complaint, self.etcds, self.release = None, [], [1, 36]
        self.program = kubeadm_renewal.Kubeadm("1.36.3", 36)
        self.others = []
        monkeypatch.setattr(kubeadm_renewal, "find", lambda: self.program)
        monkeypatch.setattr(kubeadm_renewal, "running", lambda: self.others)
        monkeypatch.setattr(kubeadm_renewal, "renew", self.renew)
        monkeypatch.setattr(health_probe, "instances", lambda component: self.etcds)

    def put_authorities(self):
        for name, authority in self.authorities.items():
            self.put(f"{self.folder}/{name}.crt", authority.pair.pem.encode())
            self.put(f"{self.folder}/{name}.key", authority.pair.private.encode())

    @staticmethod
    def put(path, data):
        Path(path).write_bytes(data)
        Path(path).chmod(0o600)

    def _make(self, name):
        row = kubeadm_certificates.CERTIFICATES[name]
        authority = self.authorities[row.authority]
        names = ["m1", "10.0.0.1"] if name in ("apiserver", "etcd-server") else []
        for found, dates in ((self.former, (-400, -3)), (self.fresh, (-1, 364))):
            pair = authority.issue(name, names, *dates)
            if found is self.former:
                self.serials[name] = f"{pair.certificate.serial_number:x}"
            paths = row.paths(str(self.folder))
            data = [kubeconfig(pair)] if row.file is None else [pair.private.encode(), None]
            if row.file is not None:
                data[1] = pair.pem.encode()
            found.update(zip(paths, data, strict=True))

    def renew(self, kubeadm, algorithms, folder, copies):
        assert kubeadm is self.program
        assert folder == str(self.folder)
        assert set(algorithms.values()) == {self.algorithm}
        if self.complaint:
            raise kubeadm_renewal.RenewalError(self.complaint)
        wanted = [
            path
            for name in algorithms
            for path in kubeadm_certificates.CERTIFICATES[name].paths(folder)
        ]
        assert set(wanted) < set(copies)
        return {path: self.fresh[path] for path in wanted}

    def step(self, names=None, **change):
        names = list(names or self.names)
        return {
            "id": STEP,
            "host": "m1",
            "code": ["KM120"],
            "remedy": "renew_certificates",
            "target": str(self.folder),
            "expect": {"component": None},
            "guard": {"allow": []},
            "change": {
                "kind": "renew_certificates",
                "path": str(self.folder),
                "folder": str(self.folder),
                "names": names,
                "serials": {name: self.serials[name] for name in names},
                "release": self.release,
                **change,
            },
        }

    def params(self, step=None, run_id=RUN, check=False):
        return {
            "run_id": run_id,
            "root": self.root,
            "lock": None,
            "check": check,
            "step": step or self.step(),
        }

    def work(self, step=None, check=False):
        return step_executor.work(self.params(step, check=check))

    def recover(self):
        step = {"id": "00-recover", "host": "m1", "remedy": "recover", "code": ["KM902"]}
        return step_executor.work(self.params({**step, "change": None, "expect": {}}, run_id=NEXT))

    def kind(self, path):
        try:
            data = Path(path).read_bytes()
        except OSError:
            return OTHER
        return {self.former[path]: FORMER, self.fresh[path]: FRESH}.get(data, OTHER)

    def state(self):
        return {
            os.path.relpath(path, str(self.folder)): self.kind(path) for path in sorted(self.former)
        }

    def left(self):
        """Return the names whose certificates are the former ones."""
        rows = kubeadm_certificates.CERTIFICATES
        return [
            name
            for name in self.names
            if self.kind(rows[name].paths(str(self.folder))[-1]) != FRESH
        ]

    def is_untouched(self):
        return set(self.state().values()) == {FORMER}


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def refused(node, words, step=None):
    answer = node.work(step)
    assert answer["state"] == "refused", answer
    assert words in answer["reason"], answer["reason"]
    assert "\n" not in answer["reason"]
    assert not answer["changed"]
    assert node.is_untouched()
    return answer["reason"]


def test_everything_is_renewed_with_its_former_bytes_in_the_journal(node):
    modes = {path: Path(path).stat().st_mode for path in node.former}
    answer = node.work()
    assert answer["state"] == "done", answer
    assert answer["changed"]
    assert answer["seen"]["renewed"] == list(ALL)
    assert set(node.state().values()) == {FRESH}
    assert {path: Path(path).stat().st_mode for path in node.former} == modes
    items = journal.read_run(RUN, node.root)
    kept = {item["intent"]["path"]: journal.former_bytes(item, node.root) for item in items}
    assert kept == node.former
    assert Path(node.root, "journal", RUN).stat().st_mode & 0o077 == 0


def test_a_second_time_renews_nothing(node):
    """The evidence of a process that has not restarted still has the former certificates."""
    assert node.work()["state"] == "done"
    node.complaint = "kubeadm is not asked"
    answer = step_executor.work(node.params(run_id=NEXT))
    assert answer["state"] == "done", answer
    assert "renewed since" in answer["reason"]
    assert set(node.state().values()) == {FRESH}
    assert journal.read_run(NEXT, node.root) == []


def test_what_was_renewed_since_is_left_and_the_rest_renewed(node):
    assert node.work(node.step(["scheduler.conf", "apiserver"]))["state"] == "done"
    answer = step_executor.work(node.params(run_id=NEXT))
    assert answer["state"] == "done", answer
    assert set(answer["seen"]["renewed"]) == set(ALL) - {"scheduler.conf", "apiserver"}
    assert set(node.state().values()) == {FRESH}


def test_another_certificate_that_has_ended_is_old_evidence(node):
    other = node.step(["apiserver"])
    other["change"]["serials"]["apiserver"] = "1234"
    refused(node, "the evidence is old", other)


def test_a_key_comes_before_its_certificate():
    for row in kubeadm_certificates.CERTIFICATES.values():
        paths = row.paths("/etc/kubernetes/pki")
        assert len(paths) == 1 or [path[-4:] for path in paths] == [".key", ".crt"]


def test_check_mode_writes_nothing(node):
    answer = node.work(check=True)
    assert answer["state"] == "skipped", answer
    assert node.is_untouched()
    assert not Path(node.root).exists()


def test_only_the_names_of_the_plan_are_renewed(node):
    assert node.work(node.step(["apiserver", "admin.conf"]))["state"] == "done"
    fresh = {name for name, kind in node.state().items() if kind == FRESH}
    assert fresh == {"apiserver.crt", "apiserver.key", "../admin.conf"}


def test_a_revert_leaves_it_with_the_reason(node):
    assert node.work()["state"] == "done"
    for row in revert_plan.plan_revert(RUN, node.root):
        assert row["state"] == "kept"
        assert "would stop" in row["reason"]


# --- what forbids it


def test_the_key_of_the_authority_is_missing(node):
    (node.folder / "etcd" / "ca.key").unlink()
    assert "external CA" in refused(node, "etcd/ca.key is not on m1")


def test_an_authority_that_ends_first(node):
    node.authorities["ca"] = pki.Authority("kubernetes", time.time(), ends=300)
    node.put_authorities()
    refused(node, "before a certificate of a year would")


def test_a_clock_before_the_authority(node):
    node.authorities["ca"] = pki.Authority("kubernetes", time.time(), begins=10)
    node.put_authorities()
    refused(node, "set the clock first")


def test_another_kubeadm_runs(node):
    node.others = ["4711"]
    refused(node, "another kubeadm runs on m1 (pid 4711)")


@pytest.mark.parametrize("state", [{"f_bavail": 10}, {"f_favail": 5}])
def test_a_full_disk(node, monkeypatch, state):
    free = {"f_bavail": 10**6, "f_frsize": 4096, "f_files": 10**6, "f_favail": 10**6}
    full = SimpleNamespace(**{**free, **state})
    monkeypatch.setattr(certificate_renewal.os, "statvfs", lambda path: full)
    refused(node, "make room there and run again")


def test_a_kubeadm_of_another_release(node):
    node.program = kubeadm_renewal.Kubeadm("1.35.0", 35)
    refused(node, "kubeadm of m1 is 1.35.0, and the control plane runs 1.36")


def test_a_release_that_is_not_known_is_no_obstacle(node):
    assert node.work(node.step(release=None))["state"] == "done"


def test_no_kubeadm(node, monkeypatch):
    def none():
        raise kubeadm_renewal.RenewalError("kubeadm of this node does not run")

    monkeypatch.setattr(kubeadm_renewal, "find", none)
    refused(node, "renew by hand")


def test_a_link_out_of_the_folder(node):
    path, other = node.folder / "apiserver.crt", node.path / "elsewhere.crt"
    path.rename(other)
    path.symlink_to(other)
    refused(node, "is not where kubeadm writes")


def test_a_file_of_another_user(node):
    if os.geteuid():
        pytest.skip("needs root: it gives a file away")
    os.chown(node.folder / "apiserver.key", 1234, 1234)
    refused(node, "belongs to another user (uid 1234)")


def test_a_file_with_a_second_name(node):
    """It is the last one, and refused before the first is replaced."""
    os.link(node.folder / "front-proxy-client.key", node.path / "second.key")
    refused(node, "hard links")


def test_a_file_that_others_may_write(node):
    (node.folder / "apiserver.key").chmod(0o662)
    refused(node, "can be written by other users")


def test_a_missing_key(node):
    path = node.folder / "apiserver.key"
    data = path.read_bytes()
    path.unlink()
    answer = node.work()
    assert answer["state"] == "refused"
    assert "apiserver.key of m1 is missing" in answer["reason"]
    path.write_bytes(data)
    assert node.is_untouched()


@pytest.mark.parametrize("names", [["kubelet.conf"], [], ["apiserver", "apiserver"]])
def test_a_name_that_is_none(node, names):
    step = node.step(["apiserver"])
    step["change"]["names"] = names
    refused(node, "none of kubeadm's", step)


def test_another_folder(node):
    refused(node, "is no folder in which kubeadm keeps", node.step(folder="/srv/pki"))


def test_no_certificate_in_the_file(node):
    path = node.folder / "apiserver.crt"
    path.write_bytes(b"nothing\n")
    answer = node.work()
    assert answer["state"] == "refused"
    assert "no certificate that can be read" in answer["reason"]


# --- what kubeadm makes is compared before anything is written


def test_kubeadm_complains(node):
    node.complaint = "kubeadm certs renew apiserver: no"
    refused(node, "nothing was changed: kubeadm certs renew apiserver: no")


def _other(node, name, **made):
    """Let kubeadm make another certificate of this name."""
    row = kubeadm_certificates.CERTIFICATES[name]
    authority = made.pop("by", node.authorities[row.authority])
    pair = authority.issue(made.pop("subject", name), made.pop("names", ["m1", "10.0.0.1"]), **made)
    key, path = row.paths(str(node.folder))
    node.fresh[key], node.fresh[path] = pair.private.encode(), pair.pem.encode()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"names": ["m1"]}, "other names"),
        ({"key": ec.generate_private_key(ec.SECP384R1())}, "a key of ECDSA-P384"),
        ({"key": ec.generate_private_key(ec.SECP521R1())}, "a key of another kind"),
        ({"subject": "another"}, "other names"),
        ({"begins": -9, "ends": -2}, "dates"),
        ({"begins": -9, "ends": 99999}, "dates"),
        ({"by": pki.Authority("another", time.time())}, "another authority"),
    ],
)
def test_a_certificate_that_does_not_fit(node, made, words):
    _other(node, "apiserver", **made)
    refused(node, words)


def test_a_key_that_does_not_fit(node):
    node.fresh[f"{node.folder}/apiserver.key"] = pki.Authority(
        "x", time.time()
    ).pair.private.encode()
    refused(node, "another key than its certificate")


def test_the_same_certificate_again(node):
    node.fresh.update({path: data for path, data in node.former.items() if "apiserver." in path})
    assert "is the former one" in node.work()["reason"]


# --- a write that fails


def failing(monkeypatch, node, name):
    """Let the write of this file fail, as on a disk that is full; return what brings it back."""
    replace = file_change.replace

    def maybe(path, expected, data, step):
        if path.endswith(name) and data == node.fresh[path]:
            raise ChangeError(f"{path} was not changed: no space is left")
        return replace(path, expected, data, step)

    monkeypatch.setattr(file_change, "replace", maybe)


def test_a_key_is_put_back_where_its_certificate_is_not_written(node, monkeypatch):
    failing(monkeypatch, node, "etcd/server.crt")
    answer = node.work()
    assert answer["state"] == "refused", answer
    assert node.is_untouched()


def test_a_key_stays_whose_certificate_was_written_and_not_committed(node, monkeypatch):
    replace = file_change.replace

    def late(path, *arguments, **more):
        done = replace(path, *arguments, **more)
        if path.endswith("etcd/server.crt"):
            raise ChangeError("it holds its new bytes, and that cannot be committed", changed=True)
        return done

    monkeypatch.setattr(file_change, "replace", late)
    assert node.work()["state"] == "failed"
    state = node.state()
    assert state["etcd/server.key"] == state["etcd/server.crt"] == FRESH


def test_whole_pairs_stay(node, monkeypatch):
    failing(monkeypatch, node, "/apiserver.crt")
    answer = node.work()
    assert answer["state"] == "failed", answer
    assert (
        "etcd-server, etcd-peer, etcd-healthcheck-client renewed, and no more" in answer["reason"]
    )
    state = node.state()
    assert {state["etcd/server.crt"], state["etcd/server.key"]} == {FRESH}
    assert {state["apiserver.crt"], state["apiserver.key"], state["../admin.conf"]} == {FORMER}


# --- etcd shows it


def etcd(**flags):
    argv = ["etcd", *(f"--{name.replace('_', '-')}={value}" for name, value in flags.items())]
    return SimpleNamespace(pid=1, argv=argv)


@pytest.fixture
def shown(node, monkeypatch):
    """Let the ports of etcd show what is here: digests by port."""
    node.etcds = [
        etcd(
            listen_client_urls="https://127.0.0.1:2379,https://10.0.0.1:2379",
            listen_peer_urls="https://10.0.0.1:2380",
            cert_file=f"{node.folder}/etcd/server.crt",
            peer_cert_file=f"{node.folder}/etcd/peer.crt",
        )
    ]
    shown = {
        ("127.0.0.1", 2379): node.fresh[f"{node.folder}/etcd/server.crt"].decode(),
        ("10.0.0.1", 2380): node.fresh[f"{node.folder}/etcd/peer.crt"].decode(),
    }

    def read(places, _seconds):
        return [
            {"address": place[0], "port": place[1], "pem": shown[place], "error": "timed out"}
            for place in places
        ]

    monkeypatch.setattr(certificate_renewal.served_certificates, "read", read)
    monkeypatch.setattr(certificate_renewal, "SHOWN_SECONDS", 0.05)
    monkeypatch.setattr(certificate_renewal, "PAUSE", 0.01)
    return shown


def test_ports_of_etcd_prove_it(node, shown):
    assert node.work()["state"] == "done"
    assert len(shown) == 2


def test_a_silent_port_is_no_contradiction(node, shown):
    """A member without a quorum serves no client, until another one is renewed too."""
    shown["127.0.0.1", 2379] = None
    assert node.work()["state"] == "done"


def test_an_etcd_that_shows_another_certificate_ends_the_run(node, shown):
    shown["10.0.0.1", 2380] = node.former[f"{node.folder}/etcd/peer.crt"].decode()
    answer = node.work()
    assert answer["state"] == "failed", answer
    assert "etcd shows another certificate at 10.0.0.1:2380" in answer["reason"]
    assert set(node.state().values()) == {FRESH}


def test_what_etcd_does_not_serve_is_not_asked_for(node, shown):
    shown.clear()
    assert node.work(node.step(["apiserver", "etcd-healthcheck-client"]))["state"] == "done"


# --- an interruption


def interrupted(node, monkeypatch, name):
    """End the program before it writes this file."""
    replace = file_change.replace

    def maybe(path, expected, data, step):
        if path.endswith(name):
            raise KeyboardInterrupt
        return replace(path, expected, data, step)

    with monkeypatch.context() as during:
        during.setattr(file_change, "replace", maybe)
        with pytest.raises(KeyboardInterrupt):
            node.work()


def test_a_recovery_puts_a_lonely_key_back(node, monkeypatch):
    interrupted(node, monkeypatch, "/apiserver.crt")
    assert node.state()["apiserver.key"] == FRESH
    answer = node.recover()
    assert answer["state"] == "done", answer
    state = node.state()
    assert {state["apiserver.crt"], state["apiserver.key"]} == {FORMER}
    assert state["etcd/peer.crt"] == FRESH
    assert "judged again" in answer["reason"]
    assert step_record.unproven(node.root) == []
    assert node.recover()["reason"] == "nothing was interrupted"


def test_a_recovery_of_what_was_not_begun(node, monkeypatch):
    interrupted(node, monkeypatch, "etcd/server.key")
    answer = node.recover()
    assert answer["state"] == "done", answer
    assert node.is_untouched()
    (record,) = [one for one in step_record.of_run(RUN, node.root) if one["step"] == STEP]
    assert record["state"] == step_record.NOT_DONE


def test_a_recovery_of_what_was_done(node, monkeypatch):
    monkeypatch.setattr(certificate_renewal, "_unshown", lambda *told: 1 / 0)
    assert node.work()["state"] == "failed"
    assert node.recover()["state"] == "done"
    (record,) = [one for one in step_record.of_run(RUN, node.root) if one["step"] == STEP]
    assert record["state"] == step_record.PROVEN


def test_a_recovery_leaves_what_others_wrote(node, monkeypatch):
    interrupted(node, monkeypatch, "/apiserver.crt")
    theirs = node.folder / "apiserver.key"
    theirs.write_bytes(b"theirs\n")
    answer = node.recover()
    assert answer["state"] == "failed", answer
    assert theirs.read_bytes() == b"theirs\n"
    assert step_record.unproven(node.root) == []


def test_it_is_in_the_table():
    assert "renew_certificates" in step_kinds.in_plans()
    handler = registry.handler_of("renew_certificates")
    assert isinstance(handler, certificate_renewal.RenewCertificates)
    assert step_kinds.kind_of("renew_certificates").is_local(2)
    assert journal_entry.StepContext(RUN, "a", "b", "c").keep is None
