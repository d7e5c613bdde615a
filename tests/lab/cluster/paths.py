# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the lab keeps things, and the pins it is built from."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PINS = ROOT / "tests" / "pins"
FILES = ROOT / "tests" / "lab" / "files"
STATE = ROOT / ".lab"

# Two checkouts on one machine (a developer's and a clean clone that runs the gate) must not remove
# each other's nodes.
CHECKOUT = hashlib.sha256(str(ROOT).encode()).hexdigest()[:6]


def cache() -> Path:
    return Path(os.environ.get("KUBEMEND_LAB_CACHE") or Path.home() / ".cache" / "kubemend-lab")


def pins() -> dict:
    values = {}
    for line in (PINS / "lab.env").read_text().splitlines():
        if line and not line.startswith("#"):
            key, _sep, value = line.partition("=")
            values[key] = value
    return values


def go_pin(thing: str) -> Path:
    folder = PINS / "go" / thing
    if not (folder / "go.sum").is_file():
        known = sorted(p.name for p in (PINS / "go").iterdir())
        raise SystemExit(f"lab: nothing is pinned for {thing}; pinned: {', '.join(known)}")
    return folder


def pinned() -> list:
    """Return the Kubernetes versions of which clusters can be built."""
    return _versions("kubernetes-*")


def pinned_components() -> list:
    """Return these, and the versions of which only the components can be built."""
    return sorted([*pinned(), *_versions("components-*")], key=version_tuple)


def _versions(pattern: str) -> list:
    folders = (PINS / "go").glob(pattern)
    return sorted((folder.name.partition("-")[2] for folder in folders), key=version_tuple)


def version_tuple(version: str) -> tuple:
    """Return v1.18.4 as (1, 18, 4)."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    if not match:
        raise SystemExit(f"lab: {version!r} is no Kubernetes version such as v1.36.3")
    return tuple(int(part or 0) for part in match.groups())
