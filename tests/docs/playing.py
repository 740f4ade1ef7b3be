"""A page is played from the top: files are written, commands, fragments and SQL are run, each where it stands."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import psycopg

from tests.docs.pages import ROOT, Block, Command, Page
from tests.docs.parsing import PARSED
from tests.waiting import until

# First words of commands that cannot be run here → why.
ELSEWHERE = {
    "docker": "needs a registry to build from",
    "git": "needs the network",
    "kubectl": "needs a cluster",
    "pip": "needs the network",
    "sudo": "changes the machine",
    "systemctl": "needs a machine of its own",
    "uv": "needs the network",
    "./run": "is this project's own: demo, test, bench; that the command exists is checked",
}
PLAYED = {"python", "console", "sql"}
PROSE = {"", "text"}  # drawings, and what something prints

_LIMIT = 60.0
# Not before this does a worker take a signal as it should.
_AT_WORK = ("…", "… rowlock.worker … works on …")
_FRAGMENTS = Path(__file__).with_name("fragments.py")
_EXPORT = re.compile(r"export (\w+)=(\S+)")


class Stage:
    """The page's own folder and database, and the programs that it has started."""

    def __init__(self, page: Page, folder: Path, url: str) -> None:
        self._page = page
        self._folder = folder
        self._url = url
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("ROWLOCK_", "PYTEST_"))}
        self._environment = {
            **clean,
            "PATH": programs,
            "ROWLOCK_URL": url,
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",  # as in a terminal
        }
        self._lasting: list[Program] = []
        self._fragments: Fragments | None = None
        self._after = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._after.close()

    def play(self) -> None:
        """All of it."""
        for block in self._page.blocks:
            self._play(block)
        if self._fragments is not None:
            self._fragments.end()
        for program in self._lasting:
            program.end(signal.SIGTERM)

    def _play(self, block: Block) -> None:
        if block.file is not None:
            path = self._folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        match block.language:
            case "console":
                for command in block.commands():
                    self._run(command)
            case "python" if block.file is not None:
                compile(block.text, block.file, "exec")
            case "python":
                self._run_fragment(block)
            case "sql":
                with psycopg.connect(self._url, autocommit=True) as connection:
                    connection.execute(block.text.encode())
            case language if language in PARSED:
                PARSED[language](block.text)
            case language:
                assert language in PROSE, f"{self._place(block.line)}: nobody checks a block of {language!r}"
                assert not re.search(r"^\$ ", block.text, re.MULTILINE), f"{self._place(block.line)}: say ```console"

    def _run(self, command: Command) -> None:
        if command.word in ELSEWHERE:
            if command.word == "./run":
                _check_run(command)
            return
        if export := _EXPORT.match(command.text):
            if export[1] != "ROWLOCK_URL":  # each page has a database of its own
                self._environment[export[1]] = export[2]
            return
        program = Program(command, self._place(command.line), cwd=self._folder, environment=self._environment)
        self._after.callback(program.kill)
        if command.is_interrupted:
            program.shows(command.expected[:-1])
            program.end(signal.SIGINT)
        elif command.is_lasting:
            program.shows(command.expected)
            if command.is_worker:
                program.shows(_AT_WORK)
            self._lasting.append(program)
        else:
            program.end()
            if command.expected:
                program.has_shown(command.expected)

    def _run_fragment(self, block: Block) -> None:
        if self._fragments is None:
            self._fragments = Fragments(cwd=self._folder, environment=self._environment)
            self._after.callback(self._fragments.kill)
        error = self._fragments.run(self._page.path, block)
        assert not error, f"{self._place(block.line)} fails:\n{error}"

    def _place(self, line: int) -> str:
        return f"{self._page.name}:{line}"


class Program:
    """One command of a page, in a process group of its own."""

    def __init__(self, command: Command, place: str, *, cwd: Path, environment: dict[str, str]) -> None:
        self._place = f"{place} $ {command.text}"
        self._process = subprocess.Popen(
            ["bash", "-c", command.in_foreground],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # a terminal shows both
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._lines.extend(line.rstrip() for line in self._process.stdout)

    @property
    def _output(self) -> str:
        return "\n".join(self._lines)

    def shows(self, expected: Iterable[str]) -> None:
        """Wait until it has printed this, whatever follows."""
        wanted = (*expected, "…")

        def is_decided() -> bool:
            has_ended = self._process.poll() is not None
            if has_ended:
                self._reader.join(_LIMIT)
            return has_ended or matches(wanted, list(self._lines))

        with suppress(AssertionError):  # has_shown says it better
            until(is_decided, limit=_LIMIT)
        self.has_shown(wanted)

    def has_shown(self, expected: Iterable[str]) -> None:
        """See that it has printed this and nothing else."""
        assert matches(expected, self._lines), f"{self._place} printed, not what the page shows:\n{self._output}"

    def end(self, number: signal.Signals | None = None) -> None:
        """Wait for a good end, asked for by this signal if any."""
        if number is not None:
            self._signal(number)
        code = self._process.wait(_LIMIT)
        self._reader.join(_LIMIT)
        assert code == 0, f"{self._place} ended with exit code {code}:\n{self._output}"

    def kill(self) -> None:
        """Leave nothing of it."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join(_LIMIT)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


class Fragments:
    """The Python in which a page's fragments run: see fragments.py."""

    def __init__(self, *, cwd: Path, environment: dict[str, str]) -> None:
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed by kill
        self._process = subprocess.Popen(
            [sys.executable, str(_FRAGMENTS)],
            cwd=cwd,
            env=environment | {"PYTHONWARNINGS": "error"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )

    def run(self, path: Path, block: Block) -> str:
        """Run one; answers its error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"path": str(path), "line": block.line, "text": block.text}
        limit = threading.Timer(_LIMIT, self._process.kill)
        limit.start()
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        finally:
            limit.cancel()
        return str(json.loads(answer)) if answer else f"it did not end within {_LIMIT} s, or ended Python:\n{self._log}"

    def end(self) -> None:
        """See that it ends by itself when there is no more to run."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(_LIMIT) == 0, self._log

    def kill(self) -> None:
        """Leave nothing of it."""
        self._process.kill()
        with suppress(BrokenPipeError), self._process:
            pass
        self._said.close()

    @property
    def _log(self) -> str:
        self._said.seek(0)
        return self._said.read()


def matches(expected: Iterable[str], lines: Iterable[str]) -> bool:
    """Whether these lines are the expected ones; `…` is any text in a line, or any lines if it stands alone."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(re.escape(part) for part in line.split("…")) + r"\n"
        for line in expected
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def _check_run(command: Command) -> None:
    verb = command.text.split()[1]
    usage = (ROOT / "run").read_text(encoding="utf-8").partition("TEXT\n}")[0]
    assert re.search(rf"^  {re.escape(verb)} ", usage, re.MULTILINE), f"./run has no command {verb!r}"
