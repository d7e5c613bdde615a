# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One text of an API object, changed like a file: compare, journal, swap, read again, commit.

The text is one of a ConfigMap, or the resources of a workload's containers
(workload_resources.text_of). The journal is that of the node that sends the requests. Its entry's
`real` is configmap:<namespace>/<name>#<key> or workload:<path of the object>, and `via` says how
the API was reached, for a recovery or a revert. The API itself does the swap: the request has the
resourceVersion of the object that was read, and the API server refuses it after any write since.
"""

import base64

from ..changes import journal_entry
from ..kubeapi.client import ApiError
from ..shared import workload_resources
from ..state import journal, storage
from ..state.api_target import (  # noqa: F401 # pylint: disable=unused-import
    parts,
    present,
    reached,
    read,
    url_of,
)
from ..state.storage import ChangeError
from . import file_change


def compare_and_swap(change, step, via):
    """Apply the splices of a plan to a text of an API object, and return the result.

    The result is that of file_change.compare_and_swap, with `left`, the digest of the text
    afterwards.
    """
    splices = [
        (begin, end, base64.b64decode(old), base64.b64decode(new))
        for begin, end, old, new in change["splices"]
    ]
    return _swap(
        change["path"],
        change["real"],
        change["sha256"],
        lambda former: file_change.splice(change["path"], former, splices),
        step,
        via,
    )


def give(change, step, via):
    """Set requests and limits of a workload's containers.

    change: {path, real, sha256, resources}; resources as in workload_resources.given().
    """

    def edit(former):
        try:
            return workload_resources.set_quantities(
                former.decode("utf-8"), change["resources"]
            ).encode("utf-8")
        except ValueError as error:
            raise ChangeError(
                "{} was not changed: {}; collect evidence and plan again".format(
                    change["path"], error
                )
            ) from error

    return _swap(change["path"], change["real"], change["sha256"], edit, step, via)


def replace(intent, data, step):
    """Return the whole text, where it still is what an entry of the journal left."""
    return _swap(
        intent["path"],
        intent["real"],
        intent["sha256_after"],
        lambda former: data,
        step,
        intent.get("via") or {},
    )


def _swap(path, real, expected, edit, step, via):
    file_change.demand_digest(path, expected)
    try:
        with reached(via, step.check) as (api, way), step.exclusive() as root_fd:
            item, former = read(api, real)
            file_change.compare(path, None if former is None else storage.digest(former), expected)
            after = edit(former)
            answer = {
                "changed": after != former,
                "path": path,
                "real": real,
                "sha256_before": expected,
                "sha256_after": storage.digest(after),
                "entry": None,
                "left": storage.digest(after),
            }
            if not answer["changed"]:
                return answer
            file_change.demand_ended(path, real, step.root)
            if not step.check:
                facts = {
                    key: answer[key] for key in ("path", "real", "sha256_before", "sha256_after")
                }
                _hold(item, real, path, after)
                answer.update(_write(api, item, former, dict(facts, via=way), step, root_fd))
            return answer
    except ApiError as error:
        raise ChangeError(
            f"{path} was not changed: the API does not answer as it should ({error}); find out why,"
            " and run again"
        ) from error


def _write(api, item, former, facts, step, root_fd):
    """Return the intent, the object with the new text, what it holds then, the commit."""
    path, real = facts["path"], facts["real"]
    with storage.change_errors(
        f"{path} was not changed, because the journal in {step.root} cannot be written"
    ):
        entry = journal_entry.begin(
            step, root_fd, dict(facts, size_before=len(former)), former, None
        )[0]
    with entry:
        open_still = (
            f"the journal's entry {entry.name} of run {entry.run_id} stays open, and the next run"
            " finds out"
        )
        try:
            api.send("PUT", url_of(real), item)
        except ApiError as error:
            if error.code is not None and error.code < 500:
                entry.abandon(str(error))
                raise ChangeError(f"{path} was not changed: {_refused(error)}") from error
            raise ChangeError(
                f"whether {path} was changed is not known ({error}): {open_still}",
                changed=True,
            ) from error
        try:
            content = read(api, real)[1]
            entry.commit()
        except (ApiError, OSError) as error:
            raise ChangeError(
                f"{path} holds its new text, but that cannot be proven or committed"
                f" ({storage.one_line(error)}): {open_still}",
                changed=True,
            ) from error
    return {
        "entry": f"{entry.run_id}/{entry.name}",
        "left": None if content is None else storage.digest(content),
    }


def _refused(error):
    if error.code == 409:
        return "something else changed it at this moment; find out what, and run again"
    return f"the API refused it ({error}); correct that and run again"


def _hold(item, real, path, data):
    """Return the object with the new text."""
    if not real.startswith(journal.WORKLOAD):
        item["data"][parts(real)[2]] = _text(path, data)
        return
    try:
        workload_resources.put(item, _text(path, data))
    except ValueError as error:
        raise ChangeError(f"{path} was not changed: {error}") from error


def _text(path, data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ChangeError(f"{path} was not changed: what it should hold is no UTF-8 text") from None
