# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless chromium, spoken to over its DevTools protocol through a pair of pipes.

The module needs only the standard library.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = "chromium"
# No sandbox: root has none, and the pages are our own. No network service of its own accord: what
# is asked for is then the page's.
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--window-size=1280,900",
)
PATIENCE = 300
# It wants its pipes as descriptors 3 and 4, which ours may be the other way round.
START = (
    "import fcntl, os, sys; pair = [fcntl.fcntl(int(number), fcntl.F_DUPFD_CLOEXEC, 10) for number"
    " in sys.argv[1:3]]; os.dup2(pair[0], 3); os.dup2(pair[1], 4); os.execvp(sys.argv[3],"
    " sys.argv[3:])"
)


class BrowserError(Exception):
    """What the browser said to a command, or that it said nothing."""


def unavailable() -> str | None:
    """Return why there is no browser here, or None."""
    return None if shutil.which(PROGRAM) else f"{PROGRAM} is not installed"


class Browser:
    """One process of Chromium with one page.

    events: everything that it sent unasked, as (method, params)
    """

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back = process, to, back
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[tuple[str, dict[str, Any]]] = []

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        number = self._number
        found = self._read(lambda answer: answer.get("id") == number)
        if "error" in found:
            raise BrowserError(f"{method}: {found['error'].get('message')}")
        return found.get("result", {})

    def _read(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        limit = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self._buffer:
                line, self._buffer = self._buffer.split(b"\0", 1)
                message = json.loads(line)
                if "method" in message:
                    self.events.append((message["method"], message.get("params", {})))
                if wanted(message):
                    return message
            ready = select.select([self._back], [], [], max(0.0, limit - time.monotonic()))[0]
            data = os.read(self._back, 1 << 20) if ready else b""
            if not data:
                raise BrowserError(
                    "the browser ended" if ready else f"no answer within {PATIENCE} seconds"
                )
            self._buffer += data

    def attach(self) -> None:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network", "Security"):
            self.send(domain + ".enable")
        self.send("Performance.enable", timeDomain="threadTicks")

    def open(self, path: Path, script: bool = True) -> None:
        """Load a file and wait until it has been painted."""
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.send("Page.navigate", url=path.as_uri())
        if not any(method == "Page.loadEventFired" for method, dummy in self.events):
            self._read(lambda message: message.get("method") == "Page.loadEventFired")
        if script:
            self.run(
                "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
            )

    def run(self, source: str) -> Any:
        """Return the value of an expression in the page; wait for a promise."""
        found = self.send(
            "Runtime.evaluate", expression=source, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise BrowserError(json.dumps(found["exceptionDetails"])[:1000])
        return found["result"].get("value")

    def worked(self) -> float:
        """Return the processor milliseconds that the page's main thread has used so far."""
        return (
            next(
                one["value"]
                for one in self.send("Performance.getMetrics")["metrics"]
                if one["name"] == "TaskDuration"
            )
            * 1000
        )

    def look(
        self, width: int = 1280, height: int = 900, scheme: str = "light", media: str = ""
    ) -> None:
        """Set the window's size, light or dark, screen or print."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.send(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def key(self, key: str) -> None:
        code = {"Escape": 27, "/": 191, "Tab": 9, "Enter": 13, " ": 32}[key]
        text = {"text": {"Enter": "\r"}.get(key, key)} if key in ("/", "Enter", " ") else {}
        self.send(
            "Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def picture(self, path: Path, whole: bool = False) -> Path:
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)[
            "data"
        ]
        path.write_bytes(base64.b64decode(data))
        return path

    def paper(self, path: Path) -> Path:
        """Return the page as a printer would get it, as PDF."""
        path.write_bytes(
            base64.b64decode(
                self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
            )
        )
        return path

    def complaints(self) -> list[str]:
        """Whatever the page wrote to its console, threw, or had refused by its policy."""
        found = []
        for method, params in self.events:
            if method == "Log.entryAdded":
                found.append(str(params["entry"].get("text")))
            elif method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:500])
            elif method == "Runtime.consoleAPICalled":
                found.append(json.dumps(params.get("args"))[:500])
        return found

    def asked(self) -> list[str]:
        """Return every address that the page asked for, itself included."""
        return [
            params["request"]["url"]
            for method, params in self.events
            if method == "Network.requestWillBeSent"
        ]


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it with all that it started."""
    to_read, to_write = os.pipe()
    back_read, back_write = os.pipe()
    with tempfile.TemporaryDirectory(
        prefix="kubemend-browser-", ignore_cleanup_errors=True
    ) as profile:
        command = [
            sys.executable,
            "-c",
            START,
            str(to_read),
            str(back_write),
            PROGRAM,
            *OPTIONS,
            f"--user-data-dir={profile}",
        ]
        with subprocess.Popen(
            command,
            pass_fds=(to_read, back_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "HOME": profile},
        ) as process:
            os.close(to_read)
            os.close(back_write)
            try:
                page = Browser(process, to_write, back_read)
                page.attach()
                yield page
            finally:
                os.close(to_write)  # it ends when nobody can speak to it any more
                os.close(back_read)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, 9)
