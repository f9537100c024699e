# SPDX-License-Identifier: Apache-2.0
"""Scripts of CQL: how they are read. README.md describes their form."""

import json
import re
from dataclasses import dataclass, replace


@dataclass
class Statement:
    text: str
    page: int | None = None  # rows a page
    values: list | None = None  # prepared, then executed once with each of these; None: a plain statement
    wait: float = 0  # seconds before it is run
    java: str | None = None  # the body of a function in Java, for a server that takes no Lua
    level: str | None = None  # consistency; None: the session's
    serial: str | None = None  # serial consistency; None: not said
    settles: bool = False  # of a view or an index: asked again until it is as recorded, for a while
    frame: bool = False  # a BATCH goes out as the protocol's message, each of its statements for itself

    def for_reference(self):
        """The statement as Cassandra is asked it."""
        if self.java is None:
            return self
        text, count = re.subn(r"LANGUAGE lua AS (?:'.*'|\$\$.*\$\$)", lambda _: f"LANGUAGE java AS $${self.java}$$", self.text)
        if count != 1:
            raise ValueError(f"no Lua body to replace: {self.text}")
        return replace(self, text=text)

    def batch(self):
        """LOGGED, UNLOGGED or COUNTER, and the statements of a BATCH."""
        found = re.fullmatch(r"BEGIN (?:(UNLOGGED|COUNTER) )?BATCH (.*)APPLY BATCH", self.text, re.DOTALL)
        return found[1] or "LOGGED", [part.strip() for part in found[2].split(";") if part.strip()]


DIRECTIVE = re.compile(r"--\s*(page|prepare|java|wait|settles|level|serial|frame)\b(.*)")


# A script never touches what belongs to the server: Cassandra does not refuse all of it (TRUNCATE system.local).
SYSTEM_CHANGE = re.compile(r"(?!\s*(SELECT|DESC|DESCRIBE)\b)(?=.*\bsystem\w*\b\"?\s*(\.|$|;|WITH))", re.IGNORECASE | re.DOTALL)


def read_script(path):
    """The statements of a script, in order."""
    statements, lines, told = [], [], {}
    in_batch = False

    def finish():
        nonlocal lines, told, in_batch
        text = "\n".join(lines).strip()
        assert text.endswith(";")
        if SYSTEM_CHANGE.match(text):
            raise ValueError(f"{path}: changes a system keyspace: {text}")
        statements.append(Statement(text[:-1], **told))
        lines, told, in_batch = [], {}, False

    for line in path.read_text().split("\n"):
        if not lines:
            directive = DIRECTIVE.fullmatch(line.strip())
            if directive:
                if directive[1] == "page":
                    told["page"] = int(directive[2])
                elif directive[1] == "wait":
                    told["wait"] = float(directive[2])
                elif directive[1] in ("frame", "settles"):
                    told[directive[1]] = True
                elif directive[1] == "prepare":
                    told["values"] = json.loads("[" + directive[2] + "]")
                else:
                    told[directive[1]] = directive[2].strip()
                continue
            if not line.strip() or line.startswith("--"):
                continue
            in_batch = line.upper().startswith("BEGIN ")
        lines.append(line)
        if in_batch and not re.search(r"\bAPPLY\b|\bEND;", line.upper()):
            continue
        if line.rstrip().endswith(";"):
            finish()
    if lines:
        raise ValueError(f"{path}: the last statement has no ';'")
    return statements


def has_unset(statements):
    return any('{"unset": true}' in json.dumps(statement.values) for statement in statements)
