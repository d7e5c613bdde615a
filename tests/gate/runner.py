# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs stages, two at a time, and prints what happens as it happens."""

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

from tests.gate import counts, gentle, machine, progress, usage, venvs

TAIL = 40
INTERRUPTED = 130  # what a shell says of a command that was interrupted


class Context:
    """What a stage works with: its log, and commands that write there."""

    def __init__(
        self, name: str, full: bool = False, gentle: bool = False, resumed: bool = False
    ) -> None:
        self.name = name
        self.full = full
        self.gentle = gentle
        self.resumed = resumed
        self.log = machine.OUTPUT / (name + ".log")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if not (resumed and self.log.exists()):
            self.log.write_text("", encoding="utf-8")

    def note(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8") as handle:
            handle.write(text.rstrip() + "\n")

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def run(
        self,
        command: Sequence[str | os.PathLike],
        cwd: pathlib.Path = machine.ROOT,
        timeout: float = 900,
        env: dict[str, str] | None = None,
    ) -> tuple[int, str]:
        """Run a command in a session of its own, so that its end is the end of all it started."""
        if STOPPED.is_set():
            return INTERRUPTED, ""
        words = [os.fspath(word) for word in command]
        self.note("$ " + " ".join(words))
        if self.gentle:
            words = gentle.gentle(words)
        with self.log.open("ab") as handle:
            start = handle.tell()
            with subprocess.Popen(
                words,
                cwd=cwd,
                env=env or machine.environment(),
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process:
                RUNNING.add(process)
                try:
                    process.wait(timeout)
                except subprocess.TimeoutExpired:
                    self.note(f"did not end within {timeout:.0f} seconds")
                finally:
                    end_group(process)
                    RUNNING.discard(process)
        with self.log.open("rb") as handle:
            handle.seek(start)
            return process.returncode, handle.read().decode("utf-8", "replace")

    def tool(self, environment: str, name: str) -> str:
        """Name a program of one of the virtual environments."""
        return str(venvs.ensure(environment) / "bin" / name)


RUNNING: set[subprocess.Popen] = set()
# Set when the run is interrupted: no stage begins and no command starts any more.
STOPPED = threading.Event()


def end_group(process: subprocess.Popen) -> None:
    """End a command and all it started; ask first, so that the lab can take its nodes away."""
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
    """A name for --only, and what it does.

    nodes: it needs root and podman. first: these stages run one after the other, from the start of
    the run, and go before the others where both want a CPU: a cluster that starves loses its
    leases. last: it runs when all others ended.
    """

    name: str
    work: Callable[[Context], counts.Counts]
    nodes: bool = False
    first: bool = False
    last: bool = False


class Gate:
    """One run of the gate."""

    def __init__(
        self, stages: Sequence[Stage], full: bool = False, record: progress.Progress | None = None
    ) -> None:
        self.stages = list(stages)
        self.full = full
        self.record = record
        self.lines: dict[str, counts.Line] = dict(record.lines) if record else {}
        self.idle: float | None = None
        self._say = threading.Lock()

    def run(self) -> list[counts.Line]:
        """Run the stages in two lanes; a lane without work of its own helps the other."""
        before = usage.ticks()
        todo = [stage for stage in self.stages if stage.name not in self.lines]
        for stage in self.stages:
            if stage.name in self.lines:
                self._print(f"{stage.name}: passed before this run was interrupted")
        lab = [stage for stage in todo if stage.first]
        others = [stage for stage in todo if not (stage.first or stage.last)]
        lanes = [
            threading.Thread(target=self._lane, args=(queue, helped), daemon=True)
            for queue, helped in ((lab, others), (others, []))
        ]
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
        for stage in todo:
            if stage.last:
                self._one(stage)
        self.idle = usage.idle_share(before, usage.ticks())
        gentle.remove()
        if self.record:
            self.record.end()
        return [self.lines[stage.name] for stage in self.stages]

    def _lane(self, queue: list[Stage], helped: list[Stage]) -> None:
        """Take stages from a queue, then from the other one, until both are empty."""
        for source in (queue, helped):
            while True:
                with self._say:
                    stage = source.pop(0) if source else None
                if stage is None or STOPPED.is_set():
                    break
                self._one(stage)

    def _one(self, stage: Stage) -> None:
        self._print(f"{stage.name}: begins")
        begin = time.monotonic()
        resumed = bool(self.record and self.record.resumed)
        context = Context(
            stage.name, self.full, gentle=not (stage.first or stage.last), resumed=resumed
        )
        result = self._result(stage, context)
        line = counts.Line(stage.name, result, time.monotonic() - begin)
        self.lines[stage.name] = line
        if self.record and not result.failed:
            self.record.passed(line)
        state = "FAILED" if result.failed else "done"
        text = f"{stage.name}: {state} in {line.seconds:.0f} s, {result.passed} passed"
        if result.failed:
            tail = context.text().splitlines()[-TAIL:]
            text += "\n" + "\n".join("  | " + row for row in tail)
            text += f"\n  all of it: {context.log}"
        self._print(text)

    def _result(self, stage: Stage, context: Context) -> counts.Counts:
        reason = machine.why_no_lab() if stage.nodes else None
        if reason:
            # A person may work without the lab; continuous integration must not pass without it.
            if machine.in_ci():
                return counts.Counts(failed=[reason])
            return counts.skipped(reason)
        try:
            return stage.work(context)
        except venvs.Unavailable as problem:
            context.note(str(problem))
            return counts.Counts(failed=[str(problem)])
        except Exception as problem:  # a broken stage is a failed stage, the others still run
            context.note(traceback.format_exc())
            return counts.Counts(
                failed=[f"the stage itself broke: {type(problem).__name__}: {problem}"]
            )

    def _print(self, text: str) -> None:
        with self._say:
            print(text, flush=True)
