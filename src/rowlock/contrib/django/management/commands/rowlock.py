"""`manage.py rowlock`: the command line, for the app that settings.ROWLOCK_APP names."""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from rowlock.cli import main
from rowlock.contrib.django.apps import MISSING

# What names an app or a database, or asks for neither.
_PLACES = {"--app", "--url", "--embedded"}
_HELP = {"--help", "--version", "completion", "demo"}


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
        try:
            _name_app(ours)
        except CommandError as error:
            self.stderr.write(f"{error}")
            sys.exit(2)
        main(ours, command=[sys.executable, *_started_by(program), "rowlock", *typed])

    def add_arguments(self, parser: CommandParser) -> None:
        """Whatever the command line takes."""
        parser.add_argument("args", nargs=REMAINDER, metavar="…")

    def handle(self, *args: str, **_options: object) -> None:
        """Called by other code: `call_command("rowlock", "migrate")`."""
        _name_app(args)
        try:
            main(args)
        except SystemExit as end:
            if end.code:
                raise CommandError(f"rowlock {' '.join(args)} ended with exit code {end.code}") from end

    def print_help(self, prog_name: str, subcommand: str) -> None:  # noqa: ARG002  Django's signature
        """`manage.py help rowlock`: our own, without the options of Django's that none of our commands takes."""
        with suppress(SystemExit):
            main(["--help"])


def _name_app(typed: Sequence[str]) -> None:
    """The settings say what --app is, unless it is typed; the children of `worker --processes` learn it too."""
    if named := getattr(settings, "ROWLOCK_APP", None):
        os.environ["ROWLOCK_APP"] = named
    elif typed and not _HELP.intersection(typed) and not any(word.partition("=")[0] in _PLACES for word in typed):
        raise CommandError(MISSING)


def _started_by(program: str) -> list[str]:
    """What Python was given: manage.py, or `-m django`, whose file would put Django's own folder on sys.path."""
    return ["-m", "django"] if Path(program).name == "__main__.py" else [program]
