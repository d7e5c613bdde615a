# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the Kubernetes API through a unix socket on which `kubectl proxy` listens.

Status, headers, Retry-After and the causes of a refusal arrive as the API server sent them. Every
wait ends at the deadline, and every answer is bounded.
"""

import gc
import http.client
import json
import re
import socket
import time
import urllib.parse

from ..shared.text import one_line
from .unix_http import Ahead, ApiError, Connection, Deadline

PAGE = 500
MAX_BODY = 64 * 1024 * 1024
MAX_TRIES = 5
JSON = "application/json"
METADATA = "as=PartialObjectMetadata%s;g=meta.k8s.io;v=%s"
ONE = ", ".join([JSON + ";" + METADATA % ("", version) for version in ("v1", "v1beta1")] + [JSON])
# An API server answers with a Status, a load balancer or another proxy with a page.
OF_BALANCERS = (502, 503, 504)
TAG = re.compile(r"<[A-Za-z/!][^<>]{0,300}>")
MERGE = "application/merge-patch+json"
# At the head of a list, before its objects.
CONTINUE = re.compile(rb'[^\[\]]{0,2000}?"continue":\s*"([^"\\]{1,4000})"')
MANAGERS, SPEC = b',"managedFields":[', b']},"spec":'
LIST = ", ".join(
    [JSON + ";" + METADATA % ("List", version) for version in ("v1", "v1beta1")] + [JSON]
)
# A list as kubectl prints it: of each object a few cells. With includeObject=None nothing else.
TABLE = ", ".join(
    [JSON + ";as=Table;g=meta.k8s.io;v=" + version for version in ("v1", "v1beta1")] + [JSON]
)


def dicts(values):
    """Return the objects in a list of an API server, without the values of other types in it.

    The result is empty for a value that is no list.
    """
    return (
        [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
    )


def _rows(table):
    """Return each row of a table as {column: cell}."""
    names = [str(column.get("name")) for column in dicts(table.get("columnDefinitions"))]
    return [
        dict(zip(names, row["cells"]))
        for row in dicts(table.get("rows"))
        if isinstance(row.get("cells"), list)
    ]


def _target(path, query):
    return path + "?" + urllib.parse.urlencode(query) if query else path


def _headers(accept):
    return {"Accept": accept, "User-Agent": "kubemend"}


def _loaded(text):
    """Return the value of a JSON text, parsed without garbage collection.

    A page is some 100,000 objects, none of them garbage. A collection takes as long as parsing.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return json.loads(text)
    finally:
        if collects:
            gc.enable()


def _unmanaged(page):
    """Return a page without managedFields: they are half of a pod, and of the work of parsing it.

    They are the last of an object's metadata and hold no list but themselves, and a quote in a
    text of JSON is always escaped: what SPEC matches first after them is their end. Where
    nothing matches (objects without a spec), they stay.
    """
    kept, at = [], 0
    begin = page.find(MANAGERS)
    while begin >= 0:
        end, following = page.find(SPEC, begin), page.find(MANAGERS, begin + 1)
        if end < 0:
            break
        if following < 0 or end < following:
            kept.append(page[at:begin])
            at = end + 1
        begin = following
    return b"".join([*kept, page[at:]])


def _words(code, body):
    """Return what an answer says that is no Status; of a page its words."""
    text = body[:2000].decode("utf-8", "replace")
    if code in OF_BALANCERS and TAG.search(text):
        return "of a proxy before the API server: " + TAG.sub(" ", text).strip()
    return text


def _objects(page, path, accept):
    """Return the objects of a page of a list, or raise ApiError."""
    if page.get("kind") == "Table" and accept == TABLE:
        objects = _rows(page)
    else:
        objects = page.pop("items", path)
    if objects is None:  # as an API server may have it; an answer without any is no list at all
        return []
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise ApiError("error", f"GET {path}: the answer is no list of objects")
    return objects


class Client:
    """A client over one unix socket.

    It bounds its requests, retries them where that is safe, and reads lists by page.
    """

    # Seconds until a request without a limit of its own has an answer; None: until the deadline.
    # Where it is set, a server that left one request without an answer gets no other one.
    patience = None

    def __init__(self, path, deadline, max_body=MAX_BODY):
        self.path = path
        self.deadline = deadline
        self.max_body = max_body
        self.connection = Connection(path)
        self.ahead = Ahead(path)
        self.requests = 0
        self.clock = None
        self.unanswered = None

    def get(self, path, query=None, accept=JSON, seconds=None, unmanaged=False):
        """Return the object at this path, parsed, or raise ApiError.

        unmanaged: whether to leave out metadata.managedFields, where that is possible.
        """
        deadline = self._deadline(seconds)
        code, headers, body = self._answer(_target(path, query), accept, deadline)
        if code == 200 and query and query.get("limit") == PAGE:
            self._ask_ahead(path, query, body, accept, deadline)
        return self._parse("GET " + path, code, headers, _unmanaged(body) if unmanaged else body)

    def _deadline(self, seconds):
        """Return the deadline of a request of at most so many seconds.

        Without seconds it is that of the client, or its patience.
        """
        if seconds is None:
            seconds = self.patience
        if seconds is None:
            return self.deadline
        return Deadline(seconds, self.deadline)

    def _answer(self, target, accept, deadline):
        """Return (code, headers, body) of a GET, retried as long as the API server asks for it."""
        if self.patience is not None and self.unanswered:
            raise ApiError("timeout", f"not asked: {self.unanswered}")
        for attempt in range(MAX_TRIES):
            code, headers, body = self.ahead.take(target, deadline, self._read) or self._exchange(
                "GET", target, accept, deadline
            )
            if code not in (429, 503) or headers.get("Retry-After") is None:
                break
            if attempt + 1 < MAX_TRIES:
                self._pause(headers["Retry-After"], code, deadline)
        return code, headers, body

    def _ask_ahead(self, path, query, body, accept, deadline):
        """Request the next page of a list, where there is one, before this one is parsed."""
        following = CONTINUE.match(body)
        if following:
            query = dict(query, **{"continue": following.group(1).decode("utf-8", "replace")})
            self.requests += self.ahead.ask(_target(path, query), _headers(accept), deadline)

    def find(self, path):
        """Return the object as get does, but None where there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def send(self, method, path, value, seconds=None, kind=JSON):
        """Send a POST, PUT, PATCH or DELETE once, and return the answer, parsed.

        After an ApiError whose `code` is None or at least 500, it is unknown whether the
        server did it.

        kind: the media type of the value, which for a patch is the kind of the patch.
        """
        # a fresh one: what was kept may be closed on the other side, and a write is not sent twice
        self.connection.close()
        deadline = self._deadline(seconds)
        code, headers, body = self._exchange(
            method, path, JSON, deadline, json.dumps(value).encode("ascii"), kind
        )
        return self._parse(f"{method} {path}", code, headers, body)

    def text(self, method, path, body=None, seconds=None):
        """Return (HTTP code, text in one line) of an endpoint without JSON, requested once.

        It raises ApiError only where no answer came.
        """
        self.connection.close()
        deadline = self._deadline(seconds)
        code, _dummy, answer = self._exchange(method, path, "*/*", deadline, body)
        return code, one_line(answer[:4096].decode("utf-8", "replace"))

    def lines(self, path, seconds):
        """Return (HTTP code or None, [lines that are not empty]) of a log.

        The code is None without an answer. It never raises an ApiError.
        """
        try:
            code, _dummy, answer = self._exchange(
                "GET", path, "*/*", Deadline(seconds, self.deadline)
            )
        except ApiError:
            return None, []
        return code, [
            one_line(line)
            for line in answer.decode("utf-8", "replace").splitlines()
            if line.strip()
        ]

    def watch(self, path, query, seconds):
        """Return every event of a watch that ends by itself after so many seconds."""
        path += "?" + urllib.parse.urlencode(dict(query, watch="1", timeoutSeconds=seconds))
        code, headers, body = self._exchange(
            "GET", path, JSON, Deadline(seconds + 10, self.deadline)
        )
        if code != 200:
            self._parse("GET " + path, code, headers, body)
        return [
            self._parse("GET " + path, code, headers, line)
            for line in body.splitlines()
            if line.strip()
        ]

    def items(self, path, query=None, accept=JSON, restarts=3, unmanaged=False):
        """Yield every object of a list, page by page.

        A list that expired (410) begins again, so that callers key what they keep by UID.

        Where TABLE is accepted, it yields rows by their columns, or objects where the API
        server makes no table of them.
        """
        begun = dict(query or {}, limit=PAGE)
        query = dict(begun)
        try:
            while True:
                try:
                    page = self.get(path, query, accept, unmanaged=unmanaged)
                except ApiError as error:
                    if error.code != 410 or not restarts or "continue" not in query:
                        raise
                    restarts -= 1
                    query = dict(begun)
                    continue
                objects = _objects(page, path, accept)
                yield from objects
                following = (page.get("metadata") or {}).get("continue")
                page = objects = None  # else two pages are held while the next one is parsed
                if not following:
                    return
                query = dict(begun, **{"continue": following})
        finally:
            self.ahead.forget(path)

    def _pause(self, retry_after, code, deadline):
        try:
            seconds = max(0.0, float(retry_after))
        except ValueError:  # the other form, a date, is not sent by API servers
            seconds = 1.0
        if seconds >= deadline.remaining():
            raise ApiError(
                "error",
                f"HTTP {code:d}, try again after {one_line(retry_after, 20)} s: later than the time"
                " limit",
                code,
                retry_after,
            )
        time.sleep(seconds)

    def _exchange(self, method, path, accept, deadline, data=None, kind=JSON):
        """Send one request, and return its whole answer.

        It connects a second time after a broken connection where the request has no body.
        """
        request = "{} {}".format(method, path.split("?")[0])
        headers = _headers(accept)
        if data is not None:
            headers["Content-Type"] = kind
        for attempt in (1, 2):
            self.connection.limit(deadline)
            try:
                self.requests += 1
                asked_at = time.time()
                self.connection.request(method, path, data, headers)
                answer = self._response(request)
                self._dated(answer, asked_at)
                return answer.status, answer.headers, self._read(answer)
            except ApiError:
                self.connection.close()
                raise
            except socket.timeout:
                self.connection.close()
                raise ApiError("timeout", f"{request}: no answer within the time limit") from None
            except (OSError, http.client.HTTPException) as error:
                self.connection.close()
                if attempt == 2 or data is not None:
                    reason = one_line(error) or type(error).__name__
                    raise ApiError("error", f"{request}: {reason}") from error
        raise AssertionError("the second attempt returns or raises")

    def _response(self, request):
        """Return the head of the answer, and keep that there was none within the time limit."""
        try:
            return self.connection.getresponse()
        except (ApiError, socket.timeout):
            self.unanswered = f"{request}: no answer within the time limit"
            raise

    def _dated(self, answer, asked_at):
        """Keep the API server's Date with this host's time before and after it.

        The dates of errors are left out, because the proxy may have made them.
        """
        if 200 <= answer.status < 300 and answer.headers.get("Date"):
            self.clock = {
                "asked_at": asked_at,
                "read_at": time.time(),
                "date": one_line(answer.headers["Date"], 40),
            }

    def _read(self, answer):
        chunks, size = [], 0
        while True:
            chunk = answer.read(65536)
            if not chunk:
                # shorter than Content-Length said; Python < 3.12 does not tell in a sized read
                if answer.length:
                    raise http.client.IncompleteRead(b"", answer.length)
                return b"".join(chunks)
            size += len(chunk)
            if size > self.max_body:
                raise ApiError("error", f"an answer of more than {self.max_body:d} bytes")
            chunks.append(chunk)

    @staticmethod
    def _parse(request, code, headers, body):
        request = request.split("?")[0]
        try:
            value = _loaded(body.decode("utf-8", "replace"))
        except ValueError:
            value = None
        if 200 <= code < 300:
            if not isinstance(value, dict):
                raise ApiError("error", f"{request}: the answer is no JSON object", code)
            return value
        spoken = isinstance(value, dict) and value.get("kind") == "Status"
        message = (value.get("message") or value.get("reason")) if spoken else _words(code, body)
        message = one_line(message)
        if code == 500 and not spoken:  # the proxy itself: it reached no API server
            raise ApiError("error", message or "no API server answered")
        status = {401: "denied", 403: "denied", 404: "absent", 408: "timeout", 504: "timeout"}.get(
            code, "error"
        )
        raise ApiError(
            status,
            f"{request}: HTTP {code:d} {message}",
            code,
            headers.get("Retry-After"),
            value,
        )
