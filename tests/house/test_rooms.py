"""Arrows between rooms point one way, and a driver is met in one room only."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.house.reading import Source, called, package

# Each room may use itself, the rooms before it and the errors; the last ones stand outside and look in.
FLOORS = (
    ("model",),
    ("store",),
    ("db",),
    ("workflow",),
    ("worker",),
    ("app", "doctor", "explain", "logs", "types", "version"),
    ("dashboard",),
    ("cli", "demo", "testing", "contrib"),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

DRIVERS = {"psycopg", "psycopg_pool", "psycopg2", "asyncpg", "sqlalchemy", "pg8000", "django.db"}
NO_DRIVERS = {"django.db.models.signals"}  # Django's word that it has migrated

# What reaches outside the process, or reads a clock.
OUTSIDE = {"asyncio", "datetime.now", "http", "os", "pathlib", "socket", "subprocess", "threading", "time", "urllib"}
CLOCKS_ALLOWED = {
    "model/ids.py": {"os", "threading", "time"},  # a UUIDv7 is made of the time, randomness and a count
}


def rooms_used(source: Source) -> Iterator[str]:
    for name in source.imports():
        parts = name.split(".")
        if parts[0] == "rowlock":
            yield parts[1] if len(parts) > 1 else "rowlock"


def test_every_room_is_on_the_map() -> None:
    unknown = {source.room for source in package()} - FLOOR.keys() - {"__init__", "__main__", "errors"}

    assert not unknown


def test_arrows_point_one_way() -> None:
    wrong = [
        f"{source.name} imports {room}"
        for source in package()
        if source.room in FLOOR
        for room in rooms_used(source)
        if room != "errors" and FLOOR.get(room, len(FLOORS)) > FLOOR[source.room]
    ]

    assert wrong == []


def test_errors_import_nothing_of_ours() -> None:
    errors = [source for source in package() if source.room == "errors"]

    assert [room for source in errors for room in rooms_used(source)] == []


def test_nobody_inside_imports_the_package_as_users_do() -> None:
    inside = [source for source in package() if FLOOR.get(source.room, len(FLOORS)) < FLOOR["cli"]]

    assert [source.name for source in inside if "rowlock" in rooms_used(source)] == []


def test_only_db_imports_a_driver() -> None:
    wrong = [
        f"{source.name} imports {name}"
        for source in package()
        if source.room != "db"
        for name in source.imports()
        if is_in(name, DRIVERS) and not is_in(name, NO_DRIVERS)
    ]

    assert wrong == []


@pytest.mark.parametrize("name", ["psycopg", "psycopg.rows.TupleRow", "django.db", "django.db.connection"])
def test_the_rule_knows_a_driver(name: str) -> None:
    assert is_in(name, DRIVERS)


@pytest.mark.parametrize("name", ["psycopgs", "django.conf.settings"])
def test_the_rule_passes_over(name: str) -> None:
    assert not is_in(name, DRIVERS)


def is_in(name: str, modules: set[str]) -> bool:
    return any(f"{name}.".startswith(f"{module}.") for module in modules)


def test_inside_only_db_speaks_to_a_connection() -> None:
    wrong = [
        f"{source.name}:{call.lineno} calls {called(call)}"
        for source in package()
        if source.room != "db" and FLOOR.get(source.room, len(FLOORS)) < FLOOR["cli"]
        for call in source.calls()
        if called(call) in {"execute", "executemany", "cursor", "fetchone", "fetchall"}
    ]

    assert wrong == []


def test_the_model_does_no_io_and_reads_no_clock() -> None:
    wrong = [
        f"{source.name} imports {name}"
        for source in package()
        if source.room == "model"
        for name in source.imports()
        if name.split(".")[0] in OUTSIDE - CLOCKS_ALLOWED.get(source.name, set())
    ]

    assert wrong == []


def test_the_store_holds_no_connection_and_starts_nothing() -> None:
    wrong = [
        f"{source.name} imports {name}"
        for source in package()
        if source.room == "store"
        for name in source.imports()
        if name.split(".")[0] in OUTSIDE
    ]

    assert wrong == []


def test_the_rules_cover_names_that_exist() -> None:
    standard = {name.split(".")[0] for name in OUTSIDE}

    assert standard <= set(sys.stdlib_module_names)
    assert CLOCKS_ALLOWED.keys() <= {source.name for source in package()}
