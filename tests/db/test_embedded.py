from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import psycopg
import pytest

from rowlock.db.embedded.server import EmbeddedPostgres, embedded
from rowlock.errors import EmbeddedError
from tests.db.processes import StartOwner, ended, guard_of, one, postmaster_pid
from tests.depth import deep


def test_a_new_folder_becomes_a_running_server(tmp_path: Path) -> None:
    # given nothing
    folder = tmp_path / "deep" / "pg"

    # when
    with EmbeddedPostgres(folder) as server:
        # then it is ours, has our database and our user, and knows UTF-8
        assert server.owner
        assert one(server.url, "select current_database() || '/' || current_user") == "rowlock/rowlock"
        assert one(server.url, "select upper('é') || getdatabaseencoding()") == "ÉUTF8"

    # and is gone with the block
    assert not (folder / "data" / "postmaster.pid").exists()


def test_what_is_committed_is_safe_and_only_its_owner_can_connect(folder: Path) -> None:
    with EmbeddedPostgres(folder) as server:
        settings = ["fsync", "synchronous_commit", "full_page_writes", "listen_addresses"]
        assert [one(server.url, f"show {name}") for name in settings] == ["on", "on", "on", ""]
        assert oct((folder / "run").stat().st_mode) == "0o40700"
        assert oct((folder / "data").stat().st_mode) == "0o40700"


def test_settings_reach_the_server(folder: Path) -> None:
    with EmbeddedPostgres(folder, settings={"work_mem": "5MB", "max_connections": "17"}) as server:
        assert one(server.url, "show work_mem") == "5MB"
        assert one(server.url, "show max_connections") == "17"


def test_data_are_there_again_at_the_next_start(folder: Path) -> None:
    with EmbeddedPostgres(folder) as server, psycopg.connect(server.url) as connection:
        connection.execute("create table kept as select 42 as n")

    with EmbeddedPostgres(folder) as server:
        assert one(server.url, "select n from kept") == 42


def test_a_folder_gives_one_server_to_all_of_a_process(folder: Path) -> None:
    # given
    first = embedded(folder)
    url = first.url

    # when it is asked for again, by another spelling, and started twice
    second = embedded(f"{folder.parent}/../{folder.parent.name}/pg")
    second.start()

    # then
    assert second is first
    assert second.url == url
    first.stop()


def test_a_stopped_server_has_no_address(folder: Path) -> None:
    with pytest.raises(EmbeddedError, match=r"not running; call start\(\)"):
        _ = EmbeddedPostgres(folder).url


def test_a_second_process_attaches_and_leaves_the_server_alone(folder: Path, owner: StartOwner) -> None:
    # given a server of another process
    other = owner(folder)
    told = other.told()
    server = EmbeddedPostgres(folder)

    # when we start and stop
    server.start()
    attached = (server.owner, server.url, postmaster_pid(folder))
    server.stop()

    # then we used the other's, and it is still there
    assert attached == (False, told["url"], told["pid"])
    assert one(told["url"], "select 1") == 1


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_the_server_goes_on_for_those_who_are_left_and_ends_with_the_last(
    folder: Path, owner: StartOwner, how: str
) -> None:
    # given a server that another process has started, and that we use
    other = owner(folder)
    server = os.pidfd_open(other.told()["pid"])
    with EmbeddedPostgres(folder) as mine, psycopg.connect(mine.url) as connection:
        # when
        if how == "ends":
            other.end()
        else:
            other.process.kill()
            other.process.wait()

        # then
        assert connection.execute("select 1").fetchone() == (1,)
        assert one(mine.url, "select 1") == 1

    # and when we have stopped, it is gone, and the next one starts its own
    assert ended(server)
    with EmbeddedPostgres(folder) as mine:
        assert mine.owner


@deep
def test_no_server_is_left_when_all_who_use_it_are_killed(folder: Path, owner: StartOwner) -> None:
    # given
    first = owner(folder)
    server = os.pidfd_open(first.told()["pid"])
    second = owner(folder)
    assert not second.told()["owner"]

    # when
    first.process.kill()
    second.process.kill()

    # then
    assert ended(server)


@deep
def test_two_processes_that_start_at_once_share_one_server(tmp_path: Path, owner: StartOwner) -> None:
    # given an empty folder, so that both would have to run initdb
    processes = [owner(tmp_path / "pg"), owner(tmp_path / "pg")]

    # when
    told = [process.told() for process in processes]

    # then
    assert sorted(facts["owner"] for facts in told) == [False, True]
    assert told[0]["url"] == told[1]["url"]
    assert told[0]["pid"] == told[1]["pid"]


@pytest.mark.parametrize("place", ["main", "thread"])
def test_the_server_ends_when_its_owner_is_killed(folder: Path, owner: StartOwner, place: str) -> None:
    # given a server, started from the main thread or from one that has ended since
    other = owner(folder, place)
    told = other.told()
    server = os.pidfd_open(told["pid"])
    assert one(told["url"], "select 1") == 1

    # when
    other.process.kill()

    # then
    assert ended(server)


def test_the_server_ends_when_its_guard_is_killed(folder: Path) -> None:
    # given
    with EmbeddedPostgres(folder):
        pid = postmaster_pid(folder)
        server = os.pidfd_open(pid)

        # when
        os.kill(guard_of(pid), signal.SIGKILL)

        # then
        assert ended(server)


def test_forked_children_neither_stop_the_server_nor_keep_it(folder: Path, owner: StartOwner) -> None:
    # given an owner that forked twice: one child has exited, the other lives until we let it go
    reader, writer = os.pipe()
    other = owner(folder, "fork", pass_fds=[reader], env={**os.environ, "WAIT_ON": str(reader)})
    os.close(reader)
    told = other.told()
    server, child = os.pidfd_open(told["pid"]), os.pidfd_open(told["forked"])
    assert one(told["url"], "select 1") == 1

    # when
    other.process.kill()

    # then
    assert ended(server)
    os.close(writer)
    assert ended(child)


def test_ctrl_c_in_a_terminal_does_not_reach_the_server(folder: Path) -> None:
    with EmbeddedPostgres(folder):
        assert os.getsid(postmaster_pid(folder)) != os.getsid(0)


@deep
def test_a_server_that_was_killed_recovers_at_the_next_start(folder: Path, owner: StartOwner) -> None:
    # given a crash of server and owner, which leaves a pid file that says "ready"
    other = owner(folder)
    told = other.told()
    with psycopg.connect(told["url"]) as connection:
        connection.execute("create table kept as select 42 as n")
    server = os.pidfd_open(told["pid"])
    os.kill(told["pid"], signal.SIGKILL)
    other.process.kill()
    assert ended(server)
    assert "ready" in (folder / "data" / "postmaster.pid").read_text()

    # when
    with EmbeddedPostgres(folder) as again:
        # then
        assert again.owner
        assert one(again.url, "select n from kept") == 42


def test_a_stale_pid_file_whose_number_another_process_has_now_is_no_obstacle(folder: Path) -> None:
    # given the pid file of a server that crashed before the machine started anew; now the pid is ours
    run = folder / "run"
    lines = [os.getpid(), folder / "data", 1700000000, 5432, run, "", "  5432001         7", "ready   "]
    (folder / "data" / "postmaster.pid").write_text("".join(f"{line}\n" for line in lines))

    # when
    with EmbeddedPostgres(folder) as server:
        # then
        assert server.owner


@deep
def test_an_initdb_that_was_killed_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    # given
    half = tmp_path / "pg" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")

    # when
    with EmbeddedPostgres(tmp_path / "pg") as server:
        # then
        assert one(server.url, "select 1") == 1
        assert not half.exists()


def test_it_starts_from_another_thread_and_outlives_it(folder: Path) -> None:
    # given
    server = EmbeddedPostgres(folder)
    starter = threading.Thread(target=server.start)

    # when
    starter.start()
    starter.join()

    # then
    with server:
        assert server.owner
        assert one(server.url, "select 1") == 1


def test_a_folder_too_deep_for_a_socket_gets_a_short_one_elsewhere(pristine: Path, tmp_path: Path) -> None:
    # given
    folder = tmp_path.joinpath(*["deeper"] * 20, "pg")
    shutil.copytree(pristine, folder)

    # when
    with EmbeddedPostgres(folder) as server:
        socket = Path(one(server.url, "show unix_socket_directories").strip('"'))

        # then it is closed to others
        assert not socket.is_relative_to(folder)
        assert oct(socket.stat().st_mode) == "0o40700"

    # and gone at the end
    assert not socket.exists()


def test_the_short_socket_folder_is_removed_even_if_the_owner_is_killed(
    pristine: Path, tmp_path: Path, owner: StartOwner
) -> None:
    # given
    folder = tmp_path.joinpath(*["deeper"] * 20, "pg")
    shutil.copytree(pristine, folder)
    other = owner(folder)
    told = other.told()
    guard = os.pidfd_open(guard_of(told["pid"]))
    socket = Path(one(told["url"], "show unix_socket_directories").strip('"'))

    # when
    other.process.kill()

    # then
    assert ended(guard)
    assert not socket.exists()


def test_a_folder_may_have_any_name(pristine: Path, tmp_path: Path) -> None:
    folder = tmp_path / 'a, b "c" %20 é'
    shutil.copytree(pristine, folder)

    with EmbeddedPostgres(folder) as server:
        assert one(server.url, "select 1") == 1


def test_data_of_another_version_are_a_sentence(folder: Path) -> None:
    # given
    (folder / "data" / "PG_VERSION").write_text("13\n")

    # when, then
    with pytest.raises(EmbeddedError, match=r"made by PostgreSQL 13, but .* set ROWLOCK_PG_BIN to .* PostgreSQL 13"):
        EmbeddedPostgres(folder).start()


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(EmbeddedError, match=r"cannot write in .*file/pg .* choose a folder"):
        EmbeddedPostgres(tmp_path / "file" / "pg").start()


def test_a_server_that_does_not_start_shows_the_end_of_its_log(folder: Path) -> None:
    # given
    server = EmbeddedPostgres(folder, settings={"no_such_setting": "1"})

    # when, then
    with pytest.raises(EmbeddedError, match=r"(?s)log ends with:.*no_such_setting.*fix that"):
        server.start()

    # and the folder is free again
    with EmbeddedPostgres(folder) as other:
        assert other.owner
