# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A title within a sentence of the docs keeps the names in it."""

from __future__ import annotations

import pytest

from tests.docs import faults


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("A taint keeps pods away", "a taint keeps pods away"),
        ("CPU manager rejects pods", "CPU manager rejects pods"),
        ("SELinux denies kubelet or runtime", "SELinux denies kubelet or runtime"),
        ("Pods with nodeName ask", "pods with nodeName ask"),
    ],
)
def test_names_stay_as_they_are(text, within):
    assert faults.lowered(text) == within
