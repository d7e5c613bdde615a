# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether firewalld or ufw lets a TCP port in, by its files, as a boot makes it.

Pure, and nothing in a file is trusted.

Whoever asks is to be told of a port that nothing lets in. So what may let it in counts as if it
did: every zone that is in use for some interface or address, every rule that accepts, from
wherever. None where something is not known, or is written in a language that is not read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.shared import firewall_files
from . import pflag as flags

FIREWALLD, UFW = firewall_files.FIREWALLD, firewall_files.UFW
CONF, DIRECT = f"{firewall_files.OURS}/firewalld.conf", f"{firewall_files.OURS}/direct.xml"
ENABLED, POLICY = "/etc/ufw/ufw.conf", "/etc/default/ufw"
PUBLIC = "public"  # firewalld's default where its file names none
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"<(/?)([A-Za-z-]+)((?:\s+[A-Za-z_-]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*)\s*(/?)>")
_ATTRIBUTE = re.compile(r"([A-Za-z_-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_TUPLE = re.compile(r"### tuple ### (\S+) (\S+) (\S+) (\S+) (\S+) (\S+)(.*)\Z")
# ufw's own chains; way: those that only one of the three ways passes.
_OWN = re.compile(
    r"ufw6?-(?:(?:before|after|user|reject|track|skip-to-policy|before-logging|after-logging|user-logging)-(?P<way>input|output|forward)"
    r"|not-local|logging-deny|logging-allow|user-limit|user-limit-accept)\Z"
)
_ENTRY = re.compile(r"INPUT\Z|ufw6?-(?:before|after|user)-input\Z")
_LIMITED = re.compile(r"ufw6?-user-limit-accept\Z")
_LETS_NOBODY = frozenset(
    (
        "DROP",
        "REJECT",
        "RETURN",
        "LOG",
        "NFLOG",
        "ULOG",
        "MARK",
        "CONNMARK",
        "CONNSECMARK",
        "SECMARK",
        "TCPMSS",
        "CT",
        "NOTRACK",
        "AUDIT",
        "SET",
        "CLASSIFY",
        "DSCP",
        "TOS",
        "TTL",
        "HL",
        "TRACE",
    )
)
_ELSEWHERE = ("DNAT", "REDIRECT", "TPROXY")
_COMMANDS = ("-A", "-I", "-R", "--append", "--insert", "--replace")
_SHORT = re.compile(r"(-[AIRjgpi])([^-\s].*)\Z")
_OLD = frozenset(("RELATED", "ESTABLISHED", "INVALID"))  # states of what is no new connection
_NAMED = {"ssh": 22, "domain": 53, "http": 80, "https": 443}
# The lines of before.init and after.init as they are shipped, which do nothing.
_SHIPPED = re.compile(
    r"(?:#.*|set -e|case \"\$1\" in|(?:start|stop|status|flush-all|\*)\)|;;|esac|echo \"'\$1' not"
    r" supported\""
    r"|echo \"Usage: (?:before|after)\.init \{start\|stop\|flush-all\|status\}\")?\Z"
)
MAX_RULES = 20_000

Tag = tuple[str, Mapping[str, str], bool]  # name, attributes, whether it ends there


@dataclass(frozen=True)
class Wall:
    """One firewall. active: None where it is not known; comes: whether a boot brings it."""

    name: str
    active: bool | None
    comes: bool
    files: Mapping[str, Mapping[str, Any]]
    zones: Sequence[str] = field(default_factory=tuple)
    # what may give a zone to something: path, why
    unread: Sequence[tuple[str, str]] = field(default_factory=tuple)

    @property
    def file(self) -> str:
        """What says the most of it."""
        return CONF if self.name == FIREWALLD else ENABLED

    def text(self, path: str) -> str | None:
        """A file's text, empty where there is none; None where it could not be read wholly."""
        one = self.files.get(path) or {}
        if one.get("error") == "missing":
            return ""
        text = one.get("text")
        return (
            text
            if isinstance(text, str) and not one.get("truncated") and not one.get("error")
            else None
        )

    def lets_in(self, port: int) -> bool | None:
        return _firewalld(self, port) if self.name == FIREWALLD else _ufw(self, port)

    def unjudged(self, ports: Iterable[int]) -> list[tuple[str, str]]:
        """(path, why) of what keeps it from being known what it lets in."""
        found = [
            (path, str(one.get("error") or "it was not read wholly"))
            for path, one in self.files.items()
            if self.text(path) is None and path not in firewall_files.SCRIPTS
        ]
        found += self.unread
        if self.name == FIREWALLD:
            return [
                *found,
                *(
                    [(DIRECT, "it has rules of iptables that accept")]
                    if "ACCEPT" in (self.text(DIRECT) or "")
                    else []
                ),
            ]
        found += [
            (path, "ufw runs it, and what it does is not known")
            for path in firewall_files.SCRIPTS
            if _runs(self, path)
        ]
        lines = dict.fromkeys(
            (path, line)
            for port in ports
            for path, line, answer in _answers(self, port)
            if answer is None
        )
        return found + [
            (path, f"what the rule does is not known: {line[:100]}") for path, line in lines
        ]


def walls(seen: Any) -> list[Wall]:
    """Those that are on, or that a boot brings, or of which that is not known."""
    found = []
    for name, one in sorted(seen.items()) if isinstance(seen, Mapping) else ():
        if name not in (FIREWALLD, UFW) or not isinstance(one, Mapping):
            continue
        records = one.get("files")
        listed = (
            {str(item.get("path")): item for item in records if isinstance(item, Mapping)}
            if isinstance(records, (list, tuple))
            else {}
        )
        zones = one.get("zones")
        active, unread = one.get("active"), one.get("unread")
        wall = Wall(
            name,
            active if isinstance(active, bool) else None,
            one.get("enabled") is True and one.get("masked") is not True,
            listed,
            [str(zone) for zone in zones] if isinstance(zones, (list, tuple)) else (),
            (
                [
                    (str(item.get("path")), str(item.get("error")))
                    for item in unread
                    if isinstance(item, Mapping)
                ]
                if isinstance(unread, (list, tuple))
                else ()
            ),
        )
        if name == UFW:
            wall = _switched(wall)
        if wall.active is not False or wall.comes:
            found.append(wall)
    return found


def _switched(wall: Wall) -> Wall:
    """Whether ufw does anything is in its own file.

    Its service only loads its rules at boot, which `ufw enable` does without it: one that is not
    active says nothing of now.
    """
    said = _values(wall.text(ENABLED) or "").get("ENABLED", "").lower()
    if wall.text(ENABLED) is None:
        return Wall(wall.name, None, wall.comes, wall.files)
    on = said in ("yes", "true", "1")
    return Wall(wall.name, (wall.active or None) if on else False, wall.comes and on, wall.files)


def _values(text: str) -> dict[str, str]:
    rows = (line.partition("=") for line in text.split("\n") if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, equals, value in rows if equals}


# firewalld


def _firewalld(wall: Wall, port: int) -> bool | None:
    conf, direct = wall.text(CONF), wall.text(DIRECT)
    if conf is None or direct is None or "ACCEPT" in direct:
        return None  # rules of iptables, which come first
    default = _values(conf).get("DefaultZone") or PUBLIC
    sure, names = not wall.unread, dict.fromkeys([default, *wall.zones, *_bound(wall)])
    paths = [_path(wall, name) for name in names] + [
        path for path in wall.files if path.startswith(f"{firewall_files.OURS}/policies/")
    ]
    for path in paths:
        text = wall.text(path) if path else None
        found = None if not text else _zone(wall, text, port)
        if found:
            return True
        sure = sure and found is False
    return False if sure else None


def _path(wall: Wall, name: str) -> str | None:
    """The file of a zone: somebody's own before the package's."""
    paths = (
        f"{folder}/zones/{name}.xml" for folder in (firewall_files.OURS, firewall_files.VENDOR)
    )
    return next((path for path in paths if path in wall.files), None)


def _bound(wall: Wall) -> Iterator[str]:
    """The zones to which a file gives an interface or addresses.

    One that cannot be read may be one.
    """
    for path in wall.files:
        folder, _dummy, name = path.rpartition("/")
        text = wall.text(path) if folder == f"{firewall_files.OURS}/zones" else ""
        if text is None or (
            text
            and any(tag in ("interface", "source") for tag, dummy, dummy in _outside(_tags(text)))
        ):
            yield name[: -len(".xml")]


def _tags(text: str) -> list[Tag]:
    """The tags of a file, without their nesting; a rule's inside is told by its end.

    Comments, and whatever is no plain tag, are passed over.
    """
    return [
        (
            "/" + name if end else name,
            {key: one or two for key, one, two in _ATTRIBUTE.findall(words)},
            bool(closed),
        )
        for end, name, words, closed in _TAG.findall(_COMMENT.sub("", text))
    ]


def _outside(tags: Iterable[Tag]) -> Iterator[Tag]:
    """Those that are not of a rich rule."""
    within = False
    for tag in tags:
        if tag[0] == "rule" and not tag[2]:
            within = True
        if not within:
            yield tag
        if tag[0] == "/rule":
            within = False


def _zone(wall: Wall, text: str, port: int) -> bool | None:
    """Whether a zone, or a policy, lets the port in."""
    tags = _tags(text)
    if not tags or tags[0][0] not in ("zone", "policy"):
        return None
    if tags[0][0] == "policy" and not _inward(tags):
        return False
    if tags[0][1].get("target") == "ACCEPT":
        return True
    answers = [_told(wall, tag, port, ()) for tag in _outside(tags)]
    rules: list[list[Tag]] = []
    for tag in tags:
        if tag[0] == "rule" and not tag[2]:
            rules.append([])
        elif rules and tag[0] != "/rule":
            rules[-1].append(tag)
    answers += [
        _rule(wall, rule, port)
        for rule in rules
        if any(name == "accept" for name, dummy, dummy in rule)
    ]
    return True if True in answers else None if None in answers else False


def _inward(tags: Sequence[Tag]) -> bool:
    """Whether a policy is about what comes in to the machine itself.

    The zone HOST alone stands for that, and ANY does not hold it. Those that docker makes for its
    networks are about what passes through.
    """
    return ("egress-zone", "HOST") in [
        (name, words.get("name")) for name, words, dummy in tags
    ] and "disable" not in [tag[0] for tag in tags]


def _rule(wall: Wall, rule: Sequence[Tag], port: int) -> bool | None:
    """A rich rule that accepts: of a port or service that one, else everything from its source."""
    what = [
        tag
        for tag in rule
        if tag[0]
        in (
            "port",
            "service",
            "protocol",
            "forward-port",
            "icmp-block",
            "icmp-type",
            "masquerade",
            "source-port",
        )
    ]
    answers = [_told(wall, tag, port, ()) for tag in what]
    return True if not what or True in answers else None if None in answers else False


def _told(wall: Wall, tag: Tag, port: int, within: tuple[str, ...]) -> bool | None:
    name, words, _dummy = tag
    if name in ("port", "forward-port"):
        return words.get("protocol", "tcp") == "tcp" and covers(words.get("port", ""), port, "-")
    if name == "protocol":
        return words.get("value") == "tcp"
    if name == "source-port":
        return None if words.get("protocol") == "tcp" else False
    return (
        _service(wall, words.get("name") or words.get("service") or "", port, within)
        if name in ("service", "include")
        else False
    )


def _service(wall: Wall, name: str, port: int, within: tuple[str, ...]) -> bool | None:
    """Of what firewalld brings, what has nothing to do with Kubernetes opens none of its ports."""
    path = next(
        (
            one
            for one in (
                f"{folder}/services/{name}.xml"
                for folder in (firewall_files.OURS, firewall_files.VENDOR)
            )
            if one in wall.files
        ),
        None,
    )
    if path is None or name in within or len(within) > 10:
        return None if name.startswith(firewall_files.KUBERNETES) and name not in within else False
    text = wall.text(path)
    answers = (
        [None]
        if not text
        else [
            _told(wall, tag, port, (*within, name))
            for tag in _tags(text)
            if tag[0] in ("port", "protocol", "include")
        ]
    )
    return True if True in answers else None if None in answers else False


def covers(words: str, port: int, dash: str) -> bool:
    """Whether a list of ports and ranges has this one."""
    for word in words.split(","):
        low, _dummy, high = word.strip().partition(dash)
        if (
            low.isdecimal()
            and (high or low).isdecimal()
            and len(word) < 20
            and int(low) <= port <= int(high or low)
        ):
            return True
    return False


# ufw


def _ufw(wall: Wall, port: int) -> bool | None:
    policy = wall.text(POLICY)
    if (
        policy is not None
        and _values(policy).get("DEFAULT_INPUT_POLICY", "DROP").upper() == "ACCEPT"
    ):
        return True
    answers = [answer for dummy, dummy, answer in _answers(wall, port)]
    if True in answers:
        return True
    known = (
        None not in answers
        and all(wall.text(path) is not None for path in firewall_files.RULES)
        and not any(_runs(wall, path) for path in firewall_files.SCRIPTS)
    )
    return False if known else None


def _runs(wall: Wall, path: str) -> bool:
    """Whether ufw may run a script of somebody's own."""
    one = wall.files.get(path) or {}
    text = wall.text(path)
    return (
        one.get("error") != "missing"
        and one.get("executable") is not False
        and (text is None or not all(_SHIPPED.match(line.strip()) for line in text.split("\n")))
    )


def _answers(wall: Wall, port: int) -> Iterator[tuple[str, str, bool | None]]:
    """(path, line, whether it lets the port in) of each line that may say something about it."""
    for path in firewall_files.RULES:
        table, lines = (
            "filter",
            ((wall.text(path) or "").split("\n") if path.endswith(".rules") else []),
        )
        if len(lines) > MAX_RULES:
            yield path, "", None
        for line in map(str.strip, lines[:MAX_RULES]):
            if line.startswith("*"):
                table = line[1:].strip()
            elif line:
                yield path, line, _allows(line, port, table)


def _allows(line: str, port: int, table: str) -> bool | None:
    """A line of user.rules that ufw itself wrote, or one of iptables' language."""
    told = _TUPLE.match(line)
    if told:
        action, protocol, where = told.group(1), told.group(2), told.group(3)
        return (
            action.partition("_")[0] in ("allow", "limit")
            and protocol in ("any", "tcp")
            and " out" not in f" {told.group(7)}"
            and (where == "any" or covers(where, port, ":"))
        )
    words = _words(line)
    if (
        words[:2] in ([":INPUT", "ACCEPT"], ["-P", "INPUT"], ["--policy", "INPUT"])
        and table == "filter"
    ):
        return None if "ACCEPT" in words else False
    if len(words) < 4 or words[0] not in _COMMANDS:
        return False
    target = next(
        (
            words[place + 1]
            for place, word in enumerate(words[:-1])
            if word in ("-j", "--jump", "-g", "--goto")
        ),
        "",
    )
    if table != "filter":
        return None if target in _ELSEWHERE and _meets(words, port) is not False else False
    return _leads(words[1], target, words, port)


def _leads(chain: str, target: str, words: Sequence[str], port: int) -> bool | None:
    """Whether a rule of the table filter, which leads from a chain to a target, lets the port in.

    None where it leads to what is not known.
    """
    own, leads = _OWN.match(chain), _OWN.match(target)
    elsewhere = chain in ("FORWARD", "OUTPUT") or (
        own is not None and own.group("way") in ("forward", "output")
    )
    if elsewhere or not target or target in _LETS_NOBODY or _meets(words, port) is False:
        return False
    if target == "ACCEPT" or _LIMITED.match(target):
        return (
            _meets(words, port) if _ENTRY.match(chain) else False if _LIMITED.match(chain) else None
        )
    return False if leads and leads.group("way") not in ("forward", "output") else None


def _words(line: str) -> list[str]:
    """As getopt reads them: -jACCEPT and --dport=22 are two words each.

    Without the counters before a rule.
    """
    found: list[str] = []
    for word in flags.shell_words(line):
        short = _SHORT.match(word)
        if short:
            found += short.groups()
        elif word.startswith("--") and "=" in word:
            found += word.split("=", 1)
        elif found or not word.startswith("["):
            found.append(word)
    return found


def _meets(words: Sequence[str], port: int) -> bool | None:
    """Whether a new connection to the port, from some other machine, may meet the rule.

    None where the port has a name.
    """
    sure = True
    for place, (word, value) in enumerate(zip(words, [*words[1:], ""])):
        if value == "!" or (place and words[place - 1] == "!"):
            continue
        states = word in ("--state", "--ctstate") and set(value.upper().split(",")) <= _OLD
        other = word in ("-p", "--protocol", "--proto") and value.lower() not in (
            "tcp",
            "6",
            "all",
            "0",
        )
        if states or other or (word in ("-i", "--in-interface") and value == "lo"):
            return False
        if word in ("--dport", "--destination-port", "--dports", "--destination-ports"):
            covered = [_within(one, port) for one in value.split(",")]
            if True not in covered and None not in covered:
                return False
            sure = sure and True in covered
    return True if sure else None


def _within(word: str, port: int) -> bool | None:
    """Whether a port or a range of iptables, one end of which may be open, has this one."""
    low, colon, high = word.strip().partition(":")
    if low in _NAMED and not colon:
        return _NAMED[low] == port
    low, high = low or "0", high or ("65535" if colon else low)
    if not (low.isdecimal() and high.isdecimal() and len(word) < 20):
        return None
    return int(low) <= port <= int(high)
