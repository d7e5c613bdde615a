# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that replaces another has its mode and its owner."""

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import replacement
from ansible_collections.kubemend.remediation.plugins.module_utils.state import file_target, storage


def found(path: Path, root: Path) -> Any:
    place = file_target.Place(str(path), str(root))
    with storage.descriptor(place.opened()) as folder:
        return file_target.look(place, folder)


def test_the_temporary_file_has_the_mode_and_the_owner(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o640)
    keep = found(tmp_path / "a", tmp_path / "own")
    with storage.descriptor(os.open(str(tmp_path), storage.FOLDER_FLAGS)) as folder:
        replacement.write_temporary(".a.tmp", b"new", folder, keep)
        with pytest.raises(FileExistsError):
            replacement.write_temporary(".a.tmp", b"newer", folder, keep)
    status = (tmp_path / ".a.tmp").stat()
    assert (tmp_path / ".a.tmp").read_bytes() == b"new"
    assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (0o640, keep.uid, keep.gid)
