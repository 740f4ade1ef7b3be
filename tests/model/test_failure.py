"""Describing an error: always possible, always storable, never too long."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlock.model.failure import MAX_MESSAGE, MAX_TRACEBACK, Failure, describe
from tests.model.hostile_errors import HOSTILE, ExitsInStr, Hidden, NoText, RaisesInStr, chain, cycle, raised, recursion

settled = settings(derandomize=True, database=None, deadline=None, max_examples=200)


def is_storable(failure: Failure) -> bool:
    texts = (failure.type, failure.message, failure.traceback)
    sizes = [len(text.encode()) for text in texts]  # fails on a lone surrogate
    small = sizes[0] <= 400 and sizes[1] <= MAX_MESSAGE and sizes[2] <= MAX_TRACEBACK
    return small and all(type(text) is str and "\0" not in text for text in texts)


def test_an_error_is_its_type_its_message_and_its_traceback() -> None:
    # given
    def handler() -> None:
        raise ValueError("no such user")

    # when
    with pytest.raises(ValueError, match="no such user") as caught:
        handler()
    failure = describe(caught.value)

    # then
    assert failure.type == "ValueError"
    assert failure.message == "no such user"
    assert failure.traceback.startswith("Traceback (most recent call last):\n")
    assert 'raise ValueError("no such user")' in failure.traceback
    assert failure.traceback.endswith("\nValueError: no such user\n")


def test_a_type_of_a_module_is_named_in_full() -> None:
    assert describe(json.JSONDecodeError("bad", "", 0)).type == "json.decoder.JSONDecodeError"


def test_local_variables_stay_out_of_it() -> None:
    # given
    def handler(password: str) -> None:
        raise ValueError(len(password))

    # when
    with pytest.raises(ValueError, match="11") as caught:
        handler("canary" + "-4711")

    # then
    assert "canary-4711" not in describe(caught.value).to_json()


def test_the_json_holds_the_three_texts() -> None:
    # given
    failure = describe(raised(ValueError("größer\0\ud800")))

    # then
    assert json.loads(failure.to_json()) == {
        "type": "ValueError",
        "message": "größer\\x00\\ud800",
        "traceback": failure.traceback,
    }
    assert "\\u0000" not in failure.to_json()


def test_nul_and_lone_surrogates_are_replaced_visibly() -> None:
    assert describe(ValueError("a\0b \udc80 ö")).message == "a\\x00b \\udc80 ö"


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_whatever_an_error_is_or_does_it_can_be_stored(make: Callable[[], BaseException]) -> None:
    # given
    error = make()

    # when
    failure = describe(error)

    # then
    assert is_storable(failure)
    assert json.loads(failure.to_json())["type"] == failure.type
    assert failure.traceback


def test_an_error_that_cannot_tell_its_message_says_so() -> None:
    assert describe(RaisesInStr()).message == "<no message: its __str__ raised RuntimeError>"
    assert describe(ExitsInStr()).message == "<no message: its __str__ raised SystemExit>"
    assert describe(NoText()).message == "<no message: its __str__ raised TypeError>"


def test_an_error_that_hides_its_attributes_is_told_all_the_same() -> None:
    # when
    told = describe(raised(Hidden("x"))).traceback

    # then
    assert "in raised\n" in told
    assert told.endswith("tests.model.hostile_errors.Hidden: x\n")


def test_a_long_message_keeps_its_head_and_its_tail() -> None:
    # when
    message = describe(ValueError("head " + "ö" * 10_000 + " tail")).message

    # then
    assert message.startswith("head ö")
    assert message.endswith("ö tail")
    assert "… cut: 10,010 characters in all …" in message
    assert MAX_MESSAGE - 10 < len(message.encode()) <= MAX_MESSAGE


def test_a_message_of_many_megabytes_is_not_copied() -> None:
    # given
    error = ValueError("x" * 50_000_000)
    gc.collect()
    tracemalloc.start()

    # when
    describe(error)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # then
    assert peak < 5_000_000


def test_causes_are_told_oldest_first_as_python_does() -> None:
    # given
    try:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error
    except ValueError as error:
        told = describe(error).traceback

    # then
    assert told.index("KeyError: 'first'") < told.index("direct cause") < told.index("ValueError: second")


def test_a_context_is_told_unless_it_was_suppressed() -> None:
    # given
    def fail(*, quietly: bool) -> BaseException:
        try:
            try:
                raise KeyError("first")
            except KeyError:
                if quietly:
                    raise ValueError("second") from None
                raise ValueError("second")  # noqa: B904
        except ValueError as error:
            return error

    # then
    assert "During handling of the above exception" in describe(fail(quietly=False)).traceback
    assert "first" not in describe(fail(quietly=True)).traceback


def test_a_long_chain_keeps_the_latest_causes_and_says_that_it_was_cut() -> None:
    # when
    told = describe(chain(10_000)).traceback

    # then
    assert told.startswith("… earlier errors are left out …")
    assert told.endswith("ValueError: 0\n")
    assert told.count("ValueError") == 11


def test_a_cycle_of_causes_is_told_once() -> None:
    # when
    told = describe(cycle()).traceback

    # then
    assert told.count("first") == 1
    assert told.count("second") == 1
    assert "left out" not in told


def test_a_group_of_many_thousands_is_asked_for_forty_messages_at_most() -> None:
    # given
    asked = []

    class Asked(Exception):
        def __str__(self) -> str:
            asked.append(self)
            return "asked"

    error: Exception = Asked()
    for _ in range(4):
        error = ExceptionGroup("more", [error] * 10)

    # when
    describe(error)

    # then
    assert len(asked) <= 40


def test_a_long_stack_keeps_both_ends() -> None:
    # when
    told = describe(recursion()).traceback

    # then
    assert "frames are left out …" in told
    assert "in recursion" in told
    assert told.count("  File ") == 40


def test_a_group_tells_of_its_members() -> None:
    # when
    told = describe(ExceptionGroup("both", [ValueError("one"), ExceptionGroup("in", [KeyError("two")])])).traceback

    # then
    assert "ExceptionGroup: both (2 sub-exceptions)" in told
    assert "  +- 1 of 2\n  | ValueError: one\n" in told
    assert "  |   | KeyError: 'two'\n" in told


def test_notes_are_told_with_their_error() -> None:
    # given
    error = ValueError("x")
    error.add_note("the retry policy raised")

    # then
    assert describe(error).traceback == "ValueError: x\nthe retry policy raised\n"


def test_a_source_that_cannot_be_read_leaves_the_names_of_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    # given: a module whose loader breaks when a traceback asks it for a line
    class Loader:
        def get_source(self, name: str) -> str:
            raise RuntimeError(name)

    module = ModuleType("broken_source")
    module.__loader__ = Loader()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "broken_source", module)
    exec(compile("def handler():\n    raise ValueError('x')", "broken_source.py", "exec"), module.__dict__)  # noqa: S102

    # when
    with pytest.raises(ValueError, match="x") as caught:
        module.handler()
    failure = describe(caught.value)

    # then
    assert 'File "broken_source.py", line 2, in handler' in failure.traceback


@settled
@given(st.text(), st.integers(1, 1000))
def test_any_text_can_be_stored(text: str, times: int) -> None:
    assert is_storable(describe(raised(ValueError(text * times))))
