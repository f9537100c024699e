# SPDX-License-Identifier: Apache-2.0
"""A round: one keyspace with a random schema, and the statements that are run in it, all from one seed."""

import random
from dataclasses import dataclass

from scripts import Statement

from . import schema, statements


@dataclass
class Step:
    statement: Statement
    tables: tuple = ()  # names of the tables it needs; of DDL: those it makes
    is_ddl: bool = False


def make_round(seed, number, count):
    """`count` statements beside those that make the schema."""
    rng = random.Random(f"{seed}/{number}")
    steps = []
    udts = schema.make_udts(rng)
    for udt in udts:
        steps.append(Step(Statement(schema.udt_text(udt)), (), True))
    tables = [schema.make_table(rng, f"t{i}", udts) for i in range(3)]
    for table in tables:
        steps.append(Step(Statement(schema.table_text(rng, table)), (table.name,), True))
    for table in tables:
        for _ in range(rng.choice([0, 1, 2, 3]) if not table.counts else 0):
            steps.append(Step(Statement(schema.create_index(rng, table)), (table.name,), True))
    made = 0
    while made < count:
        table = rng.choice(tables)
        progress = made / count
        what = rng.random()
        if what < 0.012 and progress > 0.3:
            steps.append(Step(Statement(schema.alter(rng, table, udts)), (table.name,), True))
        elif what < 0.016 and progress > 0.3:
            make = schema.create_index if rng.random() < 0.6 else schema.drop_index
            steps.append(Step(Statement(make(rng, table)), (table.name,), True))
        elif what < 0.018 and progress > 0.3 and udts:
            steps.append(Step(Statement(schema.alter_type(rng, udts)), (), True))
        elif what < 0.024:
            steps.append(Step(Statement(describe(rng, table, udts)), (table.name,)))
        else:
            steps.append(data_step(rng, table, tables, progress))
        made += 1
    return steps


def describe(rng, table, udts):
    name = table.name
    return rng.choice([
        f"DESCRIBE TABLE {name}",
        f"SELECT column_name, kind, position, type, clustering_order FROM system_schema.columns WHERE keyspace_name = '%KS%' AND table_name = '{name}'",
        f"SELECT index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = '%KS%' AND table_name = '{name}'",
        f"SELECT column_name, kind, type FROM system_schema.dropped_columns WHERE keyspace_name = '%KS%' AND table_name = '{name}'",
        "SELECT type_name, field_names, field_types FROM system_schema.types WHERE keyspace_name = '%KS%'",
        "DESCRIBE TYPES" if not udts else f"DESCRIBE TYPE {rng.choice(udts).name}",
    ])


def data_step(rng, table, tables, progress):
    prepared = rng.random() < 0.35
    maker = statements.Maker(rng, prepared)
    reads = rng.random() < (0.1 if progress < 0.15 else 0.55)
    page = None
    if reads:
        text = statements.select(rng, table, maker)
        if rng.random() < 0.3:
            page = rng.choice([1, 2, 3, 7])
    else:
        what = rng.random()
        if what < 0.06:
            maker = statements.Maker(rng, prepared)
            text = statements.batch(rng, [table], maker)
        elif what < 0.12:
            maker = statements.Maker(rng, False)
            text = statements.one_partition(rng, [table], maker)
            prepared = False
        elif what < 0.5 and not table.timed and not table.counts:
            text = statements.conditional(rng, table, maker)
        else:
            text = statements.write_one(rng, table, maker)
    # A batch with a log is of one partition: another key in it would make it one of several.
    if not maker.makes and rng.random() < 0.15 and not text.startswith("BEGIN BATCH"):
        text = statements.spoil(rng, text, table)
    values = maker.executions(rng.choice([1, 1, 2])) if prepared else None
    return Step(Statement(text, page, values), (table.name,))
