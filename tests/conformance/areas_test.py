# SPDX-License-Identifier: Apache-2.0
"""The random rounds about one area: each reaches its area, is the same each time, and leaves those of rounds.py as they were."""

import hashlib

from randomly.areas import AREAS, count_areas, make_area
from randomly.findings import as_script
from randomly.rounds import make_round

LEAST = 20  # of a hundred statements are about the area
OLD = {(1, 0): "47d5a5f4851604b6409c59ebb1ebe1acd8c2fb81bbfc1f72102550f3fa6ccf5c", (2031, 7): "e585f2a19fb6b6625bc5c90c5172f818743c0a8a68cae1d71d55b404d68dff28"}


def text_of(steps):
    return "\n".join(as_script(step) for step in steps)


def main():
    passed, failed = 0, []

    def check(name, holds):
        nonlocal passed
        passed += bool(holds)
        if not holds:
            failed.append(name)

    for area in AREAS:
        for seed in range(1, 4):
            steps = make_area(area, seed, 0, 300)
            reached = count_areas(steps)[area]
            check(f"{area}, seed {seed}: {reached} of {len(steps)} statements are about it", reached * 100 >= LEAST * len(steps))
            check(f"{area}, seed {seed}: another round the second time", text_of(steps) == text_of(make_area(area, seed, 0, 300)))
    # What has been found by a seed is told by its number: the rounds must not change.
    for (seed, number), digest in OLD.items():
        made = hashlib.sha256(text_of(make_round(seed, number, 400)).encode()).hexdigest()
        check(f"round {number} of seed {seed} has changed: {made}", made == digest)
    for line in failed:
        print(f"    - {line}")
    print(f"{passed} passed, {len(failed)} failed, 0 skipped")


main()
