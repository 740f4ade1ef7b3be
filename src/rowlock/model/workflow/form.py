"""Form: fields and buttons for a signal, made from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from rowlock.errors import InvalidArguments
from rowlock.model.names import shown
from rowlock.model.workflow.json_schema import resolve_reference, schema_faults

FieldKind = Literal["choice", "text", "integer", "number", "date", "datetime", "time", "json"]

# More choices than so many are a list, and no buttons.
_MOST_BUTTONS: Final = 5
_LONGEST_BUTTON: Final = 40
# What people call the two answers to a question of yes or no, by the name that it has in code.
_ANSWERS: Final = {
    "approve": ("Approve", "Reject"),
    "accept": ("Accept", "Refuse"),
    "confirm": ("Confirm", "Reject"),
    "allow": ("Allow", "Deny"),
    "publish": ("Publish", "Hold back"),
}
_BY_FORMAT: Final[Mapping[str, FieldKind]] = {"date": "date", "date-time": "datetime", "time": "time"}


@dataclass(frozen=True, slots=True)
class FormChoice:
    """One of several choices: its label, and its JSON value."""

    words: str
    value: str


@dataclass(frozen=True, slots=True)
class FormField:
    """One field. `name` is "" if the field is the whole payload; `default` is a text as somebody would type it."""

    name: str
    label: str
    kind: FieldKind
    required: bool
    choices: tuple[FormChoice, ...] = ()
    default: str = ""
    hint: str = ""
    least: float | None = None
    most: float | None = None
    longest: int | None = None
    nullable: bool = False

    def read(self, text: str) -> Any:  # noqa: ANN401  any JSON
        """The typed text as a JSON value."""
        try:
            match self.kind:
                case "choice" | "json":
                    return json.loads(text)
                case "integer":
                    return int(text)
                case "number":
                    number = float(text)
                    return int(number) if number.is_integer() else number
                case "datetime":
                    return _zoned(text)
                case _:
                    return text
        except (ValueError, OverflowError, RecursionError):
            what = {"integer": "a whole number", "number": "a number"}.get(self.kind, 'JSON, such as {"a": 1}')
            raise InvalidArguments(f"{self.name or 'it'}: {shown(text)} must be {what}", path=_path(self)) from None


@dataclass(frozen=True, slots=True)
class SignalForm:
    """`fields` to fill in, and then `decision`, the field whose choices are the buttons; without one there is "Send".

    With one decision and nothing else, it takes one click.
    """

    schema: Any
    fields: tuple[FormField, ...]
    decision: FormField | None
    title: str
    says: str

    @classmethod
    def of(cls, schema: Any) -> SignalForm:  # noqa: ANN401  any JSON
        """The form of a schema; of none, or of one that no fields can be made of, one field for JSON."""
        whole = resolve_reference(schema, schema)
        whole = whole if isinstance(whole, Mapping) else {}
        members = whole.get("properties")
        if whole.get("type", "object") == "object" and isinstance(members, Mapping) and members:
            needed = whole.get("required")
            needed = needed if isinstance(needed, list) else []
            fields = [_field(name, said, schema, required=name in needed) for name, said in members.items()]
        else:
            fields = [_field("", whole, schema, required=_is_strict(whole))]
        decision = next((field for field in fields if _is_decision(field)), None)
        rest = tuple(field for field in fields if field is not decision)
        return cls(schema, rest, decision, _text(whole.get("title")), _text(whole.get("description")))

    def read(self, answers: Mapping[str, Sequence[str]]) -> Any:  # noqa: ANN401  any JSON
        """The payload of a filled-in form, each field by its name; InvalidArguments if it does not fit the schema."""
        fields = self.fields if self.decision is None else (*self.fields, self.decision)
        said = {name: texts[-1] for name, texts in answers.items() if texts and texts[-1].strip()}
        if [field.name for field in fields] == [""]:
            payload = fields[0].read(said[""]) if "" in said else None
        else:
            payload = {field.name: field.read(said[field.name]) for field in fields if field.name in said} | {
                field.name: None for field in fields if field.name not in said and field.nullable and field.required
            }
        self.check(payload)
        return payload

    def check(self, payload: Any) -> None:  # noqa: ANN401  any JSON
        """InvalidArguments, with every fault, if a payload does not fit the schema; without one, everything does."""
        wrong = schema_faults(self.schema, payload) if self.schema is not None else ()
        if wrong:
            raise InvalidArguments(f"this is not what it waits for: {'; '.join(wrong)}")


def _field(name: str, said: Any, root: Any, *, required: bool) -> FormField:  # noqa: ANN401  any JSON
    schema, nullable = _without_null(resolve_reference(said, root), root)
    kind, choices = _kind(name, schema)
    has_default = isinstance(schema.get("default"), str | int | float | bool)
    return FormField(
        name,
        _text(schema.get("title")) or name.replace("_", " ").capitalize(),
        kind,
        required,
        choices,
        default=_typed(schema["default"], kind) if has_default else "",
        hint=_text(schema.get("description")),
        least=_number(schema.get("minimum", schema.get("exclusiveMinimum"))),
        most=_number(schema.get("maximum", schema.get("exclusiveMaximum"))),
        longest=schema["maxLength"] if type(schema.get("maxLength")) is int else None,
        nullable=nullable,
    )


def _without_null(schema: Any, root: Any) -> tuple[Mapping[str, Any], bool]:  # noqa: ANN401  any JSON
    """A schema without null, and whether null was allowed: types express an optional value as `anyOf: [X, null]`."""
    if not isinstance(schema, Mapping):
        return {}, False
    parts = schema.get("anyOf")
    if not isinstance(parts, list) or {"type": "null"} not in parts:
        return schema, False
    others = [part for part in parts if part != {"type": "null"}]
    beside = {name: told for name, told in schema.items() if name not in ("anyOf", "default")}
    one = resolve_reference(others[0], root) if len(others) == 1 else {}
    return ({**one, **beside} if isinstance(one, Mapping) else beside), True


def _kind(name: str, schema: Mapping[str, Any]) -> tuple[FieldKind, tuple[FormChoice, ...]]:
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(allowed, list) and allowed:
        return "choice", tuple(FormChoice(_words(one), json.dumps(one)) for one in allowed)
    match schema.get("type"):
        case "boolean":
            return "choice", _yes_or_no(name, _text(schema.get("title")))
        case "integer":
            return "integer", ()
        case "number":
            return "number", ()
        case "string":
            return _BY_FORMAT.get(_text(schema.get("format")), "text"), ()
        case _:
            return "json", ()


def _yes_or_no(name: str, title: str) -> tuple[FormChoice, ...]:
    """Approve and Reject for `approved`; else the field's label, with yes and no."""
    plain = name.lower().removeprefix("is_")
    known = next((said for word, said in _ANSWERS.items() if plain.startswith(word[:-1])), None)
    called = title or name.replace("_", " ").capitalize()
    yes, no = known or ((f"{called}: yes", f"{called}: no") if called else ("Yes", "No"))
    return FormChoice(yes, "true"), FormChoice(no, "false")


def _is_decision(field: FormField) -> bool:
    """Whether its choices are few and short enough to be buttons, and one of them must be taken."""
    short = all(len(choice.words) <= _LONGEST_BUTTON for choice in field.choices)
    return field.kind == "choice" and field.required and len(field.choices) <= _MOST_BUTTONS and short


def _is_strict(schema: Mapping[str, Any]) -> bool:
    return bool(schema) and schema.get("type") != "null"


def _typed(value: object, kind: FieldKind) -> str:
    return json.dumps(value) if kind in ("choice", "json") else str(value)


def _words(value: object) -> str:
    return value[:1].upper() + value[1:] if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(said: object) -> str:
    return said if isinstance(said, str) else ""


def _number(said: object) -> float | None:
    return said if isinstance(said, int | float) and not isinstance(said, bool) else None


def _zoned(text: str) -> str:
    """An instant; without a zone, as from a browser's field, it is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text  # the schema says what is wrong
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).isoformat()


def _path(field: FormField) -> str:
    return f"$.{field.name}" if field.name else "$"
