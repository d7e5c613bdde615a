# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containerd drops of files of two versions that it merges."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    cri as answers,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import containerd_merge

MAIN, DROP_IN = "/etc/containerd/config.toml", "/etc/containerd/conf.d/99-nvidia.toml"
TWO = "plugins.io.containerd.grpc.v1.cri"
RUNTIME, IMAGES = "plugins.io.containerd.cri.v1.runtime", "plugins.io.containerd.cri.v1.images"
FOLDER = answers.ConfigLine(9, f"{TWO}.registry", "config_path", '"/etc/containerd/certs.d"')
NVIDIA = answers.ConfigLine(12, f"{RUNTIME}.containerd.runtimes.nvidia", "runtime_type", '"r"')


def file(path=MAIN, version=2, lines=(FOLDER,), error=None):
    return answers.ConfigFile(path, version, error, tuple(lines))


def newer(*lines):
    return file(DROP_IN, 3, lines or (NVIDIA,))


def dropped(*files, release="v2.1.6", name="containerd"):
    return containerd_merge.dropped(answers.Cri(name=name, version=release, files=files))


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        (f"{TWO}.registry", "config_path", "/etc/containerd/certs.d"),
        (f"{TWO}.registry.mirrors.docker.io", "endpoint", '["https://mirror.local"]'),
        (TWO, "sandbox_image", '"mirror.local/pause:3.10"'),
        (f"{TWO}.containerd.runtimes.runc.options", "SystemdCgroup", "true"),
        (f"{TWO}.containerd.runtimes.kata", "runtime_type", '"io.containerd.kata.v2"'),
        (f"{TWO}.cni", "bin_dir", '"/usr/lib/cni"'),
    ],
)
def test_what_only_the_file_of_version_2_sets(table, key, value):
    line = answers.ConfigLine(9, table, key, value)
    (row,) = dropped(file(lines=[line]), newer())
    assert (row.path, row.line, row.newer) == (MAIN, line, DROP_IN)
    assert row.place == f"{key} in {MAIN}:9"
    assert DROP_IN in row.reason
    assert row.is_of_registries == (".registry" in table)


@pytest.mark.parametrize(
    ("release", "is_dropped"),
    [
        ("v1.7.28", False),  # it refuses version 3
        ("v2.0.0-rc.1", True),
        ("v2.0.0", True),
        ("2.1.9-0ubuntu1", True),
        ("v2.3.0-rc.1", False),  # it refuses an import of a higher version
        ("v2.3.4", False),
        ("v2.4.0-beta.0", False),
        ("", False),
    ],
)
def test_the_releases_that_merge_before_they_migrate(release, is_dropped):
    assert bool(dropped(file(), newer(), release=release)) is is_dropped


@pytest.mark.parametrize(
    "files",
    [
        [file()],
        [file(), file(DROP_IN, 2, [])],
        [file(), file(DROP_IN, None, [NVIDIA])],
        # the last version counts: all of it is migrated
        [file(MAIN, 3, [NVIDIA]), file(DROP_IN)],
        [file(), newer(), file("/etc/containerd/conf.d/z.toml", 2, [])],
        [file(), newer(), file("/none.toml", None, [], "denied")],
        [file(lines=[answers.ConfigLine(9, f"{TWO}.registry", "config_path", '""')]), newer()],
        [
            file(lines=[answers.ConfigLine(9, f"{TWO}.registry.mirrors.a", "endpoint", "[]")]),
            newer(),
        ],
        [file(lines=[answers.ConfigLine(9, f"{RUNTIME}.cni", "bin_dir", '"/a"')]), newer()],
        # the file of version 3 says how registries are asked
        [file(), newer(answers.ConfigLine(3, f"{IMAGES}.registry", "config_path", '"/c"'))],
        [
            file(lines=[answers.ConfigLine(9, TWO, "sandbox_image", '"a"')]),
            newer(answers.ConfigLine(3, f"{IMAGES}.pinned_images", "sandbox", '"b"')),
        ],
    ],
    ids=range(11),
)
def test_what_is_not_dropped(files):
    assert dropped(*files) == ()


@pytest.mark.parametrize(
    ("release", "folders", "is_dropped"),
    [
        ("v2.1.9", "/etc/containerd/certs.d", True),
        ("v2.2.0", "/etc/containerd/certs.d", False),
        ("v2.2.7", "/etc/containerd/certs.d:/etc/docker/certs.d", False),
        ("v2.2.7", "/etc/containerd/registries", True),
        ("v2.2.7", "/etc/containerd/certs.d:/etc/containerd/registries", True),
    ],
)
def test_what_is_the_default_anyway_is_not_missed(release, folders, is_dropped):
    line = answers.ConfigLine(9, f"{TWO}.registry", "config_path", f'"{folders}"')
    assert bool(dropped(file(lines=[line]), newer(), release=release)) is is_dropped


def test_a_later_file_without_a_version_changes_nothing():
    last = file("/etc/containerd/conf.d/z.toml", None, [])
    (row,) = dropped(file(), newer(), last)
    assert row.newer == DROP_IN
    assert dropped(file(), newer(), name="cri-o") == ()


def test_a_line_is_found_again():
    main = file()
    rows = dropped(main, newer())
    assert containerd_merge.of_line(rows, main, FOLDER) == rows[0]
    assert containerd_merge.of_line(rows, newer(), FOLDER) is None
    assert containerd_merge.of_line((), main, FOLDER) is None


@pytest.mark.parametrize(("is_newer", "count"), [(None, 1), (False, 1), (True, 0)])
def test_files_that_containerd_has_not_read_yet_tell_nothing(is_newer, count):
    line = {"line": 9, "table": FOLDER.table, "key": "config_path", "value": "/a"}
    files = [
        {"path": MAIN, "version": 2, "error": None, "lines": [line]},
        {"path": DROP_IN, "version": 3, "error": None, "lines": []},
    ]
    cri = {"name": "containerd", "version": "v2.1.6", "files": files}
    read = {"path": MAIN, "files": [{"path": DROP_IN, "newer": is_newer}]}
    collectors = {
        "cri": {"status": "ok", "data": cri},
        "next_start": {"status": "ok", "data": {"runtime_files": read}},
    }
    found = containerd_merge.extract({"host": "w1", "collectors": collectors})
    assert len(found) == count


KATA = answers.ConfigLine(20, f"{TWO}.containerd.runtimes.kata", "runtime_type", '"k"')
CGROUP = answers.ConfigLine(22, f"{TWO}.containerd.runtimes.runc.options", "SystemdCgroup", "true")


@pytest.mark.parametrize(
    ("version", "lines", "rows"),
    [
        # version 2: runtimes of both tables are not merged, all else is moved
        (2, [NVIDIA, KATA, FOLDER], [KATA]),
        (2, [NVIDIA, CGROUP], [CGROUP]),
        (2, [KATA, FOLDER], []),
        (2, [NVIDIA, FOLDER], []),
        (2, [answers.ConfigLine(3, f"{IMAGES}.registry", "config_path", '"/c"'), KATA], []),
        # version 3: the former table is not read at all
        (3, [NVIDIA, KATA, FOLDER], [KATA, FOLDER]),
        (3, [KATA], [KATA]),
        (3, [NVIDIA], []),
        (None, [NVIDIA, KATA], []),
        (1, [NVIDIA, KATA], []),
    ],
)
@pytest.mark.parametrize("release", ["v2.0.0", "2.1.6", "v2.3.4"])
def test_a_former_table_in_the_same_file(version, lines, rows, release):
    found = dropped(file(version=version, lines=lines), release=release)
    assert [row.line for row in found] == rows
    for row in found:
        assert (row.is_of_one_file, row.version, row.newer) == (True, version, MAIN)
        assert "io.containerd.grpc.v1.cri" in row.reason


def test_a_runtime_that_both_tables_have_is_not_missed():
    twin = answers.ConfigLine(9, f"{TWO}.containerd.runtimes.nvidia", "runtime_type", '"r"')
    assert dropped(file(lines=[NVIDIA, twin])) == ()
    assert dropped(file(version=3, lines=[NVIDIA, twin])) == ()


@pytest.mark.parametrize(
    ("files", "release", "name"),
    [
        ([file(lines=[NVIDIA, KATA])], "v1.7.28", "containerd"),
        ([file(lines=[NVIDIA, KATA])], "", "containerd"),
        ([file(lines=[NVIDIA, KATA])], "2.1.6", "cri-o"),
        ([file(lines=[NVIDIA, KATA]), file("/x.toml", None, [], "denied")], "2.1.6", "containerd"),
        # files of two versions, of which the last counts
        ([file(version=3, lines=[KATA]), file(DROP_IN, 2, [])], "2.1.6", "containerd"),
        # two files of which containerd 2.3 migrates each
        ([file(lines=[KATA]), file(DROP_IN, 2, [NVIDIA])], "2.3.4", "containerd"),
    ],
    ids=range(6),
)
def test_a_former_table_that_may_be_read(files, release, name):
    assert dropped(*files, release=release, name=name) == ()


def test_the_reason_names_the_tables_and_what_is_read_instead():
    (kept,) = dropped(file(version=3, lines=[KATA]))
    (moved,) = dropped(file(lines=[NVIDIA, KATA]))
    for row in (kept, moved):
        assert '[plugins."io.containerd.grpc.v1.cri"]' in row.reason
    assert "with version = 3" in kept.reason
    assert "[plugins.'io.containerd.cri.v1.runtime']" in moved.reason


@pytest.mark.parametrize(("release", "count"), [("2.2.1", 0), ("2.1.6", 1)])
def test_the_usual_folder_of_hosts_in_one_file_of_version_3(release, count):
    usual = answers.ConfigLine(9, f"{TWO}.registry", "config_path", '"/etc/containerd/certs.d"')
    assert len(dropped(file(version=3, lines=[usual]), release=release)) == count
