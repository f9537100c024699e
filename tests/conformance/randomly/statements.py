# SPDX-License-Identifier: Apache-2.0
"""Random writes and reads of a table; a part of them invalid on purpose."""

import re

from . import values
from .values import NULL, NUMBERS, Type

TIMESTAMPS = 12  # so few that many writes tie
TTL_FIRST, TTL_STEP = 100000, 100


class Maker:
    """One statement: its text, and the values of its markers when it is prepared."""

    def __init__(self, rng, prepared):
        self.rng = rng
        self.prepared = prepared
        self.makes = []  # for each marker: a function that gives its value
        self.once = False  # to be executed once only

    def term(self, make, chance=0.7):
        """`make`: gives a Value. In the text, or as a marker."""
        if self.prepared and self.rng.random() < chance:
            self.makes.append(make)
            return "?"
        return make().text

    def value(self, column, chance=0.7):
        rng = self.rng
        if column.kind in ("partition", "clustering"):
            def make():
                if rng.random() < 0.02:
                    return NULL if rng.random() < 0.5 else values.Value("''", b"", '""')
                return rng.choice(column.pool) if rng.random() < 0.9 else values.value(rng, column.type)
            return self.term(make, chance)
        return self.term(lambda: nullable(rng, column.type), chance)

    def of_type(self, kind, chance=0.7):
        return self.term(lambda: values.value(self.rng, kind), chance)

    def executions(self, count):
        """What each execution binds."""
        out = []
        for _ in range(1 if self.once else count):
            row = []
            for make in self.makes:
                made = make()
                if self.rng.random() < 0.02:
                    row.append({"unset": True})
                elif made.wire is None:
                    row.append(None)
                else:
                    row.append({"raw": (bent(self.rng, made.wire) if self.rng.random() < 0.01 else made.wire).hex()})
            out.append(row)
        return out


def bent(rng, wire):
    """Bytes that are no value of the type any more, most times."""
    at = rng.randrange(len(wire) + 1)
    return rng.choice([wire[:at], wire + b"\0", b"", wire[:at] + b"\xff" * 4 + wire[at + 4:], wire[:4] + b"\xff\xff\xff\xff"])


WRONG_JSON = ["null", "[]", "{}", "[null]", '{"a": null}', '""', '"x"', "1", "1.5", "true", "[[1]]", '[1, "x", null]', '{"x": [1]}', '"[1]"', "NaN", '"NaN"']


def nullable(rng, kind):
    return NULL if rng.random() < 0.08 else values.value(rng, kind)


# --- writes -----------------------------------------------------------------------------------------------------------


def using(rng, table, ttl, maker):
    parts = []
    if table.timed:
        # Where every cell has the same TTL a tie would be settled by the second of the write.
        at = rng.randint(1, 10**6 if table.default_ttl else TIMESTAMPS)
        parts.append("TIMESTAMP " + maker.term(lambda: values.Value(str(at), at.to_bytes(8, "big"), str(at)), 0.3))
    if ttl and rng.random() < 0.15:
        table.ttls += 1  # each but once, and so far apart that the clock's second settles nothing
        parts.append(f"TTL {TTL_FIRST + TTL_STEP * table.ttls}")
        maker.once = True
    if not parts:
        return ""
    rng.shuffle(parts)
    return " USING " + " AND ".join(parts)


def insert(rng, table, maker, condition=""):
    columns = list(table.keys)
    statics, regulars = table.of("static"), table.of("regular")
    if statics and rng.random() < 0.15:
        columns = table.partition + rng.sample(statics, rng.randint(1, len(statics)))
    else:
        pool = statics + regulars
        columns += rng.sample(pool, rng.randint(0, len(pool)))
    if rng.random() < 0.2:
        rng.shuffle(columns)
    if rng.random() < 0.12:
        return insert_json(rng, table, columns, maker, condition)
    return (f"INSERT INTO {table.name} ({', '.join(c.q for c in columns)}) VALUES ({', '.join(maker.value(c) for c in columns)}){condition}"
            + using(rng, table, True, maker))


def insert_json(rng, table, columns, maker, condition=""):
    parts = []
    for column in columns:
        made = rng.choice(column.pool) if column.pool else nullable(rng, column.type)
        name = column.q if column.q == column.name else column.q.replace('"', '\\"')
        parts.append(f'"{name}": {rng.choice(WRONG_JSON) if rng.random() < 0.04 else made.json}')
    text = "{" + ", ".join(parts) + "}"
    shown = maker.term(lambda: values.Value(values.quote(text), text.encode(), ""), 0.5)
    otherwise = rng.choice(["", "", " DEFAULT NULL", " DEFAULT UNSET"])
    return f"INSERT INTO {table.name} JSON {shown}{otherwise}{condition}" + using(rng, table, True, maker)


def where_row(rng, table, maker, in_chance=0.15):
    parts = []
    for column in table.keys:
        if rng.random() < in_chance:
            parts.append(f"{column.q} IN ({', '.join(maker.value(column) for _ in range(rng.randint(1, 3)))})")
        else:
            parts.append(f"{column.q} = {maker.value(column)}")
    return " AND ".join(parts)


def assignment(rng, column, maker):
    kind, q = column.type, column.q
    if kind.multi_cell and rng.random() < 0.75:
        if kind.kind == "list":
            return rng.choice([
                lambda: f"{q} = {q} + {maker.of_type(kind)}", lambda: f"{q} = {maker.of_type(kind)} + {q}",
                lambda: f"{q} = {q} - {maker.of_type(kind)}", lambda: f"{q} += {maker.of_type(kind)}", lambda: f"{q} -= {maker.of_type(kind)}",
                lambda: f"{q}[{rng.choice([0, 0, 0, 1, 1, 2, 5, -1])}] = {maker.term(lambda: nullable(rng, kind.args[0]))}"])()
        if kind.kind == "set":
            return rng.choice([lambda: f"{q} = {q} + {maker.of_type(kind)}", lambda: f"{q} = {q} - {maker.of_type(kind)}",
                               lambda: f"{q} += {maker.of_type(kind)}"])()
        if kind.kind == "map":
            return rng.choice([
                lambda: f"{q} = {q} + {maker.of_type(kind)}", lambda: f"{q} = {q} - {maker.of_type(Type('set', (kind.args[0],)))}",
                lambda: f"{q}[{maker.of_type(kind.args[0])}] = {maker.term(lambda: nullable(rng, kind.args[1]))}"])()
        at = rng.randrange(len(kind.args))
        return f"{q}.{kind.field_names[at]} = {maker.term(lambda: nullable(rng, kind.args[at]))}"
    return f"{q} = {maker.value(column)}"


def update(rng, table, maker):
    statics, regulars = table.of("static"), table.of("regular")
    if not statics + regulars:
        return insert(rng, table, maker)
    opening = using(rng, table, True, maker)
    if statics and (rng.random() < 0.25 or not regulars):
        sets = ", ".join(assignment(rng, c, maker) for c in rng.sample(statics, rng.randint(1, len(statics))))
        return f"UPDATE {table.name}{opening} SET {sets} WHERE " + " AND ".join(f"{c.q} = {maker.value(c)}" for c in table.partition)
    pool = regulars + (statics if rng.random() < 0.2 else [])
    sets = ", ".join(assignment(rng, c, maker) for c in rng.sample(pool, rng.randint(1, min(3, len(pool)))))
    return f"UPDATE {table.name}{opening} SET {sets} WHERE {where_row(rng, table, maker)}"


def deletion(rng, column, maker):
    kind, q = column.type, column.q
    if kind.multi_cell and rng.random() < 0.6:
        if kind.kind == "list":
            return f"{q}[{rng.choice([0, 0, 1, 3])}]"
        if kind.kind in ("set", "map"):
            return f"{q}[{maker.of_type(kind.args[0])}]"
        return f"{q}.{rng.choice(kind.field_names)}"
    return q


def delete(rng, table, maker):
    statics, regulars = table.of("static"), table.of("regular")
    opening = using(rng, table, False, maker)
    what = rng.random()
    if what < 0.3 and regulars:
        names = ", ".join(deletion(rng, c, maker) for c in rng.sample(regulars, rng.randint(1, min(2, len(regulars)))))
        return f"DELETE {names} FROM {table.name}{opening} WHERE {where_row(rng, table, maker)}"
    if what < 0.4 and statics:
        names = ", ".join(deletion(rng, c, maker) for c in rng.sample(statics, 1))
        return f"DELETE {names} FROM {table.name}{opening} WHERE " + " AND ".join(f"{c.q} = {maker.value(c)}" for c in table.partition)
    if what < 0.6 or not table.clustering:
        return f"DELETE FROM {table.name}{opening} WHERE {where_row(rng, table, maker)}"
    where = " AND ".join(f"{c.q} = {maker.value(c)}" for c in table.partition)
    if what > 0.68:
        where += clustering_where(rng, table, maker, False)
    return f"DELETE FROM {table.name}{opening} WHERE {where}"


def condition(rng, column, maker):
    """What may stand in IF."""
    kind, q = column.type, column.q
    if kind.kind in ("list", "set", "map") and rng.random() < 0.5:
        if kind.kind == "map" and rng.random() < 0.3:
            return f"{q} CONTAINS KEY {maker.of_type(kind.args[0])}"
        if kind.kind == "set" or rng.random() < 0.4:
            return f"{q} CONTAINS {maker.of_type(kind.args[-1])}"
        key = rng.choice([0, 0, 0, 1, 2, 7]) if kind.kind == "list" else maker.of_type(kind.args[0])
        q, made = f"{q}[{key}]", kind.args[-1]
    elif kind.kind == "udt" and rng.random() < 0.5:
        at = rng.randrange(len(kind.args))
        q, made = f"{q}.{kind.field_names[at]}", kind.args[at]
    else:
        made = kind
    one = lambda: maker.term(lambda: nullable(rng, made))
    if rng.random() < 0.15:
        return f"{q} IN ({', '.join(one() for _ in range(rng.randint(1, 3)))})"
    return f"{q} {rng.choice(['=', '=', '=', '!=', '!=', '<', '<=', '>', '>='])} {one()}"


def conditional(rng, table, maker):
    """Of a table whose writes have no timestamps: a conditional statement takes none."""
    what = rng.random()
    pool = table.of("static") + table.of("regular")
    if what < 0.3 or not pool:
        return insert(rng, table, maker, " IF NOT EXISTS")
    text = (update if rng.random() < 0.7 else delete)(rng, table, maker)
    if what < 0.45:
        return text + " IF EXISTS"
    if rng.random() < 0.05:
        pool = table.columns
    chosen = [rng.choice(pool) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return text + " IF " + " AND ".join(condition(rng, c, maker) for c in chosen)


def batch(rng, tables, maker, several=True):
    table = rng.choice(tables)
    kind = "UNLOGGED " if several else rng.choice(["", "UNLOGGED "])
    if table.counts != (rng.random() < 0.03):
        kind = "COUNTER "
    opening = ""
    if table.timed and rng.random() < 0.3:
        inner = [w for w in (without_time(rng, write_one, table, maker) for _ in range(rng.randint(1, 4)))]
        opening = f" USING TIMESTAMP {rng.randint(1, 10**6 if table.default_ttl else TIMESTAMPS)}"
    else:
        some = [write_one] if table.timed or rng.random() < 0.6 else [write_one, conditional]
        inner = [rng.choice(some)(rng, table, maker) for _ in range(rng.randint(1, 4))]
    return f"BEGIN {kind}BATCH{opening} " + "; ".join(inner) + "; APPLY BATCH"


def without_time(rng, make, table, maker):
    timed, table.timed = table.timed, False
    try:
        return make(rng, table, maker)
    finally:
        table.timed = timed


def one_partition(rng, tables, maker):
    """A batch of one logical partition: what BEGIN BATCH may be."""
    table = rng.choice(tables)
    saved = [c.pool for c in table.partition]
    for column in table.partition:
        column.pool = [rng.choice(column.pool)] if column.pool else column.pool
    only = {c.name: c.pool[0] for c in table.partition}
    single = Maker(rng, False)
    single.value = lambda column, chance=0.7: only[column.name].text if column.kind == "partition" else Maker.value(single, column, chance)
    try:
        return batch(rng, [table], single, False)
    finally:
        for column, pool in zip(table.partition, saved):
            column.pool = pool


def count(rng, table, maker):
    """Of a table of counters."""
    what = rng.random()
    if what < 0.03 or not table.of("static", "regular"):
        return insert(rng, table, maker)
    if what < 0.06:
        return conditional(rng, table, maker)
    # No deletions: in Cassandra what counts after one depends on its cache of counters.
    opening = rng.choice([" USING TTL 100", " USING TIMESTAMP 5"]) if rng.random() < 0.03 else ""
    statics, regulars = table.of("static"), table.of("regular")
    only_statics = statics and (rng.random() < 0.2 or not regulars)
    pool = statics if only_statics else regulars + statics
    chosen = rng.sample(pool, rng.randint(1, min(2, len(pool))))
    only_statics = all(column.kind == "static" for column in chosen) and rng.random() < 0.9
    sets = ", ".join(change(rng, column, maker) for column in chosen)
    row = " AND ".join(f"{c.q} = {maker.value(c)}" for c in table.partition) if only_statics else where_row(rng, table, maker)
    return f"UPDATE {table.name}{opening} SET {sets} WHERE {row}"


def change(rng, column, maker):
    q = column.q
    if rng.random() < 0.04:
        return assignment(rng, column, maker)
    return f"{q} {rng.choice(['+= ', '-= ', f'= {q} + ', f'= {q} + ', f'= {q} - '])}{maker.term(lambda: nullable(rng, column.type))}"


def write_one(rng, table, maker):
    if table.counts:
        return count(rng, table, maker)
    return rng.choice([insert, insert, insert, update, update, update, delete, delete])(rng, table, maker)


# --- WHERE ------------------------------------------------------------------------------------------------------------

SLICES = ["<", "<=", ">", ">="]


def slice_of(rng, left, make):
    if rng.random() < 0.6:
        return f"{left} {rng.choice(SLICES)} {make()}"
    return f"{left} {rng.choice(['>', '>='])} {make()} AND {left} {rng.choice(['<', '<='])} {make()}"


def clustering_where(rng, table, maker, select=True):
    """Restrictions of the clustering columns that select, each with AND before it."""
    parts, at, columns = [], 0, table.clustering
    while at < len(columns):
        if rng.random() < 0.25:
            break
        column = columns[at]
        what = rng.random()
        if what < 0.2 and (at + 1 < len(columns) or rng.random() < 0.3):
            several = columns[at:rng.randint(at + 1, len(columns))]
            names = "(" + ", ".join(c.q for c in several) + ")"
            def make(few=several):
                return "(" + ", ".join(maker.value(c, 0.3) for c in few) + ")"
            if rng.random() < 0.25:
                parts.append(f"{names} IN ({', '.join(make() for _ in range(rng.randint(1, 3)))})")
            elif rng.random() < 0.25:
                parts.append(f"{names} = {make()}")
            else:
                if rng.random() < 0.4:
                    fewer = several[:rng.randint(1, len(several))]
                    parts.append(f"{names} {rng.choice(['>', '>='])} {make()}")
                    parts.append("(" + ", ".join(c.q for c in fewer) + f") {rng.choice(['<', '<='])} {make(fewer)}")
                else:
                    parts.append(f"{names} {rng.choice(SLICES)} {make()}")
                break
            at += len(several)
            continue
        if what < 0.55:
            parts.append(f"{column.q} = {maker.value(column)}")
        elif what < 0.7:
            parts.append(f"{column.q} IN ({', '.join(maker.value(column) for _ in range(rng.randint(1, 3)))})")
        else:
            parts.append(slice_of(rng, column.q, lambda: maker.value(column)))
            break
        at += 1
    return "".join(" AND " + part for part in parts)


def filter_of(rng, column, maker):
    kind, q = column.type, column.q
    make = lambda: maker.term(lambda: rng.choice(column.pool) if column.pool else values.value(rng, kind))
    if kind.kind in ("list", "set", "map") and rng.random() < 0.8:
        if kind.kind == "map" and rng.random() < 0.5:
            if rng.random() < 0.5:
                return f"{q} CONTAINS KEY {maker.of_type(kind.args[0])}"
            return f"{q}[{maker.of_type(kind.args[0])}] = {maker.of_type(kind.args[1])}"
        return f"{q} CONTAINS {maker.of_type(kind.args[-1])}"
    what = rng.random()
    if what < 0.5:
        return f"{q} = {make()}"
    if what < 0.65:
        return f"{q} IN ({', '.join(make() for _ in range(rng.randint(1, 3)))})"
    return slice_of(rng, q, make)


def where_indexed(rng, table, maker):
    """Conditions of columns that have an index, with others now and then."""
    parts = [filter_of(rng, column, maker) for column in rng.sample(table.indexed, min(len(table.indexed), rng.choice([1, 1, 1, 2])))]
    if rng.random() < 0.3:
        parts += [f"{column.q} = {maker.value(column)}" for column in table.partition[:rng.choice([1, 9, 9])]]
    elif rng.random() < 0.15:
        parts.append("token(" + ", ".join(c.q for c in table.partition) + f") > {rng.choice([0, -9223372036854775808])}")
    if rng.random() < 0.2:
        more = clustering_where(rng, table, maker)
        parts += [more[5:]] if more else []
    if rng.random() < 0.15:
        parts.append(filter_of(rng, rng.choice(table.columns), maker))
    rng.shuffle(parts)
    return " WHERE " + " AND ".join(parts), rng.random() < 0.4


def where(rng, table, maker):
    """The WHERE of a SELECT (with its leading space), and whether it may need ALLOW FILTERING."""
    parts, filtering = [], False
    what = rng.random()
    if table.indexed and rng.random() < 0.4:
        return where_indexed(rng, table, maker)
    token = "token(" + ", ".join(c.q for c in table.partition) + ")"
    if what < 0.2:
        pass
    elif what < 0.3:
        def point():
            if rng.random() < 0.5:
                return "token(" + ", ".join(maker.value(c) for c in table.partition) + ")"
            return str(rng.choice([0, -1, -9223372036854775808, 9223372036854775807, rng.randint(-2**63, 2**63 - 1)]))
        parts.append(rng.choice([lambda: slice_of(rng, token, point), lambda: f"{token} = {point()}"])())
    else:
        missing = rng.choice(table.partition) if rng.random() < 0.06 else None
        filtering = missing is not None
        for column in table.partition:
            if column is missing:
                continue
            if rng.random() < 0.2:
                parts.append(f"{column.q} IN ({', '.join(maker.value(column) for _ in range(rng.randint(1, 3)))})")
            else:
                parts.append(f"{column.q} = {maker.value(column)}")
    if rng.random() < 0.65:
        more = clustering_where(rng, table, maker)
        if more:
            parts += [more[5:]]
            filtering = filtering or what < 0.3
    for column in rng.sample(table.columns, min(len(table.columns), rng.choice([0, 0, 0, 0, 1, 1, 2]))):
        if column.kind in ("partition", "clustering") and rng.random() < 0.7:
            continue
        parts.append(filter_of(rng, column, maker))
        filtering = True
    if not maker.makes and rng.random() < 0.1:
        rng.shuffle(parts)
    return (" WHERE " + " AND ".join(parts) if parts else ""), filtering


# --- what is selected -------------------------------------------------------------------------------------------------

AS_NAMES = {"varchar": "text"}


def scalar_call(rng, kind, inner, depth):
    """A call that takes a value of this kind, and what it gives (None: not followed)."""
    name = kind.kind
    choices = []
    if name in NUMBERS:
        choices += [(f"abs({inner})", kind), (f"round({inner})", kind), (f"{inner} {rng.choice('+-*/%')} {rng.choice(['1', '3', '(tinyint)2', '2.5', inner])}", None),
                    (f"-{inner}", kind), (f"CAST({inner} AS {rng.choice(NUMBERS + ['text', 'ascii'])})", None)]
    if name in values.POOLS:
        choices += [(f"{AS_NAMES.get(name, name)}_as_blob({inner})", Type("blob")), (f"blob_as_{name}({name}_as_blob({inner}))", kind),
                    (f"CAST({inner} AS text)", Type("text")), (f"{name}asblob({inner})", None)]
    if name in ("timestamp", "date", "timeuuid"):
        choices += [(f"to_date({inner})", Type("date")), (f"to_timestamp({inner})", Type("timestamp")), (f"to_unix_timestamp({inner})", Type("bigint")),
                    (f"CAST({inner} AS {rng.choice(['date', 'timestamp', 'text', 'bigint'])})", None),
                    (f"floor({inner}, {rng.choice(['1h', '2d', '3mo', '1y', '5m', '10s'])})", None)]
    if name in ("timestamp", "date"):
        choices += [(f"{inner} {rng.choice('+-')} {rng.choice(['1d', '2mo', '1y2mo', '3h', '-1d'])}", kind)]
    if name == "timestamp":
        choices += [(f"min_timeuuid({inner})", Type("timeuuid")), (f"max_timeuuid({inner})", Type("timeuuid"))]
    if name in ("list", "set"):
        choices += [(f"collection_count({inner})", Type("int")), (f"collection_min({inner})", kind.args[0]), (f"collection_max({inner})", kind.args[0]),
                    (f"collection_sum({inner})", None), (f"collection_avg({inner})", None)]
    if name == "map":
        choices += [(f"map_keys({inner})", Type("set", (kind.args[0],))), (f"map_values({inner})", Type("list", (kind.args[1],))),
                    (f"collection_count({inner})", Type("int"))]
    if name == "vector" and kind.args[0].kind == "float":
        other = values.value(rng, kind).text
        choices += [(f"similarity_{rng.choice(['cosine', 'euclidean', 'dot_product'])}({inner}, {other})", None)]
    choices += [(f"to_json({inner})", Type("text")), (f"tojson({inner})", None)]
    text, out = rng.choice(choices)
    if out is not None and depth < 2 and rng.random() < 0.3:
        return scalar_call(rng, out, text, depth + 1)
    return text


def item(rng, table, maker, aggregate):
    column = rng.choice(table.columns)
    q, kind = column.q, column.type
    what = rng.random()
    if aggregate and what < 0.7:
        text = rng.choice([lambda: "count(*)", lambda: f"count({q})", lambda: f"min({q})", lambda: f"max({q})", lambda: f"sum({q})", lambda: f"avg({q})",
                           lambda: "count(1)", lambda: f"{rng.choice(['min', 'max', 'sum', 'avg', 'count'])}({scalar_call(rng, kind, q, 1)})"])()
    elif what < 0.45:
        text = q
    elif what < 0.48 and kind.kind in NUMBERS:
        text = rng.choice([f"{q} {rng.choice('+-*')} {maker.of_type(kind)}", f"{maker.of_type(kind)} + {q}"])
    elif what < 0.48 and kind.kind in ("timestamp", "date"):
        text = f"{q} {rng.choice('+-')} {maker.of_type(Type('duration'))}"
    elif what < 0.65:
        text = scalar_call(rng, kind, q, 0)
    elif what < 0.78 and table.timed:
        some = q
        if kind.multi_cell and rng.random() < 0.5:
            some = sub(rng, column, maker)
        text = f"{rng.choice(['writetime', 'writetime', 'maxwritetime', 'ttl'])}({some})"
    elif what < 0.9 and kind.kind in ("list", "map", "set", "udt"):
        text = sub(rng, column, maker)
    elif what < 0.95:
        other = values.scalar_type(rng)
        text = f"({other.text()}){values.value(rng, other).text}"
    else:
        text = "token(" + ", ".join(c.q for c in table.partition) + ")"
    if rng.random() < 0.1:
        text += rng.choice([" AS x", ' AS "An alias"', " AS " + q])
    return text


def sub(rng, column, maker):
    kind, q = column.type, column.q
    if kind.kind == "udt":
        return f"{q}.{rng.choice(kind.field_names)}"
    key = kind.args[0] if kind.kind != "list" else Type("int")
    one = lambda: maker.of_type(key, 0.3)
    return rng.choice([lambda: f"{q}[{one()}]", lambda: f"{q}[{one()}..{one()}]", lambda: f"{q}[{one()}..]", lambda: f"{q}[..{one()}]"])()


def select(rng, table, maker):
    what = rng.random()
    distinct = what < 0.08
    grouped = 0.08 <= what < 0.2
    aggregate = grouped or 0.2 <= what < 0.3
    if distinct:
        pool = table.partition + table.of("static")
        chosen = list(table.partition) if rng.random() < 0.8 else []
        chosen += rng.sample(table.of("static"), rng.randint(0, len(table.of("static"))))
        items = ", ".join(c.q for c in chosen or [rng.choice(pool)])
    elif not aggregate and rng.random() < 0.3:
        items = "*"
    else:
        items = ", ".join(item(rng, table, maker, aggregate) for _ in range(rng.randint(1, 3)))
    json = "JSON " if rng.random() < 0.07 else ""
    text = f"SELECT {json}{'DISTINCT ' if distinct else ''}{items} FROM {table.name}"
    if distinct and rng.random() < 0.8:
        equal = " WHERE " + " AND ".join(f"{c.q} = {maker.value(c)}" for c in table.partition) if rng.random() < 0.3 else ""
        condition, filtering = equal, False
    else:
        condition, filtering = where(rng, table, maker)
    text += condition
    if grouped:
        keys = table.keys[:rng.randint(1, len(table.keys))]
        if len(keys) < len(table.partition) and rng.random() < 0.8:
            keys = table.partition
        if rng.random() < 0.1:
            keys = rng.sample(table.columns, 1)
        names = [c.q for c in keys]
        if rng.random() < 0.35:
            names[-1] = scalar_call(rng, keys[-1].type, names[-1], 0)
        text += " GROUP BY " + ", ".join(names)
    if table.clustering and rng.random() < 0.2:
        flip = rng.random() < 0.5
        chosen = table.clustering[:rng.randint(1, len(table.clustering))]
        orders = []
        for column in chosen:
            down = column.descending != flip if rng.random() < 0.95 else rng.random() < 0.5
            orders.append(f"{column.q} {'DESC' if down else rng.choice(['ASC', ''])}".strip())
        text += " ORDER BY " + ", ".join(orders)
    number = lambda n: maker.term(lambda: values.Value(str(n), n.to_bytes(4, "big", signed=True), str(n)), 0.4)
    if rng.random() < 0.12:
        text += f" PER PARTITION LIMIT {number(rng.choice([1, 1, 2, 3]))}"
    if rng.random() < 0.2:
        text += f" LIMIT {number(rng.choice([1, 2, 3, 5, 100, 0, -1] if rng.random() < 0.1 else [1, 2, 3, 5, 100]))}"
    if rng.random() < (0.95 if filtering else 0.05):
        text += " ALLOW FILTERING"
    return text


# --- faults -----------------------------------------------------------------------------------------------------------

TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[A-Za-z_]\w*|0x[0-9a-f]*|[0-9a-f]{8}-[0-9a-f-]{27}|-?\d[\w.]*|[<>!]=|\.\.|\S")
OPERATORS = ["=", "<", "<=", ">", ">=", "!=", "IN", "CONTAINS", "CONTAINS KEY", "LIKE"]


def spoil(rng, text, table):
    """The statement with one thing wrong in it, most times."""
    spans = [m.span() for m in TOKEN.finditer(text)]
    words = [text[a:b] for a, b in spans]
    names = {c.q for c in table.columns}
    what = rng.random()
    def put(at, new):
        a, b = spans[at]
        return text[:a] + new + text[b:]
    if what < 0.35:  # another column, or none
        places = [i for i, w in enumerate(words) if w in names]
        if places:
            return put(rng.choice(places), rng.choice(sorted(names) + ["nothing", "nothing"]))
    if what < 0.65:  # a value of another type
        places = [i for i, w in enumerate(words) if w[0] in "'0123456789-" or w in ("true", "false", "null")]
        if places:
            other = values.any_type(rng, [])
            return put(rng.choice(places), rng.choice([values.value(rng, other).text, "null", "(int)5", "current_date() - 1", "[]", "{}", "()", "(1, 'a')"]))
    if what < 0.8:
        places = [i for i, w in enumerate(words) if w in ("=", "<", "<=", ">", ">=", "IN", "CONTAINS")]
        if places:
            return put(rng.choice(places), rng.choice(OPERATORS))
    at = rng.randrange(len(words))
    return rng.choice([lambda: put(at, ""), lambda: put(at, words[at] + " " + words[at]), lambda: put(at, rng.choice(words)),
                       lambda: put(at, rng.choice(["SELECT", "nothing", ",", ")", "(", "?", ":x", "1", "*"]))])()
