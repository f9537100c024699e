# SPDX-License-Identifier: Apache-2.0
"""record.py ADDRESS [SCRIPT...]: writes expected/ from the answers of the server there (own_* only when named).

TETRAD_REFERENCE_SCRIPTS=settings: of the scripts there, from a server that runs with their settings.
TETRAD_REFERENCE_PROTOCOL=3: expected/v3, of the scripts with unset values, for which version 3 has null."""

import os
import sys
from pathlib import Path

from answers import Server, run_script
from expected import recorded_path, write_expected
from manners import Manner
from scripts import has_unset, read_script


def main():
    here = Path(__file__).parent
    only = set(sys.argv[2:])
    manner = Manner(int(os.environ.get("TETRAD_REFERENCE_PROTOCOL", "4")))
    server = Server([sys.argv[1]], manner=manner)
    total = 0
    for path in sorted((here / os.environ.get("TETRAD_REFERENCE_SCRIPTS", "scripts")).glob("*.cql")):
        own = path.stem.startswith("own_")  # of what Cassandra 5.0 has not: recorded by name, from Tetrad
        if path.stem not in only if only or own else False:
            continue
        statements = read_script(path)
        if manner.protocol == 3 and not has_unset(statements):
            continue
        answers = run_script(server, path.stem, [statement.for_reference() for statement in statements])
        write_expected(recorded_path(path, statements, manner.protocol), statements, answers)
        errors = sum(any(line.startswith("error") for line in lines) for lines in answers)
        print(f"{path.stem}: {len(statements)} statements, {errors} errors", flush=True)
        total += len(statements)
    server.close()
    print(f"{total} statements")


main()
