"""Failure: an attempt's error, as a value that can always be stored and shown.

An error is the handler's own code, and describing it must not fail: a job whose error could not be written down
would stay running forever. So: nothing an exception's methods do gets out of here, every loop has an end, and no
text is copied before it is cut.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from traceback import StackSummary
from types import FrameType, TracebackType
from typing import Final

MAX_MESSAGE: Final = 4 * 1024
MAX_TRACEBACK: Final = 16 * 1024
_MAX_TYPE: Final = 400
_MAX_QUOTED: Final = 1024  # of a message or a note inside a traceback
_MAX_LINE: Final = 300  # characters of a message in a line of the log
_MAX_ERRORS: Final = 40  # in one traceback, causes and members of groups together
_MAX_CAUSES: Final = 10
_MAX_MEMBERS: Final = 10
_MAX_NESTING: Final = 4  # groups in groups
_MAX_NOTES: Final = 10
_MAX_FRAMES: Final = 20  # at each end of a stack

_OURS: Final = __file__.removesuffix("model/failure.py")  # where our own code lies

_DIRECT: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as it is stored: at most 4 KB and 16 KB of UTF-8, without NUL, lone surrogates and local variables."""

    type: str
    message: str
    traceback: str

    @property
    def first_line(self) -> str:
        """Type and message as one line of a log says them."""
        text = self.message.strip().partition("\n")[0].rstrip()
        text = text if len(text) <= _MAX_LINE else f"{text[: _MAX_LINE - 1]}…"
        return f"{self.type}: {text}" if text else self.type

    def to_json(self) -> str:
        """The JSON object that the database keeps."""
        return json.dumps(asdict(self), ensure_ascii=False)


def describe(error: BaseException) -> Failure:
    """The type, message and traceback of an error, whatever its class does to prevent it."""
    message = _message(error)
    try:
        story = "".join(_Story().tell(error, message))
    except BaseException as fault:  # see the top: this must return
        story = f"<no traceback: {_type_name(fault)} while it was made>"
    return Failure(
        type=_clean(_type_name(error), limit=_MAX_TYPE),
        message=message,
        traceback=_clean(story, limit=MAX_TRACEBACK),
    )


def reason_of(thing: object) -> str:
    """A reason as it is stored, from whatever a handler gave for one: at most 4 KB that PostgreSQL accepts."""
    if isinstance(thing, BaseException):
        message = _message(thing)
        return _clean(f"{_type_name(thing)}: {message}" if message else _type_name(thing), limit=MAX_MESSAGE)
    try:
        return _clean(thing if type(thing) is str else str(thing), limit=MAX_MESSAGE)
    except BaseException as fault:  # as in describe: this must return
        return f"<no reason: its __str__ raised {_type_name(fault)}>"


class _Story:
    """A traceback in the making. Python's own formatter follows a chain of 10,000 causes to its end."""

    def __init__(self) -> None:
        self._left = _MAX_ERRORS

    def tell(self, error: BaseException, message: str, *, nesting: int = 0) -> Iterator[str]:
        """The causes, oldest first, and then the error itself."""
        causes, joints = _causes(error)
        if len(causes) == _MAX_CAUSES:
            yield "… earlier errors are left out …\n\n"
        for cause, joint in zip(reversed(causes), reversed(joints), strict=True):
            yield from self._one(cause, _message(cause), nesting=nesting)
            yield joint
        yield from self._one(error, message, nesting=nesting)

    def _one(self, error: BaseException, message: str, *, nesting: int) -> Iterator[str]:
        if not self._left:
            return
        self._left -= 1
        stack = BaseException.__dict__["__traceback__"].__get__(error)
        if stack is not None:
            yield "Traceback (most recent call last):\n"
            yield from _frames(stack)
        quoted = _clean(message, limit=_MAX_QUOTED)
        yield f"{_type_name(error)}: {quoted}\n" if quoted else f"{_type_name(error)}\n"
        yield from _notes(error)
        # By its type: isinstance would ask the error for its __class__.
        if issubclass(type(error), BaseExceptionGroup) and nesting < _MAX_NESTING:
            yield from self._members(error, nesting=nesting)

    def _members(self, group: BaseException, *, nesting: int) -> Iterator[str]:
        members = BaseExceptionGroup.__dict__["exceptions"].__get__(group)
        for number, member in enumerate(members[:_MAX_MEMBERS], start=1):
            if not self._left:
                return
            yield f"  +- {number} of {len(members)}\n"
            yield textwrap.indent("".join(self.tell(member, _message(member), nesting=nesting + 1)), "  | ")


def _causes(error: BaseException) -> tuple[list[BaseException], list[str]]:
    """The errors behind this one, newest first, and how each led to the next; a cycle ends where it closes."""
    causes: list[BaseException] = []
    joints: list[str] = []
    seen = {id(error)}
    while len(causes) < _MAX_CAUSES:
        # From the slots of BaseException itself: a class may hide them behind properties of its own.
        behind, joint = BaseException.__dict__["__cause__"].__get__(error), _DIRECT
        if behind is None and not BaseException.__dict__["__suppress_context__"].__get__(error):
            behind, joint = BaseException.__dict__["__context__"].__get__(error), _DURING
        if behind is None or id(behind) in seen:
            break
        seen.add(id(behind))
        causes.append(behind)
        joints.append(joint)
        error = behind
    return causes, joints


def _frames(stack: TracebackType | None) -> Iterator[str]:
    """The frames as Python prints them, both ends of a long stack."""
    frames: list[tuple[FrameType, int]] = []
    while stack is not None:
        frames.append((stack.tb_frame, stack.tb_lineno))
        stack = stack.tb_next
    frames = _without_ours(frames)
    if len(frames) <= 2 * _MAX_FRAMES:
        yield from _printed(frames)
        return
    yield from _printed(frames[:_MAX_FRAMES])
    yield f"  … {len(frames) - 2 * _MAX_FRAMES:,} frames are left out …\n"
    yield from _printed(frames[-_MAX_FRAMES:])


def _without_ours(frames: list[tuple[FrameType, int]]) -> list[tuple[FrameType, int]]:
    """Without the worker's own frames at the start, the same in every traceback; an error of ours keeps them."""
    theirs = next((n for n, (frame, _) in enumerate(frames) if not frame.f_code.co_filename.startswith(_OURS)), 0)
    return frames[theirs:]


def _printed(frames: list[tuple[FrameType, int]]) -> list[str]:
    try:
        return StackSummary.extract(iter(frames), capture_locals=False).format()
    except Exception:  # the source of a line is asked of the module's loader, which may be anyone's
        return [f'  File "{f.f_code.co_filename}", line {line}, in {f.f_code.co_name}\n' for f, line in frames]


def _notes(error: BaseException) -> Iterator[str]:
    notes = object.__getattribute__(error, "__dict__").get("__notes__")
    for note in notes[:_MAX_NOTES] if type(notes) is list else ():
        if isinstance(note, str):
            yield f"{_clean(note, limit=_MAX_QUOTED)}\n"


def _message(error: BaseException) -> str:
    try:
        return _clean(str(error), limit=MAX_MESSAGE)
    except BaseException as fault:  # see the top: this must return
        return f"<no message: its __str__ raised {_type_name(fault)}>"


def _type_name(error: BaseException) -> str:
    """`module.Class`, read from the slots of type: a metaclass may hide them, too."""
    kind = type(error)
    module, name = type.__dict__["__module__"].__get__(kind), type.__dict__["__qualname__"].__get__(kind)
    return str(name) if module == "builtins" or type(module) is not str else f"{module}.{name}"


def _clean(text: str, *, limit: int) -> str:
    r"""At most `limit` bytes of the text's two ends, NUL and lone surrogates as `\x00` and `\udc80`."""
    # By str's own methods: a subclass may have others. And cut first: a message can be 100 MB.
    length = str.__len__(text)
    head = _storable(str.__getitem__(text, slice(0, limit)))
    if length <= limit and len(head) <= limit:
        return head.decode()
    tail = _storable(str.__getitem__(text, slice(-limit, None)))
    mark = f"\n… cut: {length:,} characters in all …\n"
    room = (limit - len(mark.encode())) // 2
    return head[:room].decode(errors="ignore") + mark + tail[-room:].decode(errors="ignore")


def _storable(text: str) -> bytes:
    return text.replace("\x00", "\\x00").encode(errors="backslashreplace")


def recalled(text: str | None) -> Failure:
    """A failure as it was stored; missing parts are empty."""
    told = json.loads(text or "{}")
    return Failure(str(told.get("type", "unknown")), str(told.get("message", "")), str(told.get("traceback", "")))
