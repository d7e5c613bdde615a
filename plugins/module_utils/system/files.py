# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files as evidence, read without blocking on a FIFO or a device, and only up to a limit.

A container's own files are read without leaving its root: in them, a link to / means the
container's root, not the host's.
"""

import errno
import os
import stat

from ..shared.redacted_bytes import masked
from ..shared.redaction_names import suspicious
from ..shared.text import ends, one_line

try:
    from _sha256 import sha256  # hashlib brings OpenSSL: 4 ms
except ImportError:
    try:
        from _sha2 import sha256
    except ImportError:
        from hashlib import sha256

MAX_TEXT = 512 * 1024
MAX_HASHED = 16 * 1024 * 1024
MAX_LINKS = 40
MAX_LINE = 16 * 1024  # characters of a program's line, of which an end is kept
FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
PATH_ONLY = getattr(os, "O_PATH", 0o10000000)
EMPTY = "it is empty"
# characters behind a cut that masking still sees, so that a secret keeps what it is known by
BEYOND = 4096
BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "symlink"))


def reason(error):
    """Return an OSError as the file record has it."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return "denied"
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESRCH):
        return "missing"
    return one_line(error.strerror or error)


def opened(path, root=None):
    """Return a descriptor of the file, inside `root` when that is given."""
    if root is None:
        return os.open(path, FLAGS)
    return _open_in(root, path)


def _open_in(root, path):
    """Open a path as if root were /, link by link.

    Nothing outside root is reached, even if links change meanwhile.
    """
    names = _reversed_names(path)
    stack = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    links = 0
    try:
        while names:
            name = names.pop()
            if name == "..":
                _leave(stack)
                continue
            target = _link_in(stack[-1], name)
            if target is None:
                stack.append(_enter(stack[-1], name, is_last=not names))
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            while target.startswith("/") and len(stack) > 1:
                _leave(stack)
            names += _reversed_names(target)
        if len(stack) > 1:
            return stack.pop()
        return os.dup(stack[-1])
    finally:
        for descriptor in stack:
            os.close(descriptor)


def _reversed_names(path):
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _leave(stack):
    """Change to the parent folder, but not out of the root."""
    if len(stack) > 1:
        os.close(stack.pop())


def _link_in(folder, name):
    """Return the target of a link, or None of what is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return None


def _enter(folder, name, is_last):
    flags = FLAGS
    if not is_last:
        flags = PATH_ONLY | os.O_DIRECTORY
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def content(descriptor, limit):
    """Return up to `limit` bytes of a regular file; raise OSError for any other file."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    chunks, remaining = [], limit
    while remaining > 0:
        chunk = os.read(descriptor, min(remaining, 1048576))
        if not chunk:
            break
        chunks.append(chunk)
        remaining -= len(chunk)
    return b"".join(chunks)


def read(path, limit=MAX_TEXT, root=None):
    """Return the bytes of a file, bounded; OSError when there is none."""
    descriptor = opened(path, root)
    try:
        return content(descriptor, limit)
    finally:
        os.close(descriptor)


def last_lines(path, limit):
    """Return (the last whole lines of a file, whether that is all of it); OSError without one."""
    descriptor = opened(path)
    try:
        size = os.fstat(descriptor).st_size
        if size <= limit:
            return content(descriptor, limit), True
        os.lseek(descriptor, size - limit, os.SEEK_SET)
        return content(descriptor, limit).partition(b"\n")[2], False
    finally:
        os.close(descriptor)


def whole(path, limit=4194304, default=None):
    """Return the text of a file of /proc that is longer than the page that one read returns.

    The default is returned when the file cannot be read.
    """
    try:
        return read(path, limit).decode("utf-8", "backslashreplace")
    except OSError:
        return default


def text(path, limit=MAX_TEXT, default=None):
    """Return a file of /proc, /sys or /etc as text, by one read.

    Of a list that the kernel generates (mounts, tasks) one read returns only the first page; see
    whole(). The default is returned when the file cannot be read.
    """
    try:
        descriptor = os.open(path, FLAGS)
    except OSError:
        return default
    try:
        return os.read(descriptor, limit).decode("utf-8", "backslashreplace")
    except OSError:
        return default
    finally:
        os.close(descriptor)


def names(folder):
    """Return the names in a folder; none where it cannot be listed."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def mtime(path):
    """Return the time of the last write, or None where it cannot be read."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def ctime(path):
    """Return when a file was made, written, moved or given other rights, None if not known."""
    try:
        return os.stat(path).st_ctime
    except OSError:
        return None


def record(path, root=None, limit=MAX_TEXT):
    """Return the evidence of one file; never raises for what the file system says."""
    evidence = {
        "path": path,
        "name": os.path.basename(path),
        "kind": "other",
        "link": None,
        "size": None,
        "mode": None,
        "uid": None,
        "gid": None,
        "mtime": None,
        "sha256": None,
        "text": None,
        "masked": [],
        "truncated": False,
        "binary": False,
        "error": None,
    }
    try:
        if root is None:
            state = os.lstat(path)
            evidence["kind"] = _kind(state)
            if evidence["kind"] == "symlink":
                evidence["link"] = os.readlink(path)
                state = os.stat(path)
            _describe(evidence, state)
            if not stat.S_ISREG(state.st_mode):
                return evidence
        descriptor = opened(path, root)
        try:
            state = os.fstat(descriptor)
            if root is not None:
                evidence["kind"] = _kind(state)
            _describe(evidence, state)
            if stat.S_ISREG(state.st_mode):
                _fill(evidence, descriptor, limit)
        finally:
            os.close(descriptor)
    except OSError as error:
        evidence["error"] = reason(error)
    return evidence


def _kind(state):
    for test, name in KINDS:
        if test(state.st_mode):
            return name
    return "other"


def _describe(evidence, state):
    evidence.update(
        size=state.st_size,
        mode=f"{stat.S_IMODE(state.st_mode):04o}",
        uid=state.st_uid,
        gid=state.st_gid,
        mtime=state.st_mtime,
    )


def _fill(evidence, descriptor, limit):
    data = content(descriptor, MAX_HASHED + 1)
    if len(data) > MAX_HASHED:
        evidence.update(truncated=True, error=f"more than {MAX_HASHED} bytes")
        return
    evidence["size"] = len(data)
    evidence["sha256"] = sha256(data).hexdigest()
    if len(data) > limit:
        evidence["truncated"] = True
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        evidence["binary"] = True
        return
    if b"\0" in data:
        evidence["binary"] = True
        return
    data, spans = masked(data)
    evidence.update(text=data.decode("utf-8", "replace"), masked=spans)


def masked_text(text_of, limit):
    """Return a text that an API object has from a program, masked and then cut.

    An example is the message of a terminated container, which may have lines of its log.
    """
    return masked(str(text_of or "").encode("utf-8", "replace"))[0].decode("utf-8", "replace")[
        :limit
    ]


def masked_line(text_of, limit):
    """Return a text as one line without secrets, which are masked before it is cut."""
    line = one_line(text_of, limit + BEYOND)
    return one_line(masked(line.encode("utf-8", "replace"))[0].decode("utf-8", "replace"), limit)


def masked_ends(text_of, limit):
    """Return a line of a program, masked; of a longer one its beginning and its end."""
    line = one_line(text_of or "", MAX_LINE + BEYOND)
    return ends(one_line(masked_text(line, MAX_LINE + BEYOND), MAX_LINE), limit)


def masked_argv(argv):
    """Return a command line with its secrets masked."""
    if not suspicious(" ".join(argv).encode("utf-8", "surrogateescape")):
        return list(argv)
    from ..shared import redaction

    return redaction.argv(argv)


def certificates(text_of):
    """Return the certificate blocks of a PEM text without the rest; None without any.

    The file may contain the key too.
    """
    blocks, position = [], 0
    while True:
        begin = text_of.find(BEGIN, position)
        if begin >= 0:
            end = text_of.find(END, begin + len(BEGIN))
        else:
            end = -1
        if end < 0:
            return "".join(blocks) or None
        position = end + len(END)
        body = text_of[begin + len(BEGIN) : end]
        if "-----" not in body:
            blocks.append(BEGIN + "\n" + "\n".join(body.split()) + "\n" + END + "\n")


def pem(path, root=None):
    """Return {path, pem, error} of a certificate file."""
    try:
        data = read(path, root=root)
        blocks = certificates(data.decode("utf-8", "replace"))
    except OSError as error:
        return {"path": path, "pem": None, "error": reason(error)}
    error = None
    if not data:
        error = EMPTY
    elif not blocks:
        error = "no certificate in it"
    return {"path": path, "pem": blocks, "error": error}
