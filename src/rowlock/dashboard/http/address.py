"""Address: a request's host, mount and path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import Scope

from rowlock.errors import InvalidOption
from rowlock.model.names import shown

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")

_NAME: Final = r"[a-z0-9](?:[a-z0-9._-]{0,252}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]"
_HOSTNAME: Final = re.compile(_NAME)
_HOST: Final = re.compile(rf"({_NAME})(?::[0-9]{{1,5}})?")
# It stands in redirects and in cookies: nothing there that could be another site, or another attribute.
_MOUNT: Final = re.compile(r"(?:/[\w.~!$&'()*+=:@%-]+)*", re.ASCII)
_OURS: Final = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]{0,2000}")


def check_hosts(hosts: Iterable[str]) -> frozenset[str]:
    """The names under which a dashboard is reached, with the loopback's; InvalidOption unless all are bare names."""
    if isinstance(hosts, str):
        raise InvalidOption(f"hosts={shown(hosts)} is one str; write hosts=[{shown(hosts)}]")
    named = frozenset(host.lower() for host in hosts)
    for host in sorted(named):
        if not _HOSTNAME.fullmatch(host):
            raise InvalidOption(
                f"host {shown(host)} is not a bare host name; write rowlock.example.org, without scheme and port"
            )
    return named | frozenset(LOOPBACK)


def host_of(connection: HTTPConnection) -> str | None:
    """The request's host in lower case and without port; None unless there is exactly one valid one."""
    given = connection.headers.getlist("host")
    named = _HOST.fullmatch(given[0].lower()) if len(given) == 1 else None
    return named[1] if named else None


def root_of(scope: Scope) -> str:
    """The path at which the dashboard is mounted; "" where it stands by itself."""
    root: str = scope.get("root_path", "")
    return root


def is_mount(root: str) -> bool:
    """Whether this is a valid mount path."""
    return _MOUNT.fullmatch(root) is not None


def path_of(scope: Scope) -> str:
    """The path below the mount, exactly as the router takes it."""
    path, root = scope["path"], root_of(scope)
    below: str = path[len(root) :] if root and (path == root or path.startswith(f"{root}/")) else path
    return below


def is_ours(path: str) -> bool:
    """Whether it is a path of this dashboard, and no address of another site."""
    return _OURS.fullmatch(path) is not None
