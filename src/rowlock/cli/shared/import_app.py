"""Import of the app: finds what `--app` names; errors are one sentence."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rowlock.app.app import Rowlock
from rowlock.errors import RowlockError

DEFAULT_NAME = "app"


class AppNotFound(RowlockError):
    """`--app` names no app."""


def load_app(target: str) -> Rowlock:
    """Import the module, with the current folder on sys.path, and take the app from it."""
    module_name, _, name = target.partition(":")
    name = name or DEFAULT_NAME
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise AppNotFound(f"--app wants a module, not a file; write --app {dotted}:{name}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    with importing(module_name):
        module = import_module(module_name)
    return _app_in(module, name)


def load_tasks(app: Rowlock, target: str | None) -> None:
    """Import the modules of the app's tasks, if `--app` was given."""
    if target is not None:
        with importing(target):
            app.load()


@contextmanager
def importing(target: str) -> Iterator[None]:
    """Turn an import that fails inside it into a sentence that says whose fault it is."""
    try:
        yield
    except RowlockError:
        raise  # a task was declared wrongly: it says so itself
    except ModuleNotFoundError as error:
        missing = error.name or "?"
        if missing == target or target.startswith(f"{missing}."):
            raise AppNotFound(
                f"there is no module {missing!r} in {Path.cwd()} or on the Python path; "
                "check --app, and that you are in the folder of your program"
            ) from error
        raise AppNotFound(
            f"module {target!r} needs {missing!r}{_place(error)}, which cannot be found; install it or fix the import"
        ) from error
    except Exception as error:  # whatever the user's module does when it is imported
        raise AppNotFound(
            f"module {target!r} cannot be imported: {type(error).__name__}: {error}{_place(error)}; "
            "fix that (--debug shows the traceback)"
        ) from error


def _place(error: BaseException) -> str:
    """Where in the user's code it happened."""
    if isinstance(error, SyntaxError):
        return ""  # its own words say where
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith("<frozen") and frame.filename != __file__]
    return f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""


def _app_in(module: ModuleType, name: str) -> Rowlock:
    found = getattr(module, name, None)
    if isinstance(found, Rowlock):
        return found
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, Rowlock))
    instead = f"write --app {module.__name__}:{apps[0]}" if apps else f"write {name} = Rowlock(…) there"
    if not hasattr(module, name):
        raise AppNotFound(f"module {module.__name__!r} has no {name!r}; {instead}")
    raise AppNotFound(f"{module.__name__}:{name} is a {type(found).__name__}, not a Rowlock; {instead}")
