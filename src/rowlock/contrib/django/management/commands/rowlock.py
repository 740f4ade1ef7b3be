"""`python manage.py rowlock …`: the command line, for the app that settings.ROWLOCK_APP names."""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from rowlock.cli import main


class Command(BaseCommand):  # type: ignore[misc]  # Django has no types
    """Passes everything on."""

    help = "The command line of Rowlock: `manage.py rowlock worker`, `manage.py rowlock stats` …"

    def run_from_argv(self, argv: Sequence[str]) -> None:
        """As it was typed; Django's own options are taken out, and it has already obeyed them."""
        program, _, *typed = argv
        djangos = CommandParser(add_help=False, allow_abbrev=False)
        djangos.add_argument("--settings")
        djangos.add_argument("--pythonpath")
        _, ours = djangos.parse_known_args(typed)
        _name_app()
        main(ours, command=[sys.executable, *_started_by(program), "rowlock", *typed])

    def add_arguments(self, parser: CommandParser) -> None:
        """Whatever the command line takes."""
        parser.add_argument("args", nargs=REMAINDER, metavar="…")

    def handle(self, *args: str, **_options: object) -> None:
        """Called by other code: `call_command("rowlock", "migrate")`."""
        _name_app()
        try:
            main(args)
        except SystemExit as end:
            if end.code:
                raise CommandError(f"rowlock {' '.join(args)} ended with exit code {end.code}") from end


def _name_app() -> None:
    """The settings say what --app is, unless it is typed; the children of `worker --processes` learn it too."""
    if named := getattr(settings, "ROWLOCK_APP", None):
        os.environ["ROWLOCK_APP"] = named


def _started_by(program: str) -> list[str]:
    """What Python was given: manage.py, or `-m django`, whose file would put Django's own folder on sys.path."""
    return ["-m", "django"] if Path(program).name == "__main__.py" else [program]
