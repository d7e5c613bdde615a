# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs stages, two at a time where they bear it, and tells what happens as it happens."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Sequence

from tests.gate import counts, machine, venvs

TAIL = 40
LANES = 2


class Context:
    """What a stage works with: its log, and commands that write there."""

    def __init__(self, name: str, full: bool = False) -> None:
        self.name = name
        self.full = full
        self.log = machine.OUTPUT / (name + ".log")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("", encoding="utf-8")

    def note(self, text: str) -> None:
        with open(self.log, "a", encoding="utf-8") as handle:
            handle.write(text.rstrip() + "\n")

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def run(self, command: Sequence[str | os.PathLike], cwd: pathlib.Path = machine.ROOT, timeout: float = 900,
            env: dict[str, str] | None = None) -> tuple[int, str]:
        """A command in a session of its own, so that its end is the end of all it started."""
        words = [os.fspath(word) for word in command]
        self.note("$ " + " ".join(words))
        with open(self.log, "ab") as handle:
            start = handle.tell()
            with subprocess.Popen(words, cwd=cwd, env=env or machine.environment(), stdin=subprocess.DEVNULL,
                                  stdout=handle, stderr=subprocess.STDOUT, start_new_session=True) as process:
                RUNNING.add(process)
                try:
                    process.wait(timeout)
                except subprocess.TimeoutExpired:
                    self.note("did not end within {0:.0f} seconds".format(timeout))
                finally:
                    end_group(process)
                    RUNNING.discard(process)
        with open(self.log, "rb") as handle:
            handle.seek(start)
            return process.returncode, handle.read().decode("utf-8", "replace")

    def tool(self, environment: str, name: str) -> str:
        """A program out of one of our virtual environments."""
        return str(venvs.ensure(environment) / "bin" / name)


RUNNING: set[subprocess.Popen] = set()


def end_group(process: subprocess.Popen) -> None:
    """Ask first, so that molecule and the lab can take their nodes away."""
    for sign, patience in ((signal.SIGTERM, 60), (signal.SIGKILL, 10)):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, sign)
            process.wait(patience)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


@dataclasses.dataclass(frozen=True)
class Stage:
    """A name for --only, what it does, and whether its timing bears company."""

    name: str
    work: Callable[[Context], counts.Counts]
    alone: bool = False
    nodes: bool = False


class Gate:
    """One run of the gate."""

    def __init__(self, stages: Sequence[Stage], full: bool = False) -> None:
        self.stages = list(stages)
        self.full = full
        self.lines: dict[str, counts.Line] = {}
        self._say = threading.Lock()

    def run(self) -> list[counts.Line]:
        """The stages that share the machine first, then those that want it for themselves."""
        company = [stage for stage in self.stages if not stage.alone]
        lock = threading.Lock()

        def lane() -> None:
            while True:
                with lock:
                    if not company:
                        return
                    stage = company.pop(0)
                self._one(stage)

        lanes = [threading.Thread(target=lane, daemon=True) for _number in range(LANES)]
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
        for stage in self.stages:
            if stage.alone:
                self._one(stage)
        return [self.lines[stage.name] for stage in self.stages]

    def _one(self, stage: Stage) -> None:
        self._print("{0}: begins".format(stage.name))
        begin = time.monotonic()
        context = Context(stage.name, self.full)
        result = self._result(stage, context)
        seconds = time.monotonic() - begin
        self.lines[stage.name] = counts.Line(stage.name, result, seconds)
        state = "FAILED" if result.failed else "done"
        text = "{0}: {1} in {2:.0f} s, {3} passed".format(stage.name, state, seconds, result.passed)
        if result.failed:
            tail = context.text().splitlines()[-TAIL:]
            text += "\n" + "\n".join("  | " + line for line in tail) + "\n  all of it: {0}".format(context.log)
        self._print(text)

    def _result(self, stage: Stage, context: Context) -> counts.Counts:
        reason = machine.why_no_lab() if stage.nodes else None
        if reason:
            # A person may work without the lab; continuous integration must not pass without it.
            return counts.Counts(failed=[reason]) if machine.in_ci() else counts.skipped(reason)
        try:
            return stage.work(context)
        except venvs.Unavailable as problem:
            context.note(str(problem))
            return counts.Counts(failed=[str(problem)])
        except Exception as problem:  # a broken stage is a failed stage, the others still run
            context.note(traceback.format_exc())
            return counts.Counts(failed=["the stage itself broke: {0}: {1}".format(type(problem).__name__, problem)])

    def _print(self, text: str) -> None:
        with self._say:
            print(text, flush=True)
