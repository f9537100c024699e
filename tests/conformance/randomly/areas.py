# SPDX-License-Identifier: Apache-2.0
"""Rounds about one area each, which rounds.py does not reach or seldom: what is in order and what is refused, from small sets.

A round is made from the seed, the area's name and its number alone, so that the rounds of rounds.py stay as they were."""

import json
import random
import re

from scripts import Statement

from . import values
from .rounds import Step
from .values import Type
from .views import views


class Round:
    """The steps of a round as they are made."""

    def __init__(self, rng):
        self.rng = rng
        self.steps = []

    def pick(self, *of):
        return self.rng.choice(of)

    def ddl(self, text, *tables):
        self.steps.append(Step(Statement(text), tables, True))

    def ask(self, text, bound=None, table="t"):
        """`bound`: what the markers are given, once."""
        self.steps.append(Step(Statement(text, None, None if bound is None else [bound]), (table,)))


def raw(data):
    return {"raw": data.hex()}


# --- elements above 64 KiB, vectors --------------------------------------------------------------------------------------

SIZES = [0, 1, 65534, 65535, 65536, 65537, 131072, 200000]


def large_elements(r, count):
    r.ddl("CREATE TABLE t (k int PRIMARY KEY, s set<text>, sb set<blob>, m map<text, int>, mb map<blob, int>, l list<text>, fs frozen<set<text>>, "
          "fm frozen<map<text, int>>)", "t")
    long = lambda: {"repeat": [r.pick("61", "62"), r.pick(*SIZES)]}
    for _ in range(count):
        k = r.pick(1, 2)
        s, m = r.pick("s", "s", "sb"), r.pick("m", "m", "mb")
        what = r.pick("add", "add", "put", "put", "take", "delete", "contains", "key", "slice", "element", "read", "whole", "wrong")
        if what == "add":
            r.ask(f"UPDATE t SET {s} = {s} + {{?}} WHERE k = {k}", [long()])
        elif what == "put":
            r.ask(f"UPDATE t SET {m}[?] = ? WHERE k = {k}", [long(), r.pick(1, 2, None)])
        elif what == "take":
            name = r.pick(s, m)
            r.ask(f"UPDATE t SET {name} = {name} - {{?}} WHERE k = {k}", [long()])
        elif what == "delete":
            r.ask(f"DELETE {r.pick(s, m)}[?] FROM t WHERE k = {k}", [long()])
        elif what == "contains":
            r.ask(f"SELECT k FROM t WHERE {r.pick(s, 'fs')} CONTAINS ? ALLOW FILTERING", [long()])
        elif what == "key":
            r.ask(f"SELECT k FROM t WHERE {r.pick(m + ' CONTAINS KEY ?', 'fm CONTAINS KEY ?', m + '[?] = 1')} ALLOW FILTERING", [long()])
        elif what == "slice":
            r.ask(f"SELECT {r.pick(s, m, 'fs', 'fm')}[?..?] FROM t WHERE k = {k}", [long(), long()])
        elif what == "element":
            r.ask(f"SELECT {r.pick(s, m, 'fs', 'fm')}[?] FROM t WHERE k = {k}", [long()])
        elif what == "read":
            r.ask(f"SELECT {s}, {m}, fs, fm FROM t")
        elif what == "whole":
            r.ask("INSERT INTO t (k, fs, fm, l) VALUES (?, {?, ?}, {?: 1}, [?])", [k, long(), long(), long(), long()])
        else:
            r.ask(*r.pick((f"UPDATE t SET s = s + {{?}} WHERE k = {k}", [{"repeat": ["ff", r.pick(1, 65536)]}]), (f"UPDATE t SET s = s + {{?}} WHERE k = {k}", [None]),
                          (f"UPDATE t SET m[?] = 1 WHERE k = {k}", [None]), (f"UPDATE t SET m[?] = 1 WHERE k = {k}", [{"repeat": ["80", 65537]}])))


DIMENSIONS = [1, 2, 3, 8191, 8192, 8193, 16384, 65535, 65536, 100000]


def vectors(r, count):
    made = []
    for _ in range(count):
        what = r.pick("make", "make", "refused", "write", "write", "write", "write", "wrong", "wrong", "read", "type", "similar", "delete")
        if what == "make" or not made:
            name, of, size = f"t{len(made)}", r.pick("float", "float", "int", "bigint", "boolean", "tinyint", "text"), r.pick(*DIMENSIONS)
            made.append((name, of, size))
            r.ddl(f"CREATE TABLE {name} (k int PRIMARY KEY, v vector<{of}, {size}>)", name)
            continue
        name, of, size = r.pick(*made)
        wide = {"float": "3f800000", "int": "00000007", "bigint": "0000000000000007", "boolean": "01", "tinyint": "0107", "text": "0161"}[of]
        if what == "refused":
            size = r.pick("0", "-1", "2147483648", "1.5", "'3'", "", "x")
            r.ddl(f"CREATE TABLE bad (k int PRIMARY KEY, v vector<{r.pick('float', 'int', 'text', 'nothing')}, {size}>)", "bad")
        elif what == "write":
            r.ask(f"INSERT INTO {name} (k, v) VALUES (?, ?)", [r.pick(1, 2), {"repeat": [wide, size]}], name)
        elif what == "wrong":
            fewer = r.pick(0, size - 1, size + 1, 2 * size)
            r.ask(f"INSERT INTO {name} (k, v) VALUES (3, ?)", [r.pick({"repeat": [wide, fewer]}, {"repeat": ["ff", r.pick(1, 7, 4 * size + 1)]}, None)], name)
        elif what == "read":
            r.ask(r.pick(f"SELECT k, v FROM {name}", f"SELECT v FROM {name} WHERE k = 1", f"SELECT CAST(v AS text) FROM {name}"), None, name)
        elif what == "type":
            r.ask(f"SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = '%KS%' AND table_name = '{name}'", None, name)
        elif what == "similar":
            r.ask(f"SELECT k, similarity_{r.pick('euclidean', 'dot_product')}(v, v) FROM {name} WHERE k = {r.pick(1, 9)}", None, name)
        else:
            r.ask(f"DELETE {r.pick('v', 'v', 'v[0]')} FROM {name} WHERE k = {r.pick(1, 2)}", None, name)


# --- DESCRIBE, keyspaces -------------------------------------------------------------------------------------------------

DESCRIBED = ["plain", "Quoted", "two words", "select", "x_1", "1st", 'a"b', "UPPER"]
QUOTED = {"select"}


def named(name):
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in QUOTED else '"' + name.replace('"', '""') + '"'


def describe_internals(r, count):
    tables, types = {}, []
    column_types = ["int", "text", "list<int>", "frozen<set<text>>", "map<text, int>", "tuple<int, text>", "vector<float, 2>", "decimal"]
    word = lambda: r.pick("DESC", "DESCRIBE")
    for _ in range(count):
        what = r.pick("table", "add", "drop", "drop", "drop", "internals", "internals", "internals", "list", "list", "type", "again", "wrong")
        if what == "table" or not tables:
            name = r.pick("plain", "Quoted", "select", "x_1", "UPPER", "1st")
            columns = r.rng.sample(DESCRIBED, 4)
            if name not in tables:
                tables[name] = ({c: r.pick(*column_types) for c in columns}, {})
            shown = ", ".join(f"{named(c)} {kind}" for c, kind in tables[name][0].items())
            r.ddl(f"CREATE TABLE IF NOT EXISTS {named(name)} (key int, c int, {shown}, PRIMARY KEY (key, c))", name)
            continue
        name = r.pick(*tables)
        columns, dropped = tables[name]
        q = named(name)
        if what == "drop" and not columns:
            what = "add"
        if what == "add":
            column = r.pick(*DESCRIBED)
            kind = r.pick(*column_types)
            if column in dropped and r.rng.random() < 0.8:  # as it was, or it is refused
                kind = dropped[column]
            if column not in columns and dropped.get(column, kind) == kind:
                columns[column] = kind
            r.ddl(f"ALTER TABLE {q} ADD {named(column)} {kind}", name)
        elif what == "drop":
            column = r.pick(*columns, "nothing")
            if column in columns:
                dropped[column] = columns.pop(column)
            r.ddl(f"ALTER TABLE {q} DROP {named(column)}" + r.pick("", f" USING TIMESTAMP {r.pick(0, 1, 1000, 2000)}"), name)
        elif what == "internals":
            r.ask(f"{word()} {r.pick('TABLE ', 'TABLE ', '')}{q}{r.pick(' WITH INTERNALS', ' WITH INTERNALS', ' WITH INTERNALS', '')}", None, name)
        elif what == "list":
            r.ask(f"{word()} {r.pick('TABLES', 'TYPES', 'FUNCTIONS', 'AGGREGATES')}", None, name)
        elif what == "type":
            kind = r.pick(*DESCRIBED)
            types.append(kind)
            fields = ", ".join(f"{named(f)} {r.pick('int', 'text', 'frozen<list<int>>')}" for f in r.rng.sample(DESCRIBED, 2))
            r.ddl(f"CREATE TYPE IF NOT EXISTS {named(kind)} ({fields})", name)
        elif what == "again":
            r.ask(r.pick(f"SELECT column_name, kind, type FROM system_schema.dropped_columns WHERE keyspace_name = '%KS%' AND table_name = '{name}'",
                         f"DESCRIBE TYPE {named(r.pick(*types)) if types else 'nothing'}"), None, name)
        else:
            r.ask(r.pick("DESC TABLE nothing WITH INTERNALS", f"DESC TABLE {q} WITH INTERNAL", "DESC TABLES WITH INTERNALS", f"DESC TABLE {name.lower() + 'x'}",
                         "DESC TYPE nothing", f"DESC COLUMNS {q}", f"DESC TABLE {q} INTERNALS"), None, name)


def replication(r, count):
    names = [f"%KS%_{letter}" for letter in "ab"]
    exists = dict.fromkeys(names, False)

    def factor(key, number):
        return f"'{key}': {number}"

    for name in names:
        r.ask(f"DROP KEYSPACE IF EXISTS {name}")
    for _ in range(count):
        name = r.pick(*names)
        what = r.pick("make", "make", "alter", "alter", "alter", "show", "show", "describe", "drop")
        parts = [r.pick("'class': 'NetworkTopologyStrategy'", "'class': 'NetworkTopologyStrategy'", "'class': 'NetworkTopologyStrategy'",
                        "'class': 'org.apache.cassandra.locator.NetworkTopologyStrategy'", "'class': 'SimpleStrategy'")]
        good = ["1", "'1'"]
        number = lambda: r.pick(*good, *good, *good, "0", "'0'", "-1", "'x'", "''", "1.5", "'1/0'")
        for key in r.pick(["replication_factor"], ["replication_factor"], ["datacenter1"], ["replication_factor", "datacenter1"], [], ["nowhere"],
                          ["replication_factor", "nowhere"]):
            parts.append(factor(key, number()))
        replicated = "{" + ", ".join(parts) + "}"
        also = r.pick("", "", f" AND durable_writes = {r.pick('true', 'false')}")
        if what == "make":
            r.ask(f"CREATE KEYSPACE {r.pick('IF NOT EXISTS ', '')}{name} WITH replication = {replicated}{also}")
        elif what == "alter":
            r.ask(f"ALTER KEYSPACE {r.pick('', '', 'IF EXISTS ')}{name} WITH " + r.pick(f"replication = {replicated}{also}", f"replication = {replicated}{also}",
                                                                                     "durable_writes = false"))
        elif what == "show":
            r.ask(f"SELECT replication, durable_writes FROM system_schema.keyspaces WHERE keyspace_name = '{name}'")
        elif what == "describe":
            r.ask(f"DESC ONLY KEYSPACE {name}")
        else:
            r.ask(f"DROP KEYSPACE {r.pick('IF EXISTS ', 'IF EXISTS ', '')}{name}")
    for name in names:
        r.ask(f"SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{name}'")
        r.ask(f"DROP KEYSPACE IF EXISTS {name}")


# --- arithmetic, numbers, names ------------------------------------------------------------------------------------------

OPERANDS = {"i": "int", "b": "bigint", "s": "smallint", "ti": "tinyint", "v": "varint", "f": "float", "d": "double", "de": "decimal", "x": "text",
            "ts": "timestamp", "da": "date", "du": "duration", "tm": "time", "bo": "boolean"}
LITERALS = ["1", "0", "-1", "2147483648", "1.5", "1e2", "1d", "2h", "1mo", "'x'", "'2024-01-31'", "null", "(int)2", "(bigint)3", "(duration)1d"]


def operand_table(r):
    r.ddl("CREATE TABLE t (k int PRIMARY KEY, " + ", ".join(f"{n} {kind}" for n, kind in OPERANDS.items()) + ")", "t")
    picked = {"f": "1.5", "d": "2.5", "de": "3.5", "x": "'x'", "ts": "'2024-01-31T10:00:00Z'", "da": "'2024-01-31'", "du": "1mo2h", "tm": "'10:00:00'", "bo": "true"}
    r.ask(f"INSERT INTO t (k, {', '.join(OPERANDS)}) VALUES (1, {', '.join(picked.get(n, '10') for n in OPERANDS)})")


def marker_arithmetic(r, count):
    operand_table(r)
    for _ in range(count):
        name = r.pick(*OPERANDS)
        kind = OPERANDS[name]
        # The other side of a moment is a duration.
        beside = "duration" if kind in ("timestamp", "date") else kind
        if r.rng.random() < 0.1:
            beside = r.pick("int", "text", "duration", "double")
        given = r.pick(None, raw(b"")) if r.rng.random() < 0.06 else raw(values.value(r.rng, Type(beside)).wire)
        operator = r.pick("+", "-", "+", "-", "*", "/", "%")
        literal = r.pick(*LITERALS)
        what = r.pick("right", "right", "left", "hint", "hint", "literal", "literal", "set", "where", "alone")
        if what == "right":
            r.ask(f"SELECT {name} {operator} ? FROM t", [given])
        elif what == "left":
            r.ask(f"SELECT ? {operator} {name} FROM t", [given])
        elif what == "hint":
            r.ask(f"SELECT {r.pick(f'({beside})? {operator} {name}', f'{name} {operator} ({beside})?', f'({name} {operator} ({beside})?) {operator} {literal}')} FROM t", [given])
        elif what == "literal":
            left, right = r.pick((name, literal), (literal, name), (literal, r.pick(*LITERALS)))
            r.ask(f"SELECT {left} {operator} {right} FROM t")
        elif what == "set":
            left, right, bound = r.pick((name, "?", [given]), ("?", literal, [given]), (literal, r.pick(*LITERALS), None))
            r.ask(f"INSERT INTO t (k, {name}) VALUES (2, {left if left != name else literal} {operator} {right})", bound)
        elif what == "where":
            r.ask(f"SELECT k FROM t WHERE {name} {r.pick('=', '<', '>=')} {literal} {operator} ({beside})? ALLOW FILTERING", [given])
        else:
            r.ask(f"SELECT ? {operator} {r.pick('?', literal)} FROM t", [given])


FLOATS = ["NaN", "Infinity", "-Infinity", "-NaN", "0.0", "-0.0", "1", "1.5", "-1e10", "3.4e38", "1e39", "1e-46", "1.7976931348623157e308", "1e309", "2147483648", "9.3e18"]
TARGETS = ["tinyint", "smallint", "int", "bigint", "varint", "float", "double", "decimal", "text", "ascii", "boolean", "timestamp"]


def nan_conversions(r, count):
    r.ddl("CREATE TABLE t (k int PRIMARY KEY, f float, d double, i int, b bigint, v varint, de decimal, x text, l list<double>, s set<float>)", "t")
    for k in range(4):
        r.ask(f"INSERT INTO t (k, f, d, i, b, v, de) VALUES ({k}, {FLOATS[k]}, {FLOATS[k]}, {k}, {k}, {k}, {k}.5)")
    for _ in range(count):
        k, column, other = r.rng.randrange(6), r.pick("f", "d"), r.pick("i", "b", "v", "de", "f", "d")
        number = r.pick(*FLOATS)
        what = r.pick("write", "write", "into", "cast", "cast", "cast", "sum", "sum", "hint", "function", "aggregate", "json", "where", "collect")
        if what == "write":
            r.ask(f"INSERT INTO t (k, {column}) VALUES ({k}, {number})")
        elif what == "into":
            r.ask(f"INSERT INTO t (k, {r.pick('i', 'b', 'v', 'de', 'x')}) VALUES (9, {r.pick(number, 'NaN', 'Infinity', '(int)NaN', '(double)NaN')})")
        elif what == "cast":
            r.ask(f"SELECT CAST({column} AS {r.pick(*TARGETS)}) FROM t WHERE k = {k}")
        elif what == "sum":
            r.ask(f"SELECT {column} {r.pick('+', '-', '*', '/', '%')} {r.pick(other, number)} FROM t WHERE k = {k}")
        elif what == "hint":
            r.ask(f"SELECT {r.pick('(float)', '(double)', '(int)', '(decimal)')}{number} {r.pick('+', '*')} {other} FROM t WHERE k = {k}")
        elif what == "function":
            r.ask(f"SELECT {r.pick('abs', 'exp', 'log', 'round', 'to_json', 'float_as_blob', 'double_as_blob', 'mask_default')}({column}) FROM t WHERE k = {k}")
        elif what == "aggregate":
            r.ask(f"SELECT {r.pick('min', 'max', 'sum', 'avg', 'count')}({column}) FROM t WHERE k IN ({k}, {r.rng.randrange(6)})")
        elif what == "json":
            told = r.pick('"NaN"', '"Infinity"', '"-Infinity"', "NaN", "1e400", '"1e400"', '"nan"', "1e39", '""')
            r.ask(f"INSERT INTO t JSON '{{\"k\": {k}, \"{r.pick('f', 'd', 'i', 'de', 'v')}\": {told}}}'")
        elif what == "where":
            r.ask(f"SELECT k FROM t WHERE {column} {r.pick('=', '<', '>=', '>')} {number} ALLOW FILTERING")
        else:
            r.ask(r.pick(f"INSERT INTO t (k, l, s) VALUES ({k}, [{number}, {r.pick(*FLOATS)}], {{{number}, {r.pick(*FLOATS)}}})", f"SELECT l, s FROM t WHERE k = {k}",
                         f"SELECT collection_{r.pick('min', 'max', 'sum', 'avg')}({r.pick('l', 's')}) FROM t WHERE k = {k}"))


# By the column they take, each in the ways of spelling it.
SPELLED = {
    "i": ["toJson", "intAsBlob", "blobAsInt", "castAsText", "abs", "maskDefault"], "ts": ["toDate", "toUnixTimestamp", "timestampAsBlob", "minTimeuuid"],
    "da": ["toTimestamp", "toUnixTimestamp", "dateAsBlob"], "tu": ["toDate", "toTimestamp", "dateOf", "unixTimestampOf", "toUnixTimestamp", "timeuuidAsBlob"],
    "x": ["textAsBlob", "varcharAsBlob", "toJson"], "bl": ["blobAsText", "blobAsInt", "blobAsBigint", "blobAsBlob"], "m": ["mapKeys", "map_values", "toJson"],
    "b": ["bigintAsBlob", "castAsInt"], "u": ["uuidAsBlob"], "d": ["doubleAsBlob", "round"], "k": ["token", "countRows"],
}


def spell(r, name):
    snake = re.sub(r"(?<!^)([A-Z])", lambda found: "_" + found[1].lower(), name)
    return r.pick(name, name, name.lower(), name.upper(), snake, f'"{name}"', f'"{snake}"', f"system.{name}", f"system.{snake}")


def legacy_names(r, count):
    r.ddl("CREATE TABLE t (k int PRIMARY KEY, i int, b bigint, x text, bl blob, u uuid, tu timeuuid, ts timestamp, da date, d double, m map<text, int>)", "t")
    r.ask("INSERT INTO t (k, i, b, x, bl, u, tu, ts, da, d, m) VALUES (1, 2, 3, 'x', 0x00000001, c7a3b2d0-0b1f-4f8e-8a55-0123456789ab, "
          "5a1c395e-b41f-11e5-9f22-ba0be0483c18, '2024-01-31T10:00:00Z', '2024-01-31', 2.5, {'a': 1})")
    for _ in range(count):
        column = r.pick(*SPELLED)
        call = f"{spell(r, r.pick(*SPELLED[column]))}({column})"
        what = r.pick("one", "one", "one", "two", "other", "none", "nested", "alias", "none of these", "json", "where", "set")
        if what == "one":
            r.ask(f"SELECT {call} FROM t")
        elif what == "two":
            another = r.pick(*SPELLED)
            r.ask(f"SELECT {call}, {spell(r, r.pick(*SPELLED[another]))}({another}) FROM t")
        elif what == "other":  # of another type
            r.ask(f"SELECT {spell(r, r.pick(*SPELLED[column]))}({r.pick(*SPELLED)}) FROM t")
        elif what == "none":
            r.ask(f"SELECT {spell(r, r.pick(*SPELLED[column]))}({r.pick('', f'{column}, {column}', '*')}) FROM t")
        elif what == "nested":
            r.ask(f"SELECT {spell(r, r.pick('blobAsInt', 'blobAsBigint', 'blobAsText'))}({spell(r, r.pick('intAsBlob', 'bigintAsBlob', 'textAsBlob'))}({r.pick('i', 'b', 'x')})) FROM t")
        elif what == "alias":
            r.ask(f"SELECT {call} AS " + r.pick("a", '"A"', "total") + " FROM t")
        elif what == "none of these":
            r.ask(f"SELECT {spell(r, r.pick('currentTimestamp', 'currentDate', 'currentTime', 'currentTimeUUID', 'now', 'uuid'))}() FROM t WHERE k = 99")
        elif what == "json":
            r.ask(f"SELECT JSON {call} FROM t")
        elif what == "where":
            r.ask(f"SELECT i FROM t WHERE k = {spell(r, 'blobAsInt')}({spell(r, 'intAsBlob')}({r.pick('1', '2', 'null', chr(39) + 'x' + chr(39))}))")
        else:
            r.ask(f"INSERT INTO t (k, bl) VALUES (2, {spell(r, r.pick('intAsBlob', 'textAsBlob', 'bigintAsBlob', 'dateAsBlob'))}({r.pick('1', chr(39) + 'x' + chr(39), 'null')}))")


# --- shapes --------------------------------------------------------------------------------------------------------------

SHAPED = {"i": "int", "x": "text", "l": "list<int>", "s": "set<text>", "m": "map<text, int>", "mi": "map<int, frozen<list<int>>>", "fl": "frozen<list<text>>",
          "fs": "frozen<set<int>>", "fm": "frozen<map<int, text>>", "tp": "tuple<int, text>", "u": "u", "fu": "frozen<u>", "v": "vector<int, 2>", "bo": "boolean"}


def shaped_table(r):
    r.ddl("CREATE TYPE u (a int, b text)")
    r.ddl("CREATE TABLE t (k int PRIMARY KEY, " + ", ".join(f"{n} {kind}" for n, kind in SHAPED.items()) + ")", "t")


def any_json(r, depth=0):
    if depth > 2 or r.rng.random() < 0.55:
        return r.pick(None, None, 1, 2, -1, 1.5, "", "a", "1", True, 2147483648)
    if r.rng.random() < 0.5:
        return [any_json(r, depth + 1) for _ in range(r.pick(0, 1, 2, 2, 3))]
    return {r.pick("a", "b", "1", "2", "", "null", "z"): any_json(r, depth + 1) for _ in range(r.pick(0, 1, 2))}


FITTING = {"i": [1, "1"], "x": ["a", ""], "l": [[], [1], [1, 2]], "s": [["a"], ["b", "a"], []], "m": [{"a": 1}, {}], "mi": [{"1": [1]}, {"2": []}], "fl": [["a"], []],
           "fs": [[2, 1], []], "fm": [{"1": "a"}, {}], "tp": [[1, "a"], [None, "a"]], "u": [{"a": 1, "b": "x"}, {"b": None}], "fu": [{"a": 1}, {}], "v": [[1, 2]], "bo": [True, "false"]}


def bent_json(r, made):
    """With null or something else in one place."""
    if isinstance(made, list) and made and r.rng.random() < 0.7:
        at = r.rng.randrange(len(made))
        return made[:at] + [r.pick(None, None, bent_json(r, made[at]))] + made[at + 1:]
    if isinstance(made, dict) and made and r.rng.random() < 0.7:
        name = r.pick(*made)
        return made | r.pick({name: None}, {name: bent_json(r, made[name])}, {"z": 1}, {"null": 1}, {"": None})
    return any_json(r)


def json_shapes(r, count):
    shaped_table(r)
    for _ in range(count):
        name = r.pick(*SHAPED)
        k = r.pick(1, 2, 3)
        if r.rng.random() < 0.15:
            r.ask(f"SELECT {r.pick('JSON *', '*', name, f'JSON {name}', f'to_json({name})')} FROM t WHERE k = {k}")
            continue
        told = r.pick(*FITTING[name])
        if r.rng.random() < 0.7:
            told = bent_json(r, told)
        told = json.dumps(told)
        if r.rng.random() < 0.1:
            r.ask(f"INSERT INTO t (k, {name}) VALUES ({k}, from_json({values.quote(told)}))")
            continue
        text = f'{{"k": {r.pick(k, k, k, k, k, "null", "[]", chr(34) + "1" + chr(34))}, "{name}": {told}}}'
        otherwise = r.pick("", "", "", " DEFAULT NULL", " DEFAULT UNSET")
        if r.rng.random() < 0.3:
            r.ask(f"INSERT INTO t JSON ?{otherwise}", [text])
        else:
            r.ask(f"INSERT INTO t JSON {values.quote(text)}{otherwise}")


def sized(*parts):
    return b"".join(values.sized(part) for part in parts)


SHAPES = ["[]", "[1]", "[1, 2]", "['a']", "[null]", "[[1]]", "{}", "{1}", "{'a'}", "{1, 1}", "{null}", "{1: 'a'}", "{'a': 1}", "{1: null}", "{null: 1}", "{a: 1}", "{a: 1, b: 'x'}",
          "{b: null}", "{z: 1}", "(1, 'a')", "(1)", "(1, 'a', 2)", "(null, null)", "('a', 1)", "1", "'a'", "''", "null", "0x", "0x0000000000", "{1: [1]}", "{1: {1}}", "true"]
# Bytes: a collection's count and items; what a tuple and a user type has; what is cut off, left over, or negative.
ONE, TWO, A = b"\0\0\0\1", b"\0\0\0\2", b"a"
BYTES = [b"", b"\0\0\0\0", b"\0\0\0", ONE, ONE + sized(ONE), TWO + sized(ONE, TWO), TWO + sized(TWO, ONE), TWO + sized(ONE, ONE), ONE + sized(None), ONE + sized(b""), ONE + sized(A),
         ONE + sized(ONE, A), ONE + sized(A, ONE), ONE + sized(ONE, None), ONE + sized(None, A), b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", ONE + sized(ONE) + b"\0", ONE + b"\0\0\0\5" + ONE,
         sized(ONE, A), sized(ONE), sized(None, None), sized(ONE, A, ONE), sized(A, A), ONE + TWO, ONE, ONE + sized(b"\xff"), TWO + sized(ONE, A)]


def collection_shapes(r, count):
    shaped_table(r)
    names = [n for n in SHAPED if n not in ("i", "x", "bo")]
    for _ in range(count):
        name, k = r.pick(*names), r.pick(1, 2, 3)
        what = r.pick("literal", "literal", "literal", "bind", "bind", "bind", "add", "element", "where", "read")
        literal, data = r.pick(*SHAPES), raw(r.pick(*BYTES))
        if what == "literal":
            r.ask(f"INSERT INTO t (k, {name}) VALUES ({k}, {literal})")
        elif what == "bind":
            r.ask(f"INSERT INTO t (k, {name}) VALUES ({k}, ?)", [data])
        elif what == "add":
            sign = r.pick("+", "+", "-")
            r.ask(*r.pick((f"UPDATE t SET {name} = {name} {sign} {literal} WHERE k = {k}",), (f"UPDATE t SET {name} = {name} {sign} ? WHERE k = {k}", [data])))
        elif what == "element":
            r.ask(*r.pick((f"UPDATE t SET {name}[{r.pick('0', '1', chr(39) + 'a' + chr(39), 'null')}] = {literal} WHERE k = {k}",),
                          (f"UPDATE t SET {name} = [?] WHERE k = {k}", [data]), (f"UPDATE t SET {name} = {{?}} WHERE k = {k}", [data])))
        elif what == "where":
            r.ask(f"SELECT k FROM t WHERE {name} {r.pick('=', 'CONTAINS', 'CONTAINS KEY')} {literal} ALLOW FILTERING")
        else:
            r.ask(f"SELECT {r.pick(name, '*')} FROM t WHERE k = {k}")


# --- COMPACT STORAGE, slices ---------------------------------------------------------------------------------------------

EMPTY = {"text": ["''", "''", "'a'", "'b'"], "blob": ["0x", "0x", "0x00", "0x61"], "ascii": ["''", "'a'"], "int": ["1", "2", "blob_as_int(0x)"], "timestamp": ["0", "blob_as_timestamp(0x)"]}


def compact_empty(r, count):
    tables = []
    for number in range(4):
        kinds = [r.pick(*EMPTY) for _ in range(r.pick(1, 1, 2))]
        value, compact = r.pick("v int", "v int", "v text", ""), "" if number == 3 else " WITH COMPACT STORAGE"
        names = ["c1", "c2"][:len(kinds)]
        order = r.pick("", f"{' AND' if compact else ' WITH'} CLUSTERING ORDER BY (c1 DESC{', c2 ASC' if len(kinds) > 1 else ''})")
        name = f"t{number}"
        tables.append((name, names, kinds, value))
        r.ddl(f"CREATE TABLE {name} (k int, {', '.join(f'{n} {kind}' for n, kind in zip(names, kinds))}, {value + ', ' if value else ''}PRIMARY KEY (k, {', '.join(names)})){compact}{order}", name)
    for _ in range(count):
        name, names, kinds, value = r.pick(*tables)
        told = [r.pick(*EMPTY[kind], *EMPTY[kind], "null") if r.rng.random() < 0.2 else r.pick(*EMPTY[kind]) for kind in kinds]
        few = len(names) if r.rng.random() < 0.75 else r.rng.randrange(len(names) + 1)
        row = "".join(f" AND {n} = {v}" for n, v in zip(names[:few], told))
        what = r.pick("insert", "insert", "insert", "bind", "bind", "update", "delete", "read", "read", "slice", "slice", "several", "json")
        given = r.pick("'x'", "''", "null") if value == "v text" else r.pick("1", "2", "null")
        if what == "insert":
            columns = ["k", *names[:few]] + ["v"] * bool(value)
            r.ask(f"INSERT INTO {name} ({', '.join(columns)}) VALUES (1, {', '.join(told[:few] + [given] * bool(value))})".replace("(1, )", "(1)"), None, name)
        elif what == "bind":
            data = [r.pick(raw(b""), raw(b""), None, raw(b"\0\0\0\1"), raw(b"a"))]
            condition = "k = 1" + "".join(f" AND {n} = {v}" for n, v in zip(names[1:], told[1:])) + f" AND c1 {r.pick('=', '=', '>', '<=')} ?"
            r.ask(f"{r.pick('SELECT *', 'DELETE')} FROM {name} WHERE {condition}" if not value or r.rng.random() < 0.5 else
                  f"INSERT INTO {name} (k, {', '.join(names)}, v) VALUES (1, ?, {', '.join(told[1:] + [given])})", data, name)
        elif what == "update":
            r.ask(f"UPDATE {name} SET v = {given} WHERE k = 1{row}", None, name)
        elif what == "delete":
            r.ask(f"DELETE {r.pick('', '', 'v ')}FROM {name} WHERE k = 1{row}", None, name)
        elif what == "read":
            r.ask(f"SELECT * FROM {name}{r.pick('', f' WHERE k = 1{row}')}", None, name)
        elif what == "slice":
            r.ask(f"SELECT * FROM {name} WHERE k = 1 AND c1 {r.pick('<', '<=', '>', '>=')} {told[0]}", None, name)
        elif what == "several":
            r.ask(f"SELECT * FROM {name} WHERE k = 1 AND " + r.pick(f"c1 IN ({told[0]}, {r.pick(*EMPTY[kinds[0]])})", f"({', '.join(names)}) {r.pick('>', '<=', '=')} ({', '.join(told)})"), None, name)
        else:
            first = r.pick('""', '"a"', "null", '"0x"', "1")
            rest = "".join(f', "{n}": {r.pick(chr(34) * 2, "1", "null")}' for n in names[1:]) + (', "v": null' if value else "")
            r.ask(f"INSERT INTO {name} JSON '{{\"k\": 1, \"c1\": {first}{rest}}}'", None, name)


FRACTIONS = ["1", "1.0", "1.5", "1.50", "-1.5", "2", "2.25", "0.1", "1e2", "0", "-0.0", "1.25"]
KEYED = {"md": "decimal", "mf": "float", "mb": "double", "mv": "varint", "mi": "int"}


def map_slices(r, count):
    columns = {n: f"map<{kind}, int>" for n, kind in KEYED.items()} | {"sd": "set<decimal>", "sf": "set<float>", "fmd": "frozen<map<decimal, int>>", "fmb": "frozen<map<double, int>>",
                                                                     "fsd": "frozen<set<decimal>>"}
    r.ddl("CREATE TABLE t (k int PRIMARY KEY, " + ", ".join(f"{n} {kind}" for n, kind in columns.items()) + ")", "t")
    # Each value once in a literal: of two forms of one decimal there another is kept.
    whole = lambda n: list({float(v): v for v in r.rng.sample(["1", "2", "100"] if n in ("mv", "mi") else FRACTIONS, 3)}.values())
    for _ in range(count):
        name, k = r.pick(*columns), r.pick(1, 2)
        key = r.pick(*FRACTIONS, "NaN", "null", "'x'") if r.rng.random() < 0.3 else r.pick(*FRACTIONS)
        other = r.pick(*FRACTIONS)
        what = r.pick("write", "write", "put", "slice", "slice", "slice", "slice", "element", "element", "bound", "take", "contains")
        if what == "write":
            keys = whole(name)
            shown = ", ".join(keys) if "set" in columns[name] else ", ".join(f"{v}: {at}" for at, v in enumerate(keys))
            r.ask(f"INSERT INTO t (k, {name}) VALUES ({k}, {{{shown}}})")
        elif what == "put":
            r.ask(f"UPDATE t SET {name}[{key}] = {r.pick('1', '2', 'null')} WHERE k = {k}")
        elif what == "slice":
            limits = r.pick(f"{key}..{other}", f"{key}..{other}", f"{key} .. {other}", f"{key}..", f"..{other}", "..", f"{key}..{key}")
            r.ask(f"SELECT {name}[{limits}] FROM t WHERE k = {k}")
        elif what == "element":
            r.ask(f"SELECT {name}[{key}] FROM t WHERE k = {k}")
        elif what == "bound":
            kind = Type(KEYED.get(name) or re.search(r"\w+<(?:\w+<)?(\w+)", columns[name].replace("frozen<", ""))[1])
            given = [raw(values.value(r.rng, kind).wire) for _ in range(2)]
            if r.rng.random() < 0.1:
                given[0] = r.pick(None, raw(b"\1"))
            r.ask(f"SELECT {name}[?..?] FROM t WHERE k = {k}", given)
        elif what == "take":
            r.ask(f"DELETE {name}[{key}] FROM t WHERE k = {k}")
        else:
            r.ask(f"SELECT k FROM t WHERE {name} {r.pick('CONTAINS', 'CONTAINS KEY')} {key} ALLOW FILTERING")


AREAS = {make.__name__: make for make in (large_elements, vectors, describe_internals, replication, marker_arithmetic, nan_conversions, legacy_names, json_shapes,
                                          collection_shapes, compact_empty, map_slices, views)}


def make_area(area, seed, number, count):
    """`count` statements about `area` beside those that make the schema."""
    made = Round(random.Random(f"{area}/{seed}/{number}"))
    AREAS[area](made, count)
    return made.steps


# --- which statements are about which area -------------------------------------------------------------------------------

NUMBER = r"-?\d+\.\d+"
MARKS = {
    "describe_internals": r"^DESC\w* .*\bWITH INTERNALS|^DESC\w* (TABLES|TYPES|FUNCTIONS|AGGREGATES)$|^ALTER TABLE .* DROP ",
    "replication": r"^(CREATE|ALTER) KEYSPACE .*NetworkTopologyStrategy",
    "marker_arithmetic": r"(\? [-+*/%] \S|[^+=] [-+*/%] (\(\w+\))?\?)(?=.*\bFROM\b)|^INSERT .*[-+*/%] \?|VALUES .*\? [-+*/%] | [-+] \d+(d|h|mo)\b|\b\d+(d|h|mo) [-+]",
    "nan_conversions": r"(?<!\w)(NaN|Infinity)\b(?=.* FROM )|CAST\([fd] AS|^INSERT INTO t \(k, (i|b|v|de|x)\) .*(NaN|Infinity)|JSON .*(NaN|Infinity)",
    "legacy_names": r"(?i:\b(to(json|date|timestamp|unixtimestamp)|dateof|unixtimestampof|\w+asblob|blobas\w+|castas\w+|mintimeuuid|mapkeys|maskdefault|countrows))\"?\(",
    "json_shapes": r"^INSERT .*JSON (?:.*(?:null|\[\]|\{\}|\"z\")|\?)",
    "collection_shapes": r"= \?|, \?\)|VALUES \(\d+, [\[{(]|CONTAINS [\[{(]",
    "compact_empty": r"''|\b0x(?![0-9a-f])|\"\"",
    "map_slices": rf"\w\[({NUMBER} ?\.\.|[^\]]*\.\. ?{NUMBER}|\?\.\.\?)",
    "views": r"\bMATERIALIZED VIEW\b|\bmv\d|system_schema\.views",
}


def is_about(area, step, schema):
    """Whether the statement is of the area. `schema`: the text of what made its tables."""
    text, given = step.statement.text, step.statement.values or []
    if area == "large_elements":
        return any(isinstance(v, dict) and len(v.get("repeat", ["", 0])[0]) // 2 * v.get("repeat", ["", 0])[1] > 65535 for row in given for v in row) and "set<" in schema
    if area == "vectors":
        return any(int(size) > 8192 for size in re.findall(r"vector<\w+, (\d+)>", schema))
    if area == "compact_empty" and "COMPACT STORAGE" not in schema:
        return False
    return re.search(MARKS[area], text) is not None


def count_areas(steps):
    """How many of the steps are about each area."""
    made, counts = {}, dict.fromkeys(AREAS, 0)
    for step in steps:
        if step.is_ddl:
            for table in step.tables:
                made[table] = made.get(table, "") + step.statement.text + "\n"
        schema = "".join(made.get(table, "") for table in step.tables)
        for area in AREAS:
            counts[area] += is_about(area, step, schema)
    return counts
