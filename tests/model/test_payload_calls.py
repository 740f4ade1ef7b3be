"""Calls and results: signatures of every kind, what is stored of them, and what is read back later."""
# ruff: noqa: DTZ001 - naive datetimes are among it

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from rowlock.errors import InvalidArguments, TaskError
from rowlock.model.payload.arguments import Arguments, Result, encode_untyped
from tests.model.baggage import RETYPED, TRAVELLERS, Order, label, returning, taking, trip

if TYPE_CHECKING:
    from somewhere import Unimported  # type: ignore[import-not-found]


def test_the_json_is_an_object_by_parameter_name_and_plain_utf8() -> None:
    # given
    def handler(user_id: int, name: str, *, flag: bool = False) -> None: ...

    # when
    text = Arguments.of(handler).encode((42,), {"name": "Zoë"})

    # then
    assert text == '{"user_id":42,"name":"Zoë"}'


def test_a_default_that_is_not_given_is_not_stored_so_that_the_one_in_force_at_run_time_applies() -> None:
    # given
    def handler(a: int, b: int = 1) -> int:
        return a + b

    def handler_later(a: int, b: int = 10) -> int:
        return a + b

    # when
    text = Arguments.of(handler).encode((5,), {})
    args, kwargs = Arguments.of(handler_later).decode(text)

    # then
    assert text == '{"a":5}'
    assert handler_later(*args, **kwargs) == 15  # type: ignore[arg-type]


def everything(a: int, /, b: str = "b", *rest: int, c: bool = True, **extra: float) -> object:
    return a, b, rest, c, extra


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((1,), {}),
        ((1, "x"), {}),
        ((1,), {"b": "x"}),
        ((1, "x", 2, 3), {"c": False}),
        ((1,), {"z": 1.5, "b": "x"}),
        ((1, "x", 2), {"extra": 2.5, "odd name": 1.0}),
    ],
)
def test_every_kind_of_parameter_gets_its_argument(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    # given
    arguments = Arguments.of(everything)

    # when
    again, named = arguments.decode(arguments.encode(args, kwargs))

    # then
    assert everything(*again, **named) == everything(*args, **kwargs)  # type: ignore[arg-type]


def test_a_gap_before_a_later_positional_argument_is_filled_with_its_default() -> None:
    # given
    def handler(a: int = 1, b: int = 2, /, c: int = 3, *rest: int) -> object:
        return a, b, c, rest

    arguments = Arguments.of(handler)

    # then
    for text, called in [
        ('{"b":5}', (1, 5, 3, ())),
        ('{"c":5}', (1, 2, 5, ())),
        ('{"rest":[7]}', (1, 2, 3, (7,))),
        ("{}", (1, 2, 3, ())),
    ]:
        args, kwargs = arguments.decode(text)
        assert handler(*args, **kwargs) == called  # type: ignore[arg-type]


class Options(TypedDict, total=False):
    depth: int


def test_unpacked_keyword_arguments_are_checked_one_by_one() -> None:
    # given
    def handler(**options: Unpack[Options]) -> None: ...

    arguments = Arguments.of(handler)

    # then
    assert arguments.decode(arguments.encode((), {"depth": 3})) == ((), {"depth": 3})
    with pytest.raises(InvalidArguments, match=r"\$\.depth should be a valid integer"):
        arguments.encode((), {"depth": "3"})
    with pytest.raises(InvalidArguments):
        arguments.encode((), {"width": 3})


@pytest.mark.parametrize(
    ("args", "kwargs", "path", "message"),
    [
        ((), {}, "$.a", "everything() is missing 'a'"),
        ((1, "x"), {"b": "y"}, "$.b", "everything() got more than one value for 'b'"),
        ((1,), {"a": 2}, "$.a", "everything() would store two arguments as 'a'"),
        ((1,), {"rest": 2.0}, "$.rest", "everything() would store two arguments as 'rest'"),
        ((1, "x", "y"), {}, "$.rest[0]", "should be a valid integer, not str"),
        ((1,), {"z": "y"}, "$.z", "should be a valid number, not str"),
    ],
)
def test_a_call_that_does_not_fit_the_signature_is_refused_by_name(
    args: tuple[object, ...], kwargs: dict[str, object], path: str, message: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        Arguments.of(everything).encode(args, kwargs)

    assert caught.value.path == path
    assert message in str(caught.value)


def plain(a: int, /, b: int) -> None: ...


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, 2, 3), {}, "plain() takes 2 by position, but 3 were given"),
        ((1,), {"b": 2, "c": 3}, "plain() has no argument 'c'; it takes a, b"),
        ((1,), {"a": 1, "b": 2}, "plain() takes 'a' by position only"),
        ((), {}, "plain() is missing 'a', 'b'"),
    ],
)
def test_a_plain_signature_takes_what_it_says(
    args: tuple[object, ...], kwargs: dict[str, object], message: str
) -> None:
    with pytest.raises(TypeError, match=r"plain\(\)") as caught:
        Arguments.of(plain).encode(args, kwargs)

    assert str(caught.value) == message


def test_leading_parameters_that_the_worker_provides_can_be_skipped() -> None:
    # given
    def workflow(ctx: Unimported, order_id: int) -> None: ...

    workflow.__annotations__.pop("ctx")
    arguments = Arguments.of(workflow, skip=1)

    # then
    assert arguments.encode((7,), {}) == '{"order_id":7}'
    assert arguments.decode('{"order_id":7}') == ((), {"order_id": 7})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"user_id":"5"}', "$.user_id"),
        ('{"user_id":5.0}', "$.user_id"),
        ('{"user_id":true}', "$.user_id"),
        ("{}", "$.user_id"),
        ('{"user_id":5,"was_here":1}', "$.was_here"),
        ('{"user_id":5,"name":["x"]}', "$.name"),
        ("null", "$"),
        ("[5]", "$"),
        ("{", "$"),
        ('{"user_id":NaN}', "$.user_id"),
        ("[" * 100_000, "$"),
        ('{"user_id":' + "9" * 5000 + "}", "$"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_stored_arguments_that_no_longer_fit_are_refused_with_their_place(text: str, path: str) -> None:
    # given
    def handler(user_id: int, name: str = "") -> None: ...

    # when
    with pytest.raises(InvalidArguments, match="no longer fit") as caught:
        Arguments.of(handler).decode(text)

    # then
    assert caught.value.path == path


def test_the_last_of_two_equal_keys_in_a_stored_text_wins() -> None:
    assert taking(int).decode('{"value":1,"value":2}') == ((), {"value": 2})
    assert taking(list[int]).decode('{"value":[1],"value":[2]}') == ((), {"value": [2]})


class Node(BaseModel):
    children: list[Node] = []


def test_forward_references_and_recursive_models_are_resolved_at_first_use() -> None:
    # given
    def handler(value: Later) -> None: ...

    arguments = Arguments.of(handler)  # Later is defined at the end of this file

    # then
    assert arguments.decode(arguments.encode((Later(value=3),), {})) == ((), {"value": Later(value=3)})
    assert trip(Node, Node(children=[Node(), Node(children=[Node()])])) == Node(
        children=[Node(), Node(children=[Node()])]
    )


def unresolvable(value: Unimported) -> Unimported:
    raise NotImplementedError


def impossible(fine: int, value: Callable[[], int] | pytest.Module) -> pytest.Module:
    raise NotImplementedError


@pytest.mark.parametrize("codec", [Arguments.of(unresolvable), Result.of(unresolvable)], ids=["arguments", "result"])
def test_an_annotation_that_cannot_be_resolved_is_a_task_error_that_says_what_to_do(codec: Arguments | Result) -> None:
    with pytest.raises(
        TaskError, match=r"unresolvable cannot be resolved: .*Unimported.*outside of `if TYPE_CHECKING:`"
    ):
        codec.prepare()


def test_an_annotation_that_pydantic_does_not_know_is_a_task_error_that_names_the_argument() -> None:
    with pytest.raises(TaskError, match=r"the argument 'value' of impossible cannot be JSON.*pass the key of a row"):
        Arguments.of(impossible).prepare()
    with pytest.raises(TaskError, match="the result of impossible cannot be JSON"):
        Result.of(impossible).prepare()
    with pytest.raises(TaskError, match="the argument 'value' of impossible"):
        Arguments.of(impossible).encode((1, 2), {})


def test_a_callable_without_a_signature_is_a_task_error() -> None:
    with pytest.raises(TaskError, match="wrap it in a def"):
        Arguments.of(type)


@pytest.mark.parametrize(("annotation", "value"), TRAVELLERS, ids=label)
def test_a_declared_result_comes_back_as_it_was(annotation: object, value: object) -> None:
    # given
    result = returning(annotation)

    # when
    received = result.decode(result.encode(value))

    # then
    assert received == value
    assert type(received) is type(value)


def test_a_result_of_none_is_sql_null_whatever_the_annotation_says() -> None:
    for annotation in (None, int, Order, Any):
        assert returning(annotation).encode(None) is None
        assert returning(annotation).decode(None) is None


@pytest.mark.parametrize(("annotation", "value", "path", "advice"), RETYPED, ids=label)
def test_a_result_that_would_change_its_type_is_refused(
    annotation: object, value: object, path: str, advice: str
) -> None:
    with pytest.raises(InvalidArguments, match="the result of handler: ") as caught:
        returning(annotation).encode(value)

    assert caught.value.path == path.replace(".value", "", 1)


def test_a_stored_result_that_no_longer_fits_is_refused() -> None:
    for annotation, text in [(int, '"5"'), (Order, "[]"), (float, "true"), (str, "nonsense")]:
        with pytest.raises(InvalidArguments, match="the result of handler no longer fit"):
            returning(annotation).decode(text)


def test_an_unannotated_result_is_plain_json() -> None:
    # given
    def handler():  # type: ignore[no-untyped-def]
        ...

    result = Result.of(handler)

    # then
    assert result.decode(result.encode({"a": [1, 2.0]})) == {"a": [1, 2.0]}
    with pytest.raises(InvalidArguments, match="tuple"):
        result.encode((1, 2))


def test_a_value_that_no_function_declares_travels_as_plain_json() -> None:
    # given
    signal = Result.untyped("the signal 'shipped'")

    # then
    assert signal.decode(signal.encode({"parcel": "X1"})) == {"parcel": "X1"}
    with pytest.raises(InvalidArguments, match=r"the signal 'shipped': \$\.at is of type datetime"):
        signal.encode({"at": datetime(2024, 1, 1)})


def test_what_was_enqueued_without_the_function_is_read_with_it() -> None:
    # when
    args, kwargs = Arguments.of(everything).decode(encode_untyped({"a": 1, "b": "x", "rest": [2], "z": 1.5}))

    # then
    assert everything(*args, **kwargs) == (1, "x", (2,), True, {"z": 1.5})  # type: ignore[arg-type]


class Later(BaseModel):
    value: int
