"""Log setup: standard error in our format, unless the app or a file says otherwise."""

from __future__ import annotations

import json
import logging
import logging.config
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from rowlock.logs import JobFields, JsonLines, TextLines
from rowlock.worker.logs import keep_loggers_enabled

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

log = logging.getLogger("rowlock.worker")


class _LastResortHandler(logging.StreamHandler[TextIO]):
    """Our handler. Python asks it for records that no other handler takes: no line is lost, and none comes twice."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """Standard error as it is now."""
        return sys.stderr


@dataclass(frozen=True, slots=True)
class LogSetup:
    """The logging options that were typed, and how they apply before and after the app is imported."""

    level: str
    format: str = "text"
    config: Path | None = None
    # What was typed, or is in the environment, and not the default: an app's own configuration does not overrule that.
    typed: frozenset[str] = frozenset()
    with_pid: bool = False

    def begin(self) -> None:
        """Before the app is imported: it may set up logging, and what is logged meanwhile is not lost."""
        if self.config is not None:
            _read(self.config)
        handler = _LastResortHandler()
        handler.setFormatter(JsonLines() if self.format == "json" else TextLines(with_pid=self.with_pid))
        handler.addFilter(JobFields(missing=None))
        logging.lastResort = handler

    def settle(self) -> None:
        """After the import: the file applies, else what the app has set up, else our format and level."""
        keep_loggers_enabled()
        root = logging.getLogger()
        if self.config is not None:
            _apply(self.config)
        elif not root.handlers:
            root.setLevel(self.level.upper())
        else:
            if "log_level" in self.typed:
                logging.getLogger("rowlock").setLevel(self.level.upper())
            if "log_format" in self.typed:
                log.warning("--log-format %s changes nothing: the app has set up logging itself", self.format)


def log_setup(ctx: click.Context, options: Mapping[str, str | None], *, with_pid: bool) -> LogSetup:
    """What a command's options say: log_level, log_format and log_config."""
    typed = frozenset(name for name in options if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT)
    level, form, config = (options[name] for name in ("log_level", "log_format", "log_config"))
    return LogSetup(level or "info", form or "text", Path(config) if config else None, typed, with_pid)


def _read(path: Path) -> dict[str, Any] | None:
    """A configuration for dictConfig; None for a file that fileConfig reads."""
    try:
        match path.suffix:
            case ".json":
                table = json.loads(path.read_text(encoding="utf-8"))
            case ".toml":
                table = tomllib.loads(path.read_text(encoding="utf-8"))
            case ".ini" | ".conf" | ".cfg":
                path.read_text(encoding="utf-8")
                return None
            case _:
                raise _refused(path, "it must end in .json or .toml (for dictConfig) or .ini (for fileConfig)")
    except (OSError, ValueError) as error:
        raise _refused(path, str(error)) from None
    if not isinstance(table, dict):
        raise _refused(path, "it holds no table for dictConfig")
    return {"version": 1, "disable_existing_loggers": False, **table}


def _apply(path: Path) -> None:
    try:
        if (table := _read(path)) is None:
            logging.config.fileConfig(path, disable_existing_loggers=False, encoding="utf-8")
        else:
            logging.config.dictConfig(table)
    except click.BadParameter:
        raise
    except Exception as error:  # of whatever classes the file names
        why = f"{error}: {error.__cause__}" if error.__cause__ else str(error)
        raise _refused(path, f"logging refuses it ({type(error).__name__}: {why})") from error


def _refused(path: Path, why: str) -> click.BadParameter:
    return click.BadParameter(f"{path}: {why}", param_hint="--log-config")
