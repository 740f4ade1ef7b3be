"""The package page: what a stranger sees before the repository."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from tests.house.reading import ROOT

RELATIVE = re.compile(r"\]\((?!https://|#)[^)]+\)|(?:src|href)=\"(?!https://|#)")


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Message:
    folder = tmp_path_factory.mktemp("wheel")
    # Without isolation: the build back end is the one that is locked, and nothing is fetched.
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(wheel.read(name))


def test_every_link_and_picture_of_the_package_page_has_its_full_address(metadata: Message) -> None:
    page = metadata.get_payload(decode=True)
    assert isinstance(page, bytes)

    assert RELATIVE.findall(page.decode()) == []
    assert "/raw/main/docs/images/" in page.decode()


def test_the_package_names_its_home_and_nobody_in_person(metadata: Message) -> None:
    addresses = {entry.partition(",")[0] for entry in metadata.get_all("Project-URL", [])}

    assert {"Homepage", "Documentation", "Changelog", "Source", "Issues"} <= addresses
    assert metadata["Author"] == "The Rowlock developers"


def test_extras_bring_what_their_pages_need(metadata: Message) -> None:
    needs = [need.replace('"', "'") for need in metadata.get_all("Requires-Dist", [])]
    extras = set(metadata.get_all("Provides-Extra", []))
    brought = {
        extra: {re.split(r"[<>=;\s]", need)[0] for need in needs if f"extra == '{extra}'" in need} for extra in extras
    }

    assert brought["sqlalchemy"] == {"sqlalchemy[asyncio]"}  # greenlet, without which it has no AsyncSession
    assert set.union(*(brought[extra] for extra in extras - {"all"})) <= brought["all"]
    for page in ("fastapi", "flask", "django"):
        [asked] = re.findall(r"pip install rowlock\[(\w+)\]", (ROOT / f"docs/guides/{page}.md").read_text())
        assert asked in extras


def test_files_that_the_package_page_points_to_are_there(metadata: Message) -> None:
    page = metadata.get_payload(decode=True)
    assert isinstance(page, bytes)
    files = re.findall(r"https://github\.com/rowlock/rowlock/(?:blob|raw)/main/([^)#\s]+)", page.decode())

    assert files
    assert [file for file in files if not (ROOT / Path(file)).exists()] == []
