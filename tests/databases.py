"""Databases of tests, used again: emptying one costs a fifth of making one (8 against 40 ms of processor time).

A database is used again only if nothing has changed but its rows, its clock, its parts and what is beside our schema:
the same catalogs (tables, functions, rights, statistics), no settings of its own, and nobody connected. Each test finds
it under a new name, so whoever connects late meets no other test.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres

Connection = psycopg.Connection[TupleRow]

# Databases that cannot be used again are dropped only when there are this many (8 MB each): to drop one costs as much
# as to make one, and most test processes end before.
_AT_MOST = 100
# A session of the test that has just ended may need a moment to go.
_PATIENCE = 0.5

_CATALOGS = """
select count(*) || ' ' || sum(hashtextextended(entry, 0)) from (
    select concat_ws(
        ' ', 'class', oid, relname, relnamespace, relowner, relhasindex, relpersistence, relkind, relnatts, relchecks,
        relhasrules, relhastriggers, relrowsecurity, relforcerowsecurity, relispartition, relreplident, relacl,
        reloptions
    ) from pg_class where relpersistence <> 't'
    union all select concat_ws(' ', 'column', attrelid, attnum, xmin) from pg_attribute where attrelid >= 16384
    union all select concat_ws(' ', 'index', indexrelid, xmin) from pg_index where indexrelid >= 16384
    union all select concat_ws(' ', 'default', oid, xmin) from pg_attrdef
    union all select concat_ws(' ', 'constraint', oid, xmin) from pg_constraint
    union all select concat_ws(' ', 'function', oid, xmin) from pg_proc where oid < 16384
    union all select concat_ws(' ', 'function', own) from pg_proc as own where oid >= 16384
    union all select concat_ws(' ', 'trigger', oid, xmin) from pg_trigger
    union all select concat_ws(' ', 'rule', oid, xmin) from pg_rewrite
    union all select concat_ws(' ', 'policy', oid, xmin) from pg_policy
    union all select concat_ws(' ', 'schema', oid, nspname, nspowner, nspacl) from pg_namespace
        where nspname !~ '^pg_(toast_)?temp'
    union all select concat_ws(' ', 'extension', oid, xmin) from pg_extension
    union all select concat_ws(' ', 'publication', oid, xmin) from pg_publication
    union all select concat_ws(' ', 'rights', oid, xmin) from pg_default_acl
    union all select concat_ws(' ', 'event trigger', oid, xmin) from pg_event_trigger
    union all select concat_ws(' ', 'large object', oid, xmin) from pg_largeobject_metadata
    union all select concat_ws(' ', 'statistics', starelid, xmin) from pg_statistic where starelid >= 16384
    union all select concat_ws(' ', 'database', datacl, datallowconn, datconnlimit)
        from pg_database where datname = current_database()
) as entries (entry)
"""
# What tests make beside our schema, and the parts that are made when they move the clock.
_MADE = """
select format(
    'drop %%s if exists %%s cascade',
    case relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end, oid::regclass
)
from pg_class
where relkind in ('r', 'v', 'S') and relnamespace in ('public'::regnamespace, 'rowlock'::regnamespace)
    and oid <> all(%s::oid[])
union all
select format('drop routine if exists %%s cascade', oid::regprocedure)
from pg_proc where pronamespace = 'public'::regnamespace
"""
_OURS = "select array_agg(oid) from pg_class where relnamespace = 'rowlock'::regnamespace"
# To drop more than this costs more than to make a database.
_MOST_MADE = 25
_CLOCK = "select pg_get_functiondef('rowlock.now()'::regprocedure)"
# What has pages, and what vacuum has counted, which it writes without a trace in the catalogs' versions.
_FILLED = """
select oid::regclass::text from pg_class
where relkind = 'r' and relpersistence <> 't' and oid >= 16384 and (pg_relation_size(oid) > 0 or reltuples >= 0)
"""
_SEQUENCES = "select setval(seqrelid, seqstart, false) from pg_sequence"
_USED = """
select from pg_stat_activity where datname = %(name)s
union all select from pg_prepared_xacts where database = %(name)s
"""
# With another search_path, for one, our own statements here would mean something else.
_SET = "select from pg_db_role_setting join pg_database as base on setdatabase = base.oid where base.datname = %(name)s"


class _Content(NamedTuple):
    """What a table of the template holds, and where in its pages."""

    rows: str
    places: str


class Databases:
    """The databases of one test process, all of them copies of one template."""

    def __init__(self, server: EmbeddedPostgres, template: str) -> None:
        self._server = server
        self._template = template
        self._clean: list[str] = []
        self._spoilt: list[str] = []
        with psycopg.connect(template, autocommit=True) as connection:
            self._contents = {table: _content(connection, table) for table in _filled(connection)}
            self._catalogs = _catalogs(connection)
            self._clock = _clock(connection)
            [(self._ours,)] = connection.execute(_OURS).fetchall()
        self._admin = psycopg.connect(server.url, autocommit=True)

    def close(self) -> None:
        self._admin.close()

    @contextmanager
    def one(self) -> Iterator[str]:
        """The address of a database with our schema and no jobs."""
        url = self._clean.pop() if self._clean else self._make()
        yield url
        if self._is_left(url) and self._empty(url := self._renamed(url)):
            self._clean.append(url)
        else:
            self._spoilt.append(url)

    def _make(self) -> str:
        while len(self._spoilt) >= _AT_MOST:
            disposable.drop(self._server.url, self._spoilt.pop(0))
        return disposable.create(self._server.url, template=self._template)

    def _is_left(self, url: str) -> bool:
        """Wait a moment for sessions that are going, and for nobody who stays."""
        if self._admin.execute(_SET, {"name": _name(url)}).rowcount:
            return False
        patience = time.monotonic() + _PATIENCE
        while self._admin.execute(_USED, {"name": _name(url)}).rowcount:
            if time.monotonic() > patience:
                return False
        return True

    def _renamed(self, url: str) -> str:
        """Another name, while nobody is connected: else PostgreSQL waits for them."""
        name = f"rowlock_test_{uuid4().hex}"
        statement = sql.SQL("alter database {} rename to {}").format(sql.Identifier(_name(url)), sql.Identifier(name))
        self._admin.execute(statement)
        return self._server.url_of(name)

    def _empty(self, url: str) -> bool:
        """Make a database as the template is; false if a test has changed too much, such as dropped our schema."""
        with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as connection:
            if _clock(connection) != self._clock:
                connection.execute(self._clock.encode())
            made = connection.execute(_MADE, [self._ours]).fetchall()
            if len(made) > _MOST_MADE:
                return False
            for (statement,) in made:
                connection.execute(str(statement).encode())
            if _catalogs(connection) != self._catalogs:
                return False
            contents = {table: _content(connection, table) for table in self._contents}
            changed = [table for table in _filled(connection) if contents.get(table) != self._contents.get(table, ...)]
            if changed:
                connection.execute(f"truncate {', '.join(changed)}".encode())
            for table in set(changed) & set(self._contents):
                rows = self._contents[table].rows
                fill = f"insert into {table} select * from json_populate_recordset(null::{table}, %s)"
                connection.execute(fill.encode(), [rows])
            connection.execute(_SEQUENCES)
            return True
        return False


def _name(url: str) -> str:
    return str(conninfo_to_dict(url)["dbname"])


def _catalogs(connection: Connection) -> str:
    [(catalogs,)] = connection.execute(_CATALOGS).fetchall()
    return str(catalogs)


def _clock(connection: Connection) -> str:
    [(clock,)] = connection.execute(_CLOCK).fetchall()
    return str(clock)


def _filled(connection: Connection) -> list[str]:
    return [str(table) for (table,) in connection.execute(_FILLED).fetchall()]


def _content(connection: Connection, table: str) -> _Content:
    query = f"select json_agg(entry), string_agg(ctid::text, ' ') from {table} as entry"
    [(rows, places)] = connection.execute(query.encode()).fetchall()
    return _Content(json.dumps(rows), str(places))
