"""Forms that are made of schemas: which fields they have, and what is made of what somebody has filled in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import IntEnum
from typing import Any, Literal

import pytest
from pydantic import TypeAdapter

from rowlock.errors import InvalidArguments
from rowlock.model.workflow.form import FormChoice, SignalForm


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Approval:
    """May it be paid?"""

    approved: bool


@dataclass
class Review:
    verdict: Literal["approve", "refuse"]
    by: str
    level: Level
    amount: float
    due: date | None
    at: datetime | None = None
    note: str = "none"
    lines: list[int] | None = None


def form(kind: Any) -> SignalForm:  # noqa: ANN401  any type
    return SignalForm.of(TypeAdapter(kind).json_schema())


def test_an_approval_is_two_buttons_and_nothing_else() -> None:
    asked = form(Approval)

    assert asked.fields == ()
    assert asked.decision is not None
    assert asked.decision.choices == (FormChoice("Approve", "true"), FormChoice("Reject", "false"))
    assert asked.says == "May it be paid?"
    assert asked.read({"approved": ["false"]}) == {"approved": False}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("is_accepted", ("Accept", "Refuse")),
        ("confirmed", ("Confirm", "Reject")),
        ("in_stock", ("In stock: yes", "In stock: no")),
    ],
)
def test_yes_and_no_are_called_after_what_is_asked(name: str, words: tuple[str, str]) -> None:
    asked = SignalForm.of({"type": "object", "properties": {name: {"type": "boolean"}}, "required": [name]})

    assert asked.decision is not None
    assert tuple(choice.words for choice in asked.decision.choices) == words


@pytest.mark.parametrize(
    ("kind", "answer", "payload"),
    [
        (bool, "true", True),
        (Literal["yes", "no"], '"no"', "no"),
        (int, "7", 7),
        (float, "7.5", 7.5),
        (str, "seven", "seven"),
        (list[int], "[7]", [7]),
        (datetime, "2026-03-01T08:00", "2026-03-01T08:00:00+00:00"),
        (datetime, "2026-03-01T08:00:00+02:00", "2026-03-01T08:00:00+02:00"),
    ],
)
def test_a_plain_type_is_one_field(kind: Any, answer: str, payload: object) -> None:  # noqa: ANN401
    assert form(kind).read({"": [answer]}) == payload


def test_each_kind_of_member_has_its_field() -> None:
    asked = form(Review)

    assert asked.decision is not None
    assert asked.decision.name == "verdict"
    assert [(one.name, one.kind, one.required, one.nullable) for one in asked.fields] == [
        ("by", "text", True, False),
        ("level", "choice", True, False),
        ("amount", "number", True, False),
        ("due", "date", True, True),
        ("at", "datetime", False, True),
        ("note", "text", False, False),
        ("lines", "json", False, True),
    ]
    assert [one.default for one in asked.fields if one.default] == ["none"]


def test_what_was_filled_in_becomes_what_the_type_takes() -> None:
    said = {"verdict": ['"approve"'], "by": ["ann"], "level": ["2"], "amount": ["3"], "due": [""], "lines": ["[1]"]}

    payload = form(Review).read(said)

    assert payload == {"verdict": "approve", "by": "ann", "level": 2, "amount": 3, "due": None, "lines": [1]}
    assert TypeAdapter(Review).validate_python(payload).level is Level.HIGH


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({}, "verdict is missing; by is missing; level is missing; amount is missing"),
        ({"amount": ["many"]}, "amount: 'many' must be a number"),
        ({"level": ["high"]}, "level: 'high' must be JSON"),
        ({"lines": ["[1"]}, "lines: '[1' must be JSON"),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(said: dict[str, list[str]], fault: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        form(Review).read(said)

    assert fault in str(refused.value)


def test_many_choices_are_a_list_and_no_buttons() -> None:
    asked = SignalForm.of({"enum": [f"shelf {number}" for number in range(20)]})

    assert asked.decision is None
    assert [len(one.choices) for one in asked.fields] == [20]


@pytest.mark.parametrize("schema", [None, {}, True, "nonsense", {"type": "object"}, {"properties": 7}, []])
def test_what_no_fields_can_be_made_of_is_json(schema: object) -> None:
    asked = SignalForm.of(schema)

    assert [(one.name, one.kind) for one in asked.fields] == [("", "json")]
    assert asked.read({"": ['{"a": 1}']}) == {"a": 1}
