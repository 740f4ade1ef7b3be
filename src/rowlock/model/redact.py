"""Redaction: JSON values, texts and URLs without the secrets in them.

Secrets are found by their names, or by how they look. This is a net, and no proof: it knows what secrets are usually
called and what they usually look like. Each pattern is linear in the length of a text, because whoever enqueues chooses
the text: a run of characters is examined from its beginning only.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from rowlock.errors import InvalidOption

MARK: Final = "***"
"""What stands in the place of a secret."""

_DEEPEST: Final = 200

# Secrets by how they look, wherever they are

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_BEARER: Final = re.compile(
    # Not what is said about it: Bearer token, bearer authentication.
    r"\b(bearer[ \t]+)(?!(?:tokens?|auth\w*|schemes?|realm|errors?|is|was|of|and|or|in|for|has)\b)\w[\w.~+/=-]*",
    re.IGNORECASE | re.ASCII,
)
_BASIC: Final = re.compile(r"\b(basic[ \t]+)([A-Za-z0-9+/]{4,}+={0,2})", re.IGNORECASE)
_TOKEN: Final = re.compile(
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))(?:"  # at the beginning of a word; a line may be quoted with its \n
    r"eyJ[\w-]{5,}+(?:\.[\w-]*+){1,4}"  # JSON Web Tokens
    r"|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{8,}+"  # Stripe
    r"|whsec_[A-Za-z0-9+/=_-]{8,}+"
    r"|sk-[\w-]{16,}+"  # OpenAI, Anthropic
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS
    r"|(?:gh[pousr]_|github_pat_|glpat-|hf_|npm_|pypi-|dop_v1_|shpat_)[\w-]{16,}+"
    r"|xox[a-z]-[\w-]{8,}+|xapp-[\w-]{8,}+"  # Slack
    r"|AIza[\w-]{30,}+|ya29\.[\w-]{16,}+"  # Google
    r"|SG\.[\w-]{16,}+\.[\w-]{16,}+"  # SendGrid
    r")",
    re.ASCII,
)

# Secrets by their names, in text

_NAME: Final = re.compile(
    r"(?<![\w.-])(?P<flag>--?)?"
    r"(?P<name>(?(flag)|(?:(?:api|access|private|secret|account|signing|encryption|ssh|session|card|security) )?)"
    r"[a-z_][\w.-]*+)"
    r"(?:\\{0,7}[\"']\]?)?"
    r"(?P<said>[ \t]{0,8}(?:=>|:=|[!=]?={1,2}|:(?!:|//))[ \t]{0,8}|(?(flag)[ \t]{1,8}|(?!)))",
    re.IGNORECASE | re.ASCII,
)
# Its value: in quotes, in quotes that were escaped, or bare. A quote that is not closed ends with the line.
_QUOTED: Final = re.compile(
    r"[rbfu]{0,2}(?:\"(?P<double>(?:[^\"\\\r\n]|\\.)*+)|'(?P<single>(?:[^'\\\r\n]|\\.)*+))", re.IGNORECASE
)
_ESCAPED: Final = re.compile(r"(?P<quote>\\{1,7}[\"'])(?P<escaped>.*?)(?:(?<!\\)(?P=quote)|$)")
_NUMBER: Final = re.compile(r"[A-Z]{0,2}[0-9](?:[ -]?[A-Z0-9]){7,}+(?![\w.])", re.ASCII)
_BARE: Final = re.compile(r"[^\s&\"'<>]*[^\s&\"'<>,;)\]}.`]")
_BRACKET: Final = re.compile(r"[\[({\])}]")
_HEADER: Final = re.compile(r"(?:.*-)?(?:authorization|cookie)", re.IGNORECASE)
_NO_VALUE: Final = re.compile(r"(?:None|True|False|null|nil|undefined|true|false)\b")
# How a complaint about a secret goes on, and no secret: "password: must be at least 8 characters".
_COMPLAINT: Final = re.compile(
    r"(?:a|an|at|can|cannot|could|did|does|expected|expired|field|for|has|have|in|incorrect|input|invalid|is|it|"
    r"malformed|may|mismatch|missing|must|need|needs|no|not|of|only|please|rejected|required|revoked|should|string|"
    r"the|this|too|unexpected|unknown|value|was|we|were|wrong|you|your)\b(?!=)",
    re.IGNORECASE,
)
# What is always long and of mixed signs, and what is neither: "find the session: select …", the key `card:7`.
_LONG: Final = re.compile(r"(?:token|session|card|auth|signature|sig|jwt|bearer)s?\Z", re.IGNORECASE)
_SHORT: Final = re.compile(r"(?:[a-z]++|[0-9]{1,7}+)(?![\w=-])")

# Lines of tracebacks, and of pydantic's complaints

_FRAME: Final = re.compile(r'[ |+]*File "[^"]*", line [0-9]+')
_INPUT: Final = (", input_value=", ", input_type=")


def redact(value: Any, *, also: Iterable[str] = ()) -> Any:  # noqa: ANN401  any JSON value
    """A JSON value with `***` for each secret in it, of the same shape; `also` are more names of secrets."""
    return _value(value, check_names(also), 0)


def redact_text(text: str, *, also: Iterable[str] = ()) -> str:
    """A text, such as an error's message or a traceback, with `***` for each secret in it."""
    return _text(text, check_names(also))


# Values


def _value(value: Any, also: tuple[str, ...], depth: int) -> Any:  # noqa: ANN401  any JSON value
    if depth > _DEEPEST:
        return MARK
    match value:
        case str():
            return _text(value, also)
        case dict():
            return _object(value, also, depth)
        case list() | tuple():
            return [_value(one, also, depth + 1) for one in value]
        case _:
            return value


def _object(value: dict[Any, Any], also: tuple[str, ...], depth: int) -> dict[Any, Any]:
    shown: dict[Any, Any] = {}
    # Settings are often written so: {"name": "API_KEY", "value": "…"}.
    said = value.get("name", value.get("key"))
    for name, one in value.items():
        meant = said if name == "value" and isinstance(said, str) else name
        hidden = isinstance(meant, str) and is_secret(meant, one, also)
        shown[_key(name, shown, also)] = _masked(one, depth + 1) if hidden else _value(one, also, depth + 1)
    return shown


def _key(name: object, taken: dict[Any, Any], also: tuple[str, ...]) -> object:
    """A key may be a secret itself; two of them stay two."""
    key = bare = _text(name, also) if isinstance(name, str) else name
    number = 1
    while key in taken:
        number += 1
        key = f"{bare} ({number})"
    return key


def _masked(value: Any, depth: int) -> Any:  # noqa: ANN401  any JSON value
    """The shape of a secret, and nothing else of it."""
    match value:
        case None | bool():
            return value
        case dict() if depth <= _DEEPEST:
            return {name: _masked(one, depth + 1) for name, one in value.items()}
        case list() | tuple() if depth <= _DEEPEST:
            return [_masked(one, depth + 1) for one in value]
        case _:
            return MARK


# Texts


def _text(text: str, also: tuple[str, ...]) -> str:
    text = _PRIVATE_KEY.sub(MARK, text)
    text = _TOKEN.sub(MARK, redact_urls(text))
    text = _BASIC.sub(_without_credentials, _BEARER.sub(rf"\1{MARK}", text))
    return "".join(_lines(text, also))


def _without_credentials(match: re.Match[str]) -> str:
    """`Basic` and what follows, unless that is USER:PASSWORD in base64: a Basic Plan is none."""
    try:
        said = b64decode(match[2])
    except ValueError:
        return match[0]
    return f"{match[1]}{MARK}" if b":" in said else match[0]


def _lines(text: str, also: tuple[str, ...]) -> Iterator[str]:
    above = ""
    for line in text.splitlines(keepends=True):
        begin, end = line.find(_INPUT[0]) + len(_INPUT[0]), line.rfind(_INPUT[1])
        if len(_INPUT[0]) <= begin < end and is_secret(above.strip(), line[begin:end], also):
            yield f"{line[:begin]}{MARK}{line[end:]}"
        else:
            yield from _line(line, also, is_code=_FRAME.match(above) is not None)
        above = line


def _line(line: str, also: tuple[str, ...], *, is_code: bool) -> Iterator[str]:
    done = at = 0
    while name := _NAME.search(line, at):
        at = name.end()
        # Asked first of the name alone: most are none, and their values are looked into, not passed over.
        if not is_secret(name["name"], MARK, also):
            continue
        begin, end = _place(line, name, is_code=is_code)
        if begin < end and is_secret(name["name"], line[begin:end], also):
            yield line[done:begin]
            yield MARK
            done = at = end
    yield line[done:]


def _place(line: str, name: re.Match[str], *, is_code: bool) -> tuple[int, int]:
    """Where the value after a name begins and ends; the same place if there is none to hide."""
    at = name.end()
    if quoted := _QUOTED.match(line, at):
        return quoted.span(quoted.lastgroup or 0)
    if escaped := _ESCAPED.match(line, at):
        return escaped.span("escaped")
    if _NO_VALUE.match(line, at) or (":" in name["said"] and _is_prose(line, name)):
        return at, at
    if is_code and not line[at : at + 1].isdecimal():
        return at, at  # an expression: what it says is not what it was
    return at, _end_of_bare(line, name)


def _is_prose(line: str, name: re.Match[str]) -> bool:
    """Whether what follows a colon is said about a secret, or is no secret."""
    is_short = _LONG.search(name["name"]) and _SHORT.match(line, name.end())
    return bool(is_short or _COMPLAINT.match(line, name.end()))


def _end_of_bare(line: str, name: re.Match[str]) -> int:
    at = name.end()
    if line[at : at + 1] in ("[", "{", "("):
        return _closing(line, at)
    if ":" in name["said"] and _HEADER.fullmatch(name["name"]):
        before = line[name.start() - 1 : name.start()]
        quote = line.find(before, at) if before in ("'", '"') else -1
        return quote if quote >= 0 else len(line.rstrip())
    found = _NUMBER.match(line, at) or _BARE.match(line, at)
    return found.end() if found else at


def _closing(line: str, at: int) -> int:
    """Behind the bracket that closes the one there; the end of the line if none does."""
    deep = 0
    for bracket in _BRACKET.finditer(line, at):
        deep += 1 if bracket[0] in "[({" else -1
        if not deep:
            return bracket.end()
    return len(line.rstrip("\r\n"))


# Passwords in URLs and connection strings: in settings, in errors, on pages

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


# Names of secrets: db_password, X-Api-Key, clientSecret; but not token_count or secretary
#
# The last word of a name says what it is, and those before it only whose: a `password_policy` is a policy. So a name
# is cut into words, and its end is what counts.

_WORD_OF_NAME: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
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
        *("hash", "hashed", "digest", "sha", "value", "string", "header", "headers", "code", "data", "pem", "json"),
        *("env", "confirmation", "confirm", "again", "repeat", "new", "old", "current", "previous", "raw", "plain"),
        *("plaintext", "encrypted", "encoded", "base", "b", "hex", "bytes"),
    )
)


def check_names(also: Iterable[str]) -> tuple[str, ...]:
    """More names of secrets."""
    if isinstance(also, str):
        raise InvalidOption(f"also={also!r} is one str; write also=[{also!r}]")
    return tuple(also)


def is_secret(name: str, value: object, also: tuple[str, ...] = ()) -> bool:
    """Whether a value of this name must not be shown. None, True and False reveal nothing; `tokens: 512` is a count."""
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
    return [word.lower() for word in _WORD_OF_NAME.findall(name)]


def _is_one(words: list[str]) -> bool:
    return words[-1] in _ALONE or words == ["pass"] or "".join(words[-3:]).endswith(_JOINED)


def _ends_with(words: list[str], last: list[str]) -> bool:
    return bool(last) and words[-len(last) :] == last
