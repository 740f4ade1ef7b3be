from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from rowlock.db.embedded.binaries import Binaries, find_binaries
from rowlock.db.embedded.server import EmbeddedPostgres
from tests.db.processes import HERE, StartOwner, one, postmaster_pid
from tests.depth import deep

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def test_as_root_it_runs_in_a_user_namespace(folder: Path) -> None:
    with EmbeddedPostgres(folder):
        inside, outside, count = Path(f"/proc/{postmaster_pid(folder)}/uid_map").read_text().split()

        # it sees itself as an ordinary user, and is root to everyone outside
        assert (outside, count) == ("0", "1")
        assert int(inside) != 0
        assert (folder / "data" / "postmaster.pid").stat().st_uid == 0


@deep
def test_where_namespaces_are_refused_it_runs_as_a_user_that_exists(
    public_folder: Path, public_binaries: Binaries, owner: StartOwner
) -> None:
    # given
    folder = public_folder / "pg"
    under = [sys.executable, str(HERE / "refuse_namespaces.py"), sys.executable]

    # when it starts twice: on no data, and on those of the first time
    told, owners = [], []
    for _ in range(2):
        other = owner(folder, under=under)
        told.append(other.told())
        owners.append(pwd.getpwuid(Path(f"/proc/{told[-1]['pid']}").stat().st_uid).pw_name)
        other.end()

    # then, and what is above its folder was left as it is
    assert all(facts["owner"] for facts in told)
    assert set(owners) <= {"postgres", "nobody"}
    assert public_folder.stat().st_uid == 0
    assert oct(public_folder.stat().st_mode) == "0o40755"


def test_root_runs_the_data_of_a_user_as_that_user(
    pristine: Path, public_folder: Path, public_binaries: Binaries
) -> None:
    # given
    folder, user = public_folder / "pg", pwd.getpwnam("nobody")
    (public_folder / "pg").mkdir()
    shutil.copytree(pristine / "data", folder / "data")
    for path in [folder / "data", *(folder / "data").rglob("*")]:
        os.chown(path, user.pw_uid, user.pw_gid)

    # when
    with EmbeddedPostgres(folder) as server:
        # then
        assert Path(f"/proc/{postmaster_pid(folder)}").stat().st_uid == user.pw_uid
        assert one(server.url, "select 1") == 1


def test_binaries_that_the_other_user_cannot_reach_are_a_sentence(public_folder: Path, owner: StartOwner) -> None:
    # given
    closed = public_folder / "closed"
    closed.mkdir(mode=0o700)
    (closed / "bin").symlink_to(find_binaries().folder)
    under = [sys.executable, str(HERE / "refuse_namespaces.py"), sys.executable]

    # when
    other = owner(public_folder / "pg", under=under, env={**os.environ, "ROWLOCK_PG_BIN": str(closed / "bin")})

    # then
    error = other.told()["error"]
    assert f"may not run {closed}/bin/initdb" in error
    assert "set ROWLOCK_PG_BIN" in error


def test_a_folder_that_the_other_user_cannot_reach_is_a_sentence(
    public_folder: Path, public_binaries: Binaries, owner: StartOwner
) -> None:
    # given
    (public_folder / "closed").mkdir(mode=0o700)
    under = [sys.executable, str(HERE / "refuse_namespaces.py"), sys.executable]

    # when
    other = owner(public_folder / "closed" / "pg", under=under)

    # then
    assert "choose one that this user can reach" in other.told()["error"]
    assert oct((public_folder / "closed").stat().st_mode) == "0o40700"


@deep
def test_a_plain_user_needs_nothing_special(public_folder: Path, public_binaries: Binaries, owner: StartOwner) -> None:
    # given
    user = pwd.getpwnam("nobody")
    os.chown(public_folder, user.pw_uid, user.pw_gid)
    drop = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    python, environment = python_for_all(drop)

    # when
    told = owner(public_folder / "pg", under=[*drop, python], env=environment).told()

    # then
    assert told["owner"]
    assert Path(f"/proc/{told['pid']}").stat().st_uid == user.pw_uid


def python_for_all(drop: list[str]) -> tuple[str, dict[str, str]]:
    """Find a Python of our version that other users may run, and what it needs to import what we import."""
    packages = sysconfig.get_path("purelib")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1] / "src"), packages])}
    # setpriv can start a program that the user it becomes cannot, so ask that one whether it could again.
    able = f"os.access(sys.executable, os.X_OK) and sys.version_info[:2] == {sys.version_info[:2]}"
    wanted = f"import os, sys, psycopg, rowlock; sys.exit(not ({able}))"
    for python in (sys.executable, "/usr/bin/python3"):
        if (
            subprocess.run([*drop, python, "-c", wanted], env=environment, capture_output=True, check=False).returncode
            == 0
        ):
            return python, environment
    pytest.skip(f"other users cannot run {sys.executable}, or cannot read {packages}")
