# SPDX-License-Identifier: Apache-2.0
"""Rights that are taken while answers wait for their turn."""

import os
import struct
import subprocess
import time

import wire
from cases import case, expect
from wire import EXECUTE, RESULT, STARTUP, Client, Failure, frame

AUTHENTICATE, AUTH_RESPONSE, AUTH_SUCCESS = 0x03, 0x0F, 0x10
PASSWORD = "a long password of the tests"


def logged_in(user, **options):
    client = Client(start=False, timeout=30, **options)
    expect(client.ask(STARTUP, wire.startup_body()).opcode == AUTHENTICATE, "no question for a password")
    answer = client.ask(AUTH_RESPONSE, wire.value(f"\0{user}\0{PASSWORD}".encode()))
    expect(answer.opcode == AUTH_SUCCESS, answer)
    return client


def start_with_passwords(node):
    """In place of node.start(), whose first question needs no password."""
    node.log = open(f"{node.folder}/log.txt", "ab")
    arguments = node.arguments("--authenticator", "PasswordAuthenticator", "--init-superuser", "root")
    node.process = subprocess.Popen(arguments, stdout=node.log, stderr=node.log, env={**os.environ, "TETRAD_SUPERUSER_PASSWORD": PASSWORD})
    until = time.monotonic() + 20
    while True:
        try:
            return logged_in("root")
        except (OSError, EOFError, Failure):
            expect(time.monotonic() < until, f"nobody can log in: {node.log_tail()}")
            time.sleep(0.05)


@case
def rights_that_are_taken_meanwhile(node):
    """20 large answers wait for a client that does not read; its right is taken, and what was written after that it does not see"""
    node.stop()
    try:
        with start_with_passwords(node) as root:
            root.done("CREATE ROLE IF NOT EXISTS reader WITH LOGIN = true AND PASSWORD = '" + PASSWORD + "'")
            root.done("GRANT SELECT ON ovl.wide TO reader")
            with logged_in("reader", receive_buffer=4096) as reader:
                selected = struct.pack(">H", 16) + reader.prepare("SELECT c, v FROM ovl.wide WHERE k = 5") + wire.parameters()
                expect(reader.ask(EXECUTE, selected).opcode == RESULT, "no rows")  # from now on it is known to be large
                reader.send(b"".join(frame(EXECUTE, selected, stream) for stream in range(20)))
                time.sleep(1)
                root.done("REVOKE SELECT ON ovl.wide FROM reader")
                time.sleep(0.5)
                root.done("INSERT INTO ovl.wide (k, c, v) VALUES (5, 0, 'SECRET')")
                answers = [reader.answer() for _ in range(20)]
            root.done("INSERT INTO ovl.wide (k, c, v) VALUES (5, 0, '" + "x" * 65536 + "')")
        expect(not any(b"SECRET" in answer.body for answer in answers), "what came later was shown")
        rows = sum(answer.opcode == RESULT for answer in answers)
        expect(1 <= rows < 20, f"{rows} answers of 20")
        expect(all(answer.opcode == RESULT or "no SELECT permission" in answer.text for answer in answers), answers)
    finally:
        node.stop()
        node.start()
    return f"{rows} answers came before"
