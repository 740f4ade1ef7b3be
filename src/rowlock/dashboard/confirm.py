"""Whether a verb over a filter means as many jobs as whoever asks for it thinks.

A filter with a slip in it matches other jobs than were meant, and nobody sees it but by their number. So whoever sends
one says how many jobs they expect, as the preview counted them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rowlock.app.checks import enough_after
from rowlock.dashboard.context import RequestContext
from rowlock.errors import InvalidOption, RowlockError
from rowlock.model.filter import Filter
from rowlock.model.formatting import count
from rowlock.model.results import Preview
from rowlock.model.verb import VERBS, VerbName
from rowlock.store.find import pages, windows

_WITHIN: Final = timedelta(seconds=1)
# While somebody reads a preview, more jobs fail. So many more than were expected are still what was meant.
_MORE: Final = 0.1


def most_of(expected: int, *, at_least: bool) -> int | None:
    """How many jobs may be changed if so many were expected; None for any number."""
    return None if at_least else expected + int(expected * _MORE)


async def preview(context: RequestContext, verb: VerbName, wanted: Filter) -> Preview:
    """What a verb would do, counted for a second at most."""
    named, enough = VERBS[verb], enough_after(_WITHIN)
    return await context.reader.database.aconverse(
        lambda: pages.preview(wanted, named, looks=windows.BRIEF, enough=enough), atomic=False
    )


async def check_expected(
    context: RequestContext, verb: VerbName, wanted: Filter, expected: int | None, *, at_least: bool
) -> None:
    """Refuse a verb that would change more jobs than were expected. What is more when it runs, it does not change."""
    if expected is None:
        raise InvalidOption(
            f"expected is missing: send how many jobs this is to change; GET /api/jobs/preview?verb={verb} counts them"
        )
    if at_least:
        return
    now = await preview(context, verb, wanted)
    if now.count > (most_of(expected, at_least=False) or 0):
        many, so_far = count(now.count, "job"), "at least " if now.capped else ""
        hint = f"expected={now.count}" + (" and at_least=true" if now.capped else "")
        raise RowlockError(
            f"{so_far}{many} would be changed now, and {expected:,} {'was' if expected == 1 else 'were'} expected; "
            f"nothing was changed. Look at the preview again, and send {hint} if that is what you mean"
        )
