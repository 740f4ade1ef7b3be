"""A Python that runs the fragments of one page, as somebody would type them: one namespace, statement by statement.

Started by playing.py. Reads one fragment per line of standard input, as JSON; answers with one line each on standard
output: an empty string, or the traceback, as JSON. What fragments print goes to standard error.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType


def main() -> None:
    """Run fragments until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[0] = str(Path.cwd())  # the page's files, not this file's neighbours
    page = ModuleType("page")
    sys.modules["page"] = page
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            print(json.dumps(_run(runner, page, **json.loads(line))), file=answers, flush=True)


def _run(runner: asyncio.Runner, page: ModuleType, *, path: str, line: int, text: str) -> str:
    try:
        tree = ast.increment_lineno(ast.parse(text, path), line - 1)
        for statement in tree.body:
            # Each by itself, so that sync and async verbs may stand beside each other: no loop runs between them.
            alone = ast.Module([statement], type_ignores=[])
            code = compile(alone, path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            ended = eval(code, vars(page))  # noqa: S307  our own pages
            if inspect.iscoroutine(ended):
                runner.run(ended)
    except BaseException:  # whatever it is, the page is wrong
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    main()
