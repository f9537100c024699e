# SPDX-License-Identifier: Apache-2.0
"""Differences: which have a known reason, which are one and the same, and the least that shows one."""

import json
import re
from dataclasses import dataclass, field

from expected import JAVA, SIGNATURES, comparable, without_own_warning

TTL = re.compile(r"(?<![\w.'-])(\d{6})(?![\w.'-])")
NOW = re.compile(r"(?<![\w.'-])1[789]\d{14}(?![\w.'-])")


def sorted_fields(text):
    """With what stands in braces sorted: the fields of a user type's literal Cassandra has in the order of a hash table."""
    out, levels, quote = [], [], None
    for char in text:
        if quote:
            quote = None if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "{":
            levels.append(out)
            out = []
            continue
        elif char == "}" and levels:
            inside, out = "".join(out), levels.pop()
            out.append("{" + ", ".join(sorted(inside.split(", "))) + "}")
            continue
        out.append(char)
    for outer in reversed(levels):
        out = outer + ["{"] + out
    return "".join(out)


def tamed(lines):
    """The answer without what depends on the moment it was given at."""
    def seconds(match):  # the TTLs of a round are multiples of 100
        number = int(match[1])
        return f"~{-(-number // 100) * 100}" if 100000 <= number <= 600000 else match[0]
    out = []
    lines = without_own_warning(lines)
    if any(line.startswith("warning: ") for line in lines):
        lines = [line for line in lines if line != "-- next page"]
    for line in comparable(lines):
        if line.startswith("warning: ") and line in out:  # once a page, and Cassandra may have an empty page more
            continue
        if not line.startswith("|"):
            line = sorted_fields(line)
        # Cassandra keeps to_json by its argument's type, under the name that was asked for first since its start.
        line = re.sub(r"system\.tojson( :|\()", r"system.to_json\1", line)
        out.append(NOW.sub("~now", TTL.sub(seconds, line)) if line.startswith("|") else line)
    return out


def differ(reference, subject):
    """Pairs of lines that differ, or nothing."""
    a, b = tamed(reference), tamed(subject)
    if a == b:
        return None
    only_a, only_b = list(a), []
    for line in b:
        if line in only_a:
            only_a.remove(line)
        else:
            only_b.append(line)
    return (only_a, only_b) if only_a or only_b else (["(another order) " + " / ".join(a)], [" / ".join(b)])


@dataclass
class Reason:
    reason: str
    statement: re.Pattern
    reference: re.Pattern
    subject: re.Pattern
    schema: re.Pattern
    fewer: bool = False
    met: int = 0


def read_reasons(path):
    """`[reason]`, then lines `statement <> answer of the reference <> answer of the subject <> schema`, each a pattern to be found."""
    found, reason = [], None
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            reason = line.strip()[1:-1]
            continue
        parts = line.split(" <> ")
        if reason is None or len(parts) not in (3, 4):
            raise ValueError(f"{path}:{number}: not a difference: {line}")
        fewer = parts[2].strip() == "%fewer"
        parts = [*parts[:2], "" if fewer else parts[2], *(parts[3:] or [""])]
        found.append(Reason(reason, *(re.compile(p.strip(), re.DOTALL) for p in parts), fewer))
    return found


ELEMENT = re.compile(r"[^\s,|{}\[\]]+")


def has_fewer(a, b):
    """Whether the rows are as many, and those of `b` have nothing but what those of `a` have too, or nulls."""
    for one, other in zip(a, b):
        left = ELEMENT.findall(one)
        for element in ELEMENT.findall(other):
            if element not in left:
                if element == "null":
                    continue
                return False
            left.remove(element)
    return len(a) == len(b)


def explains(reasons, text, difference, schema=""):
    a, b = ("\n".join(side) for side in difference)
    for reason in reasons:
        if reason.fewer and not has_fewer(*difference):
            continue
        if reason.statement.search(text) and reason.reference.search(a) and reason.subject.search(b) and reason.schema.search(schema):
            return reason
    return None


def reason_for(reasons, text, difference, schema=""):
    reason = explains(reasons, text, difference, schema)
    if reason is not None:
        reason.met += 1
    return reason


NAMES = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\b0x[0-9a-f]*|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|-?\b\d[\w.]*")
WORDS = re.compile(r"[A-Z]{2,}|\b\w+(?=\()|\bRows\b")


def group_of(text, difference):
    """One text for differences that are likely the same."""
    def plain(line):
        if line.startswith("error"):
            line = NAMES.sub("#", line[6:])
            line = re.sub(r"\b(k\d?|c\d|r\d|[a-h]|x_1|val|Name|value|key|ttl|list|é|t\d|u\d|conf\w+|rnd\w*)\b", "@", line)
            return "error " + line[:150]
        return line.split(" ")[0][:12]
    a, b = ([plain(line) for line in side[:2]] for side in difference)
    words = " ".join(sorted(set(WORDS.findall(NAMES.sub("#", text))) - {"AND", "FROM", "WHERE"}))
    if any(x.startswith("error") for x in a + b):
        words = text.split(" ")[0]
    return f"{a} => {b} [{words}]"


def as_script(step):
    """The statement as a conformance script has it."""
    statement = step.statement
    out = ["-- settles"] if statement.settles else []
    if statement.page:
        out.append(f"-- page {statement.page}")
    if statement.values is not None:
        out.append("-- prepare " + json.dumps(statement.values, ensure_ascii=False)[1:-1])
    return "\n".join(out + [statement.text + ";"])


@dataclass
class Finding:
    group: str
    round: int
    at: int
    steps: list
    difference: tuple
    count: int = 1
    others: list = field(default_factory=list)


def reduced(steps, at, shows, attempts=40):
    """The statements before `at` that are needed for the last to differ; None when it does not differ again."""
    last = steps[at]
    kept = [s for s in steps[:at] if s.is_ddl or set(s.tables) & set(last.tables)]
    ddl = [s for s in kept if s.is_ddl]
    if shows(ddl + [last]):
        needed = [s for s in ddl if not s.tables or set(s.tables) & set(last.tables)]
        return needed + [last] if len(needed) < len(ddl) and shows(needed + [last]) else ddl + [last]
    kept = [s for s in kept if s.is_ddl or not s.statement.text.startswith(("SELECT", "DESCRIBE"))]
    if not shows(kept + [last]):
        return None
    size = max(1, len(kept) // 2)
    while attempts > 0:
        start = 0
        removed = False
        while start < len(kept) and attempts > 0:
            trial = kept[:start] + kept[start + size:]
            attempts -= 1
            if shows(trial + [last]):
                kept, removed = trial, True
            else:
                start += size
        if size == 1 and not removed:
            break
        size = max(1, size // 2)
    return kept + [last]
