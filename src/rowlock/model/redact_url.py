"""Passwords in addresses, which are shown: in settings, in errors, on pages."""

from __future__ import annotations

import re
from typing import Final

MARK: Final = "***"
"""What stands in the place of a secret."""

_WORD: Final = re.compile(r"\S+")
# Up to the password. An address in brackets has no user before it.
_USER: Final = re.compile(r"://[^\s:/@\[]*+:")
# People write @ and / in passwords, too, so the last @ ends it; but in a longer text the quote behind an address does.
_PASSWORD: Final = re.compile(r"[^@]*+(?:@[^@\"'<>]*+(?=@))*+")
# What follows the host's colon and is no password, though an @ comes later: http://localhost:8080/users/ada@example.org
_PORT: Final = re.compile(r"[0-9]{1,5}[/?#\"'<>)\]}]")
# In libpq's own form it may stand in quotes, and spaces around the =.
_ASSIGNED: Final = re.compile(r"((?:ssl)?password\s*+=\s*+)(?:'(?:[^'\\]|\\.)*+'|\S+)")


def redact_address(conninfo: str) -> str:
    """A connection string, as a URL or in libpq's own form, that may be shown."""
    return _ASSIGNED.sub(rf"\1{MARK}", redact_urls(conninfo))


def redact_urls(text: str) -> str:
    """A text whose URLs may be shown: `postgresql://ada:***@db/shop`."""
    return _WORD.sub(lambda match: _word(match[0]), text) if "://" in text else text


def _word(word: str) -> str:
    last = word.rfind("@")
    shown, done = [], 0
    while done < last and (user := _USER.search(word, done)) and user.end() <= last:
        shown.append(word[done : user.end()])
        done = user.end()
        if not _PORT.match(word, done) and (password := _PASSWORD.match(word, done)):
            shown.append(MARK)
            done = password.end()
    return "".join([*shown, word[done:]])
