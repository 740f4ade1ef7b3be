"""The page /jobs/preview: the jobs that an operation would change, before it is done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import model_validator

from rowlock.dashboard.bulk_runs import preview
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.filter_params import JobFilterParams
from rowlock.dashboard.page import DashboardPage
from rowlock.dashboard.search import known_names
from rowlock.model.results import Preview
from rowlock.model.verb import VerbName
from rowlock.store import schema


class PreviewParams(JobFilterParams):
    """Which jobs, and what would be done with them. Those that are ticked, if any are, are all that are meant."""

    verb: VerbName
    tick: tuple[UUID, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _only_ticked(cls, said: Any) -> Any:  # noqa: ANN401  as pydantic calls it
        return said | {"ids": said["tick"]} if isinstance(said, dict) and said.get("tick") else said


@dataclass(frozen=True, slots=True)
class PreviewShown:
    """What the verb would change, of the jobs that there were `at` this moment, and the queues one may move them to."""

    at: datetime
    preview: Preview
    queues: tuple[str, ...]


async def load(context: RequestContext, params: PreviewParams) -> PreviewShown:
    """Count the jobs that the verb would change, for a second at most."""
    [at] = await context.reader.database.arun(schema.now())
    shown = await preview(context.reader, params.verb, params.filter(at))
    return PreviewShown(at=at, preview=shown, queues=(await known_names(context)).queues)


PAGE = DashboardPage(
    "preview",
    "/jobs/preview",
    PreviewParams,
    PreviewShown,
    load,
    says="What a verb would change: how many jobs, of which tasks and states, and a few of them.",
    nav="jobs",
)
