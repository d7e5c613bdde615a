# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether firewalld or ufw lets a TCP port in, by its files, as a boot makes it.

The functions are pure, and trust nothing in a file.

The question is which port nothing lets in. Therefore what may let a port in counts as if it did:
every zone that is in use for some interface or address, and every rule that accepts, from wherever.
The answer is None where something is not known, or is written in a language that is not read here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ...module_utils.shared import firewall_files
from ..evidence.answers.node.boot import Firewall, FirewallFile
from . import pflag

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
    r"ufw6?-(?:(?:before|after|user|reject|track|skip-to-policy|before-logging|after-logging"
    r"|user-logging)-(?P<way>input|output|forward)"
    r"|not-local|logging-deny|logging-allow|user-limit|user-limit-accept)\Z"
)
_ENTRY = re.compile(r"INPUT\Z|ufw6?-(?:before|after|user)-input\Z")
_LIMITED = re.compile(r"ufw6?-user-limit-accept\Z")
_NEVER_ACCEPTS = frozenset(
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
_POLICIES = ([":INPUT", "ACCEPT"], ["-P", "INPUT"], ["--policy", "INPUT"])
_ELEMENTS = frozenset(
    (
        "port",
        "service",
        "protocol",
        "forward-port",
        "icmp-block",
        "icmp-type",
        "masquerade",
        "source-port",
    )
)
MAX_RULES = 20_000

Tag = tuple[str, Mapping[str, str], bool]  # name, attributes, whether it ends there


@dataclass(frozen=True)
class Wall:
    """One firewall.

    active: whether it is active, None where that is not known
    comes: whether a boot brings it
    """

    name: str
    active: bool | None
    comes: bool
    files: Mapping[str, FirewallFile]
    zones: Sequence[str] = field(default_factory=tuple)
    # what may give a zone to something: path, why
    unread: Sequence[tuple[str, str]] = field(default_factory=tuple)

    @property
    def file(self) -> str:
        """Return the path of the main configuration file."""
        if self.name == FIREWALLD:
            return CONF
        return ENABLED

    def text(self, path: str) -> str | None:
        """Return a file's text, empty for a missing file; None if it was not read wholly."""
        file = self.files.get(path, FirewallFile())
        if file.error == "missing":
            return ""
        if file.truncated or file.error:
            return None
        return file.text

    def lets_in(self, port: int) -> bool | None:
        """Return whether this firewall lets new TCP connections to the port in."""
        if self.name == FIREWALLD:
            return _firewalld(self, port)
        return _ufw(self, port)

    def unjudged(self, ports: Iterable[int]) -> list[tuple[str, str]]:
        """Return (path, reason) of what keeps the evaluation of these ports from being certain."""
        unread = [
            (path, file.error or "it was not read wholly")
            for path, file in self.files.items()
            if self.text(path) is None and path not in firewall_files.SCRIPTS
        ]
        unread += self.unread
        if self.name == FIREWALLD:
            return unread + _direct_rules(self)
        return unread + _unknown_scripts(self) + _unknown_rules(self, ports)


def passes_on(wall: Wall) -> bool | None:
    """Return whether firewalld's default zone passes packets of pods on, None where not known.

    It does where its target is ACCEPT, and where forward (since 1.0) or masquerade is in it. Where
    the backend is iptables, the rules of network plugins come first.
    """
    conf, direct = wall.text(CONF), wall.text(DIRECT)
    if conf is None or direct is None or "ACCEPT" in direct:
        return None
    values = _values(conf)
    path = _path(wall, values.get("DefaultZone") or PUBLIC)
    text = path and wall.text(path)
    if not text or values.get("FirewallBackend") != "nftables":
        return None
    tags = _tags(text)
    names = {tag[0] for tag in _outside(tags)}
    return _is_accepting(tags) or not names.isdisjoint(("forward", "masquerade"))


def leaves_out(wall: Wall, interface: str) -> bool | None:
    """Return whether no zone has this interface or any addresses, None where not known.

    Policies and zones of any target count as meant for them.
    """
    if wall.unread or wall.zones:
        return None
    for path in wall.files:
        if path.startswith(f"{firewall_files.OURS}/policies/"):
            return None
        text = wall.text(path)
        if not path.startswith(f"{firewall_files.OURS}/zones/"):
            continue
        if text is None:
            return None
        if any(_is_of_pods(tag, interface) for tag in _outside(_tags(text))):
            return False
    return True


def _is_of_pods(tag: Tag, interface: str) -> bool:
    """Return whether a tag of a zone gives it the interface, or any addresses."""
    name, words, _dummy = tag
    if name == "interface":
        return fnmatchcase(interface, words.get("name", "").replace("+", "*"))
    return name == "source"


def _is_accepting(tags: Sequence[Tag]) -> bool:
    return bool(tags) and tags[0][1].get("target") == "ACCEPT"


def _direct_rules(wall: Wall) -> list[tuple[str, str]]:
    if "ACCEPT" in (wall.text(DIRECT) or ""):
        return [(DIRECT, "it has rules of iptables that accept")]
    return []


def _unknown_scripts(wall: Wall) -> list[tuple[str, str]]:
    return [
        (path, "ufw runs it, and what it does is not known")
        for path in firewall_files.SCRIPTS
        if _runs(wall, path)
    ]


def _unknown_rules(wall: Wall, ports: Iterable[int]) -> list[tuple[str, str]]:
    rules = (rule for port in ports for rule in _answers(wall, port))
    lines = dict.fromkeys((path, line) for path, line, answer in rules if answer is None)
    return [(path, f"what the rule does is not known: {line[:100]}") for path, line in lines]


def walls(firewalls: Mapping[str, Firewall]) -> list[Wall]:
    """Return the firewalls that are active, that a boot starts, or whose state is not known."""
    result = []
    for name in sorted({FIREWALLD, UFW} & set(firewalls)):
        wall = _wall(name, firewalls[name])
        if name == UFW:
            wall = _switched(wall)
        if wall.active is not False or wall.comes:
            result.append(wall)
    return result


def _wall(name: str, record: Firewall) -> Wall:
    return Wall(
        name,
        record.active,
        record.enabled is True and record.masked is not True,
        {file.path: file for file in record.files},
        record.zones,
        [(file.path, file.error or "") for file in record.unread],
    )


def _switched(wall: Wall) -> Wall:
    """Return the firewall with the state that ufw's own file gives.

    Its service only loads its rules at boot, which `ufw enable` does without it: an inactive
    service says nothing about the present rules.
    """
    text = wall.text(ENABLED)
    if text is None:
        return Wall(wall.name, None, wall.comes, wall.files)
    if _values(text).get("ENABLED", "").lower() in ("yes", "true", "1"):
        return Wall(wall.name, wall.active or None, wall.comes, wall.files)
    return Wall(wall.name, False, False, wall.files)


def _values(text: str) -> dict[str, str]:
    rows = (line.partition("=") for line in text.split("\n") if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, equals, value in rows if equals}


def setting(text: str, key: str) -> str:
    """Return the value of a key in firewalld.conf or in ufw's files, "" where it has none."""
    return _values(text).get(key, "")


def _any_true(answers: Collection[bool | None]) -> bool | None:
    """Return True if an answer is, else None if one is not known, else False."""
    if True in answers:
        return True
    if None in answers:
        return None
    return False


def _unknown_if(condition: bool) -> bool | None:
    """Return None if the condition holds, else False."""
    if condition:
        return None
    return False


def _firewalld(wall: Wall, port: int) -> bool | None:
    conf, direct = wall.text(CONF), wall.text(DIRECT)
    if conf is None or direct is None or "ACCEPT" in direct:
        return None  # rules of iptables, which come first
    default = _values(conf).get("DefaultZone") or PUBLIC
    names = dict.fromkeys([default, *wall.zones, *_bound(wall)])
    policies = [path for path in wall.files if path.startswith(f"{firewall_files.OURS}/policies/")]
    paths = [*(_path(wall, name) for name in names), *policies]
    answer = _any_true([_zone_file(wall, path, port) for path in paths])
    if answer is False:
        return _unknown_if(bool(wall.unread))
    return answer


def _zone_file(wall: Wall, path: str | None, port: int) -> bool | None:
    if path is None:
        return None
    text = wall.text(path)
    if not text:
        return None
    return _zone(wall, text, port)


def _path(wall: Wall, name: str) -> str | None:
    """Return the file of a zone: the administrator's before the package's."""
    paths = (
        f"{folder}/zones/{name}.xml" for folder in (firewall_files.OURS, firewall_files.VENDOR)
    )
    return next((path for path in paths if path in wall.files), None)


def _bound(wall: Wall) -> Iterator[str]:
    """Yield the zones to which a file assigns an interface or addresses.

    A file that cannot be read may do so.
    """
    for path in wall.files:
        folder, _dummy, name = path.rpartition("/")
        if folder == f"{firewall_files.OURS}/zones" and _assigns(wall.text(path)):
            yield name[: -len(".xml")]


def _assigns(text: str | None) -> bool:
    if text is None:
        return True
    return any(tag[0] in ("interface", "source") for tag in _outside(_tags(text)))


def _tags(text: str) -> list[Tag]:
    """Return the tags of a file, without their nesting; an end tag has the name `/rule`.

    Comments, and all that is no plain tag, are skipped.
    """
    return [
        (
            end + name,
            {key: double or single for key, double, single in _ATTRIBUTE.findall(attributes)},
            bool(closed),
        )
        for end, name, attributes, closed in _TAG.findall(_COMMENT.sub("", text))
    ]


def _outside(tags: Iterable[Tag]) -> Iterator[Tag]:
    """Yield the tags that are not part of a rich rule."""
    within = False
    for tag in tags:
        if tag[0] == "rule" and not tag[2]:
            within = True
        if not within:
            yield tag
        if tag[0] == "/rule":
            within = False


def _zone(wall: Wall, text: str, port: int) -> bool | None:
    """Return whether a zone, or a policy, lets the port in."""
    tags = _tags(text)
    if not tags or tags[0][0] not in ("zone", "policy"):
        return None
    if tags[0][0] == "policy" and not _inward(tags):
        return False
    if tags[0][1].get("target") == "ACCEPT":
        return True
    answers = [_told(wall, tag, port, ()) for tag in _outside(tags)]
    answers += [_rule(wall, rule, port) for rule in _rich_rules(tags) if _accepts(rule)]
    return _any_true(answers)


def _rich_rules(tags: Iterable[Tag]) -> list[list[Tag]]:
    rules: list[list[Tag]] = []
    for tag in tags:
        if tag[0] == "rule" and not tag[2]:
            rules.append([])
        elif rules and tag[0] != "/rule":
            rules[-1].append(tag)
    return rules


def _accepts(rule: Iterable[Tag]) -> bool:
    return any(tag[0] == "accept" for tag in rule)


def _inward(tags: Sequence[Tag]) -> bool:
    """Return whether a policy is about connections to the host itself.

    The zone HOST alone stands for that; ANY does not contain it. The policies that docker makes for
    its networks are about what passes through.
    """
    if "disable" in [tag[0] for tag in tags]:
        return False
    return ("egress-zone", "HOST") in [(name, words.get("name")) for name, words, dummy in tags]


def _rule(wall: Wall, rule: Sequence[Tag], port: int) -> bool | None:
    """Return whether a rich rule that accepts lets the port in.

    A rule with a port or service is about that one, another about everything from its source.
    """
    elements = [tag for tag in rule if tag[0] in _ELEMENTS]
    if not elements:
        return True
    return _any_true([_told(wall, tag, port, ()) for tag in elements])


def _told(wall: Wall, tag: Tag, port: int, within: tuple[str, ...]) -> bool | None:
    name, words, _dummy = tag
    if name in ("port", "forward-port"):
        return words.get("protocol", "tcp") == "tcp" and covers(words.get("port", ""), port, "-")
    if name == "protocol":
        return words.get("value") == "tcp"
    if name == "source-port" and words.get("protocol") == "tcp":
        return None
    if name in ("service", "include"):
        return _service(wall, words.get("name") or words.get("service") or "", port, within)
    return False


def _service(wall: Wall, name: str, port: int, within: tuple[str, ...]) -> bool | None:
    """Return whether a firewalld service has the port.

    Of the services that firewalld ships, only those of Kubernetes have Kubernetes' ports.
    """
    paths = (
        f"{folder}/services/{name}.xml" for folder in (firewall_files.OURS, firewall_files.VENDOR)
    )
    path = next((path for path in paths if path in wall.files), None)
    if name in within:
        return False
    if path is None or len(within) > 10:
        return _unknown_if(name.startswith(firewall_files.KUBERNETES))
    text = wall.text(path)
    if not text:
        return None
    parts = [tag for tag in _tags(text) if tag[0] in ("port", "protocol", "include")]
    return _any_true([_told(wall, tag, port, (*within, name)) for tag in parts])


def covers(words: str, port: int, dash: str) -> bool:
    """Return whether a list of ports and ranges has this port."""
    return any(_covers(word, port, dash) for word in words.split(","))


def _covers(word: str, port: int, dash: str) -> bool:
    low, _dummy, high = word.strip().partition(dash)
    high = high or low
    if not (low.isdecimal() and high.isdecimal() and len(word) < 20):
        return False
    return int(low) <= port <= int(high)


def _ufw(wall: Wall, port: int) -> bool | None:
    policy = wall.text(POLICY)
    if policy is not None and _input_policy(policy) == "ACCEPT":
        return True
    answer = _any_true([answer for dummy, dummy, answer in _answers(wall, port)])
    if answer is not False:
        return answer
    if any(wall.text(path) is None for path in firewall_files.RULES):
        return None
    if any(_runs(wall, path) for path in firewall_files.SCRIPTS):
        return None
    return False


def _input_policy(text: str) -> str:
    return _values(text).get("DEFAULT_INPUT_POLICY", "DROP").upper()


def _runs(wall: Wall, path: str) -> bool:
    """Return whether ufw may run a script that differs from the one it ships."""
    file = wall.files.get(path, FirewallFile())
    if file.error == "missing" or file.executable is False:
        return False
    text = wall.text(path)
    return text is None or not all(_SHIPPED.match(line.strip()) for line in text.split("\n"))


def _answers(wall: Wall, port: int) -> Iterator[tuple[str, str, bool | None]]:
    """Yield (path, line, whether it lets the port in) of each line of ufw's rules."""
    for path in firewall_files.RULES:
        table, lines = "filter", []
        if path.endswith(".rules"):
            lines = (wall.text(path) or "").split("\n")
        if len(lines) > MAX_RULES:
            yield path, "", None
        for line in map(str.strip, lines[:MAX_RULES]):
            if line.startswith("*"):
                table = line[1:].strip()
            elif line:
                yield path, line, _allows(line, port, table)


def _allows(line: str, port: int, table: str) -> bool | None:
    """Return whether a line of user.rules, by ufw itself or in iptables' language, lets it in."""
    rule = _TUPLE.match(line)
    if rule:
        return _tuple_allows(rule, port)
    words = _words(line)
    if table == "filter" and words[:2] in _POLICIES:
        return _unknown_if("ACCEPT" in words)
    if len(words) < 4 or words[0] not in _COMMANDS:
        return False
    target = _target(words)
    if table == "filter":
        return _leads(words[1], target, words, port)
    return _unknown_if(target in _ELSEWHERE and _meets(words, port) is not False)


def _tuple_allows(rule: re.Match[str], port: int) -> bool:
    action, protocol, ports, options = rule.group(1, 2, 3, 7)
    if action.partition("_")[0] not in ("allow", "limit") or protocol not in ("any", "tcp"):
        return False
    return " out" not in f" {options}" and (ports == "any" or covers(ports, port, ":"))


def _target(words: Sequence[str]) -> str:
    pairs = itertools.pairwise(words)
    return next((value for word, value in pairs if word in ("-j", "--jump", "-g", "--goto")), "")


def _leads(chain: str, target: str, words: Sequence[str], port: int) -> bool | None:
    """Return whether a rule of the table filter, from a chain to a target, lets the port in.

    The result is None where the rule leads to a chain that is not known.
    """
    if chain in ("FORWARD", "OUTPUT") or _is_way(_OWN.match(chain), "forward", "output"):
        return False
    if not target or target in _NEVER_ACCEPTS or _meets(words, port) is False:
        return False
    if target == "ACCEPT" or _LIMITED.match(target):
        return _accepting(chain, words, port)
    own_chain = _OWN.match(target)
    if own_chain and not _is_way(own_chain, "forward", "output"):
        return False
    return None


def _is_way(match: re.Match[str] | None, *ways: str) -> bool:
    return match is not None and match.group("way") in ways


def _accepting(chain: str, words: Sequence[str], port: int) -> bool | None:
    if _ENTRY.match(chain):
        return _meets(words, port)
    if _LIMITED.match(chain):
        return False
    return None


def _words(line: str) -> list[str]:
    """Return the words as getopt reads them, without the counters before a rule.

    -jACCEPT and --dport=22 are two words each.
    """
    words: list[str] = []
    for word in pflag.shell_words(line):
        short = _SHORT.match(word)
        if short:
            words += short.groups()
        elif word.startswith("--") and "=" in word:
            words += word.split("=", 1)
        elif words or not word.startswith("["):
            words.append(word)
    return words


def _meets(words: Sequence[str], port: int) -> bool | None:
    """Return whether a new connection to the port from another host may match the rule.

    The result is None where the rule names the port by a word that is not known.
    """
    answers: list[bool | None] = []
    for place, (word, value) in enumerate(zip(words, [*words[1:], ""], strict=False)):
        if value == "!" or (place and words[place - 1] == "!"):
            continue
        answers.append(_option_meets(word, value, port))
    if False in answers:
        return False
    if None in answers:
        return None
    return True


def _option_meets(option: str, value: str, port: int) -> bool | None:
    if _excludes(option, value):
        return False
    if option in ("--dport", "--destination-port", "--dports", "--destination-ports"):
        return _any_true([_within(item, port) for item in value.split(",")])
    return True


def _excludes(option: str, value: str) -> bool:
    """Return whether an option excludes new TCP connections from other hosts."""
    if option in ("--state", "--ctstate"):
        return set(value.upper().split(",")) <= _OLD
    if option in ("-p", "--protocol", "--proto"):
        return value.lower() not in ("tcp", "6", "all", "0")
    return option in ("-i", "--in-interface") and value == "lo"


def _within(word: str, port: int) -> bool | None:
    """Return whether a port or a range of iptables, one end of which may be open, has this port."""
    low, colon, high = word.strip().partition(":")
    if colon:
        high = high or "65535"
    elif low in _NAMED:
        return _NAMED[low] == port
    high = high or low
    low = low or "0"
    if not (low.isdecimal() and high.isdecimal() and len(word) < 20):
        return None
    return int(low) <= port <= int(high)
