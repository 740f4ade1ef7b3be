"""Ids: UUIDv7, increasing within a process, never shared between processes."""

from __future__ import annotations

import os
import threading
import time
from uuid import UUID

from rowlock.model.ids import new_id, new_ids


def test_an_id_is_a_uuid_of_version_7_that_carries_the_time() -> None:
    before = time.time_ns() // 1_000_000
    made = UUID(new_id())
    after = time.time_ns() // 1_000_000

    assert (made.version, made.variant) == (7, UUID("01890000-0000-7000-8000-000000000000").variant)
    assert before <= made.int >> 80 <= after


def test_ids_of_one_process_increase_strictly() -> None:
    ids = [new_id() for _ in range(1_000)] + new_ids(10_000) + [new_id()]

    assert ids == sorted(set(ids))


def test_threads_never_get_the_same_id() -> None:
    made: list[list[str]] = []
    threads = [threading.Thread(target=lambda: made.append(new_ids(5_000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    ids = [job_id for batch in made for job_id in batch]
    assert len(set(ids)) == 40_000


def test_a_forked_child_does_not_repeat_its_parents_ids() -> None:
    new_id()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, " ".join(new_ids(50)).encode())
        os._exit(0)
    mine = new_ids(50)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        theirs = pipe.read().split()
    os.waitpid(child, 0)

    assert len(theirs) == 50
    assert not set(mine) & set(theirs)
