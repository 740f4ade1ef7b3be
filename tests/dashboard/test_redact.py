"""What is shown without the secrets in it: which names are secrets' and which only look so, and which texts."""

from __future__ import annotations

import json
import time
import traceback
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from rowlock.errors import InvalidOption
from rowlock.model.redact import MARK, redact, redact_text

CANARY = "c4nary-S3same"


def words(text: str) -> list[str]:
    return text.split()


SECRETS = words("""
    password Password PASSWORD passwd pwd db_password dbPassword DB_PASSWORD PGPASSWORD MYSQL_PWD mypassword password1
    user.password password_2 password_hash passwordConfirmation new_password password_new passphrase db_pass smtp_pass
    pass secret client_secret clientSecret CLIENT_SECRET clientsecret webhook-secret secret_key SECRET_KEY secretKey
    secretValue token access_token accessToken accesstoken refresh_token id_token X-Auth-Token csrfToken token_hash
    tokens api_tokens api_key apikey apiKey APIKey API_KEY api-key X-Api-Key x_apikey stripe_api_key openai.api.key
    authorization Authorization Proxy-Authorization auth basic_auth auth_header authHeader oauth auth_code
    cookie Cookie Set-Cookie cookies session session_id sessionId sessionid session_key SESSION
    credential credentials aws_credentials private_key privateKey ssh_private_key privatekey private_key_pem
    access_key aws_secret_access_key accessKey signing_key encryption_key
    signature X-Hub-Signature-256 x-amz-signature sig jwt JWT bearer otp
    card credit_card card_number cardNumber creditCardNumber card_no cvv cvv2 cvc iban IBAN ssn social_security_number
    security_code
""")

FALSE_FRIENDS = words("""
    tokens_used token_count tokenCount max_tokens_per_minute tokenizer token_type tokenized token_url token_expires_at
    token_id author authors authority authored_by authenticated auth_method auth_type auth_url oauth_scopes
    secretary secretaries secret_name secret_arn secretariat
    password_policy password_length password_reset_at password_file password_changed passwordless
    key keys primary_key foreign_key public_key key_id idempotency_key cache_key sort_key api_key_id apikey_name keypad
    session_count session_timeout sessions_total obsession cookie_domain cookie_consent cookiecutter
    card_type card_brand cardholder cardinality discard wildcard postcards dashboard
    passenger compass bypass passed passes pass_rate passport_office signature_algorithm signed design significant
    pin pins shipping spin piano liban ssn_valid credentialed_at private_notes access_level to user email name
""")


def test_what_has_a_secrets_name_is_not_shown() -> None:
    shown = {name: redact({name: CANARY, "beside": CANARY}) for name in SECRETS}

    assert shown == {name: {name: MARK, "beside": CANARY} for name in SECRETS}


def test_what_only_looks_like_a_secrets_name_is_shown() -> None:
    shown = [redact({name: CANARY}) for name in FALSE_FRIENDS]

    assert shown == [{name: CANARY} for name in FALSE_FRIENDS]


def in_texts(name: str) -> list[str]:
    """A value of this name, as it may stand in a text."""
    return [form.format(name=name, value=CANARY) for form in FORMS]


FORMS = (
    "{name}={value}",
    "{name} = {value}",
    "cannot connect ({name}={value}, user=ada)",
    "{name}: {value}",
    '{{"user": "ada", "{name}": "{value}"}}',
    "{{'user': 'ada', '{name}': '{value}'}}",
    '{{\\"{name}\\": \\"{value}\\"}}',
    '{{\\\\\\"{name}\\\\\\":\\\\\\"{value}\\\\\\"}}',
    "https://api.example/v1?user=ada&{name}={value}&page=2",
    "login(user='ada', {name}='{value}')",
    'login({name}="{value} with \\" in it")',
    "run --{name} {value} --verbose",
    "run --{name}={value}",
    'settings["{name}"] = "{value}"',
    "{name}='{value}",
)


def test_what_has_a_secrets_name_in_a_text_is_not_shown() -> None:
    assert [text for name in SECRETS for text in in_texts(name) if CANARY in redact_text(text)] == []


def test_what_only_looks_like_a_secrets_name_in_a_text_is_shown() -> None:
    assert [text for name in FALSE_FRIENDS for text in in_texts(name) if redact_text(text) != text] == []


# Values


def test_the_shape_is_kept() -> None:
    value = {
        "to": "ada@example.org",
        "auth": {"user": "ada", "pw": ["x", 7, None, True], "more": {}},
        "list": [{"password": 12345678}, {"password": None}, {"password": ""}, {"password": False}],
        "count": 3,
        "ratio": 0.5,
    }

    assert redact(value) == {
        "to": "ada@example.org",
        "auth": {"user": MARK, "pw": [MARK, MARK, None, True], "more": {}},
        "list": [{"password": MARK}, {"password": None}, {"password": ""}, {"password": False}],
        "count": 3,
        "ratio": 0.5,
    }


def test_what_was_given_is_not_changed() -> None:
    value = {"password": "x", "list": [{"token": "y"}]}

    redact(value)

    assert value == {"password": "x", "list": [{"token": "y"}]}


@pytest.mark.parametrize("value", [512, 0.5, "512"], ids=repr)
def test_so_many_tokens_are_a_count_and_one_token_is_none(value: object) -> None:
    shown = redact({"max_tokens": value, "prompt_tokens": value, "sessions": value, "token": value})

    assert shown == {"max_tokens": value, "prompt_tokens": value, "sessions": value, "token": MARK}
    assert redact_text("max_tokens=512, tokens: 30") == "max_tokens=512, tokens: 30"


def test_a_setting_that_is_written_as_name_and_value_is_known() -> None:
    settings = [{"name": "API_KEY", "value": CANARY}, {"key": "PORT", "value": "80"}, {"key": "token", "value": CANARY}]

    assert [one["value"] for one in redact(settings)] == [MARK, "80", MARK]


def test_users_add_names() -> None:
    value = {"pin": 1, "userPin": 2, "user_pin2": 3, "shipping": 4, "pinned": 5, "maidenName": "a", "name": "b"}

    shown = redact(value, also=("pin", "maiden_name"))

    assert shown == value | {"pin": MARK, "userPin": MARK, "user_pin2": MARK, "maidenName": MARK}
    assert redact_text("pin: 1234, spin: 5", also=["pin"]) == "pin: ***, spin: 5"


def test_one_text_is_no_list_of_names() -> None:
    with pytest.raises(InvalidOption, match="one str"):
        redact({}, also="pin")


def test_a_key_that_is_a_secret_is_not_shown_and_two_stay_two() -> None:
    shown = redact({"sk_live_abcdefgh1": 1, "sk_live_abcdefgh2": 2, "plain": 3})

    assert shown == {"***": 1, "*** (2)": 2, "plain": 3}


def test_a_value_that_is_too_deep_is_not_shown() -> None:
    deep: Any = CANARY
    for _ in range(900):
        deep = [deep]

    assert CANARY not in json.dumps(redact({"it": deep, "auth": deep}))


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", "plain", [], {}, ["a", {"b": [1]}]], ids=repr)
def test_what_holds_no_secret_is_shown_as_it_is(value: object) -> None:
    assert redact(value) == value


# Secrets by how they look

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{CANARY}\nAAAA\n-----END RSA PRIVATE KEY-----"

LOOKS = [
    ("postgresql://ada:c4nary-S3same@db/shop", "postgresql://ada:***@db/shop"),
    ("cannot reach redis://:c4nary-S3same@cache:6379/0", "cannot reach redis://:***@cache:6379/0"),
    ("postgresql://ada:c4nary/S3s@me@db/shop", "postgresql://ada:***@db/shop"),
    ('{"a":"amqp://u:c4nary-S3same@h","to":"ada@x.org"}', '{"a":"amqp://u:***@h","to":"ada@x.org"}'),
    ("Bearer xyz", "Bearer ***"),
    (f"sent bearer {CANARY} to them", "sent bearer *** to them"),
    (f"Authorization: Bearer {CANARY}", "Authorization: ***"),
    (f"curl -H 'Authorization: Token {CANARY}' https://x", "curl -H 'Authorization: ***' https://x"),
    (f'Cookie: a="{CANARY}"; b={CANARY}\nHost: x', "Cookie: ***\nHost: x"),
    (f"Basic {b64encode(b'ada:' + CANARY.encode()).decode()}", "Basic ***"),
    (f"got {JWT}, expired", "got ***, expired"),
    ("sk_live_c4naryS3same", "***"),
    ("key sk-proj-c4naryS3same-c4naryS3same!", "key ***!"),
    ("AKIAIOSFODNN7EXAMPLE", "***"),
    ("whsec_c4naryS3same+/=", "***"),
    ("ghp_c4naryS3samec4naryS3same", "***"),
    ("xoxb-1234-c4naryS3same", "***"),
    ("repr 'a\\nsk_live_c4naryS3same'", "repr 'a\\n***'"),
    (f"before\n{PEM}\nafter", "before\n***\nafter"),
    (f"cut off: {PEM[:60]}", "cut off: ***"),
    (json.dumps(PEM), '"***"'),
    ("card number: 4111 1111 1111 1111 was refused", "card number: *** was refused"),
    ("IBAN: DE89 3704 0044 0532 0130 00", "IBAN: ***"),
    (f"API key: {CANARY}", "API key: ***"),
    ("pin: 1, cvv: 123, otp:123456, password: sesame", "pin: 1, cvv: ***, otp:***, password: ***"),
    ("session:a7, card: 4111111111111111, token: abc-def", "session:***, card: ***, token: ***"),
    ("host=b password='c4nary S3same' dbname=c", "host=b password='***' dbname=c"),
    (f"tokens=['{CANARY}', ['{CANARY}']], user=ada", "tokens=***, user=ada"),
]


@pytest.mark.parametrize(("text", "shown"), LOOKS, ids=[text[:30] for text, _ in LOOKS])
def test_what_looks_like_a_secret_is_not_shown_whatever_it_is_called(text: str, shown: str) -> None:
    assert redact_text(text) == shown
    assert redact({"note": [text]}) == {"note": [shown]}


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8080/users/ada@example.org",
        "http://[::1]:8080/@ada",
        "https://medium.example:443/@ada/story",
        "ada@example.org, bob@example.org",
        "ada@example.org,http://host:port/",
        "Bearer token is missing",
        "Basic authentication required",
        "the Basic Plan and the basic idea",
        "password: must be at least 8 characters",
        "token: unexpected end of input",
        "password: required",
        "find the session: select pid from pg_stat_activity",
        "looked at again by token: still ours",
        "session:42 card:7 auth:login",
        "`with Session.begin() as session:`",
        "KeyError: 'password'",
        "JSONDecodeError: Unexpected token: }",
        "unknown field 'secret'",
        "password=None, token=null",
        "Token::new(), token://vault",
        "key=42 sort_key=name primary_key: 7",
        "risk-averse, ask-me-anything-about-it-please",
        "eyJ is how they begin",
        "AKIAIOSFODNN7EXAMPLEANDMORE",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        "line one\r\nline two\n\n  three\u2028four\n",
    ],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert redact_text(text) == text


def test_a_traceback_keeps_its_code_and_loses_what_is_written_in_it() -> None:
    def login(password: str, token: str) -> None:
        session = {"user": password}
        raise ValueError(f"no {session=}, password={password!r}, {token=}")

    with pytest.raises(ValueError, match=CANARY) as raised:
        login(password=CANARY, token="c4nary-S3same")  # noqa: S106  that is what this is about
    text = "".join(traceback.format_exception(raised.value))

    shown = redact_text(text)
    assert CANARY not in shown
    assert 'login(password=CANARY, token="***")' in shown
    assert shown.endswith("no session=***, password='***', token='***'\n")
    assert shown.count("\n") == text.count("\n")


def test_what_pydantic_quotes_of_a_secret_is_not_shown() -> None:
    class Login(BaseModel):
        user: int
        password: int

    with pytest.raises(ValidationError) as refused:
        Login.model_validate({"user": "ada", "password": f"x, input_type=str] {CANARY}"})

    shown = redact_text(str(refused.value))
    assert CANARY not in shown
    assert "input_value='ada'" in shown
    assert "input_value=***, input_type=str]" in shown


# Whatever it is given


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_was_redacted_is_not_changed_by_being_redacted_again(value: object) -> None:
    once = redact(value)

    assert redact(once) == once


@given(st.text(st.sampled_from("pasword token:=\"'\\ -@/{}[]()\n.,eyJ1"), max_size=60))
def test_texts_of_odd_signs_come_to_an_end_and_are_stable(text: str) -> None:
    once = redact_text(text)

    assert redact_text(once) == once


HOSTILE: dict[str, Callable[[int], str]] = {
    "one word": lambda size: "a" * size,
    "spaces": lambda size: "password" + " " * size,
    "names": lambda size: "password " * (size // 9),
    "equals": lambda size: "password=" * (size // 9),
    "quotes": lambda size: "password='" * (size // 10),
    "open quotes": lambda size: 'password=\\"a ' * (size // 12),
    "backslashes": lambda size: "password=" + "\\" * size,
    "mixed quotes": lambda size: "token=\"' token='\\\" " * (size // 18),
    "brackets": lambda size: "tokens=[" * (size // 8),
    "closing": lambda size: "token=" + ")" * size,
    "closings": lambda size: "token=) " * (size // 8),
    "digits": lambda size: "token=" + "1 " * (size // 2) + "x",
    "numbers": lambda size: "token=1 1 " * (size // 10),
    "URLs": lambda size: "://a:" * (size // 5),
    "URLs with @": lambda size: "://a:1/" * (size // 7) + "@",
    "signs": lambda size: "://a:" + "@" * size,
    "PEM": lambda size: "-----BEGIN PRIVATE KEY-----" * (size // 27),
    "PEM ends": lambda size: "-----BEGIN PRIVATE KEY-----" + "-----END " * (size // 9),
    "PEM begins": lambda size: "-----BEGIN " * (size // 11),
    "JWT": lambda size: "eyJ" * (size // 3),
    "JWTs": lambda size: "eyJ-" * (size // 4),
    "JWTs with dots": lambda size: "eyJaaaaa." * (size // 9),
    "bearers": lambda size: "Bearer " * (size // 7),
    "basics": lambda size: "Basic " + "a" * size,
    "cookies": lambda size: "'Cookie: a" * (size // 10),
    "pydantic": lambda size: "[type=a, input_value=" * (size // 21),
    "flags": lambda size: "--" * (size // 2),
    "lines": lambda size: "token: a\n" * (size // 9),
    "prefixes": lambda size: "session " * (size // 8),
    "SendGrid": lambda size: "SG.aaaaaaaaaaaaaaaa" * (size // 19),
    "capitals": lambda size: "A" * size + "=1",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_work_grows_as_the_text_does(kind: str) -> None:
    small, large = (HOSTILE[kind](size) for size in (3_000, 16 * 3_000))

    least = min(effort(small) for _ in range(5))

    # Where it grows with the square of it, 16 times the text is 256 times the work.
    assert any(effort(large) < 6 * 16 * least for _ in range(3))


def effort(text: str) -> float:
    """What a text costs this processor, whatever else that does meanwhile."""
    begun = time.process_time()
    redact_text(text)
    return time.process_time() - begun
