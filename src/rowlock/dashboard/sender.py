"""Who may send signals by webhook: a secret, and which signals to which workflows it is good for."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from rowlock.errors import InvalidOption
from rowlock.model.names import shown

PREFIX: Final = "whsec_"
_LEAST_BYTES: Final = 24  # of a secret, as the convention has it
_NAMED: Final = re.compile(r"(?:(?P<name>[\w.-]{1,100})=)?(?P<secret>whsec_[^|]*)(?P<scope>(?:\|[^|]+)*)", re.DOTALL)
_ADVICE: Final = (
    "make one: python -c \"import base64, os; print('whsec_' + base64.b64encode(os.urandom(32)).decode())\""
)


@dataclass(frozen=True, slots=True)
class Sender:
    """A sender: what the audit calls it, if it has a name, its key, and its scope: patterns for workflow and signal."""

    name: str | None
    key: bytes = field(repr=False)
    scope: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, said: object, place: str) -> Sender:
        """A sender as `NAME=whsec_BASE64|WORKFLOW:SIGNAL|…`; without a scope any signal.

        What is wrong with it is said without a word of the secret.
        """
        match = _NAMED.fullmatch(said) if isinstance(said, str) else None
        if match is None:
            raise InvalidOption(f"{place} does not begin with {PREFIX}, or NAME={PREFIX}; {_ADVICE}")
        scope = tuple(_pair(one, place) for one in match["scope"].split("|")[1:])
        name = f"webhook {match['name']}" if match["name"] else None
        return cls(name, _key(match["secret"], place), scope or (("*", "*"),))

    def may_send(self, signal: str) -> bool:
        """Whether it may send this signal to any workflow at all."""
        return any(fnmatchcase(signal, pattern) for _, pattern in self.scope)

    def may_tell(self, workflow: str, signal: str) -> bool:
        """Whether it may send this signal to this workflow."""
        return any(fnmatchcase(workflow, to) and fnmatchcase(signal, pattern) for to, pattern in self.scope)

    def asks_for_workflow(self, signal: str) -> bool:
        """Whether that depends on which workflow it is."""
        return not any(to == "*" and fnmatchcase(signal, pattern) for to, pattern in self.scope)


def _pair(said: str, place: str) -> tuple[str, str]:
    workflow, colon, signal = said.rpartition(":")
    if not colon or not workflow or not signal:
        raise InvalidOption(
            f"the scope {shown(said)} of {place} is not WORKFLOW:SIGNAL, such as checkout:paid or *:paid"
        )
    return workflow, signal


def _key(secret: str, place: str) -> bytes:
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise InvalidOption(f"{place} is not base64 after {PREFIX}; {_ADVICE}") from None
    if len(key) < _LEAST_BYTES:
        raise InvalidOption(f"{place} has {len(key)} bytes, and needs {_LEAST_BYTES} at least; {_ADVICE}")
    return key
