# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a stage found: counts, read out of what the tools print, and the summary."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import xml.etree.ElementTree

SANITY_RUNNING = re.compile(
    r"^Running sanity test \"(?P<name>[^\"]+)\"(?: on Python (?P<python>\S+))?", re.MULTILINE
)
SANITY_SKIPPED = re.compile(
    r"^WARNING: Skipping (?P<what>sanity test .*?|.* test .*?)\.?$", re.MULTILINE
)
NO_PYTHON = re.compile(
    r"^sanity test \"(?P<name>[^\"]+)\" on Python (?P<python>\S+) because it could not be found$"
)
SANITY_FAILED = re.compile(
    r"^FATAL: The \d+ sanity test\(s\) listed below \(out of \d+\) failed[^\n]*\n(?P<names>.*)\Z",
    re.MULTILINE | re.DOTALL,
)
NO_TESTS = 5  # what pytest ends with where it ran none
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclasses.dataclass
class Counts:
    """Checks that passed, and by name those that did not run or failed."""

    passed: int = 0
    failed: list[str] = dataclasses.field(default_factory=list)
    skipped: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def check(self, name: str, good: bool) -> bool:
        """Count one check as passed, or as failed under this name."""
        if good:
            self.passed += 1
        else:
            self.failed.append(name)
        return good


def skipped(reason: str) -> Counts:
    return Counts(skipped=[reason])


def from_command(name: str, returncode: int) -> Counts:
    """Count a tool that only succeeds or fails."""
    counts = Counts()
    counts.check(name, returncode == 0)
    return counts


def from_junit(path: pathlib.Path, returncode: int, before: int = 0) -> Counts:
    """Read pytest's record. A run without one, or failed without a failed case, has failed.

    before: tests that passed in an interrupted run, and that this one left out.
    """
    counts = Counts()
    try:
        cases = list(xml.etree.ElementTree.parse(path).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return Counts(failed=[f"no result was written (exit code {returncode})"])
    for case in cases:
        name = "{}::{}".format(case.get("classname", ""), case.get("name", ""))
        skip = case.find("skipped")
        wrong = [found for found in (case.find("failure"), case.find("error")) if found is not None]
        if wrong:
            # whoever reads only the last lines of a long log must learn the reason there
            counts.failed.append(f"{name}: {_reason(wrong[0])}")
        elif skip is not None:
            counts.skipped.append("{}: {}".format(case.get("name", ""), skip.get("message", "")))
        else:
            counts.passed += 1
    counts.passed += before
    if not cases and not before:
        counts.failed.append("no test was found")
    elif not cases and returncode == NO_TESTS:
        pass
    elif returncode and not counts.failed:
        counts.failed.append(f"exit code {returncode} although no test failed")
    return counts


def _reason(wrong: xml.etree.ElementTree.Element) -> str:
    """Return the first line of a failure.

    If an assertion has its own message, what Ansible failed with and what was compared follow it.
    """
    # pytest cuts the attribute after some lines; the text has them all, each behind an E
    lines = [line.strip() for line in (wrong.get("message") or "").splitlines()] or [""]
    lines += [line[1:].strip() for line in (wrong.text or "").splitlines() if line.startswith("E ")]
    told = [
        next((line[:300] for line in lines[1:] if line.startswith(mark)), "")
        for mark in ("fatal: ", "assert ")
    ]
    return " ".join(filter(None, [lines[0], *told]))


def from_sanity(text: str, returncode: int) -> Counts:
    """Count what ansible-test sanity ran (some tests once per Python), skipped, and found wrong."""
    text = ANSI.sub("", text)
    ran = [" ".join(filter(None, match.groups())) for match in SANITY_RUNNING.finditer(text)]
    match = SANITY_FAILED.search(text)
    names = [line.strip() for line in match["names"].splitlines() if line.strip()] if match else []
    if returncode and not names:
        names = [f"ansible-test ended with exit code {returncode}"]
    if not ran and not names:
        names = ["ansible-test ran no sanity test"]
    return Counts(
        passed=max(0, len(ran) - len(names)) if match or not returncode else 0,
        failed=names,
        skipped=_by_python([found["what"] for found in SANITY_SKIPPED.finditer(text)]),
    )


def _by_python(reasons: list[str]) -> list[str]:
    """Join the tests of a missing Python to one line."""
    lines: list[str] = []
    tests: dict[str, list[str]] = {}
    for reason in reasons:
        match = NO_PYTHON.match(reason)
        if match:
            tests.setdefault(match["python"], []).append(match["name"])
        elif reason not in lines:
            lines.append(reason)
    return lines + [
        "no Python {} on this machine ({})".format(python, ", ".join(names))
        for python, names in tests.items()
    ]


@dataclasses.dataclass
class Line:
    """One stage in the summary."""

    name: str
    counts: Counts
    seconds: float


def total(lines: list[Line]) -> Counts:
    result = Counts()
    for line in lines:
        result.add(line.counts)
    return result


@dataclasses.dataclass
class Spent:
    """Where the time of a run went.

    Wall seconds, share of idle CPU, slowest tests, folder of logs.
    """

    seconds: float
    idle: float | None = None
    slowest: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    logs: pathlib.Path | None = None


def summary(lines: list[Line], spent: Spent) -> str:
    """Return what ran, what did not and why, and the times; the last line is for machines."""
    out = [
        "",
        f"{'stage':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>10}",
    ]
    for line in lines:
        counts = line.counts
        out.append(
            f"{line.name:<16}{counts.passed:>8}{len(counts.failed):>8}"
            f"{len(counts.skipped):>9}{line.seconds:>10.1f}"
        )
    if spent.slowest:
        out += ["", "the slowest tests, in seconds"]
        out += [f"{seconds:>8.1f}  {_one_line(name, 120)}" for seconds, name in spent.slowest]
        out.append("")
    for label, key in (("skipped", "skipped"), ("FAILED", "failed")):
        for line in lines:
            out += [f"{label} {line.name}: {_one_line(what)}" for what in getattr(line.counts, key)]
    failed = [line.name for line in lines if line.counts.failed]
    if spent.logs:
        out.append(
            "log of each stage: {}/STAGE.log{}".format(
                spent.logs, "; failed: " + ", ".join(failed) if failed else ""
            )
        )
    out.append(f"all stages took {spent.seconds:.0f} seconds{_idle(spent.idle)}")
    counts = total(lines)
    out.append(
        f"{counts.passed} passed, {len(counts.failed)} failed, {len(counts.skipped)} skipped"
    )
    return "\n".join(out)


def _idle(share: float | None) -> str:
    return "" if share is None else f"; {100 * share:.0f} % of the CPU was idle"


def _one_line(text: str, width: int = 800) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."
