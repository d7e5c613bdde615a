# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""python3 -m tests.gate [--full] [--only stage,...]"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

from tests.gate import counts, runner, stages


def stop(number: int, _frame: object) -> None:
    """Ctrl-C or a runner's time limit: what we started is ended before we go."""
    for process in list(runner.RUNNING):
        runner.end_group(process)
    print("interrupted", file=sys.stderr)
    sys.exit(128 + number)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.gate", description="Every test of this collection.")
    parser.add_argument("--full", action="store_true", help="the whole matrix of the lab, with the components' default timers")
    parser.add_argument("--only", metavar="STAGE,...", help="of: " + ", ".join(stage.name for stage in stages.ALL))
    options = parser.parse_args()
    chosen = stages.ALL
    if options.only:
        names = options.only.split(",")
        unknown = set(names) - {stage.name for stage in stages.ALL}
        if unknown:
            parser.error("no such stage: {0}".format(", ".join(sorted(unknown))))
        chosen = [stage for stage in stages.ALL if stage.name in names]
    elif options.full and os.environ.get("CASES"):
        # Who picks cases wants those, not everything else once more.
        chosen = [stage for stage in stages.ALL if stage.name in ("lab-build", "lab")]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    begin = time.monotonic()
    lines = runner.Gate(chosen, options.full).run()
    print(counts.summary(lines, time.monotonic() - begin), flush=True)
    return 1 if counts.total(lines).failed else 0


if __name__ == "__main__":
    sys.exit(main())
