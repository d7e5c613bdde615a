# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frees the space of etcd: a snapshot, a compaction, a defragmentation, and the end of the alarm.

Each is a step of its own, on the host of the member that does it. Everything about all members is
checked again before each of them. What etcd did cannot be undone: its snapshot is what remains of
the state before.
"""

import base64
import contextlib
import os
import re
import time

from ...changes import durable_files
from ...collectors.node import etcd
from ...shared.errors import PreconditionFailed
from ...shared.text import counted
from ...state import step_record, storage
from ...state.storage import ChangeError
from ...system import etcd_keys, files, json_line
from .. import etcd_client, etcd_guards
from ..base import StepHandler, outcome
from ..etcd_client import EtcdError

FOLDER = "etcd-snapshots"
KEPT_SECONDS = 7 * 24 * 3600  # a snapshot holds Secrets, and is of no use for long
# seconds: what a database of 8 GiB takes on a slow disk
SNAPSHOT, COMPACTION, DEFRAGMENTATION = 900, 300, 600
BACK = 120  # seconds until a member that was defragmented is in step again
QUIET = 60  # seconds until a member has removed what the compaction dropped, at most
TAKES_OVER = 15
EVERY = 1.0
DIGEST = 32  # bytes of sha256 that etcd appends to a snapshot
MAX_LINE = 4 * 1024 * 1024
# Seconds until a lease is renewed. The kubelet waits up to 5 minutes before it starts an API server
# again that ended.
RENEWED, REST = 330, 60
MAX_LEASES = 5000
TTL = 60


class _EtcdStep(StepHandler):
    """A step of etcd, which checks all members first."""

    def check(self, step):
        """Refuse where a member is not well, or the step has nothing to do any more."""
        self.members = etcd_guards.look(step)
        self.require(step)
        return {"path": None, "component": "etcd"}

    def require(self, step):
        """Raise PreconditionFailed where this kind of step is refused."""
        etcd_guards.require_alarm(self.members, step)

    def perform(self, step, record):
        """Do it, and return the result."""
        begin = time.monotonic()
        try:
            reason, observation = self.act(step, record)
        except (EtcdError, PreconditionFailed, ChangeError, OSError) as error:
            return outcome(step.context, step_record.FAILED, self.explain(step, error))
        observation["proof_seconds"] = round(time.monotonic() - begin, 2)
        return outcome(step.context, step_record.PROVEN, reason, observation)

    def act(self, step, record):
        """Return (the sentence, what was seen)."""
        raise NotImplementedError

    def explain(self, step, error):
        """Return the sentence about a step that failed."""
        raise NotImplementedError

    def recover(self, record, context=None, params=None):
        """Return that the step is not known to be done: the next run repeats it."""
        return step_record.NOT_DONE, "it was interrupted, and can be repeated"


class SaveSnapshot(_EtcdStep):
    """Saves what the member of this node has, into a file that only root can read.

    The change of a step is {member_id, members, alarm}.
    """

    def require(self, step):
        """Require disk space for the snapshot, and for what follows it on this node."""
        super().require(step)
        folder = os.path.join(step.context.root, FOLDER)
        etcd_guards.require_room(self.members, step, folder)

    def record_of(self, step, facts):
        """Record the path of the snapshot, which a recovery looks for."""
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{step.context.run_id}-{step.host}")[:150]
        path = os.path.join(step.context.root, FOLDER, name + ".db")
        return super().record_of(step, dict(facts, path=path))

    def act(self, step, record):
        """Write the snapshot under a temporary name, verify it, and give it its name."""
        most = self.members.status["db_size"]
        most += most // 5 + etcd_guards.RESERVE
        with self._folder(step) as folder:
            name = os.path.basename(record["path"])
            temporary = durable_files.temporary(name)
            try:
                size = self._write(temporary, folder, most)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    durable_files.unlink(temporary, folder)
                raise
            _remove_old(folder, name)
        return (
            f"the snapshot {record['path']} has {etcd_guards.mebibytes(size)}; it holds Secrets",
            {"path": record["path"], "bytes": size},
        )

    @staticmethod
    @contextlib.contextmanager
    def _folder(step):
        """Yield a descriptor of the folder of snapshots, which only root can enter."""
        with step.context.exclusive() as root_fd:
            folder = durable_files.private_folder(FOLDER, root_fd)
        with storage.descriptor(folder):
            yield folder

    def _write(self, name, folder, most):
        durable_files.unlink(name, folder)
        with storage.descriptor(
            os.open(name, durable_files.NEW_FLAGS, 0o600, dir_fd=folder)
        ) as file:
            size = _saved(self.members.client.stream(etcd_client.SNAPSHOT, SNAPSHOT), file, most)
            os.fsync(file)
        return size

    def explain(self, step, error):
        """Return that no snapshot was saved."""
        return (
            f"no snapshot of etcd was saved on {step.host} ({_sentence(error)}); nothing else was"
            " changed"
        )

    def recover(self, record, context=None, params=None):
        """Remove what is half written; the next run saves another snapshot."""
        path = record.get("path") or ""
        if os.path.basename(os.path.dirname(path)) != FOLDER:
            return step_record.NOT_DONE, "no snapshot was saved"
        temporary = os.path.join(
            os.path.dirname(path), durable_files.temporary(os.path.basename(path))
        )
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            if os.path.exists(path):
                return step_record.PROVEN, f"the snapshot {path} is complete"
        except OSError as error:
            return None, f"{temporary} cannot be removed: {storage.way_out(error)}"
        return step_record.NOT_DONE, "no snapshot was saved"


def _saved(parts, file, most):
    """Write the blobs of a snapshot's stream to a file, and return how many bytes they have.

    etcd appends the sha256 of the rest, which etcdutl compares when it restores the file.
    """
    total, tail, digest, rest = 0, b"", files.sha256(), b""
    for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > MAX_LINE:
            raise EtcdError("the answer is no snapshot")
        for line in lines:
            blob = _blob(line)
            total += len(blob)
            if total > most:
                raise EtcdError("the snapshot is larger than the database")
            durable_files.write_all(file, blob)
            tail += blob
            digest.update(tail[:-DIGEST])
            tail = tail[-DIGEST:]
    blob = _blob(rest)
    durable_files.write_all(file, blob)
    tail += blob
    digest.update(tail[:-DIGEST])
    if digest.digest() != tail[-DIGEST:]:
        raise EtcdError("it is not complete: its sha256 is another one than etcd says")
    return total + len(blob)


def _blob(line):
    """Return the bytes of one message of a snapshot's stream."""
    if not line.strip():
        return b""
    try:
        message = json_line.loads(line.decode("ascii"))
        if "error" in message:
            raise EtcdError(files.one_line(message["error"], 200))
        return base64.b64decode(message["result"].get("blob") or "", validate=True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EtcdError("the answer is no snapshot") from error


def _remove_old(folder, name):
    """Remove snapshots of earlier runs whose time is over."""
    oldest = time.time() - KEPT_SECONDS
    for other in os.listdir(folder):
        if other == name or not other.endswith((".db", ".tmp")):
            continue
        with contextlib.suppress(OSError):
            if os.stat(other, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
                durable_files.unlink(other, folder)


class CompactHistory(_EtcdStep):
    """Drops the history of all keys up to the present revision.

    etcd refuses every write, so that the API server cannot compact it: that needs a write too.
    """

    def act(self, step, record):
        """Compact, and wait until this node's member has removed the history."""
        revision = self.members.status["revision"]
        if not revision:
            raise EtcdError("the member does not report its revision")
        question = {"revision": str(revision), "physical": True}
        try:
            self.members.client.ask(etcd_client.COMPACTION, question, COMPACTION)
        except EtcdError as error:
            if etcd_client.COMPACTED not in str(error):
                raise
        status = self.members.client.status()
        return (
            f"the history up to revision {revision} is dropped",
            {"revision": revision, "in_use": status["db_size_in_use"]},
        )

    def explain(self, step, error):
        """Return what is known of a compaction that failed."""
        return (
            f"etcd was not compacted, or that is not known ({_sentence(error)}); only history can"
            " be gone, and the next run does it again"
        )


class DefragmentMember(_EtcdStep):
    """Defragments this node's member, which stands still meanwhile.

    The leader gives the leadership to another member first.
    """

    def require(self, step):
        """Require a quorum of the others, and disk space for the new database."""
        super().require(step)
        etcd_guards.require_quorum(self.members, step)
        etcd_guards.require_room(self.members, step)

    def act(self, step, record):
        """Defragment, and wait until the member is in step with the others."""
        before = self.members.status["db_size"]
        if step.change.get("alarm"):
            _wait_quiet(self.members.client)
        moved = self._defragment(step)
        after = _in_step(self.members, step.host)["db_size"]
        moved_text = f"; {moved} leads now" if moved else ""
        return (
            f"the database of {step.host} went from {etcd_guards.mebibytes(before)} to"
            f" {etcd_guards.mebibytes(after)}{moved_text}",
            {"before": before, "after": after, "leader": moved},
        )

    def _defragment(self, step):
        """Defragment, and again where the member ended meanwhile; return who leads instead.

        Up to Kubernetes 1.20 the kubelet restarts each member whose alarm is raised.
        """
        try:
            return self._defragment_once()
        except EtcdError as error:
            if error.refused or not step.change.get("waits"):
                raise
        self.members = etcd_guards.look(step)
        self.require(step)
        return self._defragment_once()

    def _defragment_once(self):
        moved = self._follow()
        self.members.client.ask(etcd_client.DEFRAGMENT, None, DEFRAGMENTATION)
        return moved

    def _follow(self):
        """Give the leadership to another voter where this member leads; return its name."""
        members = self.members
        followers = [member for member in members.voters if member != members.id]
        if members.client.status()["leader"] != members.id or not followers:
            return None
        followers.sort(key=lambda member: -(members.statuses[member]["raft_index"] or 0))
        members.client.ask(etcd_client.TRANSFER, {"targetID": followers[0]})
        end = time.monotonic() + TAKES_OVER
        while members.client.status()["leader"] == members.id:
            if time.monotonic() > end:
                raise EtcdError("no other member takes over the leadership")
            time.sleep(EVERY)
        return members.name(followers[0])

    def explain(self, step, error):
        """Return what a defragmentation that failed left behind."""
        try:
            self.members.client.status()
        except EtcdError:
            return (
                f"the etcd of {step.host} was not defragmented ({_sentence(error)}), and it does"
                " not answer now: wait until it does ($E endpoint status), or look at its log; no"
                " other member was touched after it"
            )
        return (
            f"the etcd of {step.host} was not defragmented, or that is not known"
            f" ({_sentence(error)}); it answers, and the next run does it again"
        )

    def recover(self, record, context=None, params=None):
        """Wait until the member answers: etcd finishes the work when its client is gone."""
        end = time.monotonic() + BACK
        while True:
            try:
                etcd_client.connect(record["host"])
                return step_record.NOT_DONE, "its member answers; it can be repeated"
            except PreconditionFailed as error:
                if time.monotonic() > end:
                    return step_record.FAILED, str(error)
            time.sleep(EVERY)


def _wait_quiet(client):
    """Wait until two sizes in use are the same: the compaction has removed everything."""
    end = time.monotonic() + QUIET
    former = None
    while time.monotonic() < end:
        used = client.status()["db_size_in_use"]
        if used is None or used == former:
            return
        former = used
        time.sleep(EVERY)


def _in_step(members, host):
    """Wait until this node's member has caught up, and return its status."""
    end = time.monotonic() + BACK
    while True:
        try:
            now = etcd_guards.Members(members.node, members.client)
            gap = etcd_guards.behind(now.statuses)
            if not now.errors and gap is not None and gap <= etcd_guards.IN_STEP:
                return now.status
            reason = (
                "; ".join(now.errors.values())
                or f"it is {counted(gap, 'entry', 'entries')} of its log behind"
            )
        except (EtcdError, PreconditionFailed) as error:
            reason = str(error)
        if time.monotonic() > end:
            raise EtcdError(f"{host} is not in step with the others after {BACK} s: {reason}")
        time.sleep(EVERY)


class TakeBackAlarm(_EtcdStep):
    """Takes the alarm NOSPACE back, where every database is small enough.

    It is verified when no such alarm is left, a write is accepted, and leases are renewed.

    The change of a step is {member_id, members, quotas, prefix, loads_follow}. Where steps follow
    that load renewed certificates, these prove the leases: no API server may serve before.
    """

    def require(self, step):
        """Require that every database is below its limit."""
        try:
            etcd_guards.require_below(self.members, step)
        except PreconditionFailed as error:
            largest = self._largest(step)
            if largest:
                raise PreconditionFailed(f"{error} (most objects: {largest})") from error
            raise

    def _largest(self, step):
        """Return which resources have the most objects, in words."""
        prefix, counts = _prefix(step), []
        for name in etcd_keys.RESOURCES:
            try:
                answer = self.members.client.ask(
                    etcd_client.RANGE, etcd_keys.counting(prefix, name)
                )
            except EtcdError:
                return ""
            counts.append((etcd_keys.count(answer) or 0, name))
        shown = [f"{name} {count}" for count, name in sorted(counts, reverse=True)[:3] if count]
        return ", ".join(shown)

    def act(self, step, record):
        """Take the alarm back, and look at what it comes to."""
        client, prefix = self.members.client, _prefix(step)
        former = _leases(client, prefix)
        for member_id in self.members.full:
            question = {"action": "DEACTIVATE", "memberID": member_id, "alarm": "NOSPACE"}
            client.ask(etcd.ALARMS, question)
        self._require_writes(client)
        if step.change.get("loads_follow"):
            return (
                "no alarm is left, and a write is accepted; leases are renewed once the API servers"
                " have loaded their certificates, which is done next",
                {},
            )
        renewed, whole = _renewed(client, prefix, former)
        if whole and not renewed:
            raise EtcdError(
                f"etcd accepts writes, and none of {counted(whole, 'lease')} was renewed within"
                f" {RENEWED} s: look at the API servers (KM525, KM114) and kubelets"
            )
        observation = {"renewed": renewed, "leases": whole}
        if not whole:
            self._require_objects(client, prefix)
            return (
                "no alarm is left, and a write is accepted; etcd has no lease of a node or a leader"
                f" below {etcd_keys.api_prefix(prefix)}/leases, so that no renewal could be seen",
                observation,
            )
        return (
            f"no alarm is left, a write is accepted, and {renewed} of {counted(whole, 'lease')}"
            " renewed",
            observation,
        )

    @staticmethod
    def _require_objects(client, prefix):
        """Require that the API servers keep their objects below this prefix."""
        question = dict(etcd_keys.resource_bounds(prefix, ""), count_only=True)
        if etcd_keys.count(client.ask(etcd_client.RANGE, question)) == 0:
            raise EtcdError(
                f"it accepts writes, and has nothing below {etcd_keys.api_prefix(prefix)}, so that"
                " no lease could be looked at: see where API servers keep their objects"
                " (--etcd-prefix), and whether Nodes are Ready (kubectl get nodes)"
            )

    @staticmethod
    def _require_writes(client):
        """Require that no alarm NOSPACE is left, and that etcd grants a lease of its own."""
        if any(alarm["alarm"] == etcd_guards.NOSPACE for alarm in client.alarms()):
            raise EtcdError("the alarm was raised again at once")
        lease = client.ask(etcd_client.GRANT, {"TTL": str(TTL), "ID": "0"}).get("ID")
        if not str(lease).isdecimal():
            raise EtcdError("etcd granted no lease")
        client.ask(etcd_client.REVOKE, {"ID": str(lease)})

    def explain(self, step, error):
        """Return what an alarm that could not be taken back means."""
        return f"etcd is not as it should be after its alarm was taken back: {_sentence(error)}"

    def recover(self, record, context=None, params=None):
        """Return whether the alarm is gone."""
        try:
            _node, client = etcd_client.connect(record["host"])
            full = [alarm for alarm in client.alarms() if alarm["alarm"] == etcd_guards.NOSPACE]
        except (PreconditionFailed, EtcdError) as error:
            return None, f"whether the alarm NOSPACE is gone is not known ({_sentence(error)})"
        if full:
            return step_record.NOT_DONE, "the alarm NOSPACE is still raised"
        return step_record.PROVEN, "the alarm NOSPACE is gone"


def _prefix(step):
    """Return below which key the API servers keep their objects."""
    return step.change.get("prefix") or etcd_keys.PREFIX


def _leases(client, prefix):
    """Return {key: revision of its last change} of the leases of nodes and leaders."""
    question = dict(
        etcd_keys.resource_bounds(prefix, "leases"), keys_only=True, limit=str(MAX_LEASES)
    )
    listed = client.ask(etcd_client.RANGE, question).get("kvs")
    rows = listed if isinstance(listed, list) else []
    return {row.get("key"): row.get("mod_revision") for row in rows if isinstance(row, dict)}


def _renewed(client, prefix, former):
    """Return (how many of these leases changed, how many there are).

    The first may take as long as an API server needs to start again; the others follow it soon.
    """
    if not former:
        return 0, 0
    end, first = time.monotonic() + RENEWED, True
    while True:
        now = _leases_again(client, prefix, end)
        count = sum(now.get(key) not in (None, revision) for key, revision in former.items())
        if count and first:
            end, first = min(end, time.monotonic() + REST), False
        if count == len(former) or time.monotonic() > end:
            return count, len(former)
        time.sleep(EVERY)


def _leases_again(client, prefix, end):
    """Return the leases; ask again until then where etcd does not answer, as after its alarm."""
    while True:
        try:
            return _leases(client, prefix)
        except EtcdError:
            if time.monotonic() > end:
                raise
        time.sleep(EVERY)


def _sentence(error):
    """Return an error as a clause, with the way out of one of the disk."""
    if isinstance(error, OSError):
        return storage.way_out(error)
    return files.one_line(error, 300)
