"""A program that has an embedded PostgreSQL: it tells about it on its output, and ends when its input does.

usage: own_postgres.py FOLDER [main | thread | fork]: where in the program the server is started.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.errors import EmbeddedError


def main(folder: str, place: str = "main") -> None:
    server = EmbeddedPostgres(folder)
    told: dict[str, object] = {}
    try:
        if place == "thread":
            starter = threading.Thread(target=server.start)
            starter.start()
            starter.join()
        else:
            server.start()
    except EmbeddedError as error:
        told["error"] = str(error)
    else:
        told["url"] = server.url
        told["owner"] = server.owner
        told["pid"] = int((Path(folder) / "data" / "postmaster.pid").read_text().split()[0])
    if place == "fork":
        told["forked"] = fork_one_that_waits_and_one_that_exits()
    print(json.dumps(told), flush=True)  # noqa: T201 (this is the telling)
    sys.stdin.read()
    server.stop()


def fork_one_that_waits_and_one_that_exits() -> int:
    waiting = os.fork()
    if waiting == 0:
        # Not on standard input: that one is only for the parent.
        os.close(1)
        os.read(int(os.environ["WAIT_ON"]), 1)
        os._exit(0)
    exiting = os.fork()
    if exiting == 0:
        sys.exit(0)  # which runs the exit handlers
    os.waitpid(exiting, 0)
    return waiting


if __name__ == "__main__":
    main(*sys.argv[1:])
