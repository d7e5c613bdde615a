# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run the gate: python3 -m tests.gate [--full | --quick] [--only stage,...]."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

from tests.gate import counts, machine, progress, runner, stages, usage


def stop(number: int, _frame: object) -> None:
    """End what the run started at Ctrl-C or a time limit; the next run goes on from here."""
    runner.STOPPED.set()
    for process in list(runner.RUNNING):
        runner.end_group(process)
    print("interrupted: the same command goes on where this run stopped", file=sys.stderr)
    sys.exit(128 + number)


def chosen(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[runner.Stage]:
    """List the stages of this run."""
    if options.only:
        names = options.only.split(",")
        unknown = set(names) - {stage.name for stage in stages.EVERY}
        if unknown:
            parser.error("no such stage: {}".format(", ".join(sorted(unknown))))
        return [stage for stage in stages.EVERY if stage.name in names]
    if options.quick:
        return stages.QUICK
    if options.full and os.environ.get("CASES"):
        # Who picks cases wants those, not everything else once more.
        return [stage for stage in stages.ALL if stage.name in ("lab-build", "lab")]
    return stages.ALL


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.gate", description="Every test of this collection."
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="the whole matrix of the lab, with the components' default timers",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="what to run before a commit: tests without a playbook, lint of changes",
    )
    parser.add_argument(
        "--only", metavar="STAGE,...", help="of: " + ", ".join(stage.name for stage in stages.EVERY)
    )
    options = parser.parse_args()
    todo = chosen(options, parser)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    begin = time.time()
    key = progress.key(options.full, [stage.name for stage in todo])
    gate = runner.Gate(todo, options.full, progress.Progress(key))
    lines = gate.run()
    # Records of stages that this run did not have are an earlier run's.
    records = [path for path in machine.OUTPUT.glob("*.xml") if path.stat().st_mtime >= begin]
    spent = counts.Spent(time.time() - begin, gate.idle, usage.slowest(records), machine.OUTPUT)
    print(counts.summary(lines, spent), flush=True)
    return 1 if counts.total(lines).failed else 0


if __name__ == "__main__":
    sys.exit(main())
