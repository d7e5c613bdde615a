# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods and events as the API has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...decode import named

NOT_COLLECTED = ""  # a text that the kubemend which collected the evidence did not ask for


@dataclass(frozen=True)
class PodLife:
    """The times of a pod."""

    name: str | None = None
    uid: str | None = None
    created: str | None = None
    deleted: str | None = None
    deletion_requested: str | None = None
    phase: str | None = None
    reason: str | None = None
    node: str | None = None
    finished_at: str | None = None


@dataclass(frozen=True)
class OwnedPod(PodLife):
    """A pod with its owner and what it requests."""

    namespace: str | None = None
    message: str | None = None
    started: str | None = None
    owner: str | None = None
    owner_uid: str | None = None
    scheduler: str | None = None
    placed: bool | None = None
    qos: str | None = None
    requests: Mapping[str, int] | None = None
    compute: Mapping[str, int] | None = None
    hash: str | None = None
    rejected_at: str | None = NOT_COLLECTED
    had: Mapping[str, int] | None = None
    wanted: int | None = None


@dataclass(frozen=True)
class Event:
    """One event of the API."""

    reason: str | None = None
    message: str | None = None
    first: str | None = None
    last: str | None = None
    count: int | None = None
    pod: str | None = None


@dataclass(frozen=True)
class Toleration:
    """One toleration of a pod."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    seconds: int | None = named("tolerationSeconds", None)
