# SPDX-License-Identifier: Apache-2.0
"""Writes gen_*.cql: every type with valid and invalid literals, every type as clustering key and in conditions, every function.

And area_*.cql: of each area of the random statements the first round of a seed."""

from pathlib import Path

from randomly.areas import AREAS, make_area
from randomly.findings import as_script
from scripts import SYSTEM_CHANGE

UUID_A = "5a1c395e-b41f-11e5-9f22-ba0be0483c18"  # version 1
UUID_B = "c7a3b2d0-0b1f-4f8e-8a55-0123456789ab"  # version 4

# What is in order, and what is not a value, of each type.
VALUES = {
    "ascii": ["''", "'a'", "'ab'", "'b'", "'~'"],
    "bigint": ["-9223372036854775808", "-1", "0", "7", "9223372036854775807"],
    "blob": ["0x", "0x00", "0x00ff", "0x7f", "0xff"],
    "boolean": ["false", "true"],
    "date": ["'-5877641-06-23'", "'1969-12-31'", "'1970-01-01'", "'2024-02-29'", "2147533648"],
    "decimal": ["-1e10", "-1.5", "0", "0.1", "1.5", "1.50", "123456789012345678901234567890.5", "1e40"],
    "double": ["-Infinity", "-1.5e300", "-0.0", "0", "1", "3.25", "1e308", "Infinity", "NaN"],
    "float": ["-Infinity", "-1.5", "-0.0", "0.0", "1", "16777217", "3.4e38", "Infinity", "NaN"],
    "inet": ["'0.0.0.0'", "'127.0.0.1'", "'192.168.1.1'", "'::1'", "'2001:db8::ff'"],
    "int": ["-2147483648", "-1", "0", "42", "2147483647"],
    "smallint": ["-32768", "-1", "0", "42", "32767"],
    "text": ["''", "'a'", "'aa'", "'b'", "'é'", "'✓'"],
    "time": ["'00:00:00'", "'00:00:00.000000001'", "'12:30:15.5'", "'23:59:59.999999999'", "43200000000000"],
    "timestamp": ["-1", "0", "'1970-01-02'", "'2024-02-29T12:30:15.123+0000'", "'2024-02-29 12:30+02:00'", "253402300800000"],
    "timeuuid": [UUID_A, "13814000-1dd2-11b2-8080-808080808080", "00000000-0000-1000-0000-000000000000"],
    "tinyint": ["-128", "-1", "0", "42", "127"],
    "uuid": [UUID_A, UUID_B, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"],
    "varint": ["-100000000000000000000000000", "-129", "-1", "0", "128", "255", "100000000000000000000000000"],
    "duration": ["1y2mo3w4d5h6m7s8ms9us10ns", "-1h", "P1Y2M3DT4H5M6S", "P2W", "P0001-02-03T04:05:06", "0s", "2h30m"],
}
INVALID = {
    "ascii": ["'é'", "5", "0x61", "true"],
    "bigint": ["9223372036854775808", "-9223372036854775809", "1.0", "'1'", "0x01", "1e3"],
    "blob": ["0x1", "0xzz", "'00'", "5", "x"],
    "boolean": ["'true'", "1", "0x01", "TRUE", "yes"],
    "date": ["'2024-02-30'", "'2024-13-01'", "'today'", "-1", "4294967296", "'2024-1-1'", "1.5"],
    "decimal": ["'1.5'", "NaN", "0x01", "1e2147483648", "true"],
    "double": ["'1.5'", "nan", "infinity", "-NaN", "0x00", "1e400", "true"],
    "float": ["'1.5'", "0x00", "1e400", "false"],
    "inet": ["'300.1.1.1'", "'::g'", "'localhost.invalid'", "5", "''"],
    "int": ["2147483648", "-2147483649", "1.0", "'1'", "0x00000001", "true", "NaN", "99999999999999999999"],
    "smallint": ["32768", "-32769", "1.5", "'x'", "true"],
    "text": ["1", "1.5", "true", "0x61", UUID_A, "['a']", "{'a'}"],
    "time": ["'24:00:00'", "'12:60:00'", "'12'", "-1", "86400000000000", "'12:00:00.0000000001'", "true"],
    "timestamp": ["'2024-02-30'", "'yesterday'", "1.5", "'2024-02-29T25:00'", "99999999999999999999", "true"],
    "timeuuid": [UUID_B, f"'{UUID_A}'", "5", "0x00"],
    "tinyint": ["128", "-129", "'x'", "1.5", "true"],
    "uuid": [f"'{UUID_A}'", "5", "5a1c395e-b41f-11e5-9f22", "true"],
    "varint": ["1.5", "'5'", "true", "0x05"],
    "duration": ["1", "'1h'", "1h1y", "1h-1m", "P1YT", "1x", "99999999999y"],
}


def literals():
    out = []
    for name, values in VALUES.items():
        out.append(f"CREATE TABLE t_{name} (k int PRIMARY KEY, v {name});")
        for i, value in enumerate(values):
            out.append(f"INSERT INTO t_{name} (k, v) VALUES ({i}, {value});")
        out.append(f"SELECT k, v FROM t_{name};")
        for value in INVALID[name]:
            out.append(f"INSERT INTO t_{name} (k, v) VALUES (100, {value});")
        out.append(f"SELECT v FROM t_{name} WHERE k = 100;")
    return out


def clustering():
    out = []
    for name, values in VALUES.items():
        if name == "duration":
            continue
        for order in ("ASC", "DESC"):
            table = f"c_{name}_{order.lower()}"
            out.append(f"CREATE TABLE {table} (k int, c {name}, v int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c {order});")
            for i, value in enumerate(values):
                out.append(f"INSERT INTO {table} (k, c, v) VALUES (1, {value}, {i});")
            middle = values[len(values) // 2]
            out.append(f"SELECT c, v FROM {table};")
            if order == "ASC":
                out.append(f"SELECT c FROM {table} WHERE k = 1 ORDER BY c DESC LIMIT 3;")
                out.append(f"SELECT min(c), max(c), count(c) FROM {table} WHERE k = 1;")
            out.append(f"SELECT c FROM {table} WHERE k = 1 AND c >= {middle};")
            out.append(f"SELECT c FROM {table} WHERE k = 1 AND c < {middle};")
            out.append(f"SELECT c FROM {table} WHERE k = 1 AND c IN ({values[-1]}, {values[0]});")
            out.append(f"DELETE FROM {table} WHERE k = 1 AND c = {values[0]};")
            out.append(f"SELECT v FROM {table} WHERE k = 1;")
    return out


def partition_keys():
    out = []
    for name, values in VALUES.items():
        if name == "duration":
            continue
        out.append(f"CREATE TABLE p_{name} (k {name} PRIMARY KEY, v int);")
        for i, value in enumerate(values):
            out.append(f"INSERT INTO p_{name} (k, v) VALUES ({value}, {i});")
        out.append(f"SELECT token(k), k, v FROM p_{name};")
        out.append(f"SELECT v FROM p_{name} WHERE k = {values[-1]};")
        out.append(f"SELECT k, v FROM p_{name} WHERE k IN ({values[0]}, {values[-1]});")
        out.append(f"SELECT v FROM p_{name} WHERE k = null;")
    return out


def collections():
    out = []
    for name, values in VALUES.items():
        two = values[:2]
        out.append(f"CREATE TABLE l_{name} (k int PRIMARY KEY, l list<{name}>, m map<int, {name}>, f frozen<list<{name}>>, t tuple<{name}, int>);")
        out.append(f"INSERT INTO l_{name} (k, l, m, f, t) VALUES (1, [{', '.join(values)}], {{1: {values[0]}}}, [{', '.join(two)}], ({values[0]}, 1));")
        out.append(f"SELECT l, m, f, t FROM l_{name};")
        out.append(f"UPDATE l_{name} SET l = l + [{values[-1]}], m[2] = {values[-1]} WHERE k = 1;")
        out.append(f"SELECT l, m FROM l_{name};")
        if name != "duration":
            out.append(f"CREATE TABLE s_{name} (k int PRIMARY KEY, s set<{name}>, m map<{name}, text>);")
            shuffled = list(reversed(values)) + values[:1]
            out.append(f"INSERT INTO s_{name} (k, s, m) VALUES (1, {{{', '.join(shuffled)}}}, {{{', '.join(v + ': ' + repr('v') for v in shuffled)}}});")
            out.append(f"SELECT s, m FROM s_{name};")
            out.append(f"UPDATE s_{name} SET s = s - {{{values[0]}}} WHERE k = 1;")
            out.append(f"DELETE m[{values[-1]}] FROM s_{name} WHERE k = 1;")
            out.append(f"SELECT s, m FROM s_{name};")
            out.append(f"SELECT k FROM s_{name} WHERE s CONTAINS {values[1]} ALLOW FILTERING;")
            out.append(f"SELECT m[{values[1]}] FROM s_{name};")
    return out


TYPES = list(VALUES)


def functions():
    out = ["CREATE TABLE f (k int PRIMARY KEY, " + ", ".join(f"{name}_ {name}" for name in TYPES) + ");"]
    columns = ", ".join(f"{name}_" for name in TYPES)
    picked = {name: values[-2] for name, values in VALUES.items()}
    picked |= {"date": "'2024-02-29'", "timestamp": "'2024-02-29T12:30:15.123+0000'", "timeuuid": UUID_A, "int": "42", "bigint": "7",
               "double": "3.25", "float": "2.5", "decimal": "1.50", "varint": "255", "ascii": "'ab'", "text": "'é'", "duration": "1mo2d3h"}
    out.append(f"INSERT INTO f (k, {columns}) VALUES (1, {', '.join(picked[name] for name in TYPES)});")
    out.append("INSERT INTO f (k) VALUES (2);")
    for name in TYPES:
        column = f"{name}_"
        out.append(f"SELECT {name}_as_blob({column}), {name}asblob({column}) FROM f;")
        out.append(f"SELECT blob_as_{name}({name}_as_blob({column})) FROM f WHERE k = 1;")
        out.append(f"SELECT blob_as_{name}(0x0102) FROM f WHERE k = 1;")
        out.append(f"SELECT blob_as_{name}(0x) FROM f WHERE k = 1;")
        for function in ("abs", "exp", "log", "log10", "round"):
            out.append(f"SELECT {function}({column}) FROM f;")
        for function in ("to_date", "to_timestamp", "to_unix_timestamp", "min_timeuuid", "max_timeuuid"):
            out.append(f"SELECT {function}({column}) FROM f;")
        for function in ("min", "max", "sum", "avg", "count", "to_json"):
            out.append(f"SELECT {function}({column}) FROM f;")
        for function in ("mask_default", "mask_null", "mask_hash"):
            out.append(f"SELECT {function}({column}) FROM f WHERE k = 1;")
    return out


def casts():
    out = ["CREATE TABLE f (k int PRIMARY KEY, " + ", ".join(f"{name}_ {name}" for name in TYPES) + ");"]
    columns = ", ".join(f"{name}_" for name in TYPES)
    rows = {
        "ascii": ("'12'", "'x'"), "bigint": ("300", "-1"), "blob": ("0x01", "0x"), "boolean": ("true", "false"), "date": ("'2024-02-29'", "'1969-12-31'"),
        "decimal": ("1.75", "-3e5"), "double": ("2.5", "-1e20"), "float": ("2.25", "NaN"), "inet": ("'127.0.0.1'", "'::1'"), "int": ("70000", "-5"),
        "smallint": ("300", "-1"), "text": ("'12'", "'x'"), "time": ("'12:30:15.5'", "'00:00:00'"), "timestamp": ("'2024-02-29T12:30:15.123+0000'", "-1"),
        "timeuuid": (UUID_A, UUID_A), "tinyint": ("5", "-5"), "uuid": (UUID_B, UUID_A), "varint": ("70000000000000000000000", "-1"), "duration": ("1mo2d3h", "-5m"),
    }
    for k in (0, 1):
        out.append(f"INSERT INTO f (k, {columns}) VALUES ({k}, {', '.join(rows[name][k] for name in TYPES)});")
    for name in TYPES:
        for target in TYPES:
            out.append(f"SELECT CAST({name}_ AS {target}) FROM f;")
    return out


def arithmetic():
    numbers = ["tinyint", "smallint", "int", "bigint", "varint", "float", "double", "decimal"]
    out = ["CREATE TABLE n (k int PRIMARY KEY, " + ", ".join(f"{name}_ {name}" for name in numbers) + ", ts timestamp, d date, du duration, x text);"]
    columns = ", ".join(f"{name}_" for name in numbers)
    out.append(f"INSERT INTO n (k, {columns}, ts, d, du, x) VALUES (1, 7, 8, 9, 10, 11, 2.5, 3.5, 4.5, '2024-01-31', '2024-01-31', 1mo2h, 'x');")
    out.append(f"INSERT INTO n (k, {columns}) VALUES (2, 127, 32767, 2147483647, 9223372036854775807, 1, 0, 0, 0);")
    for left in numbers:
        for right in numbers:
            out.append(f"SELECT {left}_ + {right}_, {left}_ * {right}_ FROM n;")
            out.append(f"SELECT {left}_ / {right}_ FROM n WHERE k = 1;")
        out.append(f"SELECT -{left}_, {left}_ - {left}_, {left}_ % {left}_ FROM n WHERE k = 1;")
        out.append(f"SELECT {left}_ % 3, {left}_ / 2 FROM n WHERE k = 1;")
        out.append(f"SELECT {left}_ / 0 FROM n WHERE k = 1;")
        out.append(f"SELECT {left}_ % 0 FROM n WHERE k = 1;")
        out.append(f"SELECT {left}_ + x FROM n WHERE k = 1;")
        out.append(f"SELECT {left}_ + 1.5 FROM n WHERE k = 1;")
        out.append(f"SELECT {left}_ + null FROM n WHERE k = 1;")
    for text in ("ts + du", "ts - du", "d + 1d", "d - 1mo", "d + du", "ts + 1ns", "du + du", "ts - ts", "ts + 5", "x + x", "x + 'y'", "x - x", "k + k", "-x", "-d",
                 "-du", "(k + 1) * 2", "k + 1 * 2", "2 + 3", "10 - 2 - 3", "2 * 3 % 4", "k + -1", "(int) 5 + k", "1 / 0"):
        out.append(f"SELECT {text} FROM n WHERE k = 1;")
    return out


# Of each type a smaller, the same and a larger value.
ORDERED = {
    "int": ("-1", "5", "6"), "bigint": ("-1", "5", "6"), "varint": ("-300", "5", "300"), "tinyint": ("-1", "5", "6"), "double": ("-1.5", "2", "NaN"),
    "float": ("-0.0", "0.0", "1"), "decimal": ("1.4", "1.50", "1.6"), "boolean": ("false", "true", "true"), "text": ("'a'", "'b'", "'bb'"),
    "ascii": ("''", "'b'", "'c'"), "blob": ("0x00", "0x7f", "0xff"), "uuid": (UUID_A, UUID_B, "ffffffff-ffff-4fff-bfff-ffffffffffff"),
    "timeuuid": ("13814000-1dd2-11b2-8080-808080808080", UUID_A, "ffffffff-ffff-1fff-bfff-ffffffffffff"), "timestamp": ("-1", "0", "'1970-01-02'"),
    "date": ("'1969-12-31'", "'1970-01-01'", "'1970-01-02'"), "time": ("'00:00:00'", "'00:00:01'", "'23:00:00'"),
    "inet": ("'1.2.3.4'", "'127.0.0.1'", "'::1'"), "list<int>": ("[1]", "[1, 2]", "[2]"), "set<text>": ("{'a'}", "{'b', 'a'}", "{'b'}"),
    "map<text, int>": ("{'a': 1}", "{'a': 2}", "{'b': 1}"), "frozen<list<int>>": ("[]", "[1, 2]", "[2]"), "frozen<set<text>>": ("{}", "{'a', 'b'}", "{'b'}"),
    "frozen<map<text, int>>": ("{'a': 1}", "{'a': 2, 'b': 0}", "{'b': 1}"), "tuple<int, text>": ("(1, null)", "(1, 'a')", "(2, 'a')"),
    "pair": ("{x: 1}", "{x: 1, y: 'a'}", "{x: 2}"), "frozen<pair>": ("{y: 'z'}", "{x: 1, y: 'a'}", "{x: 2}"), "vector<float, 2>": ("[1, 1]", "[1, 2]", "[2, 0]"),
}


def conditions():
    out = ["CREATE TYPE pair (x int, y text);"]
    for number, (name, values) in enumerate(ORDERED.items()):
        low, same, high = values
        table = f"t{number}"
        out.append(f"CREATE TABLE {table} (k int PRIMARY KEY, v {name}, n int);")
        out.append(f"INSERT INTO {table} (k, v, n) VALUES (1, {same}, 0) IF NOT EXISTS;")
        for op in ("=", "!=", "<", "<=", ">", ">="):
            for value in values:
                out.append(f"UPDATE {table} SET n = 0 WHERE k = 1 IF v {op} {value};")
        out.append(f"UPDATE {table} SET n = 0 WHERE k = 1 IF v IN ({low}, {high});")
        out.append(f"UPDATE {table} SET n = 0 WHERE k = 1 IF v IN ({low}, {same}) AND n = 0;")
        out.append(f"UPDATE {table} SET n = 0 WHERE k = 2 IF v != {same};")
        out.append(f"UPDATE {table} SET n = 0 WHERE k = 2 IF v >= {low};")
        out.append(f"UPDATE {table} SET n = 0 WHERE k = 1 IF v > null;")
    return out


AREA_SEED, AREA_STATEMENTS = 18, 70


def area(name):
    steps = [step for step in make_area(name, AREA_SEED, 0, AREA_STATEMENTS) if not SYSTEM_CHANGE.match(step.statement.text)]
    return [as_script(step).replace("%KS%", f"conf_area_{name}") for step in steps]


def main():
    here = Path(__file__).parent
    made = {"gen_literals": literals(), "gen_clustering": clustering(), "gen_partition_keys": partition_keys(), "gen_collections": collections(),
            "gen_functions": functions(), "gen_casts": casts(), "gen_arithmetic": arithmetic(), "gen_conditions": conditions()}
    made |= {f"area_{name}": area(name) for name in AREAS}
    for name, statements in made.items():
        text = "-- Written by tests/conformance/generate.py; edit that.\n" + "\n".join(statements) + "\n"
        path = here / "scripts" / f"{name}.cql"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


main()
