"""Host names: looked up in a thread of our own, for handlers can fill the loop's executor, where psycopg does it."""

from __future__ import annotations

import os
from functools import partial
from ipaddress import ip_address
from typing import Any

from psycopg.conninfo import conninfo_attempts, conninfo_to_dict, make_conninfo

from rowlock.db.apart import apart


async def resolved(conninfo: str) -> str:
    """The same address with `hostaddr` beside each host name; the names stay, for TLS and passwords belong to them.

    What has no names stays as it is: sockets, IP addresses, and services, whose file libpq alone reads.
    """
    params = conninfo_to_dict(conninfo)
    if params.get("service") or os.environ.get("PGSERVICE"):
        return conninfo
    hosts = str(params.get("host") or os.environ.get("PGHOST") or "").split(",")
    if not any(_is_name(host) for host in hosts):
        return conninfo
    return await apart(partial(_with_addresses, conninfo, params))


def _with_addresses(conninfo: str, params: dict[str, Any]) -> str:
    # psycopg makes one attempt for each address; for prefer-standby each of them twice, which it will do itself later.
    attempts = conninfo_attempts({**params, "target_session_attrs": "any"})
    each = {
        name: [str(attempt.get(name, os.environ.get(variable, ""))) for attempt in attempts]
        for name, variable in (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"), ("port", "PGPORT"))
    }
    return make_conninfo(conninfo, **{name: ",".join(values) for name, values in each.items() if any(values)})


def _is_name(host: str) -> bool:
    if not host or host.startswith(("/", "@")):
        return False
    try:
        ip_address(host)
    except ValueError:
        return True
    return False
