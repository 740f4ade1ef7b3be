"""What the page about deploying hands to others: commands that exist, and a patience that is long enough."""

from __future__ import annotations

import json
import re
import shlex

import click
import pytest

from rowlock.cli.program import program
from tests.docs.pages import ROOT, Page
from tests.docs.parsing import parse_dockerfile, parse_ini

PAGE = Page(ROOT / "docs" / "guides" / "deploying.md")

# What a worker takes to hand back, beyond its grace.
HAND_BACK = 10


def block(language: str) -> str:
    (only,) = [block.text for block in PAGE.blocks if block.language == language]
    return only


def commands() -> dict[str, list[str]]:
    """The worker's command, as each of them would start it."""
    unit = parse_ini(block("ini"))["Service"]["ExecStart"]
    docker = dict(parse_dockerfile(block("dockerfile")))["CMD"]
    listed = re.search(r"^ +command: (\[\"rowlock\".*\])$", block("yaml"), re.MULTILINE)
    assert listed is not None
    return {
        "systemd": shlex.split(unit.replace("/srv/shop/.venv/bin/", "")),
        "docker": json.loads(docker),
        "kubernetes": json.loads(listed[1]),
    }


@pytest.mark.parametrize("where", ["systemd", "docker", "kubernetes"])
def test_a_command_is_one_that_rowlock_takes(where: str) -> None:
    name, verb, *options = commands()[where]
    worker = program.get_command(click.Context(program), verb)

    assert name == "rowlock"
    assert worker is not None
    with worker.make_context(verb, options) as context:
        assert (context.params["app"], context.params["grace"].total_seconds()) == ("shop:app", 30)


def test_whoever_kills_waits_for_the_grace_and_the_handing_back() -> None:
    patience = {
        "systemd": int(parse_ini(block("ini"))["Service"]["TimeoutStopSec"]),
        "kubernetes": int(re.findall(r"terminationGracePeriodSeconds: (\d+)", block("yaml"))[0]),
        "docker": int(re.findall(r"docker stop --time (\d+)", PAGE.path.read_text(encoding="utf-8"))[0]),
    }
    grace = {int(words[words.index("--grace") + 1]) for words in commands().values()}

    assert min(patience.values()) > max(grace) + HAND_BACK
