# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every step through the API, with a refused or outdated answer of an API server.

The next run comes to the undisturbed end.
"""

from __future__ import annotations

import contextlib
import copy
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.fault_injection import judged
from tests.fault_injection.clusters import OLD, SCENES
from tests.fault_injection.judged import RUN, Case
from tests.unit.plugins.module_utils.steps import test_api_object_change
from tests.unit.plugins.module_utils.steps.handlers import (
    test_delete_rejected_pods,
)
from tests.unit.support import fake_drain, workload

ALL = {**SCENES, **OLD}


@pytest.fixture
def case(
    request: pytest.FixtureRequest, record_property: Callable[[str, Any], None]
) -> Iterator[Case]:
    made = Case(request.param, ALL[request.param])
    made.undisturbed()
    yield made
    record_property("injected", made.injected)
    made.close()


# --- requests that are refused


def _status(code: int, reason: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
    return (
        code,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": reason,
            "message": "injected",
            "code": code,
        },
        headers,
    )


# A connection that ends before the request is done, or after; and what API servers and what stands
# before them say.
WAYS: dict[str, Any] = {
    "lost": "lose",
    "done and lost": "drop",
    "401": _status(401, "Unauthorized"),
    "403": _status(403, "Forbidden"),
    "404": _status(404, "NotFound"),
    "409": _status(409, "Conflict"),
    "429": _status(429, "TooManyRequests", **{"Retry-After": "1"}),
    "500": "refuse",
    "503": _status(503, "ServiceUnavailable"),
    "504": _status(504, "Timeout"),
    "HTML": (502, b"<html>bad gateway</html>", {}),
}
OFTEN = ("this one", "this and all after it")


def refused(fake: Any, at: int, way: Any, often: str) -> tuple[Callable[[], None], list[str]]:
    """Refuse the request of that number, or all from it on, in that way.

    What ends that, and the requests as they come.
    """
    lock, before, seen = threading.Lock(), fake.before, []

    def wrong(method: str, path: str) -> Any:
        with lock:
            seen.append(f"{method} {path}")
            mine = len(seen) == at or (len(seen) > at and often == OFTEN[1])
        return way if mine else before(method, path)

    fake.before = wrong
    return lambda: setattr(fake, "before", before), seen


@pytest.mark.parametrize("often", OFTEN)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", ALL, indirect=True)
def test_a_request_is_refused(case: Case, way: str, often: str) -> None:
    with case.node() as node:
        healed, seen = refused(node.made.fake, 0, None, OFTEN[0])
        node.run()
        healed()
    for number in judged.drawn(f"{case.name} {way} {often}", list(range(1, len(seen) + 1)), 1):
        with case.node() as node:
            healed, asked = refused(node.made.fake, number, WAYS[way], often)
            ended = node.run()
            healed()
            where = (case.name, way, often, number, seen[number - 1], ended.answer)
            assert not ended.killed, where
            assert isinstance(ended.answer, list), where
            # it came to its end sooner this time: a drain looks until nobody is left
            if len(asked) < number:
                assert case.scene.kinds == ("drain",), where
                assert ended.answer[-1]["state"] == "done", where
                continue
            judged.one_sentence(ended.answer[-1], where)
            judged.ends_as_undisturbed(node, where)


# --- answers from the past


def stale(fake: Any) -> Callable[[], None]:
    """Answer every read from what there is now, whatever is written from now on.

    The function that it returns ends that. Deletions keep to their precondition.
    """
    lock, answer = getattr(fake, "lock", threading.RLock()), fake.answer
    past = {
        name: copy.deepcopy(getattr(fake, name))
        for name in ("objects", "pods_by_uid")
        if hasattr(fake, name)
    }

    def old(method: str, path: str, query: dict[str, str], sent: Any) -> tuple[int, Any]:
        with lock:
            if (
                method == "DELETE"
                and path in fake.objects
                and sent["preconditions"]["uid"] != fake.objects[path]["metadata"].get("uid")
            ):
                return 409, {
                    "kind": "Status",
                    "message": "the UID in the precondition does not match the UID in record",
                }
            if method != "GET" or "watch" in query:
                return answer(method, path, query, sent)  # type: ignore[no-any-return]
            now = {name: getattr(fake, name) for name in past}
            for name, value in past.items():
                setattr(fake, name, copy.deepcopy(value))
            try:
                code, item = answer(method, path, query, sent)
                return code, copy.deepcopy(item)
            finally:
                for name, value in now.items():
                    setattr(fake, name, value)

    fake.answer = old
    return lambda: setattr(fake, "answer", answer)


@pytest.mark.parametrize("case", ALL, indirect=True)
def test_our_own_writes_are_not_seen(case: Case) -> None:
    """The step says what it saw, in one sentence.

    Whatever that was, the next run comes to the end.
    """
    with case.node() as node:
        steps = case.scene.steps(node.made)
        healed = stale(node.made.fake)
        answers = node.work(steps, RUN)
        healed()
        where = (case.name, answers)
        judged.one_sentence(answers[-1], where)
        if case.name.startswith("probe"):
            assert not [path for path in node.made.fake.objects if "/jobs/" in path], where
        judged.ends_as_undisturbed(node, where)


def _theirs(fake: Any) -> Any:
    """Return the objects of others in the API."""
    return json.dumps(
        {
            path: item
            for path, item in fake.objects.items()
            if not path.startswith(fake_drain.NODES) or path.endswith("/w1")
        },
        sort_keys=True,
    )


def _text(fake: Any) -> None:
    item = copy.deepcopy(fake.objects[test_api_object_change.URL])
    item["data"]["ClusterConfiguration"] += "theirs: true\n"
    fake.put(test_api_object_change.URL, item)


def _template(fake: Any) -> None:
    item = copy.deepcopy(fake.objects[workload.PATH])
    item["spec"]["template"]["spec"]["containers"][0]["image"] = "theirs"
    fake.put(workload.PATH, item)


def _made_anew(fake: Any) -> None:
    for name in ("bare", "second", "third"):
        test_delete_rejected_pods.put(fake, name, uid="theirs-" + name)


def _cordoned(fake: Any) -> None:
    item = copy.deepcopy(fake.the_node())
    item["spec"]["unschedulable"] = True
    (item["metadata"].get("annotations") or {}).pop("kubemend.io/cordon", None)
    fake.put(fake_drain.NODES + "w1", item)


MEANWHILE: dict[str, Callable[[Any], None]] = {
    "kubeadm's ConfigMap": _text,
    "workload": _template,
    "rejected pods": _made_anew,
    "drain": _cordoned,
    "uncordon": _cordoned,
}


@pytest.mark.parametrize(
    "name", [name for name in ALL if name.replace(" of 1.14", "") in MEANWHILE]
)
def test_what_somebody_else_wrote_and_we_cannot_see_stays(name: str) -> None:
    with contextlib.closing(Case(name, ALL[name])) as case, case.node() as node:
        fake, steps = node.made.fake, case.scene.steps(node.made)
        healed = stale(fake)
        MEANWHILE[name.replace(" of 1.14", "")](fake)
        theirs = _theirs(fake)
        answers = node.work(steps, RUN)
        healed()
        judged.one_sentence(answers[-1], (name, answers))
        assert answers[-1]["state"] in ("refused", "failed"), (
            name,
            answers,
        )
        assert _theirs(fake) == theirs, (
            name,
            answers,
        )
        if name.startswith("drain"):
            assert fake.evicted() == [], (name, answers)
