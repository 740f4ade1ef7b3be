"""Every program on every page is run, and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Page, pages
from tests.docs.parsing import PARSED
from tests.docs.playing import PLAYED, PROSE, Stage

WITH_PROGRAMS = [page for page in pages() if any(block.language not in PROSE for block in page.blocks)]


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=lambda page: page.name)
def test_the_programs_on_a_page_do_what_it_says(page: Page, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("database_url" if page.migrates else "url")

    with Stage(page, tmp_path, url) as stage:
        stage.play()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_holds_no_program_that_nobody_runs(page: Page) -> None:
    known = PLAYED | PROSE | PARSED.keys()

    assert [block.language for block in page.blocks if block.language not in known] == []
    assert [block.line for block in page.blocks if block.language in PROSE and "$ " in block.text] == []


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=lambda page: page.name)
def test_a_page_uses_every_file_that_it_shows(page: Page) -> None:
    files = [block for block in page.blocks if block.language == "python" and block.file]

    unused = [
        block.file
        for block in files
        if not any(
            re.search(rf"\b{Path(block.file or '').stem}\b", other.text) for other in page.blocks if other is not block
        )
    ]
    assert unused == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_links_to_what_is_there(page: Page) -> None:
    links = page.links()

    assert [link for link in links if not (page.path.parent / link).resolve().exists()] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    reached, next_ones = set[Path](), [ROOT / "docs" / "README.md"]
    while next_ones:
        path = next_ones.pop()
        if path not in reached and path.suffix == ".md":
            reached.add(path)
            next_ones += [(path.parent / link).resolve() for link in Page(path).links()]

    assert [page.name for page in pages() if page.path.is_relative_to(ROOT / "docs") and page.path not in reached] == []
