# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives that somebody sent.

Ours are read in memory, hostile ones are refused by one sentence, and nothing is written.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    archive,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from tests.unit.support.facts import facts

FIRST = json.dumps({"schema": archive.SCHEMA}).encode()


def document(host="m1", **more):
    return json.dumps(
        {**evidence_document.envelope(host, "unreachable", "no answer"), **more}
    ).encode()


def tar(*members, end=b"", form=tarfile.USTAR_FORMAT):
    """(name, bytes or a TarInfo's fields) as tarfile packs them."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=form) as made:
        for name, data in members:
            info = tarfile.TarInfo(name)
            if isinstance(data, dict):
                for field, value in data.items():
                    setattr(info, field, value)
                data = b""  # noqa: PLW2901 - an entry without data
            else:
                info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return held.getvalue() + end


GOOD = (("bundle.json", FIRST), ("report.json", b"{}"), ("evidence/m1.json", document()))


@pytest.fixture
def path(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in" / "case.tar.gz"


def refused(path, data):
    path.write_bytes(data)
    before = sorted(path.parent.parent.rglob("*"))
    with pytest.raises(evidence_document.EvidenceError) as caught:
        list(evidence_sources.stream([path]))
    assert sorted(path.parent.parent.rglob("*")) == before
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    assert told.endswith(".")
    assert "\n" not in told
    assert told.isprintable()
    return told[len(f"{path}: ") :]


def test_what_packed_wrote_is_read(path):
    with Path(path).open("wb") as file:
        archive.packed(GOOD, file)
    assert [one["host"] for one in evidence_sources.stream([path])] == ["m1"]
    assert evidence_sources.finder([path])("m1")["reason"] == "no answer"
    assert evidence_sources.finder([path])("m2") == {}
    first = path.read_bytes()
    with Path(path).open("wb") as file:
        archive.packed(GOOD, file)
    assert path.read_bytes() == first


def test_what_tar_packs_again_is_read_too(path):
    path.write_bytes(
        gzip.compress(tar(("evidence/", {"type": tarfile.DIRTYPE}), *GOOD, form=tarfile.GNU_FORMAT))
    )
    assert [one["host"] for one in evidence_sources.stream([path])] == ["m1"]


def test_folders_and_bundles_are_merged(path, tmp_path):
    path.write_bytes(
        gzip.compress(
            tar(
                *GOOD[:2],
                ("evidence/m1.json", document(status="ok")),
                ("evidence/m2.json", document("m2")),
            )
        )
    )
    evidence_document.write(
        evidence_document.envelope("m1", "unreachable", "later, but no answer"), tmp_path / "folder"
    )
    evidence_document.write(evidence_document.envelope("w1", "ok", ""), tmp_path / "folder")
    found = {
        one["host"]: one["status"] for one in evidence_sources.stream([tmp_path / "folder", path])
    }
    assert found == {"m1": "ok", "m2": "unreachable", "w1": "ok"}


def test_names_that_ustar_has_no_room_for(path):
    host = "h" * 63 + "." + "d" * 63 + ".example.com"
    name = archive.member_name(evidence_document.file_name(host))
    assert len(name) <= archive.LONGEST
    with Path(path).open("wb") as file:
        archive.packed(
            [
                *GOOD,
                (name, document(host)),
                (
                    archive.member_name(evidence_document.file_name(host, ".cluster.json")),
                    document(host, kind="cluster"),
                ),
            ],
            file,
        )
    assert [one["host"] for one in evidence_sources.stream([path])] == ["m1", host, host]
    assert evidence_sources.finder([path])(host)["host"] == host


@pytest.mark.parametrize(
    ("members", "stated"),
    [
        (
            (("bundle.json", FIRST), ("evidence/../../x.json", document())),
            ("evidence/../../x.json", "out of"),
        ),
        (
            (("bundle.json", FIRST), ("../x.json", document())),
            ("../x.json", "out of"),
        ),
        (
            (("bundle.json", FIRST), ("/etc/cron.d/x", document())),
            ("/etc/cron.d/x", "absolute"),
        ),
        (
            (
                ("bundle.json", FIRST),
                ("evidence/m1.json", {"type": tarfile.SYMTYPE, "linkname": "/etc/shadow"}),
            ),
            ("evidence/m1.json", "symbolic link"),
        ),
        (
            (
                ("bundle.json", FIRST),
                ("evidence/m1.json", {"type": tarfile.LNKTYPE, "linkname": "bundle.json"}),
            ),
            ("evidence/m1.json", "hard link"),
        ),
        (
            (("bundle.json", FIRST), ("evidence/m1.json", {"type": tarfile.CHRTYPE})),
            ("evidence/m1.json", "device"),
        ),
        (
            (("bundle.json", FIRST), ("evidence/m1.json", {"type": tarfile.BLKTYPE})),
            ("evidence/m1.json", "device"),
        ),
        (
            (("bundle.json", FIRST), ("evidence/m1.json", {"type": tarfile.FIFOTYPE})),
            ("evidence/m1.json", "FIFO"),
        ),
        (
            (("bundle.json", FIRST), ("evidence/sub", {"type": tarfile.DIRTYPE})),
            ("evidence/sub/", "folder"),
        ),
        ((*GOOD, ("evidence/m1.json", document())), ("evidence/m1.json", "twice")),
        ((*GOOD, ("setup.py", b"x")), ("setup.py", "no file of a bundle")),
        ((*GOOD, ("evidence/a/b.json", b"x")), ("evidence/a/b.json", "no file of a bundle")),
        ((*GOOD, ("evidence/.json", b"x")), ("evidence/.json", "no file of a bundle")),
        (
            (*GOOD, ("evidence/a\x1b[31m.json", b"x")),
            (r"evidence/a\x1b[31m.json", "no file of a bundle"),
        ),
        (GOOD[1:], ("bundle.json", "missing")),
        (GOOD[:2], ("no evidence",)),
        ((("bundle.json", b"{"), *GOOD[1:]), ("bundle.json", "no JSON")),
        (
            (("bundle.json", b"[]"), *GOOD[1:]),
            ("'None'", "kubemend.bundle/1"),
        ),
        (
            (("bundle.json", b'{"schema": "kubemend.bundle/2"}'), *GOOD[1:]),
            ("kubemend.bundle/2", "kubemend.bundle/1"),
        ),
        ((*GOOD[:2], ("evidence/m1.json", b"{")), ("evidence/m1.json", "no JSON")),
        ((*GOOD[:2], ("evidence/m1.json", b"[" * 100000)), ("evidence/m1.json", "no JSON")),
        (
            (*GOOD[:2], ("evidence/m1.json", document(schema="kubemend.evidence/2"))),
            ("evidence/m1.json", "kubemend.evidence/2", "kubemend.evidence/1"),
        ),
        (
            (*GOOD[:2], ("evidence/m2.json", document("m1"))),
            ("evidence/m2.json", "another host", "m1"),
        ),
    ],
)
def test_hostile_members(path, members, stated):
    facts(refused(path, gzip.compress(tar(*members))), *stated)


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_extended_headers_are_not_understood(path, form):
    members = (*GOOD, ("evidence/" + "x" * 200 + ".json", document()))
    assert refused(path, gzip.compress(tar(*members, form=form))).endswith(
        "is of a kind that bundles do not have, and only plain files are read."
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b""), {"cut"}),
        (gzip.compress(b"x" * 2048), {"no tar archive", "damaged"}),
        (gzip.compress(tar(*GOOD))[:-40], {"cut", "damaged"}),
        (gzip.compress(tar(*GOOD)[:700]), {"cut"}),
        (gzip.compress(tar(*GOOD)[: 512 * 4]), {"cut"}),
        (gzip.compress(tar(*GOOD, end=b"more")), {"behind its end"}),
        (b"\x1f\x8b" + b"\0" * 100, {"cut", "damaged"}),
    ],
    ids=["nothing", "no tar", "cut gzip", "cut header", "cut member", "more behind", "no gzip"],
)
def test_damaged(path, data, words):
    text = refused(path, data)
    choices = ("cut", "damaged", "no tar archive", "behind its end")
    assert {word for word in choices if word in text} == words


def test_something_else_is_no_bundle(path):
    assert refused(path, b"PK\x03\x04 a zip") == "no JSON, or cut."


def header(name, size):
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.USTAR_FORMAT)


def test_a_member_that_is_too_large_is_not_read(path):
    facts(
        refused(path, gzip.compress(header("evidence/m1.json", archive.MAX_MEMBER + 1))),
        "evidence/m1.json",
        f"{archive.MAX_MEMBER} bytes",
    )


def test_a_size_that_is_none(path):
    head = bytearray(header("evidence/m1.json", 1))
    head[124:136] = b"\x80" + b"\xff" * 11
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + 256 + sum(head[156:]))
    facts(refused(path, gzip.compress(bytes(head))), "no tar archive", "damaged")


def test_bombs(path, monkeypatch):
    monkeypatch.setattr(archive, "FREE", 1024 * 1024)
    monkeypatch.setattr(archive, "CHUNK", 65536)
    zeros = b'"' + b"0" * (600 * 1024)
    many = [(f"evidence/h{number}.json", zeros) for number in range(8)]
    assert "bytes when it is unpacked, which no bundle of its size does." in refused(
        path, gzip.compress(tar(*GOOD[:2], *many))
    )
    assert "bytes when it is unpacked" in refused(
        path, gzip.compress(tar(*GOOD) + bytes(4 * 1024 * 1024))
    )
    monkeypatch.setattr(archive, "MAX_TOTAL", 2 * 1024 * 1024)
    noise = random.Random(1).randbytes(500 * 1024).hex().encode()
    assert "grows to more than 2097152 bytes" in refused(
        path, gzip.compress(tar(*GOOD[:2], *((f"evidence/h{n}.json", noise) for n in range(3))))
    )
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    facts(
        refused(path, gzip.compress(tar(*GOOD, ("evidence/m2.json", document("m2"))))),
        "3 members",
    )


def test_a_fifo_or_a_device_instead_of_a_file_is_not_opened(path):
    os.mkfifo(path)
    with pytest.raises(evidence_document.EvidenceError, match="no such folder or bundle"):
        list(evidence_sources.stream([path]))
    with pytest.raises(evidence_document.EvidenceError, match="no such folder or bundle"):
        list(evidence_sources.stream(["/dev/zero"]))


@settings(max_examples=60)
@given(st.binary(max_size=2000), st.integers(0, 5000))
def test_any_bytes_are_refused_or_read(tmp_path_factory, noise, place):
    good = bytearray(tar(*GOOD))
    good[place : place + len(noise)] = noise
    path = tmp_path_factory.mktemp("noise") / "case.tar.gz"
    for data in (gzip.compress(bytes(good)), b"\x1f\x8b" + noise):
        path.write_bytes(data)
        try:
            list(evidence_sources.stream([path]))
        except evidence_document.EvidenceError as error:
            assert str(error).isprintable()  # noqa: PT017 - it may also be read
