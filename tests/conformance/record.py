# SPDX-License-Identifier: Apache-2.0
"""record.py ADDRESS [SCRIPT...]: writes expected/ from the answers of the server there."""

import sys
from pathlib import Path

from answers import Server, run_script
from expected import write_expected
from scripts import read_script


def main():
    here = Path(__file__).parent
    only = set(sys.argv[2:])
    server = Server([sys.argv[1]])
    total = 0
    for path in sorted((here / "scripts").glob("*.cql")):
        if only and path.stem not in only:
            continue
        statements = read_script(path)
        answers = run_script(server, path.stem, statements)
        write_expected(here / "expected" / (path.stem + ".txt"), statements, answers)
        errors = sum(any(line.startswith("error") for line in lines) for lines in answers)
        print(f"{path.stem}: {len(statements)} statements, {errors} errors", flush=True)
        total += len(statements)
    server.close()
    print(f"{total} statements")


main()
