"""The schema as PostgreSQL describes it: the same text from every major version, to be reviewed with each change.

Written anew into src/rowlock/store/migrations/schema.sql by: ./run python -m tests.store.snapshot
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from psycopg.rows import TupleRow

from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.migrate import migrate
from rowlock.db.session import Connection, connect

FILE = Path(__file__).resolve().parents[2] / "src" / "rowlock" / "store" / "migrations" / "schema.sql"

HEAD = """\
-- The sum of the migrations, as PostgreSQL describes it. People, a test and the doctor read it.
-- Written by: ./run python -m tests.store.snapshot
"""

# Partitions are left out: they come and go with the days.
_TABLES = """
select
    class.oid, class.relname, class.relpersistence = 'u', pg_get_partkeydef(class.oid),
    array_to_string(class.reloptions || array(
        select 'toast.' || option from pg_class as toast cross join unnest(toast.reloptions) as option
        where toast.oid = class.reltoastrelid
    ), ', ')
from pg_class as class
where class.relnamespace = %s::regnamespace and class.relkind in ('r', 'p') and not class.relispartition
order by class.relname
"""

_COLUMNS = """
select
    attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid)
from pg_attribute
left join pg_attrdef on adrelid = attrelid and adnum = attnum
where attrelid = %s and attnum > 0 and not attisdropped
order by attnum
"""

# From 18 on, NOT NULL is a constraint of its own; it stands with its column.
_CONSTRAINTS = """
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = %s and contype <> 'n' order by conname
"""

_INDEXES = """
select pg_get_indexdef(indexrelid)
from pg_index
where indrelid = %s and not exists (select from pg_constraint where conindid = indexrelid)
order by indexrelid::regclass::text
"""

_FUNCTIONS = """
select pg_get_functiondef(oid) from pg_proc where pronamespace = %s::regnamespace order by proname, oid
"""

_OTHERS = """
select format('%%s %%s', kind, name) from (
    select 'sequence' as kind, relname as name, relnamespace as home from pg_class where relkind = 'S'
    union all
    select 'view', relname, relnamespace from pg_class where relkind in ('v', 'm')
    union all
    select 'type', typname, typnamespace from pg_type where typtype in ('d', 'e', 'r')
    union all
    select 'trigger', tgname, relnamespace
    from pg_trigger join pg_class on pg_class.oid = tgrelid
    where not tgisinternal
) as other
where home = %s::regnamespace
order by 1
"""


def snapshot(connection: Connection, schema: str) -> str:
    """Tables with their columns, constraints and indexes, then functions, then the names of anything else."""
    parts = [HEAD]
    parts += [_table(connection, schema, table) for table in _rows(connection, _TABLES, schema)]
    parts += [f"{_plain(text)};\n" for (text,) in _rows(connection, _FUNCTIONS, schema)]
    parts += [f"-- also: {name}\n" for (name,) in _rows(connection, _OTHERS, schema)]
    return "\n".join(parts)


def _table(connection: Connection, schema: str, table: TupleRow) -> str:
    oid, name, unlogged, partitioned, options = table
    lines = [
        f"    {column} {kind}{' not null' if needed else ''}{f' default {default}' if default else ''}"
        for column, kind, needed, default in _rows(connection, _COLUMNS, oid)
    ]
    lines += [f"    constraint {label} {text}" for label, text in _rows(connection, _CONSTRAINTS, oid)]
    end = f" partition by {partitioned}" if partitioned else f" with ({options})" if options else ""
    made = f"create{' unlogged' if unlogged else ''} table {schema}.{name} (\n" + ",\n".join(lines) + f"\n){end};\n"
    return made + "".join(f"{text};\n" for (text,) in _rows(connection, _INDEXES, oid))


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _rows(connection: Connection, query: str, value: object) -> list[TupleRow]:
    return connection.execute(query.encode(), [value]).fetchall()


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="rowlock-snapshot-") as folder,
        EmbeddedPostgres(Path(folder) / "pg") as server,
        connect(server.url, name="snapshot") as connection,
    ):
        migrate(connection, "rowlock")
        FILE.write_text(snapshot(connection, "rowlock"), encoding="utf-8")
    sys.stdout.write(f"written: {FILE}\n")


if __name__ == "__main__":
    main()
