# SPDX-License-Identifier: Apache-2.0
"""Manners of asking: a script's statements by another protocol version, prepared, or with small pages.

The answers are compared with the same recorded ones; what cannot be the same by the protocol itself is left out here."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Manner:
    protocol: int = 4
    prepared: bool = False  # plain statements are prepared, too, and executed once
    page: int | None = None  # rows a page where the script does not say

    def __str__(self):
        pages = f", {self.page} row{'s' * (self.page > 1)} a page" if self.page else ""
        return f"v{self.protocol}{', prepared' * self.prepared}{pages}"

    def lines(self, lines):
        """What is left of an answer, recorded or given, to compare."""
        if self.page:
            lines = joined(lines)
        if self.protocol < 4:
            lines = [of_version_3(line) for line in lines if not line.startswith("warning: ")]
        return lines


def joined(lines):
    """The rows of all pages as of one; a warning comes with each page."""
    warnings = list(dict.fromkeys(line for line in lines if line.startswith("warning: ")))
    return warnings + [line for line in lines if line != "-- next page" and not line.startswith("warning: ")]


# Version 3 has no warnings, no places of the partition key in what was prepared, no error for functions (they fail as
# Invalid, with its name), and tells of a changed function as of its keyspace.
def of_version_3(line):
    line = re.sub(r" \(partition key: [\d, ]+\)$", "", line) if line.startswith("prepared: ") else line
    line = re.sub(r"^schema \w+ (?:FUNCTION|AGGREGATE) (\w+)\..*", r"schema UPDATED KEYSPACE \1", line)
    return re.sub("^error 0x2200 ERROR FUNCTION_FAILURE: ", "error 0x1400 ", line)
