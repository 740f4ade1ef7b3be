"""Guard: a small process that ends PostgreSQL when its owner ends, however that happens.

Standard input is the lifeline: a pipe whose other end only the owner holds. Its end of file means that the owner let
go, exited or was killed. Asking the kernel for a signal instead (PR_SET_PDEATHSIG) would not do, because that one is
sent when the *thread* that forked ends, and the owner may start PostgreSQL from any thread. The guard has one thread,
so between it and PostgreSQL the kernel's signal is right.

It runs by path as ``python -I -S guard.py IDENTITY FOLDER SWEEP COMMAND…`` (25 ms; importing rowlock would take ten
times as long), and so it imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
from collections.abc import Iterable

# Exit codes of the guard itself; PostgreSQL's programs use 0 to 3.
REFUSED, FOLDER_CLOSED, PROGRAM_CLOSED = 97, 98, 99

# How PostgreSQL is asked to end, and for how many seconds it may think about it: fast, immediate, by force.
REQUESTS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, None))

LIFELINE = 0
CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1


def main(identity: str, folder: str, sweep: str, *command: str) -> int:
    try:
        become(identity)
    except OSError as error:
        print(f"cannot run as {identity}: {error}", file=sys.stderr)  # noqa: T201 (into the server's log)
        return REFUSED
    if not os.access(folder, os.W_OK | os.X_OK):
        return FOLDER_CLOSED
    if not os.access(command[0], os.X_OK):
        return PROGRAM_CLOSED

    wake = listen((signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    child = spawn(command)
    code = keep(child, wake=wake)
    if sweep:
        remove(sweep)
    return code


def become(identity: str) -> None:
    """Take on the identity: ``same``, ``user:UID:GID``, or ``namespace:UID:GID``, as which root then sees itself."""
    kind, *numbers = identity.split(":")
    if kind == "user":
        uid, gid = map(int, numbers)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    elif kind == "namespace":
        uid, gid = map(int, numbers)
        enter_namespace(uid=uid, gid=gid)


def enter_namespace(*, uid: int, gid: int) -> None:
    """Move into a user namespace in which we are ``uid``; to everyone outside, and on disk, we stay who we are."""
    if not sys.platform.startswith("linux"):
        raise OSError("only Linux has user namespaces")
    maps = {"uid_map": f"{uid} {os.geteuid()} 1", "setgroups": "deny", "gid_map": f"{gid} {os.getegid()} 1"}
    # os.unshare came with Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    for name, line in maps.items():
        file = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(file, line.encode())
        os.close(file)


def listen(signals: Iterable[signal.Signals]) -> int:
    """Return a file descriptor that becomes readable, with their numbers, when one of the signals arrives."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # as set_wakeup_fd demands
    signal.set_wakeup_fd(writer)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return reader


def spawn(command: tuple[str, ...]) -> int:
    """Start the command with no input, and so that it ends with us even if we are killed."""
    guard = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        # Python ignores these two, and what is ignored stays so in the program that is started.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
        # The guard may have died before the line above; then nobody would send that signal any more.
        if os.getppid() == guard:
            os.execv(command[0], command)  # noqa: S606 (no shell is wanted)
    finally:
        os._exit(127)


def keep(child: int, *, wake: int) -> int:
    """Wait until the child has ended; once the lifeline is cut, ask it to, harder each time."""
    requests = iter(REQUESTS)
    patience: float | None = None
    asked = False
    poll = select.poll()
    poll.register(LIFELINE, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = [source for source, _ in poll.poll(None if patience is None else patience * 1000)]
        arrived = set(os.read(wake, 512)) if wake in ready else set()
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        cut = not asked and (LIFELINE in ready or arrived - {signal.SIGCHLD})
        if cut:
            asked = True
            poll.unregister(LIFELINE)
        if cut or not ready:
            request, patience = next(requests)
            os.kill(child, request)


def remove(folder: str) -> None:
    """Remove a socket folder that was made for this run only."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 (pathlib would double the time to start)
            os.unlink(os.path.join(folder, name))  # noqa: PTH108, PTH118
        os.rmdir(folder)  # noqa: PTH106


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    # A child that a signal ended is reported as the shell does it.
    sys.exit(code if code >= 0 else 128 - code)
