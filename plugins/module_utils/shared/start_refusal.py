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

from .systemd_results import DETAILS, FIRST, LAST, LIMIT, REASONS, SKIPS, STEPS
from .text import one_line

# what: a clause; cure: what is done about it; now: whether a start now would be refused too;
# past: whether the last attempt was refused by this; line: of the journal; place: (path, line,
# text).
Refusal = namedtuple("Refusal", "what cure now past line place")

RUNS = ("active", "reloading")
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
    return next((one for one in refusals(record, facts) if one.now), None)


def past(record, facts=None):
    """Return the first reason for which it refused its last start, or None."""
    return next((one for one in refusals(record, facts) if one.past), None)


def _refusals(record, facts, depth):
    if facts:
        known = dict(record, **facts)
    else:
        known = record
    if known.get("active_state") in RUNS:
        return []
    found = _load(known) + _checks(known) + _needs(known, depth) + _paths(known)
    if not any(one.past and one.now for one in found):
        found += _step(known) + _result(known) + _before(known)
    if not any(one.past for one in found):
        found += _limit(known)
    return sorted(found, key=lambda one: (not one.past, not one.now))[:MAX]


def _mapping(value):
    """Return the value as a dict with the keys that are text."""
    try:
        return {key: value[key] for key in value if isinstance(key, str)}
    except (TypeError, KeyError, IndexError):
        return {}


def _items(value):
    if isinstance(value, (list, tuple)):
        return [_mapping(one) for one in value]
    return []


def _text(value, limit=300):
    if isinstance(value, str):
        return one_line(value, limit)
    return ""


def _number(value):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return None


def _name(known):
    """Return the unit's name as a part of a command."""
    name = _text(known.get("name"), 100)
    plain = name and all(char.isalnum() or char in "._-@:\\" for char in name)
    if plain:
        return name
    return "UNIT"


def _said(known, *words):
    """Return the last line of systemd's own with one of these words; "" for none."""
    lines = known.get("said")
    if isinstance(lines, (list, tuple)):
        texts = [_text(one) for one in lines]
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


def _why(known):
    """Return the line with the reason for which its last start failed.

    A line with a path takes precedence.
    """
    return _said(known, *DETAILS) or _said(known, *REASONS)


def _place(one):
    path, line = one.get("path"), one.get("line")
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


def _load(known):
    state, name = known.get("load_state"), _name(known)
    if state in ("bad-setting", "error"):
        error = _text(known.get("load_error"))
        what = f"systemd cannot load its unit ({state}{_after(': ', error)})"
        cure = f"correct what systemd-analyze verify {name} names, then systemctl daemon-reload"
        return [Refusal(what, cure, True, True, _said(known, "Refusing", ".service:"), None)]
    if known.get("manual_start") is False:
        what = "its unit has RefuseManualStart=yes, so that only another unit can start it"
        return [Refusal(what, "start the unit that requires it", True, False, "", None)]
    return []


# -- conditions and asserts -----------------------------------------------------------------------


def _checks(known):
    """Return at most one refusal by the unit's conditions and one by its asserts."""
    rows = _items(known.get("checks"))
    found = [
        _unmet(known, [one for one in rows if one.get("assert") is kind], kind)
        for kind in (False, True)
    ]
    return [one for one in found if one is not None]


def _unmet(known, rows, asserts):
    """Return the refusal by its conditions, or by its asserts; None where they are met."""
    word = "assert" if asserts else "condition"
    refused = known.get(word + "_result") is False
    failing = _failing(rows, lambda row: _met(row, refused))
    if not failing and (not refused or known.get("result") == "exec-condition"):
        return None
    unseen = _unseen(rows) if not failing else []
    is_now = bool(failing or unseen) or _unlisted(known, rows)
    failing = failing or _suspects(rows, unseen)
    texts = _listed(failing[:3], _verb(is_now, unseen))
    what = _unmet_sentence(known, asserts, is_now, texts)
    place = next(filter(None, map(_place, failing)), None)
    shown = (*place, _text(failing[0].get("text"))) if place else None
    cure = _cure_of_check(is_now, place)
    return Refusal(what, cure, is_now, refused, _said(known, *MARKS[word]), shown)


def _unseen(rows):
    """Return the checks of which the node cannot see whether they are met."""
    return [row for row in rows if _met(row, True) is None]


def _unlisted(known, rows):
    """Return whether no check is known although systemd may have one."""
    # busctl lists all that systemd would check now; without it what it was is not known.
    return not rows and known.get("checks_from") != "busctl"


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


def _unmet_sentence(known, asserts, is_now, texts):
    word, article, now, past = "condition", "a", "skips", "skipped"
    if asserts:
        word, article, now, past = "assert", "an", "refuses", "refused"
    texts = texts or f"{article} {word} of it was not met"
    if is_now:
        return f"systemd {now} its start: {texts}"
    at = _text(known.get(word + "_at"), 60)
    if at:
        at = f" ({at})"
    return f"systemd {past} its last start{at}: {texts}"


def _met(one, refused):
    """Return whether it is met now; where that cannot be looked at, as systemd found it last."""
    if isinstance(one.get("met"), bool):
        return one["met"]
    if refused:
        return one.get("last")
    return None


def _failing(rows, met):
    """Return the checks that fail together.

    Each check without a trigger must be met, and at least one of those with a trigger.
    """
    plain = [one for one in rows if one.get("trigger") is not True and met(one) is False]
    triggers = [one for one in rows if one.get("trigger") is True]
    none_met = triggers and all(met(one) is False for one in triggers)
    return plain + (triggers if none_met else [])


def _listed(rows, verb):
    return " and ".join(_shown(row, verb) for row in rows)


def _shown(one, verb):
    if one.get("met") is False:
        seen = _text(one.get("seen"))
    else:
        seen = ""
    return "{} {}{}".format(_text(one.get("text")), verb, f" ({seen})" if seen else "")


# -- the units that it needs ----------------------------------------------------------------------


def _needs(known, depth):
    if depth == 0:
        return []
    found = []
    for one in _items(known.get("needs")):
        obstacle = _lacking(one, depth)
        if obstacle:
            found.append(_needed(known, one, *obstacle))
    return found[:2]


def _needed(known, one, why, line):
    how, name = _text(one.get("how"), 20), _name(one)
    line_of = _said(known, "Dependency failed for", "failed with result 'dependency'")
    never = known.get("condition_result") is None and known.get("active_state") == "inactive"
    what = f"systemd does not start it: {how}={name} {why}"
    place = _place(one)
    where = _where(place) or " where systemctl cat shows it"
    cure = (
        f"see journalctl -u {name}, and start that first (systemctl start {name}); or take it out"
        f" of {how}={where}"
    )
    if place:
        shown = (*place, f"{how}={name}")
    else:
        shown = None
    return Refusal(what, cure, True, bool(line_of) or never, line or line_of, shown)


def _lacking(one, depth):
    """Return (why this unit that is needed keeps the other from starting, a line), or None."""
    reason_of_load = _unloaded(one)
    if reason_of_load:
        return reason_of_load, ""
    how, active = one.get("how"), one.get("active_state")
    if how == "Requisite":
        return f"is not active ({_text(active, 40)}), and nothing starts it for this", ""
    if how == "Requires" and one.get("ordered") is not True:
        return None  # without After= the unit starts whatever becomes of the other
    own = [refusal for refusal in _refusals(one, {}, depth - 1) if refusal.now]
    if active == "failed" or one.get("sub_state") in AGAIN:
        clause = ": " + own[0].what if own else _program(one)
        return f"failed ({_ending(one)}){clause}", _last(one)
    return _unstartable(one, own)


def _unstartable(one, own):
    """Return (why a start of this inactive unit would not help, a line), or None."""
    if one.get("how") == "Requires":  # what a condition skips does not fail
        own = [refusal for refusal in own if not refusal.what.startswith("systemd skips")]
    if own:
        return f"would not start either: {own[0].what}", own[0].line
    if _text(one.get("name")).endswith(".device") and one.get("active_state") == "inactive":
        return "is not there: systemd waits for that device until a time limit", ""
    return None


def _unloaded(one):
    """Return why systemd has not loaded this unit, or None."""
    load = one.get("load_state")
    if load == "not-found":
        return "is not there: no file of such a unit"
    if load == "masked":
        return "is masked"
    if load in ("bad-setting", "error"):
        return "cannot be loaded ({})".format(_text(one.get("load_error")) or load)
    return None


def _ending(one):
    result, status = _text(one.get("result"), 40), _number(one.get("exec_main_status"))
    step = STEPS.get(status)
    if result:
        words = [f"result {result}"]
    else:
        words = []
    if status:
        words.append("status {:d}{}".format(status, "/" + step[0] if step else ""))
    return ", ".join(words) or "nothing is known of its end"


def _program(one):
    """Return a clause about the unit's program that failed, or an empty text."""
    rows = [row for row in _items(one.get("paths")) if _number(row.get("ended"))]
    if not rows:
        return ""
    setting, program = _text(rows[0].get("setting"), 40), _text(rows[0].get("name"))
    return f": its {setting}={program} ended with {rows[0]['ended']:d}"


def _last(one):
    """Return the log line that says most about the unit's last start."""
    return _why(one) or _said(one, "process exited", "Failed with result")


# -- paths, user and group ------------------------------------------------------------------------


def _paths(known):
    """Return what its start needs and does not find."""
    found = []
    for one in _items(known.get("paths")):
        if one.get("state") in BAD:
            found.append(_path(known, one))
    return found[:3]


def _path(known, one):
    setting, name = _text(one.get("setting"), 40), _text(one.get("name"))
    wrong = STATES[one["state"]]
    status, place = _failed_with(known), _place(one)
    if setting == "WorkingDirectory":
        what = f"systemd cannot enter the working directory (200/CHDIR): {name} {wrong}"
        cure = f"make the directory {name}, or mount it"
        mine = status == 200
    elif setting == "EnvironmentFile":
        what = f"systemd cannot read EnvironmentFile={name}: it {wrong}"
        cure = f"write {name} again, or put a - before it where it may be missing{_where(place)}"
        mine = known.get("result") == "resources"
    elif setting in ("User", "Group"):
        if setting == "User":
            number, step = (217, "USER")
        else:
            number, step = (216, "GROUP")
        what = f"systemd cannot change to {setting}={name} ({number:d}/{step}): it is missing"
        cure = f"make the {setting.lower()} {name} again, or correct {setting}="
        mine = status in (216, 217)
    else:
        what = f"systemd cannot execute the program of {setting}= (203/EXEC): {name} {wrong}"
        cure = f"install {name} again"
        mine = status == 203
    if place:
        shown = (*place, f"{setting}={name}")
    else:
        shown = None
    return Refusal(
        what, cure, True, mine or (_over(known) and bool(_said(known, name))), _why(known), shown
    )


def _over(known):
    return known.get("result") not in (None, "", "success")


def _failed_with(known):
    """Return the status of systemd's own with which its last start ended; None else."""
    status = _number(known.get("exec_main_status"))
    if status is None or not FIRST <= status <= LAST or not _over(known):
        return None
    return int(status)


# -- how its last start ended ---------------------------------------------------------------------


def _step(known):
    """Return the refusal by systemd itself, which ended the process before the program began."""
    status = _failed_with(known)
    if status is None:
        return []
    line = _why(known)
    name, does, setting = STEPS.get(status, ("", "make one of its steps", ""))
    name = _named(known, status) or name
    why = ""
    if line and not line.endswith("'"):
        why = reason(line)
    what = f"systemd cannot {does} ({status:d}{_after('/', name)}){_after(': ', why)}"
    if setting:
        setting += " in "
    unit = _name(known)
    cure = f"see {setting}systemctl cat {unit} and journalctl -u {unit}, and correct it"
    cure += BY_HAND % _name(known)
    again = not _well_now(known, status, line)
    if not again:
        cure = "systemd would accept it now"
    return [Refusal(what, cure, again, True, line, None)]


def _after(mark, text):
    """Return the text after a mark, or nothing where there is no text."""
    if text:
        return mark + text
    return ""


def _named(known, status):
    """Return the name that the line with the end gives to this status."""
    line = _said(known, f"status={status:d}/")
    if line:
        return line.partition(f"status={status:d}/")[2].split(" ")[0]
    return ""


def _well_now(known, status, line):
    """Return whether what ended the last start is seen to be well now."""
    rows = {_text(one.get("setting"), 60): one for one in _items(known.get("paths"))}
    if status == 200:
        there = rows.get("WorkingDirectory", {}).get("state") == "ok"
        return there and (not line or GONE in line)
    if status == 203:
        return any(
            _changed_since(known, one)
            for key, one in rows.items()
            if key in ("ExecStart", "ExecStartPre")
        )
    if status in (216, 217):
        if status == 217:
            key = "User"
        else:
            key = "Group"
        return rows.get(key, {}).get("state") == "ok" and "No such" in line
    return False


def _changed_since(known, one):
    changed, ended = _number(one.get("changed_at")), _number(known.get("ended_at"))
    return one.get("state") == "ok" and None not in (changed, ended) and changed > ended


def _before(known):
    """Return the refusal by a program of ExecStartPre= that failed.

    The unit's main program was never started then.
    """
    if not _over(known) or known.get("exec_main_status"):
        return []
    rows = [one for one in _items(known.get("paths")) if one.get("setting") == "ExecStartPre"]
    one = next((one for one in rows if _number(one.get("ended"))), None)
    if one is None:
        return []
    what = (
        f"ExecStartPre={_text(one.get('name'))} ended with status {one['ended']:d}, so that its own"
        " program did not begin"
    )
    cure = f"see journalctl -u {_name(known)}, and correct what that program says"
    return [Refusal(what, cure, False, True, _said(known, "ontrol process exited"), None)]


def _limit(known):
    """Return the refusal of a unit that ended too often, by the result or the words of systemd."""
    line = _said(known, *LIMIT)
    known_by_state = known.get("result") in ("start-limit", "start-limit-hit")
    if not line or known_by_state:
        return []
    if not _over(known) or known.get("active_state") != "failed":
        return []
    return [
        Refusal(
            "systemd's limit of starts is reached (StartLimitBurst=)",
            f"systemctl reset-failed {_name(known)}",
            False,
            True,
            line,
            None,
        )
    ]


def _result(known):
    """Return the refusal of a start without a process, or one by ExecCondition=."""
    result, name = known.get("result"), _name(known)
    if result == "exec-condition":
        return [
            Refusal(
                "systemd skips its start: its ExecCondition= said no",
                f"see ExecCondition= in systemctl cat {name}",
                True,
                True,
                _said(known, "exec-condition"),
                None,
            )
        ]
    if result != "resources":
        return []
    line = _why(known)
    why = reason(line)
    environment = [
        one for one in _items(known.get("paths")) if one.get("setting") == "EnvironmentFile"
    ]
    well = any(_changed_since(known, one) for one in environment) and (not why or GONE in why)
    what = "systemd could not set up its start (result resources{})".format(
        ": " + why if why else ""
    )
    cure = f"see journalctl -u {name}: a file of EnvironmentFile=, memory, or a cgroup"
    cure += BY_HAND % name
    if well:
        cure = "systemd would accept it now"
    return [Refusal(what, cure, not well, True, line, None)]
