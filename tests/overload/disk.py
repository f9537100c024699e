# SPDX-License-Identifier: Apache-2.0
"""A node whose disk fills up."""

import pathlib
import time

from cases import case, expect, expect_error
from wire import INVALID, RESULT, Client


@case
def a_disk_that_fills_up(node):
    """a disk that counts as small: writes are warned of, then refused, and taken again when it counts as larger; reads go on"""
    for _ in range(2):  # what is in the log goes to files
        node.stop()
        used = sum(file.stat().st_size for file in pathlib.Path(node.folder, "data").rglob("*") if file.is_file())
        limit = used * 2 + (32 << 20)
        percent = used * 100 // limit
        node.start("--data-disk-usage-max-disk-size", f"{limit}B", "--data-disk-usage-percentage-warn-threshold", str(max(percent - 1, 1)),
                   "--data-disk-usage-percentage-fail-threshold", str(percent + 15))
    data = "0x" + "5a" * (1 << 20)
    warned = []
    refusal = "Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds failure threshold"
    with Client() as client:
        client.done("CREATE TABLE ovl.filling (k int PRIMARY KEY, v blob)")
        began = time.monotonic()
        for k in range(1000):
            answer = client.query(f"INSERT INTO ovl.filling (k, v) VALUES ({k}, {data})")  # what is written over would be compacted away
            if answer.opcode != RESULT:
                break
            warned += answer.warnings
            expect(time.monotonic() < began + 60, "not refused")
            time.sleep(0.1)
        took = time.monotonic() - began
        expect_error(answer, INVALID, text=refusal)
        expect(warned == ["Guardrail replica_disk_usage violated: Replica disk usage exceeds warning threshold"], f"warnings were {warned}")
        expect_error(client.query("DELETE FROM ovl.filling WHERE k = 1"), INVALID, text=refusal)
        client.done("SELECT k FROM ovl.filling WHERE k = 1")
        client.done("DROP TABLE ovl.filling")
    expect("Guardrail local_data_disk_usage violated: Local data disk usage " in node.log_tail(), node.log_tail())
    node.stop()
    node.start()
    with Client() as client:
        client.done("INSERT INTO ovl.t (k, v) VALUES (1, 'one')")
    return f"refused after {took:.1f} s"
