"""Every program on every page is run, and does what the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowlock import Retry
from tests.depth import deep
from tests.docs.pages import ROOT, Block, Page, pages
from tests.docs.parsing import PARSED
from tests.docs.playing import PLAYED, PROSE, Stage

WITH_PROGRAMS = [page for page in pages() if any(block.language not in PROSE for block in page.blocks)]


@deep
@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=lambda page: page.name)
def test_the_programs_on_a_page_do_what_it_says(page: Page, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("database_url" if page.migrates else "url")

    with Stage(page, tmp_path, url) as stage:
        stage.play()


def test_no_page_holds_a_program_that_nobody_runs() -> None:
    known = PLAYED | PROSE | PARSED.keys()
    blocks = [(page.name, block) for page in pages() for block in page.blocks]

    assert [(name, block.language, block.line) for name, block in blocks if block.language not in known] == []
    assert [(name, block.line) for name, block in blocks if block.language in PROSE and "$ " in block.text] == []


def test_a_page_uses_every_file_that_it_shows() -> None:
    assert [(page.name, block.file) for page in WITH_PROGRAMS for block in page.blocks if is_unused(block, page)] == []


def is_unused(block: Block, page: Page) -> bool:
    """Whether it is a file of Python that no other block of the page speaks of."""
    if block.language != "python" or not block.file:
        return False
    word = re.compile(rf"\b{Path(block.file).stem}\b")
    return not any(word.search(other.text) for other in page.blocks if other is not block)


def test_a_page_shows_how_the_files_are_made_that_its_commands_read() -> None:
    assert [(page.name, *missing) for page in WITH_PROGRAMS for missing in read_but_not_made(page)] == []


def read_but_not_made(page: Page) -> Iterator[tuple[int, str]]:
    """Lines with `$(cat FILE)`, where no block that readers see, up to there, writes the file."""
    made = ""
    for block in (one for one in page.blocks if not one.is_hidden):
        made += block.text
        for command in block.commands() if block.language == "console" else ():
            for file in re.findall(r"\$\(cat ([^)]+)\)", command.text):
                if f"> {file}" not in made and f'"{file}"' not in made:
                    yield command.line, file


@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md", "docs/guides/tasks.md"])
def test_a_page_says_how_often_a_bare_task_is_tried(name: str) -> None:
    words = {5: "five", 10: "ten", 20: "twenty"}

    text = (ROOT / name).read_text(encoding="utf-8").replace("**", "")

    assert f"tried {words[Retry().attempts]} times" in text


def test_a_page_links_to_what_is_there() -> None:
    links = [(page, link) for page in pages() for link in page.links()]

    assert [(page.name, link) for page, link in links if not (page.path.parent / link).resolve().exists()] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    reached, next_ones = set[Path](), [ROOT / "docs" / "README.md"]
    while next_ones:
        path = next_ones.pop()
        if path not in reached and path.suffix == ".md":
            reached.add(path)
            next_ones += [(path.parent / link).resolve() for link in Page(path).links()]

    assert [page.name for page in pages() if page.path.is_relative_to(ROOT / "docs") and page.path not in reached] == []
