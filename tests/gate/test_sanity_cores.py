# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""On which ansible-core a run of the gate tests the collection."""

from __future__ import annotations

import re

import pytest

from tests.gate import counts, venvs
from tests.gate.stages import sanity


class Context:
    name = "cores-between"

    def __init__(self, full):
        self.full = full


@pytest.fixture
def gate(monkeypatch):
    """Return what makes the stage run with the Pythons of some cores: its counts and its cores."""

    def make(cores, full=False):
        ran = []

        def find_python(name):
            if name.removeprefix("sanity-") not in cores:
                raise venvs.Unavailable("none")
            return "python3"

        def run(_context, core):
            ran.append(core)
            return counts.Counts()

        monkeypatch.setattr(venvs, "find_python", find_python)
        monkeypatch.setattr(sanity, "run", run)
        return sanity.between(Context(full)), ran

    return make


def test_a_commit_draws_one_core_and_the_whole_matrix_has_all(gate):
    found, ran = gate(sanity.BETWEEN)
    assert (len(ran), found.skipped) == (1, [])
    assert gate(sanity.BETWEEN)[1] == ran
    assert gate(sanity.BETWEEN, full=True)[1] == list(sanity.BETWEEN)


@pytest.mark.parametrize("full", [False, True])
def test_a_core_without_its_python_is_named(gate, full):
    found, ran = gate(["2.17"], full)
    assert ran == ["2.17"]
    (text,) = found.skipped
    assert re.findall(r"\d[.]\d+", text) == ["2.18", "2.20"]
    assert gate([], full)[1] == []


def test_every_supported_core_is_one_of_the_stages_and_has_a_python():
    cores = ["2.16", *sanity.NEWEST, *sanity.BETWEEN]
    assert len(set(cores)) == len(cores)
    assert {f"sanity-{core}" for core in cores} == {
        name for name in venvs.PYTHONS if name.startswith("sanity-")
    }
    minors = sorted(int(core.partition(".")[2]) for core in cores)
    assert minors == list(range(minors[0], minors[-1] + 1)), "a core between them is not tested"
