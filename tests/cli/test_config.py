"""`rowlock config`: every setting in force, and where it came from; and that each way is read by the same rules."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Rowlock
from rowlock.errors import InvalidOption
from tests.cli.conftest import Type
from tests.cli.programs import Shop
from tests.depth import deep

Db = psycopg.Connection[TupleRow]
Shown = dict[str, tuple[Any, str]]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that says nothing."""
    for variable in [name for name in os.environ if name.startswith("ROWLOCK_") and name != "ROWLOCK_PG_BIN"]:
        monkeypatch.delenv(variable)


@pytest.fixture
def shown(typed: Type) -> Callable[..., Shown]:
    """What `rowlock config --json` says."""

    def run(*options: str) -> Shown:
        said = typed("config", "--json", *options)
        assert (said.code, said.err) == (0, "")
        return {name: (one["value"], one["source"]) for name, one in json.loads(said.out).items()}

    return run


def test_without_a_word_everything_is_a_default(shown: Callable[..., Shown]) -> None:
    settings = shown()

    value, reason = settings.pop("url")
    assert value is None
    assert reason.startswith("no database named")
    assert {source for _, source in settings.values()} == {"default"}
    assert {name: value for name, (value, _) in settings.items()} == {
        "app": None,
        "schema": "rowlock",
        "pooler": None,
        "listen_url": None,
        "deadline": 30,
        "imports": [],
        "keep": {"succeeded": 86400, "failed": 30 * 86400, "cancelled": 7 * 86400},
        "queues": ["default"],
        "slots": 100,
        "processes": 1,
        "threads": 32,
        "lease": 30,
        "renew": 10,
        "worker_deadline": 5,
        "grace": 30,
        "log_level": "info",
        "log_format": "text",
        "log_config": None,
    }


ENVIRONMENT = {
    "ROWLOCK_APP": "configured",
    "ROWLOCK_URL": "postgresql://ada:secret@db/shop",
    "ROWLOCK_SCHEMA": "from_environment",
    "ROWLOCK_POOLER": "yes",
    "ROWLOCK_LISTEN_URL": "postgresql+psycopg://ada:secret@around/shop",
    "ROWLOCK_DEADLINE": "2.5",
    "ROWLOCK_QUEUES": "mail=3,default=1",
    "ROWLOCK_SLOTS": "7",
    "ROWLOCK_PROCESSES": "3",
    "ROWLOCK_THREADS": "2",
    "ROWLOCK_LEASE": "5",
    "ROWLOCK_RENEW": "2",
    "ROWLOCK_WORKER_DEADLINE": "0.75",
    "ROWLOCK_GRACE": "0.5",
    "ROWLOCK_LOG_LEVEL": "debug",
}
CONFIGURED = """
from datetime import timedelta
from rowlock import Keep, Rowlock

app = Rowlock()
other = Rowlock(
    "postgresql://bob:secret@elsewhere/shop", schema="from_constructor", imports=["json"],
    keep=Keep(succeeded=timedelta(hours=1)),
    pooler=False, listen_url="host=around password=secret", deadline=timedelta(seconds=4),
)
"""


@pytest.fixture
def environment(typed: Type, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every variable is set."""
    shop.write("configured.py", CONFIGURED)
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)


@pytest.mark.usefixtures("environment")
def test_the_environment_wins_over_the_defaults(shown: Callable[..., Shown]) -> None:
    settings = shown()

    assert settings["url"] == ("postgresql://ada:***@db/shop", "$ROWLOCK_URL")
    assert settings["app"] == ("configured", "$ROWLOCK_APP")
    assert settings["schema"] == ("from_environment", "$ROWLOCK_SCHEMA")
    assert settings["pooler"] == (True, "$ROWLOCK_POOLER")
    assert settings["listen_url"] == ("postgresql://ada:***@around/shop", "$ROWLOCK_LISTEN_URL")
    assert settings["deadline"] == (2.5, "$ROWLOCK_DEADLINE")
    assert settings["queues"] == ({"mail": 3, "default": 1}, "$ROWLOCK_QUEUES")
    numbers = {"slots": 7, "processes": 3, "threads": 2, "lease": 5, "renew": 2, "worker_deadline": 0.75, "grace": 0.5}
    for name, number in numbers.items():
        assert settings[name] == (number, f"$ROWLOCK_{name.upper()}")
    assert settings["log_level"] == ("debug", "$ROWLOCK_LOG_LEVEL")


@pytest.mark.usefixtures("environment")
def test_the_constructor_wins_over_the_environment(shown: Callable[..., Shown]) -> None:
    settings = shown("--app", "configured:other")

    assert settings["app"] == ("configured:other", "command line")
    assert settings["url"] == ("postgresql://bob:***@elsewhere/shop", "constructor")
    assert settings["schema"] == ("from_constructor", "constructor")
    assert settings["pooler"] == (False, "constructor")
    assert settings["listen_url"] == ("host=around password=***", "constructor")
    assert settings["deadline"] == (4, "constructor")
    assert settings["imports"] == (["json"], "constructor")
    assert settings["keep"] == ({"succeeded": 3600, "failed": 30 * 86400, "cancelled": 7 * 86400}, "constructor")


@pytest.mark.usefixtures("environment")
def test_the_command_line_wins_over_everything(shown: Callable[..., Shown]) -> None:
    words = "--app configured:other --url postgresql://typed/shop --schema typed --queues typed --slots 9 --processes 1"
    more = "--threads 4 --lease 60 --renew 12 --deadline 3 --grace 6 --log-level error"

    settings = shown(*words.split(), *more.split())

    assert settings["url"] == ("postgresql://typed/shop", "command line")
    assert settings["schema"] == ("typed", "command line")
    assert settings["queues"] == (["typed"], "command line")
    numbers = {"slots": 9, "processes": 1, "threads": 4, "lease": 60, "renew": 12, "worker_deadline": 3, "grace": 6}
    assert {name: settings[name] for name in numbers} == {name: (n, "command line") for name, n in numbers.items()}
    assert settings["log_level"] == ("error", "command line")


def test_another_database_on_the_command_line_is_not_reached_as_the_constructor_says_of_its_own(
    typed: Type, shop: Shop, shown: Callable[..., Shown]
) -> None:
    shop.write("configured.py", CONFIGURED)

    settings = shown("--app", "configured:other", "--url", "postgresql://typed/shop")

    assert settings["pooler"] == (None, "default")
    assert settings["listen_url"] == (None, "default")
    assert settings["deadline"] == (4, "constructor")


def test_an_embedded_server_is_shown_and_not_started(shop: Shop, shown: Callable[..., Shown]) -> None:
    settings = shown("--embedded", "private")

    assert settings["url"] == ("embedded:private", "command line")
    assert not (shop.folder / "private").exists()


def test_it_is_a_table_for_people(typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:secret@db/shop")

    said = typed("config", "--queues", "mail=3,default=1", "--grace", "0.25")

    lines = [line.split("  ") for line in said.out.splitlines()]
    cells = {line[0]: [cell.strip() for cell in line if cell.strip()][1:] for line in lines}
    assert said.code == 0
    assert "secret" not in said.out
    assert cells["setting"] == ["value", "from"]
    assert cells["url"] == ["postgresql://ada:***@db/shop", "$DATABASE_URL"]
    assert cells["queues"] == ["mail 3, default 1", "command line"]
    assert cells["grace"] == ["0.25 s", "command line"]
    assert cells["lease"] == ["30 s", "default"]


# What makes no sense

WRONG = [
    ("queues", "mail,,default", "has an empty name"),
    ("queues", "mail,mail", "names a queue twice"),
    ("queues", "mail=3,default", "give every queue a weight, or none"),
    ("queues", "mail=0", "every weight must be more than zero"),
    ("slots", "0", "0 is out of range; give 1 or more"),
    ("slots", "many", "'many' is not a whole number; give 1 or more"),
    ("threads", "-1", "-1 is out of range"),
    ("lease", "0.5", "is out of range; give 1 seconds to a year"),
    ("lease", "nan", "is out of range"),
    ("renew", "0", "is out of range; give 0.05 seconds to a year"),
    ("grace", "soon", "'soon' is not a number; give seconds"),
    ("grace", "1e300", "is out of range"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG)
def test_a_value_is_refused_with_the_same_sentence_wherever_it_comes_from(
    typed: Type, monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    variable = f"ROWLOCK_{name.upper()}"

    on_the_command_line = typed("config", f"--{name}", value)
    monkeypatch.setenv(variable, value)
    in_the_environment = typed("config")
    with pytest.raises(InvalidOption) as in_python:
        Rowlock("postgresql:///none").worker()

    assert (on_the_command_line.code, in_the_environment.code) == (2, 2)
    assert sentence in on_the_command_line.err
    assert f"--{name}" in on_the_command_line.err
    assert sentence in in_the_environment.err
    assert variable in in_the_environment.err
    assert sentence in str(in_python.value)
    assert str(in_python.value).startswith(f"${variable}=")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"slots": 0}, "slots=0 is out of range; give 1 or more"),
        ({"threads": True}, "threads=True must be an int, not bool"),
        ({"lease": timedelta(milliseconds=1)}, "lease=0:00:00.001000 is out of range"),
        ({"grace": 5}, "grace=5 must be a timedelta"),
        ({"queues": []}, "queues=[] must name at least one queue"),
    ],
)
def test_what_is_given_in_python_is_refused_by_its_name(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        Rowlock("postgresql:///none").worker(**options)

    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pooler": 1}, "pooler=1 must be True, False or None, not int"),
        ({"listen_url": 5}, "listen_url=5 must be an address, not int"),
        ({"listen_url": "mysql://db"}, "listen_url='mysql://db' cannot be listened on: it is a mysql address"),
        ({"listen_url": "embedded:here"}, "listen_url='embedded:here' is an embedded server"),
        ({"deadline": 5}, "deadline=5 must be a timedelta"),
        ({"deadline": timedelta(0)}, "deadline=0:00:00 is out of range; give 0.1 seconds to a year"),
    ],
)
def test_what_an_app_is_given_is_refused_by_its_name(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        Rowlock("postgresql:///none", **options)

    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("ROWLOCK_POOLER", "maybe", "$ROWLOCK_POOLER='maybe' is neither yes nor no; give 1 or 0"),
        ("ROWLOCK_LISTEN_URL", "around", "$ROWLOCK_LISTEN_URL='around' cannot be listened on"),
        ("ROWLOCK_DEADLINE", "0", "$ROWLOCK_DEADLINE=0:00:00 is out of range"),
    ],
)
def test_how_the_database_is_reached_is_refused_naming_its_variable(
    typed: Type, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(variable, value)

    said = typed("config")

    assert said.is_one_sentence
    assert sentence in said.err


def test_a_schema_in_the_environment_that_is_no_name_is_refused_naming_its_variable(
    typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWLOCK_SCHEMA", "Not a name")

    said = typed("config")

    assert said.is_one_sentence
    assert "$ROWLOCK_SCHEMA: schema 'Not a name' must be" in said.err


def test_an_app_in_the_environment_that_is_none_is_refused_naming_its_variable(
    typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWLOCK_APP", "nothing")

    said = typed("config")

    assert said.is_one_sentence
    assert "--app is from $ROWLOCK_APP" in said.err


# What is in force is what is used


def test_a_worker_in_python_takes_what_it_is_not_given_from_the_environment(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWLOCK_SLOTS", "7")
    monkeypatch.setenv("ROWLOCK_QUEUES", "mail,default")

    environment = app.worker()
    constructor = app.worker(slots=3, queues="other")

    assert (environment._config.slots, environment._config.threads) == (7, 7)
    assert environment._config.queues.names == ("mail", "default")
    assert (constructor._config.slots, constructor._config.queues.names) == (3, ("other",))


@deep
def test_a_worker_process_can_be_configured_by_its_environment_alone(shop: Shop, url: str, db: Db) -> None:
    environment = {
        "ROWLOCK_APP": "shop",
        "ROWLOCK_URL": url,
        "ROWLOCK_QUEUES": "mail",
        "ROWLOCK_SLOTS": "7",
        "ROWLOCK_PROCESSES": "2",
        "ROWLOCK_GRACE": "1",
        "ROWLOCK_LOG_LEVEL": "info",
    }

    worker = shop.start("worker", env=environment)
    worker.says("works on mail with 7 slots", times=2)
    facts = db.execute("select queues, slots from rowlock.workers").fetchall()
    worker.signal(signal.SIGTERM)

    assert worker.ended() == 0, worker.errors
    assert facts == [(["mail"], 7)] * 2
