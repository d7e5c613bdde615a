# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why systemd does not start a unit, and whether it would start it now.

The module is pure. The facts are those of the collector unit_start; the record is the unit's own
evidence, and old evidence has only that. The controller uses the module, and so does the node
immediately before a start. The types of all values are checked here. Messages are those of systemd
219 (RHEL 7) to 257.
"""

from collections import namedtuple

from .systemd_results import (
    DETAILS,
    FIRST,
    LAST,
    LIMIT,
    NAMELESS,
    REASONS,
    SKIPS,
    STEPS,
    after_kill,
)
from .text import one_line

# what: a clause; cure: what is done about it; now: whether a start now would be refused too;
# past: whether the last attempt was refused by this; line: of the journal; place: (path, line,
# text).
Refusal = namedtuple("Refusal", "what cure now past line place")

RUNS = ("active", "reloading")
DEPENDENCY = ("Dependency failed for", "failed with result 'dependency'")
AGAIN = ("auto-restart", "auto-restart-queued")
GONE = "No such file or directory"
STATES = {
    "missing": "is missing",
    "no_directory": "is not a directory",
    "no_file": "is not a file",
    "not_executable": "is not an executable file",
}
BAD = ("missing", "no_directory", "no_file", "not_executable")
DEPTH, MAX = 4, 6
# In the line of the journal about a check that was not met.
MARKS = {"condition": SKIPS, "assert": ("sserts failed", "ssertion failed")}
# What systemd found at the last start cannot be looked at again without another start.
BY_HAND = ", then start it once by hand (systemctl start %s): no start is planned before"


def refusals(record, facts=None):
    """Return why systemd does not start this unit, the latest refusal first, without an exception.

    record, facts: mappings of evidence; any other value counts as an empty one.
    """
    return _refusals(_mapping(record), _mapping(facts), DEPTH)


def now(record, facts=None):
    """Return the first reason for which systemd would refuse a start now, or None."""
    return next((refusal for refusal in refusals(record, facts) if refusal.now), None)


def past(record, facts=None):
    """Return the first reason for which it refused its last start, or None."""
    return next((refusal for refusal in refusals(record, facts) if refusal.past), None)


def _refusals(record, facts, depth):
    if facts:
        evidence = dict(record, **facts)
    else:
        evidence = record
    if evidence.get("active_state") in RUNS:
        return []
    unit_refusals = _load(evidence) + _checks(evidence) + _needs(evidence, depth) + _paths(evidence)
    if not any(refusal.past and refusal.now for refusal in unit_refusals):
        unit_refusals += _step(evidence) + _result(evidence) + _before(evidence)
    if not any(refusal.past for refusal in unit_refusals):
        unit_refusals += _limit(evidence) + _dependency(evidence)
    return sorted(unit_refusals, key=lambda refusal: (not refusal.past, not refusal.now))[:MAX]


def _mapping(value):
    """Return the value as a dict with the keys that are text."""
    try:
        return {key: value[key] for key in value if isinstance(key, str)}
    except (TypeError, KeyError, IndexError):
        return {}


def _items(value):
    if isinstance(value, (list, tuple)):
        return [_mapping(item) for item in value]
    return []


def _text(value, limit=300):
    if isinstance(value, str):
        return one_line(value, limit)
    return ""


def _number(value):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return None


def _name(evidence):
    """Return the unit's name as a part of a command."""
    name = _text(evidence.get("name"), 100)
    plain = name and all(char.isalnum() or char in "._-@:\\" for char in name)
    if plain:
        return name
    return "UNIT"


def _said(evidence, *words):
    """Return the last line of systemd's own with one of these words; "" for none."""
    lines = evidence.get("said")
    if isinstance(lines, (list, tuple)):
        texts = [_text(entry) for entry in lines]
    else:
        texts = []
    return next((line for line in reversed(texts) if any(word in line for word in words)), "")


def reason(line):
    """Return what a line of systemd's gives as the reason, with the path where it names one."""
    for word in DETAILS:
        if word in line:
            return word + line.partition(word)[2]
    if ": " in line:
        return line.rpartition(": ")[2]
    return ""


def _why(evidence):
    """Return the line with the reason for which its last start failed.

    A line with a path takes precedence.
    """
    return _said(evidence, *DETAILS) or _said(evidence, *REASONS)


def _place(row):
    path, line = row.get("path"), row.get("line")
    if not isinstance(path, str) or not path:
        return None
    if isinstance(line, int) and not isinstance(line, bool):
        number = line
    else:
        number = None
    return _text(path), number


def _where(place):
    """Return the file and line as the end of a sentence, "" where no file is known."""
    if not place:
        return ""
    return " ({}{})".format(place[0], f", line {place[1]:d}" if place[1] else "")


# -- its file -------------------------------------------------------------------------------------


def _load(evidence):
    state, name = evidence.get("load_state"), _name(evidence)
    if state in ("bad-setting", "error"):
        error = _text(evidence.get("load_error"))
        clause = f"systemd cannot load its unit ({state}{_after(': ', error)})"
        cure = f"correct what systemd-analyze verify {name} names, then systemctl daemon-reload"
        return [Refusal(clause, cure, True, True, _said(evidence, "Refusing", ".service:"), None)]
    if evidence.get("manual_start") is False:
        clause = "its unit has RefuseManualStart=yes, so that only another unit can start it"
        return [Refusal(clause, "start the unit that requires it", True, False, "", None)]
    return []


# -- conditions and asserts -----------------------------------------------------------------------


def _checks(evidence):
    """Return at most one refusal by the unit's conditions and one by its asserts."""
    rows = _items(evidence.get("checks"))
    unit_refusals = [
        _unmet(evidence, [row for row in rows if row.get("assert") is kind], kind)
        for kind in (False, True)
    ]
    return [refusal for refusal in unit_refusals if refusal is not None]


def _unmet(evidence, rows, asserts):
    """Return the refusal by its conditions, or by its asserts; None where they are met."""
    word = "assert" if asserts else "condition"
    refused = evidence.get(word + "_result") is False
    failing = _failing(rows, lambda row: _met(row, refused))
    if not failing and (not refused or evidence.get("result") == "exec-condition"):
        return None
    unseen = _unseen(rows) if not failing else []
    is_now = bool(failing or unseen) or _unlisted(evidence, rows)
    failing = failing or _suspects(rows, unseen)
    texts = _listed(failing[:3], _verb(is_now, unseen))
    clause = _unmet_sentence(evidence, asserts, is_now, texts)
    place = next(filter(None, map(_place, failing)), None)
    shown = (*place, _text(failing[0].get("text"))) if place else None
    cure = _cure_of_check(is_now, place)
    return Refusal(clause, cure, is_now, refused, _said(evidence, *MARKS[word]), shown)


def _unseen(rows):
    """Return the checks of which the node cannot see whether they are met."""
    return [row for row in rows if _met(row, True) is None]


def _unlisted(evidence, rows):
    """Return whether no check is known although systemd may have one."""
    # busctl lists all that systemd would check now; without it what it was is not known.
    return not rows and evidence.get("checks_from") != "busctl"


def _suspects(rows, unseen):
    """Return the checks that may have refused its last start, where none is seen to fail."""
    suspects = _failing(rows, lambda row: row.get("last")) or unseen
    if not suspects and len(rows) == 1:
        return rows  # A daemon-reload makes systemd forget which of them it was.
    return suspects


def _cure_of_check(is_now, place):
    if not is_now:
        return "systemd would accept it now"
    return f"make it true, or take the line out{_where(place)} and systemctl daemon-reload"


def _verb(is_now, unseen):
    if unseen:
        return "may not be met"
    if is_now:
        return "is not met"
    return "was not met"


def _unmet_sentence(evidence, asserts, is_now, texts):
    word, article, now, past = "condition", "a", "skips", "skipped"
    if asserts:
        word, article, now, past = "assert", "an", "refuses", "refused"
    texts = texts or f"{article} {word} of it was not met"
    if is_now:
        return f"systemd {now} its start: {texts}"
    at = _text(evidence.get(word + "_at"), 60)
    if at:
        at = f" ({at})"
    return f"systemd {past} its last start{at}: {texts}"


def _met(row, refused):
    """Return whether it is met now; where that cannot be looked at, as systemd found it last."""
    if isinstance(row.get("met"), bool):
        return row["met"]
    if refused:
        return row.get("last")
    return None


def _failing(rows, met):
    """Return the checks that fail together.

    Each check without a trigger must be met, and at least one of those with a trigger.
    """
    plain = [row for row in rows if row.get("trigger") is not True and met(row) is False]
    triggers = [row for row in rows if row.get("trigger") is True]
    none_met = triggers and all(met(row) is False for row in triggers)
    return plain + (triggers if none_met else [])


def _listed(rows, verb):
    return " and ".join(_shown(row, verb) for row in rows)


def _shown(row, verb):
    if row.get("met") is False:
        clause = _text(row.get("seen"))
    else:
        clause = ""
    return "{} {}{}".format(_text(row.get("text")), verb, f" ({clause})" if clause else "")


# -- the units that it needs ----------------------------------------------------------------------


def _needs(evidence, depth):
    if depth == 0:
        return []
    unit_refusals = []
    for need in _items(evidence.get("needs")):
        obstacle = _lacking(need, depth)
        if obstacle:
            unit_refusals.append(_needed(evidence, need, *obstacle))
    return unit_refusals[:2]


def _needed(evidence, need, cause, line):
    setting, name = _text(need.get("how"), 20), _name(need)
    line_of = _said(evidence, *DEPENDENCY)
    never = evidence.get("condition_result") is None and evidence.get("active_state") == "inactive"
    clause = f"systemd does not start it: {setting}={name} {cause}"
    place = _place(need)
    location = _where(place) or " where systemctl cat shows it"
    cure = (
        f"see journalctl -u {name}, and start that first (systemctl start {name}); or take it out"
        f" of {setting}={location}"
    )
    status = _number(need.get("exec_main_status"))
    killed = after_kill(name, _text(need.get("result"), 40), status)
    if killed and need.get("active_state") == "failed":
        cure = f"{killed}; {cure}"
    if place:
        shown = (*place, f"{setting}={name}")
    else:
        shown = None
    return Refusal(clause, cure, True, bool(line_of) or never, line or line_of, shown)


def _lacking(need, depth):
    """Return (why this unit that is needed keeps the other from starting, a line), or None."""
    reason_of_load = _unloaded(need)
    if reason_of_load:
        return reason_of_load, ""
    setting, active = need.get("how"), need.get("active_state")
    if setting == "Requisite":
        return f"is not active ({_text(active, 40)}), and nothing starts it for this", ""
    if setting == "Requires" and need.get("ordered") is not True:
        return None  # without After= the unit starts whatever becomes of the other
    unit_refusals = [refusal for refusal in _refusals(need, {}, depth - 1) if refusal.now]
    if active == "failed" or need.get("sub_state") in AGAIN:
        clause = ": " + unit_refusals[0].what if unit_refusals else _program(need)
        return f"failed ({_ending(need)}){clause}", _last(need)
    return _unstartable(need, unit_refusals)


def _unstartable(need, unit_refusals):
    """Return (why a start of this inactive unit would not help, a line), or None."""
    if need.get("how") == "Requires":  # what a condition skips does not fail
        unit_refusals = [
            refusal for refusal in unit_refusals if not refusal.what.startswith("systemd skips")
        ]
    if unit_refusals:
        return f"would not start either: {unit_refusals[0].what}", unit_refusals[0].line
    if _text(need.get("name")).endswith(".device") and need.get("active_state") == "inactive":
        return "is not there: systemd waits for that device until a time limit", ""
    return None


def _unloaded(need):
    """Return why systemd has not loaded this unit, or None."""
    load = need.get("load_state")
    if load == "not-found":
        return "is not there: no file of such a unit"
    if load == "masked":
        return "is masked"
    if load in ("bad-setting", "error"):
        return "cannot be loaded ({})".format(_text(need.get("load_error")) or load)
    return None


def _ending(need):
    result, status = _text(need.get("result"), 40), _number(need.get("exec_main_status"))
    step = STEPS.get(status)
    if result:
        words = [f"result {result}"]
    else:
        words = []
    if status:
        words.append("status {:d}{}".format(status, "/" + step[0] if step else ""))
    return ", ".join(words) or "nothing is known of its end"


def _program(need):
    """Return a clause about the unit's program that failed, or an empty text."""
    rows = [row for row in _items(need.get("paths")) if _number(row.get("ended"))]
    if not rows:
        return ""
    setting, program = _text(rows[0].get("setting"), 40), _text(rows[0].get("name"))
    return f": its {setting}={program} ended with {rows[0]['ended']:d}"


def _last(need):
    """Return the log line that says most about the unit's last start."""
    return _why(need) or _said(need, "process exited", "Failed with result")


# -- paths, user and group ------------------------------------------------------------------------


def _paths(evidence):
    """Return what its start needs and does not find."""
    unit_refusals = []
    for row in _items(evidence.get("paths")):
        if row.get("state") in BAD:
            unit_refusals.append(_path(evidence, row))
    return unit_refusals[:3]


def _path(evidence, row):
    setting, name = _text(row.get("setting"), 40), _text(row.get("name"))
    wrong = STATES[row["state"]]
    status, place = _failed_with(evidence), _place(row)
    if setting == "WorkingDirectory":
        clause = f"systemd cannot enter the working directory (200/CHDIR): {name} {wrong}"
        cure = f"make the directory {name}, or mount it"
        is_past = status == 200
    elif setting == "EnvironmentFile":
        clause = f"systemd cannot read EnvironmentFile={name}: it {wrong}"
        cure = f"write {name} again, or put a - before it where it may be missing{_where(place)}"
        is_past = evidence.get("result") == "resources"
    elif setting in ("User", "Group"):
        if setting == "User":
            number, step = (217, "USER")
        else:
            number, step = (216, "GROUP")
        clause = f"systemd cannot change to {setting}={name} ({number:d}/{step}): it is missing"
        cure = f"make the {setting.lower()} {name} again, or correct {setting}="
        is_past = status in (216, 217)
    else:
        clause = f"systemd cannot execute the program of {setting}= (203/EXEC): {name} {wrong}"
        cure = f"install {name} again"
        is_past = status == 203
    if place:
        shown = (*place, f"{setting}={name}")
    else:
        shown = None
    return Refusal(
        clause,
        cure,
        True,
        is_past or (_over(evidence) and bool(_said(evidence, name))),
        _why(evidence),
        shown,
    )


def _over(evidence):
    return evidence.get("result") not in (None, "", "success")


def _failed_with(evidence):
    """Return the status of systemd's own with which its last start ended; None else."""
    status = _number(evidence.get("exec_main_status"))
    if status is None or not FIRST <= status <= LAST or not _over(evidence):
        return None
    if status not in STEPS and not _named(evidence, status):
        return None  # the program's own
    return int(status)


# -- how its last start ended ---------------------------------------------------------------------


def _step(evidence):
    """Return the refusal by systemd itself, which ended the process before the program began."""
    status = _failed_with(evidence)
    if status is None:
        return []
    line = _why(evidence)
    name, does, setting = STEPS.get(status, ("", "make one of its steps", ""))
    name = _named(evidence, status) or name
    cause = ""
    if line and not line.endswith("'"):
        cause = reason(line)
    clause = f"systemd cannot {does} ({status:d}{_after('/', name)}){_after(': ', cause)}"
    if setting:
        setting += " in "
    unit = _name(evidence)
    cure = f"see {setting}systemctl cat {unit} and journalctl -u {unit}, and correct it"
    cure += BY_HAND % _name(evidence)
    again = not _well_now(evidence, status, line)
    if not again:
        cure = "systemd would accept it now"
    return [Refusal(clause, cure, again, True, line, None)]


def _after(mark, text):
    """Return the text after a mark, or nothing where there is no text."""
    if text:
        return mark + text
    return ""


def _named(evidence, status):
    """Return the name that systemd's line gives to this status; "" where it has none."""
    line = _said(evidence, f"status={status:d}/")
    name = line.partition(f"status={status:d}/")[2].split(" ")[0]
    if name == NAMELESS:
        return ""
    return name


def _well_now(evidence, status, line):
    """Return whether what ended the last start is seen to be well now."""
    rows = {_text(row.get("setting"), 60): row for row in _items(evidence.get("paths"))}
    if status == 200:
        there = rows.get("WorkingDirectory", {}).get("state") == "ok"
        return there and (not line or GONE in line)
    if status == 203:
        return any(
            _changed_since(evidence, row)
            for key, row in rows.items()
            if key in ("ExecStart", "ExecStartPre")
        )
    if status in (216, 217):
        if status == 217:
            key = "User"
        else:
            key = "Group"
        return rows.get(key, {}).get("state") == "ok" and "No such" in line
    return False


def _changed_since(evidence, row):
    changed, ended = _number(row.get("changed_at")), _number(evidence.get("ended_at"))
    return row.get("state") == "ok" and None not in (changed, ended) and changed > ended


def _before(evidence):
    """Return the refusal by a program of ExecStartPre= that failed.

    The unit's main program was never started then.
    """
    if not _over(evidence) or evidence.get("exec_main_status"):
        return []
    rows = [row for row in _items(evidence.get("paths")) if row.get("setting") == "ExecStartPre"]
    row = next((row for row in rows if _number(row.get("ended"))), None)
    if row is None:
        return []
    clause = (
        f"ExecStartPre={_text(row.get('name'))} ended with status {row['ended']:d}, so that its own"
        " program did not begin"
    )
    cure = f"see journalctl -u {_name(evidence)}, and correct what that program says"
    return [Refusal(clause, cure, False, True, _said(evidence, "ontrol process exited"), None)]


def _dependency(evidence):
    """Return the refusal of a start for a unit that failed then, and that does not fail now."""
    line = _said(evidence, *DEPENDENCY, "Starting ", "Started ")
    if evidence.get("active_state") != "inactive" or not any(word in line for word in DEPENDENCY):
        return []
    name = _name(evidence)
    clause = (
        "systemd did not start it, because a unit that it requires failed at that time; systemd"
        " does not try again by itself when that one works later"
    )
    cure = (
        "journalctl -b -g 'Failed to start|Dependency failed' names the one that failed first: see"
        f" why (journalctl -u), and that it runs now; then systemctl start {name}"
    )
    return [Refusal(clause, cure, False, True, line, None)]


def _limit(evidence):
    """Return the refusal of a unit that ended too often, by the result or the words of systemd."""
    line = _said(evidence, *LIMIT)
    known_by_state = evidence.get("result") in ("start-limit", "start-limit-hit")
    if not line or known_by_state:
        return []
    if not _over(evidence) or evidence.get("active_state") != "failed":
        return []
    return [
        Refusal(
            "systemd's limit of starts is reached (StartLimitBurst=)",
            f"systemctl reset-failed {_name(evidence)}",
            False,
            True,
            line,
            None,
        )
    ]


def _result(evidence):
    """Return the refusal of a start without a process, or one by ExecCondition=."""
    result, name = evidence.get("result"), _name(evidence)
    if result == "exec-condition":
        return [
            Refusal(
                "systemd skips its start: its ExecCondition= said no",
                f"see ExecCondition= in systemctl cat {name}",
                True,
                True,
                _said(evidence, "exec-condition"),
                None,
            )
        ]
    if result != "resources":
        return []
    line = _why(evidence)
    cause = reason(line)
    environment = [
        row for row in _items(evidence.get("paths")) if row.get("setting") == "EnvironmentFile"
    ]
    well = any(_changed_since(evidence, row) for row in environment) and (
        not cause or GONE in cause
    )
    clause = "systemd could not set up its start (result resources{})".format(
        ": " + cause if cause else ""
    )
    cure = f"see journalctl -u {name}: a file of EnvironmentFile=, memory, or a cgroup"
    cure += BY_HAND % name
    if well:
        cure = "systemd would accept it now"
    return [Refusal(clause, cure, not well, True, line, None)]
