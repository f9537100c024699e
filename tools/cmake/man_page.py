# SPDX-License-Identifier: Apache-2.0
"""A manual page of section 1, made of what a program says to --help: man_page.py PROGRAM VERSION SUMMARY FILE.gz

Of the help a line without a blank in front that ends in a colon is a heading; "  name  sentence", or "  name" with deeper
lines below, is an entry; everything else is text.
"""
import gzip
import re
import subprocess
import sys
from pathlib import Path


def roff(text):
    """The text as roff has it: a minus is one, and a dot in front no request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def page_of(name, version, summary, help_text):
    lines = [".TH %s 1 \"\" \"Tetrad %s\" \"Tetrad\"" % (name.upper(), version), ".SH NAME", "%s \\- %s" % (name, roff(summary)), ".SH DESCRIPTION"]
    for line in help_text.splitlines():
        entry = re.fullmatch(r"  (\S(?:.*?\S)?)(?:  +(\S.*))?", line)
        if not line:
            lines.append(".PP")
        elif re.fullmatch(r"\S.*:", line):
            lines.append(".SH \"%s\"" % roff(line[:-1]))
        elif entry:
            lines += [".TP", ".B " + roff(entry[1])] + ([roff(entry[2])] if entry[2] else [])
        else:
            lines.append(roff(line.strip()))
    return "\n".join(lines) + "\n"


def main():
    program, version, summary, target = sys.argv[1:]
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    page = page_of(Path(program).name, version, summary, said)
    with open(target, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:  # without a name and a time: the same each time
        packed.write(page.encode())


if __name__ == "__main__":
    main()
