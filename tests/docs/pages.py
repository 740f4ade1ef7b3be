"""The pages as a reader meets them: block after block, from the top."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]

_MARKDOWN = MarkdownIt("commonmark")
# A comment whose first line is a language is a block that readers do not see: what the next one needs, or a check.
_HIDDEN = re.compile(r"<!-- (python|console|sql)\n(.*?)-->\s*", re.DOTALL)
_FILE = re.compile(r"# ((?:[\w.-]+/)*(?:[\w-]+\.[a-z]+|Dockerfile))")
_BACKGROUND = re.compile(r"\s*&\s*(#.*)?$")


@dataclass(frozen=True)
class Command:
    """One line after `$ `, and the lines below it: what it prints."""

    text: str
    expected: tuple[str, ...]
    line: int

    @property
    def word(self) -> str:
        return self.text.split()[0]

    @property
    def is_interrupted(self) -> bool:
        """Whether the page shows how Ctrl-C ends it."""
        return self.expected[-1:] == ("^C",)

    @property
    def is_worker(self) -> bool:
        return self.text.split()[:2] == ["rowlock", "worker"]

    @property
    def is_lasting(self) -> bool:
        """Whether it goes on beside what follows: it ends in `&`, or is a worker that nobody stops."""
        return _BACKGROUND.search(self.text) is not None or self.is_worker

    @property
    def in_foreground(self) -> str:
        """The command without the `&` at its end, and the remark behind that."""
        return _BACKGROUND.sub("", self.text)


@dataclass(frozen=True)
class Block:
    """One fenced block, or a hidden one."""

    language: str
    text: str
    line: int  # where its text begins
    is_hidden: bool = False

    @property
    def file(self) -> str | None:
        """The file that it is, if its first line says so: `# shop.py`."""
        named = _FILE.fullmatch(self.text.partition("\n")[0])
        return named[1] if named else None

    def commands(self) -> list[Command]:
        """The commands of a console."""
        found: list[tuple[str, list[str], int]] = []
        lines = iter(enumerate(self.text.splitlines(), self.line))
        for number, line in lines:
            if line.startswith("$ "):
                typed = line[2:]
                while typed.endswith("\\"):
                    typed += "\n" + next(lines)[1]
                found.append((typed, [], number))
            else:
                assert found, f"line {number}: a console begins with a command, `$ …`, not with {line!r}"
                found[-1][1].append(line.rstrip())
        return [Command(typed, tuple(_without_end(said)), number) for typed, said, number in found]


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT)) if self.path.is_relative_to(ROOT) else self.path.name

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(_blocks(self.path.read_text(encoding="utf-8")))

    def links(self) -> list[str]:
        """The files of this project that it points to, as it writes them."""
        inline = [token for token in _MARKDOWN.parse(self.path.read_text(encoding="utf-8")) if token.children]
        targets = [
            str(child.attrs["href"]) for token in inline for child in token.children or [] if "href" in child.attrs
        ]
        files = [target.partition("#")[0] for target in targets if "://" not in target]
        return [file for file in files if file]

    @property
    def migrates(self) -> bool:
        """Whether it brings the schema up itself, and so begins with an empty database."""
        return any(
            command.text.startswith("rowlock migrate")
            for block in self.blocks
            if block.language == "console"
            for command in block.commands()
        )


def pages() -> list[Page]:
    """README and its neighbours, and everything in docs/."""
    return [Page(path) for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))]


def _blocks(text: str) -> Iterator[Block]:
    for token in _MARKDOWN.parse(text):
        start = token.map[0] if token.map else 0
        if token.type == "fence":
            yield Block(token.info.strip(), token.content, start + 2)
        elif token.type == "html_block" and (hidden := _HIDDEN.fullmatch(token.content)):
            yield Block(hidden[1], hidden[2], start + 2, is_hidden=True)


def _without_end(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines
