# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes files: every file that kubemend changes on a node is changed here, by compare and swap.

Under the node's flock and within the run's lock, a change has these parts: read, compare, write the
intent and the former bytes into the journal, write the new bytes into a temporary dotfile in the
same folder (a kubelet ignores those), compare again, rename, commit. Each part is on the disk
before the next begins. A kill at any moment leaves the file with its former or its new bytes, and
the journal shows the interrupted change.

One gap remains: a tool that does not use this flock and writes in the microseconds between the
second comparison and the rename is overwritten. The kernel offers no rename on condition of
content.
"""

import base64
import contextlib
import os
import re

from ..changes import durable_files, journal_entry, replacement
from ..state import file_target, journal, storage
from ..state.storage import ChangeError

SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class Attributes:
    """The attributes of a new file; without xattrs it gets those of its folder."""

    def __init__(self, mode=0o644, uid=0, gid=0, xattrs=None):
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.xattrs = xattrs


def compare_and_swap(path, expected_sha256, splices, step):
    """Replace bytes of a file that still has the digest of the evidence, and return the result.

    splices: [(start, end, old bytes, new bytes)] of the unmasked bytes.

    The result is {changed, path, real, linked, sha256_before, sha256_after, entry, note}. After a
    ChangeError nothing was changed, unless its `changed` is true.
    """
    demand_digest(path, expected_sha256)
    return _swap(path, expected_sha256, lambda former: splice(path, former, splices), step, "edit")


def replace(path, expected_sha256, data, step):
    """Replace all bytes of a file that is still what evidence said."""
    demand_digest(path, expected_sha256)
    return _swap(path, expected_sha256, lambda former: data, step, "edit")


def create_file(path, data, step, attributes=None, make_folder=False):
    """Create a file where there must be none, and return the result of compare_and_swap().

    make_folder: create its folder with mode 0755, but not the parents of that folder.
    """
    return _swap(
        path, None, lambda former: data, step, "create", attributes or Attributes(), make_folder
    )


def move_out(path, expected_sha256, step):
    """Take a file away; the journal keeps its bytes, owner, mode and attributes."""
    demand_digest(path, expected_sha256)
    return _swap(path, expected_sha256, lambda former: None, step, "remove")


def decode_splices(splices):
    """Return the splices of a plan with their true bytes."""
    return [
        (begin, end, base64.b64decode(old), base64.b64decode(new))
        for begin, end, old, new in splices
    ]


def splice(path, former, splices):
    """Return the bytes with every splice done; refuse one that does not find what it replaces."""
    parts, position = [], 0
    for start, end, old, new in sorted(splices, key=lambda edit: edit[:2]):
        if not (
            isinstance(start, int)
            and isinstance(end, int)
            and position <= start <= end <= len(former)
        ):
            raise ChangeError(
                f"{path} was not changed: the bytes {start} to {end} do not lie in it, or two"
                " changes overlap"
            )
        if former[start:end] != old:
            raise ChangeError(
                f"{path} was not changed: its bytes {int(start)} to {int(end)} are not those"
                f" that were to be replaced;"
                " collect evidence and plan again"
            )
        parts += [former[position:start], new]
        position = end
    return b"".join([*parts, former[position:]])


def demand_digest(path, expected_sha256):
    """Return a change without the digest of what it is based on is none."""
    if not isinstance(expected_sha256, str) or not SHA256.match(expected_sha256):
        raise ChangeError(f"{path} was not changed: the sha256 that it should have is missing")


def _swap(  # noqa: PLR0913, PLR0917 - the parts of one write
    path, expected, edit, step, action, attributes=None, make_folder=False
):
    with step.exclusive() as root_fd:
        place = file_target.Place(path, step.root)
        with _made(place, make_folder and not step.check), storage.change_errors(
            f"{path} was not changed"
        ), _folder(place, make_folder) as folder:
            file = None if folder is None else file_target.look(place, folder)
            former = file.data if file else None
            compare(path, file.sha256 if file else None, expected)
            after = edit(former)
            answer = _answer(place, expected, former, after)
            if answer["changed"]:
                _demand_replaceable(place, file, action)
                demand_ended(place.path, place.real, step.root)
                if not step.check:
                    change = _Swap(place, folder, file, after, attributes or file)
                    answer["entry"] = change.run(step, root_fd, _facts(answer))
            return answer


def _answer(place, expected, former, after):
    """Return what the write answers, while no entry of the journal exists."""
    note = None
    if place.linked:
        note = f"{place.path} is a symbolic link and stays one: {place.real} is what is written"
    return {
        "changed": after != former,
        "path": place.path,
        "real": place.real,
        "linked": place.linked,
        "sha256_before": expected,
        "sha256_after": None if after is None else storage.digest(after),
        "entry": None,
        "note": note,
    }


def _facts(answer):
    """Return what the journal keeps of the answer."""
    return {key: answer[key] for key in ("path", "real", "sha256_before", "sha256_after")}


@contextlib.contextmanager
def _folder(place, may_be_missing):
    """Return a descriptor of the folder; None when it is still to be made (check mode)."""
    try:
        fd = place.opened()
    except FileNotFoundError:
        if not may_be_missing:
            raise
        yield None
        return
    with storage.descriptor(fd):
        yield fd


@contextlib.contextmanager
def _made(place, make_folder):
    """Create the folder where that is wanted and it is missing, for the time of a change.

    The folder is removed again after an error that left no file in it.
    """
    is_new = False
    try:
        if make_folder:
            unmade = storage.change_errors(f"{place.folder} was not made")
            with unmade, contextlib.suppress(FileExistsError):
                os.mkdir(place.folder, 0o755)
                is_new = True
                os.chmod(place.folder, 0o755)
                durable_files.sync_folder(os.path.dirname(place.folder))
        yield
    except ChangeError as error:
        if is_new and not error.changed:
            with contextlib.suppress(OSError):
                os.rmdir(place.folder)
        raise


def compare(path, present, expected):
    """Refuse unless the present digest is the expected one; None means that there is no file."""
    if present == expected:
        return
    if expected is None:
        raise ChangeError(
            f"{path} was not made: there is such a file already; collect evidence and plan again"
        )
    if present is None:
        raise ChangeError(
            f"{path} was not changed: it is gone since evidence was collected; collect evidence and"
            " plan again"
        )
    raise ChangeError(
        f"{path} was not changed: it is no longer what evidence said (sha256 {present}, expected"
        f" {expected}); collect evidence and plan again"
    )


def _demand_replaceable(place, file, action):
    if file and file.status.st_nlink > 1 and action != "remove":
        raise ChangeError(
            f"{place.path} was not changed: it has {int(file.status.st_nlink)} names (hard"
            f" links), and replacing it would part them;"
            f" remove the others (find -inum {int(file.status.st_ino)}) and run again"
        )
    if place.linked and action != "edit":
        raise ChangeError(
            f"{place.path} was not changed: it is a symbolic link to {place.real}; make or remove"
            " it by hand"
        )


def demand_ended(path, real, root):
    """Return what was changed and interrupted is not changed again before that one is ended."""
    for item in journal.open_entries(root):
        if item["intent"] is None or item["intent"]["real"] == real:
            raise ChangeError(
                "{} was not changed: the change {} of run {} was interrupted; let kubemend finish"
                " or undo it first (KM902)".format(path, item["entry"], item["run_id"])
            )


class _Swap:
    """One change, from its intent to its commit."""

    def __init__(self, place, folder, file, after, attributes):
        self.place = place
        self.folder = folder
        self.found = file
        self.after = after
        self.attributes = attributes

    def run(self, step, root_fd, facts):
        """Write the change, and return its entry of the journal."""
        keep = self.attributes
        facts.update(
            size_before=len(self.found.data) if self.found else None,
            mode=f"{keep.mode:04o}",
            uid=keep.uid,
            gid=keep.gid,
            xattrs=journal.packed(keep.xattrs or {}),
            selinux=(keep.xattrs or {})
            .get(replacement.SELINUX, b"")
            .rstrip(b"\0")
            .decode("utf-8", "replace")
            or None,
        )
        with storage.change_errors(
            f"{self.place.path} was not changed, because the journal in {step.root} cannot be"
            " written"
        ):
            entry, record = journal_entry.begin(
                step, root_fd, facts, self.found and self.found.data, self.after
            )
        with entry:
            try:
                self._install(record["temp"])
            except BaseException as error:
                self._undo(entry, record["temp"], error)
                raise
            try:
                self._finish(entry, record["temp"])
            except OSError as error:
                raise ChangeError(
                    f"{self.place.path} holds its new bytes, but that cannot be committed:"
                    f" {storage.way_out(error)} (the journal's entry {entry.name} of run"
                    f" {entry.run_id} stays open)",
                    changed=True,
                ) from error
        return f"{entry.run_id}/{entry.name}"

    def _install(self, temp):
        """Do everything up to and including the one system call that changes the name."""
        if self.after is not None:
            replacement.write_temporary(temp, self.after, self.folder, self.attributes)
        if self.found and not self.found.same(file_target.look(self.place, self.folder)):
            raise ChangeError(
                f"{self.place.path} was not changed: something else changed it at this moment; find"
                " out what, and run again"
            )
        if self.after is None:
            os.unlink(self.place.name, dir_fd=self.folder)
        elif self.found:
            os.rename(temp, self.place.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        else:  # fails when there is one, which rename does not
            os.link(
                temp,
                self.place.name,
                src_dir_fd=self.folder,
                dst_dir_fd=self.folder,
                follow_symlinks=False,
            )

    def _finish(self, entry, temp):
        if not self.found:
            durable_files.unlink(temp, self.folder)
        os.fsync(self.folder)
        entry.commit()

    def _undo(self, entry, temp, error):
        """Remove the temporary file; the change stays open where it cannot be removed."""
        try:
            if temp:
                durable_files.unlink(temp, self.folder)
        except OSError:
            return
        if isinstance(error, (OSError, ChangeError)):
            entry.abandon(storage.one_line(error))
