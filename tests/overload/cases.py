# SPDX-License-Identifier: Apache-2.0
"""The cases in their order, and what they check with."""

from wire import ERROR, Failure

CASES = []


def case(function):
    CASES.append(function)
    return function


def expect(condition, what):
    if not condition:
        raise Failure(str(what))


def expect_error(answer, *codes, text=""):
    expect(answer.opcode == ERROR and answer.code in codes and text in answer.text, answer)
