# SPDX-License-Identifier: Apache-2.0
"""The files of expected answers, and the list of known differences."""

import re
from dataclasses import dataclass, field

from scripts import has_unset


def recorded_path(script, statements, protocol):
    """Where the answers to a script are: scripts with unset values have others by version 3, where the driver sends null."""
    folder = script.parents[1] / "expected" / ("v3" if protocol == 3 and has_unset(statements) else "")
    return folder / (script.stem + ".txt")


def write_expected(path, statements, answers):
    out = []
    for statement, lines in zip(statements, answers):
        out.append("> " + statement.text.replace("\n", "\n> "))
        out.extend(lines)
        out.append("")
    path.write_text("\n".join(out))


def read_expected(path):
    """Pairs of a statement's text and the lines of its answer."""
    pairs = []
    for block in path.read_text().split("\n\n> "):
        block = block.removeprefix("> ").rstrip("\n")
        lines = block.split("\n")
        text = [lines[0]]
        at = 1
        while at < len(lines) and lines[at].startswith("> "):
            text.append(lines[at][2:])
            at += 1
        pairs.append(("\n".join(text), [line for line in lines[at:] if line]))
    return pairs


@dataclass
class Difference:
    reason: str
    script: str
    pattern: re.Pattern
    when: str | None = None  # split, down, restart, v3, prepared, pages; None: always
    met: int = 0
    source: str = field(default="", repr=False)


def read_differences(path):
    """`[reason]` opens a group; a line is `script: pattern`, the pattern to match a whole statement ('*': any script).

    `@when script: pattern` counts only while something happens, or in a manner of asking."""
    found, reason = [], None
    if not path.exists():
        return found
    for number, line in enumerate(path.read_text().split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            reason = line[1:-1]
            continue
        script, _, pattern = line.partition(": ")
        when = None
        if script.startswith("@"):
            when, _, script = script[1:].partition(" ")
        if reason is None or not pattern:
            raise ValueError(f"{path}:{number}: not a difference: {line}")
        found.append(Difference(reason, script, re.compile(pattern, re.DOTALL), when, source=line))
    return found


# Where Cassandra's text names a Java class or an object by its address, the rest is compared.
JAVA = [
    (re.compile(r"@[0-9a-f]{5,8}\b"), "@"),
    (re.compile(r"\b(?:java|org\.apache\.cassandra)(?:\.\w+)*\.(?=[A-Z$])[\w$]+"), "<class>"),
    (re.compile(r"class <class>|<class>"), "<class>"),
]


# Cassandra lists the signatures of a function in the order of a hash table of that run: the list is compared as a set.
SIGNATURES = re.compile(r"(?<=signatures: )(.*)(?=\))")


# The words of the JSON parser after this, and the class of an exception before its text.
JSON = re.compile(r"(?<=Could not decode JSON string as a map: ).*|(?<=Error decoding JSON string: ).*|(?<=Could not decode JSON string '')(?:: ).*|(?<=Could not decode JSON string 'NaN')(?:: ).*")


# What a server makes up: the id of a table, and when a column was dropped.
MADE_UP = [(re.compile(r"(?<=WITH ID = )[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "..."),
           (re.compile(r"(?<=USING TIMESTAMP )\d{16}"), "...")]


# Columns that were dropped Cassandra lists in the order of a hash table: their lines in CREATE TABLE, and what ALTER TABLE
# says of each.
NAME = r'"(?:[^"]|"")*"|\w+'
ALTERED = re.compile(rf"(?:{NAME})\.(?:{NAME}) (?:DROP|ADD) ({NAME})")
COLUMN = re.compile(rf"    ({NAME}) ")


def dropped_in_order(line):
    before, is_table, after = line.partition("\\n) WITH ID = ")
    options, *alters = after.split(";\\nALTER TABLE ")
    if not is_table or not alters:
        return line
    alters[-1], end, rest = alters[-1].rpartition(";")
    names = [ALTERED.match(text)[1] for text in alters]
    columns = [text.rstrip(",") for text in before.split("\\n")]
    is_dropped = [(found := COLUMN.match(text)) is not None and found[1] in names for text in columns]
    ordered = iter(sorted(text for text, dropped in zip(columns, is_dropped) if dropped))
    columns = [next(ordered) if dropped else text for text, dropped in zip(columns, is_dropped)]
    alters = [text for _, text in sorted(zip(names, alters), key=lambda pair: pair[0])]
    return "\\n".join(columns) + is_table + ";\\nALTER TABLE ".join([options, *alters]) + end + rest


# The warnings that Cassandra does not have; tests/drivers/python and tests/unit/cql assert that they come.
OWN_WARNING = re.compile(
    r"warning: (ALLOW FILTERING read \d+ rows, returned \d+ and cost \d+\.\d\d request units\.|[a-z_, ]+ (has|have) no effect in Tetrad: .*|Tetrad manages replica sets by itself: .*)"
)


# And the one that Tetrad does not have: its views are no experiment.
NOT_OURS = "warning: Materialized views are experimental and are not recommended for production use."


# Nor are its indexes on vectors: they are read at the level that is asked for.
NOT_OURS_OF_VECTORS = (
    "warning: SAI ANN indexes on vector columns are experimental",
    "warning: Top-K queries can only be run with",
    "warning: Top-K queries do not support paging",  # where the pages are those of the manner of asking
)


def without_own_warning(lines):
    return [
        line
        for line in lines
        if not OWN_WARNING.fullmatch(line) and line != NOT_OURS and not line.startswith(NOT_OURS_OF_VECTORS)
    ]


def comparable(lines):
    out = []
    lines = without_own_warning(lines)
    # Where the last page was full an empty one may follow, with a warning of its own before it.
    lines = [line for line, after in zip(lines, [*lines[1:], ""]) if line != "-- next page" or after.startswith("|")]
    while len(lines) > 1 and lines[-1].startswith("warning: ") and lines[-1] in lines[:-1]:
        lines.pop()
    for line in lines:
        if line.startswith("error "):
            for pattern, replacement in JAVA:
                line = pattern.sub(replacement, line)
            line = JSON.sub("", line).replace("error 0x1400 <class>: ", "error 0x1400 ")
            line = SIGNATURES.sub(lambda found: ", ".join(sorted(re.split(r", (?=system\.|\w+\.\w+ : )", found[0]))), line)
        elif " WITH ID = " in line:
            for pattern, replacement in MADE_UP:
                line = pattern.sub(replacement, line)
            line = dropped_in_order(line)
        out.append(line)
    return out
