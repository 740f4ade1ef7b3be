"""Names of secrets, as people give them: db_password, X-Api-Key, clientSecret; but not token_count or secretary.

The last word of a name says what it is, and those before it only whose: a `password_policy` is a policy. So names are
cut into words, and the end of them is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from rowlock.errors import InvalidOption

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST: Final = 200  # characters of a name that are looked at, from its end

# Secrets also where the words before them are joined to them: dbpassword, accesstoken, x_apikey.
_JOINED: Final = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "credential"),
    *("apikey", "privatekey", "accesskey", "secretkey", "signingkey", "encryptionkey", "masterkey", "sshkey"),
    *("authkey", "sessionkey", "accountkey", "sharedkey", "hmackey"),
    *("dbpass", "userpass", "smtppass", "mailpass", "ftppass", "adminpass", "rootpass", "loginpass"),
    *("sessionid", "creditcard", "cardnumber", "cardno", "securitycode", "socialsecuritynumber", "accountnumber"),
    *("recoveryphrase", "seedphrase"),
)
# Secrets only as words of their own: nobody hides what was discarded, or an obsession.
_ALONE: Final = frozenset(
    (
        *("auth", "oauth", "authorization", "authorisation", "bearer", "cookie", "session", "signature", "sig", "jwt"),
        *("pwd", "otp", "totp", "card", "cvv", "cvc", "iban", "ssn"),
    )
)
# What may follow without making it another thing: password_confirmation, token_hash, auth_header.
_TRIMMINGS: Final = frozenset(
    (
        *(
            "hash",
            "hashed",
            "digest",
            "sha",
            "value",
            "string",
            "header",
            "headers",
            "code",
            "data",
            "pem",
            "json",
            "env",
        ),
        *(
            "confirmation",
            "confirm",
            "again",
            "repeat",
            "new",
            "old",
            "current",
            "previous",
            "raw",
            "plain",
            "plaintext",
        ),
        *("encrypted", "encoded", "base", "b", "hex", "bytes"),
    )
)


def check_names(also: Iterable[str]) -> tuple[str, ...]:
    """More names of secrets."""
    if isinstance(also, str):
        raise InvalidOption(f"also={also!r} is one str; write also=[{also!r}]")
    return tuple(also)


def is_secret(name: str, value: object, also: tuple[str, ...] = ()) -> bool:
    """Whether what has this name must not be shown. Nothing, True and False tell nothing; `tokens: 512` is a count."""
    if value is None or value == "" or isinstance(value, bool):
        return False
    named = _named(name[-_LONGEST:], also)
    return named == "secret" or (named == "several" and not _is_number(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal() and len(value) < 10)


@lru_cache(maxsize=4096)
def _named(name: str, also: tuple[str, ...]) -> str:
    """What a name means: a `secret`, `several` of them, or `nothing`."""
    words = _words(name)
    while words:
        if any(_ends_with(words, _words(more)) for more in also):
            return "secret"
        if _is_one(words):
            return "secret"
        if words[-1].endswith("s") and _is_one([*words[:-1], words[-1].removesuffix("s")]):
            return "several"
        if not words[-1].isdecimal() and words[-1] not in _TRIMMINGS:
            break
        words.pop()
    return "nothing"


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _is_one(words: list[str]) -> bool:
    return words[-1] in _ALONE or words == ["pass"] or "".join(words[-3:]).endswith(_JOINED)


def _ends_with(words: list[str], last: list[str]) -> bool:
    return bool(last) and words[-len(last) :] == last
