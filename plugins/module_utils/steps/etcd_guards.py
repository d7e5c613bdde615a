# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold of all members of etcd in the moment before one of them is changed.

Each refusal is one sentence that names the obstacle and the way out. Nothing was changed then.
"""

import os
import time

from ..collectors.node import etcd
from ..shared import etcd_releases
from ..shared.consent import SINGLE_CONTROL_PLANE
from ..shared.errors import PreconditionFailed
from ..system import etcd_folder, files
from . import etcd_client
from .etcd_client import OLD, EtcdError

NOSPACE, CORRUPT = "NOSPACE", "CORRUPT"
IN_STEP = 1000  # entries of the log by which members that are in step may differ
LARGEST = 8 * 1024**3  # what etcd advises as the most
ENOUGH = 0.8  # the share of the quota below which the alarm is taken back
RESERVE = 64 * 1024**2
MEBIBYTE = 1024**2
# seconds in which an election ends, or a member starts again; and between two looks
SETTLED, PAUSE = 90, 1.0
NO_LEADER = (
    "a member of etcd knows no leader: nothing is changed without a quorum (KM146); start the"
    " members that are down, then run again"
)


class Unsettled(PreconditionFailed):
    """What an election ends, or the start of a member."""


class Members:
    """All members of etcd as they answered now.

    node: the way to them. id: of this node's member. statuses: of those that answer, by id. errors:
    of the others.
    """

    def __init__(self, node, client):
        self.node = node
        self.client = client
        own_status = client.status()
        if own_status["leader"] == etcd.NO_MEMBER:  # its list of members would need a quorum
            raise Unsettled(NO_LEADER)
        self.id = own_status["member_id"]
        listed = client.members()
        self.cluster_id = listed["cluster_id"]
        self.members = listed["members"]
        self.statuses = {self.id: own_status}
        self.errors = {}
        for member in self.members:
            if member["id"] != self.id:
                self._ask(member)
        self.alarms = client.alarms()

    def _ask(self, member):
        reasons = []
        for url in member["client_urls"]:
            if etcd.is_local(etcd.parsed(url)[1]):
                continue  # of a member elsewhere, such an address is this node's own member
            try:
                status = self.node.client(url).status()
            except (EtcdError, OSError) as error:
                reasons.append(f"{url}: {error}")
                continue
            if status["member_id"] == member["id"]:
                self.statuses[member["id"]] = status
                return
            reasons.append(f"{url} is another member")
        self.errors[member["id"]] = files.one_line("; ".join(reasons) or "it has no address", 200)

    @property
    def status(self):
        """Return the status of this node's member."""
        return self.statuses[self.id]

    @property
    def voters(self):
        """Return the ids of the members that count for the quorum."""
        return [member["id"] for member in self.members if not member["learner"]]

    @property
    def full(self):
        """Return the ids of the members that raised the alarm NOSPACE."""
        return [alarm["member_id"] for alarm in self.alarms if alarm["alarm"] == NOSPACE]

    def name(self, member_id):
        """Return the name of a member, else its id as etcdctl writes it."""
        names = [member["name"] for member in self.members if member["id"] == member_id]
        if names and names[0]:
            return files.one_line(names[0], 80)
        return f"{int(member_id):x}" if str(member_id).isdecimal() else "?"


def look(step):
    """Return the members of etcd, all of which are well; raise PreconditionFailed otherwise.

    A plan may let it wait for members that come back by themselves: after their certificates were
    renewed they elect a leader first, and up to Kubernetes 1.20 the kubelet restarts each one whose
    alarm is raised.
    """
    end = time.monotonic()
    if step.change.get("waits"):
        end += SETTLED
    while True:
        try:
            return _well(step)
        except Unsettled:
            if time.monotonic() >= end:
                raise
        time.sleep(PAUSE)


def _well(step):
    members = read(step)
    for require in (
        _require_same,
        _require_all,
        _require_one_cluster,
        _require_leader,
        _require_sound,
        _require_releases,
        _require_in_step,
        _require_size,
    ):
        require(members, step)
    return members


def read(step):
    """Return the members of etcd as they answer now; raise PreconditionFailed without an answer."""
    try:
        node, client = etcd_client.connect(step.host)
    except PreconditionFailed as error:
        raise Unsettled(str(error)) from error
    try:
        return Members(node, client)
    except EtcdError as error:
        raise Unsettled(
            f"the etcd of {step.host} does not answer as it should ({error}): see to KM145 and"
            " KM146 first, then run again"
        ) from error


def _require_same(members, step):
    """Require the members of the plan: another list belongs to another cluster or another day."""
    planned_id, planned = step.change.get("member_id"), step.change.get("members") or []
    if planned_id is not None and members.id != planned_id:
        raise PreconditionFailed(
            f"the etcd of {step.host} is another member than in the evidence ({members.id}, not"
            f" {files.one_line(planned_id, 40)}); {OLD}"
        )
    if planned and sorted(planned) != sorted(str(member["id"]) for member in members.members):
        raise PreconditionFailed(
            f"etcd's list of members has changed since evidence was collected; {OLD}"
        )


def _require_all(members, _step):
    """Require that each member is a voter that answers."""
    for member in members.members:
        name = members.name(member["id"])
        if member["learner"]:
            raise PreconditionFailed(
                f"member {name} is a learner: promote it ($E member promote"
                f" {_hexadecimal(member)}) or remove it first, then run again"
            )
        if not member["name"]:
            raise PreconditionFailed(
                f"member {name} was added and never started: start it, or remove it ($E member"
                f" remove {_hexadecimal(member)}), then run again"
            )
        if member["id"] in members.errors:
            raise Unsettled(
                f"member {name} does not answer ({members.errors[member['id']]}), and no member is"
                " changed before all answer: bring it back first (KM145), then run again"
            )
    if members.id not in [member["id"] for member in members.members]:
        raise PreconditionFailed(
            f"etcd's list of members does not have member {members.id} itself: see KM147 first"
        )


def _hexadecimal(member):
    return f"{int(member['id']):x}" if str(member["id"]).isdecimal() else "ID"


def _require_one_cluster(members, _step):
    for member_id, status in members.statuses.items():
        if status["cluster_id"] != members.cluster_id:
            raise PreconditionFailed(
                f"member {members.name(member_id)} belongs to another cluster of etcd (id"
                f" {status['cluster_id']}, not {members.cluster_id}): find out which one the API"
                " servers use, and see KM147 first"
            )


def _require_leader(members, _step):
    leaders = {status["leader"] for status in members.statuses.values()}
    if etcd.NO_MEMBER in leaders:
        raise Unsettled(NO_LEADER)
    if len(leaders) != 1:
        raise Unsettled(
            "the members of etcd name different leaders, as in an election: run again when they"
            " agree ($E endpoint status --cluster -w table)"
        )


def _require_sound(members, _step):
    """Require that no member has the alarm CORRUPT: its data differ from those of the others."""
    raised = [members.name(row["member_id"]) for row in members.alarms if row["alarm"] == CORRUPT]
    texts = [text for status in members.statuses.values() for text in status["errors"]]
    if raised or any(CORRUPT in text for text in texts):
        raise PreconditionFailed(
            f"etcd raised the alarm CORRUPT (member {', '.join(raised) or 'unknown'}): neither"
            " compact, defragment nor disarm before that member has the data of the others (KM142)"
        )


def _require_releases(members, _step):
    for member_id, status in members.statuses.items():
        refusal = etcd_releases.unsafe(status["version"], members.name(member_id))
        if refusal:
            raise PreconditionFailed(refusal)
    refusal = etcd_releases.mixed(status["version"] for status in members.statuses.values())
    if refusal:
        raise PreconditionFailed(refusal)


def _require_in_step(members, _step):
    """Require that no member lags behind: what applies a snapshot must not be defragmented."""
    gap = behind(members.statuses)
    if gap is None or gap > IN_STEP:
        raise Unsettled(
            f"the members of etcd are {'an unknown number of' if gap is None else gap} entries of"
            f" their log apart, more than {IN_STEP}: run again when the last one has caught up"
        )


def behind(statuses):
    """Return by how many entries of the log the last member is behind; None where unknown."""
    indexes = [status["raft_index"] for status in statuses.values()]
    if None in indexes or not indexes:
        return None
    return max(indexes) - min(indexes)


def _require_size(members, _step):
    for member_id, status in members.statuses.items():
        size = status["db_size"]
        if size is None or size < 0:
            raise PreconditionFailed(
                f"member {members.name(member_id)} does not report the size of its database: free"
                " the space by hand (KM140)"
            )
        if size > LARGEST:
            raise PreconditionFailed(
                f"the database of {members.name(member_id)} has {mebibytes(size)}, more than the"
                " 8 GiB that etcd advises: defragmenting it would take minutes; do it by hand, in a"
                " quiet hour (KM140)"
            )


def require_alarm(members, step):
    """Require that etcd still refuses every write, where the plan says so.

    A member that serves stands still while it is defragmented, which is another risk.
    """
    if step.change.get("alarm") and not members.full:
        raise PreconditionFailed(
            f"the alarm NOSPACE is gone, and etcd accepts writes again: nothing has to be freed"
            f" now; {OLD}"
        )


def require_quorum(members, step):
    """Require that the others have a quorum while this member stands still."""
    voters = members.voters
    if len(voters) - 1 >= len(voters) // 2 + 1 or SINGLE_CONTROL_PLANE in step.allow:
        return
    raise PreconditionFailed(
        f"etcd has no quorum while {step.host} is defragmented, because it has"
        f" {len(voters)} of the members that count: allow it with kubemend_allow:"
        f" [{SINGLE_CONTROL_PLANE}]"
    )


def require_room(members, step, snapshot_folder=None):
    """Require the disk space that a defragmentation needs, and the snapshot in this folder."""
    shown, path = members.node.data_folder
    pid = members.node.process["pid"]
    mount = etcd_folder.mount(shown, files.whole(f"/proc/{pid}/mountinfo") or "")
    if mount["filesystem"] in etcd_folder.REMOTE:
        raise PreconditionFailed(
            f"the data of etcd on {step.host} are on a file server ({mount['filesystem']}), whose"
            " free space is not known: free the space of etcd by hand (KM140)"
        )
    status = members.status
    used = status["db_size_in_use"]
    copy = 2 * (status["db_size"] if used is None else used) + RESERVE
    image = 0
    if snapshot_folder is not None:
        image = status["db_size"] + status["db_size"] // 5 + RESERVE
        if not _same_device(path, snapshot_folder):
            _require_free(snapshot_folder, snapshot_folder, image, step.host, "a snapshot")
            image = 0
    _require_free(path, shown, copy + image, step.host, "a new database")


def _require_free(path, shown, size, host, purpose):
    free = free_bytes(path)
    if free is None or free < size:
        has = "an unknown number of bytes" if free is None else mebibytes(free)
        raise PreconditionFailed(
            f"{shown} of {host} has {has} left, and {purpose} of etcd needs {mebibytes(size)}:"
            " make room there first, then run again"
        )


def free_bytes(path):
    """Return the free bytes of the file system of a path, or of its nearest folder that exists."""
    while True:
        try:
            state = os.statvfs(path)
        except FileNotFoundError:
            parent = os.path.dirname(path)
            if parent == path:
                return None
            path = parent
            continue
        except OSError:
            return None
        return state.f_bavail * state.f_frsize


def _same_device(path, other):
    try:
        return os.stat(path).st_dev == os.stat(_existing(other)).st_dev
    except OSError:
        return True  # then both have to fit


def _existing(path):
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def require_below(members, step):
    """Require that every database is below 80 % of its quota, so that the alarm can go."""
    quotas = step.change.get("quotas") or {}
    for member_id, status in members.statuses.items():
        quota = status["quota"]
        if not quota:
            quota = quotas.get(member_id)
        if quota is None:
            raise PreconditionFailed(
                f"the quota of member {members.name(member_id)} is not known: the alarm stays;"
                " compare its size with --quota-backend-bytes, then $E alarm disarm"
            )
        if quota > 0 and status["db_size"] >= ENOUGH * quota:
            raise PreconditionFailed(_still_full(members, member_id, quota))


def _still_full(members, member_id, quota):
    size = members.statuses[member_id]["db_size"]
    return (
        f"the alarm NOSPACE stays: the database of {members.name(member_id)} still has"
        f" {mebibytes(size)} of {mebibytes(quota)} after it was compacted and defragmented, so that"
        " it would soon be raised again. Delete what fills it, or raise --quota-backend-bytes of"
        " one member after another (8 GiB at most); then run again"
    )


def mebibytes(size):
    """Return a size in words."""
    return f"{size / MEBIBYTE:.1f} MiB"
