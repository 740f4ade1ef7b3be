"""The worker's log: each line once, whatever the app or the operator has set up, and with the job that it is about."""

from __future__ import annotations

import json
import signal

import pytest

from tests.cli.programs import Program, Shop
from tests.rows import Db

# Lines of a handler on the loop, in a thread, and in a step in a thread.
TALKS = """
import logging

from rowlock import Context, Retry, Rowlock

app = Rowlock()
logging.getLogger().warning("imported")
log = logging.getLogger("talks")


@app.task
async def on_loop() -> None:
    log.info("on the loop")


@app.task(retry=Retry.none())
def in_thread() -> None:
    log.info(f"in a {'thread'}")
    raise ValueError("kaputt")


@app.workflow
async def in_step(ctx: Context) -> None:
    await ctx.step(log_it)


def log_it() -> None:
    log.info("in a step")
"""

CONFIG = {
    "formatters": {"theirs": {"format": "THEIRS %(name)s %(message)s"}},
    "handlers": {"theirs": {"class": "logging.StreamHandler", "formatter": "theirs"}},
    "root": {"level": "INFO", "handlers": ["theirs"]},
}
# What an app may do about logging.
APPS = {
    "nothing": "",
    "basicConfig": "logging.basicConfig(level='INFO', format='THEIRS %(name)s %(message)s')",
    "dictConfig, which disables existing loggers": "import logging.config; logging.config.dictConfig({'version': 1} | "
    f"{CONFIG})",
    "only its own logger": "logging.getLogger('talks').addHandler(logging.StreamHandler())",
}


def worked(shop: Shop, db: Db, url: str, *options: str) -> Program:
    """What a worker logs that has run the three."""
    worker = shop.start("worker", "--app", "talks", "--url", url, *options)
    worker.says("works on")
    db.execute("select rowlock.enqueue('talks.on_loop'), rowlock.enqueue('talks.in_thread', attempts => 1)")
    db.execute("select rowlock.enqueue('talks.in_step', version => 1)")
    for words in ("on the loop", "kaputt", "in a step"):
        worker.says(words)
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0, worker.errors
    return worker


@pytest.mark.parametrize("name", APPS)
def test_each_line_comes_once_whatever_the_app_does_about_logging(shop: Shop, db: Db, url: str, name: str) -> None:
    shop.write("talks.py", TALKS.replace('logging.getLogger().warning("imported")', APPS[name]))

    worker = worked(shop, db, url)

    for words in ("on the loop", "in a thread", "in a step", "works on", "failed for good", "has stopped"):
        assert sum(words in line for line in worker.err) == 1, worker.errors
    assert ("THEIRS" in worker.errors) == ("Config" in name)


def test_lines_of_handlers_name_their_job(shop: Shop, db: Db, url: str) -> None:
    shop.write("talks.py", TALKS)

    worker = worked(shop, db, url)

    for task, words in (("on_loop", "on the loop"), ("in_thread", "in a thread"), ("in_step", "in a step")):
        [line] = [line for line in worker.err if line.endswith(words)]
        assert f" INFO    talks talks.{task} 01" in line
    assert any(line.endswith("WARNING root imported") for line in worker.err)
    assert any(line.endswith("ValueError: kaputt") and "failed for good" in line for line in worker.err)
    assert "since the last minute: 2 succeeded, 1 failed" in worker.errors


def test_json_has_the_fields_and_the_traceback(shop: Shop, db: Db, url: str) -> None:
    shop.write("talks.py", TALKS)

    records = [json.loads(line) for line in worked(shop, db, url, "--log-format", "json").err]

    [failed] = [one for one in records if one.get("outcome") == "failed"]
    [said] = [one for one in records if one["message"] == "in a thread"]
    assert failed["job_id"] == said["job_id"]
    assert (said["task"], said["queue"], said["attempt"]) == ("talks.in_thread", "default", 1)
    assert (failed["level"], failed["error_type"], failed["error"]) == ("ERROR", "ValueError", "kaputt")
    assert 'raise ValueError("kaputt")' in failed["traceback"]


@pytest.mark.parametrize("suffix", ["json", "toml", "ini"])
def test_a_file_says_how_to_log(shop: Shop, db: Db, url: str, suffix: str) -> None:
    shop.write(
        "talks.py",
        TALKS.replace('logging.getLogger().warning("imported")', APPS["basicConfig"].replace("THEIRS", "NOT")),
    )
    texts = {
        "json": json.dumps(CONFIG).replace("THEIRS", "FILE"),
        "toml": """
            [formatters.theirs]
            "()" = "rowlock.logs.JsonLines"
            [filters.job]
            "()" = "rowlock.logs.JobFields"
            [handlers.theirs]
            class = "logging.StreamHandler"
            formatter = "theirs"
            filters = ["job"]
            [root]
            level = "INFO"
            handlers = ["theirs"]
            """,
        "ini": """
[loggers]
keys = root
[handlers]
keys = theirs
[formatters]
keys = theirs
[logger_root]
level = INFO
handlers = theirs
[handler_theirs]
class = StreamHandler
formatter = theirs
[formatter_theirs]
format = FILE %(name)s %(message)s
""",
    }
    shop.write(f"log.{suffix}", texts[suffix])

    worker = worked(shop, db, url, "--log-config", f"log.{suffix}")

    assert "NOT" not in worker.errors
    [line] = [line for line in worker.err if "on the loop" in line]
    if suffix == "toml":
        assert json.loads(line)["task"] == "talks.on_loop"
    else:
        assert line == "FILE talks on the loop"


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("log.json", "{", "Expecting property name"),
        ("log.json", "[]", "holds no table"),
        ("log.yaml", "", "must end in .json or .toml"),
        ("log.json", '{"handlers": {"x": {"class": "none.Such"}}}', "Unable to configure handler 'x'"),
    ],
)
def test_a_file_that_logging_cannot_use_is_refused_by_name(shop: Shop, file: str, text: str, said: str) -> None:
    shop.write(file, text)

    refused = shop.run("worker", "--app", "shop", "--log-config", file)

    assert refused.process.returncode == 2
    assert f"{file}: " in refused.errors
    assert said in refused.errors
