# SPDX-License-Identifier: Apache-2.0
"""Random user types and tables, and what ALTER makes of them."""

from dataclasses import dataclass, field

from . import values
from .values import Type

NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "val", "Name", "x_1", "Two words", "key", "ttl", "value", "list", "é"]


COUNTING = 0.15  # of the tables
COMPACT = 0.1


def quoted(name):
    if name.isidentifier() and name == name.lower() and name.isascii():
        return name
    return '"' + name.replace('"', '""') + '"'


@dataclass
class Column:
    name: str
    type: Type
    kind: str  # partition, clustering, static, regular
    descending: bool = False
    pool: list = field(default_factory=list)

    @property
    def q(self):
        return quoted(self.name)


@dataclass
class Table:
    name: str
    columns: list
    timed: bool  # every write has a timestamp, so WRITETIME can be asked
    default_ttl: int = 0
    ttls: int = 0  # given so far
    counts: bool = False  # its other columns are counters
    compact: bool = False  # WITH COMPACT STORAGE
    indexed: list = field(default_factory=list)  # columns that have an index, most times

    def of(self, *kinds):
        return [column for column in self.columns if column.kind in kinds]

    @property
    def keys(self):
        return self.of("partition", "clustering")

    @property
    def partition(self):
        return self.of("partition")

    @property
    def clustering(self):
        return self.of("clustering")


def make_udts(rng):
    udts = []
    for i in range(rng.randint(0, 3)):
        names = rng.sample(["f", "g", "h", "Field", "k", "v"], rng.randint(1, 3))
        kinds = [values.any_type(rng, udts, 1, False, True) for _ in names]
        udts.append(Type("udt", tuple(kinds), False, 0, (f"u{i}", *map(quoted, names))))
    return udts


def udt_text(udt):
    return f"CREATE TYPE {udt.name} (" + ", ".join(f"{n} {t.text()}" for n, t in zip(udt.field_names, udt.args)) + ")"


def make_table(rng, name, udts):
    names = iter(rng.sample(NAMES, len(NAMES)))
    columns = []
    simple = rng.random() < 0.5
    def key_type():
        if simple or rng.random() < 0.6:
            return Type(rng.choice(["int", "int", "text", "bigint"]))
        return values.any_type(rng, udts, 1, True, True)
    for i in range(rng.choice([1, 1, 1, 2, 3])):
        columns.append(Column("k" if i == 0 else f"k{i}", key_type(), "partition"))
    clustered = rng.choice([0, 1, 1, 2, 2, 3])
    for i in range(clustered):
        kind = key_type()
        # Of a descending set or map Cassandra keeps the client's order of the elements.
        columns.append(Column(f"c{i}", kind, "clustering", rng.random() < 0.4 and not kind.args))
    counts = rng.random() < COUNTING
    other_type = lambda: Type("counter") if counts else values.any_type(rng, udts)
    for _ in range(rng.choice([0, 0, 1, 2]) if clustered else 0):
        columns.append(Column(next(names), other_type(), "static"))
    for _ in range(rng.choice([1, 1, 2, 3] if counts else [0, 1, 2, 2, 3, 4, 5])):
        columns.append(Column(next(names), other_type(), "regular"))
    table_keys = [c for c in columns if c.kind == "partition"]
    for column in columns:
        if column.kind in ("partition", "clustering"):
            count = 4 if column.kind == "clustering" else 3 if len(table_keys) == 1 else 2
            column.pool = values.unique([values.value(rng, column.type) for _ in range(count)])
            if column.kind == "partition":  # an empty key is refused
                column.pool = [v for v in column.pool if v.wire] or [v for v in (values.value(rng, column.type) for _ in range(50)) if v.wire][:1]
    table = Table(name, columns, rng.random() < 0.6 and not counts, counts=counts)
    if rng.random() < 0.15 and not counts:
        table.default_ttl = 600000
    if rng.random() < COMPACT and not counts:
        make_compact(rng, table)
    return table


def make_compact(rng, table):
    """Leaves the columns that a table WITH COMPACT STORAGE may have."""
    plain = [c for c in table.of("regular") if not c.type.multi_cell and not c.type.args]
    if table.clustering:
        plain = plain[:1]
    elif not plain:
        plain = [Column("val", Type("int"), "regular")]
    table.columns = table.keys + plain
    table.compact = True


def table_text(rng, table):
    parts = [f"{c.q} {c.type.text()}{' STATIC' if c.kind == 'static' else ''}" for c in table.columns]
    partition = ", ".join(c.q for c in table.partition)
    if len(table.partition) > 1 or rng.random() < 0.2:
        partition = f"({partition})"
    key = ", ".join([partition] + [c.q for c in table.clustering])
    if len(table.columns) and len(table.keys) == 1 and rng.random() < 0.3:
        parts[0] += " PRIMARY KEY"
    else:
        parts.append(f"PRIMARY KEY ({key})")
    options = []
    if any(c.descending for c in table.clustering):
        options.append("CLUSTERING ORDER BY (" + ", ".join(f"{c.q} {'DESC' if c.descending else 'ASC'}" for c in table.clustering) + ")")
    if table.compact:
        options.append("COMPACT STORAGE")
    if table.default_ttl:
        options.append(f"default_time_to_live = {table.default_ttl}")
    if rng.random() < 0.2:
        options.append("comment = 'it''s'")
    text = f"CREATE TABLE {table.name} ({', '.join(parts)})"
    return text + (" WITH " + " AND ".join(options) if options else "")


def create_index(rng, table):
    """Of any column, so that some are refused; most of those that can have one."""
    columns = table.columns if rng.random() < 0.2 else table.of("regular", "static", "clustering")
    column = rng.choice(columns or table.columns)
    kind = column.type.kind
    target = column.q
    if kind in ("list", "set", "map"):
        if not column.type.multi_cell:
            target = f"full({column.q})"
        elif kind == "map":
            target = rng.choice(["keys", "values", "entries"]) + f"({column.q})"
    if rng.random() < 0.05:
        target = rng.choice(["keys", "values", "entries", "full"]) + f"({column.q})"
    table.indexed.append(column)
    sai = ""
    if rng.random() < 0.5:
        sai = " USING 'sai'"
        if kind in ("text", "varchar", "ascii") and rng.random() < 0.4:
            options = {name: rng.choice(["true", "false"]) for name in rng.sample(["case_sensitive", "normalize", "ascii"], rng.randint(1, 2))}
            sai += " WITH OPTIONS = {" + ", ".join(f"'{name}': '{value}'" for name, value in sorted(options.items())) + "}"
    name = rng.choice(["", "", "", f"i{rng.randint(1, 9)} "])
    return f"CREATE INDEX {rng.choice(['', '', 'IF NOT EXISTS '])}{name}ON {table.name} ({target}){sai}"


def drop_index(rng, table):
    column = rng.choice(table.indexed) if table.indexed else rng.choice(table.columns)
    name = rng.choice([f"i{rng.randint(1, 9)}", f"{table.name}_{column.name}_idx"])
    return f"DROP INDEX {rng.choice(['', 'IF EXISTS '])}{quoted(name)}"


def alter(rng, table, udts):
    """A statement that changes the table, and does so in `table` too where it is valid."""
    what = rng.random()
    others = table.of("regular", "static")
    if table.compact and rng.random() < 0.5:
        table.compact = False
        return f"ALTER TABLE {table.name} DROP COMPACT STORAGE"
    if what < 0.35:
        free = [n for n in NAMES if n not in [c.name for c in table.columns]]
        name = rng.choice(free)
        kind = Type("counter") if table.counts and rng.random() < 0.9 else values.any_type(rng, udts)
        static = bool(table.clustering) and rng.random() < 0.2
        column = Column(name, kind, "static" if static else "regular")
        if name not in table.__dict__.setdefault("dropped", {}):
            if table.counts == (kind.kind == "counter"):
                table.columns.append(column)
            return f"ALTER TABLE {table.name} ADD {column.q} {kind.text()}{' STATIC' if static else ''}"
        old = table.dropped[name]
        if rng.random() < 0.7:  # as it was
            table.columns.append(old)
            return f"ALTER TABLE {table.name} ADD {old.q} {old.type.text()}{' STATIC' if old.kind == 'static' else ''}"
        return f"ALTER TABLE {table.name} ADD IF NOT EXISTS {table.columns[0].q} {kind.text()}"
    if what < 0.7 and others:
        column = rng.choice(others)
        table.columns.remove(column)
        table.__dict__.setdefault("dropped", {})[column.name] = column
        using = f" USING TIMESTAMP {rng.randint(5, 25)}" if rng.random() < 0.4 else ""
        return f"ALTER TABLE {table.name} DROP {column.q}{using}"
    if what < 0.8:
        column = rng.choice(table.keys)
        new = rng.choice(["r1", "r2", "R 3", "r4"])
        old = column.q
        if new not in [c.name for c in table.columns]:
            column.name = new
        return f"ALTER TABLE {table.name} RENAME {old} TO {quoted(new)}"
    if what < 0.9:
        wrong = rng.choice([c.q for c in table.keys] + ["nothing"])
        return rng.choice([f"ALTER TABLE {table.name} DROP {wrong}", f"ALTER TABLE {table.name} RENAME {wrong} TO {table.columns[-1].q}",
                           f"ALTER TABLE {table.name} ADD {table.columns[-1].q} int", f"ALTER TABLE {table.name} ALTER {wrong} TYPE text",
                           f"ALTER TABLE {table.name} DROP IF EXISTS nothing", f"ALTER TABLE nothing ADD x int",
                           f"ALTER TABLE IF EXISTS nothing ADD x int", f"ALTER TABLE {table.name} ADD x list<list<int>>"])
    table.default_ttl = rng.choice([0, 600000])
    return f"ALTER TABLE {table.name} WITH default_time_to_live = {table.default_ttl}"


def alter_type(rng, udts):
    udt = rng.choice(udts)
    return rng.choice([
        f"ALTER TYPE {udt.name} ADD extra{rng.randint(0, 3)} {values.scalar_type(rng).text()}",
        f"ALTER TYPE {udt.name} ADD {udt.field_names[0]} int",
        f"ALTER TYPE {udt.name} RENAME nothing TO other",
        f"ALTER TYPE {udt.name} RENAME {udt.field_names[0]} TO {udt.field_names[-1]}",
        f"DROP TYPE {udt.name}",
        f"CREATE TYPE {udt.name} (a int)",
        f"CREATE TYPE IF NOT EXISTS {udt.name} (a int)",
    ])
