# SPDX-License-Identifier: Apache-2.0
"""Rounds about materialized views: their definitions, what the tables under them may still become, and rows that follow the writes to a table."""

from dataclasses import dataclass, replace

from scripts import Statement

from . import schema, statements, values
from .rounds import Step
from .schema import Column, Table, quoted
from .values import Type

VIEWS_MAX = 3  # of a table: each costs its writes a read and a write
GIVEN_TTLS = ["default_time_to_live = 10", "default_time_to_live = 0"]
PROPERTIES = ["comment = 'it''s'", "gc_grace_seconds = 1000", "gc_grace_seconds = 0", "compression = {'class': 'LZ4Compressor'}", "bloom_filter_fp_chance = 0.2",
              "caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}", "speculative_retry = 'NEVER'", "nothing = 1", "comment = 5", *GIVEN_TTLS]


@dataclass
class View:
    table: Table  # what a SELECT of it sees
    base: Table
    everything: bool  # SELECT *


class Views:
    """What the round believes there is; where a statement was refused against belief, those that follow are refused more often."""

    def __init__(self, rng):
        self.rng = rng
        self.udts = schema.make_udts(rng)
        self.bases = [self.base(f"t{number}") for number in range(2)]
        self.counting = Table("n", [Column("k", Type("int"), "partition", pool=list(values.POOLS["int"][:3])), Column("a", Type("counter"), "regular")], False, counts=True)
        self.views = []
        self.made = 0

    def base(self, name):
        while True:
            table = schema.make_table(self.rng, name, self.udts)
            # Of a view beside a column of many cells with a name outside ASCII Cassandra fails writes.
            odd = any(c.q == '"é"' and c.type.multi_cell for c in table.columns)
            if not table.counts and not table.compact and not odd and (table.of("regular") or self.rng.random() < 0.2):
                break
        for column in table.columns:
            if column.kind == "regular" and can_be_key(column):
                column.pool = values.unique([values.value(self.rng, column.type) for _ in range(4)])
        return table

    def pick(self, *of):
        return self.rng.choice(of)

    def of(self, base):
        return [view for view in self.views if view.base is base]

    # --- CREATE ---

    def create(self):
        """A view that is in order, most times, and what it is then."""
        base = self.rng.choice(self.bases)
        rng = self.rng
        extras = [c for c in base.of("regular") if can_be_key(c)]
        keys = list(base.keys) + (rng.sample(extras, 1) if extras and rng.random() < 0.6 else [])
        rng.shuffle(keys)
        several = min(len(keys), self.pick(1, 1, 1, 1, 2, 2, 3))
        columns = [replace(c, kind="partition" if at < several else "clustering", descending=False) for at, c in enumerate(keys)]
        others = base.of("regular")
        others = [c for c in others if c not in keys]
        everything = not base.of("static") and rng.random() < 0.5
        if not everything:
            others = rng.sample(others, rng.randint(0, len(others)))
        name = f"mv{self.made}"
        self.made += 1
        options = []
        if len(keys) > several and rng.random() < 0.3:
            for column in columns[several:]:
                column.descending = rng.random() < 0.5 and not column.type.args
            options.append(order_by(columns[several:]))
        if rng.random() < 0.15:
            options.append(self.pick(*PROPERTIES))
        conditions = [self.condition(c) if rng.random() < 0.12 and c.kind != "regular" else f"{c.q} IS NOT NULL" for c in keys]
        rng.shuffle(conditions)
        if len(base.clustering) > 1 and rng.random() < 0.06:
            conditions.append(several_condition(rng, base.clustering))
        selected = "*" if everything else ", ".join(c.q for c in self.shuffled(keys + others))
        view = View(Table(name, columns + [replace(c) for c in others], False), base, everything)
        for column in view.table.columns:
            if column.kind in ("partition", "clustering") and not column.pool:  # it was added later
                column.pool = values.unique([values.value(rng, column.type) for _ in range(4)])
        return self.text(name, selected, base.name, conditions, key_text(columns), options), view

    def shuffled(self, items):
        return self.rng.sample(items, len(items))

    def text(self, name, selected, base, conditions, key, options=()):
        where = " WHERE " + " AND ".join(conditions) if conditions else ""
        exists = self.pick("", "", "", "IF NOT EXISTS ")
        return f"CREATE MATERIALIZED VIEW {exists}{name} AS SELECT {selected} FROM {base}{where} PRIMARY KEY ({key})" + (" WITH " + " AND ".join(options) if options else "")

    def condition(self, column):
        kind = column.type.kind
        plain = lambda: self.rng.choice(column.pool or [values.value(self.rng, column.type)]).text
        forms = [plain] * 4 + [lambda: f"({column.type.text()}) {plain()}"]
        if kind in values.NUMBERS and not column.descending:  # of such a column Cassandra finds no operator
            forms += [lambda: f"{plain()} + 1", lambda: f"-({plain()})", lambda: f"{plain()} * 2"]
        if kind in values.POOLS and kind != "varchar":
            forms += [lambda: f"blob_as_{kind}({kind}_as_blob({plain()}))"]
        value = lambda: self.rng.choice(forms)()
        return self.pick(lambda: f"{column.q} = {value()}", lambda: f"{column.q} IN ({value()}, {value()})", lambda: f"{column.q} {self.pick('<', '<=', '>', '>=')} {value()}",
                         lambda: f"{column.q} >= {value()} AND {column.q} < {value()}", lambda: f"{column.q} != {value()}", lambda: f"{column.q} IS NOT NULL AND {column.q} > {value()}")()

    def wrong(self):
        """A definition with one thing in it that is refused, most times."""
        rng = self.rng
        base = rng.choice(self.bases)
        keys = self.shuffled(base.keys)
        others = base.of("regular", "static") or base.keys
        other = rng.choice(others)
        names = lambda columns: ", ".join(c.q for c in columns)
        given = lambda columns: [f"{c.q} IS NOT NULL" for c in columns]
        name, selected, table, conditions, key, options = "mvx", names(keys), base.name, given(keys), key_text(keys), []
        what = self.pick("name", "table", "view", "missing", "twice", "two", "not given", "condition", "function", "order", "property", "key", "static", "counter", "alias", "marker",
                         "any", "token", "element", "no where", "several", "none selected", "limit", "frozen")
        if what == "name":
            name = self.pick(base.name, *[v.table.name for v in self.views], "nothing.mvx", "system.mvx", '"M v"', '""')
        elif what == "table":
            table = self.pick("nothing", "nothing.t", "system.local", "system_schema.tables")
        elif what == "view" and self.views:
            of = rng.choice(self.views).table
            table, selected, conditions, key = of.name, names(of.keys), given(of.keys), key_text(of.keys)
        elif what == "missing":
            selected, conditions, key = self.pick((selected + ", nothing", conditions, key), (selected, conditions + ["nothing IS NOT NULL"], key), (selected, conditions, key + ", nothing"))
        elif what == "twice":
            selected, conditions, key = self.pick((f"{selected}, {keys[0].q}", conditions, key), (selected, conditions + conditions[:1], key), (selected, conditions, f"{key}, {keys[0].q}"))
        elif what == "two":
            two = rng.sample(others, min(2, len(others)))
            selected, conditions, key = names(keys + two), given(two + keys), key_text(self.shuffled(two + keys))
        elif what == "not given":
            conditions = conditions[1:]
        elif what == "condition":
            selected, conditions = names(keys + [other]), conditions + [self.condition(other)]
        elif what == "function":
            q = rng.choice(base.columns).q
            selected += ", " + self.pick(f"writetime({q})", f"ttl({q})", f"CAST({q} AS text)", f"count({q})", "count(*)", f"to_json({q})", "now()", f"token({q})", f"{q} + 1", "(int)1", "1")
        elif what == "order":
            options = ["CLUSTERING ORDER BY (" + self.pick(f"{keys[0].q} DESC", "nothing ASC", f"{other.q} DESC", f"{keys[-1].q} DESC, {keys[-1].q} ASC") + ")"]
        elif what == "property":
            options = rng.sample(PROPERTIES, 2)
        elif what == "key":
            key = self.pick(keys[0].q, f"({key})", f"(({names(keys)}))", "", f"{key}, ", other.q)
        elif what == "static":
            selected = names(keys + base.of("static")) if base.of("static") else "*"
        elif what == "counter":
            table, selected, conditions, key = "n", self.pick("*", "k", "k, a"), self.pick(["k IS NOT NULL"], ["k IS NOT NULL", "a IS NOT NULL"]), self.pick("k", "a, k")
        elif what == "alias":
            selected = ", ".join(f"{c.q} AS x{at}" for at, c in enumerate(keys))
        elif what == "marker":
            conditions[0] = f"{keys[0].q} {self.pick('= ?', 'IN ?', '> ?', '= :x')}"
        elif what == "any":
            selected, conditions, key = names(keys + [other]), given(keys + [other]), key_text([other] + keys)
        elif what == "token":
            conditions.append(f"token({names(base.partition)}) {self.pick('>', '=')} 1")
        elif what == "element":
            conditions.append(self.pick(f"{other.q}[0] = 1", f"{other.q} CONTAINS 1", f"{other.q} LIKE 'a'", f"{keys[0].q} CONTAINS 1", f"{other.q} IS NULL"))
        elif what == "no where":
            conditions = []
        elif what == "several":
            conditions.append(several_condition(rng, base.clustering or base.partition))
        elif what == "none selected":
            selected = self.pick(keys[0].q, "DISTINCT " + selected, "JSON " + selected, "", other.q)
        elif what == "limit":
            return f"CREATE MATERIALIZED VIEW {name} AS SELECT {selected} FROM {table} WHERE {' AND '.join(conditions)} {self.pick('LIMIT 1', 'ALLOW FILTERING', 'ORDER BY ' + keys[-1].q)} PRIMARY KEY ({key})"
        else:
            conditions.append(f"{other.q} IS NOT NULL")
        return self.text(name, selected, table, conditions, key, options)

    # --- what becomes of them ---

    def alter_view(self):
        name = self.rng.choice(self.views).table.name if self.views else "mvx"
        return f"ALTER MATERIALIZED VIEW {self.pick('', '', 'IF EXISTS ')}{self.pick(name, name, name, name, self.bases[0].name, 'nothing')} WITH {' AND '.join(self.rng.sample(PROPERTIES, self.pick(1, 1, 2)))}"

    def drop_view(self):
        if not self.views or self.rng.random() < 0.4:
            return f"DROP MATERIALIZED VIEW {self.pick('', 'IF EXISTS ')}{self.pick('nothing', self.bases[0].name, 'nothing.mv0', 'mv99')}"
        view = self.rng.choice(self.views)
        self.views.remove(view)
        return f"DROP MATERIALIZED VIEW {self.pick('', 'IF EXISTS ')}{view.table.name}"

    def alter_base(self):
        """ADD, DROP and RENAME of columns that views have or have not, and what is always refused."""
        base, name = (base := self.rng.choice(self.bases)), base.name
        what = self.pick("add", "add", "drop", "drop", "rename", "rename", "other")
        if what == "add":
            free = [n for n in schema.NAMES if n != "é" and n not in [c.name for c in base.columns] and n not in base.__dict__.setdefault("dropped", {})]
            column = Column(self.rng.choice(free), values.any_type(self.rng, self.udts), "static" if base.clustering and self.rng.random() < 0.2 else "regular")
            if not base.compact:
                base.columns.append(column)
                for view in self.of(base):
                    if view.everything and column.kind == "regular":
                        view.table.columns.append(replace(column))
            return f"ALTER TABLE {name} ADD {column.q} {column.type.text()}{' STATIC' if column.kind == 'static' else ''}"
        if what == "drop":
            column = self.rng.choice(base.columns)
            if not self.of(base) and column.kind in ("regular", "static") and not base.compact:
                base.columns.remove(column)
                base.__dict__.setdefault("dropped", {})[column.name] = column
            return f"ALTER TABLE {name} DROP {column.q}"
        if what == "rename":
            column, new = self.rng.choice(base.columns if self.rng.random() < 0.3 else base.keys), self.pick("r1", "r2", "R 3", "r4")
            old = column.name
            if column in base.keys and new not in [c.name for c in base.columns]:
                for table in [base] + [view.table for view in self.of(base)]:
                    for same in table.columns:
                        same.name = new if same.name == old else same.name
            return f"ALTER TABLE {name} RENAME {quoted(old)} TO {quoted(new)}"
        return f"ALTER TABLE {name} WITH {self.pick('gc_grace_seconds = 0', 'gc_grace_seconds = 100', chr(99) + 'omment = 1', 'default_time_to_live = 600000')}"

    def drop_base(self):
        """And another one of its name after it, where no view holds it."""
        base = self.rng.choice(self.bases)
        texts = [f"DROP TABLE {self.pick('', 'IF EXISTS ')}{base.name}"]
        if not self.of(base):
            self.bases[self.bases.index(base)] = made = self.base(base.name)
            texts += ["DROP MATERIALIZED VIEW IF EXISTS mvx", texts[0], schema.table_text(self.rng, made)]
        return texts

    def direct(self):
        """What is for tables, of a view."""
        view = self.rng.choice(self.views)
        name = view.table.name
        maker = statements.Maker(self.rng, False)
        return self.pick(lambda: statements.write_one(self.rng, view.table, maker), lambda: statements.write_one(self.rng, view.table, maker),
                         lambda: statements.conditional(self.rng, view.table, maker), lambda: statements.one_partition(self.rng, [view.table], maker),
                         lambda: f"TRUNCATE {name}", lambda: f"DROP TABLE {self.pick('', 'IF EXISTS ')}{name}", lambda: f"ALTER TABLE {name} {self.pick('ADD z int', f'DROP {view.table.columns[-1].q}')}",
                         lambda: f"ALTER TABLE {name} RENAME {view.table.keys[0].q} TO z", lambda: f"ALTER TABLE {name} WITH comment = 'x'",
                         lambda: f"CREATE INDEX ON {name} ({view.table.columns[-1].q})", lambda: f"DESCRIBE TABLE {name}", lambda: f"DROP TABLE {view.base.name}")()

    def describe(self):
        base = self.rng.choice(self.bases)
        names = [view.table.name for view in self.views] or ["nothing"]
        name = self.pick(*names)
        return self.pick(
            f"DESCRIBE MATERIALIZED VIEW {name}", f"DESCRIBE MATERIALIZED VIEW {self.pick(name, base.name, 'nothing')}", f"DESCRIBE TABLE {base.name}", f"DESCRIBE {name}",
            "SELECT view_name, base_table_name, include_all_columns, where_clause, comment, gc_grace_seconds FROM system_schema.views WHERE keyspace_name = '%KS%'",
            f"SELECT view_name, caching, cdc, compaction, default_time_to_live, extensions, speculative_retry FROM system_schema.views WHERE keyspace_name = '%KS%' AND view_name = 'mvx'",
            f"SELECT column_name, kind, position, type, clustering_order FROM system_schema.columns WHERE keyspace_name = '%KS%' AND table_name = '{name}'",
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = '%KS%'")


def can_be_key(column):
    return not column.type.multi_cell and not column.type.has("duration") and not column.type.has("counter")


def key_text(columns):
    """Of columns that know whether they are of the partition key; else the first is."""
    several = [c for c in columns if c.kind == "partition"] if columns and columns[0].kind == "partition" else columns[:1]
    rest = [c for c in columns if c not in several]
    first = ", ".join(c.q for c in several)
    return ", ".join([f"({first})" if len(several) > 1 else first, *(c.q for c in rest)])


def several_condition(rng, columns):
    one = lambda: "(" + ", ".join(rng.choice(c.pool).text for c in columns) + ")"
    names = "(" + ", ".join(c.q for c in columns) + ")"
    return rng.choice([lambda: f"{names} {rng.choice(['=', '>', '>=', '<', 'IN'])} {one()}", lambda: f"{names} IN ({one()}, {one()})", lambda: f"{names} > {one()} AND {names} <= {one()}"])()


def order_by(columns):
    return "CLUSTERING ORDER BY (" + ", ".join(f"{c.q} {'DESC' if c.descending else 'ASC'}" for c in columns) + ")"


class Maker(statements.Maker):
    """Values of what may be a view's key come back, so that rows move to and fro."""

    def value(self, column, chance=0.7):
        if column.kind == "regular" and column.pool and self.rng.random() < 0.8:
            return self.term(lambda: self.rng.choice(column.pool), chance)
        return super().value(column, chance)


def data_step(v, progress):
    """A write to a table, or a SELECT, most times from a view."""
    rng = v.rng
    base = rng.choice(v.bases)
    prepared = rng.random() < 0.3
    maker = Maker(rng, prepared)
    if v.views and rng.random() < (0.2 if progress < 0.2 else 0.5):
        view = rng.choice(v.views)
        text = statements.select(rng, view.table, maker)
        if rng.random() < 0.3:  # all of it
            maker.makes, text = [], f"SELECT * FROM {v.pick('mvx', *[view.table.name] * 5)}"
        elif not maker.makes and rng.random() < 0.2:
            text = statements.spoil(rng, text, view.table)
        given = maker.executions(v.pick(1, 1, 2)) if prepared else None
        page = v.pick(1, 2, 3, 7) if rng.random() < 0.3 else None
        return Step(Statement(text, page, given, settles=True), (view.base.name, view.table.name))
    what = rng.random()
    if what < 0.1:
        text = statements.select(rng, base, maker)
    elif what < 0.2:
        maker, prepared = Maker(rng, False), False
        text = statements.one_partition(rng, [base], maker)
    elif what < 0.25:
        text = statements.batch(rng, [base], maker)
    elif what < 0.27:
        maker, prepared = Maker(rng, False), False
        text = f"BEGIN {v.pick('', 'UNLOGGED ')}BATCH " + "; ".join(statements.write_one(rng, table, maker) for table in v.shuffled(v.bases)) + "; APPLY BATCH"
        return Step(Statement(text), tuple(table.name for table in v.bases))
    elif what < 0.28:
        maker, text = Maker(rng, False), f"TRUNCATE {base.name}"
        prepared = False
    elif what < 0.5 and not base.timed:
        text = statements.conditional(rng, base, maker)
    else:
        text = statements.write_one(rng, base, maker)
    if not maker.makes and rng.random() < 0.2 and not text.startswith("BEGIN BATCH"):
        text = statements.spoil(rng, text, base)
    return Step(Statement(text, None, maker.executions(v.pick(1, 1, 2)) if prepared else None), (base.name,))


def views(r, count):
    v = Views(r.rng)
    for udt in v.udts:
        r.ddl(schema.udt_text(udt))
    for base in v.bases:
        r.ddl(schema.table_text(r.rng, base), base.name)
    r.ddl("CREATE TABLE n (k int PRIMARY KEY, a counter)", "n")
    every = tuple(base.name for base in v.bases)
    for made in range(count):
        progress = made / count
        what = r.rng.random()
        if made < 3 or (what < 0.03 and len(v.views) < VIEWS_MAX * len(v.bases)):
            text, view = v.create()
            v.views.append(view)
            r.ddl(text, view.base.name, view.table.name)
        elif what < 0.11:
            if r.rng.random() < 0.5:  # it was right after all
                r.ddl("DROP MATERIALIZED VIEW IF EXISTS mvx", *every)
            r.ddl(v.wrong(), *every)
        elif what < 0.125:
            r.ddl(v.alter_view(), *every)
        elif what < 0.14:
            r.ddl(v.drop_view(), *every)
        elif what < 0.165 and progress > 0.2:
            r.ddl(v.alter_base(), *every)
        elif what < 0.168 and progress > 0.2:
            for text in v.drop_base():
                r.ddl(text, *every)
        elif what < 0.173 and v.udts and progress > 0.3:
            r.ddl(schema.alter_type(r.rng, v.udts))
        elif what < 0.2:
            r.steps.append(Step(Statement(v.describe()), every))
        elif what < 0.25 and v.views:
            r.steps.append(Step(Statement(v.direct()), every))
        else:
            r.steps.append(data_step(v, progress))
