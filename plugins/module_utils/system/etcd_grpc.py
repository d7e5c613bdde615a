# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask etcd by gRPC what changes nothing, and translate its answers to the JSON of its gateway.

The numbers of the fields are those of etcd's rpc.proto, the same from 3.3 to 3.6. As in the
gateway's JSON, a number of 64 bits is text, and what is 0, empty or false is left out.
"""

from binascii import a2b_base64

from . import grpc_call, http_client, json_line, protobuf

PROTOCOL = "h2"  # of ALPN
MAX_ANSWER = 256 * 1024
ALARMS = {0: "NONE", 1: "NOSPACE", 2: "CORRUPT"}
# The codes that etcd answers with.
REASONS = {
    2: "unknown",
    4: "deadline exceeded",
    5: "not found",
    7: "permission denied",
    8: "resource exhausted",
    9: "failed precondition",
    12: "unimplemented",
    13: "internal",
    14: "unavailable",
    16: "unauthenticated",
}
_ALL_BITS, _SIGN = (1 << 64) - 1, 1 << 63
_COUNT_ONLY = b"\x48\x01"  # field 9 of a RangeRequest is true


def members(connection, _question):
    """Return the list of members."""
    return _answer(connection, "etcdserverpb.Cluster/MemberList", member_list)


def status(connection, _question):
    """Return the status of the member that answers."""
    return _answer(connection, "etcdserverpb.Maintenance/Status", member_status)


def alarms(connection, _question):
    """Return the alarms that are raised: an empty AlarmRequest has the action GET."""
    return _answer(connection, "etcdserverpb.Maintenance/Alarm", alarm_list)


def count(connection, question):
    """Return the number of keys of a range; the values are not asked for."""
    try:
        bounds = json_line.loads(question.decode("ascii"))
        key, range_end = a2b_base64(bounds["key"]), a2b_base64(bounds["range_end"])
        message = protobuf.message(1, key) + protobuf.message(2, range_end) + _COUNT_ONLY
    except ValueError as error:
        raise http_client.HttpError("a prefix of keys that is too long") from error
    return _answer(connection, "etcdserverpb.KV/Range", key_count, message)


def member_list(data):
    """Return the JSON of a MemberListResponse; protobuf.Malformed of what is none."""
    rows = protobuf.fields(data)
    return _encode(header=_header(rows), members=_messages(rows, 2, _member))


def member_status(data):
    """Return the JSON of a StatusResponse; protobuf.Malformed of what is none."""
    rows = protobuf.fields(data)
    return _encode(
        header=_header(rows),
        version=protobuf.text(rows, 2),
        dbSize=_signed(rows, 3),
        leader=_unsigned(rows, 4),
        raftIndex=_unsigned(rows, 5),
        raftTerm=_unsigned(rows, 6),
        errors=_texts(rows, 8),
        dbSizeInUse=_signed(rows, 9),
        isLearner=_is_set(rows, 10),
        dbSizeQuota=_signed(rows, 12),
    )


def alarm_list(data):
    """Return the JSON of an AlarmResponse; protobuf.Malformed of what is none."""
    rows = protobuf.fields(data)  # without a header up to 3.4, so that it may be empty
    return _encode(alarms=_messages(rows, 2, _alarm))


def key_count(data):
    """Return the JSON of a RangeResponse without keys; protobuf.Malformed of what is none."""
    rows = protobuf.fields(data)
    return _encode(header=_header(rows), count=_signed(rows, 4))


def _answer(connection, method, reader, message=b""):
    """Return the reply to a call as a reader translates it; HttpError without a reply."""
    try:
        connection.socket.sendall(_request(connection, method, message))
        code, data = grpc_call.reply(connection.socket, connection.end, MAX_ANSWER)
        if code == grpc_call.OK:
            return reader(data)
    except (OSError, ValueError) as error:
        raise http_client.HttpError(http_client.reason(error)) from error
    except protobuf.Malformed as error:
        raise http_client.HttpError(f"{method} has an answer with {error}") from error
    raise _failure(code)


def _request(connection, method, message):
    """Return the bytes of a call on this connection, which has TLS or not."""
    scheme = "http"
    negotiated = getattr(connection.socket, "selected_alpn_protocol", None)
    if negotiated is not None:
        scheme = "https"
        if negotiated() != PROTOCOL:
            raise http_client.HttpError(grpc_call.ODD)
    return grpc_call.request("/" + method, message, MAX_ANSWER, scheme)


def _failure(code):
    """Return the error of a call without a reply."""
    if isinstance(code, int):
        return http_client.Refused(f"gRPC status {code} ({REASONS.get(code, 'of another kind')})")
    if code == grpc_call.SILENT:
        return http_client.HttpError(http_client.TIMED_OUT)
    return http_client.HttpError(code)


def _encode(**answer):
    """Return the answer as JSON; the gateway leaves out what is 0, empty or false."""
    named = {name: value for name, value in answer.items() if value not in (None, "", [], False)}
    return json_line.dumps(named).encode("ascii")


def _header(rows):
    """Return which member of which cluster answers."""
    parts = _parts(rows, 1)
    if not parts:
        raise protobuf.Malformed("no header")
    fields = protobuf.fields(parts[-1])
    ids = {"cluster_id": _unsigned(fields, 1), "member_id": _unsigned(fields, 2)}
    return {name: value for name, value in ids.items() if value is not None}


def _member(fields):
    return {
        "ID": _unsigned(fields, 1),
        "name": protobuf.text(fields, 2),
        "peerURLs": _texts(fields, 3),
        "clientURLs": _texts(fields, 4),
        "isLearner": _is_set(fields, 5),
    }


def _alarm(fields):
    number = protobuf.integer(fields, 2)
    return {"memberID": _unsigned(fields, 1), "alarm": ALARMS.get(number, str(number))}


def _messages(rows, number, reader):
    return [reader(protobuf.fields(part)) for part in _parts(rows, number)]


def _parts(rows, number):
    return [value for value in protobuf.values(rows, number) if isinstance(value, bytes)]


def _texts(rows, number):
    return [part.decode("utf-8", "replace") for part in _parts(rows, number)]


def _is_set(rows, number):
    return protobuf.integer(rows, number) != 0


def _unsigned(rows, number):
    """Return a number as text, None where it is 0 or left out."""
    value = protobuf.integer(rows, number) & _ALL_BITS
    return str(value) if value else None


def _signed(rows, number):
    """Return a number of the type int64, such as a quota of -1, as text."""
    value = protobuf.integer(rows, number) & _ALL_BITS
    if value & _SIGN:
        value -= 1 << 64
    return str(value) if value else None
